//! The impairments of a link. They are applied in this order: policer, random loss, duplication, jitter, aggregation.

use narrows_control::units::{Bytes, Rate, Span, Time};

use crate::engine::{Random, Stream};
use crate::plan::{JitterPlan, LinkPlan, LossPlan, PolicerPlan};

/// The impairments of a link. Loss, duplication and jitter each have their own random stream.
#[derive(Clone, Debug)]
pub struct Impairments {
    policer: Option<Policer>,
    loss: Vec<(Time, LossPlan)>,
    /// Whether the link is in the bad state of the Gilbert-Elliott model.
    is_bad: bool,
    duplicate: f64,
    jitter: Option<JitterPlan>,
    /// Later values of the jitter. See [`LinkPlan::jitter_changes`].
    jitter_changes: Vec<(Time, JitterPlan)>,
    aggregation: Option<Span>,
    random: [Random; 3],
}

/// A policer (token bucket). A token stands for a billionth of a byte. At a rate in whole bytes/s, the bucket therefore
/// gets a whole number of tokens per nanosecond.
#[derive(Clone, Debug)]
struct Policer {
    rate: Rate,
    depth: u128,
    tokens: u128,
    /// The latest time at which a packet has arrived.
    latest: Time,
}

/// Converts a number of bytes to tokens.
fn tokens_of(size: Bytes) -> u128 {
    u128::from(size.get()) * 1_000_000_000
}

impl Policer {
    fn new(plan: &PolicerPlan) -> Self {
        let depth = tokens_of(plan.burst);
        Policer { rate: plan.rate, depth, tokens: depth, latest: Time::ZERO }
    }

    /// Takes the tokens for a packet from the bucket. If there are not enough tokens, takes none and returns `false`.
    fn take_tokens(&mut self, now: Time, size: Bytes) -> bool {
        // The relay of the real-time backend may pass an earlier time than in its previous call.
        let now = now.max(self.latest);
        let passed = now.since(self.latest);
        self.latest = now;
        let added = u128::from(self.rate.as_bytes_per_sec()) * u128::from(passed.as_nanos());
        self.tokens = (self.tokens + added).min(self.depth);
        match self.tokens.checked_sub(tokens_of(size)) {
            Some(rest) => {
                self.tokens = rest;
                true
            }
            None => false,
        }
    }
}

/// The effect of the impairments on a packet that has left the queue.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Fate {
    /// Whether the packet is lost, or dropped by the policer.
    pub is_lost: bool,
    /// Whether the packet arrives twice.
    pub is_duplicated: bool,
    /// Additional delay from jitter and aggregation.
    pub extra_delay: Span,
}

impl Impairments {
    /// Creates the impairments of link number `link`. Returns `None` if the link has no impairments.
    pub fn new(plan: &LinkPlan, seed: u64, link: u64) -> Option<Box<Self>> {
        let has_jitter = plan.jitter.is_some() || !plan.jitter_changes.is_empty();
        let is_random = !plan.loss.is_empty() || plan.duplicate > 0.0 || has_jitter;
        let perfect = !is_random && plan.policer.is_none() && plan.aggregation.is_none();
        (!perfect).then(|| {
            Box::new(Impairments {
                policer: plan.policer.as_ref().map(Policer::new),
                loss: plan.loss.clone(),
                is_bad: false,
                duplicate: plan.duplicate,
                jitter: plan.jitter.clone(),
                jitter_changes: plan.jitter_changes.clone(),
                aggregation: plan.aggregation,
                random: [0, 1, 2].map(|k| Random::new(seed, Stream::Impairments.of(link << 2 | k))),
            })
        })
    }

    /// Whether a packet that enters the link at `now` may overtake another packet.
    pub fn can_reorder(&self, now: Time) -> bool {
        self.jitter_at(now).is_some_and(|j| j.reorder)
    }

    fn jitter_at(&self, now: Time) -> Option<&JitterPlan> {
        let later = self.jitter_changes.partition_point(|&(t, _)| t <= now).checked_sub(1);
        later.map_or(self.jitter.as_ref(), |i| Some(&self.jitter_changes[i].1))
    }

    /// Decides the fate of a packet that enters the link at `now`.
    pub fn draw_fate(&mut self, now: Time, size: Bytes) -> Fate {
        if self.policer.as_mut().is_some_and(|policer| !policer.take_tokens(now, size)) {
            return Fate { is_lost: true, ..Fate::default() };
        }
        let model = self.loss.partition_point(|&(t, _)| t <= now).checked_sub(1).map(|i| &self.loss[i].1);
        let most_jitter = self.jitter_at(now).map(|jitter| jitter.max);
        let [loss, duplicate, jitter] = &mut self.random;
        let is_lost = match model {
            None => false,
            Some(&LossPlan::Bernoulli { p }) => loss.chance(p),
            Some(&LossPlan::GilbertElliott { p, r, good, bad }) => {
                let change = if self.is_bad { r } else { p };
                self.is_bad ^= loss.chance(change);
                loss.chance(if self.is_bad { bad } else { good })
            }
        };
        let is_duplicated = duplicate.chance(self.duplicate);
        let mut extra_delay = most_jitter.map_or(Span::ZERO, |most| most.mul_f64(jitter.unit()));
        if let Some(interval) = self.aggregation {
            let begun = Span::from_nanos((now + extra_delay).as_nanos() % interval.as_nanos());
            if begun > Span::ZERO {
                extra_delay += interval - begun;
            }
        }
        Fate { is_lost, is_duplicated, extra_delay }
    }
}

