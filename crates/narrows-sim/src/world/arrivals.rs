//! Decides when flows start. If a flow plan has a `count`, this module computes the start times of its flows. If it is
//! a Poisson source, this module draws the arrival times and the sizes of its flows.

use narrows_control::units::{Span, Time};

use crate::engine::{Random, Stream};
use crate::plan::{AppPlan, FlowPlan, SizePlan};

/// The random process of a flow plan with Poisson arrivals.
#[derive(Clone, Debug)]
pub struct Arrivals {
    random: Random,
    mean_gap: f64,
    size: SizePlan,
}

impl Arrivals {
    /// Creates the process of flow plan number `index`. Returns `None` if the plan has no Poisson arrivals.
    pub fn new(plan: &FlowPlan, seed: u64, index: u64) -> Option<Self> {
        let AppPlan::Poisson { per_sec, size } = &plan.app else { return None };
        let random = Random::new(seed, Stream::Arrivals.of(index));
        Some(Arrivals { random, mean_gap: 1.0 / per_sec, size: size.clone() })
    }

    /// Draws the time until the next arrival.
    pub fn draw_gap(&mut self) -> Span {
        Span::from_secs_f64(self.random.exponential(self.mean_gap))
    }

    /// Draws the size of the next flow in bytes. The size is at least 1.
    pub fn draw_size(&mut self) -> u64 {
        draw_size(&self.size, &mut self.random)
    }

    /// Draws all arrivals from `start` to `stop` as (time, bytes). At each arrival, the iterator first draws the gap to
    /// the next arrival. It then draws the size of the flow that arrives. The simulator uses the same order.
    pub fn until(mut self, start: Time, stop: Time) -> impl Iterator<Item = (Time, u64)> {
        let mut next = start + self.draw_gap();
        std::iter::from_fn(move || {
            let now = next;
            (now <= stop && now < Time::NEVER).then(|| {
                next = now + self.draw_gap();
                (now, self.draw_size())
            })
        })
    }
}

/// Draws a size in bytes. The size is at least 1.
pub(crate) fn draw_size(size: &SizePlan, random: &mut Random) -> u64 {
    let bytes = match size {
        SizePlan::Fixed { bytes } => *bytes,
        SizePlan::Exponential { mean } => random.exponential(*mean),
        SizePlan::Pareto { mean, shape } => random.pareto(*mean, *shape),
        SizePlan::Empirical { points } => quantile(points, random.unit()),
    };
    (bytes.min(1e15) as u64).max(1)
}

/// Returns a quantile of the size: a flow has at most this size with probability `share`. Sizes between two points are
/// interpolated linearly. `share` must be below 1. The points must come from a plan that has passed
/// [`check`](crate::plan::check).
fn quantile(points: &[(f64, f64)], share: f64) -> f64 {
    let above = points.partition_point(|&(_, until)| until <= share);
    let [(low, from), (high, to)] = [points[above - 1], points[above]];
    low + (high - low) * (share - from) / (to - from)
}

/// Returns the start times of the flows of a flow plan, earliest first. The flows start at even intervals, and each
/// start is delayed by a random time of up to the plan's jitter. `index` is the number of the flow plan.
pub fn starts(plan: &FlowPlan, seed: u64, index: u64) -> Vec<Time> {
    let even = (0..u64::from(plan.count)).map(|i| plan.start + plan.spacing.scale(i, 1));
    if plan.start_jitter == Span::ZERO {
        return even.collect();
    }
    let mut random = Random::scattered(seed, Stream::Starts.of(index));
    let mut starts: Vec<Time> = even.map(|start| start + plan.start_jitter.mul_f64(random.unit())).collect();
    starts.sort_unstable();
    starts
}
