//! Classification and allocation (BRF-38 to BRF-47).

use super::commitments::Commitments;
use super::params::Params;
use super::subscribers::Subscribers;
use crate::rate::Host;
use crate::rate::kit::demand_index::{DemandIndex, MAX_DEMAND};
use crate::rate::kit::subscriber::Subscriber;
use crate::rate::kit::waterfill::UNBOUNDED;
use crate::units::{Bytes, Rate, Span};

/// The cause that limits a flow (BRF-38).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum AppClass {
    /// The flow still has its first rate, because no ACK could carry another rate yet (see `commitments`).
    Newcomer,
    /// The flow is new and not measured yet.
    #[default]
    Unknown,
    /// The flow uses less than its rate, because its application or another switch limits it.
    Limited,
    /// The flow fills its rate, because the allocation at this port limits it.
    Unlimited,
    /// Another switch limits the flow: the sender has more to send, but sends less than its rate at this port
    /// (BRF-102).
    Held,
}

/// Returns the class according to BRF-38, or `None` if the count is inconclusive. A count may be wrong by `tolerance`,
/// because a packet near either end of the window may fall inside or outside. In resolved mode the tolerance is one
/// packet. The paper's tolerance is zero. So in the paper, a flow of ten packets per window is classified as limited
/// after each window that contains only nine of them.
pub(super) fn classify(
    measured: Bytes,
    allocated: Rate,
    span: Span,
    a_cls: f64,
    tolerance: Bytes,
) -> Option<AppClass> {
    let threshold = a_cls * allocated.as_f64() * span.as_secs_f64();
    if (measured + tolerance).as_f64() < threshold {
        Some(AppClass::Limited)
    } else if measured.as_f64() - tolerance.as_f64() >= threshold {
        Some(AppClass::Unlimited)
    } else {
        None
    }
}

/// Minimum and maximum headroom of a flow held by another switch, per mille. If the headroom were below the uncertainty
/// of the count, a slow flow would never seem to fill its rate, and two switches on its path would keep its rate low.
const HELD_HEADROOM: (u16, u16) = (10, 1000);

/// The measured state of a flow whose sender says that its application does not limit the flow.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) enum Found {
    /// The flow fills its rate at this port.
    Fills,
    /// Another switch holds the flow to `rate`. The flow gets `headroom` (per mille) above that rate.
    Held { rate: Rate, headroom: u16 },
}

/// Like [`classify`], for a flow whose sender says that its application does not limit the flow. `headroom` is the
/// current headroom of the flow if it was held before.
///
/// The headroom of `B_HEAD`, a tenth of the rate, would take bandwidth from flows that can use it. A flow fills its
/// rate if it uses at least the share `threshold` of its allocation. With a smaller headroom, the class of a flow is as
/// stable as with `B_HEAD` if the threshold is closer to the allocation than `A_CLS`. The condition is that (1 +
/// headroom) * threshold exceeds 1 by more than the uncertainty of the count (BRF-39). The smallest stable headroom is
/// four times the uncertainty. With this headroom, the threshold is half a headroom below the allocation.
pub(super) fn classify_held(
    measured: Bytes,
    allocated: Rate,
    span: Span,
    tolerance: Bytes,
    headroom: Option<u16>,
) -> Option<Found> {
    let doubt = tolerance.as_f64() / measured.as_f64().max(1.0);
    let (least, most) = HELD_HEADROOM;
    let wanted = (4000.0 * doubt).clamp(f64::from(least), f64::from(most)) as u16;
    let part = measured.as_f64() / (allocated.as_f64() * span.as_secs_f64()).max(1.0);
    let threshold = 1.0 - f64::from(headroom.unwrap_or(wanted)) / 2000.0;
    if part * (1.0 + doubt) < threshold {
        Some(Found::Held { rate: Rate::of(measured, span), headroom: wanted })
    } else if part * (1.0 - doubt) >= threshold {
        Some(Found::Fills)
    } else {
        None
    }
}

/// Returns the rate of each unlimited flow by the paper's equation 14. If the limited flows want almost the whole
/// capacity, the rate is almost zero (TV-6). If they want more than the capacity, the rate is negative (TV-7).
pub(super) fn equal_share_literal(capacity: f64, sum_limited: f64, unlimited: u64) -> f64 {
    (capacity - sum_limited) / unlimited.max(1) as f64
}

