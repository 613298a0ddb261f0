//! Computes the transmission times of packets. A link has a constant rate, a rate that changes over time, or recorded
//! delivery opportunities.
//!
//! All changes of a link's rate are known when the run starts. The end of a transmission can therefore be computed as
//! soon as its start is known. For this reason, a plain FIFO needs only one event per hop.

use narrows_control::units::{Bytes, Rate, Span, Time};

use crate::plan::RatePlan;

/// The way in which a link transmits packets.
#[derive(Clone, Debug)]
pub enum Service {
    /// A constant rate.
    Constant {
        /// L3 bytes/s.
        rate: Rate,
        /// Size and transmission time of the previous packet.
        last: (u32, Span),
    },
    /// A rate that changes.
    Steps(Box<Steps>),
    /// A recorded trace.
    Opportunities(Box<Opportunities>),
}

/// A piecewise constant rate.
#[derive(Clone, Debug)]
pub struct Steps {
    steps: Vec<(Time, Rate)>,
    period: Option<Span>,
    /// Index of the step that applied at the last call. If the steps repeat, `base` is the time at which this
    /// repetition started.
    cursor: usize,
    base: Time,
}

/// A mahimahi trace. It lists delivery opportunities, which are times in whole milliseconds. At each of them, the link
/// can send `bytes` bytes.
#[derive(Clone, Debug)]
pub struct Opportunities {
    millis: Vec<u32>,
    period: u64,
    bytes: u32,
    /// Number of the current opportunity, counted from the start of the run. The count continues when the trace
    /// repeats. `left` is the number of bytes that the current opportunity can still carry.
    next: u64,
    left: u32,
}

impl Service {
    /// Creates the service of a link with this rate plan.
    pub fn new(plan: &RatePlan) -> Self {
        match plan {
            RatePlan::Steps { steps, period: None } if steps.len() == 1 => {
                Service::Constant { rate: steps[0].1, last: (0, Span::ZERO) }
            }
            RatePlan::Steps { steps, period } => {
                let (steps, base) = (steps.clone(), Time::ZERO);
                Service::Steps(Box::new(Steps { steps, period: *period, cursor: 0, base }))
            }
            RatePlan::Opportunities { millis, period_millis, bytes } => {
                Service::Opportunities(Box::new(Opportunities {
                    millis: millis.clone(),
                    period: *period_millis as u64,
                    bytes: *bytes,
                    next: 0,
                    left: *bytes,
                }))
            }
        }
    }

    /// Transmits a packet that is ready at the time `turn`. Returns the times at which its transmission starts and
    /// ends. `turn` must not be earlier than in the previous call.
    #[inline]
    pub fn serve(&mut self, turn: Time, bytes: u32) -> (Time, Time) {
        match self {
            Service::Constant { rate, last } => {
                // Successive packets often have the same size, and a division costs more than a comparison.
                if last.0 != bytes {
                    // A transmission takes at least a nanosecond. Otherwise a link with an infinite rate could send any
                    // number of packets at the same time.
                    *last = (bytes, rate.time_for(Bytes::new(bytes as u64)).max(Span::from_nanos(1)));
                }
                (turn, turn + last.1)
            }
            Service::Steps(steps) => (turn, steps.finish(turn, bytes).max(turn + Span::from_nanos(1))),
            Service::Opportunities(o) => o.serve(turn, bytes),
        }
    }

    /// Returns the number of bytes that the link could have carried in `[from, to)`.
    pub fn capacity(&self, from: Time, to: Time) -> f64 {
        match self {
            Service::Constant { rate, .. } => rate.as_f64() * to.since(from).as_secs_f64(),
            Service::Steps(steps) => steps.capacity(from, to),
            Service::Opportunities(o) => (o.count(to) - o.count(from)) as f64 * o.bytes as f64,
        }
    }

    /// Returns the capacity at `now`, for a rate controller that reads the configured capacity. For a trace of
    /// opportunities, this is the mean rate from 100 ms before `now` to 100 ms after `now`. This mean models a radio
    /// scheduler, which can report both its recent and its planned grants.
    pub(crate) fn configured_rate(&self, now: Time) -> Rate {
        match self {
            Service::Constant { rate, .. } => *rate,
            Service::Steps(steps) => steps.at(now).1,
            Service::Opportunities(_) => {
                let half = Span::from_millis(100);
                let (from, to) = (now - half, now + half);
                Rate::from_f64(self.capacity(from, to) / to.since(from).as_secs_f64())
            }
        }
    }

