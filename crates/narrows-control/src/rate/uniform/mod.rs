//! Laws that give every flow of a port the same rate, on switches that see no congestion headers.
//!
//! RCP's and BDR's routers read and write a header in each packet ("the header form"). Stock hosts send none. In "the
//! stamped form" the port finds out by itself what the headers would have told it, and the rate goes into the flows' ACKs
//! with BRF's option, by the rules that BRF has for it (sender `brf`, the smallest value on the path stands, BRF-61). It
//! goes into every ACK: there is no gate, as a rate that is everybody's needs none.
//!
//! | module | idea |
//! | --- | --- |
//! | [`Law`] | what a law is asked and told |
//! | [`rcp`], [`bdr`] | the two laws, fed by what a port counts |
//! | `table` | who is here: bounded, with each flow's RTT and last report |
//! | `lifecycle` | packets that begin, confirm and end flows; ageing |
//! | `aggregate` | counts in place of packets |
//! | `classes` | the link between the three classes |
//!
//! What is not done, and BRF does: flows whose ACKs take another path cannot be told, are not advertised to other switches,
//! and count as other TCP; what another switch holds a flow to is not redistributed but by the law itself.

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
    Action, Admission, FlowKey, LEAVES, Leaf, PacketInfo, PortCounters, Proto, RateController, RateOption,
    brf,
};
use crate::feedback::code::as_heard;
use crate::units::{Bytes, Rate, Span, Time};

/// How a port's rate gets to the senders.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Signal {
    /// In the headers of data packets, as published; receivers return them. Simulator only.
    #[default]
    Header,
    /// In the ACKs, with BRF's option: what stock hosts and a real switch can do.
    Ack,
}

/// Flows that a port knows unless its parameters say otherwise; a third of a kilobyte each.
pub(super) const MAX_FLOWS: usize = 131_072;
/// What `max_flows` may be.
pub(super) const MAX_FLOWS_RANGE: &str = "from 1 to 2^31";

/// Checks the parameter `max_flows`.
pub(super) fn check_max_flows(found: usize) -> Result<(), String> {
    if (1..=u32::MAX as usize / 2).contains(&found) {
        return Ok(());
    }
    Err(format!("max_flows is {found}, but must be {MAX_FLOWS_RANGE}"))
}

/// The port as a law sees it.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Port {
    /// Capacity as told.
    pub capacity: Rate,
    /// L3 bytes queued of flows that obey rates; what others queue does not hold them up.
    pub queued: Bytes,
    /// Limit of the queue, if there is one, for full packets.
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

/// L3 bytes that passed a port since the last look: all of flows that obey rates, and of others what they are guaranteed.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Offered to it.
    pub arrived: Bytes,
    /// Sent, of flows that obey rates.
    pub own: Bytes,
    /// Sent, of all others.
    pub other: Bytes,
}

/// A law that gives every flow of a port the same rate.
pub trait Law: Send {
    /// Name of the controller in scenarios and results.
    const NAME: &'static str;

