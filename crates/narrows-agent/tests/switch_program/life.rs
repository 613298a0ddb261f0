//! Tests how flows begin, are confirmed and end.

use narrows_agent::dataplane::layout;
use narrows_agent::dataplane::program::{Sizes, Switch, Tunables};
use narrows_agent::switch::table::{FlowTable, Tags};
use narrows_control::feedback::option::{Format, read};
use narrows_control::rate::{RateOption, UDP_QUEUES};
use narrows_control::units::{Bytes, Rate, Span, Time};

use crate::rig::*;

/// A bridge sends a SYN through all its ports until it has learned the destination's port. Copies of the SYN at other
/// ports must not change the tables.
#[test]
fn a_syn_copied_to_other_ports_counts_at_the_controlled_one() {
    let Some(rig) = rig() else { return };
    rig.grant(&[12_500_000]);
    for (n, ports) in (0..).zip([[DATA, ACKS], [ACKS, DATA]]) {
        let flow = Packet::new(SHAPES[0], 41_000 + n);
        let syn = flow.clone().flags(SYN).options(&[SYN_OPTIONS, &option(0xFFFF)].concat());
        for port in ports {
            rig.send(port, &syn);
        }
        rig.send(ACKS, &flow.clone().reversed().flags(SYN | ACK).options(SYN_OPTIONS));
        let index = rig.slot_of(&flow).expect("a slot");
        let slot = rig.switch.slots.get(index).unwrap();
        assert_eq!(slot.flags(), layout::LIVE | layout::RATED | layout::GRANTED, "{ports:?}");
        assert_eq!((slot.rtt_receiver_n(), slot.port()), (1, DATA));
    }
}

/// A slot stores the mark (`skb->mark`) of a packet of the data direction, because the mark can identify a subscriber.
/// This packet is the SYN or the SYN-ACK, or the first data if no handshake was seen. Later marks change nothing.
#[test]
fn a_slot_has_the_mark_of_its_data() {
    let Some(rig) = rig() else { return };
    let send = |port: u8, mark: u32, packet: &Packet| {
        rig.switch.try_packet_marked(mark, rig.ifindex[usize::from(port)], &packet.bytes()).unwrap();
    };
    let syn = |of: &Packet| of.clone().flags(SYN).options(&[SYN_OPTIONS, &option(0xFFFF)].concat());
    let syn_ack = |of: &Packet| of.clone().flags(SYN | ACK).options(SYN_OPTIONS);
    let mark = |of: &Packet| rig.switch.slots.get(rig.slot_of(of).expect("a slot")).unwrap().mark();

    let upload = Packet::new(SHAPES[0], 42_000);
    send(DATA, 7, &syn(&upload));
    send(ACKS, 8, &syn_ack(&upload.clone().reversed()));
    send(DATA, 9, &upload.clone().payload(100));
    assert_eq!(mark(&upload), 7, "of the SYN");

    let download = Packet::new(SHAPES[0], 42_001);
    send(ACKS, 8, &syn(&download.clone().reversed()));
    send(DATA, 7, &syn_ack(&download));
    assert_eq!(mark(&download), 7, "of the SYN-ACK");

    let adopted = Packet::new(SHAPES[0], 42_002).payload(100);
    send(DATA, 7, &adopted);
    assert_eq!(mark(&adopted), 7, "of the first data");
    send(DATA, 8, &adopted.clone().seq(1100));
    assert_eq!(mark(&adopted), 7, "a later mark changes nothing");
}

#[test]
fn the_agent_reads_the_vlan_and_the_mark_of_a_flow() {
    let Some(rig) = rig() else { return };
    for (n, shape) in (0..).zip(SHAPES) {
        let flow = Packet::new(shape, 42_100 + n).payload(100);
        rig.switch.try_packet_marked(7, rig.ifindex[usize::from(DATA)], &flow.bytes()).unwrap();
        let vlan = flow.key().vlan;
        assert_eq!(vlan != 0, matches!(shape, Shape::Vlan | Shape::QinQ | Shape::PppoeVlanV6));
        assert_eq!(rig.switch.tags(rig.slot_of(&flow).expect("a slot")), Tags { vlan, mark: 7 }, "{shape:?}");
    }
}

