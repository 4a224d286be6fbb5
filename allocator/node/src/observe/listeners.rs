//! Which sockets accept connections to a port of the loopback, in the network of the calling thread.
//!
//! The kernel is asked by `sock_diag`: it names only the listeners on this port, and the control group
//! in which each socket was created. Where that is not possible, the table `/proc/PID/net/tcp` is read.

use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::Duration;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
    sockopt,
};

/// One listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Listener {
    pub(super) inode: u64,
    /// The id of its control group in version 2: the inode of the group's folder. `None` if unknown.
    pub(super) group: Option<u64>,
}

/// The kernel's code for a listening socket, in its table and in its messages.
const LISTENS: &str = "0A";
const LISTENS_CODE: u8 = 10;
/// The most bytes that are read of the table. Its first lines are the listeners.
const MAX_TABLE: u64 = 1024 * 1024;
/// The most listeners on one port that are looked at.
const MAX_LISTENERS: usize = 1024;
/// How long the kernel may take for a message.
const KERNEL_TIMEOUT: Duration = Duration::from_secs(1);

const TCP: u8 = 6;
const INET: u8 = 2;
const INET6: u8 = 10;
/// `SOCK_DIAG_BY_FAMILY`.
const BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP: u16 = 0x301;
/// `NLMSG_ERROR` and `NLMSG_DONE`.
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// `INET_DIAG_CGROUP_ID`.
const GROUP_ID: u16 = 21;
/// The attribute of an IPv6 socket that takes no IPv4 connections: one byte, 1.
const V6_ONLY: u16 = 11;
/// The lengths of the message's header, and of the description of a socket.
const HEADER: usize = 16;
const DESCRIPTION: usize = 72;

/// The listeners on `port`. The calling thread must be in the network of process `pid`.
pub(super) fn on_port(proc: &Path, pid: u32, port: u16) -> io::Result<Vec<Listener>> {
    match by_kernel(port) {
        Ok(found) if !found.is_empty() => Ok(found),
        // Without the module for `sock_diag`, the kernel names none.
        Ok(_) | Err(_) => by_table(proc, pid, port),
    }
}

fn by_kernel(port: u16) -> io::Result<Vec<Listener>> {
    let mut found = Vec::new();
    for family in [INET, INET6] {
        let (kind, flags) = (SocketType::DGRAM, SocketFlags::CLOEXEC);
        let socket = socket_with(AddressFamily::NETLINK, kind, flags, Some(netlink::SOCK_DIAG))?;
        let timeout = sockopt::Timeout::Recv;
        sockopt::set_socket_timeout(&socket, timeout, Some(KERNEL_TIMEOUT))?;
        send(&socket, &request(family, port), SendFlags::empty())?;
        let mut buffer = vec![0; 32 * 1024];
        loop {
            let (length, _) = recv(&socket, buffer.as_mut_slice(), RecvFlags::empty())?;
            let ends = take(buffer.get(..length).unwrap_or_default(), port, &mut found)?;
            if ends || found.len() > MAX_LISTENERS {
                break;
            }
        }
    }
    Ok(found)
}

/// The request for the listeners on a port.
fn request(family: u8, port: u16) -> Vec<u8> {
    let mut body = vec![family, TCP, 0, 0];
    body.extend((1_u32 << LISTENS_CODE).to_ne_bytes());
    body.extend(port.to_be_bytes());
    // Any other port, addresses, interface and cookie.
    body.resize(56, 0);
    let length = u32::try_from(HEADER + body.len()).unwrap_or_default();
    let mut message = length.to_ne_bytes().to_vec();
    message.extend(BY_FAMILY.to_ne_bytes());
    message.extend(DUMP.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);
    message
}

