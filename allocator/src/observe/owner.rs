//! Whose a listening socket is.
//!
//! On the machine's own network a port says nothing of who answers there: another process may have
//! taken it, to speak for a job that is not its own. So the socket is looked up in the kernel's
//! table, and must be open in a process of the container.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::cgroup::Cgroup;

/// The kernel's word for a socket that listens.
const LISTENS: &str = "0A";
/// More processes of a container, or open files of a process, are not looked through.
const MOST_PROCESSES: usize = 4096;
const MOST_FILES: usize = 65_536;

/// Whether process `pid` has the same network as this one.
pub(super) fn is_of_the_machine(proc: &Path, pid: u32) -> io::Result<bool> {
    let network = |process: &str| fs::read_link(proc.join(process).join("ns/net"));
    Ok(network(&pid.to_string())? == network("self")?)
}

/// An error unless all who listen on `port` of the loopback are of process `pid`'s control group.
pub(super) fn ensure_listens(proc: &Path, pid: u32, port: u16) -> io::Result<()> {
    let group = Cgroup::of(proc, pid)?;
    let members = members(group.cpu_folder())?;
    let mut sockets = BTreeSet::new();
    for table in ["tcp", "tcp6"] {
        let text = fs::read_to_string(proc.join(pid.to_string()).join("net").join(table));
        // Without IPv6 there is no such table.
        sockets.extend(listening(&text.unwrap_or_default(), port));
    }
    let stranger = || io::Error::other(format!("port {port} is not the container's own"));
    if sockets.is_empty() {
        return Err(stranger());
    }
    for member in members {
        sockets.retain(|socket| !has_open(proc, member, *socket));
        if sockets.is_empty() {
            return Ok(());
        }
    }
    Err(stranger())
}

/// The inodes of sockets that take connections to `port` of 127.0.0.1, by the text of a table.
fn listening(table: &str, port: u16) -> Vec<u64> {
    let socket = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let (address, at) = fields.next()?.rsplit_once(':')?;
        let state = fields.nth(1)?;
        let inode = fields.nth(5)?.parse().ok()?;
        let here = u16::from_str_radix(at, 16).ok()? == port && takes_loopback(address);
        (here && state == LISTENS).then_some(inode)
    };
    table.lines().skip(1).filter_map(socket).collect()
}

/// An address of 127.0.0.0/8 or any address, in the table's form: 32-bit words of the machine's own
/// order.
fn takes_loopback(address: &str) -> bool {
    let (rest, last) =
        address.split_at_checked(address.len().saturating_sub(8)).unwrap_or_default();
    let any = address.bytes().all(|digit| digit == b'0');
    let mapped = rest.is_empty() || rest == "0000000000000000FFFF0000";
    let first = if cfg!(target_endian = "little") { last.get(6..) } else { last.get(..2) };
    any || (mapped && first == Some("7F"))
}

/// The processes of a control group and of those below it.
fn members(folder: &Path) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let text = fs::read_to_string(folder.join("cgroup.procs"))?;
        found.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()));
        if found.len() > MOST_PROCESSES {
            return Err(io::Error::other("its control group has too many processes"));
        }
        let below = fs::read_dir(&folder)?.flatten();
        folders.extend(below.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path()));
    }
    Ok(found)
}

/// Whether a process has the socket open. One that has just ended has nothing open.
fn has_open(proc: &Path, pid: u32, socket: u64) -> bool {
    let wanted = PathBuf::from(format!("socket:[{socket}]"));
    let Ok(files) = fs::read_dir(proc.join(pid.to_string()).join("fd")) else { return false };
    let mut links = files.flatten().take(MOST_FILES).map(|file| fs::read_link(file.path()));
    links.any(|link| link.is_ok_and(|link| link == wanted))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};

    use proptest::prelude::*;

    use super::*;

    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1C37 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1
   1: 00000000:1C37 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4712 1
   2: 0200A8C0:1C37 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1
   3: 0100007F:1C37 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 4714 1
   4: 0100007F:1C38 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4715 1";

    #[test]
    fn only_who_listens_where_the_loopback_reaches_counts() {
        assert_eq!(listening(TABLE, 7223), [4711, 4712]);
        assert_eq!(listening(TABLE, 7224), [4715]);
        assert!(listening("", 7223).is_empty());
    }

    #[test]
    fn addresses_of_version_6_take_the_loopback_when_they_are_any_or_mapped() {
        assert!(takes_loopback("00000000000000000000000000000000"));
        assert!(takes_loopback("0000000000000000FFFF00000100007F"));
        assert!(!takes_loopback("00000000000000000000000001000000"), "::1 is another loopback");
    }

    #[test]
    fn a_socket_of_ones_own_is_found_and_a_port_that_is_nobodys_is_refused() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (proc, pid) = (Path::new("/proc"), std::process::id());
        let table = fs::read_to_string("/proc/self/net/tcp").unwrap();
        let [socket] = listening(&table, port)[..] else { panic!("{table}") };
        assert!(has_open(proc, pid, socket));
        assert!(!has_open(proc, pid, u64::MAX));
        drop(listener);
        assert!(!has_open(proc, pid, socket));
        assert!(ensure_listens(proc, pid, port).is_err());
    }

    #[test]
    fn a_listener_of_version_6_for_any_address_is_found() {
        let Ok(listener) = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)) else { return };
        let port = listener.local_addr().unwrap().port();
        let table = fs::read_to_string("/proc/self/net/tcp6").unwrap();
        assert_eq!(listening(&table, port).len(), 1, "{table}");
    }

    proptest! {
        #[test]
        fn no_table_makes_the_reader_panic(table in "[ -~\n]*", address in "\\PC*") {
            drop(listening(&table, 7223));
            takes_loopback(&address);
        }
    }
}
