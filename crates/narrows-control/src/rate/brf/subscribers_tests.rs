//! The properties of shares by subscriber, and a port with two subscribers.

use core::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;

use super::super::Params;
use super::super::allocate::{AppClass, Shares};
use super::super::harness::{Net, mbit};
use super::*;
use crate::rate::PerFlowController;
use crate::rate::kit::waterfill;
use crate::units::Rate;

/// A flow: its subscriber and its demand.
type Sharer = (u8, u64);

fn subscriber(n: u8) -> Option<Subscriber> {
    Some(Subscriber::Network(IpAddr::V4(Ipv4Addr::from_bits(u32::from(n))), 0))
}

/// Returns the shares of these flows. The slot of a flow is its index in `flows`.
fn shares(capacity: u64, flows: &[Sharer], by_subscriber: bool, spread: bool) -> Shares<IpAddr> {
    let mut shares = Shares::new(spread, by_subscriber);
    shares.set_capacity(Rate::from_bytes_per_sec(capacity));
    for (slot, (of, demand)) in (0..).zip(flows) {
        shares.join(slot, subscriber(*of));
        shares.insert(slot, *demand);
    }
    shares.settle();
    shares
}

fn allocations(shares: &Shares<IpAddr>, flows: &[Sharer]) -> Vec<u64> {
    (0..)
        .zip(flows)
        .map(|(slot, (_, d))| shares.allocation(shares.terms(slot, AppClass::Unknown), *d).as_bytes_per_sec())
        .collect()
}

/// Computes max-min shares over subscribers, then over the flows of each subscriber, directly from the definition.
fn reference(capacity: u64, flows: &[Sharer]) -> Vec<u64> {
    let of = |n: u8| flows.iter().filter(move |(of, _)| *of == n).map(|(_, d)| *d);
    let mut names: Vec<u8> = flows.iter().map(|(of, _)| *of).collect();
    names.sort_unstable();
    names.dedup();
    let demands: Vec<u64> = names.iter().map(|n| of(*n).fold(0, u64::saturating_add)).collect();
    let granted = waterfill::fill(capacity, &demands);
    let mut parts: Vec<_> = names
        .iter()
        .zip(granted)
        .map(|(n, granted)| waterfill::fill(granted, &of(*n).collect::<Vec<_>>()).into_iter())
        .collect();
    let place = |n: u8| names.iter().position(|name| *name == n).unwrap();
    flows.iter().map(|(of, _)| parts[place(*of)].next().unwrap()).collect()
}

fn demand() -> impl Strategy<Value = u64> {
    prop_oneof![Just(waterfill::UNBOUNDED), 0u64..100, 1_000_000u64..1_040_000, 0u64..10_000_000_000]
}

fn sharers() -> impl Strategy<Value = Vec<Sharer>> {
    proptest::collection::vec((0u8..6, demand()), 1..40)
}

