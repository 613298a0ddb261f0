//! Checks the rates and options that the program writes against the reference codec.

use narrows_agent::dataplane::layout::{self, WireFormat};
use narrows_agent::dataplane::slots::Slot;
use narrows_control::feedback::code::RateCode;
use narrows_control::feedback::option::{Format, insert, read};
use narrows_control::rate::RateOption;
use narrows_control::units::{Rate, Span};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::rig::*;

fn flow(rig: &Rig, shape: Shape) -> (Packet, Slot<'_>) {
    rig.grant(&[1_250_000]);
    let flow = Packet::new(shape, 40_000);
    rig.open(&flow);
    rig.send(DATA, &flow);
    let slot = rig.switch.slots.get(rig.slot_of(&flow).unwrap()).unwrap();
    slot.set_code(code(1_250_000));
    (flow, slot)
}

#[test]
fn the_smallest_rate_on_the_path_stays() {
    let Some(rig) = rig() else { return };
    let (flow, slot) = flow(&rig, Shape::V4);
    // Each row has the codes of an ACK at arrival and at departure. The switch's own rate has the code 12503.
    for (there, leaves) in [
        // Not rates.
        (65535, 12503),
        (65534, 12503),
        // Greater rates. The second has a smaller code.
        (12504, 12503),
        (1256, 12503),
        // Smaller rates. The second has a greater code.
        (12003, 12003),
        (65520, 65520),
        // A greater rate.
        (25_707, 12503),
    ] {
        let ack = flow.clone().reversed().options(&option(there));
        let tried = rig.send(ACKS, &ack);
        assert!(checksums_are_correct(&tried.packet, ack.offsets()));
        assert_eq!(tried.packet[40 + 20..42 + 20], u16::to_be_bytes(leaves), "{there}");
        // The sender's mark in a data packet stays (BRF-100).
        if there >= 65534 {
            let data = ack.clone().payload(8);
            assert_eq!(rig.send(ACKS, &data).packet, data.bytes());
        }
    }
    // Five ACKs carried a rate. The program does not believe the first of them.
    assert_eq!((slot.passed_n(), slot.passed()), (4, RateCode::from_bits(25_707)));
    assert_eq!(rig.data_port().counters().lower_passed, 2);
    assert_eq!(rig.data_port().counters().with_data, 2);
}

#[test]
fn each_format_writes_only_where_it_may() {
    let Some(rig) = rig() else { return };
    let (flow, _) = flow(&rig, Shape::V4);
    let plain = flow.clone().reversed();
    rig.data_port().set_format(WireFormat::Reserved);
    assert_eq!(rig.send(ACKS, &plain).packet, plain.bytes());
    rig.data_port().set_format(WireFormat::Padding);
    let tried = rig.send(ACKS, &plain);
    assert!(checksums_are_correct(&tried.packet, plain.offsets()));
    assert_eq!(
        read(&tried.packet[34..], Format::Padding).option,
        RateOption::Assigned(Rate::from_bytes_per_sec(1_250_000))
    );
    let bare = plain.clone().options(&[]);
    assert_eq!(rig.send(ACKS, &bare).packet, bare.bytes());
    rig.data_port().set_format(WireFormat::Insert);
    for full in [36, 40] {
        let full = plain.clone().options(&vec![1; full]);
        assert_eq!(rig.send(ACKS, &full).packet, full.bytes());
    }
    // An MD5 signature (RFC 2385) covers the header's length.
    let signed = plain.clone().options(&[&[19, 18][..], &[0; 16], &[1, 1]].concat());
    assert_eq!(rig.send(ACKS, &signed).packet, signed.bytes());
    assert_eq!(rig.data_port().counters().no_room, 5);
}

#[test]
fn the_gate_allows_one_rate_per_rtt() {
    let Some(rig) = rig() else { return };
    let (flow, slot) = flow(&rig, Shape::V6);
    rig.data_port().set_mode(layout::MODE_CONTROLLED | layout::MODE_ONCE_PER_RTT);
    slot.set_rtt(Span::from_secs(1000));
    let ack = flow.reversed();
    assert_ne!(rig.send(ACKS, &ack).packet, ack.bytes());
    assert_eq!(rig.send(ACKS, &ack).packet, ack.bytes());
    let greater = ack.options(&option(12504));
    assert_ne!(rig.send(ACKS, &greater).packet, greater.bytes(), "lowering is not gated");
}

/// For all options, the program gives the same result as the reference codec. Correct checksums stay correct.
#[test]
fn random_headers_give_the_reference_result() {
    let Some(rig) = rig() else { return };
    let known = prop_oneof![
        Just(vec![1u8]),
        Just(vec![0]),
        any::<u16>().prop_map(|code| option(code)[2..].to_vec()),
        any::<(u32, u32)>().prop_map(|(a, b)| stamps(a, b)[2..].to_vec()),
        proptest::collection::vec(any::<u8>(), 1..10),
    ];
    let words = proptest::collection::vec(known, 0..12).prop_map(|parts| {
        let mut bytes = parts.concat();
        bytes.truncate(40);
        bytes.resize(bytes.len().next_multiple_of(4), 1);
        bytes
    });
    let packet = (
        words,
        0..SHAPES.len(),
        prop_oneof![Just(0usize), 1usize..50],
        proptest::option::of(0u8..16),
        0usize..40,
    );
    let mut runner = TestRunner::new(Config { cases: 6000, failure_persistence: None, ..Config::default() });
    let flows: Vec<Packet> = (0..).zip(SHAPES).map(|(n, shape)| Packet::new(shape, 50_000 + n)).collect();
    for flow in &flows {
        rig.grant(&[1_250_000]);
        rig.open(flow);
    }
    let check = |(options, shape, payload, doff, cut): (Vec<u8>, usize, usize, Option<u8>, usize)| {
        let mut ack = flows[shape].clone().reversed().options(&options).payload(payload);
        ack.doff = doff;
        let whole = ack.bytes();
        let (l3, l4) = ack.offsets();
        let tried = rig.send_bytes(ACKS, 0, &whole);
        prop_assert_eq!(tried.verdict, PASS);
        prop_assert!(checksums_are_correct(&tried.packet, (l3, l4)));
        let header = usize::from(whole[l4 + 12] >> 4) * 4;
        if header < 20 || l4 + header > whole.len() {
            prop_assert_eq!(&tried.packet, &whole, "a header that lies");
        } else if tried.packet.len() == whole.len() {
            // Only the option's value and the checksum may have changed.
            let old = read(&whole[l4..], Format::Experimental).option;
            let new = read(&tried.packet[l4..], Format::Experimental).option;
            let changed = whole.iter().zip(&tried.packet).filter(|(a, b)| a != b).count();
            prop_assert!(changed <= 4);
            prop_assert!(changed == 0 || old != RateOption::Absent);
            if let (RateOption::Assigned(old), RateOption::Assigned(new)) = (old, new) {
                prop_assert!(new <= old);
            }
        } else {
            let ours = insert(&whole[l4..l4 + header], RateCode::from_bits(12503)).unwrap();
            prop_assert_eq!(&tried.packet[l4..], ours.as_bytes());
            prop_assert_eq!(header + l4, whole.len(), "only without payload");
        }
        // A truncated packet. The kernel does not run the program without a whole IP header.
        let short = &whole[..whole.len() - cut.min(whole.len() - l4)];
        if short.len() < whole.len() {
            prop_assert_eq!(&rig.send_bytes(ACKS, 0, short).packet[..], short);
        }
        Ok(())
    };
    runner.run(&packet, check).unwrap();
}
