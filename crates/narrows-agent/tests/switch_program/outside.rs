//! Tests headers around a flow's IP datagram: VLAN tags on a router, PPPoE, GTP-U, and tunnels into which the program
//! does not look.

use narrows_agent::dataplane::layout;
use narrows_agent::switch::table::{FlowTable, Tags};
use narrows_control::feedback::option::{Format, read};
use narrows_control::rate::{RateOption, UDP_QUEUES};
use narrows_control::units::Rate;

use crate::rig::*;

/// On a router between VLANs, data leaves with one tag. ACKs leave with another tag, or without a tag.
#[test]
fn a_flow_between_vlans_is_one_flow_if_the_host_routes() {
    let Some(rig) = rig() else { return };
    rig.grant(&[1_250_000]);
    let handshake = |sport| {
        let tagged = Packet::new(Shape::Vlan, sport);
        let plain = Packet::new(Shape::V4, sport);
        let syn = tagged.clone().flags(SYN).options(&[SYN_OPTIONS, &option(65535)].concat());
        rig.send(DATA, &syn);
        let answer = plain.clone().reversed().flags(SYN | ACK).options(SYN_OPTIONS);
        let answer = rig.send(ACKS, &answer);
        rig.send(DATA, &tagged.clone().payload(100));
        let ack = rig.send(ACKS, &plain.clone().reversed().options(&stamps(50, 10)).ack(1100));
        let code = |packet: &[u8]| read(&packet[34..], Format::Experimental).option;
        (tagged, plain, [code(&answer.packet), code(&ack.packet)])
    };
    let (tagged, _, rates) = handshake(40_000);
    assert_eq!(rates, [RateOption::Absent; 2]);
    let slot = rig.slot_of(&tagged).expect("adopted, in its VLAN");
    assert_eq!(rig.switch.slots.get(slot).unwrap().flags() & layout::CONFIRMED, 0);

    rig.data_port().set_mode(CONTROLLED | layout::MODE_VLANS_ROUTED);
    rig.acks_port().set_mode(layout::MODE_VLANS_ROUTED);
    let (tagged, plain, rates) = handshake(40_001);
    assert_eq!(rates, [RateOption::Assigned(Rate::from_bytes_per_sec(1_250_000)); 2]);
    assert_eq!(rig.slot_of(&tagged), None);
    let slot = rig.slot_of(&plain).expect("one flow");
    // The tag of the data identifies the subscriber.
    assert_eq!(rig.switch.tags(slot), Tags { vlan: 5, mark: 0 });
    assert_eq!(rig.switch.slots.get(slot).unwrap().bytes(), 152);

    // In a download, the SYN leaves without a tag, and the SYN-ACK leaves with the tags of the data.
    let (tagged, plain) = (Packet::new(Shape::QinQ, 40_002), Packet::new(Shape::V4, 40_002));
    rig.send(ACKS, &plain.clone().reversed().flags(SYN).options(SYN_OPTIONS));
    rig.send(DATA, &tagged.flags(SYN | ACK).options(SYN_OPTIONS));
    let slot = rig.slot_of(&plain).expect("a slot");
    assert_eq!(rig.switch.tags(slot), Tags { vlan: 7 ^ 5 << 4, mark: 0 });
}

/// ACKs leave by another port, so they do not have the encapsulation of the controlled port.
#[test]
fn acks_outside_a_tunnel_belong_to_data_inside() {
    let Some(rig) = rig() else { return };
    rig.grant(&[1_250_000]);
    for (n, shape) in (0..).zip([Shape::Pppoe, Shape::Gtp, Shape::GtpBare]) {
        let (inside, plain) = (Packet::new(shape, 40_000 + n), Packet::new(Shape::V4, 40_000 + n));
        for (data, acks) in [(&inside, &plain), (&plain, &inside)] {
            let syn = data.clone().flags(SYN).options(&[SYN_OPTIONS, &option(65535)].concat());
            rig.send(DATA, &syn);
            let answer = rig.send(ACKS, &acks.clone().reversed().flags(SYN | ACK).options(SYN_OPTIONS));
            let received = read(&answer.packet[acks.offsets().1..], Format::Experimental).option;
            assert_eq!(received, RateOption::Assigned(Rate::from_bytes_per_sec(1_250_000)), "{shape:?}");
        }
        assert!(rig.slot_of(&plain).is_some());
    }
}

/// Returns a frame with an IPv4 datagram.
fn datagram(protocol: u8, content: &[u8]) -> Vec<u8> {
    let mut frame = Packet::new(Shape::V4, 1).options(&[]).payload(content.len()).bytes();
    frame[23] = protocol;
    frame[34..34 + content.len()].copy_from_slice(content);
    frame
}

fn udp(port: u16) -> Vec<u8> {
    let mut header = [1_u16, port, 40, 0].map(u16::to_be_bytes).concat();
    header.resize(20, 0);
    datagram(17, &header)
}

fn with_type(kind: &[u8]) -> Vec<u8> {
    let mut frame = Packet::new(Shape::V4, 1).payload(100).bytes();
    frame.splice(12..14, kind.iter().copied());
    frame
}

