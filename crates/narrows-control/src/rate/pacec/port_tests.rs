//! Tests of a port alone, without a controller.

use super::harness::{ACK, FIN, MTU, SYN, SYN_ACK, key, mbit, packet};
use super::{PacecPort, Params, Signal};
use crate::rate::aggregate::{Aggregated, Counts, Standing};
use crate::rate::{
    Action, Admission, FlowKey, Leaf, Message, PerFlowController, PortCounters, PortId, Proto, Queueing,
    RateOption, TcpFlags,
};
use crate::units::{Bytes, Rate, Span, Time};

pub(super) const PORT: PortId = 1;
const UNASSIGNED: RateOption = RateOption::Unassigned;

fn ms(n: u64) -> Time {
    Time::ZERO + Span::from_millis(n)
}

struct Port {
    pacec: PacecPort,
    counters: PortCounters,
    actions: Vec<Action>,
}

impl Port {
    fn new(params: Params) -> Self {
        let counters = PortCounters { capacity: Some(mbit(100.0)), ..PortCounters::default() };
        let mut port = Port { pacec: PacecPort::new(params, PORT, MTU), counters, actions: Vec::new() };
        port.pacec.on_start(Time::ZERO, &port.counters, &mut port.actions);
        port.actions.clear();
        port
    }

    fn data(&mut self, at: u64, key: FlowKey, flags: TcpFlags, option: RateOption) -> Leaf {
        let packet = packet(key, MTU, flags, option);
        match self.pacec.on_data(ms(at), &packet, &self.counters, &mut self.actions) {
            Admission::Queue(leaf) => leaf,
            Admission::Drop => panic!("PACEC drops nothing"),
        }
    }

    fn reverse(&mut self, at: u64, n: u32, flags: TcpFlags, option: RateOption) -> Option<Rate> {
        let packet = packet(key(n), Bytes::ZERO, flags, option);
        self.pacec.on_reverse(ms(at), &packet, &mut self.actions)
    }

    fn grant(&mut self, at: u64, n: u32, rate: Rate) {
        self.hear(at, Message::Grants { port: PORT, flows: vec![(key(n), rate)], newcomers: vec![] });
    }

    fn offer(&mut self, at: u64, n: u32, rate: Rate) {
        self.hear(at, Message::Grants { port: PORT, flows: vec![], newcomers: vec![(key(n).daddr, rate)] });
    }

    fn hear(&mut self, at: u64, message: Message) {
        self.pacec.on_message(ms(at), &message, &self.counters, &mut self.actions);
    }

    /// Runs the timers until a time.
    fn until(&mut self, at: u64) {
        while self.pacec.next_timer() <= ms(at) {
            self.pacec.on_timer(self.pacec.next_timer(), &self.counters, &mut self.actions);
        }
    }

    /// Returns the announcements since the last call: (flow, begun, demand).
    fn announced(&mut self) -> Vec<(FlowKey, bool, Option<Rate>)> {
        let announced = |action| match action {
            Action::ToController(Message::Flow { key, begun, demand, .. }) => Some((key, begun, demand)),
            _ => None,
        };
        self.actions.drain(..).filter_map(announced).collect()
    }

    fn told(&mut self) -> Vec<(FlowKey, Rate)> {
        let told = |action| match action {
            Action::ToSource { flow, rate } => Some((flow, rate)),
            _ => None,
        };
        self.actions.drain(..).filter_map(told).collect()
    }
}

fn in_band() -> Params {
    Params { signal: Signal::InBand, ..Params::default() }
}

