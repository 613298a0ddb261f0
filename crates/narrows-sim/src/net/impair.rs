//! Impairments of a link: random loss, duplication, jitter.

use narrows_control::units::{Span, Time};

use crate::engine::{Random, Stream};
use crate::plan::{JitterPlan, LinkPlan, LossPlan};

/// Random loss, duplication and jitter of a link. Each has its own random stream.
#[derive(Clone, Debug)]
pub struct Impairments {
    loss: Vec<(Time, LossPlan)>,
    /// Whether the link is in the bad state of the Gilbert-Elliott model.
    is_bad: bool,
    duplicate: f64,
    jitter: Option<JitterPlan>,
    random: [Random; 3],
}

/// The effect of the impairments on a packet that has left the queue.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Fate {
    /// Whether the packet is lost.
    pub is_lost: bool,
    /// Whether the packet arrives twice.
    pub is_duplicated: bool,
    /// Additional delay by jitter.
    pub extra_delay: Span,
}

impl Impairments {
    /// Creates the impairments of link number `link`. Returns `None` for a perfect link.
    pub fn new(plan: &LinkPlan, seed: u64, link: u64) -> Option<Box<Self>> {
        let perfect = plan.loss.is_empty() && plan.duplicate == 0.0 && plan.jitter.is_none();
        (!perfect).then(|| {
            Box::new(Impairments {
                loss: plan.loss.clone(),
                is_bad: false,
                duplicate: plan.duplicate,
                jitter: plan.jitter.clone(),
                random: [0, 1, 2].map(|k| Random::new(seed, Stream::Impairments.of(link << 2 | k))),
            })
        })
    }

    /// Whether packets may overtake each other.
    pub fn can_reorder(&self) -> bool {
        self.jitter.as_ref().is_some_and(|j| j.reorder)
    }

    /// Draws the fate of a packet that enters the link at `now`.
    pub fn draw_fate(&mut self, now: Time) -> Fate {
        let model = self.loss.partition_point(|&(t, _)| t <= now).checked_sub(1).map(|i| &self.loss[i].1);
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
        Fate {
            is_lost,
            is_duplicated: duplicate.chance(self.duplicate),
            extra_delay: self.jitter.as_ref().map_or(Span::ZERO, |j| j.max.mul_f64(jitter.unit())),
        }
    }
}
