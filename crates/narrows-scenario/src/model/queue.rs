//! Queues of links.

use crate::error::{found_text, hint};
use crate::units::{BitRate, format_rate, parse_limit};
use crate::units::{Bytes, Limit, Span};
use crate::value::Value;
use crate::value::fields::{
    Field, Flag, List, Mark, Number, PositiveDuration, Probability, QueueLength, Rate, Size, Whole, ranges,
};
use crate::value::reader::Reader;
use crate::value::reference;
use crate::value::schema;
use crate::value::table::{Given, Keys, Takes, table, tables};

/// Linux's default queue length.
pub(crate) const TXQUEUELEN: Limit = Limit::Packets(1000);

ranges! {
    /// Packets of an average queue.
    AveragePackets: 0.0 true, 1e9;
    /// Packets of an average queue, above zero.
    AveragePacketsAboveZero: 0.0 false, 1e9;
    /// A weight of an average.
    Weight: 0.0 false, 1.0;
}

table! {
    /// First in, first out; drops at the tail.
    pub struct Fifo tagged "kind" = "fifo" {
        /// Maximum length of the queue; the default is Linux's txqueuelen.
        pub limit: Limit as QueueLength = TXQUEUELEN;
    }
}

table! {
    /// A FIFO that marks CE above a queue length (DCTCP's step, RFC 8257).
    pub struct Threshold tagged "kind" = "threshold" {
        /// Maximum length of the queue; the default is Linux's txqueuelen.
        pub limit: Limit as QueueLength = TXQUEUELEN;
        /// An arriving packet is marked if the queue is longer than this: a number of packets, or a length such as
        /// '150kB'. DCTCP uses 65 packets at 10 Gbit/s.
        pub mark: Limit as Mark = Limit::Packets(65);
    }
}

table! {
    /// RED in its gentle variant (Floyd and Jacobson 1993; Floyd 2000).
    pub struct Red tagged "kind" = "red" check Red::thresholds {
        /// Maximum length of the queue; the default is Linux's txqueuelen.
        pub limit: Limit as QueueLength = TXQUEUELEN;
        /// Average queue in packets below which no packet is dropped or marked.
        pub min: f64 as Number<AveragePackets> = 5.0;
        /// Average queue in packets at which the probability of a drop or mark is `max_p`.
        pub max: f64 as Number<AveragePacketsAboveZero> = 15.0;
        /// Probability of a drop or mark at `max` (Floyd 1997).
        pub max_p: f64 as Probability = 0.1;
        /// Weight of the newest sample in the average (Floyd and Jacobson 1993).
        pub weight: f64 as Number<Weight> = 0.002;
        /// Mark packets of ECN-capable flows instead of dropping them.
        pub ecn: bool as Flag = false;
    }
}

impl Red {
    fn thresholds(&self) -> Result<(), String> {
        if self.min < self.max { Ok(()) } else { Err("a min below max".to_owned()) }
    }
}

fn target_within(target: Span, interval: Span) -> Result<(), String> {
    if target <= interval { Ok(()) } else { Err("a target of at most the interval".to_owned()) }
}

table! {
    /// CoDel (RFC 8289).
    pub struct Codel tagged "kind" = "codel" check Codel::times {
        /// Maximum length of the queue; the default is Linux's txqueuelen.
        pub limit: Limit as QueueLength = TXQUEUELEN;
        /// Acceptable standing sojourn time (RFC 8289, section 4.4).
        pub target: Span as PositiveDuration = Span::from_millis(5);
        /// CoDel's interval, about the longest RTT of the flows (RFC 8289, section 4.3).
        pub interval: Span as PositiveDuration = Span::from_millis(100);
        /// Mark packets of ECN-capable flows instead of dropping them.
        pub ecn: bool as Flag = false;
    }
}

impl Codel {
    fn times(&self) -> Result<(), String> {
        target_within(self.target, self.interval)
    }
}

table! {
    /// FQ-CoDel (RFC 8290).
    pub struct FqCodel tagged "kind" = "fq-codel" check FqCodel::times {
        /// Maximum length of all queues together (RFC 8290, section 4.1.2).
        pub limit: Limit as QueueLength = Limit::Packets(10240);
        /// Acceptable standing sojourn time (RFC 8289, section 4.4).
        pub target: Span as PositiveDuration = Span::from_millis(5);
        /// CoDel's interval, about the longest RTT of the flows (RFC 8289, section 4.3).
        pub interval: Span as PositiveDuration = Span::from_millis(100);
        /// Mark packets of ECN-capable flows instead of dropping them.
        pub ecn: bool as Flag = false;
        /// Number of bytes that a queue may send per round (RFC 8290, section 4.1.1).
        pub quantum: Bytes as Size = Bytes::new(1514);
        /// Number of queues into which flows are hashed (RFC 8290, section 4.1.2).
        pub queues: u32 as Whole<u32, 1, 65536> = 1024;
    }
}

impl FqCodel {
    fn times(&self) -> Result<(), String> {
        target_within(self.target, self.interval)
    }
}

table! {
    /// Strict priority: a flow's `class` is an index into `classes`, and class 0 is served first.
    pub struct Priority tagged "kind" = "priority" {
        /// Maximum length of the queue of each class.
        pub classes: Vec<Limit> as List<QueueLength, 1, 16>;
    }
}

