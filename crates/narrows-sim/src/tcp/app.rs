//! The sending application. The amount of data that the application has produced depends only on the time. A timer is
//! therefore needed only while the sender waits for data.
//!
//! `transmit` takes the data of each new segment from the application. `world::flows` creates the application when it
//! starts the flow.

use narrows_control::units::{Bytes, Rate, Span, Time};

use super::schedule::Schedule;
use crate::plan::AppPlan;

/// The sending application.
#[derive(Clone, Debug)]
pub struct App {
    source: Source,
    /// At this time, the application stops producing data and closes the stream.
    stop: Time,
    start: Time,
    taken: u64,
    is_finished: bool,
}

#[derive(Clone, Debug)]
enum Source {
    Bulk,
    Size(u64),
    /// Data at a limited rate. The application produces data at `rate` during on periods, and no data during off
    /// periods.
    Limited {
        rate: Rate,
        on: Span,
        off: Span,
    },
    /// Data at a rate that changes.
    Scheduled(Box<Schedule>),
}

/// The answer of the application when the sender asks for the data of a segment.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// Data to send.
    Data {
        /// Number of bytes.
        len: u16,
        /// Whether the stream ends after these bytes. At the end of the stream, `len` may be 0.
        last: bool,
    },
    /// The application has no data until this time.
    Wait(Time),
    /// The stream has ended, and the sender has already taken all of its data.
    Finished,
}

impl App {
    /// Creates the application of a flow that starts at `start` and stops at `stop`.
    pub fn new(plan: &AppPlan, start: Time, stop: Time) -> Self {
        let source = match plan {
            AppPlan::Size { bytes } => Source::Size(bytes.get()),
            AppPlan::Limited { rate, on, off } => {
                Source::Limited { rate: *rate, on: on.unwrap_or(Span::MAX), off: off.unwrap_or(Span::ZERO) }
            }
            AppPlan::Scheduled { steps } => Source::Scheduled(Box::new(Schedule::new(steps.clone(), start))),
            AppPlan::Bulk | AppPlan::Poisson { .. } | AppPlan::Requests { .. } => Source::Bulk,
        };
        App { source, stop, start, taken: 0, is_finished: false }
    }

    /// Creates the application of a flow that sends exactly this number of bytes.
    pub fn sized(bytes: Bytes, start: Time) -> Self {
        App { source: Source::Size(bytes.get()), stop: Time::NEVER, start, taken: 0, is_finished: false }
    }

    /// Returns the number of bytes to transfer. Returns 0 if the plan does not set this number.
    pub fn size(&self) -> u64 {
        match self.source {
            Source::Size(bytes) => bytes,
            _ => 0,
        }
    }

    /// Whether the application produces data at a limited rate.
    pub fn has_rate(&self) -> bool {
        matches!(self.source, Source::Limited { .. } | Source::Scheduled(_))
    }

    /// Whether the stream has ended and the sender has taken all of its data.
    pub(crate) fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// Returns the time at which the application stops and closes the stream.
    pub fn stop(&self) -> Time {
        self.stop
    }

    /// Whether [`take`](App::take) would return data.
    pub(crate) fn has_data(&self, now: Time, mss: u16) -> bool {
        !matches!(self.clone().take(now, mss), Chunk::Wait(_) | Chunk::Finished)
    }

    /// Takes the next chunk of at most `mss` bytes.
    #[inline]
    pub fn take(&mut self, now: Time, mss: u16) -> Chunk {
        if self.is_finished {
            return Chunk::Finished;
        }
        if now >= self.stop {
            self.is_finished = true;
            return Chunk::Data { len: 0, last: true };
        }
        match self.source {
            Source::Bulk => Chunk::Data { len: mss, last: false },
            Source::Size(total) => {
                let left = total - self.taken;
                let len = left.min(mss as u64) as u16;
                self.taken += len as u64;
                self.is_finished = self.taken == total;
                Chunk::Data { len, last: self.is_finished }
            }
            Source::Limited { rate, on, off } => {
                let have = rate.bytes_in(on_time(now.since(self.start), on, off)).get();
                if have >= self.taken + mss as u64 {
                    self.taken += mss as u64;
                    return Chunk::Data { len: mss, last: false };
                }
                let busy = rate.time_for(Bytes::new(self.taken + mss as u64)) + Span::from_nanos(1);
                let next = (self.start + wall_time(busy, on, off)).max(now + Span::from_nanos(1));
                // The application closes the stream at its stop time. It does not wait for a chunk that is ready later.
                Chunk::Wait(next.min(self.stop))
            }
            Source::Scheduled(_) => self.take_scheduled(now, mss),
        }
    }

    #[cold]
    fn take_scheduled(&mut self, now: Time, mss: u16) -> Chunk {
        let wanted = self.taken + u64::from(mss);
        let Source::Scheduled(schedule) = &mut self.source else { return Chunk::Finished };
        if let Some(next) = schedule.wait_for(now, self.taken, wanted) {
            return Chunk::Wait(next.min(self.stop));
        }
        self.taken = wanted;
        Chunk::Data { len: mss, last: false }
    }
}

/// Returns how much of the time `elapsed` since the start lies in on periods.
fn on_time(elapsed: Span, on: Span, off: Span) -> Span {
    if off == Span::ZERO || on == Span::MAX {
        return elapsed;
    }
    let cycle = (on + off).as_nanos().max(1);
    let whole = elapsed.as_nanos() / cycle;
    let rest = Span::from_nanos(elapsed.as_nanos() % cycle);
    on.scale(whole, 1) + rest.min(on)
}

/// Returns the time after which the on periods add up to `busy`. This function is the inverse of `on_time`.
fn wall_time(busy: Span, on: Span, off: Span) -> Span {
    if off == Span::ZERO || on == Span::MAX || on == Span::ZERO {
        return busy;
    }
    busy + off.scale(busy.as_nanos() / on.as_nanos(), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_on_off_source_produces_its_rate_times_its_on_time() {
        let (on, off) = (Span::from_millis(100), Span::from_millis(300));
        let plan =
            AppPlan::Limited { rate: Rate::from_bytes_per_sec(1_000_000), on: Some(on), off: Some(off) };
        let mut app = App::new(&plan, Time::ZERO, Time::NEVER);
        let (mut now, mut bytes) = (Time::ZERO, 0u64);
        while now < Time::ZERO + Span::from_secs(4) {
            match app.take(now, 1000) {
                Chunk::Data { len, .. } => bytes += len as u64,
                Chunk::Wait(at) => now = at,
                Chunk::Finished => break,
            }
        }
        assert!(bytes.abs_diff(1_000_000) <= 1000, "{bytes}");
    }

    #[test]
    fn a_sized_source_ends_with_its_last_byte() {
        let mut app = App::sized(Bytes::new(2500), Time::ZERO);
        assert_eq!(app.take(Time::ZERO, 1448), Chunk::Data { len: 1448, last: false });
        assert_eq!(app.take(Time::ZERO, 1448), Chunk::Data { len: 1052, last: true });
        assert_eq!(app.take(Time::ZERO, 1448), Chunk::Finished);
    }
}
