//! The input: a [`Plan`], and the namespaces, interfaces and addresses of its nodes and links.
//!
//! The program that builds the network (namespaces, cables, queues) writes the spec as JSON. Times are nanoseconds from
//! the start of the run. [`Spec::start`] itself is a time of CLOCK_MONOTONIC.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use narrows_control::units::{Span, Time};
use narrows_sim::plan::Plan;
use serde::{Deserialize, Serialize};

/// One run on real stacks.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The simulator's plan: seed, duration, warm-up, link models, flows, probes. The plan may name congestion
    /// controllers that the simulator does not have.
    pub plan: Plan,
    /// For the name of each node with a flow, the file of its network namespace, such as `/run/netns/h0`.
    #[serde(default)]
    pub namespaces: BTreeMap<String, PathBuf>,
    /// Directed links whose model the relay implements.
    #[serde(default)]
    pub relays: Vec<RelaySpec>,
    /// Addresses of the plan's flows. Flows that are not listed here do not run.
    #[serde(default)]
    pub flows: Vec<FlowSpec>,
    /// The kernel's queues that the emulator samples.
    #[serde(default)]
    pub queues: Vec<QueueSpec>,
    /// Congestion controllers in eBPF whose state is recorded if the plan's `probes.traces` is set.
    #[serde(default)]
    pub controllers: Vec<ControllerSpec>,
    /// Start of the run as a time of CLOCK_MONOTONIC; `None`: the run starts shortly after the setup.
    #[serde(default)]
    pub start: Option<Time>,
    /// Time between two samples of sockets and queues. The plan's probe interval only determines which samples become
    /// rows.
    #[serde(default = "ten_millis")]
    pub sample_interval: Span,
    /// Limits beyond which a run is unsound.
    #[serde(default)]
    pub bounds: Bounds,
}

fn ethernet() -> u32 {
    14
}

fn ten_millis() -> Span {
    Span::from_millis(10)
}

/// An interface in a namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterfaceSpec {
    /// Namespace of the interface.
    pub netns: PathBuf,
    /// Name of the interface in the namespace.
    pub interface: String,
}

/// A directed link at a relay. Frames that arrive at the interface `from` leave by the interface `to`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelaySpec {
    /// Index of the plan's link.
    pub link: u32,
    /// Interface at which frames arrive. Each interface feeds at most one link.
    pub from: InterfaceSpec,
    /// Interface at which frames leave.
    pub to: InterfaceSpec,
    /// The part of the link's model that the relay implements.
    #[serde(default)]
    pub model: RelayModel,
}

/// The part of a link's model that the relay implements.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RelayModel {
    /// The relay implements delay, jitter, loss and duplication. The kernel implements the queue and the rate.
    #[default]
    Delay,
    /// The relay also implements the rate (including traces) and the queue. The queue must be a FIFO without marking.
    Rate,
}

/// Addresses of a flow of the plan.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowSpec {
    /// Index of the plan's flow. A group or a Poisson source is one flow of the plan.
    pub flow: u32,
    /// Address of the sender.
    pub source: IpAddr,
    /// Address of the receiver.
    pub destination: IpAddr,
    /// Port of the receiver. Two flows with the same protocol and the same server address must have different ports.
    pub port: u16,
    /// Whether another program (iperf3) sends the traffic, and the emulator only samples it. The flow must be neither
    /// a group nor a Poisson source.
    #[serde(default)]
    pub external: bool,
    /// Port of the sender, by which other programs can identify a flow.
    ///
    /// A TCP flow of the emulator sends from this port. The members of a group use this port and the following ports.
    /// If this is `None`, the kernel chooses the ports.
    ///
    /// For an external flow, this is the port of `iperf3 --cport`. If this is `None`, the emulator samples the
    /// connection to `port` that has sent the most data.
    #[serde(default)]
    pub source_port: Option<u16>,
    /// The kernel's name of the congestion controller; `None`: the name in the plan.
    #[serde(default)]
    pub congestion: Option<String>,
}

/// A queue of the kernel that implements the queue or the random loss of a link.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueSpec {
    /// Index of the plan's link.
    pub link: u32,
    /// Namespace of the interface.
    pub netns: PathBuf,
    /// The interface.
    pub interface: String,
    /// Handle of a qdisc (`1:`) or of a class (`1:10`), in hexadecimal as in tc(8). If several entries belong to one
    /// link, their counters are added.
    pub handle: String,
    /// Bytes per packet that this queue counts in addition to the L3 bytes. This is the length of an Ethernet header,
    /// or 0 if a size table subtracts this length (`stab overhead -14`).
    #[serde(default = "ethernet")]
    pub header: u32,
    /// The part of the link that the qdisc implements.
    #[serde(default)]
    pub role: QueueRole,
}

/// The part of a link that a qdisc implements.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueRole {
    /// The qdisc is the link's queue, so its waiting, departed and dropped packets count as packets of the link's
    /// queue.
    #[default]
    Queue,
    /// The qdisc implements the link's random loss (netem). Its dropped packets count as lost after the queue, and its
    /// waiting packets count as in flight.
    Loss,
}

/// A congestion controller of `narrows-agent cc`, as `narrows-agent cc list --json` describes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerSpec {
    /// The kernel's name of the controller.
    pub name: String,
    /// The maps with the state of each socket.
    pub state: Vec<StateSpec>,
}

/// A BPF map with an entry for each socket.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateSpec {
    /// The map's id.
    pub map: u32,
    /// Fields of the map's values.
    pub fields: Vec<FieldSpec>,
}

/// A field with an unsigned number.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldSpec {
    /// The field's name.
    pub name: String,
    /// Offset in bytes.
    pub at: usize,
    /// Size in bytes: 1, 2 or 4.
    pub bytes: usize,
}

/// Limits beyond which a run is unsound.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Bounds {
    /// Limit of the 99th percentile of a relay's lateness.
    pub lateness: Span,
    /// Limit of the mean share of the processors in use, 0..1.
    pub busy: f64,
    /// Limit of the share of the processors in use in the busiest second, 0..1.
    pub busiest: f64,
    /// Limit of the share of a flow's busy time in which the receive window or the send buffer limited the flow, 0..1.
    pub limited: f64,
    /// Maximum number of bytes that a relay stores. The relay drops and counts frames that would exceed this number.
    pub relay_bytes: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            lateness: Span::from_millis(1),
            busy: 0.9,
            busiest: 1.0,
            limited: 0.05,
            relay_bytes: 512 << 20,
        }
    }
}
