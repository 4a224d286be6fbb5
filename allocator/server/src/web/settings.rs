//! The settings of the page, and their check.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use paceline_api::setting_path::non_empty;
use paceline_api::token::Token;
use paceline_api::usage::BadUsage;
use serde::Deserialize;

use super::address::Address;
use super::listen::Plan;
use super::routes::Access;
use super::tls;

/// Address, token and TLS of the page, the API and the metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "WebSettings"))]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The address of the page, the API and the metrics: `host:port`, `unix:/path.sock` or
    /// `none`
    /// [default: 127.0.0.1:7224]
    ///
    /// An address that other machines can reach also needs a token and TLS.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<Address>,

    /// The file with the token that readers must show. Only its owner may have read permission
    #[arg(long, value_name = "FILE")]
    #[serde(deserialize_with = "non_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<PathBuf>"))]
    pub token_file: Option<PathBuf>,

    /// The server's certificate chain, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    #[serde(deserialize_with = "non_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<PathBuf>"))]
    pub tls_certificate: Option<PathBuf>,

    /// The certificate's private key, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    #[serde(deserialize_with = "non_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<PathBuf>"))]
    pub tls_key: Option<PathBuf>,

    /// Also send the metrics to an OpenTelemetry receiver, by OTLP over HTTP. The `OTEL_EXPORTER_OTLP_…`
    /// variables say where to
    #[arg(long)]
    pub otlp: bool,
}

impl Settings {
    /// Checks the settings by themselves: their files are not read, and names of hosts not looked up.
    ///
    /// # Errors
    /// They contradict each other.
    pub fn check(&self) -> Result<(), BadUsage> {
        match (&self.tls_certificate, &self.tls_key) {
            (Some(_), None) => return Err(alone("tls_certificate", "tls_key")),
            (None, Some(_)) => return Err(alone("tls_key", "tls_certificate")),
            (Some(_), Some(_)) | (None, None) => {}
        }
        if let Some(Address::Tcp(name)) = &self.listen
            && let Ok(literal) = name.parse()
        {
            self.allows(name, &[literal])?;
        }
        Ok(())
    }

    /// Checks the settings with their files and names, as [`serve`](super::serve) does before it
    /// listens.
    ///
    /// # Errors
    /// They contradict each other, a file cannot be used, or a host is unknown.
    pub async fn check_all(&self) -> Result<(), BadUsage> {
        self.check()?;
        self.plan(&self.listen.clone().unwrap_or_default()).await.map(drop)
    }

    /// Refuses addresses that other machines can reach, unless there are token and TLS. Returns whether
    /// all are this machine's own.
    fn allows(&self, name: &str, addresses: &[SocketAddr]) -> Result<bool, BadUsage> {
        let own = addresses.iter().all(|address| address.ip().to_canonical().is_loopback());
        if own || (self.token_file.is_some() && self.tls_certificate.is_some()) {
            return Ok(own);
        }
        Err(BadUsage(format!(
            "cannot listen on {name}: other machines can reach it; set token_file, \
             tls_certificate and tls_key, or use a loopback address such as {} or \
             unix:/path.sock",
            Address::default()
        )))
    }

    /// Checks the settings for `address`; `None` if the address is `none`.
    pub(super) async fn plan(&self, address: &Address) -> Result<Option<Plan>, BadUsage> {
        let token = self.token_file.as_deref();
        let token = token.map(|path| Token::read("token_file", path)).transpose()?;
        let tls = match (&self.tls_certificate, &self.tls_key) {
            (Some(certificate), Some(key)) => Some(tls::config(certificate, key)?),
            (None, None) => None,
            (Some(_), None) => return Err(alone("tls_certificate", "tls_key")),
            (None, Some(_)) => return Err(alone("tls_key", "tls_certificate")),
        };
        let (place, is_loopback) = match address {
            Address::None => return Ok(None),
            Address::Unix(path) => (Place::Unix(path.clone()), false),
            Address::Tcp(name) => {
                let found = resolve(name).await?;
                let own = self.allows(name, &found)?;
                (Place::Tcp(found), own)
            }
        };
        let access = Access { token, checks_host: is_loopback };
        Ok(Some(Plan { asked: address.clone(), place, access, tls }))
    }
}

