//! Rust names for the types and values of `bpf/include/maps.h`, which documents them.
//!
//! libbpf-cargo generates the types from the program's BTF, so only C defines sizes, offsets and values.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use narrows_control::feedback::code::RateCode;
use narrows_control::rate::{FlowKey, Proto};

use super::memory::bytes;
pub use super::skeleton::types::nrw_key as Key;
use super::skeleton::types::{nrw_code, nrw_constants, nrw_flags, nrw_format, nrw_mode, nrw_port};

/// Largest number of ports of one switch.
pub const PORTS_MAX: u32 = 64;

/// Expands to the length of an array in a generated structure.
macro_rules! length {
    ($type:ty, $array:ident) => {{
        const fn length<T, const N: usize>(_: fn($type) -> [T; N]) -> usize {
            N
        }
        length(|all| all.$array)
    }};
}

/// Number of leaves of a port, as in `narrows_control::rate::Leaf`.
pub const LEAVES: usize = length!(nrw_port, priority);
const _: () = assert!(LEAVES == narrows_control::rate::LEAVES);
/// Number of a port's ready grants for the new flows of one tick.
pub const GRANTS: usize = length!(nrw_port, grants);
/// Number of kinds of packets that may contain flows that the program does not see (`enum nrw_unopened`).
pub const UNOPENED: usize = length!(nrw_port, unopened);

/// Number of grants that are for one new flow each. The next grant is for as many flows as all these grants together.
/// Each later grant is for twice as many flows as the grant before it.
const SINGLE_GRANTS: usize = nrw_constants::NRW_SINGLE_GRANTS.0 as usize;

/// The amount that one whole report adds to `reports` and, if it is a flow's first report, to `first_reports`.
pub const REPORT_UNIT: u64 = nrw_constants::NRW_REPORT_UNIT.0 as u64;

/// Returns the number of whole reports in a sum of `reports` or `first_reports`. The parts of one report are rounded,
/// so their sum may be slightly less than the unit.
pub const fn whole_reports(sum: u64) -> u64 {
    sum.saturating_add(REPORT_UNIT / 2) / REPORT_UNIT
}

// narrows-control is the reference for the codes on the wire.
const _: () = assert!(nrw_code::NRW_CODE_MAX.0 == RateCode::MAX.to_bits() as u32);
const _: () = assert!(nrw_code::NRW_CODE_DESIGNATES.0 == RateCode::DESIGNATES.to_bits() as u32);
const _: () = assert!(nrw_code::NRW_CODE_UNLIMITED.0 == RateCode::UNLIMITED.to_bits() as u32);
const _: () = assert!(nrw_code::NRW_CODE_UNASSIGNED.0 == RateCode::UNASSIGNED.to_bits() as u32);

/// Returns how many new flows of a tick get the grants up to and including the index `grant`.
pub const fn newcomers_up_to(grant: usize) -> u64 {
    match grant.checked_sub(SINGLE_GRANTS) {
        None => grant as u64 + 1,
        Some(after) => (2 * SINGLE_GRANTS as u64) << after,
    }
}

/// Defines constants for values of an enumeration in `bpf/include/maps.h`.
macro_rules! names {
    ($of:ident: $($name:ident = $value:ident),* $(,)?) => {
        $(
            #[doc = concat!("`", stringify!($value), "` of `bpf/include/maps.h`.")]
            pub const $name: u32 = $of::$value.0;
        )*
    };
}

names! {
    nrw_flags:
    RATED = NRW_F_RATED,
    GUESSED = NRW_F_GUESSED,
    OPENED_BY_RECEIVER = NRW_F_OPENED_BY_RECEIVER,
    SYN_REPEATED = NRW_F_SYN_REPEATED,
    SENDER_SEEN = NRW_F_SENDER_SEEN,
    RECEIVER_SEEN = NRW_F_RECEIVER_SEEN,
    FIN_SENDER = NRW_F_FIN_SENDER,
    FIN_RECEIVER = NRW_F_FIN_RECEIVER,
    RST = NRW_F_RST,
    SPEAKS_BRF = NRW_F_SPEAKS_BRF,
    GRANTED = NRW_F_GRANTED,
    CONFIRMED = NRW_F_CONFIRMED,
    LIVE = NRW_F_LIVE,
    ADOPTED = NRW_F_ADOPTED,
}

names! {
    nrw_mode:
    MODE_CONTROLLED = NRW_MODE_CONTROLLED,
    MODE_ONCE_PER_RTT = NRW_MODE_ONCE_PER_RTT,
    MODE_POLICE_UDP = NRW_MODE_POLICE_UDP,
    MODE_POLICE_SYN = NRW_MODE_POLICE_SYN,
    MODE_VLANS_ROUTED = NRW_MODE_VLANS_ROUTED,
    MODE_OPEN_GTP = NRW_MODE_OPEN_GTP,
    MODE_MESSAGES = NRW_MODE_MESSAGES,
}

/// How packets carry rates (`enum nrw_format`).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
#[repr(u32)]
pub enum WireFormat {
    /// The rate replaces the two NOPs before the timestamps (the paper's format).
    Padding = nrw_format::NRW_FORMAT_PADDING.0,
    /// The switch writes the rate only if the receiver has reserved the option.
    Reserved = nrw_format::NRW_FORMAT_RESERVED.0,
    /// The switch inserts the option. If the ACK already has a rate, the lower of the two rates stays.
    #[default]
    Insert = nrw_format::NRW_FORMAT_INSERT.0,
}

const TCP: u8 = 6;

/// Returns an address as in the keys of maps. An IPv4 address uses the first four bytes, and the rest is zero.
pub(super) fn addr_bytes(addr: IpAddr) -> [u8; 16] {
    let mut bytes = [0; 16];
    match addr {
        IpAddr::V4(v4) => bytes[..4].copy_from_slice(&v4.octets()),
        IpAddr::V6(v6) => bytes = v6.octets(),
    }
    bytes
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        bytes(self) == bytes(other)
    }
}

impl Key {
    /// Returns the key of a TCP flow in this VLAN (0: no VLAN).
    pub fn new(flow: &FlowKey, vlan: u16) -> Self {
        Key {
            saddr: addr_bytes(flow.saddr),
            daddr: addr_bytes(flow.daddr),
            sport: flow.sport.to_be(),
            dport: flow.dport.to_be(),
            vlan,
            family: if flow.saddr.is_ipv4() { 4 } else { 6 },
            proto: TCP,
        }
    }

    /// Returns the rate controllers' key, which has no VLAN.
    pub fn flow(&self) -> FlowKey {
        let addr = |bytes: [u8; 16]| match self.family {
            4 => IpAddr::V4(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3])),
            _ => IpAddr::V6(Ipv6Addr::from(bytes)),
        };
        FlowKey {
            saddr: addr(self.saddr),
            daddr: addr(self.daddr),
            sport: u16::from_be(self.sport),
            dport: u16::from_be(self.dport),
            proto: Proto::Tcp,
        }
    }
}
