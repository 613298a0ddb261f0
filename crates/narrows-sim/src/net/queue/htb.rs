//! Hierarchical token bucket with one level (Linux sch_htb). All classes are children of one root. Each class has a
//! guaranteed rate and a ceiling.
//!
//! A class that sends less than its guaranteed rate is served first. A class between its guaranteed rate and its
//! ceiling borrows capacity that the other classes do not use. Classes with lower priority values borrow first. Classes
//! with equal values take turns, and each sends a quantum in its turn. A class may have several leaves in strict
//! priority (BRF-25), or a queue for each flow (BRF-23).

use narrows_control::units::{Bytes, NANOS_PER_SEC, Rate, Span, Time};

use super::flow_queues::FlowQueues;
use super::{Discipline, Leaf, Losses, Next, Waiting};
use crate::packets::Packets;
use crate::plan::{HtbClassPlan, LimitPlan};

const MTU_BYTES: u64 = 1500;
/// The two levels at which a class may send. At `OWN`, it sends within its own rate. At `BORROW`, it borrows capacity
/// that the other classes do not use.
const OWN: usize = 0;
const BORROW: usize = 1;

/// The state of the HTB.
pub(crate) struct Htb {
    classes: Vec<Class>,
    /// For each leaf number: the index of the class, and the index of the band in this class.
    leaves: Vec<(usize, usize)>,
    /// For each level: the class that is next in the round robin.
    turn: [usize; 2],
}

struct Class {
    rate: Bucket,
    ceil: Bucket,
    priority: u8,
    /// The bands of the class. Earlier bands have strict priority over later ones.
    bands: Vec<Band>,
    /// For each level: the number of bytes that the class may still send in its turn (Linux: leaf.deficit[level]).
    deficit: [i64; 2],
    /// Whether the class is policed. In a policed class, each packet that would have to wait is dropped (BRF-23).
    is_policed: bool,
}

/// A leaf of a class.
enum Band {
    Fifo(Leaf),
    PerFlow(Box<FlowQueues>),
}

impl Band {
    /// Adds a packet. Returns `false` if the queue for this packet is full.
    fn push(&mut self, waiting: Waiting, packets: &Packets) -> bool {
        match self {
            Band::Fifo(queue) => {
                let fits = queue.fits(waiting.size);
                if fits {
                    queue.push(waiting);
                }
                fits
            }
            Band::PerFlow(queues) => queues.push(packets.get(waiting.packet).flow, waiting),
        }
    }

    fn pop(&mut self) -> Option<Waiting> {
        match self {
            Band::Fifo(queue) => queue.pop(),
            Band::PerFlow(queues) => queues.pop(),
        }
    }

    fn len(&self) -> u32 {
        match self {
            Band::Fifo(queue) => queue.len(),
            Band::PerFlow(queues) => queues.len(),
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Band::Fifo(queue) => queue.bytes(),
            Band::PerFlow(queues) => queues.bytes(),
        }
    }
}

/// A token bucket. A token stands for a billionth of a byte, so integer arithmetic is exact.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    rate: Rate,
    burst: Bytes,
    tokens: i128,
    at: Time,
}

impl Bucket {
    fn new(rate: Rate) -> Self {
        let mut bucket = Bucket { rate, burst: burst(rate), tokens: 0, at: Time::ZERO };
        bucket.tokens = bucket.full();
        bucket
    }

    fn full(&self) -> i128 {
        self.burst.get() as i128 * NANOS_PER_SEC as i128
    }

    fn refill(&mut self, now: Time) {
        let gained = self.rate.as_bytes_per_sec() as i128 * now.since(self.at).as_nanos() as i128;
        self.tokens = (self.tokens + gained).min(self.full());
        self.at = now;
    }

    /// Whether a packet may leave. HTB sends a packet if the number of tokens is at least zero. It subtracts the
    /// packet's tokens afterwards, so the number can become negative.
    fn has_credit(&self) -> bool {
        self.tokens >= 0
    }

    fn charge(&mut self, bytes: u32) {
        self.tokens -= bytes as i128 * NANOS_PER_SEC as i128;
    }

    /// Returns the time at which the bucket has credit again.
    fn credit_at(&self) -> Time {
        if self.tokens >= 0 {
            return self.at;
        }
        let rate = self.rate.as_bytes_per_sec() as i128;
        if rate == 0 {
            return Time::NEVER;
        }
        let nanos = (-self.tokens + rate - 1) / rate;
        self.at + Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn set_rate(&mut self, now: Time, rate: Rate) {
        self.refill(now);
        self.rate = rate;
        self.burst = burst(rate);
        self.tokens = self.tokens.min(self.full());
    }
}

/// Returns the size of a bucket (BRF-22). This is the number of bytes that are sent in a millisecond at this rate, but
/// at least two packets.
fn burst(rate: Rate) -> Bytes {
    Bytes::new(2 * MTU_BYTES).max(rate.bytes_in(Span::from_millis(1)))
}

impl Htb {
    pub(crate) fn new(plans: &[HtbClassPlan]) -> Self {
        let classes =
            plans.iter().map(|p| Class::new(p.rate, p.ceil, p.priority, &[p.limit], false)).collect();
        Htb::with(classes)
    }

