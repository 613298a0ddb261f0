//! Flows.

use indexmap::IndexMap;

use super::program::{Program, Protocol, default_name};
use super::stacks;
use super::traffic::{App, Arrivals, Requests};
use crate::data::{FULL_PACKET, MSS};
use crate::units::{BitRate, Bytes, MAX_PACKETS, Span};
use crate::value::fields::{
    Duration, Field, Flag, List, Name, Number, PositiveDuration, Rate, Size, Text, Whole, parse_name, ranges,
};
use crate::value::reader::{Part, Reader};
use crate::value::reference;
use crate::value::schema;
use crate::value::table::{About, Checked, Key, Keys, Takes, table};
use crate::value::words::words;
use crate::value::{Table, Value};

/// Maximum number of flows in a run.
pub const MAX_FLOWS: u32 = 1_000_000;
/// Maximum number of flows after all entries are expanded. A flow with a `count` counts as one flow.
pub(crate) const MAX_ENTRIES: usize = 100_000;
/// Keys that UDP flows cannot have.
const TCP_ONLY: [&str; 7] = ["cc", "ecn", "pacing", "receive_window", "mss", "initial_window", "return_path"];
/// Keys that flows of programs cannot have. Either the program decides them, or they turn one entry into several flows.
const NOT_OF_PROGRAMS: [&str; 16] = [
    "transport",
    "rate",
    "packet",
    "count",
    "spacing",
    "start_jitter",
    "size",
    "app",
    "arrivals",
    "demands",
    "groups",
    "pattern",
    "pacing",
    "receive_window",
    "mss",
    "service",
];
/// Keys that TCP flows can have and QUIC flows cannot, because the QUIC stack decides these properties.
const NOT_QUIC: [&str; 4] = ["ecn", "pacing", "mss", "initial_window"];

/// The congestion controller of a flow whose scenario names none.
pub(crate) const DEFAULT_CC: &str = "cubic";

/// A congestion controller and its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Congestion {
    /// Name of the congestion controller, or `FILE.py:CLASS` for a class of the user.
    pub name: String,
    /// The given parameters, as the scenario spells them.
    pub params: Table,
}

impl Congestion {
    pub(crate) fn named(name: &str) -> Self {
        Congestion { name: name.to_owned(), params: Table::new() }
    }
}

impl Checked for Congestion {
    fn about() -> &'static About {
        static ABOUT: About = About {
            name: "Congestion",
            meanings: &[],
            meaning: " A congestion controller and [its parameters](congestion-controllers.md#parameters).",
            base: None,
            keys: &[Key {
                name: "name",
                also: None,
                meaning: " Name of the congestion controller, or `FILE.py:CLASS` for\n [a class of your \
                          own](../tutorials/write-a-controller.md).",
                takes: || Takes::Plain,
                words: Text::<1, 1024>::words,
                schema: Text::<1, 1024>::schema,
                default: || None,
                is_required: true,
            }],
            tag: None,
            is_open: true,
        };
        &ABOUT
    }

    fn read_keys<'v>(table: &'v Table, at: &mut Reader<'v>) -> Option<Self> {
        let (name, _) = at.key::<Text<1, 1024>>(table, ("name", None), None)?;
        let given = table.iter().filter(|(key, _)| *key != "name");
        Some(Congestion { name, params: given.map(|(key, value)| (key.clone(), value.clone())).collect() })
    }

    fn write_keys(&self, into: &mut Table, _: Keys) {
        into.insert("name".to_owned(), self.name.as_str().into());
        into.extend(self.params.clone());
    }
}

/// A congestion controller: its name, or a table with its parameters.
pub(crate) struct Cc;

