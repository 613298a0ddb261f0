//! Tests a switch with BDR. The switch counts designated packets, gives all flows the same rate, and has no entry for
//! any flow.

use narrows_agent::dataplane::layout::{self, whole_reports};
use narrows_agent::dataplane::program::Sizes;
use narrows_control::feedback::code::RateCode;
use narrows_control::feedback::option::{Format, read};
use narrows_control::feedback::report::OptionReport;
use narrows_control::rate::RateOption;
use narrows_control::units::{Rate, Span};

use crate::rig::*;

/// The code in the SYN of a sender that designates packets.
const DESIGNATES: u16 = RateCode::DESIGNATES.to_bits();
const COMMON: u64 = 1_250_000;

fn stateless() -> Option<Rig> {
    let rig = rig_with(Sizes::STATELESS, Default::default())?;
    rig.data_port().set_mode(layout::MODE_CONTROLLED);
    rig.data_port().set_report_max(Span::from_secs(2));
    rig.data_port().set_common(code(COMMON));
    rig.grant(&[2_000_000, 1_000_000]);
    Some(rig)
}

fn report(millis: u64, segments: u8) -> OptionReport {
    OptionReport { first: false, fin: false, segments, lived: Span::from_millis(millis) }
}

/// Returns TCP options with the mark of a sender that applies rates, timestamps, and the report, if any.
fn marked(report: Option<OptionReport>) -> Vec<u8> {
    let mut options = stamps(10, 20);
    options[..2].copy_from_slice(&[253, 2]);
    options.extend(report.into_iter().flat_map(OptionReport::to_option));
    options
}

/// Returns the sum of reported times in us, and the numbers of reports, first reports and SYNs.
fn counted(rig: &Rig) -> (u64, u64, u64, u64) {
    let c = rig.data_port().counters();
    (c.reported_ns / 1000, whole_reports(c.reports), whole_reports(c.first_reports), c.designating_syns)
}

fn rate_of(packet: &[u8]) -> RateOption {
    read(&packet[34..], Format::Experimental).option
}

/// Sends an ACK of this flow that arrived at the interface of the data port. Returns the rate in the ACK that the
/// program forwards.
fn ack_rate(rig: &Rig, flow: &Packet) -> RateOption {
    let tried = rig.send_from(rig.ifindex[usize::from(DATA)], ACKS, &flow.clone().reversed());
    assert_eq!(tried.verdict, PASS);
    rate_of(&tried.packet)
}

fn assigned(rate: u64) -> RateOption {
    RateOption::Assigned(Rate::from_bytes_per_sec(rate))
}

fn syn(flow: &Packet, value: u16) -> Packet {
    flow.clone().flags(SYN).options(&[SYN_OPTIONS, &option(value)].concat())
}

#[test]
fn the_reports_of_a_flow_add_up_to_its_lifetime() {
    let Some(rig) = stateless() else { return };
    let flow = Packet::new(Shape::V4, 40_000).payload(1000);
    // Test vector TV-D8: the SYN, data 0.1 s and 0.2 s after the SYN, and the FIN 0.3 s after the SYN.
    rig.send(DATA, &syn(&flow, DESIGNATES).payload(0));
    let first = OptionReport { first: true, ..report(100, 1) };
    for said in [first, report(100, 1), OptionReport { fin: true, ..report(100, 1) }] {
        assert_eq!(rig.send(DATA, &flow.clone().options(&marked(Some(said)))).priority, PRIORITIES[1]);
    }
    assert_eq!(counted(&rig), (300_000, 3, 1, 1));
}

/// The segments of a designated packet count as one report, whether the switch sees one super-packet or several
/// packets. Each segment adds an equal part of the reported time, and rounding loses at most 1 ns per segment.
#[test]
fn segments_of_a_designated_packet_are_one_report() {
    for (segments, together) in [(3, 1), (3, 3), (4, 2), (45, 1), (45, 15), (45, 45), (255, 1), (255, 255)] {
        let Some(rig) = stateless() else { return };
        let said = OptionReport { first: true, ..report(2, segments) };
        let flow =
            Packet::new(Shape::V4, 40_000).options(&marked(Some(said))).payload(8 * usize::from(together));
        for _ in 0..segments / together {
            rig.send_bytes(DATA, if together > 1 { 8 } else { 0 }, &flow.bytes());
        }
        let counters = rig.data_port().counters();
        let lost = 2_000_000 - counters.reported_ns;
        assert!(lost <= u64::from(segments), "{segments} {together}: {lost} ns");
        assert_eq!((counted(&rig).1, counted(&rig).2), (1, 1), "{segments} {together}");
        let packets = counters.arrived_packets[1];
        assert_eq!(packets, u64::from(segments), "the program counts the segments of a super-packet");
    }
}

