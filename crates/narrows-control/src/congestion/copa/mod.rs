//! Copa: changes its window so that its rate approaches 1/(delta dq), where dq is the queueing delay.
//!
//! Source: Arun and Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the Internet" (NSDI 2018),
//! sections 2.1 and 2.2. [`path`] measures delays. [`velocity`] makes the window change faster if the target is far
//! away. [`mode`] detects flows that fill the buffer, and sets delta. A lost packet does not reduce the window. In
//! competitive mode, a loss increases delta.
//!
//! Deviations from the paper, and choices that the paper leaves open:
//!
//! - When the window reverses its direction, a high velocity ends at once ([`velocity`]). In the paper, the high
//!   velocity may last for up to one more RTT.
//! - The velocity is limited, so that the window changes by at most its own size per RTT. Without this limit, a
//!   decrease could remove the whole window.
//! - The window is at least two segments, as in the authors' program.
//! - The window of an application-limited sender does not grow (RFC 7661), because such a sender always finds the queue
//!   empty.
//! - After a timeout Copa restarts in slow start. The paper has no timeouts.
//! - An ECN echo counts as a loss.
//! - A flow that resumes after idle time begins in default mode, because it has not measured the queue recently.
//!
//! Section 3 of the paper requires a bandwidth-delay product well above 1/delta packets per flow. With a smaller
//! product, the queue never empties, and Copa flows mistake each other for flows that fill the buffer. The same mistake
//! happens for some time after the rate of a path has fallen. If 1/delta becomes larger than the bandwidth-delay
//! product during this time, the mistake lasts until a loss.

pub mod mode;
pub mod path;
pub mod velocity;

use core::cmp::Ordering;

use self::mode::Mode;
use self::path::Path;
use self::velocity::Velocity;
use super::{Ack, Congestion, Connection, Controller, INFINITE_SSTHRESH, Lost, Recovery, Signal, Window};
use crate::parameter::{flag, number, time_from, whole};
use crate::units::{Bytes, Rate, Span, Time};

crate::parameters! {
    /// Parameters of [`Copa`].
    pub struct Params {
        /// Weight of delay in default mode. A flow keeps about 1/delta packets in the queue.
        pub delta: u32 = 1 << 15, number(0.01, 10.0).per(1 << 16).unit("1/packets").from("section 2.2: 0.5");
        /// Length of the window of RTTmin, the propagation-time estimate.
        pub min_rtt_window: Span = Span::from_secs(10), time_from(Span::from_millis(10), Span::from_secs(10_000)).from("section 2.1");
        /// RTTstanding is the minimum RTT over a window of srtt divided by this number.
        pub standing_divisor: u64 = 2, whole(1, 100).from("section 2.1: srtt/2");
        /// If the window moves in one direction for more than this number of RTTs, the velocity doubles in each further
        /// RTT.
        pub steady_rtts: u32 = 3, whole(0, 1000).unit("RTTs").from("section 2.1");
        /// Whether the flow competes with flows that fill the buffer.
        pub compete: bool = true, flag().from("section 2.2");
        /// The competitive mode begins if the queue was never nearly empty in the last `empty_rtts` smoothed RTTs.
        pub empty_rtts: u64 = 5, whole(1, 1000).unit("RTTs").from("section 2.2");
        /// The queue is nearly empty if its delay is below this share of RTTmax - RTTmin.
        pub empty_percent: u64 = 10, whole(1, 100).unit("%").from("section 2.2");
        /// RTTmax is the largest RTT sample in the last `max_rtts` smoothed RTTs.
        pub max_rtts: u64 = 4, whole(1, 1000).unit("RTTs").from("section 2.2");
        /// Minimum window.
        pub min_window: u32 = 2, whole(1, 1000).unit("segments").from("the authors' markoviancc.cc");
    }
}

/// Windows and 1/delta are in units of 1/65536 segment.
const UNIT: u64 = 1 << 16;
/// The pacing rate in windows per RTTstanding (section 2.1). The pacing rate is twice the rate of the window, so only
/// the window limits the flow, and pacing only avoids bursts.
const PACED_WINDOWS: u64 = 2;

/// The Copa controller.
#[derive(Clone, Debug)]
pub struct Copa {
    params: Params,
    path: Option<Path>,
    mode: Mode,
    velocity: Velocity,
    /// The window in units of 1/[`UNIT`] segment.
    cwnd: u64,
    slow_start: bool,
    /// The window before a timeout that may be spurious, and whether the flow was in slow start before the timeout.
    before_timeout: Option<(u64, bool)>,
    packet_bytes: u64,
}

impl Default for Copa {
    fn default() -> Self {
        Copa::new(Params::default())
    }
}

impl Copa {
    /// Returns a controller with these parameters.
    pub fn new(params: Params) -> Self {
        Copa {
            mode: Mode::new(inverse(params.delta)),
            path: None,
            velocity: Velocity::default(),
            cwnd: 0,
            slow_start: true,
            before_timeout: None,
            packet_bytes: 1500,
            params,
        }
    }

    /// Returns whether the present rate is at most the target: cwnd/RTTstanding <= 1/(delta dq). The code multiplies
    /// out the denominators, so an empty queue needs no special case.
    fn is_below_target(&self, path: &Path) -> bool {
        let queued = u128::from(self.cwnd) * u128::from(path.queueing_delay().as_nanos());
        queued <= u128::from(self.mode.inverse_delta()) * u128::from(path.standing().as_nanos())
    }