#[test]
fn reports_every_ts_and_at_once_when_the_capacity_changes() {
    let mut port = Port::new(Params::default());
    port.counters.departed = [Bytes::new(1), Bytes::new(2), Bytes::new(4), Bytes::new(8)];
    port.counters.queued = [Bytes::new(16), Bytes::new(32), Bytes::new(64), Bytes::new(128)];
    port.until(35);
    port.counters.capacity = Some(mbit(10.0));
    port.pacec.on_timer(ms(36), &port.counters, &mut port.actions);
    port.until(40);
    let reports: Vec<_> = port
        .actions
        .iter()
        .map(|action| match action {
            Action::ToController(Message::Report(r)) => {
                (r.at, r.capacity, r.departed.get(), r.rated_departed.get())
            }
            other => panic!("{other:?}"),
        })
        .collect();
    let (fast, slow) = (mbit(100.0), mbit(10.0));
    assert_eq!(
        reports,
        [(10, fast), (20, fast), (30, fast), (36, slow), (40, slow)].map(|(at, c)| (ms(at), c, 15, 3))
    );
    let Some(Action::ToController(Message::Report(report))) = port.actions.last() else { panic!() };
    assert_eq!((report.queued.get(), report.rated_queued.get()), (240, 48));
    assert_eq!(port.pacec.requirements().queueing, Queueing::Own);
}

#[test]
fn a_port_of_unknown_capacity_logs_that_once() {
    let counters = PortCounters::default();
    let (mut pacec, mut actions) = (PacecPort::<FlowKey>::new(Params::default(), 7, MTU), Vec::new());
    pacec.on_start(ms(0), &counters, &mut actions);
    pacec.on_timer(ms(10), &counters, &mut actions);
    assert_eq!(actions, [Action::Log { event: "no-capacity-told", flow: None, value: 7.0 }]);
}

#[test]
fn pac_21_a_flow_is_from_syn_to_fin_or_rst_or_a_second_of_silence() {
    let rst = TcpFlags { rst: true, ..ACK };
    for (last, ended) in [(FIN, 20), (rst, 20)] {
        let mut port = Port::new(Params::default());
        assert_eq!(port.data(0, key(1), SYN, UNASSIGNED), Leaf::Elephant);
        assert_eq!(port.data(1, key(1), SYN, UNASSIGNED), Leaf::Elephant);
        assert_eq!(port.announced(), [(key(1), true, None)], "once");
        port.data(ended, key(1), last, RateOption::Absent);
        assert_eq!(port.announced(), [(key(1), false, None)]);
        assert_eq!(port.data(ended + 1, key(1), ACK, UNASSIGNED), Leaf::Elephant, "a retransmission");
        assert_eq!((port.announced(), port.pacec.allocation(&key(1))), (vec![], None));
    }
    let mut port = Port::new(Params::default());
    port.data(0, key(1), SYN, UNASSIGNED);
    port.data(30, key(1), ACK, RateOption::Absent);
    port.announced();
    port.until(1049);
    assert_eq!(port.announced(), [(key(1), true, None)], "the flow is announced every second");
    port.until(1050);
    assert_eq!(port.announced(), [(key(1), false, None)]);
    assert_eq!(port.reverse(1060, 1, rst, RateOption::Absent), None);
}

#[test]
fn a_flow_without_a_seen_syn_begins_with_its_first_rated_packet() {
    let mut port = Port::new(Params::default());
    assert_eq!(port.data(0, key(1), ACK, RateOption::Absent), Leaf::OtherTcp);
    assert_eq!(port.announced(), []);
    assert_eq!(port.data(1, key(1), ACK, UNASSIGNED), Leaf::Elephant);
    assert_eq!(port.data(2, key(1), ACK, RateOption::Absent), Leaf::Elephant);
    assert_eq!(port.announced(), [(key(1), true, None)]);
    // The sender keeps its earlier rate until the controller answers.
    assert_eq!(port.pacec.allocation(&key(1)), None);
    assert_eq!(port.reverse(3, 1, ACK, UNASSIGNED), None);
}