    /// Creates the queue of a port with a rate controller. It has three classes: flows with an allocated rate (in two
    /// bands), other TCP, and UDP. If `queues_udp` is true, UDP has a queue for each flow, and borrows after the other
    /// classes. If `queues_udp` is false, UDP is policed.
    pub(crate) fn controlled(capacity: Rate, limit: LimitPlan, queues_udp: bool) -> Self {
        let mut udp = Class::new(capacity, capacity, u8::from(queues_udp), &[limit], !queues_udp);
        if queues_udp {
            udp.bands = vec![Band::PerFlow(Box::new(FlowQueues::new(limit)))];
        }
        Htb::with(vec![
            Class::new(capacity, capacity, 0, &[limit, limit], false),
            Class::new(capacity, capacity, 0, &[limit], false),
            udp,
        ])
    }

    fn with(classes: Vec<Class>) -> Self {
        let leaves = classes
            .iter()
            .enumerate()
            .flat_map(|(c, class)| (0..class.bands.len()).map(move |band| (c, band)))
            .collect();
        Htb { classes, leaves, turn: [0; 2] }
    }

    /// Changes the rate and the ceiling of a class. The class keeps its packets.
    pub(crate) fn set_class(&mut self, now: Time, class: usize, rate: Rate, ceil: Rate) {
        if let Some(c) = self.classes.get_mut(class) {
            c.rate.set_rate(now, rate);
            c.ceil.set_rate(now, ceil.max(rate));
        }
    }

    /// Selects the class that sends next at `level`. Among the classes that may send, a class with the lowest priority
    /// value is selected.
    fn pick(&self, level: usize) -> Option<usize> {
        let n = self.classes.len();
        let order = (0..n).map(|k| (self.turn[level] + k) % n);
        order.filter(|&i| self.classes[i].may_send(level)).min_by_key(|&i| self.classes[i].priority)
    }

    /// Removes the next packet of a class, to transmit it. When the class has used its quantum at this level, it is the
    /// next class's turn (deficit round robin).
    fn send(&mut self, class: usize, level: usize) -> Next {
        let n = self.classes.len();
        let c = &mut self.classes[class];
        let Some(waiting) = c.bands.iter_mut().find_map(Band::pop) else { return Next::Empty };
        // Bytes that are sent by borrowing do not use tokens of the class's own rate (Linux `htb_charge_class`).
        if level == OWN {
            c.rate.charge(waiting.size);
        }
        c.ceil.charge(waiting.size);
        c.deficit[level] -= waiting.size as i64;
        if c.deficit[level] <= 0 {
            c.deficit[level] += c.quantum();
            self.turn[level] = (class + 1) % n;
        }
        Next::Packet(waiting)
    }
}

impl Class {
    fn new(rate: Rate, ceil: Rate, priority: u8, limits: &[LimitPlan], is_policed: bool) -> Self {
        Class {
            rate: Bucket::new(rate),
            ceil: Bucket::new(ceil.max(rate)),
            priority,
            bands: limits.iter().map(|&l| Band::Fifo(Leaf::new(l))).collect(),
            deficit: [0; 2],
            is_policed,
        }
    }

    /// Whether the class has packets, and has the tokens to send them at this level.
    fn may_send(&self, level: usize) -> bool {
        !self.is_empty() && self.ceil.has_credit() && self.rate.has_credit() == (level == OWN)
    }

    fn is_empty(&self) -> bool {
        self.bands.iter().all(|band| band.len() == 0)
    }

    /// Returns the quantum of the class. It is the number of bytes that are sent in 10 ms at the class's rate. It is at
    /// least one packet and at most 200 kB. Linux uses 0.1 s instead (r2q = 10). This HTB uses 10 ms, because the rates
    /// of its classes change every 10 ms.
    fn quantum(&self) -> i64 {
        (self.rate.rate.bytes_in(Span::from_millis(10)).get() as i64).clamp(MTU_BYTES as i64, 200_000)
    }
}

impl Discipline for Htb {
    fn enqueue(&mut self, waiting: Waiting, leaf: usize, packets: &mut Packets, losses: &mut Losses) {
        let last = self.leaves.len().saturating_sub(1);
        let Some(&(c, band)) = self.leaves.get(leaf.min(last)) else {
            losses.dropped.push(waiting.packet);
            return;
        };
        let class = &mut self.classes[c];
        if class.is_policed {
            class.ceil.refill(waiting.since);
            if !class.ceil.has_credit() || !class.is_empty() {
                losses.dropped.push(waiting.packet);
                return;
            }
        }
        if !class.bands.get_mut(band).is_some_and(|band| band.push(waiting, packets)) {
            losses.dropped.push(waiting.packet);
        }
    }

    fn dequeue(&mut self, now: Time, _packets: &mut Packets, _losses: &mut Losses) -> Next {
        let mut wake = Time::NEVER;
        for class in self.classes.iter_mut().filter(|c| !c.is_empty()) {
            class.rate.refill(now);
            class.ceil.refill(now);
            if !class.ceil.has_credit() {
                wake = wake.min(class.ceil.credit_at());
            }
        }
        match self.pick(OWN).map(|c| (c, OWN)).or_else(|| self.pick(BORROW).map(|c| (c, BORROW))) {
            Some((class, level)) => self.send(class, level),
            None if wake == Time::NEVER => Next::Empty,
            None => Next::Wait(wake),
        }
    }

    fn backlog(&self) -> (u32, u64) {
        self.classes.iter().flat_map(|c| &c.bands).fold((0, 0), |(p, b), l| (p + l.len(), b + l.bytes()))
    }

    fn as_htb(&mut self) -> Option<&mut Htb> {
        Some(self)
    }
}
