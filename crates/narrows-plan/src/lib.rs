#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod kernel;
#[cfg(feature = "schema")]
mod schema;

#[cfg(feature = "schema")]
pub use schema::schema;

pub use kernel::{Datapath, Delayer, Forwarding, KernelPlan, Tool};

use narrows_control::catalogue::Choice;
use narrows_control::parameter::Values;
use narrows_control::units::{Bytes, Rate, Span, Time};
use serde::{Deserialize, Serialize};

/// One run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Seed of every random choice.
    pub seed: u64,
    /// Length of the run.
    pub duration: Span,
    /// Start of the measurement interval. The Python layer sets it to 10 % of the run, at least 10 RTTs, by default.
    #[serde(default)]
    pub warmup: Span,
    /// Node names. Links and flows refer to nodes by index.
    pub nodes: Vec<String>,
    /// Directed links.
    pub links: Vec<LinkPlan>,
    /// Flows and sources of flows.
    pub flows: Vec<FlowPlan>,
    /// Rate controllers at ports. Plans of 0.2 say `controllers`.
    #[serde(default, alias = "controllers")]
    pub rate_controllers: Vec<ControllerPlan>,
    /// The SDN controller of the domain.
    #[serde(default)]
    pub sdn: Option<SdnPlan>,
    /// Receive buffer of each TCP connection (the maximum in Linux's `tcp_rmem`). The receiver offers half of
    /// the buffer as its window. `None`: Linux's default.
    #[serde(default)]
    pub receive_buffer: Option<Bytes>,
    /// Whether the receive buffer limits senders after the window has opened. If it does, segments that wait
    /// for a missing one take memory from the buffer.
    #[serde(default)]
    pub receive_memory: bool,
    /// Recorded samples.
    #[serde(default)]
    pub probes: ProbePlan,
    /// Options of runs on real stacks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelPlan>,
}

/// A directed link: a port with its queue, and the wire after it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LinkPlan {
    /// Name in results, e.g. `R0->R1`.
    pub name: String,
    /// Sending node.
    pub from: u32,
    /// Receiving node.
    pub to: u32,
    /// Rate of the link.
    pub rate: RatePlan,
    /// Propagation delay over time: steps of (start, delay), the first at 0.
    pub delay: Vec<(Time, Span)>,
    /// Random extra delay.
    #[serde(default)]
    pub jitter: Option<JitterPlan>,
    /// Random loss after the queue, over time: steps of (start, model). Empty: no loss.
    #[serde(default)]
    pub loss: Vec<(Time, LossPlan)>,
    /// Probability that a packet arrives twice.
    #[serde(default)]
    pub duplicate: f64,
    /// The queue.
    pub queue: QueuePlan,
}

impl LinkPlan {
    /// A link of constant rate and delay without loss, with a FIFO queue of this limit.
    pub fn new(
        name: impl Into<String>,
        (from, to): (u32, u32),
        rate: Rate,
        delay: Span,
        limit: LimitPlan,
    ) -> Self {
        LinkPlan {
            name: name.into(),
            from,
            to,
            rate: RatePlan::Steps { steps: vec![(Time::ZERO, rate)], period: None },
            delay: vec![(Time::ZERO, delay)],
            jitter: None,
            loss: Vec::new(),
            duplicate: 0.0,
            queue: QueuePlan::Fifo { limit, mark: MarkPlan::None },
        }
    }
}

/// Service of a link.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum RatePlan {
    /// Piecewise constant: (start, rate), the first at 0. With `period` the steps repeat.
    Steps {
        /// The steps, in order of time.
        steps: Vec<(Time, Rate)>,
        /// Length of a repetition; `None`: the steps do not repeat.
        #[serde(default)]
        period: Option<Span>,
    },
    /// Mahimahi: at each of these times `bytes` bytes may leave. Unused opportunities are lost.
    Opportunities {
        /// Times in milliseconds, not decreasing.
        millis: Vec<u32>,
        /// Length of the trace in milliseconds, after which it repeats.
        period_millis: u32,
        /// Bytes of one opportunity (mahimahi: 1500).
        bytes: u32,
    },
}

/// Random extra delay of a packet.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct JitterPlan {
    /// The delay is uniform between 0 and this value.
    pub max: Span,
    /// Packets may overtake each other.
    #[serde(default)]
    pub reorder: bool,
}

/// Random loss.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LossPlan {
    /// Each packet is lost independently.
    Bernoulli {
        /// Probability.
        p: f64,
    },
    /// Two states with transition probabilities per packet and a loss probability in each.
    GilbertElliott {
        /// Probability of a transition from the good to the bad state.
        p: f64,
        /// Probability of a transition from the bad to the good state.
        r: f64,
        /// Loss probability in the good state.
        #[serde(default)]
        good: f64,
        /// Loss probability in the bad state.
        bad: f64,
    },
}