impl Field for Cc {
    type Value = Congestion;
    fn read<'v>(value: &'v Value, at: &mut Reader<'v>) -> Option<Congestion> {
        match value {
            Value::Text(_) => at
                .inside(Part::Form("name"), |at| Text::<1, 1024>::read(value, at))
                .map(|name| Congestion::named(&name)),
            Value::Table(_) => at.table(value),
            _ => {
                let expected = "a name, or a table such as { name = 'cubic', beta = 0.5 }";
                at.accept(Err(expected.to_owned()), value)
            }
        }
    }
    fn write(value: &Congestion, keys: Keys) -> Option<Value> {
        Some(if value.params.is_empty() { value.name.as_str().into() } else { value.write(keys) })
    }
    fn schema() -> serde_json::Value {
        schema::any_of(vec![schema::text(0, 1024), schema::reference("Congestion")])
    }
    fn words() -> String {
        reference::either(&["text".to_owned(), reference::link("Congestion")])
    }
    fn takes() -> Takes {
        Takes::Tables(vec![Congestion::about()])
    }
}

/// A node, or several nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ends {
    /// One node.
    One(String),
    /// Several nodes. The names may be patterns with `*` and `?`.
    Many(Vec<String>),
}

impl Field for Ends {
    type Value = Ends;
    fn read<'v>(value: &'v Value, at: &mut Reader<'v>) -> Option<Self> {
        match value {
            Value::List(list) => {
                if list.is_empty() || list.iter().any(|name| name.as_text().is_none()) {
                    return at.accept(Err("at least one name".to_owned()), value);
                }
                let names: Result<Vec<String>, String> = list.iter().map(parse_name).collect();
                at.inside(Part::Form("a name"), |at| at.accept(names, value)).map(Ends::Many)
            }
            _ => at.inside(Part::Form("a name"), |at| at.accept(parse_name(value), value)).map(Ends::One),
        }
    }
    fn write(value: &Self, _: Keys) -> Option<Value> {
        Some(match value {
            Ends::One(name) => name.as_str().into(),
            Ends::Many(names) => Value::List(names.iter().map(|name| name.as_str().into()).collect()),
        })
    }
    fn schema() -> serde_json::Value {
        schema::any_of(vec![schema::name(), List::<Name, 1>::schema()])
    }
    fn words() -> String {
        reference::either(&[Name::words(), List::<Name>::words()])
    }
}

words! {
    /// The pairs of hosts between which an entry of flows has flows.
    pub enum Pattern {
        /// Each host sends one flow to another host and receives one flow.
        Permutation = "permutation",
        /// Each host sends a flow to every other host.
        AllToAll = "all-to-all",
        /// Each host sends one flow to a random other host.
        Random = "random",
        /// All hosts send a flow to one host.
        Incast = "incast",
    }
}

words! {
    /// Transport protocol of a flow.
    pub enum Transport {
        /// TCP.
        Tcp = "tcp",
        /// UDP.
        Udp = "udp",
        /// QUIC of the Rust crate quinn.
        Quinn = "quinn",
    }
}

words! {
    /// A topology with flow groups.
    pub enum Groups {
        /// The topology gfc-1 or gfc-2.
        Gfc = "gfc",
    }
}

ranges! {
    /// A factor of demands.
    DemandScale: 0.0 false, 1e9;
}