    /// The port is up.
    fn start(&mut self, now: Time, port: &Port);
    /// A flow begins, or sends again after it was idle.
    fn on_begin(&mut self, _now: Time, _port: &Port) {}
    /// L3 bytes of a flow's data have arrived; its RTT, if it is known.
    fn on_data(&mut self, _bytes: Bytes, _rtt: Option<Span>) {}
    /// A flow has lived for so long since it began or since this was called for it; called once per RTT of it, and with
    /// `last` when it ends or falls idle.
    fn on_report(&mut self, _now: Time, _lived: Span, _first: bool, _last: bool, _port: &Port) {}
    /// The deadline of [`next`](Law::next) has come, or the capacity has changed.
    fn on_timer(&mut self, now: Time, port: &Port, passed: Passed);
    /// When [`on_timer`](Law::on_timer) wants to be called next.
    fn next(&self) -> Time;
    /// The rate of any flow now, L3 bytes/s.
    fn rate(&self, now: Time) -> Rate;
    /// The rate that the `newcomers`-th flow from now would have.
    fn grant(&self, now: Time, newcomers: u64) -> Rate;
    /// The least that a flow with this RTT is told.
    fn least(&self, _rtt: Span) -> Rate {
        Rate::from_bytes_per_sec(1)
    }
    /// Names and values of the state, for traces.
    fn trace(&self, now: Time, trace: &mut dyn FnMut(&'static str, f64));
}

/// Bytes that a port had counted at the last look, by leaf.
#[derive(Clone, Debug)]
struct Seen {
    at: Time,
    arrived: [Bytes; LEAVES],
    departed: [Bytes; LEAVES],
}

/// Makes [`Passed`] of counters.
#[derive(Clone, Debug, Default)]
struct Meter {
    /// `None` before the first look: nobody knows how long what was counted until then took.
    seen: Option<Seen>,
    /// Of other TCP and of UDP: what arrived, what left.
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
pub struct Uniform<L> {
    law: L,
    ageing: Ageing,
    table: Table,
    half_open: HalfOpenTable,
    /// As of the last look.
    port: Port,
    meter: Meter,
    /// The link's rate that the classes were computed from.
    shaped: Option<Rate>,
    /// The last moment that was heard of.
    at: Time,
    swept: Time,
    /// Between the last two looks of a host that counts.
    between_looks: Span,
}

/// When flows are forgotten. BRF's own figures (BRF-15, BRF-16).
#[derive(Clone, Debug)]
struct Ageing {
    idle_after: Span,
    handshake_timeout: Span,
    forget_after: Span,
    rtt_default: Span,
}

impl<L: Law> Uniform<L> {
    /// A port under `law` that knows at most so many flows. Those above it are told their rate as all others, but the law
    /// hears nothing of them.
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

    fn shape(&mut self, actions: &mut Vec<Action>) {
        if self.shaped != Some(self.port.capacity) {
            self.shaped = Some(self.port.capacity);
            classes::set(self.port.capacity, actions);
        }
    }

    /// What this flow may be told now.
    fn told(&self, now: Time, rtt: Option<Span>) -> Rate {
        self.law.rate(now).max(self.law.least(rtt.unwrap_or(self.ageing.rtt_default)))
    }
}

/// What the port writes into an ACK that has this option, if it may have `rate` here (BRF-61): compared as rates, and as
/// what the code can say of them (BRF-8).
fn stamp(rate: Rate, option: RateOption) -> Option<Rate> {
    match option {
        RateOption::Assigned(value) if as_heard(rate) > value => None,
        _ => Some(rate),
    }
}

/// The packet shows that its sender obeys rates, even if its SYN was not seen (BRF-10, BRF-105).
fn speaks(packet: &PacketInfo) -> bool {
    packet.option != RateOption::Absent || packet.unlimited.is_some()
}

impl<L: Law> RateController for Uniform<L> {
    fn name(&self) -> &'static str {
        L::NAME
    }

    fn must_be_told(&self) -> bool {
        true
    }

    fn on_start(&mut self, now: Time, port: &PortCounters, actions: &mut Vec<Action>) {
        self.look(now, port);
        (self.meter, self.swept) = (Meter::default(), now);
        self.shape(actions);
        self.law.start(now, &self.port);
    }

    fn on_data(
        &mut self,
        now: Time,
        packet: &PacketInfo,
        port: &PortCounters,
        _actions: &mut Vec<Action>,
    ) -> Admission {
        self.look(now, port);
        if packet.key.proto == Proto::Udp {
            return Admission::Queue(Leaf::Udp);
        }
        let found = self.on_tcp(now, Side::Sender, packet);
        if packet.payload > Bytes::ZERO
            && let Some(id) = found
        {
            self.sends(now, id, packet.size);
        }
        let rated = match found.and_then(|id| self.table.get(id)) {
            Some(flow) => flow.is_rated(),
            None => speaks(packet),
        };
        Admission::Queue(if rated { Leaf::Elephant } else { Leaf::OtherTcp })
    }

    fn on_reverse(&mut self, now: Time, packet: &PacketInfo, _actions: &mut Vec<Action>) -> Option<Rate> {
        if packet.key.proto == Proto::Udp {
            return None;
        }
        self.at = self.at.max(now);
        // Asked before the law hears of the flow, as a data plane does that hands out what is ready.
        let answers = packet.flags.syn && packet.flags.ack;
        let granted = answers.then(|| self.law.grant(now, 1).max(Rate::from_bytes_per_sec(1)));
        let found = self.on_tcp(now, Side::Receiver, packet);
        let (rated, rtt) = match found.and_then(|id| self.table.get(id)) {
            Some(flow) => (flow.is_rated(), flow.rtt()),
            // Too many to remember, but everybody's rate is the same.
            None => (packet.option != RateOption::Absent && !packet.flags.rst, None),
        };
        let rate = granted.unwrap_or_else(|| self.told(now, rtt));
        if rated { stamp(rate, packet.option) } else { None }
    }

    fn on_timer(&mut self, now: Time, port: &PortCounters, actions: &mut Vec<Action>) {
        self.look(now, port);
        self.shape(actions);
        let passed = self.meter.read(now, self.port.capacity, port);
        self.law.on_timer(now, &self.port, passed);
        self.sweep(now);
    }

    fn next_timer(&self) -> Time {
        if self.meter.seen.is_none() { Time::ZERO } else { self.law.next() }
    }

    fn allocation(&self, key: &FlowKey) -> Option<Rate> {
        let flow = self.table.get(self.table.find(key)?)?;
        flow.is_rated().then(|| self.told(self.at, flow.rtt()))
    }

    fn aggregated(&mut self) -> Option<&mut dyn Aggregated> {
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
