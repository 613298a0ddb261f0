//! Tests a port without a flow table: the estimated number of flows from sums instead of packets, and the choice of the
//! flows that get rates.

use super::*;
use crate::congestion::network::bdr::designator::window;
use crate::feedback::header::{Bdr, Header};
use crate::rate::aggregate::{Aggregated, Reports};
use crate::rate::kit::testing::{ACK, RST, SYN, SYN_ACK, mbit, ms, packet};
use crate::rate::{Admission, FlowKey, Leaf, PacketInfo, PortCounters, RateOption};
use crate::units::{Bytes, Rate, Span};

/// The time between two readings of a real switch, ms.
const TICK: u64 = 10;

struct Port {
    controller: Box<dyn Aggregated>,
    counters: PortCounters,
    now: u64,
}

impl Port {
    fn new(params: Params, capacity: f64) -> Port {
        let counters = PortCounters { capacity: Some(mbit(capacity)), ..PortCounters::default() };
        let mut controller: Box<dyn Aggregated> = Box::new(Stateless::new(params));
        controller.on_start(ms(0), &counters, &mut Vec::new());
        Port { controller, counters, now: 0 }
    }

    /// Passes the sums of each tick for `flows` flows with an RTT of 100 ms. The ticks cover `millis` ms.
    fn flows(&mut self, flows: u64, millis: u64) {
        for _ in 0..millis / TICK {
            self.now += TICK;
            let number = flows * TICK / 100;
            let lived = Span::from_millis(flows * TICK);
            self.reports(Reports { number, lived, ..Reports::default() });
        }
    }

    fn reports(&mut self, reports: Reports) {
        self.controller.report_counter().unwrap().on_reports(ms(self.now), &reports, &self.counters);
        if ms(self.now) >= self.controller.next_timer() {
            self.controller.on_timer(ms(self.now), &self.counters, &mut Vec::new());
        }
    }

    fn rate(&mut self) -> Rate {
        self.controller.report_counter().unwrap().common_rate(ms(self.now))
    }

    /// Returns the number of flows among which the port divides its capacity.
    fn counted(&mut self, capacity: f64) -> f64 {
        0.98 * mbit(capacity).as_f64() / self.rate().as_f64()
    }
}

fn plain() -> Params {
    Params { redistribution: false, ..Params::default() }
}

/// TV-D2: one second after the step, the expected count is 400 - 300 exp(-2). With sums over 10 ms, the error is
/// below 1 %.
#[test]
fn tv_d2_a_step_from_100_to_400_flows_with_sums() {
    let mut port = Port::new(plain(), 1000.0);
    port.flows(100, 20_000);
    let before = port.counted(1000.0);
    assert!((before / 100.0 - 1.0).abs() < 0.002, "{before}");
    port.flows(400, 1_000);
    let after = port.counted(1000.0);
    assert!((after / 359.4 - 1.0).abs() < 0.01, "{after}");
}

/// TV-D3: windows of flows with an RTT of 100 ms and packets of 1000 B.
#[test]
fn tv_d3_windows_with_sums() {
    for (capacity, flows, packets) in [(1000.0, 400, 30), (100.0, 80, 15), (1000.0, 600, 20)] {
        let mut port = Port::new(plain(), capacity);
        port.flows(flows, 10_000);
        let counted = port.counted(capacity);
        assert!((counted / flows as f64 - 1.0).abs() < 0.005, "{counted} of {flows}");
        assert_eq!(window(port.rate(), Span::from_millis(100), Bytes::new(1000)), packets);
    }
}

/// BDR-22: a burst of SYNs lowers the rate before its flows have sent data. Each first report removes one
/// newcomer.
#[test]
fn a_burst_of_syns_is_anticipated_with_sums() {
    let mut port = Port::new(plain(), 1000.0);
    port.flows(100, 5_000);
    port.now += TICK;
    port.reports(Reports { syns: 100, number: 10, lived: Span::from_millis(1000), ..Reports::default() });
    let burst = port.counted(1000.0);
    assert!((burst - 150.0).abs() < 2.0, "{burst}");
    port.now += TICK;
    port.reports(Reports { first: 100, number: 10, lived: Span::from_millis(1000), ..Reports::default() });
    let after = port.counted(1000.0);
    assert!((after - 100.0).abs() < 2.0, "{after}");
}

#[test]
fn grants_are_the_rates_of_newcomers() {
    let mut port = Port::new(plain(), 100.0);
    port.flows(10, 5_000);
    let [one, ten] = [1, 10].map(|n| port.controller.grant(None, n).unwrap().as_f64());
    assert!((one / ten - 20.0 / 11.0).abs() < 0.02, "{one} {ten}");
}

