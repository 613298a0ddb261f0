//! Tests of the controller alone, without ports.

use core::net::IpAddr;

use super::harness::{MTU, Routes, key, mbit, report};
use super::{Mode, Pacec, Params};
use crate::rate::domain::DomainController;
use crate::rate::{FlowKey, Message, PortId, Report};
use crate::units::{Bytes, Rate, Span, Time};

fn ms(n: u64) -> Time {
    Time::ZERO + Span::from_millis(n)
}

struct Domain {
    pacec: Pacec,
    routes: Routes,
}

impl Domain {
    fn new(ports: &[PortId], paths: &[&[PortId]]) -> Self {
        Domain::with(Params::default(), ports, paths)
    }

    fn with(params: Params, ports: &[PortId], paths: &[&[PortId]]) -> Self {
        Domain::of(ports.iter().map(|port| (*port, params.clone())), paths)
    }

    fn of(ports: impl IntoIterator<Item = (PortId, Params)>, paths: &[&[PortId]]) -> Self {
        let routes = Routes(paths.iter().enumerate().map(|(n, p)| (key(n as u32), p.to_vec())).collect());
        Domain { pacec: Pacec::new(ports, MTU, Time::ZERO), routes }
    }

    fn hear(&mut self, at: Time, from: PortId, message: Message) -> Vec<(PortId, Message)> {
        let mut out = Vec::new();
        self.pacec.on_message(at, from, &message, &self.routes, &mut out);
        out
    }

    fn flow(&mut self, at: Time, from: PortId, n: u32) -> Vec<(PortId, Message)> {
        self.hear(at, from, Message::Flow { port: from, key: key(n), begun: true, demand: None })
    }

    /// Passes two reports of each of these idle links, whose capacities are in Mbit/s.
    fn reports(&mut self, ports: &[(PortId, f64)]) {
        for (port, capacity) in ports {
            for at in [0, 10] {
                let report = Report { at: ms(at), ..report(*port, mbit(*capacity)) };
                self.hear(ms(at), *port, Message::Report(report));
            }
        }
    }

    fn tick(&mut self) -> Vec<(PortId, Message)> {
        let mut out = Vec::new();
        self.pacec.on_timer(self.pacec.next_timer(), &self.routes, &mut out);
        out
    }
}

/// Returns all rates that were sent, in Mbit/s.
fn told(out: &[(PortId, Message)]) -> Vec<(PortId, FlowKey, f64)> {
    let mut told = Vec::new();
    for (port, message) in out {
        if let Message::Grants { flows, .. } = message {
            told.extend(flows.iter().map(|(key, rate)| (*port, *key, rate.as_bits_per_sec() / 1e6)));
        }
    }
    told
}

fn newcomers(out: Vec<(PortId, Message)>) -> Vec<(IpAddr, Rate)> {
    match out.into_iter().next() {
        Some((1, Message::Grants { newcomers, .. })) => newcomers,
        _ => vec![],
    }
}

#[test]
fn flows_count_from_their_first_port_only() {
    let mut domain = Domain::new(&[1, 2, 5], &[&[7, 2, 1], &[9], &[]]);
    domain.reports(&[(1, 50.0), (2, 100.0)]);
    let elsewhere = Message::Grants { port: 1, flows: vec![(key(0), Rate::MAX)], newcomers: vec![] };
    assert_eq!(domain.flow(ms(1), 1, 0), [(1, elsewhere)]);
    for (from, n) in [(7, 0), (9, 1)] {
        assert_eq!(domain.flow(ms(1), from, n), [], "port {from} is not its own");
    }
    for (from, n) in [(5, 0), (1, 1), (1, 2), (1, 77)] {
        let flows = vec![(key(n), Rate::MAX)];
        let unlimited = Message::Grants { port: from, flows, newcomers: vec![] };
        assert_eq!(domain.flow(ms(1), from, n), [(from, unlimited)], "flow {n} from port {from}");
    }
    assert_eq!(domain.pacec.flows(), 0);
    domain.flow(ms(1), 2, 0);
    assert_eq!(told(&domain.tick()), [(2, key(0), 49.0)]);
    domain.hear(ms(60), 1, Message::Flow { port: 1, key: key(0), begun: false, demand: None });
    assert_eq!(domain.pacec.flows(), 1, "only the flow's own ingress can end the flow");
    domain.hear(ms(60), 2, Message::Flow { port: 2, key: key(0), begun: false, demand: None });
    assert_eq!(domain.pacec.flows(), 0);
}

#[test]
fn unchanged_rates_are_sent_every_fifth_period() {
    let mut domain = Domain::new(&[1], &[&[1]]);
    domain.reports(&[(1, 100.0)]);
    domain.flow(ms(1), 1, 0);
    let told: Vec<usize> = (0..13).filter(|_| !told(&domain.tick()).is_empty()).collect();
    assert_eq!(told, [0, 5, 10]);
}

