//! A Poisson source: when its flows arrive and how long they are.

use narrows_control::units::{Span, Time};

use crate::engine::Random;
use crate::plan::{AppPlan, FlowPlan, SizePlan};

/// The random process behind a flow plan with Poisson arrivals.
#[derive(Clone, Debug)]
pub struct Arrivals {
    random: Random,
    mean_gap: f64,
    size: SizePlan,
}

impl Arrivals {
    /// The process of flow plan number `index`; `None` if the plan has no arrivals.
    pub fn new(plan: &FlowPlan, seed: u64, index: u64) -> Option<Self> {
        let AppPlan::Poisson { per_sec, size } = &plan.app else { return None };
        let random = Random::new(seed, 3 << 40 | index);
        Some(Arrivals { random, mean_gap: 1.0 / per_sec, size: size.clone() })
    }

    /// The next time between two arrivals.
    pub fn gap(&mut self) -> Span {
        Span::from_secs_f64(self.random.exponential(self.mean_gap))
    }

    /// The next flow's size in bytes, at least one.
    pub fn size(&mut self) -> u64 {
        let bytes = match self.size {
            SizePlan::Fixed { bytes } => bytes,
            SizePlan::Exponential { mean } => self.random.exponential(mean),
            SizePlan::Pareto { mean, shape } => self.random.pareto(mean, shape),
        };
        (bytes.min(1e15) as u64).max(1)
    }

    /// Every arrival from `start` to `stop` as (time, bytes), as the simulator draws them: a gap is drawn before the size of
    /// the flow in front of it.
    pub fn until(mut self, start: Time, stop: Time) -> impl Iterator<Item = (Time, u64)> {
        let mut next = start + self.gap();
        std::iter::from_fn(move || {
            let now = next;
            (now <= stop && now < Time::NEVER).then(|| {
                next = now + self.gap();
                (now, self.size())
            })
        })
    }
}