/// Returns the minimum allocation (BRF-47). Without a minimum, an idle flow would get nothing and could never show a
/// demand.
pub(super) fn floor(params: &Params, mtu: Bytes, period: Span, capacity: Rate, flows: u64) -> Rate {
    let packets = params.floor_packets * mtu.as_f64() / period.as_secs_f64().max(1e-9);
    let least = packets.max(params.floor_share * capacity.as_f64());
    Rate::from_f64(least).min(Rate::from_bytes_per_sec(capacity.as_bytes_per_sec() / flows.max(1)))
}

/// The level and the part of the remainder that apply to one flow.
#[derive(Copy, Clone, Debug)]
pub(super) struct Terms {
    pub(super) level: u64,
    pub(super) spread: u64,
}

impl Terms {
    /// Returns BW_base, the flow's max-min share. BRF-38 compares the flow's traffic with this share.
    pub(super) fn base(self, demand: u64) -> u64 {
        demand.min(self.level).min(MAX_DEMAND)
    }
}

/// The allocations of all flows of a port, stored as a rule instead of a list.
///
/// A flow has its own demand (bytes/s; [`UNBOUNDED`] if no share satisfies it), and gets
/// `(min(demand, level) + spread) * reduction`. Level, spread and reduction belong to the port. So
/// a newcomer, a departure or a new capacity changes the allocations of a hundred thousand flows in
/// O(log) (BRF-103). In literal mode the demand is the allocation; level and spread are unused.
///
/// With subscribers, level and spread apply to the sum of a subscriber's demands. [`Subscribers`] computes a second
/// level for the flows within each subscriber. Functions identify a flow by its slot in the flow table.
pub(super) struct Shares<H> {
    /// The demands that the port's level limits: one per flow, or one per subscriber.
    index: DemandIndex,
    subscribers: Option<Subscribers<H>>,
    /// The rates of newcomers, which are not in the index.
    newcomers: Commitments,
    capacity: u64,
    level: u64,
    spread: u64,
    reduction: f64,
    spread_residual: bool,
    /// The minimum allocation of BRF-47, as computed in the last ALLOC or BW_INIT.
    floor: Rate,
    /// Number of bulk changes of demands so far.
    allotments: u64,
}

impl<H: Host> Shares<H> {
    pub(super) fn new(spread_residual: bool, by_subscriber: bool) -> Self {
        Shares {
            index: DemandIndex::default(),
            subscribers: by_subscriber.then(Subscribers::default),
            newcomers: Commitments::default(),
            capacity: 0,
            level: UNBOUNDED,
            spread: 0,
            reduction: 1.0,
            spread_residual,
            floor: Rate::ZERO,
            allotments: 0,
        }
    }

    pub(super) fn capacity(&self) -> Rate {
        Rate::from_bytes_per_sec(self.capacity)
    }

    /// Sets C_BRF. Allocations change only with the next [`settle`](Shares::settle) or [`tighten`](Shares::tighten).
    pub(super) fn set_capacity(&mut self, capacity: Rate) {
        self.capacity = capacity.as_bytes_per_sec().min(MAX_DEMAND);
    }

    /// Returns the sum of the rates that are committed to newcomers.
    pub(super) fn committed(&self) -> Rate {
        Rate::from_bytes_per_sec(self.newcomers.rate())
    }

    /// Returns the capacity that is not committed to newcomers, bytes/s.
    fn uncommitted(&self) -> u64 {
        self.capacity.saturating_sub(self.newcomers.rate())
    }

    /// Returns the rate of the `k`-th of several newcomers that arrive at the same time, for a port with this
    /// `capacity`. See [`Commitments::share`].
    pub(super) fn newcomer_share(&self, capacity: Rate, k: u64) -> Rate {
        self.newcomers.share(capacity, self.index.len(), k)
    }

    /// Returns the share of this newcomer. Newcomers of one subscriber divide the subscriber's equal share by the rule
    /// of [`Commitments::share`].
    pub(super) fn share_of_newcomer(&self, flow: u32) -> Rate {
        let share = self.newcomer_share(self.capacity(), 1);
        let of_subscriber = self.subscribers.as_ref().and_then(|s| s.newcomer_share(flow, self.capacity()));
        of_subscriber.map_or(share, |most| share.min(most))
    }

