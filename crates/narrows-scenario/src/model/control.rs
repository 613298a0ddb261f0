//! Rate controllers, the SDN controller, and what a run records.

use indexmap::IndexMap;

use crate::units::{BitRate, Bytes, Limit, Span};
use crate::value::Value;
use crate::value::fields::{
    Data, Delay, Duration, Field, Flag, List, Map, Name, NamesOrAll, Period, PeriodOrZero, QueueLength, Rate,
    RateOrZero, SizeBetween, Text, Whole,
};
use crate::value::reader::{Part, Reader};
use crate::value::reference;
use crate::value::schema;
use crate::value::table::{Given, Keys, Takes, table};
use crate::value::words::words;

/// Checks that pairs of times are in order.
fn in_order(outages: &[Vec<Span>]) -> Result<(), String> {
    let mut end = None;
    for outage in outages {
        let (start, stop) = (outage.first(), outage.get(1));
        if start >= stop || start < end {
            return Err("pairs of times in order, e.g. [['10s', '20s']]".to_owned());
        }
        end = stop;
    }
    Ok(())
}

table! {
    /// A change of the rate at a time during the run.
    pub struct RateStep {
        /// Time of the change.
        pub time: Span as Duration;
        /// Rate from this time on.
        pub rate: BitRate as RateOrZero;
    }
}

/// A rate, or a list of rates over time.
pub(crate) struct RateOrSteps;

impl Field for RateOrSteps {
    type Value = Vec<RateStep>;
    fn read<'v>(value: &'v Value, at: &mut Reader<'v>) -> Option<Vec<RateStep>> {
        if let Value::Text(_) = value {
            let rate = at.inside(Part::Index(0), |at| {
                at.inside(Part::Form("rate"), |at| RateOrZero::read(value, at))
            })?;
            return Some(vec![RateStep { time: Span::ZERO, rate, given: Given(0b11) }]);
        }
        List::<RateStep, 1>::read(value, at)
    }
    fn write(value: &Vec<RateStep>, keys: Keys) -> Option<Value> {
        List::<RateStep>::write(value, keys)
    }
    fn schema() -> serde_json::Value {
        schema::any_of(vec![schema::rate(), List::<RateStep, 1>::schema()])
    }
    fn words() -> String {
        reference::either(&[Rate::words(), List::<RateStep>::words()])
    }
    fn takes() -> Takes {
        List::<RateStep>::takes()
    }
}

words! {
    /// Whether a rate controller knows the capacity of its port.
    pub enum Capacity {
        /// The rate controller is given the capacity.
        Told = "told",
        /// The rate controller measures the capacity.
        Measured = "measured",
    }
}

table! {
    /// A rate controller at the port of a link, or equal rate controllers at several ports.
    pub struct RateController check RateController::consistent {
        /// Name of the rate controller's kind, e.g. 'brf'.
        pub kind: String as Text<1, 64>;
        /// The directed link whose port is controlled: a name, 'A->B', a pattern such as 'hop*', or '*' for all core
        /// links.
        pub link: Option<String> as Option<Name> = None;
        /// Names and patterns of several links. Each link has a rate controller of its own. An alternative to `link`.
        pub links: Option<Vec<String>> as Option<List<Name, 1>> = None;
        /// Rate, or list of rates over time, to which the port is shaped (default: the link's rate).
        pub shape: Option<Vec<RateStep>> as Option<RateOrSteps> = None;
        /// Whether the rate controller is given the capacity of the port (`told`), or measures it (`measured`).
        pub capacity: Capacity as Capacity = Capacity::Told;
        /// Limit of each leaf queue (default: the link's limit).
        pub queue: Option<Limit> as Option<QueueLength> = None;
        /// Outages of the rate controller, each as (from, to).
        pub outages: Vec<Vec<Span>> as List<List<Duration, 2, 2>> = Vec::new();
        /// Parameters of the rate controller, listed in docs/reference/scenario-reference.md.
        pub params: IndexMap<String, Value> as Map<Data> = IndexMap::new();
    }
}

impl RateController {
    fn consistent(&self) -> Result<(), String> {
        in_order(&self.outages)?;
        if self.link.is_some() != self.links.is_some() {
            Ok(())
        } else {
            Err("one of link and links".to_owned())
        }
    }

    /// Returns the names and patterns that `link` or `links` has, each with its key in this table.
    pub(crate) fn named(&self) -> Vec<(&str, String)> {
        match &self.links {
            None => vec![(self.link.as_deref().unwrap_or(""), "link".to_owned())],
            Some(links) => {
                links.iter().enumerate().map(|(i, name)| (name.as_str(), format!("links.{i}"))).collect()
            }
        }
    }
}

table! {
    /// The SDN controller.
    pub struct Sdn check Sdn::outages_in_order {
        /// Time between two polls (default: the switch's control period, but at most 100 ms).
        pub poll: Option<Span> as Option<Period> = None;
        /// One-way delay between the SDN controller and any switch.
        pub delay: Span as Delay = Span::from_millis(1);
        /// Outages of the SDN controller, each as (from, to).
        pub outages: Vec<Vec<Span>> as List<List<Duration, 2, 2>> = Vec::new();
    }
}

