//! Python objects for the bodies that agents send to the SDN controller. A body is one line of JSON, and Rust parses it
//! only once. Python passes the parsed bodies and messages to `Sdn` or `Pacec`, and sends the answers of `Sdn` or
//! `Pacec` to the agents. Python reads only the attributes that it needs.

use narrows_channel::{FlowChanges, FlowInfo, Flows, PortInfo, Ports, ToController, to_agent};
use narrows_control::rate::{FlowKey, Message, PortId};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;

/// A port that an agent controls.
#[pyclass(frozen, name = "PortInfo")]
pub(crate) struct PyPortInfo(pub(crate) PortInfo);

#[pymethods]
impl PyPortInfo {
    #[getter]
    fn port(&self) -> PortId {
        self.0.port
    }

    #[getter]
    fn interface(&self) -> &str {
        &self.0.interface
    }

    #[getter]
    fn mac(&self) -> &str {
        &self.0.mac
    }

    #[getter]
    fn capacity(&self) -> u64 {
        self.0.capacity.as_bytes_per_sec()
    }

    #[getter]
    fn rate_controller(&self) -> &str {
        &self.0.rate_controller
    }
}

/// A flow's identity.
#[pyclass(frozen, eq, hash, name = "FlowKey")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PyFlowKey(FlowKey);

#[pymethods]
impl PyFlowKey {
    #[getter]
    fn saddr(&self) -> String {
        self.0.saddr.to_string()
    }

    #[getter]
    fn daddr(&self) -> String {
        self.0.daddr.to_string()
    }

    #[getter]
    fn sport(&self) -> u16 {
        self.0.sport
    }

    #[getter]
    fn dport(&self) -> u16 {
        self.0.dport
    }

    #[getter]
    fn proto(&self) -> String {
        word(&self.0.proto)
    }
}

/// A flow at a port.
#[pyclass(frozen, name = "FlowInfo")]
pub(crate) struct PyFlowInfo(FlowInfo);

#[pymethods]
impl PyFlowInfo {
    #[getter]
    fn key(&self) -> PyFlowKey {
        PyFlowKey(self.0.key)
    }

    #[getter]
    fn class_(&self) -> String {
        word(&self.0.class)
    }

    #[getter]
    fn leaf(&self) -> String {
        word(&self.0.leaf)
    }

    #[getter]
    fn allocation(&self) -> Option<u64> {
        self.0.allocation.map(|rate| rate.as_bytes_per_sec())
    }

    #[getter]
    fn rate(&self) -> u64 {
        self.0.rate.as_bytes_per_sec()
    }

    #[getter]
    fn rtt(&self) -> Option<u64> {
        self.0.rtt.map(|rtt| rtt.as_nanos())
    }
}

/// All controlled ports of an agent.
#[pyclass(frozen, name = "Ports")]
pub(crate) struct PyPorts(Ports);

#[pymethods]
impl PyPorts {
    #[getter]
    fn ports(&self) -> Vec<PyPortInfo> {
        self.0.ports.iter().cloned().map(PyPortInfo).collect()
    }
}

/// The largest flows of a port.
#[pyclass(frozen, name = "Flows")]
pub(crate) struct PyFlows(Flows);

#[pymethods]
impl PyFlows {
    #[getter]
    fn port(&self) -> PortId {
        self.0.port
    }

    #[getter]
    fn flows(&self) -> Vec<PyFlowInfo> {
        self.0.flows.iter().cloned().map(PyFlowInfo).collect()
    }
}

/// Flows that started, ended or changed at a port.
#[pyclass(frozen, name = "FlowChanges")]
pub(crate) struct PyFlowChanges(pub(crate) FlowChanges);

#[pymethods]
impl PyFlowChanges {
    #[getter]
    fn port(&self) -> PortId {
        self.0.port
    }
}

