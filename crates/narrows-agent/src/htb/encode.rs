//! Encodes requests to `sch_htb` and `sch_fifo` (include/uapi/linux/pkt_sched.h). No crate does this.

use narrows_control::units::{Bytes, NANOS_PER_SEC, Rate, Span};
use netlink_packet_core::DefaultNla;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption};

use super::layout::{DEFAULT_MINOR, ETHERNET_HEADER, Layout, Node, handle};

pub(super) const TCA_OPTIONS: u16 = 2;
pub(super) const TCA_STAB_BASE: u16 = 1;
const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_INIT: u16 = 2;
const TCA_HTB_RATE64: u16 = 6;
const TCA_HTB_CEIL64: u16 = 7;

/// TC_LINKLAYER_ETHERNET, for which the kernel needs no rate table (`htb_change_class`).
const LINKLAYER_ETHERNET: u8 = 1;
/// A tick of the packet scheduler is 64 ns (PSCHED_SHIFT of include/net/pkt_sched.h).
const TICK_NANOS: u64 = 64;
/// `sch_htb` logs a warning for a quantum outside of these bounds (htb_change_class).
const QUANTUM: (u64, u64) = (1_000, 200_000);

fn message(index: u32, this: u32, parent: u32, attributes: Vec<TcAttribute>) -> TcMessage {
    // In the kernel, ifindexes are positive ints, so the cast is exact.
    let mut message = TcMessage::with_index(index as i32);
    message.header.handle = TcHandle::from(this);
    message.header.parent = TcHandle::from(parent);
    message.attributes = attributes;
    message
}

fn kind(name: &str) -> TcAttribute {
    TcAttribute::Kind(name.to_owned())
}

fn option(kind: u16, value: Vec<u8>) -> TcOption {
    TcOption::Other(DefaultNla::new(kind, value))
}

/// Encodes `tc qdisc add root handle 4e57: htb default 20 [stab overhead ...]`.
pub(super) fn root(index: u32, layout: &Layout) -> TcMessage {
    // struct tc_htb_glob: version, rate2quantum, defcls, debug, direct_pkts.
    let glob = [3, 10, u32::from(DEFAULT_MINOR), 0, 0].map(u32::to_ne_bytes).concat();
    let mut attributes = vec![kind("htb"), TcAttribute::Options(vec![option(TCA_HTB_INIT, glob)])];
    if layout.overhead != ETHERNET_HEADER {
        attributes.push(TcAttribute::Stab(size_table(layout.overhead)));
    }
    message(index, handle(0), u32::from(TcHandle::ROOT), attributes)
}

/// Encodes a size table without entries as an attribute within `TCA_STAB`. The table only adds the overhead to the
/// length of each packet.
fn size_table(overhead: u32) -> Vec<u8> {
    let delta = i64::from(overhead) - i64::from(ETHERNET_HEADER);
    let delta = i32::try_from(delta).unwrap_or(i32::MAX);
    // struct tc_sizespec: cell_log, size_log, cell_align; overhead; linklayer, mpu, mtu, tsize.
    let mut spec = vec![0; 4];
    spec.extend(delta.to_ne_bytes());
    spec.extend([u32::from(LINKLAYER_ETHERNET), 0, 0, 0].map(u32::to_ne_bytes).concat());
    let length = (4 + spec.len()) as u16;
    [length.to_ne_bytes().to_vec(), TCA_STAB_BASE.to_ne_bytes().to_vec(), spec].concat()
}

/// Returns the overhead in an encoded size table. Without a size table, returns the length of the Ethernet header.
pub(super) fn overhead_of(attributes: &[TcAttribute]) -> Option<u32> {
    let stab = attributes.iter().find_map(|a| match a {
        TcAttribute::Stab(bytes) => Some(bytes),
        _ => None,
    });
    let Some(stab) = stab else { return Some(ETHERNET_HEADER) };
    let delta = i32::from_ne_bytes(stab.get(8..12)?.try_into().ok()?);
    u32::try_from(i64::from(ETHERNET_HEADER) + i64::from(delta)).ok()
}

/// Encodes `tc class replace` with a rate and a ceiling. The request has all options of the class, because each request
/// must repeat all options.
pub(super) fn class(index: u32, node: &Node, rate: Rate, ceil: Rate, frame: Bytes) -> TcMessage {
    let quantum = burst(rate, frame).get().clamp(QUANTUM.0, QUANTUM.1) as u32;
    // struct tc_htb_opt: rate, ceil, buffer, cbuffer, quantum, level, prio.
    let mut opt = rate_spec(rate);
    opt.extend(rate_spec(ceil));
    for word in [ticks(rate, frame), ticks(ceil, frame), quantum, 0, node.priority] {
        opt.extend(word.to_ne_bytes());
    }
    let options = vec![
        option(TCA_HTB_PARMS, opt),
        option(TCA_HTB_RATE64, rate.as_bytes_per_sec().to_ne_bytes().to_vec()),
        option(TCA_HTB_CEIL64, ceil.as_bytes_per_sec().to_ne_bytes().to_vec()),
    ];
    let (this, parent) = node.place();
    // In a dump, the parent of the top class is TC_H_ROOT. In a request, it must be the qdisc's handle.
    let parent = if node.parent == 0 { handle(0) } else { parent };
    message(index, this, parent, vec![kind("htb"), TcAttribute::Options(options)])
}

/// Encodes `tc qdisc replace parent CLASS pfifo limit N`.
pub(super) fn pfifo(index: u32, parent: &Node, limit: u32) -> TcMessage {
    // struct tc_fifo_qopt is the whole of TCA_OPTIONS, without a nested attribute.
    let options = TcAttribute::Other(DefaultNla::new(TCA_OPTIONS, limit.to_ne_bytes().to_vec()));
    message(index, 0, handle(parent.minor), vec![kind("pfifo"), options])
}