    /// Commits `rate` to a newcomer.
    pub(super) fn commit(&mut self, flow: u32, rate: u64) {
        self.each_commitments(flow, |commitments| commitments.add(rate));
    }

    /// Replaces the rate of a newcomer.
    pub(super) fn recommit(&mut self, flow: u32, from: u64, to: u64) {
        self.each_commitments(flow, |commitments| commitments.change(from, to));
    }

    /// Ends the commitment to a newcomer.
    pub(super) fn release(&mut self, flow: u32, rate: u64) {
        self.each_commitments(flow, |commitments| commitments.remove(rate));
    }

    /// Applies `change` to the commitments of the port, and to those of the flow's subscriber.
    fn each_commitments(&mut self, flow: u32, change: impl Fn(&mut Commitments)) {
        change(&mut self.newcomers);
        if let Some(of_subscriber) = self.subscribers.as_mut().and_then(|s| s.commitments_mut(flow)) {
            change(of_subscriber);
        }
    }

    /// Returns the number of flows with an allocation.
    pub(super) fn flows(&self) -> u64 {
        let established = self.subscribers.as_ref().map_or_else(|| self.index.len(), Subscribers::flows);
        established + self.newcomers.flows()
    }

    /// Adds the demand of an active flow.
    pub(super) fn insert(&mut self, flow: u32, demand: u64) {
        match &mut self.subscribers {
            None => self.index.insert(demand),
            Some(subscribers) => {
                let change = subscribers.change(flow, |demands| demands.insert(demand));
                self.replace(change);
            }
        }
    }

    /// Removes the demand of a flow.
    pub(super) fn remove(&mut self, flow: u32, demand: u64) {
        match &mut self.subscribers {
            None => self.index.remove(demand),
            Some(subscribers) => {
                let change = subscribers.change(flow, |demands| demands.remove(demand));
                self.replace(change);
            }
        }
    }

    /// Replaces an active flow's demand.
    pub(super) fn change(&mut self, flow: u32, from: u64, to: u64) {
        match &mut self.subscribers {
            None => {
                self.index.remove(from);
                self.index.insert(to);
            }
            Some(subscribers) => {
                let change = subscribers.change(flow, |demands| {
                    demands.remove(from);
                    demands.insert(to);
                });
                self.replace(change);
            }
        }
    }

    /// Replaces the demand of a subscriber.
    fn replace(&mut self, (before, after): (Option<u64>, Option<u64>)) {
        if before != after {
            before.into_iter().for_each(|demand| self.index.remove(demand));
            after.into_iter().for_each(|demand| self.index.insert(demand));
        }
    }

    /// Records the subscriber of a new flow.
    pub(super) fn join(&mut self, flow: u32, subscriber: Option<Subscriber<H>>) {
        if let (Some(subscribers), Some(key)) = (&mut self.subscribers, subscriber) {
            subscribers.join(flow, key);
        }
    }

    /// Called when the record of the flow has been removed.
    pub(super) fn leave(&mut self, flow: u32) {
        if let Some(subscribers) = &mut self.subscribers {
            subscribers.leave(flow);
        }
    }

    /// Counts a flow that becomes active (`change` is 1), or is no longer active (-1), in the rated class or the other
    /// class.
    pub(super) fn count_active(&mut self, flow: u32, rated: bool, change: i32) {
        if let Some(subscribers) = &mut self.subscribers {
            subscribers.count_active(flow, rated, change);
        }
    }

    /// Returns the number of subscribers with a share, or `None` if each flow has its own share.
    pub(super) fn subscribers(&self) -> Option<u64> {
        self.subscribers.as_ref().map(Subscribers::rated)
    }

    /// Returns N such that the equal share of this active flow is the capacity divided by N. `flows` is the number of
    /// active flows.
    pub(super) fn divisor(&self, flow: u32, flows: u64) -> u64 {
        self.subscribers.as_ref().map_or(flows, |subscribers| subscribers.divisor(flow))
    }