/// A report may be sent in parts, and only the last part increases `number`. Even if the last part passes in a later
/// tick, the mean is at most the maximum time of one report.
#[test]
fn parts_of_reports_do_not_raise_the_mean_above_one_report() {
    let mean = |reports| {
        let mut port = Port::new(plain(), 100.0);
        port.reports(reports);
        let mut found = 0.0;
        port.controller.trace(&mut |name, value| {
            if name == "mean_report" {
                found = value;
            }
        });
        found
    };
    let of = |number, millis| Reports { number, lived: Span::from_millis(millis), ..Reports::default() };
    assert_eq!(mean(of(1, 3_900)), 2.0);
    assert_eq!(mean(of(2, 3_900)), 1.95);
    assert_eq!(mean(of(0, 3_900)), 0.1, "the parameter t_rep_initial");
}

#[test]
fn an_idle_port_gives_the_whole_link() {
    let mut port = Port::new(plain(), 100.0);
    port.flows(0, 10_000);
    assert!(port.rate().as_f64() / mbit(98.0).as_f64() > 0.999);
}

fn designated(n: u32) -> PacketInfo {
    let report = Report { t_rep: Span::from_millis(20), ..Report::default() };
    PacketInfo {
        header: Header::Bdr(Bdr { report, advice: None }),
        ..packet(n, 1448, ACK, RateOption::Absent)
    }
}

fn offer(port: &mut Port, packet: &PacketInfo) -> Admission {
    port.controller.on_data(ms(port.now), packet, &port.counters, &mut Vec::new())
}

fn reverse(port: &mut Port, packet: &PacketInfo) -> Option<Rate> {
    port.controller.on_reverse(ms(port.now), packet, &mut Vec::new())
}

/// Flows get rates, and join the queue of rated flows, for four seconds after each designated packet.
#[test]
fn rates_are_for_flows_that_designate_packets() {
    let mut port = Port::new(plain(), 100.0);
    port.now = 1;
    let member = PacketInfo { header: Header::Member, ..packet(1, 1448, ACK, RateOption::Absent) };
    let ack = packet(1, 0, ACK, RateOption::Unassigned);
    assert_eq!(offer(&mut port, &member), Admission::Queue(Leaf::OtherTcp));
    assert_eq!(reverse(&mut port, &ack), None);
    assert_eq!(offer(&mut port, &designated(1)), Admission::Queue(Leaf::Elephant));
    assert_eq!(offer(&mut port, &member), Admission::Queue(Leaf::Elephant));
    assert!(reverse(&mut port, &ack).is_some());
    assert_eq!(reverse(&mut port, &packet(2, 0, ACK, RateOption::Unassigned)), None, "another flow");
    assert_eq!(reverse(&mut port, &packet(1, 0, RST, RateOption::Absent)), None);
    let plain = packet(1, 1448, ACK, RateOption::Absent);
    assert_eq!(offer(&mut port, &plain), Admission::Queue(Leaf::OtherTcp), "data without the header");
    port.now += 4_001;
    assert_eq!(reverse(&mut port, &ack), None);
}

#[test]
fn the_answer_to_a_designated_syn_has_the_first_rate() {
    let mut port = Port::new(plain(), 100.0);
    port.flows(1, 5_000);
    let report = Report { syn: true, ..Report::default() };
    let syn = PacketInfo {
        header: Header::Bdr(Bdr { report, advice: None }),
        ..packet(1, 0, SYN, RateOption::Unassigned)
    };
    assert_eq!(reverse(&mut port, &packet(1, 0, SYN_ACK, RateOption::Unassigned)), None);
    offer(&mut port, &syn);
    let first = reverse(&mut port, &packet(1, 0, SYN_ACK, RateOption::Unassigned)).unwrap();
    let share = first.as_f64() / mbit(98.0).as_f64();
    // The rate is a share for 2.5 flows: the old flow, half of the counted newcomer, and one more newcomer.
    assert!((0.35..0.52).contains(&share), "{share}");
}

#[test]
fn an_agents_port_keeps_nothing_of_flows() {
    let mut port = Port::new(plain(), 100.0);
    assert_eq!(port.controller.report_counter().unwrap().report_max(), Span::from_secs(2));
    port.flows(1_000_000, 1_000);
    let flow: FlowKey = packet(1, 0, ACK, RateOption::Absent).key;
    assert_eq!(port.controller.handle(&flow), None);
    assert_eq!(port.controller.allocation(&flow), None);
    assert!(std::mem::size_of::<Stateless>() < 1_200, "{}", std::mem::size_of::<Stateless>());
    assert_eq!(port.controller.version(), 0);
}
