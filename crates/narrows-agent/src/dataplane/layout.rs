//! The structures of `bpf/include/maps.h`, with the same sizes and offsets.
//!
//! Shared memory consists of atomics, because the program may change it at any time. Loads and stores are
//! relaxed: each field is independent. The only guaranteed order is that a slot is filled before it is [`LIVE`].

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

use narrows_control::rate::{FlowKey, Proto};

/// Maximum number of ports of one switch.
pub const PORTS_MAX: usize = 64;
/// Leaves of a port, as `narrows_control::rate::Leaf`.
pub const LEAVES: usize = narrows_control::rate::LEAVES;
/// Ready grants of a port, for the newcomers of a tick.
pub const GRANTS: usize = 16;
/// The first grants are for one newcomer each, and each later grant is for twice as many as the
/// grant before it.
const SINGLE_GRANTS: usize = 8;

/// Number of newcomers in a tick with the last one that gets this grant.
pub const fn newcomers_up_to(grant: usize) -> u64 {
    match grant.checked_sub(SINGLE_GRANTS) {
        None => grant as u64 + 1,
        Some(after) => (2 * SINGLE_GRANTS as u64) << after,
    }
}

/// The SYN asked for feedback, or the flow uses BRF.
pub const RATED: u32 = 1 << 0;
/// The handshake was not seen.
pub const GUESSED: u32 = 1 << 1;
/// The receiver of the data sent the SYN.
pub const OPENED_BY_RECEIVER: u32 = 1 << 2;
/// The SYN was seen twice: the handshake gives no RTT.
pub const SYN_REPEATED: u32 = 1 << 3;
/// A packet of the data direction was seen after the handshake's SYN and SYN-ACK.
pub const SENDER_SEEN: u32 = 1 << 4;
/// A packet of the other direction was seen after the handshake's SYN and SYN-ACK.
pub const RECEIVER_SEEN: u32 = 1 << 5;
/// FIN of the sender.
pub const FIN_SENDER: u32 = 1 << 6;
/// FIN of the receiver.
pub const FIN_RECEIVER: u32 = 1 << 7;
/// RST of either side, or its addresses were used for a new connection.
pub const RST: u32 = 1 << 8;
/// An option or a mark was seen after the handshake.
pub const SPEAKS_BRF: u32 = 1 << 9;
/// The SYN-ACK carried a ready grant.
pub const GRANTED: u32 = 1 << 10;
/// Packets of both sides were seen.
pub const CONFIRMED: u32 = 1 << 11;
/// In use, and in the table.
pub const LIVE: u32 = 1 << 12;
/// The flow began with data: its SYN-ACK was not seen, or got no slot.
pub const ADOPTED: u32 = 1 << 13;
/// The SYN-ACK asked for feedback, and this is the opener's direction.
pub const ANSWER_ASKS: u32 = 1 << 14;

/// Flows that leave here are counted, classified and given rates.
pub const MODE_CONTROLLED: u32 = 1 << 0;
/// The paper's gate (BRF-60); default: every ACK.
pub const MODE_ONCE_PER_RTT: u32 = 1 << 1;
/// UDP may not borrow: packets above its token bucket are dropped.
pub const MODE_POLICE_UDP: u32 = 1 << 2;
/// SYNs are limited to their part of the link.
pub const MODE_POLICE_SYN: u32 = 1 << 3;
/// This host routes between VLANs, so tags do not separate flows.
pub const MODE_VLANS_ROUTED: u32 = 1 << 4;
/// Flows inside GTP-U are handled like all others.
pub const MODE_OPEN_GTP: u32 = 1 << 5;

/// Number of kinds of packets that may contain flows that the program does not see (`enum nrw_unopened`).
pub const UNOPENED: usize = 8;

/// How packets carry rates (`NRW_FORMAT_`).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
#[repr(u32)]
pub enum WireFormat {
    /// The paper's format: instead of the two NOPs in front of the timestamps.
    Padding = 1,
    /// Only into ACKs in which the receiver has reserved the option.
    Reserved = 2,
    /// The switch inserts the option. If the ACK has the option already, the smaller rate stays.
    #[default]
    Insert = 3,
}

/// A flow in its data direction (`struct nrw_key`).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Key {
    /// Source address; IPv4 in the first four bytes, the rest zero.
    pub saddr: [u8; 16],
    /// Destination address.
    pub daddr: [u8; 16],
    /// Source port, network order.
    pub sport: [u8; 2],
    /// Destination port, network order.
    pub dport: [u8; 2],
    /// VLAN id in host order; 0: none, or tags do not separate flows.
    pub vlan: [u8; 2],
    /// 4 or 6.
    pub family: u8,
    /// IPPROTO_TCP.
    pub proto: u8,
}

const TCP: u8 = 6;