proptest! {
    #[test]
    fn shares_are_max_min_over_subscribers_and_then_within_each(
        capacity in 0u64..20_000_000_000, flows in sharers(),
    ) {
        let found = allocations(&shares(capacity, &flows, true, false), &flows);
        prop_assert!(found.iter().sum::<u64>() <= capacity);
        for ((found, exact), (_, demand)) in found.iter().zip(reference(capacity, &flows)).zip(&flows) {
            prop_assert!(found <= demand);
            // The level of the port and the level of the subscriber are each at most half a bucket too low.
            let least = exact as f64 * (1.0 - 1.0 / 128.0) - 2.0;
            prop_assert!(*found as f64 >= least, "{} << {}", found, exact);
        }
        // If one subscriber's level is too low, the capacity that it leaves may raise another subscriber's level.
        for n in 0..6u8 {
            let sum = |of: &[u64]| -> f64 {
                of.iter().zip(&flows).filter(|(_, (of, _))| *of == n).map(|(rate, _)| *rate as f64).sum()
            };
            prop_assert!(sum(&found) <= sum(&reference(capacity, &flows)) * (1.0 + 1.0 / 128.0) + 40.0);
        }
    }

    #[test]
    fn the_remainder_is_divided_among_subscribers(
        capacity in 0u64..20_000_000_000, flows in sharers(),
    ) {
        let found = allocations(&shares(capacity, &flows, true, true), &flows);
        prop_assert!(found.iter().sum::<u64>() <= capacity);
        let names: std::collections::BTreeSet<u8> = flows.iter().map(|(of, _)| *of).collect();
        let wanted = flows.iter().map(|(_, d)| *d).fold(0, u64::saturating_add);
        for n in names.iter().filter(|_| wanted < capacity) {
            let part = (capacity - wanted) / names.len() as u64;
            let own = flows.iter().zip(&found).filter(|((of, _), _)| of == n);
            let (count, more) = own.fold((0, 0), |(count, more), ((_, d), rate)| (count + 1, more + rate - d));
            prop_assert!(more <= part && more + count >= part, "{} of {}", more, part);
        }
    }

    #[test]
    fn the_order_of_flows_does_not_matter(
        capacity in 0u64..20_000_000_000,
        (flows, order) in sharers().prop_flat_map(|flows| {
            let order: Vec<usize> = (0..flows.len()).collect();
            (Just(flows), Just(order).prop_shuffle())
        }),
    ) {
        let shuffled: Vec<Sharer> = order.iter().map(|at| flows[*at]).collect();
        let (plain, other) =
            [&flows, &shuffled].map(|of| allocations(&shares(capacity, of, true, true), of)).into();
        let back: Vec<u64> = order.iter().map(|at| plain[*at]).collect();
        prop_assert_eq!(other, back);
    }

    #[test]
    fn subscribers_with_one_flow_share_as_flows_do(
        capacity in 0u64..20_000_000_000,
        demands in proptest::collection::vec(demand(), 1..40),
        changes in proptest::collection::vec((0usize..40, demand(), 0u8..5), 0..40),
    ) {
        let mut flows: Vec<Sharer> = (0..).zip(demands).collect();
        let mut both = [false, true].map(|by_subscriber| shares(capacity, &flows, by_subscriber, true));
        for (at, demand, then) in changes {
            let slot = at % flows.len();
            for shares in &mut both {
                shares.change(slot as u32, flows[slot].1, demand);
                match then {
                    0 => shares.settle(),
                    1 => shares.tighten(),
                    2 => shares.reduce(0.7),
                    3 => shares.restore(),
                    _ => {}
                }
            }
            flows[slot].1 = demand;
            let [flat, grouped] = both.each_ref().map(|shares| (allocations(shares, &flows), shares.sum()));
            prop_assert_eq!(flat, grouped);
            for (slot, (_, demand)) in (0..).zip(&flows) {
                let [flat, grouped] = both.each_ref().map(|shares| shares.ceiling(slot, *demand));
                prop_assert_eq!(flat, grouped);
            }
            prop_assert_eq!(both[0].flows(), both[1].flows());
            prop_assert_eq!(both[0].rule(), both[1].rule());
        }
    }

    /// Flows join, leave and change in any order, and the level is computed at any time.
    #[test]
    fn the_sum_never_exceeds_the_capacity(
        capacity in 1u64..10_000_000_000,
        steps in proptest::collection::vec((0u8..6, 0u8..5, demand()), 1..80),
    ) {
        let mut shares = Shares::<IpAddr>::new(true, true);
        shares.set_capacity(Rate::from_bytes_per_sec(capacity));
        let mut flows: Vec<(u32, u64)> = Vec::new();
        for (slot, (step, of, demand)) in (0..).zip(steps) {
            let before: Vec<u64> =
                flows.iter().map(|(slot, d)| shares.allocation(shares.terms(*slot, AppClass::Unknown), *d).as_bytes_per_sec()).collect();
            match step {
                0 if !flows.is_empty() => {
                    let (slot, demand) = flows.swap_remove(0);
                    shares.remove(slot, demand);
                    shares.leave(slot);
                }
                1 => shares.settle(),
                _ => {
                    shares.join(slot, subscriber(of));
                    shares.insert(slot, demand);
                    shares.tighten();
                    for ((slot, demand), before) in flows.iter().zip(before) {
                        let after = shares.allocation(shares.terms(*slot, AppClass::Unknown), *demand).as_bytes_per_sec() as f64;
                        let most = before as f64 * (1.0 + 1.0 / 128.0) + 2.0;
                        prop_assert!(after <= most, "a newcomer raised a flow from {} to {}", before, after);
                    }
                    flows.push((slot, demand));
                }
            }
            let sum: u64 =
                flows.iter().map(|(slot, d)| shares.allocation(shares.terms(*slot, AppClass::Unknown), *d).as_bytes_per_sec()).sum();
            prop_assert!(sum <= capacity, "{} of {}", sum, capacity);
        }
    }
}

#[test]
fn a_subscriber_has_the_weight_of_one_flow_in_the_split() {
    let mut all = Subscribers::default();
    for slot in 0..12 {
        // Subscriber 0 has nine flows, subscriber 1 has one flow, and subscriber 2 has two flows in different classes.
        all.join(
            slot,
            subscriber(match slot {
                0..9 => 0,
                9 => 1,
                _ => 2,
            })
            .unwrap(),
        );
        all.count_active(slot, slot != 11, 1);
    }
    assert_eq!(all.weights(), (5 * WEIGHT / 2, WEIGHT / 2));
    assert_eq!((all.divisor(0), all.divisor(9), all.divisor(10)), (27, 3, 3));
    (0..9).for_each(|slot| all.count_active(slot, true, -1));
    assert_eq!(all.weights(), (3 * WEIGHT / 2, WEIGHT / 2));
    assert_eq!(all.divisor(9), 2);
}

