//! Claims each port of an agent, so that no second agent controls the same queue.
//!
//! A claim is an abstract socket. Its name is unique in a network namespace. The kernel releases the name when the
//! agent's process ends, even if the process is killed (unix(7)).

use std::collections::BTreeSet;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use crate::htb::Link;
use crate::services::Failure;

const PREFIX: &str = "narrows-agent-port-";

/// Claims a port until the returned socket is dropped.
///
/// # Errors
/// If another agent controls the interface.
pub fn claim(link: &Link) -> Result<UnixDatagram, Failure> {
    let name = SocketAddr::from_abstract_name(format!("{PREFIX}{}", link.index))?;
    UnixDatagram::bind_addr(&name).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => format!("another agent controls interface {} already", link.name).into(),
        _ => error.into(),
    })
}

/// Returns the ifindexes that running agents have claimed in the calling thread's network namespace.
pub fn held() -> BTreeSet<u32> {
    let sockets = std::fs::read_to_string("/proc/thread-self/net/unix").unwrap_or_default();
    parse(&sockets).collect()
}

/// Returns the claimed ifindexes. `sockets` is the kernel's list of sockets. In this list, an abstract name starts with
/// `@` instead of its zero byte (proc_pid_net(5)).
fn parse(sockets: &str) -> impl Iterator<Item = u32> {
    let name = |line: &str| line.split('@').nth(1)?.strip_prefix(PREFIX)?.trim().parse().ok();
    sockets.lines().filter_map(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_claims_are_read_from_the_kernels_list() {
        let sockets = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                       0000: 00000002 00000000 00000000 0002 01 20177 @narrows-agent-port-7\n\
                       0000: 00000003 00000000 00000000 0001 03 20178 /run/narrows-agent/switch.sock\n\
                       0000: 00000002 00000000 00000000 0002 01 20179 @other-port-8\n";
        assert_eq!(parse(sockets).collect::<Vec<_>>(), [7]);
    }

    #[test]
    fn a_claim_is_seen_until_it_is_dropped() {
        let index = 4_000_000_000 + std::process::id() % 1000;
        let link = Link { index, name: "x".into(), mtu: 1500, mac: String::new(), ethernet: true };
        let claimed = claim(&link).unwrap();
        assert!(held().contains(&index));
        assert!(claim(&link).unwrap_err().to_string().contains("another agent controls"));
        drop(claimed);
        assert!(!held().contains(&index));
    }
}
