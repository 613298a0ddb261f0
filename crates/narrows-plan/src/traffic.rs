//! The types of flows: their ends, transports and applications.

use narrows_control::catalogue::Choice;
use narrows_control::units::{Bytes, Rate, Span, Time};
use serde::{Deserialize, Serialize};

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
    /// Number of equal flows. These flows form a group.
    #[serde(default = "one")]
    pub count: u32,
    /// Time between the starts of two successive flows of the group.
    #[serde(default)]
    pub spacing: Span,
    /// Each flow of the group starts later by a random time of up to this length.
    #[serde(default)]
    pub start_jitter: Span,
    /// Class for priority and HTB queues. With `share = "mark"`, BRF uses this value as the packets' mark.
    #[serde(default)]
    pub class: u8,
    /// Number of the service to which the flow belongs (BRF-31); `None`: the flow has a service of its own.
    #[serde(default)]
    pub service: Option<u16>,
    /// Transport.
    pub transport: TransportPlan,
    /// The sending application.
    pub app: AppPlan,
}

impl FlowPlan {
    /// Returns the name of one of this plan's flows in the results. `member` is the number of the flow within this
    /// plan.
    pub fn flow_name(&self, member: u32) -> String {
        if self.is_single() { self.name.clone() } else { format!("{}.{member}", self.name) }
    }

    /// Whether this plan has exactly one flow.
    pub fn is_single(&self) -> bool {
        self.count == 1 && !matches!(self.app, AppPlan::Poisson { .. })
    }

    /// Whether the phases of this plan's flow can trigger changes ([`crate::TriggerPlan`]).
    pub fn has_phases(&self) -> bool {
        self.is_single() && matches!(self.transport, TransportPlan::Tcp { .. })
    }

    /// Creates a TCP flow with this congestion controller. The flow starts with the run, and sends as much data as it
    /// can.
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
            start_jitter: Span::ZERO,
            class: 0,
            service: None,
            transport: TransportPlan::Tcp {
                cc: cc.into(),
                ecn: false,
                pacing: false,
                receive_window: None,
                mss: default_mss(),
                initial_window: INITIAL_WINDOW_PACKETS,
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
        /// Whether the ends negotiate ECN.
        #[serde(default)]
        ecn: bool,
        /// Whether window-based congestion controllers are also paced. As in Linux with sch_fq, the rate is 2 cwnd per
        /// srtt in slow start and 1.2 cwnd per srtt otherwise.
        #[serde(default)]
        pacing: bool,
        /// Limit of the receive window in segments; `None`: the receive buffer determines the window.
        #[serde(default)]
        receive_window: Option<u32>,
        /// Payload bytes of a full segment (1448 in a 1500-byte packet).
        #[serde(default = "default_mss")]
        mss: u32,
        /// Window of a new connection, in packets. As in Linux, a long idle time reduces a larger window to this size.
        #[serde(default = "default_initial_window")]
        initial_window: u32,
    },
    /// UDP: packets of constant size at a constant rate.
    Udp {
        /// Rate of the flow, L3 bytes/s.
        rate: Rate,
        /// Size of a packet, L3 bytes.
        packet: u32,
    },
    /// A transport protocol of another library, such as QUIC of quinn. Such a protocol has its own datagrams, loss
    /// detection and pacing. The program that runs the plan provides the library.
    Stack(StackPlan),
    /// Unmodified programs exchange the data. Only real stacks can run a flow of programs.
    Program(ProgramPlan),
}

/// A server and a client, which are started as processes at the ends of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ProgramPlan {
    /// Words of the server's command. The server starts before the run.
    pub server: Vec<String>,
    /// Words of the client's command. The client starts at the flow's start.
    pub client: Vec<String>,
    /// Protocol of the packets that are counted.
    pub protocol: Protocol,
    /// Port at which the server listens.
    pub port: u16,
    /// The end of the flow at which the client runs. The server runs at the other end.
    #[serde(default)]
    pub client_at: FlowEnd,
    /// Congestion controller of the sending host's TCP connections; `None`: the kernel's default.
    #[serde(default)]
    pub cc: Option<Choice>,
    /// Paths of files and folders that the programs find in their working folder.
    #[serde(default)]
    pub files: Vec<String>,
}

impl ProgramPlan {
    /// Returns the end of the flow at which the server runs.
    pub fn server_at(&self) -> FlowEnd {
        self.client_at.other()
    }
}