    /// Returns the mean rate over `[from, to)`.
    pub fn mean_rate(&self, from: Time, to: Time) -> Rate {
        match self {
            Service::Constant { rate, .. } => *rate,
            _ if to <= from => self.configured_rate(from),
            _ => Rate::from_f64(self.capacity(from, to) / to.since(from).as_secs_f64()),
        }
    }

    /// Returns the first time after `now` at which [`configured_rate`](Service::configured_rate) changes. For a trace
    /// of opportunities, the result is always 20 ms after `now`.
    pub(crate) fn next_change(&self, now: Time) -> Time {
        match self {
            Service::Constant { .. } => Time::NEVER,
            Service::Steps(steps) => steps.at(now).2,
            Service::Opportunities(_) => now + Span::from_millis(20),
        }
    }
}

impl Steps {
    /// Returns the step that applies at `now`, as (start, rate, end). The times in `steps` count from the start of a
    /// repetition. The returned times count from the start of the run.
    fn at(&self, now: Time) -> (Time, Rate, Time) {
        let (base, local) = self.split(now);
        let i = self.steps.partition_point(|&(t, _)| t <= local).saturating_sub(1);
        self.bounds(base, i)
    }

    /// Returns the number of bytes that one repetition can carry.
    fn per_period(&self, period: Span) -> f64 {
        let ends = self.steps[1..].iter().map(|s| s.0).chain([Time::ZERO + period]);
        self.steps.iter().zip(ends).map(|(s, end)| s.1.as_f64() * end.since(s.0).as_secs_f64()).sum()
    }

    fn split(&self, now: Time) -> (Time, Time) {
        match self.period {
            Some(p) if p > Span::ZERO => {
                let base = now.as_nanos() / p.as_nanos() * p.as_nanos();
                (Time::from_nanos(base), Time::from_nanos(now.as_nanos() - base))
            }
            _ => (Time::ZERO, now),
        }
    }

    fn bounds(&self, base: Time, i: usize) -> (Time, Rate, Time) {
        let offset = base.since(Time::ZERO);
        let end = match (self.steps.get(i + 1), self.period) {
            (Some(&(t, _)), _) => t + offset,
            (None, Some(p)) => base + p,
            (None, None) => Time::NEVER,
        };
        (self.steps[i].0 + offset, self.steps[i].1, end)
    }

    /// Returns the time at which the last of `bytes` bytes has left, if the transmission starts at `turn`. The function
    /// integrates the rate over the steps.
    fn finish(&mut self, turn: Time, bytes: u32) -> Time {
        let (base, local) = self.split(turn);
        if base != self.base {
            (self.base, self.cursor) = (base, 0);
        }
        while self.steps.get(self.cursor + 1).is_some_and(|&(t, _)| t <= local) {
            self.cursor += 1;
        }
        let (mut base, mut i) = (self.base, self.cursor);
        let (mut at, mut left) = (turn, bytes as f64);
        loop {
            let (_, rate, end) = self.bounds(base, i);
            let need = if rate == Rate::ZERO { Span::MAX } else { Span::from_secs_f64(left / rate.as_f64()) };
            if at + need <= end {
                return if need == Span::MAX { Time::NEVER } else { at + need };
            }
            left -= rate.as_f64() * end.since(at).as_secs_f64();
            at = end;
            i += 1;
            if i == self.steps.len() {
                let Some(period) = self.period else { return Time::NEVER };
                (i, base) = (0, base + period);
                // Skip all whole repetitions at once. If the rate is zero in all steps, the packet never leaves.
                let each = self.per_period(period);
                if each <= 0.0 {
                    return Time::NEVER;
                }
                let whole = (left / each) as u64;
                left -= whole as f64 * each;
                base += period.scale(whole, 1);
                at = base;
            }
        }
    }

    fn capacity(&self, from: Time, to: Time) -> f64 {
        let (mut at, mut sum) = (from, 0.0);
        if let Some(period) = self.period {
            let whole = to.since(from).as_nanos() / period.as_nanos().max(1);
            sum += whole as f64 * self.per_period(period);
            at += period.scale(whole, 1);
        }
        while at < to {
            let (_, rate, end) = self.at(at);
            let until = end.min(to);
            sum += rate.as_f64() * until.since(at).as_secs_f64();
            if until <= at {
                break;
            }
            at = until;
        }
        sum
    }
}

