//! The events that hooks of Python controllers receive. Times are in seconds, amounts of data in segments, and rates in
//! L3 bytes/s.

use narrows_control::congestion::{Ack, Congestion, Connection, Lost, Signal, State};
use narrows_control::units::{Rate, Span, Time};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// Returns a span in seconds, or `None` if the span has no sample yet.
fn seconds(span: Option<Span>) -> Option<f64> {
    span.map(Span::as_secs_f64)
}

fn bytes_per_s(rate: Option<Rate>) -> Option<f64> {
    rate.map(Rate::as_f64)
}

/// Returns the text that `repr()` shows for an event: `Name(field=value, ...)`.
fn shown(event: &Bound<'_, PyAny>, fields: &[&str]) -> PyResult<String> {
    let mut parts = Vec::with_capacity(fields.len());
    for field in fields {
        parts.push(format!("{field}={}", event.getattr(*field)?.repr()?));
    }
    Ok(format!("{}({})", event.get_type().name()?, parts.join(", ")))
}

/// An ACK as a Python object (see [`Ack`]).
#[pyclass(frozen, name = "Ack", freelist = 16)]
pub(crate) struct PyAck(pub(crate) Ack);

#[pymethods]
impl PyAck {
    #[getter]
    fn now(&self) -> f64 {
        self.0.now.as_secs_f64()
    }

    #[getter]
    fn acked(&self) -> u32 {
        self.0.acked
    }

    #[getter]
    fn lost(&self) -> u32 {
        self.0.lost
    }

    #[getter]
    fn delivered(&self) -> u64 {
        self.0.delivered
    }

    #[getter]
    fn total_lost(&self) -> u64 {
        self.0.total_lost
    }

    #[getter]
    fn in_flight(&self) -> u32 {
        self.0.in_flight
    }

    #[getter]
    fn prior_in_flight(&self) -> u32 {
        self.0.prior_in_flight
    }

    #[getter]
    fn rtt(&self) -> Option<f64> {
        seconds(self.0.rtt)
    }

    #[getter]
    fn srtt(&self) -> Option<f64> {
        seconds((self.0.srtt > Span::ZERO).then_some(self.0.srtt))
    }

    #[getter]
    fn min_rtt(&self) -> Option<f64> {
        seconds((self.0.min_rtt != Span::MAX).then_some(self.0.min_rtt))
    }

    #[getter]
    fn rate_delivered(&self) -> u32 {
        self.0.rate.delivered
    }

    #[getter]
    fn rate_interval(&self) -> Option<f64> {
        seconds((self.0.rate.interval > Span::ZERO).then_some(self.0.rate.interval))
    }

    #[getter]
    fn rate_prior_delivered(&self) -> u64 {
        self.0.rate.prior_delivered
    }

    #[getter]
    fn rate_in_flight(&self) -> u32 {
        self.0.rate.tx_in_flight
    }

    #[getter]
    fn rate_lost(&self) -> u32 {
        self.0.rate.lost
    }

    #[getter]
    fn app_limited(&self) -> bool {
        self.0.rate.app_limited
    }

    #[getter]
    fn state<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        match self.0.state {
            State::Open => intern!(py, "open"),
            State::Disorder => intern!(py, "disorder"),
            State::Cwr => intern!(py, "cwr"),
            State::Recovery => intern!(py, "recovery"),
            State::Loss => intern!(py, "loss"),
        }
        .clone()
    }

    #[getter]
    fn cwnd_limited(&self) -> bool {
        self.0.cwnd_limited
    }

    #[getter]
    fn delayed(&self) -> bool {
        self.0.delayed
    }

    #[getter]
    fn ece(&self) -> bool {
        self.0.ece
    }

    #[getter]
    fn feedback(&self) -> Option<f64> {
        bytes_per_s(self.0.feedback)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let fields = ["now", "acked", "lost", "in_flight", "rtt", "state", "ece"];
        shown(slf.as_any(), &fields)
    }
}