/// Limit of a queue. Both `None`: unlimited.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LimitPlan {
    /// Packets waiting.
    #[serde(default)]
    pub packets: Option<u32>,
    /// L3 bytes waiting.
    #[serde(default)]
    pub bytes: Option<Bytes>,
}

impl LimitPlan {
    /// At most this many packets.
    pub fn packets(packets: u32) -> Self {
        LimitPlan { packets: Some(packets), bytes: None }
    }

    /// At most this many L3 bytes.
    pub fn bytes(bytes: Bytes) -> Self {
        LimitPlan { packets: None, bytes: Some(bytes) }
    }
}

/// The queue of a port. The packet in transmission does not count as waiting.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum QueuePlan {
    /// First in, first out; tail drop at the limit.
    Fifo {
        /// Limit.
        #[serde(default)]
        limit: LimitPlan,
        /// Early marking or dropping.
        #[serde(default)]
        mark: MarkPlan,
    },
    /// CoDel (RFC 8289).
    Codel {
        /// Limit.
        #[serde(default)]
        limit: LimitPlan,
        /// Target sojourn.
        target: Span,
        /// Interval.
        interval: Span,
        /// Mark packets of ECN-capable flows instead of dropping them.
        #[serde(default)]
        ecn: bool,
    },
    /// FQ-CoDel (RFC 8290).
    FqCodel {
        /// Limit of all queues together.
        #[serde(default)]
        limit: LimitPlan,
        /// Target sojourn.
        target: Span,
        /// Interval.
        interval: Span,
        /// Deficit round robin quantum.
        quantum: Bytes,
        /// Number of queues that flows are hashed into.
        queues: u32,
        /// Mark packets of ECN-capable flows instead of dropping them.
        #[serde(default)]
        ecn: bool,
    },
    /// Strict priority: the flow's `class` is the index of its class. Class 0 is served first.
    Priority {
        /// Limit of each class. Plans of 0.2 say `bands`.
        #[serde(alias = "bands")]
        classes: Vec<LimitPlan>,
    },
    /// Hierarchical token bucket with one level: the flow's `class` is the index of its class.
    Htb {
        /// The classes.
        classes: Vec<HtbClassPlan>,
    },
}

/// Early marking of a FIFO.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum MarkPlan {
    /// Tail drop only.
    #[default]
    None,
    /// Mark a packet with CE if the queue is longer than this when the packet arrives (DCTCP's step).
    Threshold {
        /// Packets waiting.
        packets: u32,
    },
    /// RED (Floyd and Jacobson 1993) on the averaged queue length.
    Red {
        /// Lower threshold in packets: no action below it.
        min: f64,
        /// Upper threshold in packets. In the gentle variant, which is used, the probability reaches 1 at twice this value.
        max: f64,
        /// Probability at `max`.
        max_p: f64,
        /// Weight of the moving average.
        weight: f64,
        /// Mark ECN-capable packets instead of dropping them.
        #[serde(default)]
        ecn: bool,
    },
}

/// A class of an HTB.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HtbClassPlan {
    /// Guaranteed rate.
    pub rate: Rate,
    /// Highest rate, including borrowed capacity.
    pub ceil: Rate,
    /// Limit of its FIFO.
    #[serde(default)]
    pub limit: LimitPlan,
    /// The priority for borrowing: classes with lower values borrow first.
    #[serde(default)]
    pub priority: u8,
}

/// One flow, `count` equal flows, or a source of flows.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FlowPlan {
    /// Name in results. Flows of a group get the suffixes `.0`, `.1`, ...
    pub name: String,
    /// Sending node.
    pub from: u32,
    /// Receiving node.
    pub to: u32,
    /// Nodes of the reverse path, including both ends; `None`: the shortest path.
    #[serde(default)]
    pub return_path: Option<Vec<u32>>,
    /// Time of the first SYN (TCP) or packet (UDP).
    pub start: Time,
    /// Time at which the application stops sending; `None`: the end of the run.
    #[serde(default)]
    pub stop: Option<Time>,
    /// Number of flows in the group.
    #[serde(default = "one")]
    pub count: u32,
    /// Time between the starts of two flows of the group.
    #[serde(default)]
    pub spacing: Span,
    /// Class for priority and HTB queues, and the packets' mark for BRF's `share = "mark"`.
    #[serde(default)]
    pub class: u8,
    /// Transport.
    pub transport: TransportPlan,
    /// The sending application.
    pub app: AppPlan,
}

