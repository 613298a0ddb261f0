//! What to simulate, fully resolved: every name an index, every figure in SI base units.
//!
//! A [`Plan`] comes from a scenario file by way of the Python layer (units, topologies by name, sweeps and friendly errors live
//! there), as JSON. [`Plan::check`] is the last line of defence: whatever a plan says, a run must not panic.
//! Times are nanoseconds, rates L3 bytes/s, sizes bytes.

use narrows_control::units::{Bytes, Rate, Span, Time};
use serde::{Deserialize, Serialize};

/// One run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Seed of every random choice.
    pub seed: u64,
    /// Length of the run.
    pub duration: Span,
    /// Start of the measurement interval (docs/reference/results.md: default 10 % of the run, at least 10 RTT).
    #[serde(default)]
    pub warmup: Span,
    /// Node names; links and flows refer to them by index.
    pub nodes: Vec<String>,
    /// Directed links.
    pub links: Vec<LinkPlan>,
    /// Flows and sources of flows.
    pub flows: Vec<FlowPlan>,
    /// Rate controllers at ports.
    #[serde(default)]
    pub controllers: Vec<ControllerPlan>,
    /// The SDN controller of the domain.
    #[serde(default)]
    pub sdn: Option<SdnPlan>,
    /// Receive buffer of each TCP connection (Linux `tcp_rmem`, its largest; half of it is offered). None: Linux's default.
    #[serde(default)]
    pub receive_buffer: Option<Bytes>,
    /// Whether that buffer goes on to limit senders once the window has opened, and what waits behind a hole takes of it.
    #[serde(default)]
    pub receive_memory: bool,
    /// What to record.
    #[serde(default)]
    pub probes: ProbePlan,
}

/// A directed link: a port with its queue, and the wire behind it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkPlan {
    /// Name in results, e.g. `R0->R1`.
    pub name: String,
    /// Sending node.
    pub from: u32,
    /// Receiving node.
    pub to: u32,
    /// How fast it serves.
    pub rate: RatePlan,
    /// Propagation delay over time: steps of (from when, delay), the first at 0.
    pub delay: Vec<(Time, Span)>,
    /// Random extra delay.
    #[serde(default)]
    pub jitter: Option<JitterPlan>,
    /// Random loss behind the queue, over time: steps of (from when, model), the first at 0. Empty: none.
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
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum RatePlan {
    /// Piecewise constant: (from when, rate), the first at 0. With `period` it starts again.
    Steps {
        /// The steps, in order of time.
        steps: Vec<(Time, Rate)>,
        /// Length of the trace when it repeats.
        #[serde(default)]
        period: Option<Span>,
    },
    /// Mahimahi: at each of these times `bytes` bytes may leave; what is not used is lost.
    Opportunities {
        /// Milliseconds, not decreasing.
        millis: Vec<u32>,
        /// Length of the trace in milliseconds; it starts again at its end.
        period_millis: u32,
        /// Bytes of one opportunity (mahimahi: 1500).
        bytes: u32,
    },
}

/// Random extra delay of a packet.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JitterPlan {
    /// Uniform between 0 and this.
    pub max: Span,
    /// Packets may overtake each other.
    #[serde(default)]
    pub reorder: bool,
}

/// Random loss.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LossPlan {
    /// Each packet independently.
    Bernoulli {
        /// Probability.
        p: f64,
    },
    /// Two states with transition probabilities per packet and a loss probability in each.
    GilbertElliott {
        /// Good to bad.
        p: f64,
        /// Bad to good.
        r: f64,
        /// Loss probability in the good state.
        #[serde(default)]
        good: f64,
        /// Loss probability in the bad state.
        bad: f64,
    },
}

/// Longest a queue may get. Both `None`: infinite.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum QueuePlan {
    /// First in, first out; tail drop at the limit.
    Fifo {
        /// Limit.
        #[serde(default)]
        limit: LimitPlan,
        /// Mark or drop early.
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
        /// Limit, all queues together.
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
    /// Strict priority: the flow's `class` is its band, band 0 first.
    Priority {
        /// Limit of each band.
        bands: Vec<LimitPlan>,
    },
    /// Hierarchical token bucket, one level: the flow's `class` is the index.
    Htb {
        /// The classes.
        classes: Vec<HtbClassPlan>,
    },
}

