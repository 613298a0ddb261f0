//! Tests forged packets of a host off a flow's path. The host knows the flow's addresses and ports, but must guess
//! sequence numbers. The table "Forged packets" of docs/explanation/security.md names these tests.

use std::thread::sleep;
use std::time::Duration;

use narrows_agent::dataplane::layout;
use narrows_agent::dataplane::slots::Slot;
use narrows_control::feedback::code::RateCode;
use narrows_control::units::Span;

use crate::rig::*;

/// The code for one byte per second.
const TEN: u16 = 10;
/// A sequence number far from all numbers of the flow.
const FAR: u32 = 0x6000_0000;
/// After a pause of this length, the program learns the flow's numbers again.
const PAUSE: Duration = Duration::from_millis(300);

/// Returns a flow that has sent 10,000 bytes, of which 4,000 are acknowledged.
fn flow(rig: &Rig) -> (Packet, Slot<'_>) {
    rig.grant(&[1_250_000]);
    let flow = Packet::new(Shape::V4, 40_000);
    rig.open(&flow);
    rig.send(DATA, &flow);
    for n in 0..10 {
        rig.send(DATA, &flow.clone().seq(1000 + n * 1000).payload(1000));
    }
    rig.send(ACKS, &flow.clone().reversed().ack(5000));
    let slot = rig.switch.slots.get(rig.slot_of(&flow).unwrap()).unwrap();
    slot.set_code(code(1_250_000));
    (flow, slot)
}

/// Sends real data and a real ACK.
fn go_on(rig: &Rig, flow: &Packet) {
    rig.send(DATA, &flow.clone().seq(10_000).payload(1000));
    rig.send(ACKS, &flow.clone().reversed().ack(5000));
}

/// Sends a packet that must increase the counter `implausible` and change nothing else.
fn refused(rig: &Rig, slot: &Slot<'_>, port: u8, packet: &Packet) {
    let (before, counted) = (slot.image(), rig.data_port().counters().implausible);
    rig.send(port, packet);
    assert_eq!(slot.image(), before, "{packet:?}");
    assert_eq!(rig.data_port().counters().implausible, counted + 1, "{packet:?}");
}

#[test]
fn a_forged_rate_is_not_stored() {
    let Some(rig) = rig() else { return };
    let (flow, slot) = flow(&rig);
    let forged = flow.clone().reversed().options(&option(TEN));
    for (seq, ack) in [(FAR, FAR), (1000, FAR), (FAR, 5000), (1000, 11_001), (1000 + 0x2_0000, 5000)] {
        refused(&rig, &slot, ACKS, &forged.clone().seq(seq).ack(ack));
    }
    assert_eq!((slot.passed_n(), slot.passed()), (0, RateCode::UNASSIGNED));
    // Real ACKs still carry this switch's rate.
    let real = rig.send(ACKS, &flow.reversed().ack(6000).options(&option(0xFFFF)));
    assert_eq!(real.packet[60..62], code(1_250_000).to_bits().to_be_bytes());
}

#[test]
fn a_single_guessed_rate_has_no_effect() {
    let Some(rig) = rig() else { return };
    let (flow, slot) = flow(&rig);
    let guessed = flow.clone().reversed().ack(6000).options(&option(TEN));
    rig.send(ACKS, &guessed);
    assert_eq!((slot.passed_n(), slot.passed()), (0, RateCode::UNASSIGNED));
    // A real switch writes its rate more than once, so the program believes the second ACK.
    rig.send(ACKS, &guessed);
    assert_eq!((slot.passed_n(), slot.passed()), (1, RateCode::from_bits(TEN)));
}

#[test]
fn forged_timestamps_give_no_rtt_sample() {
    let Some(rig) = rig() else { return };
    let (flow, slot) = flow(&rig);
    rig.send(DATA, &flow.clone().seq(11_000).payload(1000).options(&stamps(500, 20)));
    let echo = stamps(60, 500);
    refused(&rig, &slot, ACKS, &flow.clone().reversed().options(&echo).ack(FAR));
    refused(&rig, &slot, DATA, &flow.clone().options(&stamps(500, 60)).payload(10).seq(FAR));
    let samples = slot.rtt_receiver_n();
    rig.send(ACKS, &flow.reversed().ack(12_000).options(&echo));
    assert_eq!(slot.rtt_receiver_n(), samples + 1, "the real echo");
}

