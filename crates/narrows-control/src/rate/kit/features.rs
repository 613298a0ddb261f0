//! The features of a flow from which a trained model predicts the flow's use of the link (BRF-31): the five-tuple and
//! the time of day.
//!
//! Flow records contain the same features, so a model is trained with the features from which it later predicts.
//! Training uses 32-bit floats, which represent only integers of up to 24 bits exactly. So an address takes two
//! features. The client's port is left out, because hosts choose it at random.

use crate::rate::{FlowIdentity, Host, Proto};
use crate::units::{Span, Time};

/// Names of the features, in their order.
pub const NAMES: [&str; 8] = [
    "source_high",
    "source_low",
    "destination_high",
    "destination_low",
    "ip_version",
    "service",
    "protocol",
    "second_of_day",
];

/// A day.
pub const DAY: Span = Span::from_secs(86_400);

/// The features of one flow.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Features([u32; NAMES.len()]);

impl Features {
    /// Returns the features of a flow that begins at this time of day.
    pub fn of<K: FlowIdentity>(key: &K, second_of_day: u32) -> Self {
        let (source, destination) = (key.source().parts(), key.destination().parts());
        let protocol = match key.proto() {
            Proto::Tcp => 6,
            Proto::Udp => 17,
        };
        Features([
            source.high,
            source.low,
            destination.high,
            destination.low,
            destination.version,
            key.service(),
            protocol,
            second_of_day,
        ])
    }

    /// Returns the feature with this index. Returns zero if the index is out of range.
    pub fn get(&self, index: usize) -> f64 {
        self.0.get(index).copied().unwrap_or(0).into()
    }

    /// Returns all features, in the order of [`NAMES`].
    pub fn values(&self) -> [u32; NAMES.len()] {
        self.0
    }
}

#[cfg(test)]
impl From<[u32; NAMES.len()]> for Features {
    fn from(values: [u32; NAMES.len()]) -> Self {
        Features(values)
    }
}

/// An address in two numbers of at most 24 bits each.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The first 24 bits.
    pub high: u32,
    /// The other 8 bits of an IPv4 address, or the next 24 bits of an IPv6 address, up to its /48.
    pub low: u32,
    /// 4 or 6.
    pub version: u32,
}

/// Returns the time of day. `start` is the time of day at time zero of the controller's clock.
pub fn second_of_day(start: Span, now: Time) -> u32 {
    let since_midnight = (now + start).since(Time::ZERO).as_nanos() % DAY.as_nanos();
    (since_midnight / 1_000_000_000) as u32
}

#[cfg(test)]
mod tests {
    use core::net::IpAddr;

    use super::*;
    use crate::rate::FlowKey;

    fn features(saddr: &str, daddr: &str) -> [u32; NAMES.len()] {
        let [saddr, daddr] = [saddr, daddr].map(|address| address.parse::<IpAddr>().unwrap());
        let key = FlowKey { saddr, daddr, sport: 443, dport: 50_000, proto: Proto::Tcp };
        Features::of(&key, 7).values()
    }

    #[test]
    fn an_address_is_two_numbers_of_24_bits() {
        assert_eq!(features("10.1.2.3", "192.0.2.255"), [0x0a_0102, 3, 0xc0_0002, 255, 4, 443, 6, 7]);
        let of_ipv6 = [0x20_010d, 0xb8_0001, 0x20_010d, 0xb8_ffff, 6, 443, 6, 7];
        assert_eq!(features("2001:db8:1::1", "2001:db8:ffff:1::"), of_ipv6);
    }

    #[test]
    fn the_time_of_day_wraps_at_midnight() {
        let at = |start, now| second_of_day(Span::from_secs(start), Time::ZERO + Span::from_secs(now));
        assert_eq!([at(0, 5), at(86_399, 1), at(86_399, 2 + 86_400)], [5, 0, 1]);
    }
}