    /// Returns the weights of the rated class and of the other class, or `None` if each class has its number of flows
    /// as weight.
    pub(super) fn weights(&self) -> Option<(u64, u64)> {
        self.subscribers.as_ref().map(Subscribers::weights)
    }

    /// Call this before many demands are changed; see [`DemandIndex::begin_bulk`].
    pub(super) fn begin_bulk(&mut self) {
        self.index.begin_bulk();
    }

    pub(super) fn end_bulk(&mut self) {
        self.index.end_bulk();
    }

    /// Returns the max-min level of the established flows, which is at least the floor. Without the floor,
    /// newcomers could take the whole capacity. A flow without a rate would send nothing, and get no ACK that
    /// carries a new rate (BRF-47).
    fn fair_level(&self) -> u64 {
        // The floor may be too high, because the capacity may have fallen after the floor was computed.
        let floor = self.floor.as_bytes_per_sec().min(self.capacity / self.flows().max(1));
        self.index.level(self.uncommitted()).map_or(UNBOUNDED, |level| level.max(floor))
    }

    /// Computes the allocation of BRF-40: max-min fair shares of all demands. The remainder is spread evenly
    /// (BRF-42).
    pub(super) fn settle(&mut self) {
        self.level = self.fair_level();
        self.spread = if self.spread_residual { self.leftover() } else { 0 };
    }

    /// Like [`settle`](Shares::settle), but no allocation rises: the resolved newcomer rule of
    /// BRF-33.
    pub(super) fn tighten(&mut self) {
        self.level = self.level.min(self.fair_level());
        self.spread = self.spread.min(self.leftover());
    }

    /// Returns the amount that each flow, or each subscriber, gets above its demand.
    fn leftover(&self) -> u64 {
        // If a level limits flows, nothing is left to spread. After `tighten`, the level may be so low that a remainder
        // is left. This remainder is not spread before the next `settle`.
        if self.level != UNBOUNDED || self.index.is_empty() {
            return 0;
        }
        self.uncommitted().saturating_sub(self.index.bounded_sum()) / self.index.len()
    }

    /// Scales all allocations by `factor` until [`restore`](Shares::restore) or the next reduction.
    pub(super) fn reduce(&mut self, factor: f64) {
        self.reduction = factor.clamp(0.0, 1.0);
    }

    /// Like [`sum`](Shares::sum), without a reduction.
    pub(super) fn full_sum(&self) -> f64 {
        let base = match self.level {
            UNBOUNDED => (self.index.bounded_sum() + self.newcomers.rate()) as f64,
            // A level exists only if the demands exceed the capacity. So the flows fill the capacity, or filled it when
            // the level was computed.
            _ => self.capacity.max(self.newcomers.rate()) as f64,
        };
        base + self.spread as f64 * self.index.len() as f64
    }

    /// Ends a reduction. Rates are computed from the stored demands again. Reduced rates are not scaled up (BRF-82).
    pub(super) fn restore(&mut self) {
        self.reduction = 1.0;
    }

    /// Returns the terms of a flow of this class.
    pub(super) fn terms(&self, flow: u32, class: AppClass) -> Terms {
        match &self.subscribers {
            // The level for established flows does not apply to a newcomer.
            _ if class == AppClass::Newcomer => Terms { level: UNBOUNDED, spread: 0 },
            None => Terms { level: self.level, spread: self.spread },
            Some(subscribers) => subscribers.terms(flow, self.level, self.spread),
        }
    }

    /// Returns the share that a flow would get if its demand were unlimited instead of this demand.
    pub(super) fn ceiling(&self, flow: u32, demand: u64) -> u64 {
        let level = match &self.subscribers {
            None => self.level,
            Some(subscribers) => subscribers.ceiling(flow, self.level, demand),
        };
        level.min(MAX_DEMAND)
    }

    /// Returns the flow's max-min share, see [`Terms::base`], with the current reduction.
    pub(super) fn base_reduced(&self, terms: Terms, demand: u64) -> u64 {
        let base = terms.base(demand);
        if self.reduction < 1.0 { (base as f64 * self.reduction) as u64 } else { base }
    }

    /// Returns BW_alloc, the rate that the flow gets as feedback.
    pub(super) fn allocation(&self, terms: Terms, demand: u64) -> Rate {
        let full = terms.base(demand).saturating_add(terms.spread);
        let full = Rate::from_bytes_per_sec(full);
        if self.reduction < 1.0 { full.mul_f64(self.reduction) } else { full }
    }