impl Sdn {
    fn outages_in_order(&self) -> Result<(), String> {
        in_order(&self.outages)
    }
}

table! {
    /// The data that a run records.
    pub struct Probes {
        /// Sampling interval; 0 disables samples.
        pub interval: Span as PeriodOrZero = Span::from_millis(100);
        /// Links to sample (default: all links if there are at most 16, otherwise bottlenecks and controlled links).
        pub links: Option<Vec<String>> as Option<NamesOrAll> = None;
        /// Sample the first 1000 flows of a run; flows of `arrivals` are never sampled.
        pub flows: bool as Flag = true;
        /// Whether the internal state of congestion and rate controllers is recorded (table `traces`).
        pub traces: bool as Flag = false;
        /// Names of the TCP flows whose state is recorded after each ACK (table `acks`), or 'all'. Simulator only.
        pub acks: Option<Vec<String>> as Option<NamesOrAll> = None;
        /// Maximum number of rows of the table `acks` in a run. Each time the table is full, every second row is
        /// dropped, and from then on half as many ACKs are recorded.
        pub ack_rows: u32 as Whole<u32, 2, 100_000_000> = 1_000_000;
    }
}

impl Default for Probes {
    fn default() -> Self {
        Probes {
            interval: Span::from_millis(100),
            links: None,
            flows: true,
            traces: false,
            acks: None,
            ack_rows: 1_000_000,
            given: Given::default(),
        }
    }
}

table! {
    /// Packets that a run records for Wireshark, and logs of QUIC. See [captures](captures.md).
    pub struct Capture check Capture::somewhere {
        /// Links to capture: the packets that arrive at the end of each link are recorded.
        pub links: Vec<String> as List<Name> = Vec::new();
        /// Nodes to capture: the packets that the flows of each node send and receive are recorded. On real stacks, all
        /// IPv4 packets of the node are recorded.
        pub hosts: Vec<String> as List<Name> = Vec::new();
        /// Snap length: maximum number of recorded bytes per packet. Headers have at most 100 bytes. The payload of
        /// simulated TCP is recorded as zeros.
        pub snap: Bytes as SizeBetween<64, 65535> = Bytes::new(128);
        /// Whether the sender of each QUIC flow writes a [qlog](quic.md#qlog).
        pub qlog: bool as Flag = false;
    }
}

impl Capture {
    fn somewhere(&self) -> Result<(), String> {
        if self.links.is_empty() && self.hosts.is_empty() && !self.qlog {
            return Err("at least one of links, hosts and qlog".to_owned());
        }
        Ok(())
    }
}

words! {
    /// How forwarding nodes forward.
    pub enum Forwarding {
        /// IP routing.
        Route = "route",
        /// A Linux bridge.
        Bridge = "bridge",
        /// Open vSwitch.
        Ovs = "ovs",
    }
}

words! {
    /// Datapath of Open vSwitch.
    pub enum Datapath {
        /// The kernel module.
        System = "system",
        /// In user space.
        Netdev = "netdev",
    }
}

words! {
    /// The program that generates the flows.
    pub enum Tool {
        /// Narrows' own program.
        Own = "own",
        /// iperf3.
        Iperf3 = "iperf3",
    }
}

words! {
    /// Implementation of delay and loss.
    pub enum Delayer {
        /// A program with the simulator's link model.
        Relay = "relay",
        /// The kernel's own emulation.
        Netem = "netem",
    }
}

words! {
    /// The queue of a host's port.
    pub enum HostQueue {
        /// A FIFO.
        Fifo = "fifo",
        /// The qdisc fq, which holds packets until their departure times.
        Fq = "fq",
    }
}

table! {
    /// How the kernel backend builds the network; the simulator ignores it.
    pub struct Kernel {
        /// How forwarding nodes forward: IP routing, a Linux bridge, or Open vSwitch.
        pub forwarding: Forwarding as Forwarding = Forwarding::Route;
        /// Datapath of Open vSwitch: `system` is the kernel module, `netdev` runs in user space (default: `system` for
        /// the vm backend, `netdev` for the kernel backend).
        pub datapath: Option<Datapath> as Option<Datapath> = None;
        /// Sampling interval of sockets and queues.
        pub interval: Span as Period = Span::from_millis(10);
        /// Program that generates the flows: `own` is Narrows' own program. With `iperf3`, flows cannot have a `count`
        /// above 1, a size or pauses.
        pub tool: Tool as Tool = Tool::Own;
        /// Implementation of delay and loss: `relay` is a program with the simulator's link model, `netem` the kernel's
        /// own emulation (default: `netem` for the vm backend, `relay` for the kernel backend).
        pub delay: Option<Delayer> as Option<Delayer> = None;
        /// Queueing discipline of a host's port, if the queue of its link is `infinite`. `fq` holds packets until their
        /// departure times, so senders of `brf` also pace the first ten segments of a connection.
        pub host_queue: HostQueue as HostQueue = HostQueue::Fifo;
    }
}
