//! For arbitrary events in any order, there is no panic, allocations stay within the capacity, and tables
//! stay within their bounds.

use proptest::prelude::*;

use super::allocate::AppClass;
use super::harness::{MTU, packet};
use super::table::List;
use super::{Brf, Params};
use crate::parameter::Reading;
use crate::rate::{
    Action, Admission, CongestionKind, LEAVES, Message, PerFlowController, PortCounters, Proto, RateOption,
    TcpFlags,
};
use crate::units::{Bytes, Rate, Span, Time};

#[derive(Clone, Debug)]
enum Step {
    Data(u32, TcpFlags, RateOption, u64, Option<bool>, u64, Option<(u32, u32)>, bool),
    Reverse(u32, TcpFlags, RateOption, Option<(u32, u32)>),
    Wait(u64),
    Timer,
    Capacity(Option<u64>),
    Counters(u64, u32),
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
    prop_oneof![
        Just(RateOption::Absent),
        Just(RateOption::Unassigned),
        any::<u64>().prop_map(|r| RateOption::Assigned(Rate::from_bytes_per_sec(r))),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let kind = prop_oneof![Just(None), Just(Some(CongestionKind::Queue)), Just(Some(CongestionKind::Burst))];
    prop_oneof![
        Just(Message::Poll),
        (kind, 0..3u32).prop_map(|(kind, port)| Message::Congestion { kind, port }),
        (0..20u32, any::<u64>(), 0..3u32, any::<u64>(), any::<u64>()).prop_map(
            |(n, rate, port, seq, valid)| {
                let (rate, valid_for) = (Rate::from_bytes_per_sec(rate), Span::from_nanos(valid));
                Message::FlowAdvertisement { key: super::harness::key(n), rate, port, seq, valid_for }
            }
        ),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let stamps = proptest::option::of(any::<(u32, u32)>());
    let data = (
        0..20u32,
        flags(),
        option(),
        0..1449u64,
        any::<Option<bool>>(),
        any::<u64>(),
        stamps.clone(),
        any::<bool>(),
    );
    prop_oneof![
        8 => data.prop_map(|(n, f, o, p, u, s, t, udp)| Step::Data(n, f, o, p, u, s, t, udp && p < 100)),
        6 => (0..20u32, flags(), option(), stamps).prop_map(|(n, f, o, t)| Step::Reverse(n, f, o, t)),
        4 => (0..50_000_000u64).prop_map(Step::Wait),
        1 => any::<u64>().prop_map(|w| Step::Wait(w >> 28)),
        4 => Just(Step::Timer),
        1 => proptest::option::of(prop_oneof![0..1_000_000_000u64, any::<u64>()]).prop_map(Step::Capacity),
        1 => (any::<u64>(), any::<u32>()).prop_map(|(b, p)| Step::Counters(b, p)),
        1 => message().prop_map(Step::Message),
    ]
}

/// All actions and all rates in ACKs.
type Outputs = (Vec<Action>, Vec<Option<Rate>>);

fn run(mode: Reading, share: &str, steps: &[Step], told: bool) -> Result<Outputs, TestCaseError> {
    let preset = if mode == Reading::Literal { Params::literal() } else { Params::resolved() };
    let share = share.parse().unwrap();
    let params = Params { max_flows: 12, max_half_open: 5, share, ..preset };
    let mut brf = Brf::new(params, 1, Bytes::new(MTU));
    let capacity = told.then_some(Rate::from_bits_per_sec(100_000_000));
    let mut port = PortCounters { capacity, limit_packets: [1000; LEAVES], ..PortCounters::default() };
    let (mut now, mut actions, mut rates) = (Time::from_nanos(1), Vec::new(), Vec::new());
    brf.on_start(now, &port, &mut actions);
    for step in steps.iter().cloned() {
        match step {
            Step::Data(n, flags, option, payload, unlimited, seq, timestamps, udp) => {
                let mut packet = packet(n, payload, flags, option);
                (packet.unlimited, packet.seq, packet.timestamps) = (unlimited, seq, timestamps);
                packet.key.proto = if udp { Proto::Udp } else { Proto::Tcp };
                if let Admission::Queue(leaf) = brf.on_data(now, &packet, &port, &mut actions) {
                    port.arrived[leaf as usize] += packet.size;
                }
            }
            Step::Reverse(n, flags, option, timestamps) => {
                let mut packet = packet(n, 0, flags, option);
                packet.timestamps = timestamps;
                let rate = brf.on_reverse(now, &packet, &mut actions);
                rates.push(rate);
                if let (Some(rate), RateOption::Assigned(value)) = (rate, option) {
                    prop_assert!(
                        crate::feedback::code::as_heard(rate) <= value,
                        "raised a value on the path"
                    );
                }
            }
            Step::Wait(nanos) => now += Span::from_nanos(nanos),
            Step::Timer => {
                brf.on_timer(now, &port, &mut actions);
                prop_assert!(brf.next_timer() > now, "the timer is due again at once");
            }
            Step::Capacity(rate) => {
                port.capacity = rate.filter(|_| told).map(Rate::from_bytes_per_sec).or(port.capacity);
                brf.on_timer(now, &port, &mut actions);
            }
            Step::Counters(bytes, packets) => {
                port.queued = [Bytes::new(bytes >> 3); LEAVES];
                port.queued_packets = [packets; LEAVES];
                port.departed[1] += Bytes::new(bytes >> 20);
            }
            Step::Message(message) => brf.on_message(now, &message, &port, &mut actions),
        }
        let (mut sums, mut demands) = ([Rate::ZERO; 2], 0);
        for (id, meter) in brf.table.ids(List::Rated).filter_map(|id| Some((id, brf.table.meter(id)?))) {
            let is_newcomer = meter.app_class == AppClass::Newcomer;
            demands += if is_newcomer { meter.demand } else { 0 };
            sums[usize::from(is_newcomer)] += brf.rate_for(id, meter);
        }
        let [established, newcomers] = sums;
        let flows = brf.table.len(List::Rated) as u64;
        // Newcomers keep their rates if the capacity falls. The other flows divide the rest, but get at least the
        // minimum.
        if mode != Reading::Literal {
            let committed = brf.shares.committed();
            prop_assert_eq!(committed.as_bytes_per_sec(), demands);
            prop_assert!(newcomers <= committed, "{:?}", newcomers);
            let rest = (brf.shares.capacity() - committed).as_bytes_per_sec();
            let minimum =
                if committed == Rate::ZERO { 1 } else { brf.shares.floor().as_bytes_per_sec().max(1) };
            prop_assert!(
                established.as_bytes_per_sec() <= rest.max(minimum * flows),
                "{:?} of {}",
                established,
                rest
            );
        }
        prop_assert_eq!(brf.shares.flows(), flows);
        if let Some((rated, other)) = brf.shares.weights() {
            prop_assert_eq!((rated == 0, other == 0), (flows == 0, brf.table.len(List::Other) == 0));
        }
        let (unconfirmed, confirmed) = brf.table.unconfirmed_and_confirmed();
        prop_assert!(unconfirmed + confirmed <= 12 && brf.half_open.len() <= 5);
    }
    for action in &actions {
        if let Action::SetClass { rate, ceil, .. } = action {
            prop_assert!(rate <= ceil && *rate > Rate::ZERO);
        }
    }
    Ok((actions, rates))
}

proptest! {
    #[test]
    fn resolved_with_a_told_capacity(steps in proptest::collection::vec(step(), 1..120)) {
        run(Reading::Resolved, "flow", &steps, true)?;
    }

    #[test]
    fn resolved_with_a_measured_capacity(steps in proptest::collection::vec(step(), 1..120)) {
        run(Reading::Resolved, "flow", &steps, false)?;
    }

    #[test]
    fn literal(steps in proptest::collection::vec(step(), 1..120)) {
        run(Reading::Literal, "flow", &steps, true)?;
    }

    /// In this test, every flow has an address of its own.
    #[test]
    fn a_share_for_each_address_is_a_share_for_each_flow(steps in proptest::collection::vec(step(), 1..120)) {
        let by = |share| run(Reading::Resolved, share, &steps, true);
        prop_assert_eq!(by("sender-address")?, by("flow")?);
    }

    #[test]
    fn resolved_with_subscribers_of_four_addresses(steps in proptest::collection::vec(step(), 1..120)) {
        run(Reading::Resolved, "sender-prefix/30", &steps, true)?;
    }
}