/// A transport protocol of the kernel.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP, which also carries QUIC.
    Udp,
}

/// An end of a flow.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FlowEnd {
    /// The node that sends the data of the flow (`from`).
    #[default]
    From,
    /// The node that receives the data of the flow (`to`).
    To,
}

impl FlowEnd {
    /// Returns the other end.
    pub fn other(self) -> Self {
        match self {
            FlowEnd::From => FlowEnd::To,
            FlowEnd::To => FlowEnd::From,
        }
    }

    /// Returns the value of this end. `ends` has the values of [`From`](FlowEnd::From) and [`To`](FlowEnd::To).
    pub fn of<T>(self, ends: (T, T)) -> T {
        match self {
            FlowEnd::From => ends.0,
            FlowEnd::To => ends.1,
        }
    }
}

/// A stack that carries a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StackPlan {
    /// Name of the stack, e.g. `quinn`.
    pub name: String,
    /// The congestion controller, by a name of the stack or of the catalogue. If a name exists in both, it selects the
    /// stack's controller. `narrows:NAME` selects the controller of the catalogue.
    pub cc: Choice,
    /// Flow-control window of the receiver in application bytes; `None`: the stack's default.
    #[serde(default)]
    pub receive_window: Option<Bytes>,
}

/// The stack `quinn`, which is QUIC of the Rust crate quinn.
pub const QUINN: &str = "quinn";

/// The congestion controllers that are a part of quinn.
pub const QUINN_CONTROLLERS: [&str; 3] = ["bbr", "cubic", "newreno"];

/// Prefix of the name of a congestion controller that selects a controller of the catalogue instead of the stack's own
/// controller.
pub const CATALOGUE_PREFIX: &str = "narrows:";

fn default_mss() -> u32 {
    1448
}

/// Initial window of current stacks, packets (RFC 6928).
pub const INITIAL_WINDOW_PACKETS: u32 = 10;

fn default_initial_window() -> u32 {
    INITIAL_WINDOW_PACKETS
}

/// The sending application.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum AppPlan {
    /// The application always has data to send.
    Bulk,
    /// The application sends `bytes` bytes and closes the connection.
    Size {
        /// Number of application bytes.
        bytes: Bytes,
    },
    /// The application produces data at a constant rate in on periods, which alternate with off periods.
    Limited {
        /// Rate in an on period, application bytes/s.
        rate: Rate,
        /// Length of an on period; `None`: always on.
        #[serde(default)]
        on: Option<Span>,
        /// Length of an off period.
        #[serde(default)]
        off: Option<Span>,
    },
    /// The rate of the application changes during the run.
    Scheduled {
        /// Steps of (start, rate in application bytes/s). The first step starts at 0. With `None`, the application always
        /// has data to send. With a rate of 0, the application pauses.
        steps: Vec<(Time, Option<Rate>)>,
    },
    /// A source of flows that arrive as a Poisson process from `start` to `stop`. `count` must be 1.
    Poisson {
        /// Mean number of flows per second.
        per_sec: f64,
        /// Distribution of the sizes of flows, application bytes.
        size: SizePlan,
    },
    /// The receiver requests objects, and the sender sends them, each on a stream of its own. Only external stacks, such
    /// as QUIC, have streams.
    Requests {
        /// Distribution of the sizes of objects, application bytes.
        size: SizePlan,
        /// Number of requests that are open at the same time.
        parallel: u32,
        /// Number of requests; `None`: until the flow stops.
        #[serde(default)]
        count: Option<u32>,
        /// Time from the last byte of an object to the next request.
        #[serde(default)]
        think: Span,
    },
}

/// Distribution of flow sizes in bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum SizePlan {
    /// All flows have the same size.
    Fixed {
        /// Size of each flow in bytes.
        bytes: f64,
    },
    /// Flow sizes have an exponential distribution.
    Exponential {
        /// Mean size in bytes.
        mean: f64,
    },
    /// Flow sizes have a Pareto distribution (type I).
    Pareto {
        /// Mean size in bytes.
        mean: f64,
        /// Shape parameter of the distribution, above 1.
        shape: f64,
    },
    /// Flow sizes have a measured distribution.
    Empirical {
        /// Points of the distribution. A point is a size in bytes, with the share of flows that are not larger than
        /// this size. Sizes and shares increase from point to point. The shares start at 0 and end at 1. Between two
        /// points, all sizes are equally likely.
        points: Vec<(f64, f64)>,
    },
}