#[cfg(test)]
mod tests {
    use narrows_control::units::Rate;
    use proptest::prelude::*;

    use super::*;
    use crate::plan::LimitPlan;

    const GBIT: u64 = 1_000_000_000;

    fn impaired(change: impl FnOnce(&mut LinkPlan)) -> Box<Impairments> {
        let rate = Rate::from_bits_per_sec(GBIT);
        let mut plan = LinkPlan::new("a->b", (0, 1), rate, Span::ZERO, LimitPlan::default());
        change(&mut plan);
        Impairments::new(&plan, 1, 0).expect("an impairment")
    }

    proptest! {
        /// In any interval, the policer passes at most the burst plus the rate times the length of the interval. It
        /// drops only packets that would exceed this limit.
        #[test]
        fn a_policer_is_a_token_bucket(
            packets in prop::collection::vec((0u64..40_000, 40u64..1500), 1..60),
            burst in 1500u64..20_000,
            bytes_per_second in 1_000_000u64..20_000_000_000,
        ) {
            let rate = Rate::from_bytes_per_sec(bytes_per_second);
            let mut impair = impaired(|plan| plan.policer = Some(PolicerPlan { rate, burst: Bytes::new(burst) }));
            let mut now = 0;
            let mut passed: Vec<(u64, u64)> = Vec::new();
            for (gap, size) in packets {
                now += gap;
                let exceeds = std::iter::once(now).chain(passed.iter().map(|&(at, _)| at)).any(|start| {
                    let earlier: u64 = passed.iter().filter(|&&(at, _)| at >= start).map(|&(_, size)| size).sum();
                    let added = u128::from(bytes_per_second) * u128::from(now - start);
                    u128::from(earlier + size) * 1_000_000_000 > u128::from(burst) * 1_000_000_000 + added
                });
                let fate = impair.draw_fate(Time::from_nanos(now), Bytes::new(size));
                prop_assert_eq!(fate.is_lost, exceeds);
                if !exceeds {
                    passed.push((now, size));
                }
            }
        }

        #[test]
        fn packets_of_an_interval_leave_together_at_its_end(
            gaps in prop::collection::vec(0u64..5_000_000, 1..200),
            interval in 1u64..20_000_000,
        ) {
            let mut impair = impaired(|plan| plan.aggregation = Some(Span::from_nanos(interval)));
            let mut now = 0;
            for gap in gaps {
                now += gap;
                let fate = impair.draw_fate(Time::from_nanos(now), Bytes::new(1500));
                let arrival = now + fate.extra_delay.as_nanos();
                prop_assert_eq!(arrival, now.div_ceil(interval) * interval);
            }
        }
    }

    #[test]
    fn jitter_changes_at_its_times() {
        let jitter = |millis, reorder| JitterPlan { max: Span::from_millis(millis), reorder };
        let mut impair = impaired(|plan| {
            plan.jitter_changes = vec![
                (Time::from_secs_f64(1.0), jitter(3, true)),
                (Time::from_secs_f64(2.0), jitter(0, false)),
            ];
        });
        let largest = |impair: &mut Impairments, second: f64| {
            let now = Time::from_secs_f64(second);
            (0..1000).map(|_| impair.draw_fate(now, Bytes::new(1500)).extra_delay).max().unwrap_or_default()
        };
        assert_eq!(largest(&mut impair, 0.999), Span::ZERO);
        let between = largest(&mut impair, 1.0);
        assert!(between > Span::from_micros(2900) && between <= Span::from_millis(3), "{between:?}");
        assert_eq!(largest(&mut impair, 2.0), Span::ZERO);
        let reorders = [0.999, 1.0, 1.999, 2.0].map(|second| impair.can_reorder(Time::from_secs_f64(second)));
        assert_eq!(reorders, [false, true, true, false]);
    }

    #[test]
    fn aggregation_follows_jitter() {
        let mut impair = impaired(|plan| {
            plan.jitter = Some(JitterPlan { max: Span::from_millis(3), reorder: false });
            plan.aggregation = Some(Span::from_millis(10));
        });
        let mut arrivals: Vec<u64> = (0..200)
            .map(|_| {
                impair.draw_fate(Time::from_nanos(8_000_000), Bytes::new(1500)).extra_delay.as_nanos()
                    + 8_000_000
            })
            .collect();
        arrivals.sort_unstable();
        arrivals.dedup();
        assert_eq!(arrivals, [10_000_000, 20_000_000]);
    }
}
