//! For arbitrary events in any order, there is no panic, grants stay within a link's capacity, and tables
//! stay within their bounds.

use proptest::collection::vec;
use proptest::prelude::*;

use super::harness::{MTU, Routes, key, packet, report};
use super::{Mode, Pacec, PacecPort, Params, Signal};
use crate::rate::domain::DomainController;
use crate::rate::{
    Action, CongestionKind, FlowKey, LEAVES, Message, PerFlowController, PortCounters, PortId, RateOption,
    Report, TcpFlags,
};
use crate::units::{Bytes, Rate, Span, Time};

/// Generates plausible values, or arbitrary ones.
fn number(usual: u64) -> impl Strategy<Value = u64> {
    prop_oneof![6 => 0..usual, 1 => Just(0), 1 => Just(u64::MAX), 1 => any::<u64>()]
}

fn rate() -> impl Strategy<Value = Rate> {
    number(20_000_000).prop_map(Rate::from_bytes_per_sec)
}

fn flow() -> impl Strategy<Value = FlowKey> {
    (0u32..30).prop_map(key)
}

fn any_report() -> impl Strategy<Value = Report> {
    (
        0..7u32,
        number(1_000_000_000),
        rate(),
        number(10_000_000),
        number(10_000_000),
        number(1_000_000),
        number(100_000_000),
    )
        .prop_map(|(port, at, capacity, departed, rated, queued, period)| Report {
            at: Time::from_nanos(at),
            departed: Bytes::new(departed),
            rated_departed: Bytes::new(rated),
            queued: Bytes::new(queued),
            period: Span::from_nanos(period),
            ..report(port, capacity)
        })
}

fn message() -> impl Strategy<Value = Message> {
    prop_oneof![
        6 => any_report().prop_map(Message::Report),
        6 => (0..7u32, flow(), any::<bool>(), proptest::option::of(rate()))
            .prop_map(|(port, key, begun, demand)| Message::Flow { port, key, begun, demand }),
        6 => (0..7u32, vec((flow(), rate()), 0..4), vec((flow().prop_map(|key| key.daddr), rate()), 0..4))
            .prop_map(|(port, flows, newcomers)| Message::Grants { port, flows, newcomers }),
        1 => Just(Message::Poll),
        1 => Just(Message::Congestion { kind: Some(CongestionKind::Queue), port: 1 }),
        1 => (flow(), rate()).prop_map(|(key, rate)| Message::FlowAdvertisement {
            key, rate, port: 1, seq: 1, valid_for: Span::MAX,
        }),
    ]
}

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![Just(Mode::Literal), Just(Mode::Resolved), Just(Mode::Equal), Just(Mode::Incremental)]
}

/// Generates routes of up to four of the ports 0 to 6. The controller has only the ports 1 to 5.
fn routes() -> impl Strategy<Value = Routes> {
    vec(vec(0..7u32, 0..5), 0..30).prop_map(|paths| {
        Routes(paths.into_iter().enumerate().map(|(n, path)| (key(n as u32), path)).collect())
    })
}

proptest! {
    #[test]
    fn the_controller_stays_within_its_bounds_for_any_input(
        mode in mode(),
        routes in routes(),
        messages in vec((0..7u32, number(100_000_000), proptest::option::of(message())), 1..200),
    ) {
        let params = Params { mode, max_flows: 5, ..Params::default() };
        let mut pacec = Pacec::new((1..=5).map(|port| (port, params.clone())), MTU, Time::ZERO);
        let (mut now, mut out) = (Time::ZERO, Vec::new());
        for (from, after, message) in messages {
            now += Span::from_nanos(after);
            match message {
                Some(message) => pacec.on_message(now, from, &message, &routes, &mut out),
                None => {
                    pacec.on_timer(pacec.next_timer().max(now), &routes, &mut out);
                    prop_assert!(pacec.next_timer() > now || now == Time::NEVER);
                }
            }
            prop_assert!(pacec.flows() <= 20);
        }
        prop_assert!(out.iter().all(|(port, _)| (1..=5).contains(port)));
    }
}

#[derive(Clone, Debug)]
enum Step {
    Data(FlowKey, TcpFlags, RateOption, u64),
    Reverse(FlowKey, TcpFlags, RateOption),
    WriteFailed(FlowKey),
    Timer,
    Counters(Option<Rate>, u64, u64),
    Message(Message),
}

fn flags() -> impl Strategy<Value = TcpFlags> {
    prop_oneof![
        3 => Just((false, true, false, false)),
        1 => Just((true, false, false, false)),
        1 => Just((true, true, false, false)),
        1 => any::<(bool, bool, bool, bool)>(),
    ]
    .prop_map(|(syn, ack, fin, rst)| TcpFlags { syn, ack, fin, rst })
}

fn option() -> impl Strategy<Value = RateOption> {
    prop_oneof![Just(RateOption::Absent), Just(RateOption::Unassigned), rate().prop_map(RateOption::Assigned)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (flow(), flags(), option(), number(3000)).prop_map(|(k, f, o, n)| Step::Data(k, f, o, n)),
        3 => (flow(), flags(), option()).prop_map(|(k, f, o)| Step::Reverse(k, f, o)),
        1 => flow().prop_map(Step::WriteFailed),
        4 => Just(Step::Timer),
        1 => (proptest::option::of(rate()), number(1_000_000), number(1_000_000))
            .prop_map(|(c, a, b)| Step::Counters(c, a, b)),
        4 => message().prop_map(Step::Message),
    ]
}

