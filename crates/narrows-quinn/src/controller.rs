//! Adapts congestion controllers of Narrows to quinn's interface.

use std::any::Any;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use narrows_control::congestion::{Controller, INFINITE_SSTHRESH};
use narrows_control::units::{Span, Time};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{self, ControllerFactory, ControllerMetrics};

use crate::core::{Core, INITIAL_SEGMENTS, locked};
use crate::factory::Factory;

/// Number of datagrams added to a window that is computed from a pacing rate. An ACK acknowledges two packets, so the
/// window needs this room. No specification defines the number.
///
/// BBR v1 was measured at 20 Mbit/s with 1 to 5 datagrams. On a path of 40 ms with a queue of 4 BDP, its mean RTT was
/// 69 to 81 ms. On a path of 20 ms with a queue of 0.5 BDP, it lost 4 to 8 % of its packets.
const PACING_SLACK_DATAGRAMS: u64 = 3;

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn congestion::Controller> {
        let (cc, seed) = self.next();
        Box::new(Adapter::new(cc, now, current_mtu, seed))
    }
}

/// A congestion controller of Narrows that implements quinn's interface. Clones share the controller.
#[derive(Clone)]
pub struct Adapter {
    core: Arc<Mutex<Core>>,
    /// The time at which the controller's clock is zero.
    base: Instant,
}

impl Adapter {
    /// Wraps the controller of a connection that begins at `now` with datagrams of this size.
    pub(crate) fn new(cc: Box<dyn Controller>, now: Instant, datagram_bytes: u16, seed: u64) -> Self {
        Adapter { core: Arc::new(Mutex::new(Core::new(cc, datagram_bytes.into(), seed))), base: now }
    }

    fn time(&self, at: Instant) -> Time {
        Time::from_nanos(at.saturating_duration_since(self.base).as_nanos() as u64)
    }

    /// Passes the names and values of the controller's state to `trace`.
    ///
    /// A program gets the adapter of a connection from quinn by `connection.congestion_state().into_any().downcast()`.
    pub fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        locked(&self.core).cc.trace(trace);
    }
}

/// Returns the window for quinn. quinn does not accept a pacing rate. If the window is the pacing rate times the RTT, the
/// average rate over an RTT is the same.
fn window_bytes(core: &Core) -> u64 {
    match core.window.pacing_rate {
        Some(rate) if core.srtt > Span::ZERO => {
            let paced = rate.bytes_in(core.srtt).get() + PACING_SLACK_DATAGRAMS * core.datagram_bytes;
            core.window_bytes().min(core.at_least_minimum(paced))
        }
        _ => core.window_bytes(),
    }
}

/// The factory of a single connection. It returns a clone of the adapter, which shares the controller.
impl ControllerFactory for Adapter {
    fn build(self: Arc<Self>, _now: Instant, _current_mtu: u16) -> Box<dyn congestion::Controller> {
        Box::new(Adapter::clone(&self))
    }
}

impl congestion::Controller for Adapter {
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        let now = self.time(now);
        locked(&self.core).on_sent(now, bytes);
    }

    fn on_ack(&mut self, _now: Instant, sent: Instant, bytes: u64, _app_limited: bool, _rtt: &RttEstimator) {
        let sent = self.time(sent);
        let mut core = locked(&self.core);
        core.sampler.deliver(sent, bytes);
        core.acked += bytes;
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, _largest: Option<u64>) {
        let now = self.time(now);
        let mut core = locked(&self.core);
        core.on_end_acks(now, in_flight, app_limited);
        core.run_timer(now);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, lost_bytes: u64) {
        let (now, sent) = (self.time(now), self.time(sent));
        locked(&self.core).on_congestion(now, sent, is_persistent, lost_bytes);
    }

    /// Changes the size of a datagram, on which the minimum window and the room for the pacer depend. A segment keeps
    /// its size during a connection.
    fn on_mtu_update(&mut self, new_mtu: u16) {
        locked(&self.core).datagram_bytes = new_mtu.into();
    }

    fn window(&self) -> u64 {
        window_bytes(&locked(&self.core))
    }

    fn metrics(&self) -> ControllerMetrics {
        let core = locked(&self.core);
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = window_bytes(&core);
        let ssthresh = core.window.ssthresh;
        metrics.ssthresh = (ssthresh < INFINITE_SSTHRESH).then(|| u64::from(ssthresh) * core.segment_bytes);
        metrics.pacing_rate = core.window.pacing_rate.map(|rate| rate.as_bits_per_sec() as u64);
        metrics
    }

    /// Returns a copy of the adapter that shares its state. quinn makes such a copy for a new path between the same
    /// hosts.
    fn clone_box(&self) -> Box<dyn congestion::Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        let segment_bytes = locked(&self.core).segment_bytes;
        u64::from(INITIAL_SEGMENTS) * segment_bytes
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
