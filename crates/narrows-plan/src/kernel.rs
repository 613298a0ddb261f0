//! Options of runs on real stacks.

use narrows_control::units::Span;
use serde::{Deserialize, Serialize};

/// How real stacks are set up. The simulator ignores these options. If an option is `None`, the backend chooses its
/// value.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct KernelPlan {
    /// How nodes that are not ends of flows forward packets.
    #[serde(default)]
    pub forwarding: Option<Forwarding>,
    /// Datapath of Open vSwitch.
    #[serde(default)]
    pub datapath: Option<Datapath>,
    /// Time between two samples of sockets and queues.
    #[serde(default)]
    pub interval: Option<Span>,
    /// The program that generates the flows.
    #[serde(default)]
    pub tool: Option<Tool>,
    /// Implementation of delay and loss.
    #[serde(default)]
    pub delay: Option<Delayer>,
    /// Queue of a host's port, if the link's queue has no limit.
    #[serde(default)]
    pub host_queue: Option<HostQueue>,
}

/// How a node forwards packets.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Forwarding {
    /// IP routing.
    Route,
    /// A Linux bridge.
    Bridge,
    /// Open vSwitch.
    Ovs,
}

/// Datapath of Open vSwitch.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Datapath {
    /// The datapath in the kernel module.
    System,
    /// The datapath in user space.
    Netdev,
}

/// A program that generates flows.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    /// The emulator itself, with its own sockets.
    Own,
    /// iperf3.
    Iperf3,
}

/// Implementation of delay and loss.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Delayer {
    /// A program with the simulator's link model.
    Relay,
    /// The kernel's netem.
    Netem,
}

/// Queue of a host's port.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum HostQueue {
    /// A FIFO.
    Fifo,
    /// The qdisc fq, which holds packets until their departure times.
    Fq,
}
