//! Tests properties of captured packets in random networks. A parser accepts all headers, and sequence numbers form a
//! valid TCP stream.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use narrows_capture::datagram;
use narrows_control::units::{Bytes, Rate, Span, Time};
use narrows_sim::capture::{Captured, Place, Segment, Tap};
use narrows_sim::plan::{AppPlan, CapturePlan, FlowPlan, LimitPlan, LinkPlan, LossPlan, Plan, TransportPlan};
use narrows_sim::{Results, Run};
use proptest::prelude::*;

/// A packet that was parsed from its bytes.
struct Parsed {
    at: Time,
    place: Place,
    payload: u16,
    segment: Segment,
    read: (u32, u32),
}

#[derive(Default)]
struct Parser {
    packets: Vec<Parsed>,
}

impl Tap for Parser {
    fn on_packet(&mut self, p: &Captured<'_>) -> ControlFlow<()> {
        let mut bytes = Vec::new();
        let length = datagram(p, &mut bytes);
        bytes.resize(length, 0);
        assert_eq!(bytes.len(), usize::from(p.size), "the datagram has the packet's size");
        let sliced = SlicedPacket::from_ip(&bytes).expect("a datagram");
        let Some(NetSlice::Ipv4(ip)) = &sliced.net else { panic!("expected IPv4") };
        let header = ip.header().to_header();
        assert_eq!(header.header_checksum, header.calc_header_checksum());
        assert_eq!(header.ecn.value(), p.ecn);
        match (&sliced.transport, p.segment) {
            (Some(TransportSlice::Tcp(tcp)), Some(segment)) => {
                assert_eq!(tcp.payload().len(), usize::from(p.payload));
                let sum = tcp.calc_checksum_ipv4(header.source, header.destination).expect("a checksum");
                assert_eq!(tcp.checksum(), sum);
                assert_eq!(tcp.options_iterator().filter(Result::is_err).count(), 0, "{:?}", tcp.options());
                let read = (tcp.sequence_number(), tcp.acknowledgment_number());
                self.packets.push(Parsed { at: p.at, place: p.place, payload: p.payload, segment, read });
            }
            (Some(TransportSlice::Udp(udp)), None) => {
                assert_eq!(udp.payload().len(), usize::from(p.size) - 28);
            }
            _ => panic!("expected TCP or UDP"),
        }
        ControlFlow::Continue(())
    }
}

#[derive(Clone, Debug)]
struct Network {
    cc: &'static str,
    mbit: u64,
    delay_ms: u64,
    queue: u32,
    loss: f64,
    bytes: u64,
    ecn: bool,
    seed: u64,
}

fn networks() -> impl Strategy<Value = Network> {
    let cc = prop::sample::select(vec!["reno", "cubic", "bbr", "bbr3", "dctcp"]);
    (cc, 1..100u64, 1..40u64, 4..100u32, 0.0..0.05, 1..600_000u64, any::<bool>(), any::<u64>()).prop_map(
        |(cc, mbit, delay_ms, queue, loss, bytes, ecn, seed)| Network {
            cc,
            mbit,
            delay_ms,
            queue,
            loss,
            bytes,
            ecn,
            seed,
        },
    )
}

impl Network {
    fn plan(&self) -> Plan {
        let rate = Rate::from_bits_per_sec(self.mbit * 1_000_000);
        let delay = Span::from_millis(self.delay_ms);
        let mut there = LinkPlan::new("there", (0, 1), rate, delay, LimitPlan::packets(self.queue));
        let mut back = LinkPlan::new("back", (1, 0), rate, delay, LimitPlan::default());
        for link in [&mut there, &mut back] {
            link.loss = vec![(Time::ZERO, LossPlan::Bernoulli { p: self.loss })];
        }
        let mut flow = FlowPlan::bulk("flow", (0, 1), self.cc);
        flow.app = AppPlan::Size { bytes: Bytes::new(self.bytes) };
        if let TransportPlan::Tcp { ecn, .. } = &mut flow.transport {
            *ecn = self.ecn;
        }
        let mut datagrams = FlowPlan::bulk("datagrams", (0, 1), "reno");
        datagrams.transport = TransportPlan::Udp { rate: Rate::from_bits_per_sec(100_000), packet: 300 };
        Plan {
            seed: self.seed,
            duration: Span::from_secs(60),
            nodes: vec!["sender".into(), "receiver".into()],
            links: vec![there, back],
            flows: vec![flow, datagrams],
            capture: Some(CapturePlan { links: vec![0], hosts: vec![0, 1], snap: 65_535, qlog: false }),
            ..Plan::default()
        }
    }
}