#[test]
fn other_flows_are_background() {
    let mut port = Port::new(Params::default());
    assert_eq!(port.data(0, key(1), SYN, RateOption::Absent), Leaf::OtherTcp);
    assert_eq!(port.data(1, key(1), ACK, RateOption::Absent), Leaf::OtherTcp);
    let udp = FlowKey { proto: Proto::Udp, ..key(2) };
    assert_eq!(port.data(1, udp, TcpFlags::default(), RateOption::Absent), Leaf::Udp);
    // ACKs and SYN-ACKs of flows in the opposite direction are not data of this direction.
    assert_eq!(port.data(2, key(3), SYN_ACK, UNASSIGNED), Leaf::OtherTcp);
    let ack = packet(key(3), Bytes::ZERO, ACK, UNASSIGNED);
    let admission = port.pacec.on_data(ms(2), &ack, &port.counters, &mut port.actions);
    assert_eq!(admission, Admission::Queue(Leaf::OtherTcp));
    // The first flow follows rates. A later flow with the same addresses and ports does not follow rates.
    port.data(3, key(4), SYN, UNASSIGNED);
    assert_eq!(port.data(4, key(4), SYN, RateOption::Absent), Leaf::OtherTcp);
    assert_eq!(port.data(5, key(4), ACK, RateOption::Absent), Leaf::OtherTcp);
    assert_eq!(port.announced(), [(key(4), true, None), (key(4), false, None)]);
}

#[test]
fn pac_22_the_syn_ack_carries_the_initial_grant() {
    for params in [Params::default(), in_band()] {
        let mut port = Port::new(params);
        port.data(0, key(1), SYN, UNASSIGNED);
        assert_eq!(port.reverse(1, 1, SYN_ACK, UNASSIGNED), Some(mbit(0.48)), "the floor");
        port.offer(10, 2, mbit(30.0));
        port.data(20, key(2), SYN, UNASSIGNED);
        port.data(20, key(102), SYN, UNASSIGNED);
        assert_eq!(port.reverse(21, 2, SYN_ACK, RateOption::Absent), None);
        assert_eq!(port.reverse(21, 2, SYN_ACK, UNASSIGNED), Some(mbit(30.0)));
        assert_eq!(port.reverse(22, 2, SYN_ACK, UNASSIGNED), Some(mbit(30.0)), "repeated");
        assert_eq!(
            port.reverse(22, 102, SYN_ACK, UNASSIGNED),
            Some(mbit(0.48)),
            "the first newcomer has taken the whole rate"
        );
        assert_eq!(port.pacec.allocation(&key(2)), Some(mbit(30.0)));
        port.offer(30, 2, mbit(30.0));
        port.data(530, key(202), SYN, UNASSIGNED);
        assert_eq!(
            port.reverse(531, 202, SYN_ACK, UNASSIGNED),
            Some(mbit(0.48)),
            "the rate for newcomers is too old"
        );
        assert!(port.told().is_empty());
    }
}

#[test]
fn out_of_band_a_source_gets_each_change() {
    let mut port = Port::new(Params::default());
    port.data(0, key(1), SYN, UNASSIGNED);
    port.actions.clear();
    for (at, rate) in [(50, 40.0), (100, 40.0), (150, 49.0), (400, 49.0)] {
        port.grant(at, 1, mbit(rate));
    }
    assert_eq!(port.told(), [40.0, 49.0].map(|rate| (key(1), mbit(rate))));
    assert_eq!(port.reverse(1160, 1, ACK, UNASSIGNED), None);
    assert_eq!(port.pacec.allocation(&key(1)), Some(mbit(49.0)));
    port.grant(1200, 5, mbit(1.0));
    assert_eq!(port.pacec.allocation(&key(5)), None);
}