table! {
    /// A flow, a group of `count` equal flows, or (with `arrivals`) a source of flows.
    pub struct Flow check Flow::consistent {
        /// Name of the flow in results (default: derived from the congestion controller's name).
        pub name: Option<String> as Option<Name> = None;
        /// Sending node. Most topologies have a default. If `from` or `to` is a list, the entry stands for several
        /// flows: one for each pair of a sender and a receiver. In a list, `*` and `?` in a name match hosts.
        pub source["from"]: Option<Ends> as Option<Ends> = None;
        /// Receiving node, or a list of nodes (see `from`).
        pub to: Option<Ends> as Option<Ends> = None;
        /// Makes this entry several flows between hosts. `permutation`: each host sends one flow to another host and
        /// receives one flow. `all-to-all`: each host sends a flow to every other host. `random`: each host sends one
        /// flow to a random other host. `incast`: all hosts send a flow to the host `to`. With `from` and `to`, only
        /// the named hosts take part. Random pairs follow from the scenario's seed. All seeds of a sweep have the same
        /// pairs.
        pub pattern: Option<Pattern> as Option<Pattern> = None;
        /// Transport protocol. `quinn`: [QUIC of the Rust crate quinn](quic.md), only in the simulator.
        pub transport: Transport as Transport = Transport::Tcp;
        /// TCP and QUIC: name of the congestion controller, or a table with its parameters. With `transport = "quinn"`,
        /// the names `bbr`, `cubic` and `newreno` mean the controllers of quinn, and `narrows:NAME` means a controller
        /// of Narrows.
        pub cc: Congestion as Cc = Congestion::named(DEFAULT_CC);
        /// UDP: L3 rate at which the flow sends.
        pub rate: Option<BitRate> as Option<Rate> = None;
        /// UDP: L3 bytes of a packet.
        pub packet: u32 as Whole<u32, 29, 60000> = FULL_PACKET;
        /// Time at which the flow starts.
        pub start: Span as Duration = Span::ZERO;
        /// Time at which the application stops (default: the end of the run).
        pub stop: Option<Span> as Option<PositiveDuration> = None;
        /// Number of equal flows.
        pub count: u32 as Whole<u32, 1, { MAX_FLOWS as u64 }> = 1;
        /// Time between the starts of consecutive flows.
        pub spacing: Span as Duration = Span::ZERO;
        /// Maximum random delay of each flow's start. Simulated flows that start at the same time can stay in step,
        /// unlike real flows.
        pub start_jitter: Span as Duration = Span::ZERO;
        /// Application bytes to send (default: unlimited).
        pub size: Option<Bytes> as Option<Size> = None;
        /// An application that limits the flow.
        pub app: Option<App> as Option<App> = None;
        /// Makes this entry a source of flows.
        pub arrivals: Option<Arrivals> as Option<Arrivals> = None;
        /// QUIC: [objects that the receiver requests](quic.md#requests), instead of one stream of data.
        pub requests: Option<Requests> as Option<Requests> = None;
        /// [Programs](../how-to/programs.md) that exchange the data of the flow on real stacks.
        pub program: Option<Program> as Option<Program> = None;
        /// Traffic matrix: a CSV file, or 'sndlib' for the topology's own matrix. The entry stands for one flow per
        /// demand. The application of each flow sends at the rate of the demand.
        pub demands: Option<String> as Option<Text<1, 4096>> = None;
        /// Factor by which all demands are multiplied (default: 1).
        pub scale: Option<f64> as Option<Number<DemandScale>> = None;
        /// Makes this entry stand for the flow groups of the topology gfc-1 or gfc-2.
        pub groups: Option<Groups> as Option<Groups> = None;
        /// TCP: whether the flow negotiates ECN.
        pub ecn: bool as Flag = false;
        /// TCP: whether flows with window-based congestion controllers also pace, as in Linux with sch_fq.
        pub pacing: bool as Flag = false;
        /// TCP: maximum receive window in segments (default: no limit). The window is 64 KiB at first and grows as in
        /// Linux. QUIC: window of the stream and of the connection, in packets of 1200 bytes (default: that of quinn).
        pub receive_window: Option<u32> as Option<Whole<u32, 1, MAX_PACKETS>> = None;
        /// TCP: payload bytes of a full segment.
        pub mss: u32 as Whole<u32, 64, 60000> = MSS;
        /// TCP: window of a new connection in packets. The default is that of RFC 6928. Congestion controllers that get
        /// a rate or a window from the network during the handshake start with that rate or window instead.
        pub initial_window: u32 as Whole<u32, 1, 10_000> = narrows_plan::INITIAL_WINDOW_PACKETS;
        /// Class of the flow in priority and HTB queues. With BRF's `share = "mark"`, it is also the mark of the flow's
        /// packets.
        pub class_["class"]: u8 as Whole<u8, 0, 255> = 0;
        /// Number of the flow's service for BRF's predictor. On real stacks, the port of the server identifies the
        /// service (default: the flow is a service of its own). Simulator only.
        pub service: Option<u16> as Option<Whole<u16, 1, 32767>> = None;
        /// Path of the ACKs: a list of nodes, including both ends (default: the shortest path).
        pub return_path: Option<Vec<String>> as Option<List<Name, 2, 1024>> = None;
    }
}

