//! An application whose rate changes during the run.

use narrows_control::units::{Bytes, Rate, Span, Time};

/// The rates of an application over time, and the data that it has produced.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    steps: Vec<(Time, Option<Rate>)>,
    /// Index of the current step.
    current: usize,
    /// The time since which the current step applies, and the bytes produced by then.
    since: Time,
    produced: u64,
}

impl Schedule {
    /// Creates the schedule of an application that starts at `start`. The first of the steps starts at 0.
    pub(crate) fn new(steps: Vec<(Time, Option<Rate>)>, start: Time) -> Self {
        let current = steps.partition_point(|&(t, _)| t <= start).saturating_sub(1);
        Schedule { steps, current, since: start, produced: 0 }
    }

    /// Returns `None` if the application has produced `wanted` bytes by `now`. Otherwise returns the time at which to
    /// ask again. `taken` is the number of bytes that the sender has taken so far.
    pub(crate) fn wait_for(&mut self, now: Time, taken: u64, wanted: u64) -> Option<Time> {
        while let Some(&(next, _)) = self.steps.get(self.current + 1)
            && next <= now
        {
            self.produced = self.produced_at(next, taken);
            self.since = next;
            self.current += 1;
        }
        let rate = self.rate()?;
        if self.produced_at(now, taken) >= wanted {
            return None;
        }
        let missing = Bytes::new(wanted.saturating_sub(self.produced));
        let ready = self.since + rate.time_for(missing) + Span::from_nanos(1);
        let next = self.steps.get(self.current + 1).map_or(Time::NEVER, |&(next, _)| next);
        Some(ready.min(next).max(now + Span::from_nanos(1)))
    }

    /// The rate of the current step. `None`: the application always has data.
    fn rate(&self) -> Option<Rate> {
        self.steps.get(self.current).and_then(|&(_, rate)| rate)
    }

    /// Returns the number of bytes produced by `at`, if the current step still applies. An application that always has
    /// data produces the data only when the sender takes it. When the rate of such an application becomes limited, no
    /// produced data is therefore waiting.
    fn produced_at(&self, at: Time, taken: u64) -> u64 {
        match self.rate() {
            None => self.produced.max(taken),
            Some(rate) => self.produced + rate.bytes_in(at.since(self.since)).get(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::AppPlan;
    use crate::tcp::{App, Chunk};

    const SEGMENT: u16 = 1000;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn kilobytes(per_sec: u64) -> Option<Rate> {
        Some(Rate::from_bytes_per_sec(per_sec * 1000))
    }

    fn app(steps: &[(Time, Option<Rate>)], start: Time, stop: Time) -> App {
        App::new(&AppPlan::Scheduled { steps: steps.to_vec() }, start, stop)
    }

    /// Takes all segments up to `until`, at most one per millisecond, and returns their number.
    fn take_until(app: &mut App, now: &mut Time, until: Time) -> u64 {
        let mut segments = 0;
        while *now < until {
            match app.take(*now, SEGMENT) {
                Chunk::Data { len, last: false } => {
                    assert_eq!(len, SEGMENT);
                    segments += 1;
                    *now += Span::from_millis(1);
                }
                Chunk::Wait(next) => {
                    assert!(next > *now);
                    *now = next.min(until);
                }
                Chunk::Data { last: true, .. } | Chunk::Finished => break,
            }
        }
        segments
    }

    #[test]
    fn the_application_produces_the_rate_of_each_step() {
        let steps = [(Time::ZERO, kilobytes(100)), (at(1000), kilobytes(0)), (at(2000), kilobytes(300))];
        let mut app = app(&steps, Time::ZERO, Time::NEVER);
        let mut now = Time::ZERO;
        assert_eq!(take_until(&mut app, &mut now, at(1000)), 99);
        // The last bytes of the first step complete a segment at its end.
        assert_eq!(take_until(&mut app, &mut now, at(2000)), 1);
        assert_eq!(take_until(&mut app, &mut now, at(3000)), 299);
    }

    #[test]
    fn no_data_wait_after_a_time_without_a_limit() {
        let steps = [(Time::ZERO, None), (at(1000), kilobytes(100)), (at(2000), None)];
        let mut app = app(&steps, Time::ZERO, Time::NEVER);
        let mut now = Time::ZERO;
        assert_eq!(take_until(&mut app, &mut now, at(1000)), 1000);
        assert_eq!(take_until(&mut app, &mut now, at(2000)), 99);
        assert_eq!(take_until(&mut app, &mut now, at(3000)), 1000);
    }

    #[test]
    fn data_that_wait_are_sent_in_the_next_step() {
        // The application produces 2000 segments in a second. The sender takes 1000.
        let steps = [(Time::ZERO, kilobytes(2000)), (at(1000), kilobytes(0))];
        let mut app = app(&steps, Time::ZERO, Time::NEVER);
        let mut now = Time::ZERO;
        assert!((998..=1000).contains(&take_until(&mut app, &mut now, at(1000))));
        assert!((1000..=1002).contains(&take_until(&mut app, &mut now, at(5000))));
    }

    #[test]
    fn a_late_start_uses_the_step_of_its_time_and_a_pause_ends_at_the_stop() {
        let steps = [(Time::ZERO, None), (at(1000), kilobytes(100)), (at(2000), kilobytes(0))];
        let mut app = app(&steps, at(1500), at(4000));
        let mut now = at(1500);
        assert_eq!(take_until(&mut app, &mut now, at(2500)), 50);
        assert_eq!(app.take(now, SEGMENT), Chunk::Wait(at(4000)));
        assert_eq!(app.take(at(4000), SEGMENT), Chunk::Data { len: 0, last: true });
    }
}