/// Senders mark only data, so a FIN without data has no mark. Its report counts if the flow has designated a packet
/// earlier.
#[test]
fn the_report_of_a_fin_without_data_counts() {
    let Some(rig) = stateless() else { return };
    let flow = Packet::new(Shape::V4, 40_000);
    let last = OptionReport { fin: true, ..report(50, 1) };
    let unmarked = [&stamps(10, 20)[..], &last.to_option()].concat();
    let fin = flow.clone().flags(FIN | ACK).options(&unmarked);
    rig.send(DATA, &flow.clone().payload(1000).options(&marked(Some(report(100, 1)))));
    assert_eq!(rig.send(DATA, &fin).priority, PRIORITIES[1], "it follows the data of its flow");
    assert_eq!(counted(&rig), (150_000, 2, 0, 0));
    // The report of an ACK without data does not count. The report of a FIN does not count if its flow has designated
    // no packet earlier.
    rig.send(DATA, &flow.clone().options(&unmarked));
    let other = Packet::new(Shape::V4, 40_001).flags(FIN | ACK).options(&unmarked);
    assert_eq!(rig.send(DATA, &other).priority, PRIORITIES[2]);
    assert_eq!(counted(&rig), (150_000, 2, 0, 0));
}

#[test]
fn a_switch_that_keeps_flows_counts_no_reports_and_has_no_common_rate() {
    let Some(rig) = rig() else { return };
    rig.data_port().set_mode(layout::MODE_CONTROLLED);
    rig.data_port().set_report_max(Span::from_secs(2));
    rig.data_port().set_common(code(COMMON));
    let flow = Packet::new(Shape::V4, 40_000);
    rig.send(DATA, &flow.clone().options(&marked(Some(report(20, 1)))).payload(1000));
    assert_eq!(counted(&rig), (0, 0, 0, 0));
    assert_eq!(ack_rate(&rig, &flow), RateOption::Absent);
}

#[test]
fn acks_of_designating_flows_get_the_common_rate_and_all_others_pass_unchanged() {
    let Some(rig) = stateless() else { return };
    let flow = Packet::new(Shape::V4, 40_000);
    let other = Packet::new(Shape::V4, 40_001);
    assert_eq!(ack_rate(&rig, &flow), RateOption::Absent);
    rig.send(DATA, &flow.clone().options(&marked(Some(report(20, 1)))).payload(1000));
    assert_eq!(ack_rate(&rig, &flow), assigned(COMMON));
    assert_eq!(ack_rate(&rig, &other), RateOption::Absent);
    // An ACK that arrives at another interface belongs to data of another port.
    let elsewhere = rig.send_from(rig.ifindex[usize::from(ACKS)], ACKS, &flow.clone().reversed());
    assert_eq!(elsewhere.packet, flow.clone().reversed().bytes());
    // If the ACK already has a rate, the smaller rate stays (BRF-61).
    for (there, leaves) in
        [(code(900_000), 900_000), (code(9_000_000), COMMON), (RateCode::UNASSIGNED, COMMON)]
    {
        let ack = flow.clone().reversed().options(&[&stamps(1, 2)[..], &option(there.to_bits())].concat());
        let tried = rig.send_from(rig.ifindex[usize::from(DATA)], ACKS, &ack);
        assert!(checksums_are_correct(&tried.packet, ack.offsets()));
        assert_eq!(rate_of(&tried.packet), assigned(leaves));
    }
}