    /// Returns the change of the window for `acked` segments: v/(delta cwnd) for each segment (section 2.1, step 3).
    fn change(&self, acked: u32) -> u64 {
        let per_rtt = self.velocity.get().saturating_mul(self.mode.inverse_delta()).min(self.cwnd);
        (per_rtt * UNIT / self.cwnd.max(1)) * u64::from(acked)
    }

    /// Returns the largest velocity that changes the window by at most its own size per RTT.
    fn fastest(&self) -> u64 {
        self.cwnd / self.mode.inverse_delta()
    }

    fn pacing_rate(&self, rtt: Span) -> Rate {
        let bytes = self.cwnd.saturating_mul(PACED_WINDOWS * self.packet_bytes) / UNIT;
        Rate::of(Bytes::new(bytes), rtt.max(Span::from_nanos(1))).max(Rate::from_bytes_per_sec(1))
    }

    /// Copies the controller's own window to the window of the connection.
    fn decide(&mut self, window: &mut Window) {
        self.cwnd = self.cwnd.clamp(u64::from(self.params.min_window) * UNIT, u64::from(u32::MAX) * UNIT);
        window.cwnd = (self.cwnd / UNIT) as u32;
        // The transport assumes slow start if the window is below the threshold.
        window.ssthresh = if self.slow_start { INFINITE_SSTHRESH } else { window.ssthresh.min(window.cwnd) };
    }
}

/// Returns whether the flow uses its window. With pacing, the data in flight can lag behind a growing window. In this
/// case, the stricter test of [`Ack::cwnd_limited`] would stop the growth.
fn is_used(ack: &Ack, window: &Window) -> bool {
    !ack.rate.app_limited && ack.prior_in_flight >= window.cwnd / 2
}

/// Returns 1/delta in 1/[`UNIT`].
fn inverse(delta: u32) -> u64 {
    UNIT * UNIT / u64::from(delta.max(1))
}

impl Controller for Copa {
    fn name(&self) -> &'static str {
        "copa"
    }

    fn on_established(&mut self, connection: &Connection, window: &mut Window) {
        self.packet_bytes = u64::from(connection.packet_bytes);
        self.cwnd = u64::from(window.cwnd) * UNIT;
        self.mode.restart(connection.now);
        // The handshake's RTT is not used as a sample of the path, because the short packets of the handshake take less
        // time than data packets. The extra delay of data packets would look like a queue that never empties.
        window.pacing_rate = connection.rtt.map(|rtt| self.pacing_rate(rtt));
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) {
        if let Some(rtt) = ack.rtt {
            let path = self.path.get_or_insert_with(|| Path::new(ack.now, rtt));
            path.update(ack.now, rtt, ack.srtt, &self.params);
        }
        let Some(path) = self.path else { return };
        self.mode.on_ack(ack.now, path.is_nearly_empty(&self.params), ack.srtt, &self.params);
        let grows = self.is_below_target(&path);
        if self.slow_start && !grows {
            self.slow_start = false;
            self.velocity = Velocity::new(ack.delivered, self.cwnd);
        }
        if self.slow_start {
            if is_used(ack, window) {
                // The window doubles once per RTT.
                self.cwnd += u64::from(ack.acked) * UNIT;
            }
        } else {
            if self.velocity.on_ack(ack, self.cwnd, self.fastest(), self.params.steady_rtts) {
                self.mode.on_rtt();
            }
            let direction = if grows { Ordering::Greater } else { Ordering::Less };
            self.velocity.turn(direction, ack.delivered, self.cwnd);
            let change = self.change(ack.acked);
            if !grows {
                self.cwnd = self.cwnd.saturating_sub(change);
            } else if is_used(ack, window) {
                self.cwnd += change;
            }
        }
        self.decide(window);
        window.pacing_rate = Some(self.pacing_rate(path.standing()));
    }

    fn on_lost(&mut self, _lost: &Lost, _window: &Window) {
        self.mode.on_loss();
    }

    fn on_congestion(&mut self, event: &Congestion, window: &mut Window) {
        self.mode.on_loss();
        if event.signal == Signal::Timeout {
            if !event.again || self.before_timeout.is_none() {
                self.before_timeout = Some((self.cwnd, self.slow_start));
            }
            self.cwnd = 0;
            self.slow_start = true;
            self.decide(window);
        } else {
            // A later undo would refer to this loss, not to an earlier timeout. This loss has not changed the window,
            // so the saved window is discarded.
            self.before_timeout = None;
        }
    }

    fn on_undo(&mut self, _now: Time, window: &mut Window) {
        if let Some((cwnd, slow_start)) = self.before_timeout.take() {
            (self.cwnd, self.slow_start) = (cwnd, slow_start);
        }
        self.decide(window);
    }

    fn on_restart(&mut self, now: Time, _idle: Span, _app_limited: bool, _window: &mut Window) {
        self.mode.restart(now);
    }

    /// Copa keeps control of the window during recovery. A loss does not reduce Copa's window, so PRR must not reduce
    /// it either.
    fn recovery(&self) -> Recovery {
        Recovery::Controller
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        let delay = self.path.map_or(f64::NAN, |path| path.queueing_delay().as_secs_f64());
        trace("queueing_delay", delay);
        trace("delta", UNIT as f64 / self.mode.inverse_delta() as f64);
        trace("velocity", self.velocity.get() as f64);
        trace("competitive", f64::from(u8::from(self.mode.is_competitive())));
    }
}

#[cfg(test)]
mod tests;
