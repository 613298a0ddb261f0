#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod changes;
mod kernel;
#[cfg(feature = "schema")]
mod schema;
mod traffic;

#[cfg(feature = "schema")]
pub use schema::schema;

pub use changes::{ChangePlan, FlowPhase, TriggerPlan};
pub use kernel::{Datapath, Delayer, Forwarding, HostQueue, KernelPlan, Tool};
pub use traffic::{
    AppPlan, CATALOGUE_PREFIX, FlowEnd, FlowPlan, INITIAL_WINDOW_PACKETS, ProgramPlan, Protocol, QUINN,
    QUINN_CONTROLLERS, SizePlan, StackPlan, TransportPlan,
};

use narrows_control::parameter::Values;
use narrows_control::units::{Bytes, Rate, Span, Time};
use serde::{Deserialize, Serialize};

/// The plan of one run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Seed of every random choice.
    pub seed: u64,
    /// Duration of the run.
    pub duration: Span,
    /// Start of the measurement interval. The Python layer's default is 10 % of the run, but at least 10 RTTs.
    #[serde(default)]
    pub warmup: Span,
    /// Node names. Links and flows refer to nodes by index.
    pub nodes: Vec<String>,
    /// Directed links.
    pub links: Vec<LinkPlan>,
    /// Flows and sources of flows.
    pub flows: Vec<FlowPlan>,
    /// Rate controllers at ports. Plans of version 0.2 use the key `controllers`.
    #[serde(default, alias = "controllers")]
    pub rate_controllers: Vec<ControllerPlan>,
    /// The SDN controller of the domain.
    #[serde(default)]
    pub sdn: Option<SdnPlan>,
    /// Receive buffer of each TCP connection (the maximum in Linux's `tcp_rmem`). The receiver offers half of
    /// the buffer as its window. `None`: Linux's default.
    #[serde(default)]
    pub receive_buffer: Option<Bytes>,
    /// Whether the receive buffer limits senders after the window has reached its maximum. If true, segments that wait
    /// for a missing segment take memory from the buffer.
    #[serde(default)]
    pub receive_memory: bool,
    /// Whether each flow takes a random shortest path in each direction. If false, all flows between two nodes take the
    /// same path.
    #[serde(default)]
    pub ecmp: bool,
    /// Changes that happen when the congestion controller of a flow enters a phase. Only the simulator supports them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<TriggerPlan>,
    /// The samples that the run records.
    #[serde(default)]
    pub probes: ProbePlan,
    /// The packets that the run records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<CapturePlan>,
    /// Options of runs on real stacks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelPlan>,
}

/// The places where packets are recorded. A program that runs the plan decides where the recorded packets are written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CapturePlan {
    /// Indices of links. The packets that arrive at the ends of these links are recorded.
    #[serde(default)]
    pub links: Vec<u32>,
    /// Indices of nodes. The packets that the flows of these nodes send and receive are recorded.
    #[serde(default)]
    pub hosts: Vec<u32>,
    /// Maximum number of recorded bytes of a packet.
    pub snap: u32,
    /// Whether the stacks of flows write their own logs (qlog).
    #[serde(default)]
    pub qlog: bool,
}

/// A directed link, which consists of a port with its queue and the wire after the port.
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
    /// Propagation delay over time, as steps of (start, delay). The first step starts at 0.
    pub delay: Vec<(Time, Span)>,
    /// Random extra delay.
    #[serde(default)]
    pub jitter: Option<JitterPlan>,
    /// Changes of the random extra delay, as steps of (start, jitter). Before the first step, `jitter` applies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jitter_changes: Vec<(Time, JitterPlan)>,
    /// Random loss after the queue over time, as steps of (start, model). If the list is empty, there is no loss.
    #[serde(default)]
    pub loss: Vec<(Time, LossPlan)>,
    /// Probability that a packet arrives twice.
    #[serde(default)]
    pub duplicate: f64,
    /// A policer after the queue. It drops packets that exceed its rate.
    #[serde(default)]
    pub policer: Option<PolicerPlan>,
    /// Length of an aggregation interval. Packets that leave the queue during an interval are sent together at its end.
    /// The first interval begins at the start of the run.
    #[serde(default)]
    pub aggregation: Option<Span>,
    /// Queue of the link's port.
    pub queue: QueuePlan,
}