#[test]
fn a_subscriber_without_records_leaves_nothing() {
    let mut all = Subscribers::default();
    for round in 0..1000u32 {
        let slot = round % 7;
        all.join(slot, subscriber(round as u8).unwrap());
        all.change(slot, |demands| demands.insert(u64::from(round)));
        all.change(slot, |demands| demands.remove(u64::from(round)));
        all.leave(slot);
    }
    assert_eq!((all.groups.len(), all.by_key.len(), all.flows()), (1, 0, 0));
}

/// Returns a network with two subscribers. The first subscriber has only flow 256. The second subscriber has the nine
/// flows from 512 on.
fn one_against_nine(report_every: u64) -> Net {
    let share = "sender-prefix/24".parse().unwrap();
    let mut net = Net::new(Params { share, ..Params::resolved() }, mbit(100.0));
    net.report_every = report_every;
    net.sender(256, 20, 0);
    (0..9).for_each(|n| net.sender(512 + n, 20, 100 * u64::from(n)).says = true);
    net
}

fn sent(net: &Net, from: usize) -> (f64, f64) {
    let sum = |of: &[super::super::harness::Sender]| of.iter().map(|s| s.sent).sum::<u64>() as f64;
    (sum(&net.senders[..from]), sum(&net.senders[from..]))
}

#[test]
fn nine_connections_get_no_more_than_one() {
    for report_every in [0, 10] {
        let mut net = one_against_nine(report_every);
        net.run(3_000);
        let before = sent(&net, 1);
        net.run(6_000);
        let after = sent(&net, 1);
        let (one, nine) = (after.0 - before.0, after.1 - before.1);
        assert!((one / nine - 1.0).abs() < 0.03, "{one} and {nine} with reports every {report_every} ms");
        let link = 0.98 * 3.0 * 100e6 / 8.0;
        assert!(one + nine > 0.97 * link, "{} of {link}", one + nine);
        let mut subscribers = None;
        net.brf
            .trace(&mut |name, value| subscribers = subscribers.or((name == "subscribers").then_some(value)));
        assert_eq!(subscribers, Some(2.0));
        for n in 0..9 {
            let rate = net.allocated(512 + n).as_f64() / mbit(98.0 / 18.0).as_f64();
            assert!((rate - 1.0).abs() < 0.03, "flow {n} has {rate} of its part");
        }
    }
}

#[test]
fn an_idle_subscribers_share_goes_to_the_others() {
    let mut net = one_against_nine(0);
    net.run(2_000);
    assert!((net.allocated(256).as_f64() / mbit(49.0).as_f64() - 1.0).abs() < 0.03);
    for sender in &mut net.senders[1..] {
        sender.limit = Rate::ZERO;
    }
    net.run(4_000);
    assert!(net.allocated(256) > mbit(96.0), "{:?}", net.allocated(256));
    for sender in &mut net.senders[1..] {
        sender.limit = Rate::MAX;
    }
    net.run(6_000);
    assert!((net.allocated(256).as_f64() / mbit(49.0).as_f64() - 1.0).abs() < 0.03);
}

#[test]
fn a_subscriber_below_its_share_leaves_the_rest_to_the_others() {
    let mut net = one_against_nine(0);
    net.senders[0].limit = mbit(10.0);
    net.run(4_000);
    let before = sent(&net, 1);
    net.run(6_000);
    let after = sent(&net, 1);
    let rates = [after.0 - before.0, after.1 - before.1].map(|bytes| bytes * 8.0 / 2e6);
    assert!((rates[0] - 10.0).abs() < 0.5 && rates[1] > 84.0, "{rates:?} Mbit/s");
}

/// A subscriber opens four connections within an RTT. The sum of their first rates must not exceed the subscriber's
/// half.
#[test]
fn newcomers_of_one_subscriber_leave_the_others_their_shares() {
    let mut both = Shares::<IpAddr>::new(false, true);
    both.set_capacity(mbit(100.0));
    let (a, b) = (subscriber(1), subscriber(2));
    both.join(0, b);
    both.count_active(0, true, 1);
    both.insert(0, UNBOUNDED);
    for slot in 1..=4 {
        both.join(slot, a);
        both.count_active(slot, true, 1);
        let share = both.share_of_newcomer(slot);
        assert!(share > Rate::ZERO);
        both.commit(slot, share.as_bytes_per_sec());
    }
    both.settle();
    let left = both.terms(0, AppClass::Unknown).base(UNBOUNDED);
    assert!(Rate::from_bytes_per_sec(left) >= mbit(50.0), "{left}");
}
