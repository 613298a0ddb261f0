//! Services, which group similar flows (BRF-31): a network and a well-known port.

use crate::rate::{FlowIdentity, FlowKey, Host};

/// First port of Linux's ephemeral range. Lower ports identify services. This port and all higher ports are client
/// ports.
pub const FIRST_EPHEMERAL_PORT: u16 = 32_768;

/// Returns the port that identifies the flow's service, or `None` if both of the flow's ports are client ports.
pub fn port(key: &FlowKey) -> Option<u16> {
    Some(key.sport.min(key.dport)).filter(|port| *port < FIRST_EPHEMERAL_PORT)
}

/// Returns the network of the data's destination: its /24 for IPv4. For IPv6, which the paper does not cover, the
/// network is the /48, which usually belongs to one site (RFC 6177).
pub fn network<K: FlowIdentity>(key: &K) -> K::Host {
    key.destination().network(24, 48)
}

#[cfg(test)]
mod tests {
    use core::net::IpAddr;

    use super::*;
    use crate::rate::Proto;

    fn key(daddr: &str, sport: u16, dport: u16) -> FlowKey {
        let daddr = daddr.parse().unwrap();
        FlowKey { saddr: daddr, daddr, sport, dport, proto: Proto::Tcp }
    }

    #[test]
    fn the_smaller_port_is_the_service_unless_both_are_clients() {
        assert_eq!(port(&key("::1", 40_000, 443)), Some(443));
        assert_eq!(port(&key("::1", 443, 40_000)), Some(443));
        assert_eq!(port(&key("::1", 40_000, 32_768)), None);
    }

    #[test]
    fn a_network_is_a_24_or_a_48() {
        for (address, expected) in [("10.1.2.3", "10.1.2.0"), ("2001:db8:1:2::3", "2001:db8:1::")] {
            assert_eq!(network(&key(address, 1, 2)), expected.parse::<IpAddr>().unwrap());
        }
    }
}