impl Opportunities {
    fn time(&self, k: u64) -> Time {
        let n = self.millis.len() as u64;
        Time::ZERO
            + Span::from_millis((k / n).saturating_mul(self.period) + self.millis[(k % n) as usize] as u64)
    }

    /// Returns the number of opportunities before `t`.
    fn count(&self, t: Time) -> u64 {
        let n = self.millis.len() as u64;
        let ms = t.as_nanos().div_ceil(1_000_000);
        let (whole, local) = (ms / self.period, ms % self.period);
        let before = |local: u64| self.millis.partition_point(|&m| (m as u64) < local) as u64;
        // A mahimahi trace ends with an opportunity at the end of its period. This time is also the start of the next
        // repetition, and the opportunity is counted as part of the next repetition.
        let previous = if whole > 0 { (whole - 1) * n + before(self.period + local) } else { 0 };
        previous + before(local)
    }

    /// Transmits a packet; see [`Service::serve`]. One opportunity may carry several small packets, and a packet may
    /// need several opportunities. Opportunities that no packet uses are lost.
    fn serve(&mut self, turn: Time, bytes: u32) -> (Time, Time) {
        let first = self.count(turn);
        if first > self.next {
            (self.next, self.left) = (first, self.bytes);
        }
        let mut need = bytes;
        loop {
            if need <= self.left {
                self.left -= need;
                let at = self.time(self.next);
                if self.left == 0 {
                    (self.next, self.left) = (self.next + 1, self.bytes);
                }
                return (at.max(turn), at.max(turn));
            }
            need -= self.left;
            (self.next, self.left) = (self.next + 1, self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mbit(n: u64) -> Rate {
        Rate::from_bits_per_sec(n * 1_000_000)
    }
    fn ms(n: u64) -> Time {
        Time::ZERO + Span::from_millis(n)
    }

    #[test]
    fn a_transmission_across_a_rate_change_uses_both_rates() {
        // The link has 12 Mbit/s until 10 ms, and 6 Mbit/s afterwards. The transmission of 1500 bytes starts at 9.5 ms.
        // At 10 ms, half of the packet has left.
        let plan = RatePlan::Steps { steps: vec![(Time::ZERO, mbit(12)), (ms(10), mbit(6))], period: None };
        let mut s = Service::new(&plan);
        let (start, finish) = s.serve(Time::from_nanos(9_500_000), 1500);
        assert_eq!(start, Time::from_nanos(9_500_000));
        assert_eq!(finish, Time::from_nanos(11_000_000));
    }

    #[test]
    fn a_link_without_capacity_never_sends() {
        let dead =
            RatePlan::Steps { steps: vec![(Time::ZERO, Rate::ZERO)], period: Some(Span::from_secs(1)) };
        assert_eq!(Service::new(&dead).serve(ms(3), 1500).1, Time::NEVER);
        let ends =
            RatePlan::Steps { steps: vec![(Time::ZERO, mbit(12)), (ms(10), Rate::ZERO)], period: None };
        assert_eq!(Service::new(&ends).serve(ms(30), 1500).1, Time::NEVER);
    }

    #[test]
    fn a_trace_repeats() {
        let steps = vec![(Time::ZERO, mbit(12)), (ms(5), Rate::ZERO)];
        let mut s = Service::new(&RatePlan::Steps { steps, period: Some(Span::from_millis(10)) });
        assert_eq!(s.serve(ms(6), 1500).1, ms(11));
        assert_eq!(s.capacity(ms(0), ms(100)), 75_000.0);
        assert_eq!(s.configured_rate(ms(13)), mbit(12));
        assert_eq!(s.next_change(ms(13)), ms(15));
    }

    #[test]
    fn unused_opportunities_are_lost_and_used_ones_are_filled() {
        let plan = RatePlan::Opportunities { millis: vec![1, 1, 4, 8], period_millis: 10, bytes: 1500 };
        let mut s = Service::new(&plan);
        assert_eq!(s.serve(ms(0), 1500).1, ms(1));
        assert_eq!(s.serve(ms(1), 700).1, ms(1));
        assert_eq!(s.serve(ms(1), 700).1, ms(1), "two small packets share an opportunity");
        assert_eq!(s.serve(ms(5), 1500).1, ms(8), "the opportunity at 4 ms is lost");
        assert_eq!(s.serve(ms(8), 3000).1, ms(11), "a large packet takes two opportunities");
        assert_eq!(s.capacity(ms(0), ms(10)), 6000.0);
    }
}