    /// Returns the sum of the rates of all flows.
    pub(super) fn sum(&self) -> f64 {
        self.full_sum() * self.reduction
    }

    /// Returns all values that turn a demand into an allocation. While none of them changes, equal demands of a flow
    /// give equal allocations.
    pub(super) fn rule(&self) -> [u64; 6] {
        let epoch = self.subscribers.as_ref().map_or(0, Subscribers::epoch);
        let floor = self.floor.as_bytes_per_sec();
        [self.allotments, self.level, self.spread, self.reduction.to_bits(), epoch, floor]
    }

    /// Returns the minimum allocation.
    pub(super) fn floor(&self) -> Rate {
        self.floor
    }

    pub(super) fn set_floor(&mut self, floor: Rate) {
        self.floor = floor;
    }

    /// Counts a bulk change of demands, which may change the allocation of any flow.
    pub(super) fn count_allotment(&mut self) {
        self.allotments += 1;
    }

    /// Returns the amount that a flow gets in addition to its share, bytes/s (BRF-42).
    pub(super) fn spread(&self, flow: u32) -> u64 {
        match &self.subscribers {
            None => self.spread,
            Some(subscribers) => subscribers.spread(flow, self.spread),
        }
    }

    /// Returns the factor of the current reduction, or 1 if there is no reduction.
    pub(super) fn reduction(&self) -> f64 {
        self.reduction
    }

    /// Returns the level, for traces; infinite if every demand fits.
    pub(super) fn level(&self) -> f64 {
        if self.level == UNBOUNDED { f64::INFINITY } else { self.level as f64 }
    }
}

#[cfg(test)]
mod tests {
    use core::net::IpAddr;

    use super::*;
    use proptest::prelude::*;

    const WINDOW: Span = Span::from_secs(1);

    fn classes(allocated: [f64; 3], real: [f64; 3], a_cls: f64) -> [AppClass; 3] {
        [0, 1, 2].map(|i| {
            let (measured, allocated) =
                (Bytes::new((real[i] * 1e6) as u64), Rate::from_f64(allocated[i] * 1e6));
            classify(measured, allocated, WINDOW, a_cls, Bytes::ZERO).unwrap()
        })
    }

    #[test]
    fn tv_5_to_7_as_printed() {
        use AppClass::{Limited, Unlimited};
        assert_eq!(classes([40.0, 30.0, 30.0], [8.0, 30.0, 29.5], 0.95), [Limited, Unlimited, Unlimited]);
        assert!((equal_share_literal(100.0, 8.8, 2) - 45.6).abs() < 1e-9);
        assert_eq!(classes([95.0, 2.5, 2.5], [88.0, 2.5, 2.5], 0.95), [Limited, Unlimited, Unlimited]);
        assert!((equal_share_literal(100.0, 96.8, 2) - 1.6).abs() < 1e-9);
        assert!((equal_share_literal(98.0, 99.0, 2) + 0.5).abs() < 1e-9, "TV-7 is negative");
    }

    #[test]
    fn tv_8_alternates_in_the_papers_corner_and_not_by_default() {
        // The capacity is 100, and the only flow can use 10.
        let run = |b_head: f64| {
            let mut allocated = 100.0f64;
            core::iter::repeat_with(|| {
                let now = allocated;
                let real = 10.0f64.min(allocated);
                allocated = match classes([allocated; 3], [real; 3], 0.95)[0] {
                    AppClass::Limited => b_head * real,
                    _ => equal_share_literal(100.0, 0.0, 1),
                };
                now
            })
            .take(5)
            .collect::<Vec<f64>>()
        };
        assert_eq!(run(1.05), [100.0, 10.5, 100.0, 10.5, 100.0]);
        assert_eq!(run(1.10), [100.0, 11.0, 11.0, 11.0, 11.0]);
    }

