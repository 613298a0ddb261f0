//! Samples connections of other programs by sock_diag(7).

use std::io;
use std::path::Path;

use super::netlink::{Netlink, attribute};
use super::{BbrInfo, TcpInfo};
use crate::error::Error;

const NETLINK_SOCK_DIAG: isize = 4;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_VEGASINFO: u16 = 3;
const INET_DIAG_BBRINFO: u16 = 16;

/// Length of `struct inet_diag_msg` (linux/inet_diag.h) before the attributes, and offsets of the ports.
const MESSAGE: usize = 72;
const SOURCE_PORT: usize = 4;
const DESTINATION_PORT: usize = 6;

/// TCP states to list: SYN_SENT, ESTABLISHED, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT, LAST_ACK, CLOSING. TIME_WAIT is missing
/// because it has no `tcp_info`. LISTEN is missing because its fields have another meaning.
const STATES: u32 = 1 << 2 | 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;

/// A connection in the kernel's list.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) source_port: u16,
    pub(crate) destination_port: u16,
    pub(crate) info: TcpInfo,
    /// The state of Linux's BBR v1, if the connection uses it and [`Diag::open`] was called with `with_bbr`.
    pub(crate) bbr: Option<BbrInfo>,
}

/// Lists connections of a namespace.
pub(crate) struct Diag {
    netlink: Netlink,
    with_bbr: bool,
}

impl Diag {
    /// `with_bbr`: whether to request the state of BBR as well.
    ///
    /// # Errors
    /// The same as [`Netlink::open`].
    pub(crate) fn open(netns: &Path, with_bbr: bool) -> Result<Self, Error> {
        Ok(Diag { netlink: Netlink::open(netns, NETLINK_SOCK_DIAG)?, with_bbr })
    }

    /// Returns the connections from and to these ports. The number 0 means any port. The list includes both address
    /// families, because the IPv4 connections of a server that listens on `::` are in the IPv6 family.
    pub(crate) fn connections(&mut self, from: u16, to: u16) -> io::Result<Vec<Connection>> {
        let mut found = Vec::new();
        for family in [libc::AF_INET, libc::AF_INET6] {
            let request = request(family, from, to, self.with_bbr);
            self.netlink.request(SOCK_DIAG_BY_FAMILY, true, &request, |m| found.extend(parse(m)))?;
        }
        Ok(found)
    }
}

/// Returns a `struct inet_diag_req_v2`. The kernel's answer lists only connections with the requested ports
/// (net/ipv4/inet_diag.c, inet_diag_dump_icsk).
fn request(family: i32, from: u16, to: u16, with_bbr: bool) -> [u8; 56] {
    let mut r = [0u8; 56];
    r[0] = family as u8;
    r[1] = libc::IPPROTO_TCP as u8;
    r[2] = 1 << (INET_DIAG_INFO - 1);
    if with_bbr {
        // The number of INET_DIAG_BBRINFO does not fit into this byte. The request therefore has INET_DIAG_VEGASINFO,
        // which BBR also answers (bbr_get_info, net/ipv4/tcp_bbr.c).
        r[2] |= 1 << (INET_DIAG_VEGASINFO - 1);
    }
    r[4..8].copy_from_slice(&STATES.to_ne_bytes());
    r[8..10].copy_from_slice(&from.to_be_bytes());
    r[10..12].copy_from_slice(&to.to_be_bytes());
    // INET_DIAG_NOCOOKIE.
    r[48..56].fill(0xff);
    r
}

fn parse(message: &[u8]) -> Option<Connection> {
    let (head, attributes) = message.split_at_checked(MESSAGE)?;
    let port = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    Some(Connection {
        source_port: port(SOURCE_PORT),
        destination_port: port(DESTINATION_PORT),
        info: TcpInfo::parse(attribute(attributes, INET_DIAG_INFO)?),
        bbr: attribute(attributes, INET_DIAG_BBRINFO).and_then(BbrInfo::parse),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_kernel_lists_a_connection_of_this_process() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let there = listener.local_addr().unwrap().port();
        let client = std::net::TcpStream::connect(("127.0.0.1", there)).unwrap();
        let here = client.local_addr().unwrap().port();
        let mut diag = match Diag::open(Path::new("/proc/self/ns/net"), false) {
            Ok(diag) => diag,
            Err(e) if std::env::var_os("NARROWS_REQUIRE_KERNEL").is_none() => {
                eprintln!("SKIPPED: sock_diag: {e}");
                return;
            }
            Err(e) => panic!("{e}"),
        };
        let found = diag.connections(here, there).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].source_port, found[0].destination_port), (here, there));
        assert!(found[0].info.cwnd > 0 && found[0].info.mss > 0);
        assert!(diag.connections(here, 1).unwrap().is_empty(), "the port is a filter");
    }

    #[test]
    fn a_truncated_message_is_not_a_connection() {
        assert!(parse(&[0; 20]).is_none());
        assert!(parse(&[0; MESSAGE]).is_none());
    }

    /// Returns a message with an attribute of each of these types.
    fn message(attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![0; MESSAGE];
        for (kind, value) in attributes {
            bytes.extend((value.len() as u16 + 4).to_ne_bytes());
            bytes.extend(kind.to_ne_bytes());
            bytes.extend_from_slice(value);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    #[test]
    fn a_message_has_the_state_of_bbr_only_if_its_attribute_is_complete() {
        let bbr = super::super::bbr::tests::bytes([1_000, 0, 40_000, 739, 739]);
        let whole = message(&[(INET_DIAG_INFO, &[0; 104]), (INET_DIAG_BBRINFO, &bbr)]);
        assert_eq!(parse(&whole).unwrap().bbr, BbrInfo::parse(&bbr));
        for length in MESSAGE + 108..whole.len() {
            assert_eq!(parse(&whole[..length]).unwrap().bbr, None, "{length} bytes");
        }
        let short = message(&[(INET_DIAG_INFO, &[0; 104]), (INET_DIAG_BBRINFO, &bbr[..16])]);
        assert_eq!(parse(&short).unwrap().bbr, None);
        let vegas = message(&[(INET_DIAG_INFO, &[0; 104]), (INET_DIAG_VEGASINFO, &[0; 16])]);
        assert_eq!(parse(&vegas).unwrap().bbr, None);
    }

    #[test]
    fn the_state_of_bbr_is_requested_only_on_demand() {
        assert_eq!(request(libc::AF_INET, 1, 2, false)[2], 0b10);
        assert_eq!(request(libc::AF_INET, 1, 2, true)[2], 0b110);
    }

    proptest! {
        #[test]
        fn no_message_causes_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
            let _ = parse(&bytes);
        }
    }
}