/// The end of the handshake as a Python object (see [`Connection`]).
#[pyclass(frozen, name = "Connection")]
pub(crate) struct PyConnection {
    pub(crate) event: Connection,
    /// Name and number of the flow in the results.
    pub(crate) flow: String,
    pub(crate) id: u32,
}

#[pymethods]
impl PyConnection {
    #[getter]
    fn now(&self) -> f64 {
        self.event.now.as_secs_f64()
    }

    #[getter]
    fn packet_bytes(&self) -> u32 {
        self.event.packet_bytes
    }

    #[getter]
    fn rtt(&self) -> Option<f64> {
        seconds(self.event.rtt)
    }

    #[getter]
    fn feedback(&self) -> Option<f64> {
        bytes_per_s(self.event.feedback)
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.event.seed
    }

    #[getter]
    fn flow(&self) -> &str {
        &self.flow
    }

    #[getter]
    fn flow_id(&self) -> u32 {
        self.id
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        shown(slf.as_any(), &["now", "flow", "flow_id", "rtt", "packet_bytes", "seed"])
    }
}

/// A segment that was marked lost, as a Python object (see [`Lost`]).
#[pyclass(frozen, name = "Lost", freelist = 16)]
pub(crate) struct PyLost(pub(crate) Lost);

#[pymethods]
impl PyLost {
    #[getter]
    fn now(&self) -> f64 {
        self.0.now.as_secs_f64()
    }

    #[getter]
    fn delivered(&self) -> u64 {
        self.0.delivered
    }

    #[getter]
    fn in_flight_when_sent(&self) -> u32 {
        self.0.tx_in_flight
    }

    #[getter]
    fn lost_since_sent(&self) -> u32 {
        self.0.lost
    }

    #[getter]
    fn app_limited(&self) -> bool {
        self.0.app_limited
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        shown(slf.as_any(), &["now", "delivered", "in_flight_when_sent", "lost_since_sent", "app_limited"])
    }
}

/// A congestion event as a Python object (see [`Congestion`]).
#[pyclass(frozen, name = "Congestion")]
pub(crate) struct PyCongestion(pub(crate) Congestion);

#[pymethods]
impl PyCongestion {
    #[getter]
    fn now(&self) -> f64 {
        self.0.now.as_secs_f64()
    }

    #[getter]
    fn signal(&self) -> &'static str {
        match self.0.signal {
            Signal::Loss | Signal::Probe => "loss",
            Signal::Ecn => "ecn",
            Signal::Timeout => "timeout",
        }
    }

    #[getter]
    fn in_flight(&self) -> u32 {
        self.0.in_flight
    }

    #[getter]
    fn srtt(&self) -> f64 {
        self.0.srtt.as_secs_f64()
    }

    #[getter]
    fn again(&self) -> bool {
        self.0.again
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        shown(slf.as_any(), &["now", "signal", "in_flight", "srtt", "again"])
    }
}

/// The first transmission after an idle time.
#[pyclass(frozen, name = "Restart")]
pub(crate) struct PyRestart {
    pub(crate) at: Time,
    pub(crate) idle_time: Span,
    pub(crate) limited: bool,
}

#[pymethods]
impl PyRestart {
    #[getter]
    fn now(&self) -> f64 {
        self.at.as_secs_f64()
    }

    #[getter]
    fn idle(&self) -> f64 {
        self.idle_time.as_secs_f64()
    }

    #[getter]
    fn app_limited(&self) -> bool {
        self.limited
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        shown(slf.as_any(), &["now", "idle", "app_limited"])
    }
}

/// An event that has no data except its time.
#[pyclass(frozen, name = "Moment")]
pub(crate) struct PyMoment(pub(crate) Time);

#[pymethods]
impl PyMoment {
    #[getter]
    fn now(&self) -> f64 {
        self.0.as_secs_f64()
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        shown(slf.as_any(), &["now"])
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyAck>()?;
    m.add_class::<PyConnection>()?;
    m.add_class::<PyLost>()?;
    m.add_class::<PyCongestion>()?;
    m.add_class::<PyRestart>()?;
    m.add_class::<PyMoment>()
}
