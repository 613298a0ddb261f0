//! The scenario as data: the content of a TOML file after a check of each key. [`resolve`](crate::resolve) converts it
//! to a plan.
//!
//! | module | tables |
//! | --- | --- |
//! | `beginning` | beginnings of phases, at which changes happen |
//! | `network` | nodes, links, losses, jitter, traces |
//! | `queue` | queues |
//! | `topology` | layouts and published networks |
//! | `flow`, `traffic`, `program` | flows and their applications |
//! | `control` | rate controllers, the SDN controller, probes, captures, the kernel backend |
//! | `expectation` | sweeps and expectations |

pub(crate) mod beginning;
pub(crate) mod control;
pub(crate) mod expectation;
pub(crate) mod flow;
pub(crate) mod network;
pub(crate) mod program;
pub(crate) mod queue;
pub(crate) mod shell;
pub(crate) mod stacks;
pub(crate) mod topology;
pub(crate) mod traffic;

pub use self::beginning::{Beginning, Phase};
pub use self::control::{
    Capacity, Capture, Datapath, Delayer, Forwarding, HostQueue, Kernel, Probes, RateController, RateStep,
    Sdn, Tool,
};
pub use self::expectation::{Case, Compare, Expectation, Selection, Sweep};
pub use self::flow::{Congestion, Ends, Flow, Groups, MAX_FLOWS, Pattern, Transport};
pub use self::network::{
    Bernoulli, Change, Column, GilbertElliott, Jitter, Link, Loss, Node, Policer, TimeUnit, Trace,
    TraceFormat, Traits,
};
pub use self::program::{FlowEnd, Program, Protocol};
pub use self::queue::{Codel, Fifo, FqCodel, Htb, HtbClass, Priority, Queue, Red, Threshold};
pub use self::topology::{Access, Dumbbell, Named, ParkingLot, Star, Topology};
pub use self::traffic::{App, AppChange, Arrivals, Distribution, Requests, SizeDistribution};
pub use crate::value::fields::ReceiveBuffer;

use crate::units::Span;
use crate::value::fields::{Duration, FileName, Flag, List, PositiveDuration, Whole, seconds};
use crate::value::table::table;

/// Maximum number of seeds of a sweep.
pub const MAX_SEEDS: u64 = 100_000;
/// Highest seed.
pub const MAX_SEED: u64 = i64::MAX as u64;
/// Maximum number of links.
pub(crate) const MAX_LINKS: usize = 50_000;

table! {
    /// A scenario.
    pub struct Content {
        /// Name of the results folder.
        pub name: String as FileName = "scenario".to_owned();
        /// Length of a run.
        pub duration: Span as PositiveDuration = seconds(30);
        /// Seed of all random choices.
        pub seed: u64 as Whole<u64, 0, MAX_SEED> = 1;
        /// Start of the measurement interval (default: 10 % of the run, but at least 10 times the longest RTT and at
        /// most half of the run).
        pub warmup: Option<Span> as Option<Duration> = None;
        /// Topology: a layout (`kind`), or a published network (`name`).
        pub topology: Option<Topology> as Option<Topology> = None;
        /// Nodes. Nodes that are ends of links need no entry.
        pub nodes: Vec<Node> as List<Node> = Vec::new();
        /// Links in addition to the topology's links.
        pub links: Vec<Link> as List<Link, 0, MAX_LINKS> = Vec::new();
        /// Whether flows are spread over equal paths, as in a network whose switches hash addresses and ports. Each
        /// flow takes one of the shortest paths, chosen at random. The path of its ACKs is chosen independently. If
        /// false, all flows between two nodes take the same path. Simulator only.
        pub ecmp: bool as Flag = false;
        /// Flows of the scenario.
        pub flows: Vec<Flow> as List<Flow, 0, 100_000> = Vec::new();
        /// Rate controllers at ports of switches.
        pub rate_controllers: Vec<RateController> as List<RateController, 0, 1024> = Vec::new();
        /// The SDN controller (default: none).
        pub sdn: Option<Sdn> as Option<Sdn> = None;
        /// Receive buffer of every TCP connection (Linux tcp_rmem). Half of the buffer is advertised as the window.
        /// Data after a missing segment occupies part of the buffer. "auto" is the larger of two sizes: Linux's 6 MiB,
        /// and four times what the largest path holds (its BDP and its queue). If this key is not set, real sockets
        /// have the "auto" size. In this case, a simulated receiver limits the sender only until the window has grown
        /// to half of the "auto" size.
        pub receive_buffer: Option<ReceiveBuffer> as Option<ReceiveBuffer> = None;
        /// Data that each run records.
        pub probes: Probes as Probes = Probes::default();
        /// Packets that each run records for Wireshark. Not with `--on vm`.
        pub capture: Option<Capture> as Option<Capture> = None;
        /// How the kernel backend builds the network (default: the defaults of its keys).
        pub kernel: Option<Kernel> as Option<Kernel> = None;
        /// The runs of the scenario: cases, varied values and seeds (default: one run).
        pub sweep: Option<Sweep> as Option<Sweep> = None;
        /// Conditions that the results must meet. The conditions do not change the runs.
        pub expect: Vec<Expectation> as List<Expectation, 0, 1000> = Vec::new();
    }
}
