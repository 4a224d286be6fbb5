//! Where the endpoints of this machine may be.

use std::collections::BTreeSet;
use std::fs;
use std::ops::RangeInclusive;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf, absolute};

use futures_util::stream::{self, Stream, StreamExt};
use paceline_wire::{DEFAULT_PORT, Progress};

use crate::address::Address;
use crate::client::{self, Failure};

/// The ports of further ranks, and of further jobs.
const FURTHER_PORTS: RangeInclusive<u16> = 7230..=7299;
/// The folder of sockets of the machine's jobs. Its parent has the allocator's own sockets.
const MACHINE_FOLDER: &str = "/run/paceline/jobs";
/// The folders of sockets in a user's runtime folder; `paceline exec` uses the second.
const USER_FOLDERS: [&str; 2] = ["paceline", "paceline/jobs"];
/// The most sockets of a folder.
const MAX_SOCKETS: usize = 128;
/// The most files of a folder that are looked at.
const MAX_FILES: usize = 4096;
/// The most endpoints that are asked at once.
const CONCURRENCY: usize = 16;

/// Where to look.
#[derive(Clone, Debug, Default)]
pub(crate) struct Search {
    fixed: BTreeSet<Address>,
    folders: Vec<PathBuf>,
}

impl Search {
    /// The default ports and folders, `folders`, `more`, and what `PACELINE_LISTEN` names.
    pub(crate) fn of_machine(folders: &[PathBuf], more: &[Address]) -> Self {
        let own = std::env::var("PACELINE_LISTEN").ok().and_then(|text| listened(&text));
        let ports = std::iter::once(DEFAULT_PORT).chain(FURTHER_PORTS).map(Address::local);
        let user = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let user = user.filter(|folder| folder.is_absolute());
        Self {
            fixed: ports.chain(own).chain(more.iter().cloned()).collect(),
            folders: std::iter::once(PathBuf::from(MACHINE_FOLDER))
                .chain(user.iter().flat_map(|user| USER_FOLDERS.map(|folder| user.join(folder))))
                // A socket's address has its whole path.
                .chain(folders.iter().map(|one| absolute(one).unwrap_or_else(|_| one.clone())))
                .collect(),
        }
    }

    /// One job.
    pub(crate) fn of_job(address: Address) -> Self {
        Self { fixed: BTreeSet::from([address]), folders: Vec::new() }
    }

    /// The sockets of a folder alone.
    #[cfg(test)]
    pub(crate) fn of_folder(folder: &Path) -> Self {
        Self { fixed: BTreeSet::new(), folders: vec![folder.to_owned()] }
    }

    /// All addresses at which a job may be now.
    pub(crate) fn addresses(&self) -> BTreeSet<Address> {
        let sockets = self.folders.iter().flat_map(|folder| sockets(folder));
        self.fixed.iter().cloned().chain(sockets.map(Address::Unix)).collect()
    }

    /// Where it looks, in words.
    pub(crate) fn places(&self) -> String {
        let folders: Vec<_> = self.folders.iter().map(|one| one.display().to_string()).collect();
        format!(
            "ports {DEFAULT_PORT} and {} to {} of 127.0.0.1, sockets in {}",
            FURTHER_PORTS.start(),
            FURTHER_PORTS.end(),
            folders.join(", ")
        )
    }
}

/// The address at which a job with this `PACELINE_LISTEN` can be asked.
fn listened(text: &str) -> Option<Address> {
    let address = text.parse().ok()?;
    let Address::Tcp(text) = &address else { return Some(address) };
    let all = [("0.0.0.0:", "127.0.0.1:"), ("[::]:", "[::1]:")];
    let own = all.iter().find_map(|(all, own)| Some(format!("{own}{}", text.strip_prefix(all)?)));
    Some(own.map_or_else(|| address.clone(), Address::Tcp))
}

/// The sockets in a folder; none in one that cannot be read.
fn sockets(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let is_socket = |entry: &fs::DirEntry| {
        entry.path().extension().is_some_and(|end| end == "sock")
            && entry.file_type().is_ok_and(|kind| kind.is_socket())
    };
    let entries = entries.take(MAX_FILES).filter_map(Result::ok);
    entries.filter(is_socket).map(|entry| entry.path()).take(MAX_SOCKETS).collect()
}

/// Asks endpoints for their progress, some at a time, in the order of the answers.
pub(crate) fn probe(
    addresses: impl IntoIterator<Item = Address>,
) -> impl Stream<Item = (Address, Result<Progress, Failure>)> {
    let probes = addresses.into_iter().map(|address| async {
        let answer = client::progress(&address).await;
        (address, answer)
    });
    stream::iter(probes).buffer_unordered(CONCURRENCY)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn all_ports_of_endpoints_are_searched() {
        let found = Search::of_machine(&[], &[Address::local(9)]).addresses();
        for port in [7223, 7230, 7299, 9] {
            assert!(found.contains(&Address::local(port)), "{port}");
        }
        assert!(
            ![7222, 7224, 7229, 7300].iter().any(|port| found.contains(&Address::local(*port)))
        );
    }

    #[test]
    fn folder_is_searched_for_sockets_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let _sockets =
            ["a.sock", "b.sock", "c.txt"].map(|name| UnixListener::bind(path(name)).unwrap());
        fs::write(path("d.sock"), "text").unwrap();
        let search = Search::of_machine(&[folder.path().to_owned(), path("missing")], &[]);
        let found = search.addresses();
        let unix: Vec<_> = found
            .into_iter()
            .filter(|one| one.to_string().contains(&*folder.path().to_string_lossy()))
            .collect();
        assert_eq!(unix, ["a.sock", "b.sock"].map(|name| Address::Unix(path(name))));
    }

    #[test]
    fn folder_is_named_by_its_whole_path() {
        let here = std::env::current_dir().unwrap().join("jobs");
        let search = Search::of_machine(&["jobs".into()], &[]);
        assert!(search.places().ends_with(&*here.to_string_lossy()), "{}", search.places());
    }

    #[test]
    fn listening_on_all_addresses_is_asked_on_loopback() {
        for (given, asked) in [
            ("0.0.0.0:7223", "127.0.0.1:7223"),
            ("[::]:80", "[::1]:80"),
            ("10.0.0.7:80", "10.0.0.7:80"),
            ("unix:/run/a.sock", "unix:/run/a.sock"),
        ] {
            assert_eq!(listened(given).unwrap().to_string(), asked);
        }
        assert_eq!(listened("127.0.0.1:0"), None);
    }
}