#[test]
fn packets_of_closed_tunnels_are_counted_and_pass_unchanged() {
    let Some(rig) = rig() else { return };
    let tags = [[0x81, 0, 0, 5]; 3].concat();
    let ppp = |protocol: u16| [&[0x88, 0x64, 0x11, 0, 0, 9, 0, 100][..], &protocol.to_be_bytes()].concat();
    let unopened = || rig.data_port().counters().unopened;
    rig.data_port().set_mode(layout::MODE_CONTROLLED);
    let gtp = Packet::new(Shape::Gtp, 40_000).payload(100);
    let cases = [
        (0, with_type(&[&tags[..], &[8, 0]].concat())),
        (1, with_type(&[0x88, 0x47])),
        (2, with_type(&ppp(0x00fd))),
        (3, gtp.bytes()),
        (4, udp(4789)),
        (4, udp(6081)),
        (5, datagram(4, &[0x45])),
        (5, datagram(41, &[0x60])),
        (6, datagram(47, &[0])),
        (7, datagram(50, &[0])),
        (7, datagram(51, &[0])),
    ];
    for (kind, frame) in cases {
        let mut expected = unopened();
        expected[kind] += 1;
        let tried = rig.send_bytes(DATA, 0, &frame);
        assert_eq!((tried.verdict, &tried.packet), (PASS, &frame), "{frame:02x?}");
        assert_eq!(unopened(), expected, "{frame:02x?}");
    }
    assert_eq!(rig.slot_of(&gtp), None, "GTP-U is opened only if the mode says so");
    assert_eq!(rig.data_port().counters().arrived_packets[3], 3, "GTP-U and VXLAN are UDP");

    // UDP, a control protocol of PPP, and ICMP contain no flows.
    let before = unopened();
    for frame in [udp(53), with_type(&ppp(0xc021)), datagram(1, &[8])] {
        assert_eq!(rig.send_bytes(DATA, 0, &frame).packet, frame);
    }
    assert_eq!(unopened(), before);
}

fn is_udp(priority: u32) -> bool {
    (PRIORITIES[3]..PRIORITIES[3] + u32::from(UDP_QUEUES)).contains(&priority)
}

/// The program handles the inner segment only if all headers agree on its length. Otherwise, it treats the packet as
/// UDP.
#[test]
fn a_gtp_packet_with_contradictory_lengths_stays_udp() {
    let Some(rig) = rig() else { return };
    let flow = Packet::new(Shape::GtpV6, 40_000).payload(100);
    let whole = flow.bytes();
    let udp = 14 + 40;
    let change = |at: usize, value: u8| {
        let mut frame = whole.clone();
        frame[at] = value;
        frame
    };
    let cases = [
        ("UDP's length", change(udp + 5, whole[udp + 5] - 1)),
        ("GTP-U's length", change(udp + 11, whole[udp + 11] + 1)),
        ("version 2", change(udp + 8, 0x54)),
        ("an extension without a length", change(udp + 20, 0)),
        ("a long extension", change(udp + 20, 90)),
        ("neither IPv4 nor IPv6", change(78, 0x50)),
        ("the inner length", change(78 + 5, whole[78 + 5] - 1)),
        ("the inner header's length", change(118 + 12, 0x10)),
    ];
    for (n, (what, frame)) in (1..).zip(cases) {
        let tried = rig.send_bytes(DATA, 0, &frame);
        let passed = (tried.verdict, is_udp(tried.priority), &tried.packet);
        assert_eq!(passed, (PASS, true, &frame), "{what}");
        assert_eq!(rig.data_port().counters().unopened[3], n, "{what}");
    }
    // A super-packet contains several G-PDUs, and a fragment contains only a part of one.
    let mut fragment = Packet::new(Shape::Gtp, 40_000).payload(100).bytes();
    fragment[20] = 0x20;
    let counted = rig.data_port().counters().unopened[3];
    assert!(is_udp(rig.send_bytes(DATA, 100, &whole).priority));
    assert!(is_udp(rig.send_bytes(DATA, 0, &fragment).priority));
    assert_eq!(rig.data_port().counters().unopened[3], counted + 2);
    // An echo request and a subscriber's own UDP contain no flows.
    let counted = rig.data_port().counters().unopened;
    assert!(is_udp(rig.send_bytes(DATA, 0, &change(udp + 9, 1)).priority));
    assert!(is_udp(rig.send_bytes(DATA, 0, &change(78 + 6, 17)).priority));
    assert_eq!(rig.data_port().counters().unopened, counted);
    assert_eq!(rig.slot_of(&flow), None);
    rig.send_bytes(DATA, 0, &whole);
    assert!(rig.slot_of(&flow).is_some());
}

/// The length in the PPPoE header is too short for the datagram.
#[test]
fn a_pppoe_packet_with_a_wrong_length_passes_unchanged() {
    let Some(rig) = rig() else { return };
    let flow = Packet::new(Shape::Pppoe, 40_000).payload(100);
    let mut frame = flow.bytes();
    frame[19] -= 1;
    assert_eq!(rig.send_bytes(DATA, 0, &frame).packet, frame);
    assert_eq!((rig.slot_of(&flow), rig.data_port().counters().unopened[2]), (None, 1));
    rig.send(DATA, &flow);
    assert!(rig.slot_of(&flow).is_some());
}