impl LinkPlan {
    /// Creates a link of constant rate and delay without loss, with a FIFO queue of this limit.
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
            jitter_changes: Vec::new(),
            loss: Vec::new(),
            duplicate: 0.0,
            policer: None,
            aggregation: None,
            queue: QueuePlan::Fifo { limit, mark: MarkPlan::None },
        }
    }
}

/// How a link serves packets over time.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum RatePlan {
    /// A piecewise constant rate, as steps of (start, rate). The first step starts at 0. If `period` is set, the steps
    /// repeat.
    Steps {
        /// The steps, in order of time.
        steps: Vec<(Time, Rate)>,
        /// Time after which the steps repeat; `None`: the steps do not repeat.
        #[serde(default)]
        period: Option<Span>,
    },
    /// A trace in the format of mahimahi. At each of the times in `millis`, the link can send `bytes` bytes. Unused
    /// opportunities are lost.
    Opportunities {
        /// Times of the opportunities in milliseconds, not decreasing.
        millis: Vec<u32>,
        /// Length of the trace in milliseconds, after which it repeats.
        period_millis: u32,
        /// Bytes that the link can send at one opportunity (1500 in mahimahi).
        bytes: u32,
    },
}

/// Random extra delay of a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct JitterPlan {
    /// The delay is uniform between 0 and this value.
    pub max: Span,
    /// Whether packets may overtake each other.
    #[serde(default)]
    pub reorder: bool,
}

/// A token bucket that drops packets for which it has no tokens. The bucket is full at the start of the run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PolicerPlan {
    /// L3 rate at which the bucket fills.
    pub rate: Rate,
    /// Size of the bucket.
    pub burst: Bytes,
}

/// Random loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LossPlan {
    /// Each packet is lost independently.
    Bernoulli {
        /// Probability that a packet is lost.
        p: f64,
    },
    /// A model with a good and a bad state. Each state has a transition probability per packet and a loss
    /// probability.
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

/// Limit of a queue. If both fields are `None`, the queue is unlimited.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LimitPlan {
    /// Maximum number of waiting packets; `None`: no limit.
    #[serde(default)]
    pub packets: Option<u32>,
    /// Maximum number of waiting L3 bytes; `None`: no limit.
    #[serde(default)]
    pub bytes: Option<Bytes>,
}

impl LimitPlan {
    /// Creates a limit of this many packets.
    pub fn packets(packets: u32) -> Self {
        LimitPlan { packets: Some(packets), bytes: None }
    }

    /// Creates a limit of this many L3 bytes.
    pub fn bytes(bytes: Bytes) -> Self {
        LimitPlan { packets: None, bytes: Some(bytes) }
    }
}

/// The queue of a port. The packet in transmission does not count as waiting.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum QueuePlan {
    /// First in, first out. A packet that arrives at the limit is dropped (tail drop).
    Fifo {
        /// Limit of the queue.
        #[serde(default)]
        limit: LimitPlan,
        /// How packets are marked or dropped before the queue is full.
        #[serde(default)]
        mark: MarkPlan,
    },
    /// CoDel (RFC 8289).
    Codel {
        /// Limit of the queue.
        #[serde(default)]
        limit: LimitPlan,
        /// Target sojourn time of packets in the queue.
        target: Span,
        /// Time for which the sojourn time must exceed `target` before the first drop.
        interval: Span,
        /// Whether packets of ECN-capable flows are marked instead of dropped.
        #[serde(default)]
        ecn: bool,
    },
    /// FQ-CoDel (RFC 8290).
    FqCodel {
        /// Limit of all queues together.
        #[serde(default)]
        limit: LimitPlan,
        /// Target sojourn time of packets in the queue.
        target: Span,
        /// Time for which the sojourn time must exceed `target` before the first drop.
        interval: Span,
        /// Quantum of the deficit round robin.
        quantum: Bytes,
        /// Number of queues that flows are hashed into.
        queues: u32,
        /// Whether packets of ECN-capable flows are marked instead of dropped.
        #[serde(default)]
        ecn: bool,
    },
    /// Strict priority. The `class` of a flow is an index into `classes`. Class 0 is served first.
    Priority {
        /// Limit of each class. Plans of version 0.2 use the key `bands`.
        #[serde(alias = "bands")]
        classes: Vec<LimitPlan>,
    },
    /// Hierarchical token bucket with one level. The `class` of a flow is an index into `classes`.
    Htb {
        /// The classes.
        classes: Vec<HtbClassPlan>,
    },
}