/// PAC-4: for any Tc, the source gets its rate twice a second. The port stops this when the controller has been silent
/// for two seconds or ten periods, whichever is longer.
#[test]
fn out_of_band_the_ingress_repeats_a_rate_without_news() {
    for (sample, abandoned) in [(2, 2_000), (10, 2_000), (400, 20_000)] {
        let mut port = Port::new(Params { sample: Span::from_millis(sample), ..Params::default() });
        port.data(0, key(1), SYN, UNASSIGNED);
        port.data(0, key(2), SYN, UNASSIGNED);
        port.data(0, key(3), SYN, UNASSIGNED);
        port.grant(1, 1, mbit(40.0));
        port.grant(1, 3, Rate::MAX);
        port.actions.clear();
        for at in (100..=abandoned + 2_000).step_by(100) {
            (1..4).for_each(|n| _ = port.data(at, key(n), ACK, RateOption::Absent));
            port.until(at);
        }
        // Flow 2 has no rate from the controller, and flow 3 begins at another port.
        assert_eq!(port.told(), vec![(key(1), mbit(40.0)); abandoned as usize / 500], "Ts = {sample} ms");
    }
}

#[test]
fn in_band_a_rate_is_written_every_tenth_of_a_second_if_tc_is_longer() {
    let mut port = Port::new(Params { sample: Span::from_millis(400), ..in_band() });
    port.data(0, key(1), SYN, UNASSIGNED);
    port.grant(1, 1, mbit(40.0));
    let written: Vec<u64> = (1..400).filter(|at| port.reverse(*at, 1, ACK, UNASSIGNED).is_some()).collect();
    assert_eq!(written, [1, 101, 201, 301]);
    assert_eq!(decided(&mut port, 401, 1).unwrap().2, Span::from_millis(100));
}

#[test]
fn in_band_once_per_tc_and_the_smaller_value_stands() {
    let mut port = Port::new(in_band());
    port.data(0, key(1), SYN, UNASSIGNED);
    port.grant(1, 1, mbit(40.0));
    let written: Vec<u64> = (1..200).filter(|at| port.reverse(*at, 1, ACK, UNASSIGNED).is_some()).collect();
    assert_eq!(written, [1, 51, 101, 151]);
    assert_eq!(port.reverse(202, 1, ACK, UNASSIGNED), Some(mbit(40.0)));
    port.pacec.on_write_failed(&key(1));
    assert_eq!(port.reverse(203, 1, ACK, UNASSIGNED), Some(mbit(40.0)));
    assert_eq!(
        port.reverse(204, 1, ACK, RateOption::Assigned(mbit(50.0))),
        Some(mbit(40.0)),
        "the gate does not delay a lower value"
    );
    assert_eq!(port.reverse(300, 1, ACK, RateOption::Assigned(mbit(39.0))), None);
    assert_eq!(port.reverse(301, 1, ACK, UNASSIGNED), Some(mbit(40.0)));
    assert!(port.told().is_empty());
}

#[test]
fn a_flow_that_begins_elsewhere_is_not_limited() {
    for params in [Params::default(), in_band()] {
        let mut port = Port::new(params);
        port.data(0, key(1), SYN, UNASSIGNED);
        port.grant(5, 1, Rate::MAX);
        assert!(port.told().is_empty());
        assert_eq!(port.reverse(6, 1, SYN_ACK, UNASSIGNED), None);
        assert_eq!(port.data(7, key(1), ACK, RateOption::Absent), Leaf::Elephant);
        assert_eq!(port.pacec.allocation(&key(1)), None);
        port.data(8, key(1), FIN, RateOption::Absent);
        assert_eq!(port.announced(), []);
    }
}

#[test]
fn where_no_flow_begins_nothing_is_announced_or_written_but_flows_are_known() {
    let mut port = Port::new(Params { edge: false, ..in_band() });
    assert_eq!(port.data(0, key(1), SYN, UNASSIGNED), Leaf::Elephant);
    assert_eq!(port.reverse(1, 1, SYN_ACK, UNASSIGNED), None);
    assert_eq!(port.data(2, key(1), ACK, RateOption::Absent), Leaf::Elephant);
    assert_eq!(port.reverse(3, 1, ACK, UNASSIGNED), None);
    port.until(2000);
    assert_eq!(port.announced(), []);
}

