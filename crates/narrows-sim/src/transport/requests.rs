//! The requests for objects on one connection, and the times of these objects.

use narrows_control::units::{Bytes, Span, Time};

use crate::engine::Random;
use crate::plan::{AppPlan, SizePlan};
use crate::world::draw_size;

/// The requests of a flow: the sizes of the objects, and the rules for when the receiver sends a request.
#[derive(Clone, Debug)]
pub struct Requests {
    random: Random,
    size: SizePlan,
    parallel: u32,
    left: Option<u32>,
    think: Span,
    stop: Time,
}

impl Requests {
    /// Returns the requests of an application; `None` if the application has no requests. No request is sent at or
    /// after the time `stop`. Equal seeds give equal sizes.
    pub(crate) fn new(plan: &AppPlan, seed: u64, stop: Time) -> Option<Self> {
        let AppPlan::Requests { size, parallel, count, think } = plan else { return None };
        Some(Requests {
            random: Random::scattered(seed, 0),
            size: size.clone(),
            parallel: *parallel,
            left: *count,
            think: *think,
            stop,
        })
    }

    /// Returns the largest number of requests that may be open at the same time.
    pub fn parallel(&self) -> u32 {
        self.parallel
    }

    /// Returns the time that the receiver waits between the last byte of an object and the next request.
    pub fn think(&self) -> Span {
        self.think
    }

    /// Whether the receiver may send another request at this time.
    pub fn has_more(&self, at: Time) -> bool {
        at < self.stop && self.left != Some(0)
    }

    /// Returns the size of the object for the next request; `None` if there are no more requests.
    pub fn next_size(&mut self, now: Time) -> Option<Bytes> {
        if !self.has_more(now) {
            return None;
        }
        self.left = self.left.map(|left| left - 1);
        Some(Bytes::new(draw_size(&self.size, &mut self.random)))
    }
}

/// A requested object.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// The time at which the receiver sent the request.
    pub requested_at: Time,
    /// The time at which the receiver had the whole object; `None` if it is incomplete.
    pub received_at: Option<Time>,
    /// Size of the object.
    pub size: Bytes,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_end_with_their_number_or_with_the_flow() {
        let size = SizePlan::Exponential { mean: 1e4 };
        let plan = AppPlan::Requests { size, parallel: 2, count: Some(3), think: Span::ZERO };
        let stop = Time::ZERO + Span::from_secs(1);
        let sizes = |now: Time, seed| {
            let mut requests = Requests::new(&plan, seed, stop).unwrap();
            std::iter::from_fn(|| requests.next_size(now)).collect::<Vec<_>>()
        };
        assert_eq!(sizes(Time::ZERO, 1).len(), 3);
        assert_eq!(sizes(Time::ZERO, 1), sizes(Time::ZERO, 1));
        assert_ne!(sizes(Time::ZERO, 1), sizes(Time::ZERO, 2));
        assert!(sizes(stop, 1).is_empty());
        assert!(Requests::new(&AppPlan::Bulk, 1, stop).is_none());
    }
}