fn addr_bytes(addr: IpAddr) -> [u8; 16] {
    let mut bytes = [0; 16];
    match addr {
        IpAddr::V4(v4) => bytes[..4].copy_from_slice(&v4.octets()),
        IpAddr::V6(v6) => bytes = v6.octets(),
    }
    bytes
}

impl Key {
    /// The key of a TCP flow in this VLAN (0: none).
    pub fn new(flow: &FlowKey, vlan: u16) -> Self {
        Key {
            saddr: addr_bytes(flow.saddr),
            daddr: addr_bytes(flow.daddr),
            sport: flow.sport.to_be_bytes(),
            dport: flow.dport.to_be_bytes(),
            vlan: vlan.to_ne_bytes(),
            family: if flow.saddr.is_ipv4() { 4 } else { 6 },
            proto: TCP,
        }
    }

    /// The key that rate controllers use, without the VLAN.
    pub fn flow(&self) -> FlowKey {
        let addr = |bytes: [u8; 16]| match self.family {
            4 => IpAddr::V4(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3])),
            _ => IpAddr::V6(Ipv6Addr::from(bytes)),
        };
        FlowKey {
            saddr: addr(self.saddr),
            daddr: addr(self.daddr),
            sport: u16::from_be_bytes(self.sport),
            dport: u16::from_be_bytes(self.dport),
            proto: Proto::Tcp,
        }
    }

    /// The bytes of the key, as in the map.
    pub fn to_bytes(&self) -> [u8; 40] {
        let mut bytes = [0; 40];
        bytes[..16].copy_from_slice(&self.saddr);
        bytes[16..32].copy_from_slice(&self.daddr);
        bytes[32..34].copy_from_slice(&self.sport);
        bytes[34..36].copy_from_slice(&self.dport);
        bytes[36..38].copy_from_slice(&self.vlan);
        bytes[38..].copy_from_slice(&[self.family, self.proto]);
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8; 40]) -> Self {
        let part = |from: usize| core::array::from_fn(|i| bytes[from + i]);
        Key {
            saddr: part(0),
            daddr: part(16),
            sport: [bytes[32], bytes[33]],
            dport: [bytes[34], bytes[35]],
            vlan: [bytes[36], bytes[37]],
            family: bytes[38],
            proto: bytes[39],
        }
    }
}

/// `struct nrw_slot`, which documents the fields.
#[repr(C)]
pub(super) struct RawSlot {
    pub(super) key: [AtomicU64; 5],
    pub(super) data_us: AtomicU32,
    pub(super) flags: AtomicU32,
    pub(super) bytes: AtomicU64,
    pub(super) seq_next: AtomicU32,
    pub(super) missing: AtomicU32,
    pub(super) last_ns: AtomicU64,
    pub(super) paired: AtomicU8,
    pub(super) receiver_seen: AtomicU8,
    pub(super) data_if: AtomicU16,
    pub(super) ack_sent: AtomicU32,
    pub(super) rtt_receiver_us: AtomicU32,
    pub(super) rtt_sender_us: AtomicU32,
    pub(super) rtt_receiver_n: AtomicU16,
    pub(super) rtt_sender_n: AtomicU16,
    pub(super) waits: [AtomicU32; 4],
    pub(super) marked_unlimited: AtomicU16,
    pub(super) marked_limited: AtomicU16,
    pub(super) passed_code: AtomicU16,
    pub(super) passed_n: AtomicU16,
    pub(super) code: AtomicU16,
    pub(super) leaf: AtomicU8,
    pub(super) port: AtomicU8,
    pub(super) gate_us: AtomicU32,
    pub(super) rtt_us: AtomicU32,
    /// Sequence numbers and interfaces by which the program recognises real packets. The agent only clears these
    /// fields.
    pub(super) belief: [AtomicU32; 11],
    pub(super) mark: AtomicU32,
    pub(super) vlan: AtomicU32,
    pub(super) pad: [AtomicU32; 3],
}

/// Size of `struct nrw_half`, which only the program reads.
pub(super) const HALF_BYTES: usize = 40;

/// `struct nrw_bucket`.
#[repr(C)]
pub(super) struct RawBucket {
    pub(super) rate: AtomicU64,
    pub(super) burst: AtomicU64,
    pub(super) tokens: AtomicU64,
    pub(super) at: AtomicU64,
    pub(super) lock: AtomicU32,
    pub(super) pad: AtomicU32,
}

