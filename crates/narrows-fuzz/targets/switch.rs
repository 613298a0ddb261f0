//! Fuzzes the switch's eBPF program with a list of packets of a flow. The kernel runs the program (BPF_PROG_TEST_RUN),
//! so the fuzzer needs root.
//!
//! The compiler adds no coverage counters to eBPF code. Instead, the effects of the program guide the fuzzer. Each edge
//! of the coverage is a combination of verdict, queue, changed counters, changed fields of the flow's slot and changed
//! bytes of the packet.
#![no_main]

use std::cell::{OnceCell, RefCell};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU8, AtomicU16, Ordering::Relaxed};

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use narrows_agent::dataplane::layout::{self, WireFormat};
use narrows_agent::dataplane::program::{Sizes, Tunables};
use narrows_control::feedback::code::RateCode;
use narrows_control::feedback::option::insert;
use narrows_control::rate::UDP_QUEUES;
use narrows_control::units::{Bytes, Rate};

#[path = "../../narrows-agent/tests/switch_program/rig.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod rig;

use rig::{
    ACK, ACKS, DATA, DROP, PASS, PRIORITIES, Packet, Rig, SHAPES, SYN, checksums_are_correct, rig_with,
};

const PACKETS_MAX: usize = 24;
/// Longest option that the program inserts: two NOPs and six bytes.
const GROWTH: usize = 8;

/// libFuzzer reads these counters in the same way as the counters of the compiler (FuzzerExtraCounters.cpp).
#[allow(unsafe_code, reason = "the section by which libFuzzer finds the counters")]
// SAFETY: libFuzzer reads and clears these bytes only between two inputs.
#[unsafe(link_section = "__libfuzzer_extra_counters")]
static EFFECTS: [AtomicU8; 1 << 14] = [const { AtomicU8::new(0) }; 1 << 14];

/// Source port of the next input's flow. Each input uses a new port, so that the program finds no table entries of an
/// earlier input.
static PORT: AtomicU16 = AtomicU16::new(1024);

thread_local! {
    static RIG: OnceCell<Option<RefCell<Rig>>> = const { OnceCell::new() };
}

fn note(effect: impl Hash) {
    let mut hasher = DefaultHasher::new();
    effect.hash(&mut hasher);
    let at = hasher.finish() as usize % EFFECTS.len();
    EFFECTS[at].fetch_max(1, Relaxed);
}

/// Returns the indices at which two lists differ.
fn changed<T: PartialEq>(before: &[T], after: &[T]) -> Vec<usize> {
    (0..before.len().max(after.len())).filter(|i| before.get(*i) != after.get(*i)).collect()
}

/// Returns the port's counters, except the counters of bytes, which have too many values.
fn counters(port: &narrows_agent::dataplane::ports::Port<'_>) -> Vec<u64> {
    let all = port.counters();
    let packets = all.arrived_packets;
    let events = [
        all.udp_policed,
        all.stamped,
        all.inserted,
        all.lower_passed,
        all.no_room,
        all.with_data,
        all.malformed,
        all.no_slot,
        all.refused,
        all.syns,
        all.watchdog,
        all.syn_policed,
        all.implausible,
        all.unconfirmed.into(),
    ];
    packets.into_iter().chain(events).collect()
}

/// Returns the next packet of the flow. Its sequence numbers continue the flow, unless the input selects other numbers.
fn packet(input: &mut Unstructured<'_>, flow: &Packet, next: &mut [u32; 2]) -> Result<Packet> {
    let kind: u8 = input.arbitrary()?;
    let mut packet = flow.clone();
    packet.reversed = kind & 1 != 0;
    let side = usize::from(packet.reversed);
    packet.flags = if kind & 2 != 0 { input.arbitrary()? } else { ACK };
    packet.seq = next[side];
    packet.ack = next[1 - side];
    if kind & 4 != 0 {
        packet.seq = packet.seq.wrapping_add(input.arbitrary::<i16>()? as u32);
    }
    if kind & 8 != 0 {
        packet.ack = packet.ack.wrapping_add(input.arbitrary::<i32>()? as u32);
    }
    if kind & 16 != 0 {
        let options = input.arbitrary_len::<u8>()?.min(40);
        packet.options = input.bytes(options)?.to_vec();
        packet.options.resize(options.next_multiple_of(4), 1);
    }
    if kind & 32 != 0 {
        packet.payload = usize::from(input.arbitrary::<u8>()?);
    }
    if kind & 64 != 0 {
        packet.doff = Some(input.arbitrary::<u8>()? % 16);
    }
    if kind & 4 == 0 {
        let length = packet.payload as u32 + u32::from(packet.flags & (SYN | rig::FIN) != 0);
        next[side] = packet.seq.wrapping_add(length - u32::from(packet.flags & SYN != 0));
    }
    Ok(packet)
}