#[test]
fn a_flow_that_uses_less_requests_less() {
    let mut port = Port::new(Params::default());
    port.data(0, key(1), SYN, UNASSIGNED);
    port.data(0, key(2), SYN, UNASSIGNED);
    for n in [1, 2] {
        // The grant allows six packets in 50 ms.
        port.grant(1, n, Rate::from_bytes_per_sec(180_000));
    }
    port.announced();
    for at in (5..300).step_by(5) {
        port.until(at);
        if at % 50 == 25 {
            port.data(at, key(1), ACK, RateOption::Absent);
        }
        port.data(at, key(2), ACK, RateOption::Absent);
    }
    // The flow uses 30,000 B/s. The announced demand is the floor, because 1.1 times this use is below the floor.
    assert_eq!(port.announced(), [(key(1), true, Some(Rate::from_bytes_per_sec(60_000)))]);
    port.hear(300, Message::Poll);
    let announced = port.announced();
    assert_eq!(announced.len(), 2);
    assert!(announced.contains(&(key(2), true, None)), "{announced:?}");
}

#[test]
fn a_flow_that_resumes_after_a_pause_begins_again() {
    let mut port = Port::new(Params::default());
    port.data(0, key(1), SYN, UNASSIGNED);
    port.data(1, key(1), ACK, RateOption::Absent);
    port.grant(1, 1, mbit(90.0));
    port.until(1100);
    port.offer(1100, 1, mbit(5.0));
    port.actions.clear();
    assert_eq!(port.data(1120, key(1), ACK, RateOption::Absent), Leaf::Elephant);
    assert_eq!(port.actions.len(), 2);
    assert_eq!(port.actions[1], Action::ToSource { flow: key(1), rate: mbit(5.0) });
    assert_eq!(port.announced(), [(key(1), true, None)]);
    port.until(70_000);
    assert_eq!(port.data(70_000, key(1), ACK, RateOption::Absent), Leaf::OtherTcp, "forgotten");
}

#[test]
fn the_same_addresses_and_ports_again_are_a_new_flow() {
    let mut port = Port::new(Params::default());
    port.data(0, key(1), SYN, UNASSIGNED);
    port.grant(50, 1, mbit(90.0));
    port.announced();
    port.data(100, key(1), SYN, UNASSIGNED);
    assert_eq!(port.announced(), [(key(1), false, None), (key(1), true, None)]);
    assert_eq!(port.pacec.allocation(&key(1)), Some(mbit(0.48)));
}

#[test]
fn a_syn_without_data_is_not_kept_and_silent_flows_make_room() {
    let mut port = Port::new(Params { max_flows: 2, ..Params::default() });
    port.data(0, key(1), SYN, UNASSIGNED);
    port.data(0, key(2), SYN, UNASSIGNED);
    port.data(10, key(2), ACK, RateOption::Absent);
    port.until(1010);
    assert_eq!(port.data(1010, key(1), ACK, RateOption::Absent), Leaf::OtherTcp);
    port.data(1010, key(3), SYN, UNASSIGNED);
    port.announced();
    port.until(1100);
    port.data(1100, key(4), SYN, UNASSIGNED);
    assert_eq!(port.announced(), [(key(2), false, None), (key(4), true, None)]);
}

#[test]
fn with_a_full_table_packets_are_classified_by_their_contents() {
    let mut port = Port::new(Params { max_flows: 1, ..Params::default() });
    port.data(0, key(1), SYN, UNASSIGNED);
    assert_eq!(port.data(1, key(2), SYN, UNASSIGNED), Leaf::Elephant);
    assert_eq!(port.data(2, key(2), ACK, UNASSIGNED), Leaf::Elephant);
    assert_eq!(port.data(3, key(2), ACK, RateOption::Absent), Leaf::OtherTcp);
    assert_eq!(port.announced(), [(key(1), true, None)]);
    assert_eq!(port.reverse(4, 2, SYN_ACK, UNASSIGNED), None);
}

/// Returns the decision on a flow: its rate, its leaf, and the time between two writes.
fn decided(port: &mut Port, at: u64, n: u32) -> Option<(Option<Rate>, Leaf, Span)> {
    let of = &mut port.pacec;
    let handle = of.handle(&key(n))?;
    of.decide(ms(at), handle).map(|d| (d.rate, d.leaf, d.rtt))
}