#[test]
fn syn_acks_get_the_grants_of_newcomers() {
    let Some(rig) = stateless() else { return };
    let granted = |sport: u16, value| {
        let flow = Packet::new(Shape::V4, sport);
        rig.send(DATA, &syn(&flow, value));
        let answer = flow.clone().reversed().flags(SYN | ACK).options(SYN_OPTIONS);
        let tried = rig.send_from(rig.ifindex[usize::from(DATA)], ACKS, &answer);
        rate_of(&tried.packet)
    };
    assert_eq!(granted(40_000, DESIGNATES), assigned(2_000_000));
    assert_eq!(granted(40_001, DESIGNATES), assigned(1_000_000));
    // A BRF sender without designated packets also asks for rates. It gets none, because the switch would not count its
    // packets.
    assert_eq!(granted(40_002, 65535), RateOption::Absent);
    assert_eq!(counted(&rig).3, 2);
}

#[test]
fn only_marked_data_of_designating_flows_joins_the_queue_of_rated_flows() {
    let Some(rig) = stateless() else { return };
    let flow = Packet::new(Shape::V4, 40_000).payload(1000);
    let leaf = |packet: &Packet| rig.send(DATA, packet).priority;
    assert_eq!(leaf(&flow.clone().options(&marked(None))), PRIORITIES[2], "no designated packet yet");
    // A sender that has no rate yet sends reports, so that its ACKs get a rate, but does not mark its data.
    let unmarked = [&stamps(10, 20)[..], &report(20, 1).to_option()].concat();
    assert_eq!(leaf(&flow.clone().options(&unmarked)), PRIORITIES[2]);
    assert_eq!(counted(&rig), (0, 0, 0, 0));
    assert_eq!(ack_rate(&rig, &flow.clone().payload(0)), assigned(COMMON));
    assert_eq!(leaf(&flow.clone().options(&marked(None))), PRIORITIES[1]);
    assert_eq!(leaf(&flow), PRIORITIES[2]);
}

/// A host off the path can forge a designated packet, which adds at most two seconds to the sum of times.
#[test]
fn a_forged_report_counts_for_a_limited_time() {
    let Some(rig) = stateless() else { return };
    let flow = Packet::new(Shape::V4, 40_000).payload(1000);
    rig.send(DATA, &flow.clone().options(&marked(Some(report(4_000, 1)))));
    assert_eq!(counted(&rig).0, 2_000_000);
    // Two invalid packets: a report without segments, and a super-packet with more segments than its report states.
    rig.send(DATA, &flow.clone().options(&marked(Some(report(4_000, 0)))));
    rig.send_bytes(DATA, 100, &flow.clone().options(&marked(Some(report(4_000, 1)))).bytes());
    assert_eq!(counted(&rig), (6_000_000, 3, 0, 0));
    // Reports are not read at other ports, nor in options with another length or ExID.
    rig.send(ACKS, &flow.clone().options(&marked(Some(report(100, 1)))));
    for wrong in [[253, 6, 0x4E, 0x44, 0, 1, 1, 1], [253, 8, 0x4E, 0x45, 0, 0x41, 0, 0]] {
        rig.send(DATA, &flow.clone().options(&[marked(None), wrong.to_vec()].concat()));
    }
    rig.send(DATA, &flow.clone().flags(RST | ACK).options(&marked(Some(report(100, 1)))));
    assert_eq!(counted(&rig).0, 6_000_000);
}

/// The agent takes over a pinned data plane only if its maps have room for what the rate controllers need.
#[test]
fn the_maps_show_whether_the_switch_keeps_flows() {
    let (Some(with_bdr), Some(with_flows)) = (stateless(), rig()) else { return };
    assert!(!with_bdr.switch.keeps_flows() && with_flows.switch.keeps_flows());
}

#[test]
fn a_thousand_flows_leave_no_entry() {
    let Some(rig) = stateless() else { return };
    for sport in 40_000..41_000 {
        let flow = Packet::new(Shape::V4, sport);
        rig.send(DATA, &syn(&flow, DESIGNATES));
        rig.send(DATA, &flow.clone().options(&marked(Some(report(20, 1)))).payload(1000));
        assert_eq!(ack_rate(&rig, &flow), assigned(COMMON));
        assert_eq!(rig.slot_of(&flow), None);
    }
    let counters = rig.data_port().counters();
    assert_eq!((counters.no_slot, counters.refused, counters.unconfirmed), (0, 0, 0));
    assert_eq!(counted(&rig), (20_000_000, 1000, 0, 1000));
    assert!(rig.switch.slots.get(0).is_some_and(|slot| !slot.is_live()) && rig.switch.slots.len() == 1);
}