/// How a FIFO marks or drops packets before it is full.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum MarkPlan {
    /// Tail drop only.
    #[default]
    None,
    /// A packet that arrives while more than `packets` packets wait is marked with CE (as for DCTCP).
    Threshold {
        /// Threshold in waiting packets.
        packets: u32,
    },
    /// RED (Floyd and Jacobson 1993), which uses the averaged queue length.
    Red {
        /// Lower threshold in packets. Below this threshold, no packet is marked or dropped early.
        min: f64,
        /// Upper threshold in packets. The gentle variant is used, in which the probability reaches 1 at twice this
        /// value.
        max: f64,
        /// Probability of marking or dropping a packet at `max`.
        max_p: f64,
        /// Weight of the newest value in the moving average of the queue length.
        weight: f64,
        /// Whether ECN-capable packets are marked instead of dropped.
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
    /// Limit of the class's FIFO.
    #[serde(default)]
    pub limit: LimitPlan,
    /// Priority for borrowing. Classes with lower values borrow first.
    #[serde(default)]
    pub priority: u8,
}

/// A rate controller at the port of a link.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ControllerPlan {
    /// Name of the rate controller, e.g. `brf`.
    pub kind: String,
    /// Index of the link whose port is controlled.
    pub link: u32,
    /// Rate to which the port is shaped over time, as steps of (start, rate). A switch in front of a bottleneck link
    /// shapes its port to the bottleneck's rate. `None`: the port has the link's own rate.
    #[serde(default)]
    pub shape: Option<Vec<(Time, Rate)>>,
    /// Whether the rate controller is given the capacity (key `told`). If false, the rate controller measures the
    /// capacity.
    #[serde(default = "yes", rename = "told")]
    pub capacity_is_configured: bool,
    /// Limit of each leaf queue.
    #[serde(default)]
    pub limit: LimitPlan,
    /// Parameters of the rate controller, in base units.
    #[serde(default)]
    pub params: Values,
    /// Outages of the rate controller, each as (from, to). During an outage, packets pass through plain queues and
    /// carry no rates.
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
    /// Time between two polls; `None`: the time is the switch's control period, but at most 100 ms.
    #[serde(default)]
    pub poll: Option<Span>,
    /// One-way delay between the SDN controller and any switch.
    pub delay: Span,
    /// Outages of the SDN controller, each as (from, to).
    #[serde(default)]
    pub outages: Vec<(Time, Time)>,
}

/// The samples that the run records.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ProbePlan {
    /// Time between two samples; zero: no samples.
    pub interval: Span,
    /// Indices of the links to sample. The sojourn times in the queues of these links are also measured.
    #[serde(default)]
    pub links: Vec<u32>,
    /// Whether flows are sampled. Flows of Poisson sources are never sampled.
    #[serde(default = "yes")]
    pub flows: bool,
    /// Whether the internal state of congestion controllers and rate controllers is recorded (table `traces`).
    #[serde(default)]
    pub traces: bool,
    /// Indices of the TCP flows whose state is recorded after each ACK (table `acks`).
    #[serde(default)]
    pub acks: Vec<u32>,
    /// Maximum number of rows of the table `acks`. When the table has reached this number, every second row is dropped.
    /// From then on, half as many ACKs are recorded.
    #[serde(default = "million")]
    pub ack_rows: u32,
}

fn million() -> u32 {
    1_000_000
}

impl Default for ProbePlan {
    fn default() -> Self {
        ProbePlan {
            interval: Span::from_millis(100),
            links: Vec::new(),
            flows: true,
            traces: false,
            acks: Vec::new(),
            ack_rows: million(),
        }
    }
}