table! {
    /// A class of an HTB.
    pub struct HtbClass check HtbClass::rates {
        /// Guaranteed rate; the sum over all classes must not exceed the link's rate.
        pub rate: BitRate as Rate;
        /// Maximum rate including borrowed bandwidth (default: the guaranteed rate).
        pub ceil: Option<BitRate> as Option<Rate> = None;
        /// Maximum length of the class's FIFO.
        pub limit: Limit as QueueLength = TXQUEUELEN;
        /// Priority for borrowing; lower values borrow first.
        pub priority: u8 as Whole<u8, 0, 7> = 0;
    }
}

impl HtbClass {
    fn rates(&self) -> Result<(), String> {
        match self.ceil {
            Some(ceil) if ceil < self.rate => Err(format!(
                "a ceil of at least the rate ({}), not {}",
                format_rate(self.rate),
                format_rate(ceil)
            )),
            _ => Ok(()),
        }
    }
}

table! {
    /// Hierarchical token bucket with one level. A flow's `class` is an index into `classes`.
    pub struct Htb tagged "kind" = "htb" {
        /// The classes.
        pub classes: Vec<HtbClass> as List<HtbClass, 1, 256>;
    }
}

tables! {
    /// A queue: a length ('1000p', '150kB', '1bdp', 'infinite') for a FIFO, or a table with a kind.
    pub enum Queue by "kind" {
        /// First in, first out.
        Fifo(Fifo),
        /// A FIFO that marks above a queue length.
        Threshold(Threshold),
        /// RED.
        Red(Red),
        /// CoDel.
        Codel(Codel),
        /// FQ-CoDel.
        FqCodel(FqCodel),
        /// Strict priority.
        Priority(Priority),
        /// Hierarchical token bucket.
        Htb(Htb),
    }
}

impl Queue {
    /// Returns a FIFO with this limit.
    pub(crate) fn fifo(limit: Limit) -> Self {
        Queue::Fifo(Fifo { limit, given: Given(1) })
    }

    /// Returns the limit of a queue that has only one limit.
    pub(crate) fn single_limit(&self) -> Option<Limit> {
        match self {
            Queue::Fifo(queue) => Some(queue.limit),
            Queue::Threshold(queue) => Some(queue.limit),
            Queue::Red(queue) => Some(queue.limit),
            Queue::Codel(queue) => Some(queue.limit),
            Queue::FqCodel(queue) => Some(queue.limit),
            Queue::Priority(_) | Queue::Htb(_) => None,
        }
    }

    /// Returns the number of classes; 0 if the queue has no classes.
    pub(crate) fn classes(&self) -> usize {
        match self {
            Queue::Priority(queue) => queue.classes.len(),
            Queue::Htb(queue) => queue.classes.len(),
            _ => 0,
        }
    }

    /// Returns a queue with default values, for kinds whose only required key is the kind.
    fn with_defaults(kind: &str) -> Option<Self> {
        use crate::value::table::Checked;
        let empty = crate::value::Table::new();
        let mut at = Reader::default();
        match kind {
            "fifo" => Fifo::read_keys(&empty, &mut at).map(Queue::Fifo),
            "threshold" => Threshold::read_keys(&empty, &mut at).map(Queue::Threshold),
            "red" => Red::read_keys(&empty, &mut at).map(Queue::Red),
            "codel" => Codel::read_keys(&empty, &mut at).map(Queue::Codel),
            "fq-codel" => FqCodel::read_keys(&empty, &mut at).map(Queue::FqCodel),
            _ => None,
        }
    }

    /// Reads a string: the length of a FIFO, or the kind of a queue with default values.
    fn from_text(value: &Value, text: &str) -> Result<Self, String> {
        if let Some(queue) = Queue::with_defaults(text) {
            return Ok(queue);
        }
        let kinds: Vec<&str> =
            Queue::tables().iter().filter_map(|table| table.tag).map(|(_, word)| word).collect();
        if kinds.contains(&text) {
            let kind = found_text(text);
            return Err(format!("a table with its classes: {{ kind = {kind}, classes = [...] }}"));
        }
        if text.starts_with(char::is_alphabetic) && text != "infinite" {
            return Err(format!("a queue length such as '1000p', or a kind of queue{}", hint(text, kinds)));
        }
        parse_limit(value).map(Queue::fifo)
    }
}

impl Field for Queue {
    type Value = Queue;
    fn read<'v>(value: &'v Value, at: &mut Reader<'v>) -> Option<Self> {
        match value {
            Value::Text(text) => at.accept(Queue::from_text(value, text), value),
            Value::Bool(_) | Value::Int(_) | Value::Big(_) | Value::Float(_) => {
                at.accept(parse_limit(value).map(Queue::fifo), value)
            }
            Value::List(_) => {
                at.accept(Err("a queue length such as '1000p', or a kind of queue".to_owned()), value)
            }
            Value::Table(_) | Value::Date(_) | Value::Null => Queue::read_table(value, at),
        }
    }
    fn write(value: &Self, keys: Keys) -> Option<Value> {
        Some(value.write_table(keys))
    }
    fn schema() -> serde_json::Value {
        schema::any_of(vec![schema::queue_length(), Queue::tables_schema()])
    }
    fn words() -> String {
        reference::either(&[QueueLength::words(), reference::link("Fifo")])
    }
    fn takes() -> Takes {
        Takes::Tables(Queue::tables())
    }
}