fn run(network: &Network) -> (Results, Vec<Parsed>) {
    let mut parser = Parser::default();
    let results = Run::new(&network.plan()).tap(&mut parser).start().expect("a run");
    (results, parser.packets)
}

fn count(results: &Results, column: &str) -> u64 {
    results.table("flows").and_then(|flows| flows.u64(column)).expect("a column")[0]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_bytes_of_a_flow_are_those_of_tcp(network in networks()) {
        let (results, packets) = run(&network);
        let sent: Vec<&Parsed> =
            packets.iter().filter(|p| p.place == Place::Sent(0) && !p.segment.syn).collect();
        // New data continues at the next sequence number. All other segments are retransmissions.
        let mut next = 1;
        let mut lengths = BTreeMap::new();
        let mut again = 0;
        for p in sent.iter().filter(|p| p.payload > 0) {
            let (seq, _) = p.read;
            prop_assert_eq!(seq, p.segment.seq);
            if seq == next {
                next += u32::from(p.payload);
                lengths.insert(seq, p.payload);
            } else {
                again += 1;
                prop_assert_eq!(lengths.get(&seq), Some(&p.payload), "a segment keeps its length");
            }
        }
        prop_assert_eq!(again, count(&results, "retransmits"));
        prop_assert!(u64::from(next - 1) <= network.bytes);
        // Acknowledgement numbers never decrease, and never exceed the data that was sent. A SACK block is above the
        // acknowledgement number, or reports a duplicate.
        let mut acknowledged = 0;
        for p in packets.iter().filter(|p| p.place == Place::Sent(1) && !p.segment.syn) {
            let (_, ack) = p.read;
            prop_assert!(ack >= acknowledged);
            acknowledged = ack;
            for (start, end) in &p.segment.sack[..usize::from(p.segment.sacks)] {
                prop_assert!(start < end && *end <= next + 1);
                prop_assert!(lengths.contains_key(start));
            }
        }
        // A complete flow ends with a FIN from each side, and both FINs are acknowledged.
        if u64::from(next - 1) == network.bytes && packets.iter().any(|p| p.segment.fin) {
            let fins = |place| packets.iter().filter(|p| p.place == place && p.segment.fin).count();
            prop_assert!(fins(Place::Sent(0)) >= 1);
            if let Some(last) = sent.last().filter(|p| p.segment.ack_number == 2) {
                prop_assert_eq!(last.read, (next + 1, 2));
                prop_assert!(!last.segment.fin);
            }
        }
    }

    #[test]
    fn a_capture_does_not_change_the_results(network in networks()) {
        let (captured, _) = run(&network);
        let plan = Plan { capture: None, ..network.plan() };
        let plain = narrows_sim::run(&plan, &AtomicBool::new(false)).expect("a run");
        prop_assert_eq!(format!("{captured:?}"), format!("{plain:?}"));
    }

    #[test]
    fn a_tap_can_end_the_run(network in networks(), most in 1..50usize) {
        struct Few(usize);
        impl Tap for Few {
            fn on_packet(&mut self, _: &Captured<'_>) -> ControlFlow<()> {
                self.0 -= 1;
                if self.0 == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            }
        }
        let mut few = Few(most);
        Run::new(&network.plan()).tap(&mut few).start().expect("a run");
        prop_assert_eq!(few.0, 0);
    }

    #[test]
    fn packets_arrive_after_a_delay_and_in_order(network in networks()) {
        let (_, packets) = run(&network);
        prop_assert!(packets.windows(2).all(|pair| pair[0].at <= pair[1].at));
        let all = |place| packets.iter().filter(move |p| p.place == place);
        prop_assert_eq!(all(Place::Link(0)).count(), all(Place::Received(1)).count());
        prop_assert!(all(Place::Received(1)).count() <= all(Place::Sent(0)).count());
        let first = |place| all(place).map(|p| p.at).next();
        if let (Some(sent), Some(received)) = (first(Place::Sent(0)), first(Place::Received(1))) {
            prop_assert!(received >= sent + Span::from_millis(network.delay_ms));
        }
    }
}
