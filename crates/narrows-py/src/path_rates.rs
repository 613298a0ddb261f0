//! PACEC's controller for the OpenFlow controller, with messages as JSON. Paths come from a callback.

use core::cell::RefCell;

use narrows_control::rate::domain::{DomainController, Topology};
use narrows_control::rate::pacec::{Pacec, Params};
use narrows_control::rate::{FlowKey, Message, PortId};
use narrows_control::units::{Bytes, Rate, Time};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Deserialize;

use crate::sdn::{Outgoing, refuse, to_json};

/// A flow that has begun, ended or changed.
#[derive(Deserialize)]
struct Change {
    key: FlowKey,
    begun: bool,
    demand: Option<Rate>,
}

/// A Python function of two addresses, as strings, that returns the numbers of the ports between them.
struct Paths<'a, 'py> {
    find: &'a Bound<'py, PyAny>,
    failed: RefCell<Option<PyErr>>,
}

impl Topology for Paths<'_, '_> {
    fn path(&self, flow: &FlowKey) -> Vec<PortId> {
        let ends = (flow.saddr.to_string(), flow.daddr.to_string());
        self.find.call1(ends).and_then(|ports| ports.extract()).unwrap_or_else(|error| {
            *self.failed.borrow_mut() = Some(error);
            Vec::new()
        })
    }
}

/// An empty topology, for reports and timers, which need no paths.
struct Nowhere;

impl Topology for Nowhere {
    fn path(&self, _flow: &FlowKey) -> Vec<PortId> {
        Vec::new()
    }
}

/// `rate::pacec::Pacec` as a Python object.
#[pyclass(name = "Pacec")]
pub(crate) struct PyPacec {
    pacec: Pacec,
    out: Vec<(PortId, Message)>,
}

#[pymethods]
impl PyPacec {
    #[new]
    fn new(now_ns: u64, mtu: u64, ports_json: &str) -> PyResult<Self> {
        let ports: Vec<(PortId, Params)> =
            serde_json::from_str(ports_json).map_err(|e| refuse("params", &e))?;
        for (_, params) in &ports {
            params.check().map_err(|error| PyValueError::new_err(format!("params: {error}")))?;
        }
        let pacec = Pacec::new(ports, Bytes::new(mtu), Time::from_nanos(now_ns));
        Ok(PyPacec { pacec, out: Vec::new() })
    }

    fn on_report(&mut self, now_ns: u64, port: PortId, message_json: &str) -> PyResult<Outgoing> {
        let message: Message = serde_json::from_str(message_json).map_err(|e| refuse("message", &e))?;
        self.pacec.on_message(Time::from_nanos(now_ns), port, &message, &Nowhere, &mut self.out);
        to_json(&mut self.out)
    }

    fn on_flows(
        &mut self,
        now_ns: u64,
        port: PortId,
        changes_json: &str,
        find: &Bound<'_, PyAny>,
    ) -> PyResult<Outgoing> {
        let changes: Vec<Change> = serde_json::from_str(changes_json).map_err(|e| refuse("changes", &e))?;
        let paths = Paths { find, failed: RefCell::new(None) };
        for Change { key, begun, demand } in changes {
            let message = Message::Flow { port, key, begun, demand };
            self.pacec.on_message(Time::from_nanos(now_ns), port, &message, &paths, &mut self.out);
        }
        match paths.failed.into_inner() {
            Some(error) => Err(error),
            None => to_json(&mut self.out),
        }
    }

    fn on_timer(&mut self, now_ns: u64) -> PyResult<Outgoing> {
        self.pacec.on_timer(Time::from_nanos(now_ns), &Nowhere, &mut self.out);
        to_json(&mut self.out)
    }

    fn next_timer(&self) -> Option<u64> {
        let next = self.pacec.next_timer();
        (next != Time::NEVER).then(|| next.as_nanos())
    }

    fn flows(&self) -> usize {
        self.pacec.flows()
    }

    fn verdict(&self, port: PortId) -> Option<(f64, u64)> {
        let available = self.pacec.available(port).filter(|rate| *rate < Rate::MAX)?.as_bytes_per_sec();
        Some((self.pacec.utilisation(port, 0).unwrap_or(0.0), available))
    }
}
