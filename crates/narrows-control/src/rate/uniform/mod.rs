//! Laws that give every flow of a port the same rate, on switches that see no congestion headers.
//!
//! RCP's and BDR's routers use a header in each packet ("the header form"), which stock hosts do
//! not send. In "the stamped form" the port measures what the headers would contain, and writes the
//! rate into the flows' ACKs with BRF's option and rules (sender `brf`; the smallest value on the
//! path stands, BRF-61). Every ACK carries the rate: a rate that all flows share needs no gate.
//!
//! | module | idea |
//! | --- | --- |
//! | [`Law`] | the interface of a law |
//! | [`rcp`], [`bdr`] | the two laws, based on a port's counts |
//! | `table` | the flows: bounded, each with its RTT and last report |
//! | `lifecycle` | packets that begin, confirm and end flows; ageing |
//! | `aggregate` | counts instead of packets |
//! | `classes` | the link's division into three classes |
//!
//! Two features of BRF are missing. Flows whose ACKs take another path cannot get a rate: they are not
//! advertised to other switches, and count as other TCP. Bandwidth left over by flows limited at another
//! switch is redistributed only by the law itself.

mod aggregate;
pub mod bdr;
pub(super) mod classes;
mod lifecycle;
pub mod rcp;
mod table;

use serde::{Deserialize, Serialize};

pub use self::bdr::Bdr;
pub use self::rcp::Rcp;
use self::table::Table;
use super::aggregate::Aggregated;
use super::half_open::{HalfOpenTable, Side};
use super::{
    Action, Admission, FlowIdentity, FlowKey, LEAVES, Leaf, PacketInfo, PortCounters, Proto, RateController,
    RateOption, brf,
};
use crate::feedback::code::as_heard;
use crate::units::{Bytes, Rate, Span, Time};

/// How a port's rate reaches the senders.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Signal {
    /// In headers of data packets, as published. Receivers echo these headers. Simulator only.
    #[default]
    Header,
    /// In ACKs with BRF's option, which works with stock hosts and real switches.
    Ack,
}

/// Default number of flows that a port keeps; a third of a kilobyte each.
pub(super) const MAX_FLOWS: usize = 131_072;
/// The range of `max_flows`.
pub(super) const MAX_FLOWS_RANGE: &str = "from 1 to 2^31";

/// Checks the parameter `max_flows`.
pub(super) fn check_max_flows(found: usize) -> Result<(), String> {
    if (1..=u32::MAX as usize / 2).contains(&found) {
        return Ok(());
    }
    Err(format!("max_flows is {found}, but must be {MAX_FLOWS_RANGE}"))
}

/// The port's state for a law.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Port {
    /// Capacity as told.
    pub capacity: Rate,
    /// L3 bytes of rated flows that are queued. The queues of other traffic do not delay rated flows.
    pub queued: Bytes,
    /// Limit of the queue in full packets, if there is one.
    pub limit: Option<Bytes>,
}

impl Port {
    fn of(port: &PortCounters) -> Self {
        Port {
            capacity: port.capacity.unwrap_or_default(),
            queued: port.queued[Leaf::Mouse as usize] + port.queued[Leaf::Elephant as usize],
            limit: port.limit(),
        }
    }
}

/// L3 bytes since the last reading: all bytes of rated flows, and the bytes of other flows up to
/// their guarantee.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Offered to it.
    pub arrived: Bytes,
    /// Sent by rated flows.
    pub own: Bytes,
    /// Sent by all others.
    pub other: Bytes,
}

/// A law that gives every flow of a port the same rate.
pub trait Law: Send {
    /// Name of the controller in scenarios and results.
    const NAME: &'static str;