#[test]
fn a_reset_needs_the_exact_number() {
    for (port, exact) in [(DATA, [11_000, 5000]), (ACKS, [1000, 1000])] {
        let Some(rig) = rig() else { return };
        let (flow, slot) = flow(&rig);
        let side = if port == DATA { flow.clone() } else { flow.clone().reversed() };
        for flags in [RST, RST | ACK] {
            for seq in [FAR, 999, 1001, 4999, 5001, 10_999, 11_001] {
                let ack = if port == DATA { 1000 } else { 5000 };
                refused(&rig, &slot, port, &side.clone().flags(flags).seq(seq).ack(ack));
            }
        }
        let blind = side.clone().flags(RST | ACK).seq(exact[0]).ack(FAR);
        refused(&rig, &slot, port, &blind);
        assert_eq!(slot.flags() & layout::RST, 0);
        rig.send(port, &side.flags(RST).seq(exact[1]));
        assert_ne!(slot.flags() & layout::RST, 0, "port {port}");
    }
}

#[test]
fn a_fin_needs_both_numbers() {
    let Some(rig) = rig() else { return };
    let (flow, slot) = flow(&rig);
    for (seq, ack) in [(FAR, 1000), (11_000, FAR), (FAR, FAR)] {
        refused(&rig, &slot, DATA, &flow.clone().flags(FIN | ACK).seq(seq).ack(ack));
    }
    for (seq, ack) in [(FAR, 5000), (1000, FAR), (FAR, FAR)] {
        refused(&rig, &slot, ACKS, &flow.clone().reversed().flags(FIN | ACK).seq(seq).ack(ack));
    }
    assert_eq!(slot.flags() & (layout::FIN_SENDER | layout::FIN_RECEIVER), 0);
}

#[test]
fn a_forged_syn_changes_no_flow() {
    let Some(rig) = rig() else { return };
    let (flow, slot) = flow(&rig);
    let before = slot.image();
    for (port, side) in [(DATA, flow.clone()), (ACKS, flow.reversed())] {
        rig.send(port, &side.flags(SYN).seq(FAR).options(SYN_OPTIONS));
    }
    assert_eq!(slot.image(), before);
}

/// The attacker knows the sequence number of the forged SYN, because it sends this SYN itself.
#[test]
fn a_forged_handshake_replaces_no_active_flow() {
    let Some(rig) = rig() else { return };
    let (flow, slot) = flow(&rig);
    for (syn_by, opener) in [(DATA, flow.clone()), (ACKS, flow.clone().reversed())] {
        rig.send(syn_by, &opener.clone().flags(SYN).seq(FAR).options(SYN_OPTIONS));
        let answer = opener.reversed().flags(SYN | ACK).ack(FAR).options(SYN_OPTIONS);
        let before = slot.image();
        rig.send(1 - syn_by, &answer);
        assert_eq!(slot.image(), before);
    }
    // After more than a second without packets, a new connection may use the addresses.
    sleep(Duration::from_millis(1100));
    rig.send(DATA, &flow.clone().flags(SYN).seq(FAR).options(SYN_OPTIONS));
    rig.send(ACKS, &flow.reversed().flags(SYN | ACK).ack(FAR).options(SYN_OPTIONS));
    assert_ne!(slot.flags() & layout::RST, 0);
}

#[test]
fn a_syn_ack_must_answer_the_syn() {
    let Some(rig) = rig() else { return };
    rig.grant(&[1_250_000]);
    let flow = Packet::new(Shape::V4, 40_000);
    rig.send(DATA, &flow.clone().flags(SYN).options(&[SYN_OPTIONS, &option(0xFFFF)].concat()));
    let answer = flow.clone().reversed().flags(SYN | ACK).options(SYN_OPTIONS);
    for ack in [999, 1001, FAR] {
        let forged = answer.clone().ack(ack);
        assert_eq!(rig.send(ACKS, &forged).packet, forged.bytes());
        assert_eq!(rig.slot_of(&flow), None);
    }
    rig.send(ACKS, &answer);
    let slot = rig.switch.slots.get(rig.slot_of(&flow).expect("the real one")).unwrap();
    let before = slot.image();
    // A repeated SYN-ACK must also have the exact numbers.
    rig.send(ACKS, &answer.clone().seq(FAR));
    rig.send(ACKS, &answer.clone().ack(FAR));
    assert_eq!(slot.image(), before);
    rig.send(ACKS, &answer);
    assert_ne!(slot.flags() & layout::SYN_REPEATED, 0);
}

