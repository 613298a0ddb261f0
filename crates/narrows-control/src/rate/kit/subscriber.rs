//! The unit of fairness: a connection, or the subscriber that it belongs to.
//!
//! If each connection has a share, a host with nine connections gets nine shares. If each subscriber has a share, the
//! port's capacity is divided among subscribers, and each share is divided among the subscriber's connections.

use core::fmt;
use core::net::IpAddr;
use core::str::FromStr;

use crate::parameter::{Field, Shape, Value};
use crate::rate::{FlowEvent, FlowIdentity, Host, Side};

/// Default prefix length of an IPv6 subscriber. A host can use every address of its /64, so shares for single addresses
/// would not limit the host.
const IPV6_PREFIX: u8 = 64;

/// The unit that gets a share.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Share {
    /// Each connection has a share of its own.
    #[default]
    Flow,
    /// All connections of a network together have one share.
    Prefix {
        /// The side whose address identifies the subscriber.
        side: Side,
        /// Prefix length of IPv4 networks.
        ipv4: u8,
        /// Prefix length of IPv6 networks.
        ipv6: u8,
    },
    /// All connections of a VLAN together have one share.
    Vlan,
    /// All connections with the same packet mark together have one share.
    Mark,
}

/// A subscriber of a port.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Subscriber<H = IpAddr> {
    /// A network, identified by its first address and its VLAN. Networks of different VLANs may have the same
    /// addresses.
    Network(H, u16),
    /// A VLAN or a mark.
    Tag(u32),
}

impl Share {
    /// Returns the subscriber of this event's flow, or `None` if each flow has its own share.
    pub fn subscriber<K: FlowIdentity>(self, event: &FlowEvent<K>) -> Option<Subscriber<K::Host>> {
        match self {
            Share::Flow => None,
            Share::Prefix { side, ipv4, ipv6 } => {
                let host = match side {
                    Side::Sender => event.key.source(),
                    Side::Receiver => event.key.destination(),
                };
                Some(Subscriber::Network(host.network(ipv4, ipv6), event.vlan))
            }
            Share::Vlan => Some(Subscriber::Tag(u32::from(event.vlan))),
            Share::Mark => Some(Subscriber::Tag(event.mark)),
        }
    }
}

/// The accepted forms.
pub const FORMS: &str = "flow, sender-address, receiver-address, sender-prefix/N, receiver-prefix/N, vlan or mark, with a \
                         prefix length N from 1 to 32, or N/M with the length M of IPv6 prefixes";

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || format!("found {text:?}, expected {FORMS}");
        match text {
            "flow" => return Ok(Share::Flow),
            "vlan" => return Ok(Share::Vlan),
            "mark" => return Ok(Share::Mark),
            _ => {}
        }
        let (side, form) = match text.split_once('-') {
            Some(("sender", form)) => (Side::Sender, form),
            Some(("receiver", form)) => (Side::Receiver, form),
            _ => return Err(unknown()),
        };
        if form == "address" {
            return Ok(Share::Prefix { side, ipv4: 32, ipv6: IPV6_PREFIX });
        }
        let lengths = form.strip_prefix("prefix/").ok_or_else(unknown)?;
        let (ipv4, ipv6) = lengths.split_once('/').map_or((lengths, None), |(v4, v6)| (v4, Some(v6)));
        let length = |digits: &str, most: u8| match digits.parse::<u8>() {
            Ok(length) if (1..=most).contains(&length) => Ok(length),
            _ => Err(unknown()),
        };
        Ok(Share::Prefix {
            side,
            ipv4: length(ipv4, 32)?,
            ipv6: ipv6.map_or(Ok(IPV6_PREFIX), |v6| length(v6, 128))?,
        })
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (side, ipv4, ipv6) = match self {
            Share::Flow => return f.write_str("flow"),
            Share::Vlan => return f.write_str("vlan"),
            Share::Mark => return f.write_str("mark"),
            Share::Prefix { side: Side::Sender, ipv4, ipv6 } => ("sender", *ipv4, *ipv6),
            Share::Prefix { side: Side::Receiver, ipv4, ipv6 } => ("receiver", *ipv4, *ipv6),
        };
        match (ipv4, ipv6) {
            (32, IPV6_PREFIX) => write!(f, "{side}-address"),
            (_, IPV6_PREFIX) => write!(f, "{side}-prefix/{ipv4}"),
            _ => write!(f, "{side}-prefix/{ipv4}/{ipv6}"),
        }
    }
}

impl Field for Share {
    fn read(value: &Value, _shape: &Shape) -> Option<Self> {
        if let Value::Word(word) = value { word.parse().ok() } else { None }
    }
    fn value(&self, _shape: &Shape) -> Value {
        Value::Word(self.to_string().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::RateOption;
    use crate::rate::kit::testing::{ACK, packet};

    fn subscriber(share: &str, saddr: &str, daddr: &str) -> Subscriber {
        let mut packet = packet(1, 0, ACK, RateOption::Absent);
        (packet.key.saddr, packet.key.daddr) = (saddr.parse().unwrap(), daddr.parse().unwrap());
        (packet.vlan, packet.mark) = (3, 9);
        share.parse::<Share>().unwrap().subscriber(&FlowEvent::of(&packet, Side::Sender)).unwrap()
    }

    #[test]
    fn the_subscriber_is_the_named_sides_network() {
        let network = |address: &str| Subscriber::Network(address.parse().unwrap(), 3);
        let of = |share| subscriber(share, "10.1.2.3", "10.4.5.6");
        assert_eq!(of("sender-address"), network("10.1.2.3"));
        assert_eq!(of("receiver-address"), network("10.4.5.6"));
        assert_eq!(of("sender-prefix/24"), network("10.1.2.0"));
        assert_eq!(of("receiver-prefix/9"), network("10.0.0.0"));
        assert_eq!((of("vlan"), of("mark")), (Subscriber::Tag(3), Subscriber::Tag(9)));
    }

    #[test]
    fn an_ipv6_host_cannot_multiply_its_share_by_its_addresses() {
        let of = |share, host| subscriber(share, "2001:db8::1", host);
        for share in ["receiver-address", "receiver-prefix/24"] {
            assert_eq!(of(share, "2001:db8:1:2::1"), of(share, "2001:db8:1:2:ffff::9"), "{share}");
            assert_ne!(of(share, "2001:db8:1:2::1"), of(share, "2001:db8:1:3::1"), "{share}");
        }
        let of = |host| subscriber("receiver-prefix/24/56", "2001:db8::1", host);
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
    }

    #[test]
    fn every_form_is_written_as_it_is_read() {
        for text in ["flow", "sender-address", "receiver-prefix/24", "sender-prefix/24/56", "vlan", "mark"] {
            assert_eq!(text.parse::<Share>().unwrap().to_string(), text);
        }
        assert_eq!("receiver-prefix/32/64".parse::<Share>().unwrap().to_string(), "receiver-address");
    }

    #[test]
    fn errors_name_the_value_and_the_expected_forms() {
        let lengths = ["sender-prefix/33", "sender-prefix/0", "receiver-prefix/24/129"];
        for bad in ["address", "prefix/24", "sender", "sender-port", ""].into_iter().chain(lengths) {
            assert_eq!(bad.parse::<Share>(), Err(format!("found {bad:?}, expected {FORMS}")));
        }
    }
}