/// `struct nrw_port`.
#[repr(C)]
pub(super) struct RawPort {
    pub(super) heartbeat_ns: AtomicU64,
    pub(super) watchdog_ns: AtomicU64,
    pub(super) mode: AtomicU32,
    pub(super) format: AtomicU32,
    pub(super) priority: [AtomicU32; LEAVES],
    pub(super) grants: [AtomicU16; GRANTS],
    pub(super) tick: AtomicU32,
    pub(super) unconfirmed_max: AtomicU32,
    pub(super) arrived_bytes: [AtomicU64; LEAVES],
    pub(super) arrived_packets: [AtomicU64; LEAVES],
    pub(super) counters: [AtomicU64; 13],
    pub(super) unopened: [AtomicU64; UNOPENED],
    pub(super) unconfirmed: AtomicU32,
    pub(super) newcomers: AtomicU32,
    pub(super) newcomers_tick: AtomicU32,
    pub(super) pad: AtomicU32,
    pub(super) udp: RawBucket,
    pub(super) syn: RawBucket,
    pub(super) syn_again: RawBucket,
}

const _: () = {
    use core::mem::offset_of;
    assert!(size_of::<Key>() == 40);
    assert!(size_of::<RawSlot>() == 192 && size_of::<RawPort>() == 448);
    assert!(offset_of!(RawSlot, flags) == 44 && offset_of!(RawSlot, last_ns) == 64);
    assert!(offset_of!(RawSlot, rtt_receiver_us) == 80 && offset_of!(RawSlot, waits) == 92);
    assert!(offset_of!(RawSlot, marked_unlimited) == 108 && offset_of!(RawSlot, code) == 116);
    assert!(offset_of!(RawSlot, gate_us) == 120 && offset_of!(RawSlot, belief) == 128);
    assert!(offset_of!(RawSlot, mark) == 172 && offset_of!(RawSlot, vlan) == 176);
    assert!(offset_of!(RawPort, grants) == 40 && offset_of!(RawPort, arrived_bytes) == 80);
    assert!(offset_of!(RawPort, udp) == 328 && offset_of!(RawPort, syn_again) == 408);
    assert!(offset_of!(RawPort, counters) == 144 && offset_of!(RawPort, unopened) == 248);
    assert!(offset_of!(RawPort, unconfirmed) == 312);
};

/// Each field is listed once, by its width. A test finds a field that is missing.
impl RawSlot {
    fn u64s(&self) -> impl Iterator<Item = &AtomicU64> {
        self.key.iter().chain([&self.bytes, &self.last_ns])
    }

    fn u32s(&self) -> impl Iterator<Item = &AtomicU32> {
        let single = [
            &self.data_us,
            &self.flags,
            &self.seq_next,
            &self.missing,
            &self.ack_sent,
            &self.rtt_receiver_us,
            &self.rtt_sender_us,
            &self.gate_us,
            &self.rtt_us,
            &self.mark,
            &self.vlan,
        ];
        single.into_iter().chain(&self.waits).chain(&self.belief).chain(&self.pad)
    }

    fn u16s(&self) -> [&AtomicU16; 8] {
        [
            &self.data_if,
            &self.rtt_receiver_n,
            &self.rtt_sender_n,
            &self.marked_unlimited,
            &self.marked_limited,
            &self.passed_code,
            &self.passed_n,
            &self.code,
        ]
    }

    fn u8s(&self) -> [&AtomicU8; 4] {
        [&self.paired, &self.receiver_seen, &self.leaf, &self.port]
    }

    /// The values of all fields, for tests.
    pub(super) fn image(&self) -> Vec<u64> {
        let u32s = self.u32s().map(|field| field.load(Relaxed).into());
        let u16s = self.u16s().into_iter().map(|field| field.load(Relaxed).into());
        let u8s = self.u8s().into_iter().map(|field| field.load(Relaxed).into());
        self.u64s().map(|field| field.load(Relaxed)).chain(u32s).chain(u16s).chain(u8s).collect()
    }

    /// Sets all fields to zero, because the program expects empty slots in the queue.
    pub(super) fn clear(&self) {
        self.u64s().for_each(|field| field.store(0, Relaxed));
        self.u32s().for_each(|field| field.store(0, Relaxed));
        self.u16s().into_iter().for_each(|field| field.store(0, Relaxed));
        self.u8s().into_iter().for_each(|field| field.store(0, Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cleared_slot_is_empty_in_every_byte() {
        // SAFETY: all fields are atomic integers, for which any bytes are valid.
        #[allow(unsafe_code, reason = "a slot with every byte set")]
        let slot: RawSlot = unsafe { core::mem::transmute([0xffu8; size_of::<RawSlot>()]) };
        assert!(slot.image().iter().all(|&value| value != 0));
        slot.clear();
        // SAFETY: as above.
        #[allow(unsafe_code, reason = "every byte of the slot")]
        let bytes: [u8; size_of::<RawSlot>()] = unsafe { core::mem::transmute(slot) };
        assert_eq!(bytes, [0; size_of::<RawSlot>()]);
    }
}
