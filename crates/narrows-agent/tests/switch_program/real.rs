//! Tests packet exchanges as in real connections. The program must believe the sequence and acknowledgement numbers of
//! every packet.

use std::thread::sleep;
use std::time::Duration;

use narrows_agent::dataplane::layout;
use narrows_agent::dataplane::slots::Slot;

use crate::rig::*;

/// Opens a flow. After the handshake, the sequence numbers of both ends begin at 1000.
fn opened(rig: &Rig, sport: u16) -> (Packet, Slot<'_>) {
    rig.grant(&[1_250_000]);
    let flow = Packet::new(Shape::V4, sport);
    rig.open(&flow);
    rig.send(DATA, &flow);
    let slot = rig.switch.slots.get(rig.slot_of(&flow).unwrap()).unwrap();
    (flow, slot)
}

/// An exchange of data and ACKs.
struct Exchange<'a> {
    rig: &'a Rig,
    flow: Packet,
}

impl Exchange<'_> {
    fn data(&self, seq: u32, len: usize, ack: u32) {
        self.rig.send(DATA, &self.flow.clone().seq(seq).ack(ack).payload(len));
        self.believed(&format!("data {seq} + {len}, ack {ack}"));
    }
    fn ack(&self, seq: u32, ack: u32) {
        self.answer(seq, 0, ack);
    }
    fn answer(&self, seq: u32, len: usize, ack: u32) {
        self.rig.send(ACKS, &self.flow.clone().reversed().seq(seq).ack(ack).payload(len));
        self.believed(&format!("answer {seq} + {len}, ack {ack}"));
    }
    fn believed(&self, what: &str) {
        assert_eq!(self.rig.data_port().counters().implausible, 0, "{what}");
    }
}

fn exchange(rig: &Rig) -> (Exchange<'_>, Slot<'_>) {
    let (flow, slot) = opened(rig, 40_000);
    (Exchange { rig, flow }, slot)
}

#[test]
fn loss_reordering_and_retransmission_are_believed() {
    let Some(rig) = rig() else { return };
    let (real, slot) = exchange(&rig);
    for n in 0..100u32 {
        let at = 1000 + n * 10_000;
        // The third packet is lost upstream of the switch. The fifth and the sixth packet arrive in the wrong order.
        for k in [0, 1, 3, 5, 4, 6, 7, 8, 9] {
            real.data(at + k * 1000, 1000, 1000);
        }
        // These ACKs are delayed, repeated or out of order.
        for k in [2, 2, 2, 2, 2, 1] {
            real.ack(1000, at + k * 1000);
        }
        real.data(at + 2000, 1000, 1000);
        real.ack(1000, at + 10_000);
        // A spurious retransmission.
        real.data(at + 3000, 1000, 1000);
    }
    assert_eq!(slot.missing(), 100 * 2000, "the lost one, and the one that was late");
}

#[test]
fn sequence_numbers_may_wrap() {
    let Some(rig) = rig() else { return };
    let flow = Packet::new(Shape::V4, 40_000);
    let start = u32::MAX - 5000;
    rig.grant(&[1_250_000]);
    rig.send(DATA, &flow.clone().flags(SYN).seq(start).options(&[SYN_OPTIONS, &option(65535)].concat()));
    let answer = flow.clone().reversed().flags(SYN | ACK).seq(start).ack(start).options(SYN_OPTIONS);
    rig.send(ACKS, &answer);
    let real = Exchange { rig: &rig, flow };
    real.data(start, 0, start);
    for n in 0..20 {
        real.data(start.wrapping_add(n * 1000), 1000, start.wrapping_add(n * 500));
        real.answer(start.wrapping_add(n * 500), 500, start.wrapping_add((n + 1) * 1000));
    }
}

#[test]
fn data_in_both_directions_is_believed() {
    let Some(rig) = rig() else { return };
    rig.acks_port().set_mode(layout::MODE_CONTROLLED);
    let (real, _) = exchange(&rig);
    let (mut here, mut there) = (1000, 1000);
    for n in 0..500u32 {
        // 200 packets are in flight in each direction.
        let lag = 200 * 1000;
        real.data(here, 1000, there.max(1000 + lag) - lag);
        here += 1000;
        real.answer(there, 1000, here.max(1000 + lag) - lag);
        there += 1000;
        if n % 50 == 49 {
            // In each direction, ten packets are lost upstream of the switch.
            here += 10_000;
            there += 10_000;
        }
    }
    assert_eq!(rig.acks_port().counters().implausible, 0);
}