fn counted(port: &mut Port, at: u64, n: u32, bytes: u64) -> Standing {
    let counts = Counts { since: ms(at.saturating_sub(10)), bytes: Bytes::new(bytes), ..Counts::default() };
    let Port { pacec, actions, .. } = port;
    let handle = Aggregated::handle(pacec, &key(n)).unwrap();
    pacec.on_counts(ms(at), handle, &counts, actions)
}

#[test]
fn counts_replace_packets() {
    let (mut port, tc) = (Port::new(in_band()), Params::default().period());
    port.data(0, key(1), SYN, UNASSIGNED);
    port.reverse(10, 1, SYN_ACK, UNASSIGNED);
    let floor = Params::default().floor(MTU);
    assert_eq!(decided(&mut port, 10, 1), Some((Some(floor), Leaf::Elephant, tc)));
    let version = port.pacec.version();
    port.grant(20, 1, mbit(40.0));
    assert_ne!(port.pacec.version(), version, "the data plane must ask for all decisions again");
    port.grant(70, 1, mbit(40.0));
    assert_eq!(port.pacec.version(), version + 1, "no rate has changed since");
    assert_eq!(decided(&mut port, 70, 1), Some((Some(mbit(40.0)), Leaf::Elephant, tc)));
    // The flow uses half of its rate, 20 Mbit/s.
    port.announced();
    for at in (80..=400).step_by(10) {
        port.until(at - 1);
        assert_eq!(counted(&mut port, at, 1, 25_000), Standing::Same);
    }
    port.until(500);
    let demands: Vec<_> = port.announced().into_iter().map(|(_, _, demand)| demand).collect();
    assert_eq!(demands, [Some(mbit(22.0))]);
    // The flow is silent for a second, and then sends data.
    port.until(1_399);
    port.announced();
    port.until(1_400);
    assert_eq!(port.announced(), [(key(1), false, None)]);
    assert_eq!(counted(&mut port, 1_500, 1, 1_500), Standing::Changed);
    assert_eq!(port.announced(), [(key(1), true, None)]);
    assert_eq!(decided(&mut port, 1_500, 1), Some((Some(floor), Leaf::Elephant, tc)));
    port.grant(1_510, 1, Rate::MAX);
    assert_eq!(
        decided(&mut port, 1_510, 1),
        Some((None, Leaf::Elephant, tc)),
        "the flow begins at another port"
    );
    let handle = port.pacec.handle(&key(1)).unwrap();
    port.data(1_520, key(1), FIN, RateOption::Absent);
    port.until(3_000);
    assert_eq!(port.pacec.decide(ms(3_000), handle), None);
    let standing = port.pacec.on_counts(ms(3_000), handle, &Counts::default(), &mut port.actions);
    assert_eq!(standing, Standing::Gone);
}

/// PAC-22: the port grants a rate before the controller knows the flow.
#[test]
fn the_first_newcomer_gets_the_rest_and_others_the_floor() {
    let mut port = Port::new(in_band());
    let floor = Params::default().floor(MTU);
    for (n, rate) in [(1, 30.0), (2, 10.0)] {
        let newcomers = vec![(key(n).daddr, mbit(rate)), (key(9).daddr, mbit(50.0))];
        port.hear(n.into(), Message::Grants { port: PORT, flows: vec![], newcomers });
    }
    let grant =
        |port: &Port, n: Option<u32>, newcomers| port.pacec.grant(n.map(key).as_ref(), newcomers).unwrap();
    assert_eq!([1, 2, 3].map(|n| grant(&port, None, n)), [mbit(10.0), floor, floor]);
    assert_eq!([2, 9, 5].map(|n| grant(&port, Some(n), 1)), [mbit(10.0), mbit(50.0), floor]);
    port.data(3, key(9), SYN, UNASSIGNED);
    assert_eq!(port.pacec.allocation(&key(9)), Some(mbit(50.0)));
    assert_eq!(
        [1, 2].map(|n| grant(&port, None, n)),
        [floor, floor],
        "the first newcomer has taken the whole rate"
    );
    let inner = Port::new(Params { edge: false, ..in_band() });
    assert_eq!(inner.pacec.grant(None, 1), None);
    let words_for_other_ports =
        Message::Grants { port: 7, flows: vec![(key(9), mbit(1.0))], newcomers: vec![] };
    port.hear(4, words_for_other_ports);
    assert_eq!(port.pacec.allocation(&key(9)), Some(mbit(50.0)));
}