#[test]
fn a_forged_reset_ends_no_handshake() {
    let Some(rig) = rig() else { return };
    rig.grant(&[1_250_000]);
    let flow = Packet::new(Shape::V4, 40_000);
    rig.send(DATA, &flow.clone().flags(SYN).options(&[SYN_OPTIONS, &option(0xFFFF)].concat()));
    rig.send(DATA, &flow.clone().flags(RST).seq(FAR));
    rig.send(ACKS, &flow.clone().reversed().flags(RST | ACK).ack(FAR));
    rig.send(ACKS, &flow.clone().reversed().flags(RST));
    rig.send(ACKS, &flow.clone().reversed().flags(SYN | ACK).options(SYN_OPTIONS));
    assert!(rig.slot_of(&flow).is_some());
    // An RST that refuses a connection acknowledges the SYN.
    let other = Packet::new(Shape::V4, 40_001);
    rig.send(DATA, &other.clone().flags(SYN).options(SYN_OPTIONS));
    rig.send(ACKS, &other.clone().reversed().flags(RST | ACK));
    rig.send(ACKS, &other.clone().reversed().flags(SYN | ACK).options(SYN_OPTIONS));
    assert_eq!(rig.slot_of(&other), None);
}

#[test]
fn a_guessed_third_packet_confirms_no_flow() {
    let Some(rig) = rig() else { return };
    rig.grant(&[1_250_000]);
    let flow = Packet::new(Shape::V4, 40_000);
    rig.open(&flow);
    let slot = rig.switch.slots.get(rig.slot_of(&flow).unwrap()).unwrap();
    refused(&rig, &slot, DATA, &flow.clone().ack(FAR));
    refused(&rig, &slot, DATA, &flow.clone().seq(FAR));
    assert_eq!(rig.data_port().counters().unconfirmed, 1);
    rig.send(DATA, &flow);
    assert_eq!(rig.data_port().counters().unconfirmed, 0);
    // Forged packets are also refused if the program has seen data of the flow, but not its handshake.
    let adopted = Packet::new(Shape::V4, 40_001);
    rig.send(DATA, &adopted.clone().payload(100));
    let slot = rig.switch.slots.get(rig.slot_of(&adopted).unwrap()).unwrap();
    refused(&rig, &slot, ACKS, &adopted.clone().reversed().ack(FAR).seq(FAR));
    assert_eq!(rig.data_port().counters().unconfirmed, 1);
    rig.send(ACKS, &adopted.reversed().ack(1100));
    assert_eq!(rig.data_port().counters().unconfirmed, 0);
}

#[test]
fn forged_data_is_not_counted_and_joins_other_tcp() {
    let Some(rig) = rig() else { return };
    let (flow, slot) = flow(&rig);
    let (bytes, missing) = (slot.bytes(), slot.missing());
    let marked = [&[0xFD, 2][..], &stamps(1, 2)[2..]].concat();
    for (seq, ack) in [(FAR, 1000), (11_000, FAR), (FAR, FAR)] {
        let forged = flow.clone().seq(seq).ack(ack).options(&marked).payload(1000);
        refused(&rig, &slot, DATA, &forged);
        assert_eq!(rig.send(DATA, &forged).priority, PRIORITIES[2]);
    }
    assert_eq!((slot.bytes(), slot.missing(), slot.marked_unlimited()), (bytes, missing, 0));
    assert_eq!(rig.send(DATA, &flow.seq(11_000).payload(1000)).priority, PRIORITIES[1]);
}

#[test]
fn a_forged_ack_does_not_close_the_gate() {
    let Some(rig) = rig() else { return };
    let (flow, slot) = flow(&rig);
    rig.data_port().set_mode(layout::MODE_CONTROLLED | layout::MODE_ONCE_PER_RTT);
    slot.set_rtt(Span::from_secs(1000));
    let ack = flow.reversed().ack(5000);
    refused(&rig, &slot, ACKS, &ack.clone().ack(FAR));
    refused(&rig, &slot, ACKS, &ack.clone().ack(FAR).options(&option(TEN)));
    assert_ne!(rig.send(ACKS, &ack).packet, ack.bytes(), "the real ACK carries the rate");
    assert_eq!(rig.send(ACKS, &ack).packet, ack.bytes(), "which closes the gate");
}

#[test]
fn another_interface_is_believed_after_a_pause() {
    let Some(rig) = rig() else { return };
    let (flow, slot) = flow(&rig);
    let ack = flow.clone().reversed().ack(6000).options(&option(TEN));
    for _ in 0..3 {
        rig.send_from(7, ACKS, &ack);
    }
    assert_eq!(slot.passed_n(), 2, "interface 7 is known now");
    for _ in 0..20 {
        rig.send_from(8, ACKS, &ack.clone().options(&option(20)));
    }
    assert_eq!((slot.passed_n(), slot.passed()), (2, RateCode::from_bits(TEN)));
    let fin = flow.clone().flags(FIN | ACK).seq(11_000);
    rig.send_from(3, DATA, &flow.clone().seq(11_000).payload(0));
    rig.send_from(8, DATA, &fin);
    rig.send_from(8, DATA, &fin.clone().flags(RST));
    assert_eq!(slot.flags() & (layout::FIN_SENDER | layout::RST), 0);
    // After this pause, the program assumes that the route has changed.
    sleep(Duration::from_millis(150));
    rig.send_from(8, ACKS, &ack);
    rig.send_from(8, ACKS, &ack);
    assert_eq!(slot.passed_n(), 4);
    for _ in 0..20 {
        rig.send_from(8, DATA, &flow);
    }
    rig.send_from(8, DATA, &fin);
    assert_ne!(slot.flags() & layout::FIN_SENDER, 0);
}