proptest! {
    #[test]
    fn a_port_stays_within_its_bounds_for_any_input(
        in_band: bool,
        edge: bool,
        mode in mode(),
        steps in vec((number(100_000_000), step()), 1..200),
    ) {
        let signal = if in_band { Signal::InBand } else { Signal::OutOfBand };
        let params = Params { mode, signal, edge, max_flows: 7, ..Params::default() };
        let mut port = PacecPort::new(params, 1, MTU);
        let (mut now, mut counters, mut actions) = (Time::ZERO, PortCounters::default(), Vec::new());
        port.on_start(now, &counters, &mut actions);
        for (after, step) in steps {
            now += Span::from_nanos(after);
            match step {
                Step::Data(key, flags, option, size) => {
                    port.on_data(now, &packet(key, Bytes::new(size), flags, option), &counters, &mut actions);
                }
                Step::Reverse(key, flags, option) => {
                    let written = port.on_reverse(now, &packet(key, Bytes::ZERO, flags, option), &mut actions);
                    prop_assert!(edge || written.is_none());
                    if let (Some(written), RateOption::Assigned(value)) = (written, option) {
                        prop_assert!(crate::feedback::code::as_heard(written) <= value);
                    }
                }
                Step::WriteFailed(key) => port.on_write_failed(&key),
                Step::Timer => {
                    port.on_timer(port.next_timer().max(now), &counters, &mut actions);
                    prop_assert!(port.next_timer() > now || now == Time::NEVER);
                }
                Step::Counters(capacity, departed, queued) => {
                    counters.capacity = capacity;
                    counters.departed = [Bytes::new(departed); LEAVES];
                    counters.queued = [Bytes::new(queued); LEAVES];
                    counters.queued_packets = [u32::MAX; LEAVES];
                }
                Step::Message(message) => port.on_message(now, &message, &counters, &mut actions),
            }
            let known = (0..30).filter(|n| port.allocation(&key(*n)).is_some()).count();
            prop_assert!(known <= 7);
        }
        for action in actions {
            match action {
                Action::ToController(Message::Report(_)) | Action::Log { .. } | Action::State { .. } | Action::Record { .. } => {}
                Action::ToController(Message::Flow { .. }) => prop_assert!(edge),
                Action::ToSource { rate, .. } => prop_assert!(!in_band && edge && rate != Rate::MAX),
                Action::SetClass { rate, ceil, .. } => prop_assert!(in_band && rate <= ceil),
                other => prop_assert!(false, "{other:?}"),
            }
        }
    }
}

/// The capacity of a link, and the background traffic and the queue in its sample.
type Link = (u64, u64, u64);

/// Generates routes over some of the first ports, each at most once.
fn tidy_routes() -> impl Strategy<Value = (Vec<Link>, Vec<Vec<PortId>>)> {
    (2usize..9).prop_flat_map(|links| {
        let path =
            proptest::sample::subsequence((1..=links as u32).collect::<Vec<_>>(), 1..=links).prop_shuffle();
        let link = (
            1_000u64..100_000_000,
            prop_oneof![Just(0u64), 0u64..500_000],
            prop_oneof![Just(0u64), 0u64..500_000],
        );
        (vec(link, links), vec(path, 1..40))
    })
}

proptest! {
    /// PAC-18, PAC-19: on every link, the sum of the grants is at most the available rate, except for the floors
    /// (PAC-16).
    #[test]
    fn the_sum_on_every_link_is_at_most_the_available_rate(
        (links, paths) in tidy_routes(),
        incremental: bool,
        demands in vec(proptest::option::of(number(10_000_000)), 40),
        floor_packets in prop_oneof![Just(0.0), Just(2.0)],
        periods in 1u64..6,
    ) {
        let mode = if incremental { Mode::Incremental } else { Mode::Resolved };
        let params = Params { mode, floor_packets: Some(floor_packets), ..Params::default() };
        let floor = params.floor(MTU).as_bytes_per_sec();
        let routes = Routes(paths.iter().enumerate().map(|(n, path)| (key(n as u32), path.clone())).collect());
        let ports = (1..=links.len() as u32).map(|port| (port, params.clone()));
        let (mut pacec, mut out) = (Pacec::new(ports, MTU, Time::ZERO), Vec::new());
        for (n, (path, demand)) in paths.iter().zip(&demands).enumerate() {
            let demand = demand.map(Rate::from_bytes_per_sec);
            let message = Message::Flow { port: path[0], key: key(n as u32), begun: true, demand };
            pacec.on_message(Time::ZERO, path[0], &message, &routes, &mut out);
        }
        for sample in 0..=5 * periods {
            let now = Time::ZERO + Span::from_millis(10 * sample);
            for (at, (capacity, background, queued)) in links.iter().enumerate() {
                let report = Report {
                    at: now,
                    departed: Bytes::new(background * sample),
                    queued: Bytes::new(*queued),
                    ..report(at as u32 + 1, Rate::from_bytes_per_sec(*capacity))
                };
                pacec.on_message(now, at as u32 + 1, &Message::Report(report), &routes, &mut out);
            }
            if pacec.next_timer() <= now {
                pacec.on_timer(now, &routes, &mut out);
            }
        }
        for (at, (capacity, ..)) in links.iter().enumerate() {
            let port = at as u32 + 1;
            let on = paths.iter().enumerate().filter(|(_, path)| path.contains(&port));
            let granted: Vec<u64> =
                on.filter_map(|(n, _)| pacec.granted(&key(n as u32))).map(Rate::as_bytes_per_sec).collect();
            let available = pacec.available(port).unwrap().as_bytes_per_sec();
            prop_assert!(available <= (0.98 * *capacity as f64) as u64);
            let most = available.max(floor * granted.len() as u64);
            prop_assert!(granted.iter().sum::<u64>() <= most, "{:?} of {} at port {}", granted, available, port);
        }
    }
}