#[test]
fn a_flow_gets_its_rate_in_the_syn_ack_and_in_each_ack() {
    let Some(rig) = rig() else { return };
    rig.grant(&[12_500_000]);
    for (n, shape) in (0..).zip(SHAPES) {
        let flow = Packet::new(shape, 40_000 + n);
        let answer = rig.open(&flow);
        let (l3, l4) = flow.offsets();
        assert!(checksums_are_correct(&answer.packet, (l3, l4)), "{shape:?}");
        let received = read(&answer.packet[l4..], Format::Experimental).option;
        assert_eq!(received, RateOption::Assigned(Rate::from_bytes_per_sec(12_500_000)), "{shape:?}");
        let index = rig.slot_of(&flow).expect("a slot");
        let slot = rig.switch.slots.get(index).unwrap();
        assert_eq!(slot.key(), flow.key());
        assert_eq!(slot.flags(), layout::LIVE | layout::RATED | layout::GRANTED);
        assert_eq!((slot.rtt_receiver_n(), slot.rtt_sender_n(), slot.port()), (1, 0, DATA));
        assert_eq!(rig.data_port().counters().unconfirmed, 1);

        rig.send(DATA, &flow);
        assert_eq!(slot.rtt_sender_n(), 1);
        assert_eq!(rig.data_port().counters().unconfirmed, 0);
        assert_eq!(slot.bytes(), 0);

        let tried = rig.send(DATA, &flow.clone().payload(100));
        assert_eq!((tried.verdict, tried.priority), (PASS, PRIORITIES[1]));
        rig.send(DATA, &flow.clone().payload(100).seq(1300));
        assert_eq!(slot.missing(), 200);
        assert_eq!(slot.bytes(), 2 * (flow.bytes().len() - l3 + 100) as u64);

        slot.set_code(code(3_000_000));
        let ack = flow.clone().reversed().options(&stamps(50, 10));
        let tried = rig.send(ACKS, &ack);
        assert!(checksums_are_correct(&tried.packet, (l3, l4)));
        let received = read(&tried.packet[l4..], Format::Experimental).option;
        assert_eq!(received, RateOption::Assigned(Rate::from_bytes_per_sec(3_000_000)));
        assert_eq!(tried.packet[l4 + 28..], ack.bytes()[l4 + 20..]);
        assert_eq!(slot.rtt_receiver_n(), 2, "the echo of data");
        assert_ne!(slot.flags() & layout::RECEIVER_SEEN, 0);
    }
}

#[test]
fn fin_of_both_or_rst_ends_a_flow_and_frees_its_slot() {
    let Some(mut rig) = rig_with(Sizes { flows: 1, ..Sizes::default() }, Tunables::default()) else { return };
    rig.grant(&[1_000_000]);
    let flow = Packet::new(Shape::V4, 40_000);
    rig.open(&flow);
    rig.send(DATA, &flow.clone().flags(FIN | ACK));
    let index = rig.slot_of(&flow).unwrap();
    assert_eq!(rig.switch.slots.get(index).unwrap().flags() & layout::FIN_RECEIVER, 0);
    rig.send(ACKS, &flow.clone().reversed().flags(FIN | ACK));
    let both = layout::FIN_SENDER | layout::FIN_RECEIVER;
    assert_eq!(rig.switch.slots.get(index).unwrap().flags() & both, both);
    // At the end of a connection, iperf3's receiver sends an RST without ACK.
    rig.send(ACKS, &flow.clone().reversed().flags(RST));
    assert_ne!(rig.switch.slots.get(index).unwrap().flags() & layout::RST, 0);

    let other = Packet::new(Shape::V6, 40_001);
    rig.open(&other);
    assert_eq!((rig.slot_of(&other), rig.data_port().counters().no_slot), (None, 1));
    rig.switch.slots.free(index, &rig.switch.ports).unwrap();
    assert_eq!(rig.slot_of(&flow), None);
    rig.switch.slots.recycle().unwrap();
    rig.open(&other);
    assert_eq!(rig.slot_of(&other), Some(index));
    assert_eq!(rig.switch.slots.get(index).unwrap().bytes(), 0);
}

