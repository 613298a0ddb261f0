//! Nodes and links, with their losses and changes.

use super::beginning::{Beginning, check_time};
use super::queue::Queue;
use crate::units::{BitRate, Bytes, Span, parse_duration, parse_loss};
use crate::value::Value;
use crate::value::fields::{
    Delay, Duration, Field, Flag, List, Name, PositiveDuration, Probability, Rate, RateOrZero, Size, Text,
};
use crate::value::reader::Reader;
use crate::value::reference;
use crate::value::schema;
use crate::value::table::{Given, Keys, Takes, table, tables};
use crate::value::words::words;

table! {
    /// Each packet is lost independently.
    pub struct Bernoulli tagged "model" = "bernoulli" {
        /// Probability that a packet is lost.
        pub p: f64 as Probability;
    }
}

table! {
    /// Two states, each with a transition probability per packet and a loss probability per packet.
    ///
    /// The model is that of Gilbert (1960) and Elliott (1963).
    pub struct GilbertElliott tagged "model" = "gilbert-elliott" {
        /// Transition probability from the good to the bad state.
        pub p: f64 as Probability;
        /// Transition probability from the bad to the good state.
        pub r: f64 as Probability;
        /// Probability of a loss in the good state.
        pub good: f64 as Probability = 0.0;
        /// Probability of a loss in the bad state.
        pub bad: f64 as Probability = 1.0;
    }
}

tables! {
    /// Random loss: a probability, or a table with a model.
    pub enum Loss by "model" {
        /// Each packet is lost independently.
        Bernoulli(Bernoulli),
        /// Losses come in bursts.
        GilbertElliott(GilbertElliott),
    }
}

impl Loss {
    /// Returns independent losses.
    pub(crate) fn independent(p: f64) -> Self {
        Loss::Bernoulli(Bernoulli { p, given: Given(1) })
    }
}

impl Field for Loss {
    type Value = Loss;
    fn read<'v>(value: &'v Value, at: &mut Reader<'v>) -> Option<Self> {
        match value {
            Value::Table(_) | Value::Bool(_) | Value::Date(_) | Value::Null => Loss::read_table(value, at),
            _ => at.accept(parse_loss(value).map(Loss::independent), value),
        }
    }
    fn write(value: &Self, keys: Keys) -> Option<Value> {
        Some(value.write_table(keys))
    }
    fn schema() -> serde_json::Value {
        schema::any_of(vec![schema::probability(), Loss::tables_schema()])
    }
    fn words() -> String {
        reference::either(&[Probability::words(), reference::link("Bernoulli")])
    }
    fn takes() -> Takes {
        Takes::Tables(Loss::tables())
    }
}

table! {
    /// Random extra delay of each packet.
    pub struct Jitter {
        /// Maximum of the uniform distribution, which starts at 0.
        pub max: Span as Duration;
        /// Whether packets may be reordered.
        pub reorder: bool as Flag = false;
    }
}

/// Jitter: its maximum, or a table.
pub(crate) struct JitterOrTime;

impl Field for JitterOrTime {
    type Value = Jitter;
    fn read<'v>(value: &'v Value, at: &mut Reader<'v>) -> Option<Jitter> {
        match value {
            Value::Table(_) => Jitter::read(value, at),
            _ => {
                let max = at.accept(parse_duration(value), value)?;
                Some(Jitter { max, reorder: false, given: Given(1) })
            }
        }
    }
    fn write(value: &Jitter, keys: Keys) -> Option<Value> {
        Jitter::write(value, keys)
    }
    fn schema() -> serde_json::Value {
        schema::any_of(vec![schema::time(), Jitter::schema()])
    }
    fn words() -> String {
        reference::either(&[Duration::words(), Jitter::words()])
    }
    fn takes() -> Takes {
        Jitter::takes()
    }
}

table! {
    /// A token bucket that drops packets for which it has no tokens. At the start of the run, it is full.
    pub struct Policer {
        /// L3 rate at which the bucket fills.
        pub rate: BitRate as Rate;
        /// Size of the bucket, at least a full packet.
        pub burst: Bytes as Size;
    }
}

words! {
    /// The format of a trace.
    pub enum TraceFormat {
        /// Each line is a time in ms at which 1500 bytes may leave.
        Mahimahi = "mahimahi",
        /// Each line has a time and a rate.
        Csv = "csv",
    }
}

words! {
    /// The unit of the times of a trace.
    pub enum TimeUnit {
        /// Seconds.
        Seconds = "s",
        /// Milliseconds.
        Millis = "ms",
        /// Microseconds.
        Micros = "us",
    }
}

/// A column of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Column {
    /// The name in the header.
    Name(String),
    /// The number, from 0. It may be out of range.
    Number(String),
}

impl Field for Column {
    type Value = Column;
    fn read<'v>(value: &'v Value, at: &mut Reader<'v>) -> Option<Self> {
        match value {
            Value::Text(name) => Some(Column::Name(name.clone())),
            Value::Int(_) | Value::Big(_) => Some(Column::Number(value.repr())),
            // The value may also be a whole number, but the message names only the first alternative.
            _ => Text::<0>::read(value, at).map(Column::Name),
        }
    }
    fn write(value: &Self, _: Keys) -> Option<Value> {
        Some(match value {
            Column::Name(name) => name.as_str().into(),
            Column::Number(digits) => digits.parse().map_or_else(|_| Value::Big(digits.clone()), Value::Int),
        })
    }
    fn schema() -> serde_json::Value {
        serde_json::json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }] })
    }
    fn words() -> String {
        "text or whole number".to_owned()
    }
}