impl FlowPlan {
    /// A TCP flow under this congestion controller that sends as much as it can from the start of the run.
    pub fn bulk(name: impl Into<String>, (from, to): (u32, u32), cc: impl Into<Choice>) -> Self {
        FlowPlan {
            name: name.into(),
            from,
            to,
            return_path: None,
            start: Time::ZERO,
            stop: None,
            count: 1,
            spacing: Span::ZERO,
            class: 0,
            transport: TransportPlan::Tcp {
                cc: cc.into(),
                ecn: false,
                pacing: false,
                receive_window: None,
                mss: default_mss(),
            },
            app: AppPlan::Bulk,
        }
    }
}

fn one() -> u32 {
    1
}

/// Transport of a flow.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum TransportPlan {
    /// TCP.
    Tcp {
        /// The congestion controller: a name, or a table with `name` and parameters in base units.
        cc: Choice,
        /// Negotiate ECN.
        #[serde(default)]
        ecn: bool,
        /// Pace window-based controllers too (2 x or 1.2 x cwnd per srtt, as Linux with sch_fq).
        #[serde(default)]
        pacing: bool,
        /// Limit of the receive window in segments; `None`: the receive buffer sets the window.
        #[serde(default)]
        receive_window: Option<u32>,
        /// Payload bytes of a full segment (1448 in a 1500-byte packet).
        #[serde(default = "default_mss")]
        mss: u32,
    },
    /// UDP: packets of constant size at a constant rate.
    Udp {
        /// L3 bytes/s.
        rate: Rate,
        /// L3 bytes per packet.
        packet: u32,
    },
}

fn default_mss() -> u32 {
    1448
}

/// The sending application.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum AppPlan {
    /// Always has data to send.
    Bulk,
    /// Sends this many bytes, then closes.
    Size {
        /// Application bytes.
        bytes: Bytes,
    },
    /// Produces data at a constant rate while it is on. Its on periods alternate with off periods.
    Limited {
        /// Application bytes/s while on.
        rate: Rate,
        /// Length of an on period; `None`: always on.
        #[serde(default)]
        on: Option<Span>,
        /// Length of an off period.
        #[serde(default)]
        off: Option<Span>,
    },
    /// Poisson arrivals of sized flows from `start` to `stop`; `count` must be 1.
    Poisson {
        /// Flows per second.
        per_sec: f64,
        /// Sizes in application bytes.
        size: SizePlan,
    },
}

/// Distribution of flow sizes, bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum SizePlan {
    /// All flows have the same size.
    Fixed {
        /// Bytes.
        bytes: f64,
    },
    /// Exponential.
    Exponential {
        /// Mean, bytes.
        mean: f64,
    },
    /// Pareto (type I).
    Pareto {
        /// Mean, bytes.
        mean: f64,
        /// Shape, above 1.
        shape: f64,
    },
}

/// A rate controller at the port of a link.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ControllerPlan {
    /// Name of the controller, e.g. `brf`.
    pub kind: String,
    /// The link whose port it controls.
    pub link: u32,
    /// Rate to which the port is shaped. A switch in front of a bottleneck link shapes its port to
    /// the bottleneck's rate. `None`: the link's own rate.
    #[serde(default)]
    pub shape: Option<Vec<(Time, Rate)>>,
    /// Whether the controller is given the capacity (key `told`). If not, the controller measures the capacity.
    #[serde(default = "yes", rename = "told")]
    pub capacity_is_configured: bool,
    /// Limit of each leaf queue.
    #[serde(default)]
    pub limit: LimitPlan,
    /// Parameters of this kind of controller, in base units.
    #[serde(default)]
    pub params: Values,
    /// Outages of the controller (from, to). During an outage packets pass through plain queues and carry no rates.
    #[serde(default)]
    pub outages: Vec<(Time, Time)>,
}

fn yes() -> bool {
    true
}

/// The SDN controller.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SdnPlan {
    /// Time between two polls; `None`: the smaller of the switch's control period and 100 ms.
    #[serde(default)]
    pub poll: Option<Span>,
    /// One-way delay between the controller and any switch.
    pub delay: Span,
    /// Outages of the controller (from, to).
    #[serde(default)]
    pub outages: Vec<(Time, Time)>,
}

/// Recorded samples.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ProbePlan {
    /// Time between two samples; zero: no samples.
    pub interval: Span,
    /// Indices of the links to sample. The sojourn times in the queues of these links are measured
    /// too.
    #[serde(default)]
    pub links: Vec<u32>,
    /// Sample flows, except flows of Poisson sources.
    #[serde(default = "yes")]
    pub flows: bool,
    /// Record the internal state of controllers (table `traces`).
    #[serde(default)]
    pub traces: bool,
}

impl Default for ProbePlan {
    fn default() -> Self {
        ProbePlan { interval: Span::from_millis(100), links: Vec::new(), flows: true, traces: false }
    }
}