#[test]
fn the_passive_opener_sends() {
    let Some(rig) = rig() else { return };
    rig.grant(&[1_000_000]);
    // The client's SYN leaves by the uncontrolled port, the server's SYN-ACK by the controlled one.
    let data = Packet::new(Shape::V4, 40_000);
    rig.send(ACKS, &data.clone().reversed().flags(SYN).options(SYN_OPTIONS));
    let answer = data.clone().flags(SYN | ACK).options(&[SYN_OPTIONS, &option(65535)].concat());
    assert_eq!(rig.send(DATA, &answer).packet, answer.bytes(), "the request is for the other end");
    let slot = rig.switch.slots.get(rig.slot_of(&data).unwrap()).unwrap();
    assert_ne!(slot.flags() & layout::OPENED_BY_RECEIVER, 0);
    assert_eq!((slot.rtt_sender_n(), slot.rtt_receiver_n()), (1, 0));
    let third = rig.send(ACKS, &data.clone().reversed());
    let received = read(&third.packet[34..], Format::Experimental).option;
    assert_eq!(received, RateOption::Assigned(Rate::from_bytes_per_sec(1_000_000)));
    assert_eq!((slot.rtt_receiver_n(), rig.data_port().counters().unconfirmed), (1, 0));
}

#[test]
fn a_passive_opener_that_does_not_ask_is_other_tcp() {
    let Some(rig) = rig() else { return };
    rig.grant(&[1_000_000]);
    let data = Packet::new(Shape::V4, 40_000);
    let syn = [SYN_OPTIONS, &option(65535)].concat();
    rig.send(ACKS, &data.clone().reversed().flags(SYN).options(&syn));
    rig.send(DATA, &data.clone().flags(SYN | ACK).options(SYN_OPTIONS));
    let slot = rig.switch.slots.get(rig.slot_of(&data).unwrap()).unwrap();
    assert_eq!(slot.flags() & (layout::RATED | layout::GRANTED), 0);
    let third = data.clone().reversed();
    assert_eq!(rig.send(ACKS, &third).packet, third.bytes());
    assert_eq!(rig.send(DATA, &data.clone().payload(100)).priority, PRIORITIES[2]);
}

#[test]
fn with_both_directions_controlled_the_syn_ack_counts_for_the_other() {
    let Some(rig) = rig() else { return };
    rig.grant(&[1_000_000]);
    rig.acks_port().set_mode(layout::MODE_CONTROLLED);
    for (sport, answer, leaf) in [(40_000, option(65535), 1), (40_001, Vec::new(), 2)] {
        let opener = Packet::new(Shape::V4, sport);
        rig.send(DATA, &opener.clone().flags(SYN).options(&[SYN_OPTIONS, &option(65535)].concat()));
        let server = opener.clone().reversed();
        let asks = [SYN_OPTIONS, &answer].concat();
        rig.send(ACKS, &server.clone().flags(SYN | ACK).options(&asks));
        rig.send(DATA, &opener);
        let download = server.payload(100);
        assert_eq!(rig.send(ACKS, &download).priority, PRIORITIES[leaf]);
        let slot = rig.switch.slots.get(rig.slot_of(&download).unwrap()).unwrap();
        assert_eq!(slot.flags() & layout::RATED != 0, leaf == 1);
        // Data of the host that sent the SYN is rated, because this SYN asked for feedback.
        assert_eq!(rig.send(DATA, &opener.payload(100)).priority, PRIORITIES[1]);
    }
}

#[test]
fn newcomers_get_successive_grants_and_too_many_are_refused() {
    let Some(rig) = rig() else { return };
    rig.grant(&[9_000_000, 5_000_000, 3_000_000]);
    rig.data_port().set_unconfirmed_max(4);
    let received: Vec<_> = (0..6)
        .map(|n| {
            read(&rig.open(&Packet::new(Shape::V4, 40_000 + n)).packet[34..], Format::Experimental).option
        })
        .collect();
    let rate = |r| RateOption::Assigned(Rate::from_bytes_per_sec(r));
    assert_eq!(received, [9, 5, 3, 3, 3, 3].map(|m| rate(m * 1_000_000)));
    let counters = rig.data_port().counters();
    assert_eq!((counters.unconfirmed, counters.refused), (4, 2));
    rig.data_port().set_unconfirmed_max(32);
    rig.grant(&[9_000_000]);
    rig.switch.set_service(DATA, [10, 0, 0, 9].into(), 443, Some(code(2_000_000))).unwrap();
    let known = rig.open(&Packet::new(Shape::V4, 41_000));
    assert_eq!(read(&known.packet[34..], Format::Experimental).option, rate(2_000_000));
}