/// Encodes struct tc_ratespec. The rate in this structure is at most 2^32 - 1 bytes/s. A separate 64-bit attribute has
/// the exact rate, and the kernel uses the larger of the two rates.
fn rate_spec(rate: Rate) -> Vec<u8> {
    let mut spec = vec![0, LINKLAYER_ETHERNET];
    // Overhead, cell_align and mpu are zero, because the size table adds the overhead.
    spec.extend([0; 6]);
    spec.extend(u32::try_from(rate.as_bytes_per_sec()).unwrap_or(u32::MAX).to_ne_bytes());
    spec
}

/// Returns the burst of a class: two frames, or what its rate sends in a millisecond, whichever is larger. The
/// simulator uses the same burst (BRF-22).
pub(super) fn burst(rate: Rate, frame: Bytes) -> Bytes {
    (frame + frame).max(rate.bytes_in(Span::from_millis(1)))
}

/// Returns the burst in HTB's unit: its transmission time at the class's rate, in ticks. The result is rounded up, so
/// that two frames fit into the burst.
pub(super) fn ticks(rate: Rate, frame: Bytes) -> u32 {
    let bytes = u128::from(burst(rate, frame).get());
    let rate = u128::from(rate.as_bytes_per_sec().max(1));
    let nanos = (bytes * u128::from(NANOS_PER_SEC)).div_ceil(rate);
    u32::try_from(nanos.div_ceil(u128::from(TICK_NANOS))).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::htb::layout::CLASSES;
    use netlink_packet_core::{Emitable, NlasIterator, Parseable};
    use proptest::prelude::*;

    /// Returns the contents of `TCA_OPTIONS` of an encoded class: (opt, rate64, ceil64).
    fn decode(message: &TcMessage) -> (Vec<u8>, u64, u64) {
        let mut bytes = vec![0; message.buffer_len()];
        message.emit(&mut bytes);
        let parsed = TcMessage::parse(&bytes[..]).unwrap();
        let nested = parsed.attributes.iter().find_map(|a| match a {
            TcAttribute::Options(o) => match &o[..] {
                [TcOption::Other(nla)] => Some(crate::htb::rtnl::value(nla)),
                _ => None,
            },
            _ => None,
        });
        let nested = nested.unwrap();
        let of = |kind| {
            let mut all = NlasIterator::new(&nested[..]).map(Result::unwrap);
            all.find(|nla| nla.kind() == kind).unwrap().value().to_vec()
        };
        let word = |kind| u64::from_ne_bytes(of(kind).try_into().unwrap());
        (of(TCA_HTB_PARMS), word(TCA_HTB_RATE64), word(TCA_HTB_CEIL64))
    }

    fn word(bytes: &[u8], at: usize) -> u32 {
        u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap())
    }

    proptest! {
        #[test]
        fn a_class_encodes_rates_bursts_and_quantum(
            rate in 1u64..=100_000_000_000, above in 0u64..=100_000_000_000, mtu in 68u64..=65_535,
        ) {
            let (rate, ceil) = (Rate::from_bytes_per_sec(rate), Rate::from_bytes_per_sec(rate + above));
            let frame = Bytes::new(mtu + 14);
            let (opt, rate64, ceil64) = decode(&class(7, &CLASSES[3], rate, ceil, frame));
            prop_assert_eq!(opt.len(), 44, "sizeof(struct tc_htb_opt)");
            prop_assert_eq!((rate64, ceil64), (rate.as_bytes_per_sec(), ceil.as_bytes_per_sec()));
            // The kernel uses the larger rate, so the 32-bit rate must not exceed the exact one.
            prop_assert!(u64::from(word(&opt, 8)) <= rate64 && u64::from(word(&opt, 20)) <= ceil64);
            prop_assert!((1_000..=200_000).contains(&word(&opt, 32)));
            prop_assert_eq!(word(&opt, 40), 1, "priority of the elephants");
            for (ticks, rate) in [(word(&opt, 24), rate), (word(&opt, 28), ceil)] {
                // The time covers at least the burst, and at most one tick more, unless it is capped at 274 s.
                let bytes = u128::from(ticks) * 64 * u128::from(rate.as_bytes_per_sec()) / 1_000_000_000;
                let burst = u128::from(burst(rate, frame).get());
                let tick = u128::from(rate.as_bytes_per_sec()) * 65 / 1_000_000_000 + 1;
                prop_assert!(ticks == u32::MAX || (bytes >= burst && bytes <= burst + tick), "{} {}", bytes, burst);
            }
        }

        #[test]
        fn the_overhead_survives_the_size_table(overhead in 0u32..=2_000) {
            let layout = Layout { overhead, ..Layout::new(Rate::from_bits_per_sec(1_000_000), Bytes::new(1500)) };
            prop_assert_eq!(overhead_of(&root(3, &layout).attributes), Some(overhead));
        }
    }

    #[test]
    fn a_burst_at_100_mbit_is_a_millisecond_and_at_1_mbit_two_frames() {
        let frame = Bytes::new(1514);
        assert_eq!(burst(Rate::from_bits_per_sec(100_000_000), frame), Bytes::new(12_500));
        assert_eq!(burst(Rate::from_bits_per_sec(1_000_000), frame), Bytes::new(3_028));
        // 3028 bytes at 125 kB/s are 24.224 ms, which are 378,500 ticks of 64 ns.
        assert_eq!(ticks(Rate::from_bits_per_sec(1_000_000), frame), 378_500);
    }
}