#[test]
fn super_packets_probes_and_keepalives_are_believed() {
    let Some(rig) = rig() else { return };
    let (real, slot) = exchange(&rig);
    for n in 0..50u32 {
        let large = real.flow.clone().seq(1000 + n * 3000).payload(3000);
        rig.send_bytes(DATA, 1448, &large.bytes());
        real.believed("a super-packet");
    }
    real.ack(1000, 1000 + 50 * 3000);
    let next = 1000 + 50 * 3000;
    // A window probe and a keepalive repeat the last sequence number, with one byte of data or none.
    real.data(next - 1, 0, 1000);
    real.data(next - 1, 1, 1000);
    real.ack(1000, next);
    real.ack(999, next);
    real.answer(999, 1, next);
    // The answer to a keepalive, with SACK.
    let sack = [&stamps(1, 2)[..], &[1, 1, 5, 10, 0, 0, 0, 0, 0, 0, 0, 1]].concat();
    rig.send(ACKS, &real.flow.clone().reversed().ack(next).options(&sack));
    real.believed("SACK");
    assert_eq!(slot.missing(), 0);
}

#[test]
fn requests_and_responses_with_pauses_are_believed() {
    let Some(rig) = rig() else { return };
    let (real, slot) = exchange(&rig);
    let (mut here, mut there) = (1000, 1000);
    for n in 0..4u32 {
        real.data(here, 300, there);
        here += 300;
        for _ in 0..100 {
            real.answer(there, 1400, here);
            there += 1400;
            // Every second ACK of the data's sender is delayed.
            if n % 2 == 0 {
                real.data(here, 0, there - 1400);
            }
        }
        real.data(here, 0, there);
        sleep(Duration::from_millis(300));
    }
    rig.send(DATA, &real.flow.clone().flags(FIN | ACK).seq(here).ack(there));
    rig.send(ACKS, &real.flow.clone().reversed().flags(FIN | ACK).seq(there).ack(here + 1));
    rig.send(DATA, &real.flow.clone().seq(here + 1).ack(there + 1));
    real.believed("the end");
    let both = layout::FIN_SENDER | layout::FIN_RECEIVER;
    assert_eq!(slot.flags() & (both | layout::RST), both);
}

#[test]
fn a_connection_with_used_addresses_is_believed() {
    let Some(mut rig) = rig() else { return };
    let (flow, slot) = opened(&rig, 40_000);
    rig.send(DATA, &flow.clone().flags(RST).seq(1000));
    assert_ne!(slot.flags() & layout::RST, 0);
    let index = rig.slot_of(&flow).unwrap();
    rig.switch.slots.free(index, &rig.switch.ports).unwrap();
    rig.switch.slots.recycle().unwrap();
    let start = 0x9000_0000;
    rig.send(DATA, &flow.clone().flags(SYN).seq(start).options(&[SYN_OPTIONS, &option(65535)].concat()));
    rig.send(ACKS, &flow.clone().reversed().flags(SYN | ACK).seq(77).ack(start).options(SYN_OPTIONS));
    let real = Exchange { rig: &rig, flow };
    real.data(start, 1000, 77);
    real.ack(77, start + 1000);
    let slot = rig.switch.slots.get(rig.slot_of(&real.flow).unwrap()).unwrap();
    assert_ne!(slot.flags() & (layout::CONFIRMED | layout::RECEIVER_SEEN), 0);
}

/// For a while, the program sees no packets of the flow, as after a restart of its agent or a change of the path.
#[test]
fn a_flow_that_went_on_unseen_is_believed_again() {
    let Some(rig) = rig() else { return };
    let (flow, slot) = opened(&rig, 40_000);
    rig.send(DATA, &flow.clone().payload(1000));
    rig.send(ACKS, &flow.clone().reversed().ack(2000));
    sleep(Duration::from_millis(300));
    let far = 900_000_000;
    let mut believed = 0;
    for n in 0..10u32 {
        let before = slot.bytes();
        rig.send(DATA, &flow.clone().seq(far + n * 1000).ack(far).payload(1000));
        believed += u32::from(slot.bytes() > before);
        rig.send(ACKS, &flow.clone().reversed().seq(far).ack(far + n * 1000).options(&option(12003)));
    }
    assert_eq!(believed, 7, "all but the first three");
    assert!(slot.passed_n() > 1);
    assert!(slot.missing() < 1000, "what passed unseen is not missing");
}

#[test]
fn an_adopted_flow_is_believed() {
    let Some(rig) = rig() else { return };
    let real = Exchange { rig: &rig, flow: Packet::new(Shape::V4, 40_000) };
    let start = 0x7FFF_0000u32;
    // 200 packets are in flight.
    for n in 0..400u32 {
        real.data(start.wrapping_add(n * 1000), 1000, 5);
        real.ack(5, start.wrapping_add(n * 1000).wrapping_sub(200_000));
    }
}