/// The first eight grants are for one new flow each. The next grant is for eight new flows, and each later grant is for
/// twice as many new flows as the grant before it.
#[test]
fn each_newcomer_of_a_crowd_gets_a_grant_for_at_least_its_number() {
    let Some(rig) = rig() else { return };
    let rates: Vec<u64> = (1..=16).rev().map(|n| n * 100_000).collect();
    rig.grant(&rates);
    rig.data_port().set_unconfirmed_max(100);
    for n in 1..=40_u64 {
        let answer = rig.open(&Packet::new(Shape::V4, 40_000 + n as u16));
        let grant = (0..16).find(|grant| layout::newcomers_up_to(*grant) >= n).unwrap();
        let expected = RateOption::Assigned(Rate::from_bytes_per_sec(rates[grant]));
        assert_eq!(read(&answer.packet[34..], Format::Experimental).option, expected, "newcomer {n}");
    }
    let up_to: Vec<u64> = (6..12).map(layout::newcomers_up_to).collect();
    assert_eq!(up_to, [7, 8, 16, 32, 64, 128]);
}

#[test]
fn a_flood_of_syns_does_not_affect_established_flows() {
    let sizes = Sizes { flows: 16, half_open: 256, ..Sizes::default() };
    let Some(rig) = rig_with(sizes, Tunables::default()) else { return };
    rig.grant(&[1_000_000]);
    let flow = Packet::new(Shape::V4, 40_000);
    rig.open(&flow);
    rig.send(DATA, &flow);
    let mut syn = flow.clone().flags(SYN).options(&[]).bytes();
    for n in 0..200_000u32 {
        syn[26..30].copy_from_slice(&n.to_be_bytes());
        rig.send_bytes(DATA, 0, &syn);
    }
    assert_eq!(rig.data_port().counters().syns, 200_001);
    assert_eq!(rig.switch.slots.live().count(), 1);
    assert!(rig.slot_of(&flow).is_some());
}

#[test]
fn data_without_a_handshake_is_adopted_and_may_show_that_it_uses_brf() {
    let Some(rig) = rig() else { return };
    let plain = Packet::new(Shape::V4, 40_000).payload(10);
    assert_eq!(rig.send(DATA, &plain).priority, PRIORITIES[2]);
    let slot = rig.switch.slots.get(rig.slot_of(&plain).unwrap()).unwrap();
    assert_eq!(slot.flags() & (layout::GUESSED | layout::RATED), layout::GUESSED);
    let marked = [&[0xFD, 2][..], &stamps(1, 2)[2..]].concat();
    assert_eq!(
        rig.send(DATA, &Packet::new(Shape::V6, 40_001).payload(10).options(&marked)).priority,
        PRIORITIES[1]
    );
    let slot = rig.switch.slots.get(rig.slot_of(&Packet::new(Shape::V6, 40_001)).unwrap()).unwrap();
    assert_eq!((slot.marked_unlimited(), slot.marked_limited()), (1, 0));
    assert_ne!(slot.flags() & layout::RATED, 0);
    assert_eq!(rig.data_port().counters().unconfirmed, 2);
    rig.send(ACKS, &plain.reversed().payload(0));
    assert_eq!(rig.data_port().counters().unconfirmed, 1);
}

#[test]
fn each_segment_of_a_super_packet_counts() {
    let Some(rig) = rig() else { return };
    let data = Packet::new(Shape::V4, 40_000).payload(3000);
    rig.send_bytes(DATA, 1448, &data.bytes());
    let slot = rig.switch.slots.get(rig.slot_of(&data).unwrap()).unwrap();
    assert_eq!(slot.bytes(), 3000 + 3 * 52);
}

#[test]
fn without_a_heartbeat_packets_pass_unchanged() {
    let Some(rig) = rig() else { return };
    rig.grant(&[1_000_000]);
    let flow = Packet::new(Shape::V4, 40_000);
    rig.open(&flow);
    let ack = flow.clone().reversed();
    rig.data_port().beat(Time::from_nanos(now().as_nanos().saturating_sub(Span::from_secs(2).as_nanos())));
    assert_eq!(rig.send(ACKS, &ack).packet, ack.bytes());
    assert_eq!(rig.send(DATA, &flow).priority, 0);
    assert_eq!(rig.data_port().counters().watchdog, 1);
    rig.data_port().beat(now());
    assert_ne!(rig.send(ACKS, &ack).packet, ack.bytes());
}

