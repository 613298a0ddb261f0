//! The identity of a flow.
//!
//! A real switch identifies a flow by the addresses and ports of its packets, the [`FlowKey`]. The simulator identifies
//! a flow by the index of its slot, and has no addresses. Therefore the type of the identity is a type parameter of the
//! rate controllers. Its default is [`FlowKey`].

use core::fmt::Debug;
use core::hash::Hash;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use super::kit::{features, service};

/// The parts of a flow's identity that rate controllers use.
pub trait FlowIdentity: Copy + Debug + Eq + Hash + Send + 'static {
    /// One end of the flow: an address, or a node of a simulated network.
    type Host: Host;

    /// Returns the end that sends the data.
    fn source(&self) -> Self::Host;

    /// Returns the end that receives the data.
    fn destination(&self) -> Self::Host;

    /// Returns the transport protocol.
    fn proto(&self) -> Proto;

    /// Returns the number of the flow's service (BRF-31); 0 if it is unknown.
    fn service(&self) -> u32;
}

/// One end of a flow.
pub trait Host: Copy + Debug + Eq + Ord + Hash + Send + 'static {
    /// Returns the network that the host belongs to, represented by its first host. The arguments are the prefix
    /// lengths of IPv4 and IPv6 networks.
    fn network(self, ipv4: u8, ipv6: u8) -> Self;

    /// Returns the address as numbers, for trained models.
    fn parts(self) -> features::Parts;
}

/// Identifies a flow by addresses and ports, in the direction of its data.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowKey {
    /// Source address of the data.
    pub saddr: IpAddr,
    /// Destination address of the data.
    pub daddr: IpAddr,
    /// Source port.
    pub sport: u16,
    /// Destination port.
    pub dport: u16,
    /// Transport protocol.
    pub proto: Proto,
}

/// Transport protocol.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Proto {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl FlowIdentity for FlowKey {
    type Host = IpAddr;

    fn source(&self) -> IpAddr {
        self.saddr
    }

    fn destination(&self) -> IpAddr {
        self.daddr
    }

    fn proto(&self) -> Proto {
        self.proto
    }

    fn service(&self) -> u32 {
        service::port(self).map_or(0, u32::from)
    }
}

impl Host for IpAddr {
    fn network(self, ipv4: u8, ipv6: u8) -> IpAddr {
        match self {
            IpAddr::V4(a) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(ipv4.min(32))).unwrap_or(0);
                Ipv4Addr::from_bits(a.to_bits() & mask).into()
            }
            IpAddr::V6(a) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(ipv6.min(128))).unwrap_or(0);
                Ipv6Addr::from_bits(a.to_bits() & mask).into()
            }
        }
    }

    fn parts(self) -> features::Parts {
        match self {
            IpAddr::V4(a) => features::Parts { high: a.to_bits() >> 8, low: a.to_bits() & 0xff, version: 4 },
            IpAddr::V6(a) => {
                let bits = |from: u32| ((a.to_bits() >> from) & 0xff_ffff) as u32;
                features::Parts { high: bits(104), low: bits(80), version: 6 }
            }
        }
    }
}
