//! PACEC's part of the SDN controller. A Python callback provides the paths.

use core::cell::RefCell;

use narrows_channel::FlowChange;
use narrows_control::rate::PortParameters;
use narrows_control::rate::domain::{DomainController, Topology};
use narrows_control::rate::pacec::{Mode, Pacec, Params};
use narrows_control::rate::{FlowKey, Message, PortId, Report};
use narrows_control::units::{Bytes, Rate, Span, Time};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::channel::{Outgoing, PyFlowChanges, PyMessage, PyPortInfo, outgoing};

/// A Python function that takes two addresses as strings and returns the numbers of the ports between them.
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

/// A topology without paths. Reports and timers use it, because they need no paths.
struct Nowhere;

impl Topology for Nowhere {
    fn path(&self, _flow: &FlowKey) -> Vec<PortId> {
        Vec::new()
    }
}

/// A port's parameters.
#[pyclass(frozen, eq, name = "PacecParams")]
#[derive(Clone, PartialEq)]
pub(crate) struct PyParams(Params);

#[pymethods]
impl PyParams {
    #[new]
    fn new(info: &PyPortInfo) -> PyResult<Self> {
        let refused = |error: String| PyValueError::new_err(format!("params: {error}"));
        Params::read("pacec", &info.0.params).map(PyParams).map_err(|problem| refused(problem.to_string()))
    }

    #[getter]
    fn period_ns(&self) -> u64 {
        self.0.period().as_nanos()
    }

    /// Returns the parameters for those ports of the same domain that have no agent. The counters of these ports do not
    /// distinguish classes of traffic. Resolved mode needs the classes, so incremental mode replaces it.
    fn of_counted(&self) -> Self {
        let &Params { sample, samples, eta, floor_packets, idle_after, max_flows, .. } = &self.0;
        let mode = if self.0.mode == Mode::Literal { Mode::Literal } else { Mode::Incremental };
        let edge = false;
        PyParams(Params {
            mode,
            sample,
            samples,
            eta,
            floor_packets,
            idle_after,
            max_flows,
            edge,
            ..Params::default()
        })
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
    fn new(now_ns: u64, mtu: u64, ports: Vec<(PortId, PyRef<'_, PyParams>)>) -> Self {
        let ports = ports.iter().map(|(port, params)| (*port, params.0.clone()));
        PyPacec { pacec: Pacec::new(ports, Bytes::new(mtu), Time::from_nanos(now_ns)), out: Vec::new() }
    }

    fn on_report(&mut self, now_ns: u64, port: PortId, message: &PyMessage) -> Outgoing {
        self.pacec.on_message(Time::from_nanos(now_ns), port, &message.of(port), &Nowhere, &mut self.out);
        outgoing(&mut self.out)
    }

    /// Handles the counters of a port without an agent.
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn on_counters(
        &mut self,
        now_ns: u64,
        port: PortId,
        at_ns: u64,
        capacity: u64,
        departed: u64,
        departed_packets: u64,
        period_ns: u64,
    ) -> Outgoing {
        let capacity = Rate::from_bytes_per_sec(capacity);
        let message = Message::Report(Report {
            port,
            at: Time::from_nanos(at_ns),
            capacity,
            rated_share: capacity,
            rated_arrived: Bytes::ZERO,
            rated_departed: Bytes::ZERO,
            departed: Bytes::new(departed),
            queued: Bytes::ZERO,
            departed_packets,
            rated_queued: Bytes::ZERO,
            rated_packets: (0, 0),
            all_packets: (0, 0),
            period: Span::from_nanos(period_ns),
        });
        self.pacec.on_message(Time::from_nanos(now_ns), port, &message, &Nowhere, &mut self.out);
        outgoing(&mut self.out)
    }

    fn on_flows(
        &mut self,
        now_ns: u64,
        port: PortId,
        changes: &PyFlowChanges,
        find: &Bound<'_, PyAny>,
    ) -> PyResult<Outgoing> {
        let paths = Paths { find, failed: RefCell::new(None) };
        for &FlowChange { key, begun, demand } in &changes.0.changes {
            let message = Message::Flow { port, key, begun, demand };
            self.pacec.on_message(Time::from_nanos(now_ns), port, &message, &paths, &mut self.out);
        }
        match paths.failed.into_inner() {
            Some(error) => Err(error),
            None => Ok(outgoing(&mut self.out)),
        }
    }

    fn on_timer(&mut self, now_ns: u64) -> Outgoing {
        self.pacec.on_timer(Time::from_nanos(now_ns), &Nowhere, &mut self.out);
        outgoing(&mut self.out)
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