/// A message between a port and the SDN controller.
#[pyclass(frozen, name = "Message")]
pub(crate) struct PyMessage(Message);

#[pymethods]
impl PyMessage {
    #[getter]
    fn r#type(&self) -> &'static str {
        match self.0 {
            Message::Poll => "poll",
            Message::Report(_) => "report",
            Message::Congestion { .. } => "congestion",
            Message::FlowAdvertisement { .. } => "flow-advertisement",
            Message::Flow { .. } => "flow",
            Message::Grants { .. } => "grants",
        }
    }

    #[getter]
    fn port(&self) -> Option<PortId> {
        match &self.0 {
            Message::Poll => None,
            Message::Report(report) => Some(report.port),
            Message::Congestion { port, .. }
            | Message::FlowAdvertisement { port, .. }
            | Message::Flow { port, .. }
            | Message::Grants { port, .. } => Some(*port),
        }
    }

    /// Returns the kind of congestion, if the message reports congestion and states the kind.
    #[getter]
    fn kind(&self) -> Option<String> {
        match &self.0 {
            Message::Congestion { kind, .. } => kind.as_ref().map(word),
            _ => None,
        }
    }

    /// Returns the queued bytes of the rated class, if the message is a report.
    #[getter]
    fn rated_queued(&self) -> Option<u64> {
        match &self.0 {
            Message::Report(report) => Some(report.rated_queued.get()),
            _ => None,
        }
    }

    fn to_agent(&self, port: PortId) -> Vec<String> {
        to_agent(&self.0, port)
    }
}

impl PyMessage {
    /// Returns a copy of the message. In the copy, the number that the agent gave the port is replaced by the port's
    /// number in the domain.
    pub(crate) fn of(&self, domain_port: PortId) -> Message {
        let mut message = self.0.clone();
        match &mut message {
            Message::Poll => {}
            Message::Report(report) => report.port = domain_port,
            Message::Congestion { port, .. }
            | Message::FlowAdvertisement { port, .. }
            | Message::Flow { port, .. }
            | Message::Grants { port, .. } => *port = domain_port,
        }
        message
    }
}

/// Messages to send, each with its port.
pub(crate) type Outgoing = Vec<(PortId, PyMessage)>;

pub(crate) fn outgoing(out: &mut Vec<(PortId, Message)>) -> Outgoing {
    out.drain(..).map(|(port, message)| (port, PyMessage(message))).collect()
}

/// A parsed body that an agent has sent.
#[derive(IntoPyObject)]
pub(crate) enum Body {
    Ports(PyPorts),
    Flows(PyFlows),
    FlowChanges(PyFlowChanges),
    Message(PyMessage),
}

#[pyfunction]
pub(crate) fn parse_body(text: &str) -> PyResult<Body> {
    Ok(match ToController::parse(text).map_err(PyValueError::new_err)? {
        ToController::Ports(body) => Body::Ports(PyPorts(body)),
        ToController::Flows(body) => Body::Flows(PyFlows(body)),
        ToController::FlowChanges(body) => Body::FlowChanges(PyFlowChanges(body)),
        ToController::Message(message) => Body::Message(PyMessage(message)),
    })
}

/// Returns the word that represents a value in JSON.
fn word<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("CHANNEL_VERSION", narrows_channel::VERSION)?;
    m.add("LINE_MAX", narrows_channel::LINE_MAX)?;
    m.add("GREETING_MAX", narrows_channel::GREETING_MAX)?;
    m.add("ALIVE", narrows_channel::ALIVE)?;
    m.add_class::<PyPortInfo>()?;
    m.add_class::<PyFlowKey>()?;
    m.add_class::<PyFlowInfo>()?;
    m.add_class::<PyPorts>()?;
    m.add_class::<PyFlows>()?;
    m.add_class::<PyFlowChanges>()?;
    m.add_class::<PyMessage>()?;
    m.add_function(wrap_pyfunction!(parse_body, m)?)
}