/// Without a slot, a flow's data must not join the queue of flows that apply rates, whatever its options claim.
#[test]
fn claims_without_a_slot_have_no_effect() {
    let Some(rig) = rig() else { return };
    let marked = [&[0xFD, 2][..], &stamps(1, 2)[2..]].concat();
    let claim = |flags, payload| {
        let packet = Packet::new(Shape::V4, 40_000).flags(flags).options(&marked).payload(payload);
        rig.send(DATA, &packet).priority
    };
    for flags in [RST, RST | ACK, SYN | ACK] {
        assert_eq!(claim(flags, 1000), PRIORITIES[2], "flags {flags:#x}");
    }
    assert_eq!(claim(ACK, 0), PRIORITIES[1], "an ACK of data in the other direction");
    assert_eq!(rig.switch.slots.live().count(), 0);
}

/// A bridge also forwards bytes that follow a datagram in its frame. These bytes take time on the link, so they count.
#[test]
fn a_trailer_is_counted_and_padding_is_not() {
    let Some(rig) = rig() else { return };
    let data = Packet::new(Shape::V4, 40_000).payload(100);
    let mut long = data.bytes();
    let datagram = long.len() as u64 - 14;
    rig.send_bytes(DATA, 0, &long);
    long.resize(1400, 0);
    rig.send_bytes(DATA, 0, &long);
    let slot = rig.switch.slots.get(rig.slot_of(&data).unwrap()).unwrap();
    assert_eq!(slot.bytes(), datagram + 1400 - 14);

    rig.data_port().set_mode(layout::MODE_CONTROLLED | layout::MODE_POLICE_UDP);
    rig.data_port().set_udp(Rate::from_bytes_per_sec(1), Bytes::new(100));
    let mut udp = Packet::new(Shape::V4, 40_001).options(&[]).payload(0).bytes();
    udp[23] = 17;
    let padded = [udp.clone(), vec![0; 60 - udp.len()]].concat();
    let verdicts = [padded.clone(), padded, udp].map(|frame| rig.send_bytes(DATA, 0, &frame).verdict);
    assert_eq!(verdicts, [PASS, PASS, DROP], "40 bytes each, of 100");
}

#[test]
fn udp_is_limited_to_its_burst() {
    let Some(rig) = rig() else { return };
    rig.data_port().set_mode(layout::MODE_CONTROLLED | layout::MODE_POLICE_UDP);
    rig.data_port().set_udp(Rate::from_bytes_per_sec(1), Bytes::new(1000));
    let mut udp = Packet::new(Shape::V4, 40_000).payload(60).bytes();
    udp[23] = 17;
    let size = (udp.len() - 14) as u64;
    let verdicts: Vec<i32> = (0..20).map(|_| rig.send_bytes(DATA, 0, &udp).verdict).collect();
    let passed = verdicts.iter().filter(|v| **v == PASS).count() as u64;
    // At one byte per second, no token arrives during the test.
    assert_eq!(passed, 1000 / size);
    assert!(verdicts[passed as usize..].iter().all(|v| *v == DROP));
    let counters = rig.data_port().counters();
    assert_eq!((counters.udp_policed, counters.arrived_packets[3]), (20 - passed, 20));
}

/// A five-tuple always selects the same queue. Over many five-tuples, all queues are equally likely.
#[test]
fn udp_flows_have_queues_of_their_own() {
    let Some(rig) = rig() else { return };
    for (shape, protocol) in [(Shape::V4, 23), (Shape::V6, 20), (Shape::Vlan, 27)] {
        let mut flows = [0; UDP_QUEUES as usize];
        for port in 0..1_000 {
            let mut udp = Packet::new(shape, 40_000 + port).payload(60).bytes();
            udp[protocol] = 17;
            let queues = [(); 2].map(|()| rig.send_bytes(DATA, 0, &udp).priority - PRIORITIES[3]);
            assert_eq!(queues[0], queues[1], "{shape:?}");
            flows[queues[0] as usize] += 1;
        }
        // A queue is expected to get 31 flows. A binomially distributed number is outside these bounds in one of a
        // million runs.
        assert!(flows.iter().all(|n| (5..65).contains(n)), "{shape:?}: {flows:?}");
    }
}

/// Returns a SYN without data. Its IP datagram has 60 bytes.
fn syn(sport: u16) -> Packet {
    Packet::new(Shape::V4, sport).flags(SYN).options(SYN_OPTIONS)
}

