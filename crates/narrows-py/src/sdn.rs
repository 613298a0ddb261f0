//! The SDN controller's detector and poll logic for the OpenFlow controller, with messages as JSON.

use narrows_control::rate::brf::congestion;
use narrows_control::rate::brf::domain::{Params, Sdn};
use narrows_control::rate::{Message, PortId};
use narrows_control::units::{Bytes, Rate, Span, Time};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Messages to send: the port, and the message as JSON.
pub(crate) type Outgoing = Vec<(PortId, String)>;

/// `rate::brf::Sdn` as a Python object.
#[pyclass(name = "Sdn")]
#[derive(Default)]
pub(crate) struct PySdn {
    sdn: Sdn,
    out: Vec<(PortId, Message)>,
}

#[pymethods]
impl PySdn {
    #[new]
    fn new() -> Self {
        PySdn::default()
    }

    fn attach(&mut self, now_ns: u64, port: PortId, params_json: &str) -> PyResult<()> {
        let params: Params = serde_json::from_str(params_json).map_err(|e| refuse("params", &e))?;
        self.sdn.attach(port, params, Time::from_nanos(now_ns));
        Ok(())
    }

    fn detach(&mut self, port: PortId) {
        self.sdn.detach(port);
    }

    fn on_message(&mut self, now_ns: u64, port: PortId, message_json: &str) -> PyResult<Outgoing> {
        let message: Message = serde_json::from_str(message_json).map_err(|e| refuse("message", &e))?;
        self.sdn.on_message(Time::from_nanos(now_ns), port, &message, &mut self.out);
        to_json(&mut self.out)
    }

    fn on_timer(&mut self, now_ns: u64) -> PyResult<Outgoing> {
        self.sdn.on_timer(Time::from_nanos(now_ns), &mut self.out);
        to_json(&mut self.out)
    }

    fn next_timer(&self) -> Option<u64> {
        let next = self.sdn.next_timer();
        (next != Time::NEVER).then(|| next.as_nanos())
    }

    /// The values of equations 5 and 6, and arrivals as part of the rated class's share.
    fn verdict(&self, port: PortId) -> Option<(f64, f64, f64)> {
        self.sdn.verdict(port).map(|v| (v.netcard_rate, v.queue_utilisation, v.arrivals))
    }
}

#[pyfunction]
pub(crate) fn netcard_rate(packets: u64, packet_bytes: u64, dt_ns: u64, capacity_bytes_per_s: u64) -> f64 {
    congestion::netcard_rate(
        packets,
        Bytes::new(packet_bytes),
        Span::from_nanos(dt_ns),
        Rate::from_bytes_per_sec(capacity_bytes_per_s),
    )
}

pub(crate) fn to_json(out: &mut Vec<(PortId, Message)>) -> PyResult<Outgoing> {
    let json = |(port, message)| match serde_json::to_string(&message) {
        Ok(text) => Ok((port, text)),
        Err(e) => Err(refuse("message", &e)),
    };
    out.drain(..).map(json).collect()
}

pub(crate) fn refuse(what: &str, error: &serde_json::Error) -> PyErr {
    PyValueError::new_err(format!("{what}: {error}"))
}