#[test]
fn nothing_is_granted_across_an_unknown_link() {
    let mut domain = Domain::new(&[1, 2], &[&[1, 2], &[1]]);
    domain.reports(&[(1, 100.0)]);
    domain.flow(ms(1), 1, 0);
    domain.flow(ms(1), 1, 1);
    let out = domain.tick();
    assert_eq!(told(&out), [(1, key(1), 49.0)], "flow 0 keeps its share");
    domain.reports(&[(2, 10.0)]);
    let out = domain.tick();
    assert_eq!(told(&out), [(1, key(0), 9.8), (1, key(1), 88.2)]);
}

#[test]
fn a_new_port_is_asked_for_its_flows() {
    let mut domain = Domain::new(&[1], &[]);
    let first = Message::Report(report(1, mbit(1.0)));
    assert_eq!(domain.hear(ms(0), 1, first.clone()), [(1, Message::Poll)]);
    assert_eq!(domain.hear(ms(0), 1, first.clone()), []);
    assert_eq!(domain.hear(ms(0), 2, first), []);
    let of_another = Message::Report(report(2, mbit(1.0)));
    assert_eq!(domain.hear(ms(0), 1, of_another), []);
}

#[test]
fn a_flow_on_a_new_path_is_granted_there() {
    let mut domain = Domain::new(&[1, 2], &[&[1]]);
    domain.reports(&[(1, 100.0), (2, 100.0)]);
    domain.flow(ms(1), 1, 0);
    domain.tick();
    domain.routes.0[0].1 = vec![2];
    domain.flow(ms(60), 2, 0);
    assert_eq!(
        told(&domain.tick()),
        [(2, key(0), 98.0)],
        "the rate is the same, but the new ingress does not have it yet"
    );
    assert_eq!(domain.pacec.flows(), 1);
}

#[test]
fn a_flow_without_announcements_is_removed() {
    let mut domain = Domain::new(&[1], &[&[1]]);
    domain.flow(ms(0), 1, 0);
    while domain.pacec.next_timer() <= ms(4000) {
        domain.tick();
    }
    assert_eq!(domain.pacec.flows(), 1);
    domain.tick();
    assert_eq!(domain.pacec.flows(), 0);
}

#[test]
fn rates_for_newcomers_are_sent_by_destination_when_changed() {
    let mut domain = Domain::new(&[1, 2], &[&[1], &[1, 2]]);
    domain.reports(&[(1, 100.0), (2, 40.0)]);
    for n in [0, 1] {
        let demand = Some(mbit(10.0));
        domain.hear(ms(1), 1, Message::Flow { port: 1, key: key(n), begun: true, demand });
    }
    let offers = [(key(0).daddr, mbit(78.0)), (key(1).daddr, mbit(29.2))];
    assert_eq!(newcomers(domain.tick()), offers);
    assert_eq!(newcomers(domain.tick()), [], "no rate has changed");
    for begun in [false, true] {
        let demand = Some(mbit(10.0));
        domain.hear(ms(101), 1, Message::Flow { port: 1, key: key(0), begun, demand });
    }
    assert_eq!(newcomers(domain.tick()), offers, "the rates are sent again, because a newcomer took a part");
    domain.flow(ms(151), 1, 0);
    assert_eq!(newcomers(domain.tick()), [0, 1].map(|n| (key(n).daddr, mbit(0.48))));
    assert_eq!(domain.pacec.available(2), Some(mbit(39.2)));
    assert_eq!((domain.pacec.utilisation(1, 0), domain.pacec.utilisation(3, 0)), (Some(0.0), None));
}

/// PAC-18a and PAC-22: on the first link, both flows leave 9.8 Mbit/s for a newcomer. On the second link, no capacity
/// is left.
#[test]
fn a_newcomer_gets_what_equal_shares_leave() {
    let params = Params { mode: Mode::Equal, ..Params::default() };
    let mut domain = Domain::with(params, &[1, 2], &[&[1], &[1, 2]]);
    domain.reports(&[(1, 100.0), (2, 40.0)]);
    domain.flow(ms(1), 1, 1);
    assert_eq!(newcomers(domain.tick()), [(key(1).daddr, mbit(0.48))]);
    domain.flow(ms(51), 1, 0);
    domain.hear(ms(51), 1, Message::Flow { port: 1, key: key(1), begun: false, demand: None });
    assert_eq!(newcomers(domain.tick()), [0, 1].map(|n| (key(n).daddr, mbit(0.48))));
    domain.flow(ms(101), 1, 1);
    let out = domain.tick();
    assert_eq!(told(&out), [(1, key(0), 49.0), (1, key(1), 39.2)]);
    assert_eq!(newcomers(out), [0, 1].map(|n| (key(n).daddr, mbit(if n == 0 { 9.8 } else { 0.48 }))));
}

#[test]
fn a_destination_unused_for_a_minute_is_removed() {
    let mut domain = Domain::new(&[1], &[&[1]]);
    domain.reports(&[(1, 100.0)]);
    domain.flow(ms(0), 1, 0);
    let mut offered = Vec::new();
    while domain.pacec.next_timer() <= ms(70_000) {
        if !newcomers(domain.tick()).is_empty() {
            offered.push(domain.pacec.next_timer());
        }
    }
    let last = offered.last().copied().unwrap();
    assert!(last > ms(59_500) && last < ms(65_500), "{last:?}");
}

