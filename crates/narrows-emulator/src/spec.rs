//! What to run where: a [`Plan`] and the namespaces, interfaces and addresses that stand for its nodes and links.
//!
//! Whoever built the network (namespaces, cables, queues) writes this as JSON. Times are nanoseconds, counted from the start
//! of the run; [`Spec::start`] says when on CLOCK_MONOTONIC that is.

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
    /// What the simulator would run: seed, duration, warm-up, link models, flows, probes. Names of congestion controllers need not
    /// be known to the simulator.
    pub plan: Plan,
    /// Network namespace of each node that has a flow of ours, by the node's name: a file such as `/run/netns/h0`.
    #[serde(default)]
    pub namespaces: BTreeMap<String, PathBuf>,
    /// Directed links whose model our relay carries out.
    #[serde(default)]
    pub relays: Vec<RelaySpec>,
    /// Where the flows of the plan run. A flow of the plan that is not named here does not run.
    #[serde(default)]
    pub flows: Vec<FlowSpec>,
    /// Queues of the kernel to sample.
    #[serde(default)]
    pub queues: Vec<QueueSpec>,
    /// Time zero of the run on CLOCK_MONOTONIC; `None`: as soon as everything is set up.
    #[serde(default)]
    pub start: Option<Time>,
    /// Between two looks at the sockets and queues; the plan's probe interval only decides which become rows.
    #[serde(default = "ten_millis")]
    pub sample_interval: Span,
    /// What makes a run unsound.
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
    /// Its namespace.
    pub netns: PathBuf,
    /// Its name there.
    pub interface: String,
}

/// A directed link at a relay: frames that arrive at one interface leave by the other.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelaySpec {
    /// Index of the plan's link.
    pub link: u32,
    /// Where frames arrive. Each interface feeds at most one link.
    pub from: InterfaceSpec,
    /// Where they leave.
    pub to: InterfaceSpec,
    /// How much of the link is the relay's task.
    #[serde(default)]
    pub model: RelayModel,
}

/// Which part of a link's model the relay carries out.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RelayModel {
    /// Delay, jitter, loss and duplication; the kernel has the queue and the rate.
    #[default]
    Delay,
    /// Rate (traces included) and its queue too; the queue must be a FIFO without marking.
    Rate,
}

/// Where a flow of the plan runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowSpec {
    /// Index of the plan's flow (a group or a source of flows counts as one).
    pub flow: u32,
    /// Address of the sender.
    pub source: IpAddr,
    /// Address of the receiver.
    pub destination: IpAddr,
    /// Port of the receiver; no other flow between these nodes has it.
    pub port: u16,
    /// The traffic is somebody else's (iperf3): it is sampled, not made. One flow, neither group nor arrivals.
    #[serde(default)]
    pub external: bool,
    /// Port of the sender, for others to know a flow by. Of an external one (`iperf3 --cport`): without it the flow is that
    /// connection to `port` that has sent most. A TCP flow of ours comes from it, the members of a group from it and those after
    /// it; without it from any.
    #[serde(default)]
    pub source_port: Option<u16>,
    /// The kernel's name of the congestion controller; `None`: the plan's.
    #[serde(default)]
    pub congestion: Option<String>,
}

/// A queue of the kernel that stands for a link's queue.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueSpec {
    /// Index of the plan's link.
    pub link: u32,
    /// Namespace of the interface.
    pub netns: PathBuf,
    /// The interface.
    pub interface: String,
    /// A qdisc (`1:`) or a class (`1:10`), both numbers hexadecimal as tc(8) has them. Several entries of one link are summed.
    pub handle: String,
    /// Bytes of each packet that this queue counts beyond L3: an Ethernet header, or 0 below a size table that takes it off
    /// (`stab overhead -14`).
    #[serde(default = "ethernet")]
    pub header: u32,
    /// What it does to the link's packets.
    #[serde(default)]
    pub role: QueueRole,
}

/// What a qdisc stands for.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueRole {
    /// The link's queue: what waits in it, leaves it and is dropped at it.
    #[default]
    Queue,
    /// The link's random loss (netem): what it drops is lost behind the queue, what waits in it is under way.
    Loss,
}

/// Beyond these a run is not sound.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Bounds {
    /// 99th percentile of how late a relay sends.
    pub lateness: Span,
    /// Mean share of the processors in use, 0..1.
    pub busy: f64,
    /// Share of the processors in use in the busiest second, 0..1.
    pub busiest: f64,
    /// Share of a flow's busy time in which the receive window or the send buffer held it, 0..1.
    pub limited: f64,
    /// Bytes that a relay holds at most; what comes beyond is dropped and counted.
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
