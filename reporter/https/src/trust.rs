//! Which receivers are trusted, and as whom this client appears.

use std::sync::Arc;

use thiserror::Error;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, Error, RootCertStore};

/// The machine has no certificates that can be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct NoRoots(String);

/// The certificates that the machine trusts, or those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name. Those
/// that cannot be used are left out.
///
/// # Errors
/// If there are none.
pub fn machine_roots() -> Result<RootCertStore, NoRoots> {
    // A pipe would make the reader wait.
    if let Some(path) = std::env::var_os("SSL_CERT_FILE")
        && std::fs::metadata(&path).is_ok_and(|file| !file.is_file())
    {
        return Err(NoRoots(format!("{} is not a regular file", path.display())));
    }
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found.errors.first().map_or("none found".to_owned(), ToString::to_string);
        return Err(NoRoots(why));
    }
    Ok(roots)
}

/// A certificate chain and its key.
type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// Trusts `roots`, and appears as `identity`, if a receiver asks for one.
///
/// # Errors
/// If the identity cannot be used.
pub fn connector(roots: RootCertStore, identity: Option<Identity>) -> Result<TlsConnector, Error> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    let config = match identity {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => builder.with_client_auth_cert(chain, key)?,
    };
    Ok(TlsConnector::from(Arc::new(config)))
}