    /// BRF-39 for held flows. The error of the count is arbitrary within its tolerance. A held flow that has its
    /// headroom is never found to fill its rate. A flow that fills its rate is never found to be held.
    #[test]
    fn a_held_flow_does_not_change_class() {
        let mtu = Bytes::new(1500);
        let found = |packets: f64, rate: f64, headroom| {
            let (measured, rate) = (Bytes::new((packets * 1500.0) as u64), Rate::from_f64(rate * 1500.0));
            classify_held(measured, rate, WINDOW, mtu, headroom)
        };
        for packets in [8.0, 30.0, 150.0, 400.0, 5_000.0] {
            let Some(Found::Held { headroom, .. }) = found(packets, 2.0 * packets, None) else {
                panic!("{packets} of twice as many")
            };
            assert_eq!(f64::from(headroom), (4000.0 / packets).clamp(10.0, 1000.0).floor());
            let told = packets * (1.0 + f64::from(headroom) / 1000.0);
            for off in [-0.9, 0.0, 0.9] {
                let again = found(packets + off, told, Some(headroom));
                assert_ne!(again, Some(Found::Fills), "{packets} {off}");
                let filled = found(told + off, told, Some(headroom));
                assert!(matches!(filled, None | Some(Found::Fills)), "{packets} {off}: {filled:?}");
            }
            assert_eq!(found(told, told, Some(headroom)), Some(Found::Fills));
        }
    }

    #[test]
    fn a_packet_more_or_less_does_not_change_the_class() {
        // The allocation permits ten packets in 20 ms.
        let of = |packets: u64| {
            let (rate, span) = (Rate::from_bytes_per_sec(750_000), Span::from_millis(20));
            classify(Bytes::new(packets * 1500), rate, span, 0.95, Bytes::new(1500))
        };
        assert_eq!([8, 9, 10, 11].map(of), [Some(AppClass::Limited), None, None, Some(AppClass::Unlimited)]);
    }

    #[test]
    fn the_floor_is_two_packets_a_period_but_never_more_than_a_fair_share() {
        let (params, capacity) = (Params::resolved(), Rate::from_bytes_per_sec(12_250_000));
        let of = |flows| floor(&params, Bytes::new(1500), Span::from_millis(20), capacity, flows);
        assert_eq!(of(2), Rate::from_bytes_per_sec(150_000));
        assert_eq!(of(1000), Rate::from_bytes_per_sec(12_250));
    }

    proptest! {
        #[test]
        fn allocations_exceed_neither_capacity_nor_demand(
            capacity in 1u64..10_000_000_000,
            steps in proptest::collection::vec((0u8..5, prop_oneof![Just(UNBOUNDED), 0u64..5_000_000_000]), 1..60),
            spread in any::<bool>(),
        ) {
            let mut shares = Shares::<IpAddr>::new(spread, false);
            let mut demands = Vec::new();
            shares.set_capacity(Rate::from_bytes_per_sec(capacity));
            for (step, demand) in steps {
                let before: Vec<Rate> = demands.iter().map(|d| shares.allocation(shares.terms(0, AppClass::Unknown), *d)).collect();
                match step {
                    0 if !demands.is_empty() => shares.remove(0, demands.swap_remove(0)),
                    1 => {
                        shares.settle();
                        let least = capacity / demands.len().max(1) as u64;
                        for d in &demands {
                            // Every flow has at least its demand or the fair share, whichever is smaller. The level of
                            // the index may be too low by half a bucket.
                            prop_assert!(shares.terms(0, AppClass::Unknown).base(*d) + 1 + least / 200 >= least.min(*d));
                        }
                    }
                    2 => shares.reduce(0.7),
                    3 => shares.restore(),
                    _ => {
                        demands.push(demand);
                        shares.insert(0, demand);
                        shares.tighten();
                        for (d, before) in demands.iter().zip(before) {
                            prop_assert!(shares.allocation(shares.terms(0, AppClass::Unknown), *d) <= before, "a newcomer raised an allocation");
                        }
                    }
                }
                let sum: Rate = demands.iter().map(|d| shares.allocation(shares.terms(0, AppClass::Unknown), *d)).sum();
                prop_assert!(sum.as_bytes_per_sec() <= capacity);
                prop_assert!(sum.as_f64() <= shares.sum() + 1.0);
                if !spread {
                    prop_assert!(demands.iter().all(|d| shares.allocation(shares.terms(0, AppClass::Unknown), *d).as_bytes_per_sec() <= *d));
                }
            }
        }
    }
}
