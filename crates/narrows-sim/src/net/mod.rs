//! Links and queues: the rate of a link, its impairments, and the queue in front of it.

mod impair;
mod port;
mod queue;
mod route;
mod service;

pub use impair::{Fate, Impairments};
pub(crate) use port::{Enqueue, Port, PortTotals, watch};
pub(crate) use route::{BothWays, HOST, Paths};
pub use service::Service;

use narrows_control::units::{Span, Time};

/// Returns the value of the step that applies at `now`. `steps` are sorted by time. Before the first step, the first
/// step's value applies. If there are no steps, the value is zero.
#[inline]
pub fn step_at(steps: &[(Time, Span)], now: Time) -> Span {
    match steps {
        [(_, only)] => *only,
        _ => {
            let next = steps.partition_point(|&(from, _)| from <= now);
            steps.get(next.saturating_sub(1)).map_or(Span::ZERO, |&(_, value)| value)
        }
    }
}
