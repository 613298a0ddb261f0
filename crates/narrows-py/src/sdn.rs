//! BRF's part of the SDN controller: the detector of congestion, and the polls.

use narrows_control::rate::brf::congestion;
use narrows_control::rate::brf::domain::{Params, Sdn};
use narrows_control::rate::{Message, PortId};
use narrows_control::units::{Bytes, Rate, Span, Time};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::channel::{Outgoing, PyMessage, PyPortInfo, outgoing};

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

    fn attach(&mut self, now_ns: u64, port: PortId, poll_ns: u64, info: &PyPortInfo) -> PyResult<()> {
        let missing = || PyValueError::new_err("found a port of 'brf' without thresholds");
        let thresholds = info.0.thresholds.clone().ok_or_else(missing)?;
        let params = Params { poll: Span::from_nanos(poll_ns), thresholds };
        self.sdn.attach(port, params, Time::from_nanos(now_ns));
        Ok(())
    }

    fn detach(&mut self, port: PortId) {
        self.sdn.detach(port);
    }

    fn on_message(&mut self, now_ns: u64, port: PortId, message: &PyMessage) -> Outgoing {
        self.sdn.on_message(Time::from_nanos(now_ns), port, &message.of(port), &mut self.out);
        outgoing(&mut self.out)
    }

    fn on_timer(&mut self, now_ns: u64) -> Outgoing {
        self.sdn.on_timer(Time::from_nanos(now_ns), &mut self.out);
        outgoing(&mut self.out)
    }

    fn next_timer(&self) -> Option<u64> {
        let next = self.sdn.next_timer();
        (next != Time::NEVER).then(|| next.as_nanos())
    }

    /// Returns the values of equations 5 and 6 of the BRF paper, and the arrivals as a fraction of the rated class's
    /// share.
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