impl Flow {
    fn consistent(&self) -> Result<(), String> {
        let applications = [
            ("size", self.size.is_some()),
            ("app", self.app.is_some()),
            ("arrivals", self.arrivals.is_some()),
            ("requests", self.requests.is_some()),
        ];
        let given: Vec<&str> =
            applications.iter().filter(|(_, is_given)| *is_given).map(|(key, _)| *key).collect();
        if given.len() > 1 {
            return Err(format!("one of size, app, arrivals and requests, not {}", given.join(" and ")));
        }
        if self.requests.is_some() && !self.is_stack() {
            return Err(
                "transport = 'quinn' with requests, because other transports have no streams".to_owned()
            );
        }
        self.check_many()?;
        if let Some(program) = &self.program {
            self.check_program(program)?;
        }
        if self.arrivals.is_some() && self.count != 1 {
            return Err("a count of 1 with arrivals".to_owned());
        }
        if self.arrivals.is_some() && self.start_jitter != Span::ZERO {
            return Err("no start_jitter with arrivals, whose times are random already".to_owned());
        }
        if self.stop.is_some_and(|stop| stop <= self.start) {
            return Err("a stop after its start".to_owned());
        }
        if self.transport == Transport::Udp {
            return self.check_udp();
        }
        if self.is_stack()
            && let Some(key) = self.first_changed(&NOT_QUIC)
        {
            return Err(format!("no {key} with transport = '{}'", self.transport.word()));
        }
        // For a QUIC flow, a key of TCP is reported first, and `rate` second.
        if self.rate.is_some() {
            let expected = "a rate only with transport = 'udp' (an application's rate is app = {rate = ...})";
            return Err(expected.to_owned());
        }
        Ok(())
    }