fn run(rig: &mut Rig, input: &mut Unstructured<'_>) -> Result<()> {
    for slot in rig.switch.slots.live().map(|(slot, _)| slot).collect::<Vec<_>>() {
        rig.switch.slots.free(slot, &rig.switch.ports).expect("a slot is freed");
    }
    rig.switch.slots.recycle().expect("slots are recycled");
    let setting: u8 = input.arbitrary()?;
    let shape = SHAPES[usize::from(setting) % SHAPES.len()];
    rig.data_port().set_format(match setting >> 6 {
        0 => WireFormat::Padding,
        1 => WireFormat::Reserved,
        _ => WireFormat::Insert,
    });
    rig.data_port().set_mode(rig::CONTROLLED);
    rig.data_port().set_syn(Rate::from_bytes_per_sec(10_000), Bytes::new(1000));
    rig.grant(&[1_250_000]);
    let flow = Packet::new(shape, PORT.fetch_add(1, Relaxed));
    if setting & 8 != 0 {
        rig.open(&flow);
        rig.send(DATA, &flow);
    }
    let police = if setting & 32 != 0 { layout::MODE_POLICE_SYN | layout::MODE_POLICE_UDP } else { 0 };
    let gate = if setting & 16 != 0 { layout::MODE_ONCE_PER_RTT } else { 0 };
    rig.data_port().set_mode(rig::CONTROLLED | police | gate);
    let mut next = [flow.seq, flow.ack];
    for _ in 0..PACKETS_MAX {
        let sent = packet(input, &flow, &mut next)?;
        let how: u8 = input.arbitrary()?;
        let mut bytes = sent.bytes();
        let is_intact = how & 3 != 3 && sent.doff.is_none();
        if !is_intact {
            for _ in 0..how >> 6 {
                let at = usize::from(input.arbitrary::<u8>()?);
                let byte = input.arbitrary()?;
                if let Some(place) = bytes.get_mut(at) {
                    *place = byte;
                }
            }
            if how & 16 != 0 {
                bytes.truncate(bytes.len() - usize::from(input.arbitrary::<u8>()?).min(bytes.len()));
            }
        }
        let port = if sent.reversed == (how & 4 == 0) { ACKS } else { DATA };
        let ingress = if how & 8 != 0 { rig.ifindex[usize::from(1 - port)] } else { 0 };
        let gso = if how & 32 != 0 { 1448 } else { 0 };
        check(rig, &flow, &sent, &bytes, is_intact, port, ingress, gso);
    }
    Ok(())
}

#[allow(clippy::too_many_arguments, reason = "one packet and all about it")]
fn check(
    rig: &Rig,
    flow: &Packet,
    sent: &Packet,
    bytes: &[u8],
    is_intact: bool,
    port: u8,
    ingress: u32,
    gso: u32,
) {
    let image = |rig: &Rig| {
        let slot = rig.slot_of(flow).and_then(|slot| rig.switch.slots.get(slot));
        slot.map(|slot| (slot.flags(), slot.image())).unwrap_or_default()
    };
    let seen = |rig: &Rig| [counters(&rig.data_port()), counters(&rig.acks_port())].concat();
    let (before, slot_before) = (seen(rig), image(rig));
    // The kernel refuses to run the program on a frame that has no Ethernet header or fails the kernel's own
    // checks.
    let leaves = rig.ifindex[usize::from(port)];
    let Ok(tried) = rig.switch.try_packet_from(ingress, leaves, gso, bytes) else { return };
    let (after, slot_after) = (seen(rig), image(rig));
    let growth = tried.packet.len().checked_sub(bytes.len());
    let places = changed(bytes, &tried.packet);
    // A UDP flow gets a random queue, so all UDP queues count as one.
    let is_udp = tried.priority.checked_sub(PRIORITIES[3]).is_some_and(|queue| queue < UDP_QUEUES.into());
    let priority = if is_udp { PRIORITIES[3] } else { tried.priority };
    note((tried.verdict, priority, growth, changed(&before, &after)));
    note((slot_before.0 ^ slot_after.0, changed(&slot_before.1, &slot_after.1)));
    note((growth, places.len(), places.first()));

    assert!(matches!(tried.verdict, PASS | DROP), "verdict {}", tried.verdict);
    assert!(priority == 0 || PRIORITIES.contains(&priority), "queue {priority:x}");
    assert!(growth == Some(0) || growth == Some(GROWTH), "{} bytes became {growth:?} longer", bytes.len());
    if growth == Some(0) {
        assert!(places.len() <= 4, "more than a rate and a checksum changed: {places:?}\n{bytes:02x?}");
    }
    for (_, slot) in rig.switch.slots.live() {
        let key = slot.key();
        assert!(slot.port() == DATA && usize::from(slot.leaf()) < layout::LEAVES);
        assert!(matches!((key.family, key.proto), (4 | 6, 6)), "{key:?}");
        assert!(rig.switch.slots.find(&key).expect("a lookup").is_some(), "a live slot is in the table");
    }
    if !is_intact {
        return;
    }
    let (l3, l4) = sent.offsets();
    assert!(checksums_are_correct(&tried.packet, (l3, l4)), "in {bytes:02x?}\nout {:02x?}", tried.packet);
    let header = usize::from(bytes[l4 + 12] >> 4) * 4;
    if growth == Some(GROWTH) {
        let code = u16::from_be_bytes([tried.packet[l4 + 26], tried.packet[l4 + 27]]);
        let expected = insert(&bytes[l4..l4 + header], RateCode::from_bits(code)).expect("room");
        assert_eq!(tried.packet[l4..], *expected.as_bytes(), "only pure ACKs grow");
        assert_eq!(l4 + header, bytes.len());
    } else {
        let is_allowed = |at: usize| (l4 + 16..l4 + 18).contains(&at) || (l4 + 20..l4 + header).contains(&at);
        assert!(places.iter().all(|at| is_allowed(*at)), "{places:?}\n{bytes:02x?}");
    }
}

fuzz_target!(|input: &[u8]| {
    RIG.with(|rig| {
        let rig = rig.get_or_init(|| {
            let sizes = Sizes { flows: 64, ..Sizes::default() };
            rig_with(sizes, Tunables::default()).map(RefCell::new)
        });
        let Some(rig) = rig else { return };
        // An input may end in the middle of a packet. This is not an error.
        let _ = run(&mut rig.borrow_mut(), &mut Unstructured::new(input));
    });
});