/// The address to bind.
#[derive(Debug)]
pub(super) enum Place {
    Tcp(Vec<SocketAddr>),
    Unix(PathBuf),
}

async fn resolve(name: &str) -> Result<Vec<SocketAddr>, BadUsage> {
    let unknown = |why: &str| BadUsage(format!("cannot listen on {name}: unknown host: {why}"));
    let found = tokio::net::lookup_host(name).await.map_err(|error| unknown(&error.to_string()))?;
    let found: Vec<_> = found.collect();
    if found.is_empty() { Err(unknown("it has no address")) } else { Ok(found) }
}

fn alone(given: &str, missing: &str) -> BadUsage {
    BadUsage(format!("cannot use {given} without {missing}: TLS needs both; set both, or none"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        settings: Settings,
    }

    #[test]
    fn command_line_and_file_give_equal_settings() {
        let line = "page --listen unix:/run/page.sock --token-file t --tls-certificate c --tls-key k --otlp";
        let given = Line::try_parse_from(line.split_whitespace()).unwrap().settings;
        let file = "listen = 'unix:/run/page.sock'\ntoken_file = 't'\n\
                    tls_certificate = 'c'\ntls_key = 'k'\notlp = true";
        assert_eq!(toml::from_str::<Settings>(file).unwrap(), given);
        assert_eq!(given.listen, Some(Address::Unix("/run/page.sock".into())));
    }

    #[test]
    fn settings_that_contradict_each_other_are_refused_without_their_files() {
        let check = |text: &str| toml::from_str::<Settings>(text).unwrap().check();
        let both = "tls_certificate = '/c'\ntls_key = '/k'";
        let outside = "listen = '0.0.0.0:7224'";
        for (text, part) in [
            ("tls_key = '/k'", "cannot use tls_key without tls_certificate"),
            ("tls_certificate = '/c'", "cannot use tls_certificate without tls_key"),
            (outside, "cannot listen on 0.0.0.0:7224"),
            (&format!("{outside}\n{both}"), "set token_file"),
            ("listen = '[::]:7224'\ntoken_file = '/t'", "cannot listen on [::]:7224"),
        ] {
            let error = check(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        let whole = format!("{outside}\n{both}\ntoken_file = '/t'");
        for text in ["", both, &whole, "listen = '127.0.0.1:0'", "listen = 'none'"] {
            check(text).unwrap();
        }
    }

    #[tokio::test]
    async fn whole_check_reads_the_files() {
        let settings = toml::from_str::<Settings>("token_file = '/no/such'").unwrap();
        settings.check().unwrap();
        let error = settings.check_all().await.unwrap_err().to_string();
        assert!(error.contains("token_file /no/such"), "{error}");
    }

    #[test]
    fn empty_path_is_refused() {
        for key in ["token_file", "tls_certificate", "tls_key"] {
            let error = toml::from_str::<Settings>(&format!("{key} = ''")).unwrap_err().to_string();
            assert!(error.contains("expected a path"), "{error}");
        }
    }

    #[test]
    fn invalid_address_is_refused_with_allowed_forms() {
        let said = Line::try_parse_from(["page", "--listen", "7224"]).unwrap_err().to_string();
        assert!(said.contains("7224") && said.contains("unix:/path.sock"), "{said}");
        let said = toml::from_str::<Settings>("listen = '7224'").unwrap_err().to_string();
        assert!(said.contains("unix:/path.sock"), "{said}");
        assert!(toml::from_str::<Settings>("lisen = 'none'").is_err());
    }
}