/// Early marking of a FIFO.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum MarkPlan {
    /// Tail drop only.
    #[default]
    None,
    /// Mark CE when the queue is longer than this at arrival (DCTCP's step).
    Threshold {
        /// Packets waiting.
        packets: u32,
    },
    /// RED (Floyd and Jacobson 1993) on the averaged queue length.
    Red {
        /// No action below, packets.
        min: f64,
        /// Always acts above, packets (twice this in the gentle variant, which is used).
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
#[serde(deny_unknown_fields)]
pub struct HtbClassPlan {
    /// Guaranteed rate.
    pub rate: Rate,
    /// Most it may borrow up to.
    pub ceil: Rate,
    /// Limit of its FIFO.
    #[serde(default)]
    pub limit: LimitPlan,
    /// Who borrows first: lower first.
    #[serde(default)]
    pub priority: u8,
}

/// One flow, `count` equal flows, or a source of flows.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowPlan {
    /// Name in results; flows of a group get `.0`, `.1`, ... behind it.
    pub name: String,
    /// Sending node.
    pub from: u32,
    /// Receiving node.
    pub to: u32,
    /// Nodes that the reverse direction passes, both ends included, where it does not take the shortest path.
    #[serde(default)]
    pub return_path: Option<Vec<u32>>,
    /// First SYN (TCP) or packet (UDP).
    pub start: Time,
    /// When the application stops sending; `None`: at the end of the run.
    #[serde(default)]
    pub stop: Option<Time>,
    /// How many such flows; 1 for one.
    #[serde(default = "one")]
    pub count: u32,
    /// Later start of each next flow of the group.
    #[serde(default)]
    pub spacing: Span,
    /// Class for priority and HTB queues.
    #[serde(default)]
    pub class: u8,
    /// Transport.
    pub transport: TransportPlan,
    /// What the application sends.
    pub app: AppPlan,
}

impl FlowPlan {
    /// A TCP flow under this congestion controller that sends as much as it can from the start of the run.
    pub fn bulk(name: impl Into<String>, (from, to): (u32, u32), cc: impl Into<String>) -> Self {
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
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum TransportPlan {
    /// TCP.
    Tcp {
        /// Name of the congestion controller.
        cc: String,
        /// Negotiate ECN.
        #[serde(default)]
        ecn: bool,
        /// Pace window-based controllers too (2 x / 1.2 x cwnd per srtt, as Linux with sch_fq).
        #[serde(default)]
        pacing: bool,
        /// Receive window in segments; `None`: never limits.
        #[serde(default)]
        receive_window: Option<u32>,
        /// Payload bytes of a full segment (1448 in a 1500-byte packet).
        #[serde(default = "default_mss")]
        mss: u32,
    },
    /// UDP: constant rate of packets of this size (L3).
    Udp {
        /// L3 bytes/s.
        rate: Rate,
        /// L3 bytes of a packet.
        packet: u32,
    },
}

fn default_mss() -> u32 {
    1448
}

/// What the application sends.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum AppPlan {
    /// As much as the transport takes.
    Bulk,
    /// This many bytes, then close.
    Size {
        /// Application bytes.
        bytes: Bytes,
    },
    /// Constant rate of application bytes, while on; on and off in turn.
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
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum SizePlan {
    /// Always the same.
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
#[serde(deny_unknown_fields)]
pub struct ControllerPlan {
    /// Name of the controller, e.g. `brf`.
    pub kind: String,
    /// The link whose port it controls.
    pub link: u32,
    /// Shape the port to this rate (a switch at the entrance of a bottleneck link shapes to the bottleneck's rate); `None`: the link's own.
    #[serde(default)]
    pub shape: Option<Vec<(Time, Rate)>>,
    /// The controller is told the capacity; otherwise it has to measure it.
    #[serde(default = "yes")]
    pub told: bool,
    /// Limit of each leaf queue.
    #[serde(default)]
    pub limit: LimitPlan,
    /// Parameters, as the controller defines them.
    #[serde(default)]
    pub params: serde_json::Value,
    /// When the controller is out of order (from, to): packets pass in plain queues, nothing is stamped.
    #[serde(default)]
    pub outages: Vec<(Time, Time)>,
}

fn yes() -> bool {
    true
}

/// The SDN controller.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SdnPlan {
    /// Between two polls; `None`: the smaller of the switch's control period and 100 ms.
    #[serde(default)]
    pub poll: Option<Span>,
    /// One way between the controller and any switch.
    pub delay: Span,
    /// When it is out of order (from, to).
    #[serde(default)]
    pub outages: Vec<(Time, Time)>,
}

/// What to record.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbePlan {
    /// Between two samples; zero: no samples.
    pub interval: Span,
    /// Links to sample and to measure sojourn times at, by index.
    #[serde(default)]
    pub links: Vec<u32>,
    /// Sample flows (all but those of Poisson sources).
    #[serde(default = "yes")]
    pub flows: bool,
    /// Record the internal state of controllers too (long table `traces`).
    #[serde(default)]
    pub traces: bool,
}

impl Default for ProbePlan {
    fn default() -> Self {
        ProbePlan { interval: Span::from_millis(100), links: Vec::new(), flows: true, traces: false }
    }
}