    /// The port is up.
    fn start(&mut self, now: Time, port: &Port);
    /// A flow begins, or resumes after idle time.
    fn on_begin(&mut self, _now: Time, _port: &Port) {}
    /// L3 bytes of a flow's data arrived. The RTT is given if known.
    fn on_data(&mut self, _bytes: Bytes, _rtt: Option<Span>) {}
    /// A flow has lived for this time since it began or since the last call for this flow. Called
    /// once per RTT of the flow, and with `last` when it ends or becomes idle.
    fn on_report(&mut self, _now: Time, _lived: Span, _first: bool, _last: bool, _port: &Port) {}
    /// The deadline of [`next`](Law::next) has passed, or the capacity changed.
    fn on_timer(&mut self, now: Time, port: &Port, passed: Passed);
    /// When [`on_timer`](Law::on_timer) must be called next.
    fn next(&self) -> Time;
    /// The rate of any flow now, L3 bytes/s.
    fn rate(&self, now: Time) -> Rate;
    /// The rate that the `newcomers`-th newcomer from now on would have.
    fn grant(&self, now: Time, newcomers: u64) -> Rate;
    /// The minimum rate that a flow with this RTT gets as feedback.
    fn least(&self, _rtt: Span) -> Rate {
        Rate::from_bytes_per_sec(1)
    }
    /// Names and values of the state, for traces.
    fn trace(&self, now: Time, trace: &mut dyn FnMut(&'static str, f64));
}

/// Bytes that a port had counted at the last reading, by leaf.
#[derive(Clone, Debug)]
struct Seen {
    at: Time,
    arrived: [Bytes; LEAVES],
    departed: [Bytes; LEAVES],
}

/// Converts counters into [`Passed`].
#[derive(Clone, Debug, Default)]
struct Meter {
    /// `None` before the first reading, because the time of the counts until then is unknown.
    seen: Option<Seen>,
    /// Arrivals and departures of other TCP, and of UDP.
    guarantees: [[classes::Guarantee; 2]; 2],
}

impl Meter {
    fn read(&mut self, now: Time, link: Rate, port: &PortCounters) -> Passed {
        let seen = Seen { at: now, arrived: port.arrived, departed: port.departed };
        let before = self.seen.replace(seen.clone()).unwrap_or(seen);
        let elapsed = now.since(before.at);
        let [arrivals, departures] = &mut self.guarantees;
        let of =
            |now: &[Bytes; LEAVES], before: &[Bytes; LEAVES], guarantees: &mut [classes::Guarantee; 2]| {
                let passed = |leaf: Leaf| now[leaf as usize] - before[leaf as usize];
                let own = passed(Leaf::Mouse) + passed(Leaf::Elephant);
                let [tcp, udp] = guarantees;
                let other = tcp.within(link, elapsed, passed(Leaf::OtherTcp))
                    + udp.within(link, elapsed, passed(Leaf::Udp));
                (own, other)
            };
        let arrived = of(&port.arrived, &before.arrived, arrivals);
        let (own, other) = of(&port.departed, &before.departed, departures);
        Passed { arrived: arrived.0 + arrived.1, own, other }
    }
}

/// A law at a port, in the stamped form.
pub struct Uniform<L, K = FlowKey> {
    law: L,
    ageing: Ageing,
    table: Table<K>,
    half_open: HalfOpenTable<K>,
    /// The state at the last reading.
    port: Port,
    meter: Meter,
    /// The link's rate for which the classes were computed.
    shaped: Option<Rate>,
    /// The last known time.
    at: Time,
    swept: Time,
    /// The time between the last two readings of a host that counts.
    between_looks: Span,
}

/// Timeouts of flows. The values are BRF's (BRF-15, BRF-16).
#[derive(Clone, Debug)]
struct Ageing {
    idle_after: Span,
    handshake_timeout: Span,
    forget_after: Span,
    rtt_default: Span,
}

impl<L: Law, K: FlowIdentity> Uniform<L, K> {
    /// A port under `law` that keeps at most this many flows. Further flows get the rate too, but the law
    /// does not see them.
    pub fn new(law: L, max_flows: usize) -> Self {
        let p = brf::Params::resolved();
        Uniform {
            law,
            table: Table::new(max_flows),
            half_open: HalfOpenTable::new(p.max_half_open, p.handshake_timeout),
            ageing: Ageing {
                idle_after: p.idle_after,
                handshake_timeout: p.handshake_timeout,
                forget_after: p.forget_after,
                rtt_default: p.rtt_default,
            },
            port: Port::default(),
            meter: Meter::default(),
            shaped: None,
            at: Time::ZERO,
            swept: Time::ZERO,
            between_looks: Span::ZERO,
        }
    }

    fn look(&mut self, now: Time, port: &PortCounters) {
        self.at = self.at.max(now);
        self.port = Port::of(port);
    }

    fn shape(&mut self, actions: &mut Vec<Action<K>>) {
        if self.shaped != Some(self.port.capacity) {
            self.shaped = Some(self.port.capacity);
            classes::set(self.port.capacity, actions);
        }
    }

    /// The rate to send to this flow now.
    fn rate_for(&self, now: Time, rtt: Option<Span>) -> Rate {
        self.law.rate(now).max(self.law.least(rtt.unwrap_or(self.ageing.rtt_default)))
    }
}

/// The rate that the port writes into an ACK with this option, if the port's own rate is `rate` (BRF-61).
/// Values are compared as rates, with the precision of the rate code (BRF-8).
fn stamp(rate: Rate, option: RateOption) -> Option<Rate> {
    match option {
        RateOption::Assigned(value) if as_heard(rate) > value => None,
        _ => Some(rate),
    }
}

impl<L: Law, K: FlowIdentity> RateController<K> for Uniform<L, K> {
    fn name(&self) -> &'static str {
        L::NAME
    }

    fn needs_configured_capacity(&self) -> bool {
        true
    }

    fn on_start(&mut self, now: Time, port: &PortCounters, actions: &mut Vec<Action<K>>) {
        self.look(now, port);
        (self.meter, self.swept) = (Meter::default(), now);
        self.shape(actions);
        self.law.start(now, &self.port);
    }

    fn on_data(
        &mut self,
        now: Time,
        packet: &PacketInfo<K>,
        port: &PortCounters,
        _actions: &mut Vec<Action<K>>,
    ) -> Admission {
        self.look(now, port);
        if packet.key.proto() == Proto::Udp {
            return Admission::Queue(Leaf::Udp);
        }
        let found = self.on_tcp(now, Side::Sender, packet);
        if packet.payload > Bytes::ZERO
            && let Some(id) = found
        {
            self.record_data(now, id, packet.size);
        }
        let rated = match found.and_then(|id| self.table.get(id)) {
            Some(flow) => flow.is_rated(),
            None => packet.sender_follows_rates(),
        };
        Admission::Queue(if rated { Leaf::Elephant } else { Leaf::OtherTcp })
    }

    fn on_reverse(
        &mut self,
        now: Time,
        packet: &PacketInfo<K>,
        _actions: &mut Vec<Action<K>>,
    ) -> Option<Rate> {
        if packet.key.proto() == Proto::Udp {
            return None;
        }
        self.at = self.at.max(now);
        // Asked before the law sees the flow, as a data plane with ready grants does.
        let answers = packet.flags.syn && packet.flags.ack;
        let granted = answers.then(|| self.law.grant(now, 1).max(Rate::from_bytes_per_sec(1)));
        let found = self.on_tcp(now, Side::Receiver, packet);
        let (rated, rtt) = match found.and_then(|id| self.table.get(id)) {
            Some(flow) => (flow.is_rated(), flow.rtt()),
            // The table is full, but all flows have the same rate.
            None => (packet.option != RateOption::Absent && !packet.flags.rst, None),
        };
        let rate = granted.unwrap_or_else(|| self.rate_for(now, rtt));
        if rated { stamp(rate, packet.option) } else { None }
    }

    fn on_timer(&mut self, now: Time, port: &PortCounters, actions: &mut Vec<Action<K>>) {
        self.look(now, port);
        self.shape(actions);
        let passed = self.meter.read(now, self.port.capacity, port);
        self.law.on_timer(now, &self.port, passed);
        self.sweep(now);
    }

    fn next_timer(&self) -> Time {
        if self.meter.seen.is_none() { Time::ZERO } else { self.law.next() }
    }

    fn allocation(&self, key: &K) -> Option<Rate> {
        let flow = self.table.get(self.table.find(key)?)?;
        flow.is_rated().then(|| self.rate_for(self.at, flow.rtt()))
    }

    fn aggregated(&mut self) -> Option<&mut dyn Aggregated<K>> {
        Some(self)
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        self.law.trace(self.at, trace);
        trace("link", self.port.capacity.as_f64());
        trace("flows_known", self.table.len() as f64);
        trace("half_open", self.half_open.len() as f64);
    }
}

#[cfg(test)]
mod harness;
#[cfg(test)]
mod random_tests;
#[cfg(test)]
mod tests;