#[test]
fn in_band_a_port_falls_silent_two_seconds_after_its_controller() {
    let mut port = Port::new(in_band());
    port.data(0, key(1), SYN, UNASSIGNED);
    port.grant(100, 1, mbit(40.0));
    let mut told = |at| {
        // Pass data, because otherwise the flow would end.
        port.data(at - 1, key(1), ACK, RateOption::Absent);
        port.until(at);
        let newcomer = port.pacec.grant(None, 1).is_some();
        (decided(&mut port, at, 1).unwrap().0, newcomer, port.reverse(at, 1, ACK, UNASSIGNED))
    };
    let rate = Some(mbit(40.0));
    for at in [500, 1_000, 1_500, 2_000] {
        assert_eq!(told(at), (rate, true, rate));
    }
    assert_eq!(told(2_110), (None, false, None));
    assert_eq!(told(2_900), (None, false, None));
    port.grant(3_000, 1, mbit(30.0));
    assert_eq!(decided(&mut port, 3_000, 1).unwrap().0, Some(mbit(30.0)));
}

/// On a real switch, rates out of band need no controller for newcomers, because a port without flows gets no messages.
/// A flow that resumes gets its rate at once.
#[test]
fn out_of_band_counts_replace_packets_too() {
    let (mut port, floor) = (Port::new(Params::default()), Params::default().floor(MTU));
    assert!(port.pacec.sends_messages() && !Port::new(in_band()).pacec.sends_messages());
    port.until(5_000);
    assert_eq!(port.pacec.grant(None, 1), Some(floor));
    let inner = Port::new(Params { edge: false, ..Params::default() });
    assert_eq!(inner.pacec.grant(None, 1), None);
    port.data(5_000, key(1), SYN, UNASSIGNED);
    assert_eq!(decided(&mut port, 5_000, 1).unwrap().0, Some(floor));
    port.grant(5_010, 1, mbit(40.0));
    assert_eq!(port.told(), [(key(1), mbit(40.0))]);
    assert_eq!(counted(&mut port, 5_020, 1, 1_500), Standing::Same);
    port.until(6_100);
    port.told();
    assert_eq!(counted(&mut port, 6_200, 1, 1_500), Standing::Changed);
    assert_eq!(port.told(), [(key(1), floor)]);
}

#[test]
fn the_link_has_classes_in_band_and_on_every_real_switch() {
    let counters = PortCounters { capacity: Some(mbit(100.0)), ..PortCounters::default() };
    let classes = |params: Params, on_switch: bool| {
        let mut port: Box<dyn PerFlowController> = Box::new(PacecPort::<FlowKey>::new(params, PORT, MTU));
        if on_switch {
            port = port.into_aggregated().unwrap();
        }
        let mut actions = Vec::new();
        port.on_start(Time::ZERO, &counters, &mut actions);
        let set = actions.iter().filter(|action| matches!(action, Action::SetClass { .. })).count();
        (port.requirements().queueing, set)
    };
    let in_classes = (Queueing::Classes { queues_udp: false }, 3);
    assert_eq!(classes(Params::default(), false), (Queueing::Own, 0));
    for (params, on_switch) in [(in_band(), false), (in_band(), true), (Params::default(), true)] {
        assert_eq!(classes(params, on_switch), in_classes);
    }
}