table! {
    /// Capacity from a file.
    pub struct Trace {
        /// Path, relative to the scenario's folder.
        pub file: String as Text<1, 4096>;
        /// With `mahimahi`, each line is a time in ms at which 1500 bytes may leave. With `csv`, each line has a time
        /// and a rate.
        pub format: TraceFormat as TraceFormat = TraceFormat::Mahimahi;
        /// CSV: column with the time, as a name or as a number that counts from 0.
        pub time: Column as Column = Column::Number("0".to_owned());
        /// CSV: column with the rate, as a name or as a number that counts from 0.
        pub rate: Column as Column = Column::Number("1".to_owned());
        /// CSV: unit of the time.
        pub time_unit: TimeUnit as TimeUnit = TimeUnit::Seconds;
        /// CSV: unit of the rate.
        pub unit: String as Text = "mbit/s".to_owned();
        /// CSV: whether the trace repeats after its end. If false, the trace's last rate applies until the end of the
        /// run. Mahimahi traces always repeat.
        pub repeat: bool as Flag = true;
        /// CSV: maximum time between two consecutive lines (default: 10 times the median time, but at least 10 s).
        pub max_gap: Option<Span> as Option<PositiveDuration> = None;
    }
}

table! {
    /// A change of a link during the run.
    pub struct Change check Change::timed {
        /// Time of the change. With `when`, the time from the beginning of the phase to the change (default: 0).
        pub time: Option<Span> as Option<Duration> = None;
        /// The beginning of a phase of a flow, at which the change happens. Only simulations support it.
        pub when: Option<Beginning> as Option<Beginning> = None;
        /// Rate from this time on; '0mbit' is an outage.
        pub rate: Option<BitRate> as Option<RateOrZero> = None;
        /// Propagation delay from this time on.
        pub delay: Option<Span> as Option<Delay> = None;
        /// Random loss from this time on (forward direction only).
        pub loss: Option<Loss> as Option<Loss> = None;
        /// Random extra delay of each packet from this time on (forward direction only).
        pub jitter: Option<Jitter> as Option<JitterOrTime> = None;
    }
}

impl Change {
    fn timed(&self) -> Result<(), String> {
        check_time(self.time, self.when.as_ref())
    }
}

table! {
    /// Properties of one direction of a link.
    pub struct Traits {
        /// L3 rate; either this or a `trace` is required.
        pub rate: Option<BitRate> as Option<Rate> = None;
        /// One-way propagation delay.
        pub delay: Option<Span> as Option<Delay> = None;
        /// Queue: a length, a kind or a table (default: 1 BDP in a topology, otherwise 1000 packets).
        pub queue: Option<Queue> as Option<Queue> = None;
        /// Random loss after the queue: a probability or a table.
        pub loss: Option<Loss> as Option<Loss> = None;
        /// Random extra delay of each packet: its maximum or a table.
        pub jitter: Option<Jitter> as Option<JitterOrTime> = None;
        /// Probability that a packet is duplicated.
        pub duplicate: f64 as Probability = 0.0;
        /// Drops packets above a rate, after the queue.
        pub policer: Option<Policer> as Option<Policer> = None;
        /// Length of the intervals of aggregation. Packets that leave the queue during an interval are sent together at
        /// its end.
        pub aggregation: Option<Span> as Option<PositiveDuration> = None;
        /// File with the rate over time. An alternative to `rate`.
        pub trace: Option<Trace> as Option<Trace> = None;
        /// Changes during the run, in order of time.
        pub at: Vec<Change> as List<Change> = Vec::new();
    }
}

impl Traits {
    /// Returns a link with this rate, delay and queue only.
    pub(crate) fn plain(rate: BitRate, delay: Span, queue: Queue) -> Self {
        Traits {
            rate: Some(rate),
            delay: Some(delay),
            queue: Some(queue),
            loss: None,
            jitter: None,
            duplicate: 0.0,
            policer: None,
            aggregation: None,
            trace: None,
            at: Vec::new(),
            given: Given::default(),
        }
    }
}

table! {
    /// A link between two nodes, with its two directions.
    ///
    /// `rate`, `delay`, `queue` and their changes apply to both directions. `loss`, `jitter`, `duplicate`, `policer`,
    /// `aggregation` and `trace` apply from the first node to the second. `back` overrides keys of the reverse
    /// direction.
    pub struct Link {
        with traits: Traits, "Properties of the forward direction.";
        /// Name of the forward direction. The reverse direction is called `<name>.back`. If no name is set, the
        /// directions are called `A->B` and `B->A`.
        pub name: Option<String> as Option<Name> = None;
        /// The two nodes.
        pub between: Vec<String> as List<Name, 2, 2>;
        /// Keys that have other values in the reverse direction: `rate`, `delay`, `queue`, `loss`, `jitter`,
        /// `duplicate`, `policer`, `aggregation`, `trace` or `at`.
        pub back: Option<Traits> as Option<Traits> = None;
    }
}

table! {
    /// A node; nodes that links mention need no entry.
    pub struct Node {
        /// Name of the node.
        pub name: String as Name;
    }
}