/// Takes the listeners out of an answer; returns whether it was the last one.
fn take(mut bytes: &[u8], port: u16, found: &mut Vec<Listener>) -> io::Result<bool> {
    while let Some(length) = bytes.first_chunk().map(|length| u32::from_ne_bytes(*length)) {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let Some(message) = bytes.get(..length).filter(|message| message.len() >= HEADER) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        match message.get(4..).and_then(<[u8]>::first_chunk).map(|kind| u16::from_ne_bytes(*kind)) {
            Some(DONE) => return Ok(true),
            Some(BY_FAMILY) => {
                found.extend(message.get(HEADER..).and_then(|body| listener(body, port)));
            }
            Some(ERROR) | None => return Err(io::ErrorKind::Unsupported.into()),
            Some(_) => {}
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// A socket's description, if it listens on `port` of the loopback.
fn listener(body: &[u8], port: u16) -> Option<Listener> {
    let (described, mut attributes) = body.split_at_checked(DESCRIPTION)?;
    let [family, state, ..] = described else { return None };
    let at = u16::from_be_bytes(*described.get(4..)?.first_chunk()?);
    let address: [u8; 16] = *described.get(8..)?.first_chunk()?;
    let inode = u32::from_ne_bytes(*described.get(68..)?.first_chunk()?);
    let address = match *family {
        INET => {
            let [a, b, c, d, ..] = address;
            IpAddr::from([a, b, c, d])
        }
        INET6 => IpAddr::from(address),
        _ => return None,
    };
    let takes = takes_loopback(address);
    if *state != LISTENS_CODE || at != port || !takes {
        return None;
    }
    let mut group = None;
    while let Some((head, _)) = attributes.split_first_chunk::<4>() {
        let [a, b, c, d] = *head;
        let (length, kind) = (u16::from_ne_bytes([a, b]), u16::from_ne_bytes([c, d]));
        let length = usize::from(length).max(head.len());
        if kind == V6_ONLY && address.is_ipv6() && attributes.get(4).is_some_and(|only| *only != 0)
        {
            return None;
        }
        if kind == GROUP_ID {
            group = attributes.get(4..length).and_then(|id| id.try_into().ok());
        }
        attributes = attributes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(Listener { inode: inode.into(), group: group.map(u64::from_ne_bytes) })
}

fn by_table(proc: &Path, pid: u32, port: u16) -> io::Result<Vec<Listener>> {
    let mut found = Vec::new();
    for table in ["tcp", "tcp6"] {
        // Without IPv6, the second table is missing.
        let path = proc.join(pid.to_string()).join("net").join(table);
        let Ok(file) = File::open(path) else { continue };
        let mut text = String::new();
        file.take(MAX_TABLE).read_to_string(&mut text)?;
        found.extend(in_table(&text, port).map(|inode| Listener { inode, group: None }));
    }
    Ok(found)
}

/// The inodes of sockets that accept connections to `port` of 127.0.0.1, from the text of a table.
fn in_table(table: &str, port: u16) -> impl Iterator<Item = u64> {
    let socket = move |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let (address, at) = fields.next()?.rsplit_once(':')?;
        let state = fields.nth(1)?;
        let inode = fields.nth(5)?.parse().ok()?;
        let here = u16::from_str_radix(at, 16).ok()? == port && takes_loopback(in_hex(address)?);
        (here && state == LISTENS).then_some(inode)
    };
    table.lines().skip(1).filter_map(socket)
}

/// An address of a table: 32-bit words in the machine's byte order.
fn in_hex(text: &str) -> Option<IpAddr> {
    let word = |at: usize| u32::from_str_radix(text.get(8 * at..8 * at + 8)?, 16).ok();
    let words = (0..text.len() / 8).map(|at| word(at).map(u32::to_ne_bytes));
    let words = words.collect::<Option<Vec<_>>>()?.concat();
    match <[u8; 16]>::try_from(&*words) {
        Ok(address) => Some(address.into()),
        Err(_) => <[u8; 4]>::try_from(&*words).ok().map(IpAddr::from),
    }
}

/// Whether a socket with this address accepts connections to 127.0.0.1: that address itself, or a wildcard.
/// Another address of 127.0.0.0/8, which any user may take, is not asked.
fn takes_loopback(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => address.is_unspecified() || address == Ipv4Addr::LOCALHOST,
        IpAddr::V6(address) => address.is_unspecified(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV6, TcpListener};

    use proptest::prelude::*;
    use rustix::net::sockopt::set_ipv6_v6only;
    use rustix::net::{AddressFamily, SocketType, bind, listen, socket};

    use super::*;

    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1C37 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1
   1: 00000000:1C37 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4712 1
   2: 0200A8C0:1C37 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1
   3: 0100007F:1C37 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 4714 1
   4: 0100007F:1C38 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4715 1";

    fn listening(table: &str, port: u16) -> Vec<u64> {
        in_table(table, port).collect()
    }

    #[test]
    fn only_listeners_on_the_loopback_count() {
        assert_eq!(listening(TABLE, 7223), [4711, 4712]);
        assert_eq!(listening(TABLE, 7224), [4715]);
        assert!(listening("", 7223).is_empty());
    }

    #[test]
    fn ipv6_addresses_count_if_wildcard_or_mapped() {
        let takes = |text: &str| takes_loopback(in_hex(text).unwrap());
        let table = |address: &str| {
            let bytes = address.parse::<Ipv6Addr>().unwrap().octets();
            let words = bytes.chunks(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap()));
            words.map(|word| format!("{word:08X}")).collect::<Vec<_>>().concat()
        };
        for (address, expected) in [
            ("::", true),
            ("::ffff:127.0.0.1", true),
            ("::ffff:0.0.0.0", true),
            ("::ffff:127.0.0.2", false),
            // Another loopback.
            ("::1", false),
        ] {
            assert_eq!(takes(&table(address)), expected, "{address}");
        }
        assert_eq!((in_hex(""), in_hex("0100007"), in_hex("zz00007F")), (None, None, None));
    }

    #[test]
    fn kernel_and_table_name_the_same_listener() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let table = by_table(Path::new("/proc"), std::process::id(), port).unwrap();
        let [Listener { inode, .. }] = table[..] else { panic!("{table:?}") };
        // A kernel without `sock_diag` names none.
        let named = by_kernel(port).unwrap_or_default();
        assert!(named.is_empty() || named[0].inode == inode, "{named:?} {inode}");
        drop(listener);
        assert_eq!(on_port(Path::new("/proc"), std::process::id(), port).unwrap(), []);
    }

    #[test]
    fn ipv6_wildcard_listener_is_found() {
        let Ok(listener) = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)) else { return };
        let port = listener.local_addr().unwrap().port();
        let found = on_port(Path::new("/proc"), std::process::id(), port).unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
    }

    /// A message that describes one socket, with a control group.
    fn described(family: u8, state: u8, port: u16, address: [u8; 16]) -> Vec<u8> {
        let mut body = vec![family, state, 0, 0];
        body.extend(port.to_be_bytes());
        body.extend([0; 2]);
        body.extend(address);
        body.resize(68, 0);
        body.extend(4711_u32.to_ne_bytes());
        // An attribute that is not needed, padded to 8 bytes, and the control group's id.
        body.extend([5, 0, 8, 0, 1, 0, 0, 0]);
        body.extend(12_u16.to_ne_bytes());
        body.extend(GROUP_ID.to_ne_bytes());
        body.extend(42_u64.to_ne_bytes());
        let mut message = u32::try_from(HEADER + body.len()).unwrap().to_ne_bytes().to_vec();
        message.extend(BY_FAMILY.to_ne_bytes());
        message.extend([0; 10]);
        message.extend(body);
        message
    }

    #[test]
    fn message_names_inode_and_control_group() {
        let address = |start: &[u8]| {
            let mut address = [0; 16];
            address[..start.len()].copy_from_slice(start);
            address
        };
        let mapped = address(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1]);
        for (family, state, port, address, counts) in [
            (INET, LISTENS_CODE, 7223, address(&[127, 0, 0, 1]), true),
            (INET, LISTENS_CODE, 7223, address(&[]), true),
            (INET6, LISTENS_CODE, 7223, mapped, true),
            (INET, 1, 7223, address(&[127, 0, 0, 1]), false),
            (INET, LISTENS_CODE, 7224, address(&[127, 0, 0, 1]), false),
            (INET, LISTENS_CODE, 7223, address(&[192, 168, 0, 2]), false),
            (INET, LISTENS_CODE, 7223, address(&[127, 0, 0, 2]), false),
            (INET6, LISTENS_CODE, 7223, address(&[]), true),
        ] {
            let mut found = Vec::new();
            let message = described(family, state, port, address);
            assert!(!take(&message, 7223, &mut found).unwrap());
            let expected = Listener { inode: 4711, group: Some(42) };
            assert_eq!(found, if counts { vec![expected] } else { vec![] });
        }
    }

    #[test]
    fn wildcard_of_ipv6_alone_takes_no_connection() {
        let Ok(socket) = socket(AddressFamily::INET6, SocketType::STREAM, None) else { return };
        set_ipv6_v6only(&socket, true).unwrap();
        let any = SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, 0, 0, 0);
        bind(&socket, &any).unwrap();
        listen(&socket, 1).unwrap();
        let port = TcpListener::from(socket).local_addr().unwrap().port();
        // A kernel without `sock_diag` names none.
        assert_eq!(by_kernel(port).unwrap_or_default(), []);
    }

    proptest! {
        #[test]
        fn readers_never_panic(
            table in "[ -~\n]*",
            address in "\\PC*",
            bytes in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            listening(&table, 7223);
            in_hex(&address).map(takes_loopback);
            drop(take(&bytes, 7223, &mut Vec::new()));
            listener(&bytes, 7223);
        }
    }
}