/// PAC-24 and PAC-16 in literal mode. First, the links of three flows on two paths stop sending reports. Then a link
/// has no residual capacity.
#[test]
fn literal_without_reports_is_a_share_of_the_link_and_a_floor_can_be_set() {
    let params = Params { mode: Mode::Literal, floor_packets: Some(2.0), ..Params::default() };
    let mut domain = Domain::with(params, &[1, 2], &[&[1], &[1, 2], &[1, 2]]);
    domain.reports(&[(1, 30.0), (2, 1000.0)]);
    (0..3).for_each(|n| drop(domain.flow(ms(1), 1, n)));
    let rates = |domain: &mut Domain| {
        domain.tick();
        [0, 1, 2].map(|n| domain.pacec.granted(&key(n)).unwrap())
    };
    assert_eq!(rates(&mut domain), [30.0, 15.0, 15.0].map(mbit));
    (0..3).for_each(|_| drop(domain.tick()));
    assert_eq!(rates(&mut domain), [9.8; 3].map(mbit), "eta * C / 3");
    for at in [300, 310] {
        let departed = Bytes::new(at * 10_000);
        let report = Report { at: ms(at), departed, ..report(1, mbit(30.0)) };
        domain.hear(ms(at), 1, Message::Report(report));
    }
    assert_eq!(rates(&mut domain), [0.48; 3].map(mbit));
}

#[test]
fn a_late_timer_does_not_repeat_lost_periods() {
    let mut domain = Domain::new(&[1], &[]);
    let mut out = Vec::new();
    assert_eq!(domain.pacec.next_timer(), ms(50));
    domain.pacec.on_timer(ms(49), &domain.routes, &mut out);
    assert_eq!(domain.pacec.next_timer(), ms(50));
    domain.pacec.on_timer(ms(1000), &domain.routes, &mut out);
    assert_eq!(domain.pacec.next_timer(), ms(1050));
    assert_eq!(Pacec::<FlowKey>::new([], Bytes::ZERO, ms(0)).next_timer(), Time::NEVER);
}

/// Port 2 counts only the total of all packets, as OpenFlow switches do. Port 1 counts rated traffic separately.
#[test]
fn a_link_without_counters_by_class_is_shared_too() {
    let by_class = Params::default();
    let plain = Params { mode: Mode::Incremental, ..Params::default() };
    let mut domain = Domain::of([(1, by_class), (2, plain)], &[&[1, 2], &[1]]);
    let (mut sent, mut rates) = ([0u64; 2], [0.0; 2]);
    for period in 0..40 {
        for at in (0..50).step_by(10) {
            let at = ms(50 * period + at);
            sent[0] += (rates[0] * 1e6 / 8.0 * 0.01) as u64;
            sent[1] += (rates[1] * 1e6 / 8.0 * 0.01) as u64;
            let first = Report { at, departed: Bytes::new(sent[0] + sent[1]), ..report(1, mbit(100.0)) };
            let first = Report { rated_departed: first.departed, ..first };
            let second = Report { at, departed: Bytes::new(sent[0]), ..report(2, mbit(40.0)) };
            domain.hear(at, 1, Message::Report(first));
            domain.hear(at, 2, Message::Report(second));
        }
        for n in [0, 1] {
            domain.flow(ms(50 * period + 45), 1, n);
        }
        for (_, flow, rate) in told(&domain.tick()) {
            rates[usize::from(flow == key(1))] = rate;
        }
    }
    assert!((rates[0] - 39.2).abs() < 0.2 && (rates[1] - 58.8).abs() < 0.4, "{rates:?}");
}

/// A port without an agent is incremental, because its counters do not separate classes. The mode of the domain must
/// not be incremental, even if this port is the first one.
#[test]
fn a_counted_port_does_not_determine_the_mode_of_the_domain() {
    let plain = Params { mode: Mode::Incremental, ..Params::default() };
    let equal = Params { mode: Mode::Equal, ..Params::default() };
    let mut domain = Domain::of([(1, plain), (2, equal)], &[&[2, 1], &[2, 1]]);
    domain.reports(&[(1, 100.0), (2, 1000.0)]);
    domain.flow(ms(1), 2, 0);
    domain.hear(ms(1), 2, Message::Flow { port: 2, key: key(1), begun: true, demand: Some(mbit(10.0)) });
    (0..3).for_each(|_| drop(domain.tick()));
    assert_eq!(
        domain.pacec.granted(&key(0)),
        Some(mbit(49.0)),
        "flow 0 does not get the 88 Mbit/s that flow 1 leaves"
    );
}

/// The first port on a path may have no agent. It limits flows, but the next port sends the rates to sources.
#[test]
fn a_link_without_sources_may_come_first() {
    let (inner, edge) = (Params { edge: false, ..Params::default() }, Params::default());
    let mut domain = Domain::of([(1, inner), (2, edge)], &[&[1, 2]]);
    domain.reports(&[(1, 10.0), (2, 100.0)]);
    domain.flow(ms(1), 2, 0);
    assert_eq!(told(&domain.tick()), [(2, key(0), 9.8)]);
}