    /// Returns the first of these keys, in alphabetical order, whose value is not the default.
    fn first_changed(&self, keys: &[&'static str]) -> Option<&'static str> {
        let mut changed: Vec<&'static str> =
            keys.iter().copied().filter(|key| self.has_changed(key)).collect();
        changed.sort_unstable();
        changed.first().copied()
    }

    fn has_changed(&self, key: &str) -> bool {
        match key {
            "app" => self.app.is_some(),
            "arrivals" => self.arrivals.is_some(),
            "cc" => self.cc != Congestion::named(DEFAULT_CC),
            "count" => self.count != 1,
            "demands" => self.demands.is_some(),
            "ecn" => self.ecn,
            "groups" => self.groups.is_some(),
            "initial_window" => self.initial_window != narrows_plan::INITIAL_WINDOW_PACKETS,
            "mss" => self.mss != MSS,
            "pacing" => self.pacing,
            "packet" => self.packet != FULL_PACKET,
            "pattern" => self.pattern.is_some(),
            "rate" => self.rate.is_some(),
            "receive_window" => self.receive_window.is_some(),
            "return_path" => self.return_path.is_some(),
            "service" => self.service.is_some(),
            "size" => self.size.is_some(),
            "spacing" => self.spacing != Span::ZERO,
            "start_jitter" => self.start_jitter != Span::ZERO,
            "transport" => self.transport != Transport::Tcp,
            _ => false,
        }
    }

    /// Returns an error if other keys contradict `demands` or `groups`, which define the ends of flows.
    fn check_many(&self) -> Result<(), String> {
        let many = match (&self.demands, self.groups) {
            (Some(_), Some(_)) => return Err("one of demands and groups".to_owned()),
            (Some(_), None) => Some("demands"),
            (None, Some(_)) => Some("groups"),
            (None, None) => None,
        };
        if let (Some(key), Some(_)) = (many, self.pattern) {
            return Err(format!("no pattern with {key}"));
        }
        if self.return_path.is_some() && self.has_pairs() {
            return Err("no return_path with several senders or receivers".to_owned());
        }
        if self.pattern == Some(Pattern::Incast) && !matches!(self.to, Some(Ends::One(_))) {
            return Err("one receiver, to = 'HOST', with pattern = 'incast'".to_owned());
        }
        if self.pattern == Some(Pattern::Permutation) && self.to.is_some() {
            let why = "because each host sends and receives";
            return Err(format!("no key 'to' with pattern = 'permutation', {why}"));
        }
        if self.scale.is_some() && self.demands.is_none() {
            return Err("a scale only with demands".to_owned());
        }
        if let Some(key) = many {
            if self.source.is_some() || self.to.is_some() || self.return_path.is_some() {
                return Err(format!("no from, to or return_path with {key}"));
            }
            if self.count != 1 {
                return Err(format!("a count of 1 with {key}"));
            }
            if self.transport == Transport::Udp {
                return Err(format!("no transport = udp with {key}"));
            }
            if self.arrivals.is_some() {
                return Err(format!("no arrivals with {key}"));
            }
        }
        let limits = [
            ("size", self.size.is_some()),
            ("app", self.app.is_some()),
            ("requests", self.requests.is_some()),
        ];
        match limits.into_iter().find(|(_, is_given)| *is_given) {
            Some((key, _)) if self.demands.is_some() => Err(format!("no {key} with demands")),
            _ => Ok(()),
        }
    }

    fn check_program(&self, program: &Program) -> Result<(), String> {
        if let Some(key) = self.first_changed(&NOT_OF_PROGRAMS) {
            return Err(format!("no {key} with a program"));
        }
        if matches!(self.source, Some(Ends::Many(_))) || matches!(self.to, Some(Ends::Many(_))) {
            return Err("one sender and one receiver with a program".to_owned());
        }
        if program.protocol == Protocol::Udp
            && let Some(key) = self.first_changed(&["cc", "ecn", "initial_window"])
        {
            return Err(format!("no {key} with a program whose protocol is udp"));
        }
        Ok(())
    }

    fn check_udp(&self) -> Result<(), String> {
        if self.rate.is_none() {
            return Err("a rate with transport = 'udp'".to_owned());
        }
        if let Some(key) = self.first_changed(&TCP_ONLY) {
            return Err(format!("no {key} with transport = 'udp'"));
        }
        match self.first_changed(&["size", "app", "arrivals"]) {
            // The keys are tried in this order.
            Some(_) => {
                let key = if self.size.is_some() {
                    "size"
                } else if self.app.is_some() {
                    "app"
                } else {
                    "arrivals"
                };
                Err(format!("no {key} with transport = 'udp'"))
            }
            None => Ok(()),
        }
    }

    /// Returns whether the entry describes flows between several pairs of nodes.
    pub fn has_pairs(&self) -> bool {
        let is_list = |ends: &Option<Ends>| matches!(ends, Some(Ends::Many(_)));
        self.pattern.is_some() || is_list(&self.source) || is_list(&self.to)
    }

    /// Returns whether an external transport stack carries the flow.
    pub fn is_stack(&self) -> bool {
        !matches!(self.transport, Transport::Tcp | Transport::Udp)
    }

    /// Returns the default name of the flow: its congestion controller or Python class, `udp`, or its program. If an
    /// external stack carries the flow, the stack's name comes before the controller's name.
    pub(crate) fn kind(&self) -> String {
        if let Some(program) = &self.program {
            return default_name(&program.client).unwrap_or_default();
        }
        if self.transport == Transport::Udp {
            return "udp".to_owned();
        }
        let name = stacks::class_file(&self.cc.name).map_or(self.cc.name.as_str(), |(_, class)| class);
        if self.is_stack() { stacks::default_name(self.transport.word(), name) } else { name.to_owned() }
    }
}

/// Returns the names of flows in results.
///
/// A flow without a name is named after its kind. If several flows without a name have the same kind, their names get a
/// number.
pub(crate) fn result_names(flows: &[(Option<String>, String)]) -> Vec<String> {
    let mut unnamed: IndexMap<&str, usize> = IndexMap::new();
    for (_, kind) in flows.iter().filter(|(name, _)| name.is_none()) {
        *unnamed.entry(kind).or_default() += 1;
    }
    let mut numbers: IndexMap<&str, usize> = IndexMap::new();
    flows
        .iter()
        .map(|(name, kind)| {
            let number = numbers.entry(kind).or_default();
            *number += usize::from(name.is_none());
            match name {
                Some(name) if !name.is_empty() => name.clone(),
                _ if unnamed.get(kind.as_str()) == Some(&1) => kind.clone(),
                _ => format!("{kind}-{number}"),
            }
        })
        .collect()
}