#[test]
fn syns_are_limited_to_their_burst_and_a_repeated_one_passes() {
    let Some(rig) = rig() else { return };
    rig.data_port().set_mode(layout::MODE_CONTROLLED | layout::MODE_POLICE_SYN);
    rig.data_port().set_syn(Rate::from_bytes_per_sec(1), Bytes::new(640));
    let verdict = |port, packet: &Packet| rig.send(port, packet).verdict;
    let verdicts: Vec<i32> = (0..20).map(|n| verdict(DATA, &syn(40_000 + n))).collect();
    // The eleventh SYN takes the remaining 40 tokens and owes 20 more. These 20 tokens take 20 seconds to arrive.
    assert_eq!(verdicts, [[PASS; 11].as_slice(), &[DROP; 9]].concat());
    let counters = rig.data_port().counters();
    assert_eq!((counters.syns, counters.syn_policed, counters.arrived_packets[2]), (11, 9, 11));
    // The dropped SYN has left no state, so the SYN-ACK that answers it gets no rate.
    rig.grant(&[1_000_000]);
    rig.send(ACKS, &syn(40_015).reversed().flags(SYN | ACK));
    assert_eq!(rig.slot_of(&syn(40_015)), None);
    // Packets that are not SYNs pass. At a port without the limit, a SYN also passes.
    assert_eq!(verdict(DATA, &syn(40_030).flags(SYN | ACK)), PASS);
    assert_eq!(verdict(DATA, &syn(40_000).flags(ACK).payload(100)), PASS);
    assert_eq!(verdict(ACKS, &syn(40_030)), PASS);

    std::thread::sleep(std::time::Duration::from_millis(600));
    assert_eq!(verdict(DATA, &syn(40_015)), PASS, "it is repeated");
    assert_eq!(verdict(DATA, &syn(40_015)), DROP, "but not any number of times");
    assert_eq!(verdict(DATA, &syn(40_031)), DROP, "it is new");
    assert!(rig.data_port().counters().syn_policed >= 10);
    assert_eq!(rig.data_port().counters().syns, 12);
}

#[test]
fn a_long_syn_passes_as_easily_as_a_short_one() {
    let Some(rig) = rig() else { return };
    rig.data_port().set_mode(layout::MODE_CONTROLLED | layout::MODE_POLICE_SYN);
    rig.data_port().set_syn(Rate::from_bytes_per_sec(1), Bytes::new(41));
    let short = syn(40_000).options(&[]);
    assert_eq!(rig.send(DATA, &short).verdict, PASS);
    assert_eq!(rig.send(DATA, &syn(40_001).options(&[1; 40])).verdict, PASS, "one byte is left");
    assert_eq!(rig.send(DATA, &short).verdict, DROP);
}

struct Bpffs(tempfile::TempDir);

impl Drop for Bpffs {
    fn drop(&mut self) {
        let _ = nix::mount::umount2(self.0.path(), nix::mount::MntFlags::MNT_DETACH);
    }
}

#[test]
fn a_pinned_program_keeps_its_ports_and_drops_its_services() {
    let Some(rig) = rig() else { return };
    let bpffs = Bpffs(tempfile::tempdir().unwrap());
    let flags = nix::mount::MsFlags::empty();
    nix::mount::mount(Some("none"), bpffs.0.path(), Some("bpf"), flags, None::<&str>).unwrap();
    let folder = bpffs.0.path().join("sw");
    rig.switch.pin(&folder).unwrap();
    // If an agent died before it had made all its pins, the existing pins do not prevent a start.
    std::fs::remove_file(folder.join("program")).unwrap();
    rig.switch.pin(&folder).unwrap();
    rig.grant(&[9_000_000]);
    let received = |rig: &Rig, sport| {
        read(&rig.open(&Packet::new(Shape::V4, sport)).packet[34..], Format::Experimental).option
    };
    let rate = |r| RateOption::Assigned(Rate::from_bytes_per_sec(r));
    rig.switch.set_service(DATA, [10, 0, 0, 9].into(), 443, Some(code(2_000_000))).unwrap();
    assert_eq!(received(&rig, 40_000), rate(2_000_000));

    let taken = Rig { switch: Switch::open_pinned(&folder).unwrap(), ifindex: rig.ifindex };
    // Only the first interface is listed, because the port of the other interface is not controlled.
    assert_eq!(taken.switch.controlled().unwrap().into_iter().collect::<Vec<_>>(), [(DATA, rig.ifindex[0])]);
    assert_eq!(received(&taken, 40_001), rate(9_000_000));
    assert_eq!(taken.switch.slots.live().count(), 2);
}
