//! Records each RTT, the bytes in flight, and persistent congestion for the results. quinn reports these only to its
//! congestion controller.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

/// The observations of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Observations {
    /// RTTs that the flow has not read yet.
    pub(super) rtts: Vec<Duration>,
    pub(super) in_flight: u64,
    /// Number of persistent congestion events.
    pub(super) persistent_congestions: u64,
}

/// The observations, which the controller and the flow share.
#[derive(Clone, Default)]
pub(super) struct SharedObservations(Arc<Mutex<Observations>>);

impl SharedObservations {
    pub(super) fn lock(&self) -> MutexGuard<'_, Observations> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A factory that builds observed controllers.
pub(super) struct ObserverFactory {
    pub(super) inner: Arc<dyn ControllerFactory + Send + Sync>,
    pub(super) shared: SharedObservations,
}

impl ControllerFactory for ObserverFactory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let inner = self.inner.clone().build(now, current_mtu);
        Box::new(Observer { inner, shared: self.shared.clone(), newest: None })
    }
}

/// Wraps a controller, and records the observations that quinn passes to the controller.
struct Observer {
    inner: Box<dyn Controller>,
    shared: SharedObservations,
    /// The time at which the newest packet of the current ACK was sent.
    newest: Option<Instant>,
}

impl Controller for Observer {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.shared.lock().in_flight += bytes;
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.newest = self.newest.max(Some(sent));
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        let mut observed = self.shared.lock();
        observed.in_flight = in_flight;
        if let Some(sent) = self.newest.take() {
            observed.rtts.push(now.saturating_duration_since(sent));
        }
        drop(observed);
        self.inner.on_end_acks(now, in_flight, app_limited, largest);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, lost_bytes: u64) {
        let mut observed = self.shared.lock();
        observed.in_flight = observed.in_flight.saturating_sub(lost_bytes);
        observed.persistent_congestions += u64::from(is_persistent);
        drop(observed);
        self.inner.on_congestion_event(now, sent, is_persistent, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Observer { inner: self.inner.clone_box(), shared: self.shared.clone(), newest: self.newest })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