/// After a pause, the program learns the numbers again, but not from packets that contradict each other.
#[test]
fn random_packets_are_not_learned_during_a_pause() {
    let Some(rig) = rig() else { return };
    let (flow, slot) = flow(&rig);
    sleep(PAUSE);
    let (flags, bytes) = (slot.flags(), slot.bytes());
    let mut dice = Dice(3);
    for _ in 0..5000 {
        let side = if dice.roll() & 1 == 0 { flow.clone() } else { flow.clone().reversed() };
        let port = if side.reversed { ACKS } else { DATA };
        rig.send(port, &side.seq(dice.far()).ack(dice.far()).payload(100).options(&option(TEN)));
    }
    assert_eq!((slot.flags(), slot.bytes(), slot.passed_n()), (flags, bytes, 0));
    go_on(&rig, &flow);
    assert!(slot.bytes() > bytes, "real data is still believed");
}

#[test]
fn no_random_packet_changes_an_active_flow() {
    let Some(rig) = rig() else { return };
    let (flow, slot) = flow(&rig);
    let mut dice = Dice(21);
    for n in 0..20_000 {
        if n % 100 == 0 {
            go_on(&rig, &flow);
        }
        let flags = [ACK, FIN | ACK, RST, RST | ACK, ACK, SYN, SYN | ACK, 0][dice.roll() as usize % 8];
        let side = if dice.roll() & 1 == 0 { flow.clone() } else { flow.clone().reversed() };
        let port = if side.reversed { ACKS } else { DATA };
        let options = [option(TEN), stamps(dice.roll(), dice.roll()), Vec::new()];
        let packet = side
            .flags(flags)
            .seq(dice.far())
            .ack(dice.far())
            .options(&options[dice.roll() as usize % 3])
            .payload([0, 0, 1, 1000][dice.roll() as usize % 4]);
        let before = slot.image();
        rig.send(port, &packet);
        assert_eq!(slot.image(), before, "{packet:?}");
    }
    assert!(rig.data_port().counters().implausible > 14_000);
}

/// A random number generator with a fixed seed.
struct Dice(u64);

impl Dice {
    /// Returns the next number, by xorshift64* (Vigna 2016).
    fn roll(&mut self) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32) as u32
    }

    /// Returns a number far from the flow's numbers.
    fn far(&mut self) -> u32 {
        loop {
            let number = self.roll();
            if (0x0080_0000..0xFF80_0000).contains(&number) {
                return number;
            }
        }
    }
}

/// The page on security names tests by file and function. They must exist, and the page must name each test of this
/// file.
#[test]
fn the_page_on_security_names_tests_that_exist() {
    let page = include_str!("../../../../docs/explanation/security.md");
    let files = [
        ("forged", include_str!("forged.rs")),
        ("designated", include_str!("designated.rs")),
        ("life", include_str!("life.rs")),
        ("real", include_str!("real.rs")),
        ("stamping", include_str!("stamping.rs")),
    ];
    let mut named = 0;
    for (file, source) in files {
        for part in page.split(&format!("`{file}::")).skip(1) {
            let name = part.split('`').next().unwrap();
            assert!(source.contains(&format!("\nfn {name}() {{")), "{file}::{name}");
            named += 1;
        }
    }
    assert!(named > 20, "{named}");
    let (_, table) = page.split_once("## Forged packets").expect("the section");
    let table = table.split("\n## ").next().unwrap();
    for part in files[0].1.split("#[test]\nfn ").skip(1) {
        let name = part.split('(').next().unwrap();
        let own = name == "the_page_on_security_names_tests_that_exist";
        assert!(own || table.contains(&format!("`forged::{name}`")), "{name} is missing");
    }
    let (_, fields) = table.split_once("\n| field |").expect("the table of fields");
    let rows: Vec<_> = fields.lines().skip(2).take_while(|line| line.starts_with("| ")).collect();
    assert!(rows.len() > 10, "{rows:?}");
    for row in rows {
        assert!(row.contains("::"), "a row without a test: {row}");
    }
}
