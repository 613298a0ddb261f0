//! PACEC at one port. The port reports every Ts (PAC-2) and keeps its flows. To the controller, it announces the flows
//! that begin at its switch. To the sources, it sends the controller's rates (PAC-3, PAC-21, PAC-22).
//!
//! A port does not know whether a flow begins at its switch. With `edge = true` it announces all flows. The controller
//! knows the routes. If a flow begins elsewhere, the controller answers that this port does not limit it
//! ([`Rate::MAX`]). Before that answer, this port and the flow's first port may both write a rate into the SYN-ACK. The
//! smaller rate applies, so the flow may begin at the floor. To avoid this, set `edge = false` at ports without hosts.

use rustc_hash::FxHashMap;

use super::params::{Params, Signal};
use super::table::{Flow, State, Table};
use crate::feedback::code::as_heard;
use crate::rate::aggregate::Aggregated;
use crate::rate::kit::classes;
use crate::rate::{
    Action, Admission, FlowEvent, FlowIdentity, FlowKey, Leaf, Message, PacketInfo, PerFlowController,
    PortCounters, PortId, Proto, Queueing, RateOption, Requirements, Segment, Side,
};
use crate::units::{Bytes, Rate, Span, Time};

/// Time for which the port remembers that a silent flow follows rates.
const REMEMBERED: Span = Span::from_secs(60);
/// Number of periods after which the port no longer uses a rate for newcomers. The controller repeats each rate every
/// fifth period.
const OFFERS_KEPT: u64 = 10;

/// The controller is assumed to have failed after this time without a message, or after [`PERIODS_ABANDONED`] periods
/// if these are longer. From then on, the port sends and writes no rates, and senders use CUBIC, until the controller
/// returns (ours). A working controller repeats every rate after five periods.
const ABANDONED: Span = Span::from_secs(2);
/// The controller is assumed to have failed only after at least this many periods without a message.
const PERIODS_ABANDONED: u64 = 10;

/// With out-of-band signalling, the ingress repeats all rates after this time, for any Tc (ours). An unchanged rate
/// causes no message (PAC-4), but a source that gets no message for a second assumes that its ingress has failed. With
/// two messages per second, the loss of one message does no harm.
const REPEATED: Span = Span::from_millis(500);

/// PACEC at a port.
pub struct PacecPort<K: FlowIdentity = FlowKey> {
    pub(super) params: Params,
    port: PortId,
    pub(super) floor: Rate,
    pub(super) table: Table<K>,
    /// The rates for newcomers in the controller's last message, by destination. `taken` is the sum of the rates that
    /// newcomers have got since then.
    offers: FxHashMap<K::Host, Rate>,
    /// The smallest of the offers, for a newcomer with an unknown destination.
    least_offer: Rate,
    offered_at: Time,
    taken: Rate,
    /// The time of the controller's last message, and the time at which the controller last asked for all flows.
    heard: Time,
    asked: Option<Time>,
    /// Number of changes of the rates of flows so far.
    pub(super) version: u64,
    /// The time of the last call.
    pub(super) at: Time,
    capacity: Option<Rate>,
    sample_at: Time,
    window_at: Time,
    window_from: Time,
    /// The time of the next repetition of all rates; [`Time::NEVER`] in band.
    repeat_at: Time,
    /// Whether the port is on a real switch, whose queue has classes with any signalling.
    pub(super) on_switch: bool,
}

impl<K: FlowIdentity> PacecPort<K> {
    /// Creates the state of PACEC at this port, with [valid](crate::rate::PortParameters::check) parameters. Full
    /// packets are `mtu` bytes long.
    pub fn new(params: Params, port: PortId, mtu: Bytes) -> Self {
        PacecPort {
            floor: params.floor(mtu),
            table: Table::new(params.max_flows),
            params,
            port,
            offers: FxHashMap::default(),
            least_offer: Rate::ZERO,
            heard: Time::ZERO,
            asked: None,
            version: 0,
            at: Time::ZERO,
            offered_at: Time::ZERO,
            taken: Rate::ZERO,
            capacity: None,
            sample_at: Time::NEVER,
            window_at: Time::NEVER,
            window_from: Time::ZERO,
            repeat_at: Time::NEVER,
            on_switch: false,
        }
    }

    /// Returns the rate for a newcomer (PAC-22). All newcomers between two updates use the link of this port, even if
    /// their destinations differ. So the rates of earlier newcomers are subtracted. The port does not know of newcomers
    /// at other ports.
    fn offer(&mut self, now: Time, to: K::Host) -> Rate {
        let rate = self.ready(now, Some(to));
        self.taken += rate;
        rate
    }

    /// Returns the rate that the next newcomer would get.
    pub(super) fn ready(&self, now: Time, to: Option<K::Host>) -> Rate {
        let fresh = now.since(self.offered_at) < self.params.period().scale(OFFERS_KEPT, 1);
        let offered = match to {
            _ if !fresh => Rate::ZERO,
            Some(to) => self.offers.get(&to).copied().unwrap_or(Rate::ZERO),
            None => self.least_offer,
        };
        (offered - self.taken).max(self.floor)
    }

    /// Returns whether the controller has sent a message recently, and so is assumed to work.
    pub(super) fn is_guided(&self, now: Time) -> bool {
        now.since(self.heard) < ABANDONED.max(self.params.period().scale(PERIODS_ABANDONED, 1))
    }

    /// Begins or resumes a flow. `anew` states that the flow certainly begins or resumes now, and is not older. The
    /// flow gets an initial rate only in this case.
    pub(super) fn begin(&mut self, now: Time, key: K, anew: bool, actions: &mut Vec<Action<K>>) {
        // The rates of an earlier flow with this key do not apply.
        self.close(&key, actions);
        if self.table.is_full() && self.table.get(&key).is_none() {
            return;
        }
        let initial = (anew && self.params.edge).then(|| self.offer(now, key.destination()));
        self.table.insert(Flow::new(now, key, initial));
        self.announce(key, true, None, actions);
    }

    fn announce(&self, key: K, begun: bool, demand: Option<Rate>, actions: &mut Vec<Action<K>>) {
        if self.params.edge {
            actions.push(Action::ToController(Message::Flow { port: self.port, key, begun, demand }));
        }
    }

    /// Marks a flow as closed, after its FIN or RST or before a new flow with the same key. If the flow was active and
    /// does not begin elsewhere, announces its end.
    pub(super) fn close(&mut self, key: &K, actions: &mut Vec<Action<K>>) {
        let Some(flow) = self.table.get_mut(key) else { return };
        let was = core::mem::replace(&mut flow.state, State::Closed);
        if was == State::Active && !flow.is_elsewhere() {
            self.announce(*key, false, None, actions);
        }
    }

    /// Handles a TCP packet of the data direction. Returns whether the packet belongs to a flow that follows rates.
    pub(super) fn on_tcp(
        &mut self,
        now: Time,
        event: &FlowEvent<K>,
        size: Bytes,
        actions: &mut Vec<Action<K>>,
    ) -> bool {
        let FlowEvent { key, has_data, follows_rates, .. } = *event;
        let opens = event.segment == Segment::Syn;
        let known = self.table.get_mut(&key).map(|flow| {
            flow.heard = if has_data || opens { now } else { flow.heard };
            flow.had_data |= has_data;
            flow.meter.count(size);
            (flow.state, flow.granted)
        });
        match known {
            // The SYN of a known flow has arrived again.
            Some((State::Active, None)) if opens && follows_rates => {}
            _ if opens && follows_rates => self.begin(now, key, true, actions),
            // A new flow that does not follow rates reuses the addresses and ports of a flow that did.
            Some(_) if opens => {
                self.close(&key, actions);
                self.table.remove(&key);
                return false;
            }
            Some((State::Idle, _)) if has_data => {
                self.begin(now, key, true, actions);
                self.tell(&key, actions);
            }
            None if has_data && follows_rates => self.begin(now, key, false, actions),
            None => return false,
            Some(_) => {}
        }
        if matches!(event.segment, Segment::Fin | Segment::Rst) {
            self.close(&key, actions);
        }
        true
    }

    /// With out-of-band signalling, sends the source the flow's rate if this rate has changed.
    pub(super) fn tell(&mut self, key: &K, actions: &mut Vec<Action<K>>) {
        let signal = self.params.signal;
        let Some(flow) = self.table.get_mut(key) else { return };
        let Some(rate) = flow.rate().filter(|_| signal == Signal::OutOfBand) else { return };
        if flow.told != Some(rate) {
            flow.told = Some(rate);
            actions.push(Action::ToSource { flow: *key, rate });
        }
    }

    /// Sends all sources the controller's rates again. Rates that the port itself chose are not repeated, because
    /// without the controller a source should use its own congestion control.
    fn repeat(&self, actions: &mut Vec<Action<K>>) {
        let active = self.table.iter().filter(|flow| flow.state == State::Active && !flow.is_elsewhere());
        actions
            .extend(active.filter_map(|flow| Some(Action::ToSource { flow: flow.key, rate: flow.granted? })));
    }

    /// Ends silent flows. Measures all other active flows. Announces a flow if its demand has changed or its last
    /// announcement is old.
    fn end_window(&mut self, now: Time, actions: &mut Vec<Action<K>>) {
        let window = now.since(self.window_from);
        self.window_from = now;
        let (idle_after, floor) = (self.params.idle_after, self.floor);
        // If the table is full, silent flows are forgotten sooner, to make room for newcomers.
        let remembered = if self.table.is_full() { idle_after } else { REMEMBERED.max(idle_after) };
        for slot in 0..self.table.slots() {
            let Some(flow) = self.table.in_slot(slot).and_then(|id| self.table.at_mut(id)) else { continue };
            let (key, silent) = (flow.key, now.since(flow.heard));
            match flow.state {
                State::Active if silent >= idle_after => {
                    flow.state = State::Idle;
                    let (elsewhere, had_data) = (flow.is_elsewhere(), flow.had_data);
                    if !elsewhere {
                        self.announce(key, false, None, actions);
                    }
                    if !had_data {
                        self.table.remove(&key);
                    }
                }
                State::Active => {
                    let granted = flow.granted.filter(|_| !flow.is_elsewhere());
                    let new = flow.meter.end_window(window, granted);
                    if new || now.since(flow.announced) >= idle_after {
                        flow.announced = now;
                        let demand = flow.meter.demand().map(|rate| rate.max(floor));
                        self.announce(key, true, demand, actions);
                    }
                }
                State::Idle if silent >= remembered => self.table.remove(&key),
                State::Closed if silent >= idle_after => self.table.remove(&key),
                State::Idle | State::Closed => {}
            }
        }
    }

    /// Returns whether the port's queue has classes. In the simulator, it has classes only with in-band signalling.
    /// In-band signalling is also for comparisons with real switches.
    fn has_classes(&self) -> bool {
        self.on_switch || self.params.signal == Signal::InBand
    }

    fn set_capacity(&mut self, port: &PortCounters, actions: &mut Vec<Action<K>>) {
        self.capacity = port.capacity;
        if let Some(capacity) = port.capacity
            && self.has_classes()
        {
            classes::set(capacity, actions);
        }
    }

    /// Sends a report of the counters to the controller. A port of unknown capacity sends no report, because PACEC
    /// cannot measure capacity.
    fn report(&self, now: Time, port: &PortCounters, actions: &mut Vec<Action<K>>) {
        let Some(capacity) = port.capacity else { return };
        let share = capacity.mul_f64(self.params.eta);
        let report = port.report(self.port, now, capacity, share, self.params.sample);
        actions.push(Action::ToController(Message::Report(report)));
    }

    fn on_grants(
        &mut self,
        now: Time,
        flows: &[(K, Rate)],
        newcomers: &[(K::Host, Rate)],
        actions: &mut Vec<Action<K>>,
    ) {
        self.heard = now;
        if !self.params.edge {
            return;
        }
        for (key, rate) in flows {
            if let Some(flow) = self.table.get_mut(key)
                && flow.state == State::Active
            {
                self.version += u64::from(flow.granted != Some(*rate));
                flow.granted = Some(*rate);
                self.tell(key, actions);
            }
        }
        if !newcomers.is_empty() {
            self.offers.clear();
            self.offers.extend(newcomers.iter().take(self.params.max_flows).copied());
            self.least_offer = self.offers.values().copied().min().unwrap_or(Rate::ZERO);
            (self.offered_at, self.taken) = (now, Rate::ZERO);
        }
    }
}

impl<K: FlowIdentity> PerFlowController<K> for PacecPort<K> {
    fn name(&self) -> &'static str {
        "pacec"
    }

    fn requirements(&self) -> Requirements {
        let queueing =
            if self.has_classes() { Queueing::Classes { queues_udp: false } } else { Queueing::Own };
        Requirements { queueing, configured_capacity: true, domain: true }
    }

    fn on_start(&mut self, now: Time, port: &PortCounters, actions: &mut Vec<Action<K>>) {
        (self.at, self.heard) = (now, now);
        self.set_capacity(port, actions);
        self.sample_at = now + self.params.sample;
        self.window_at = now + self.params.period();
        self.window_from = now;
        if self.params.signal == Signal::OutOfBand && self.params.edge {
            self.repeat_at = now + REPEATED;
        }
        // The controller computes the next sample as the difference from these counters.
        self.report(now, port, actions);
        if port.capacity.is_none() {
            actions.push(Action::Log { event: "no-capacity-told", flow: None, value: f64::from(self.port) });
        }
    }

    fn on_data(
        &mut self,
        now: Time,
        packet: &PacketInfo<K>,
        _port: &PortCounters,
        actions: &mut Vec<Action<K>>,
    ) -> Admission {
        Admission::Queue(match packet.key.proto() {
            Proto::Udp => Leaf::Udp,
            Proto::Tcp => {
                let event = FlowEvent::of(packet, Side::Sender);
                if self.on_tcp(now, &event, packet.size, actions) { Leaf::Elephant } else { Leaf::OtherTcp }
            }
        })
    }

    /// Returns the rate to write into a packet of the reverse direction. If another switch has already written a rate,
    /// the packet gets the smaller of the two rates, as in BRF-61.
    fn on_reverse(
        &mut self,
        now: Time,
        packet: &PacketInfo<K>,
        actions: &mut Vec<Action<K>>,
    ) -> Option<Rate> {
        if packet.flags.rst {
            self.close(&packet.key, actions);
            return None;
        }
        let (signal, gap) = (self.params.signal, self.params.rewritten());
        // With out-of-band signalling, a newcomer's rate is written even if the controller is silent, because a port
        // without flows gets no messages.
        let edge = self.params.edge && (signal == Signal::OutOfBand || self.is_guided(now));
        let flow = self.table.get_mut(&packet.key)?;
        let rate = flow.rate().filter(|_| edge)?;
        let answers_syn = packet.flags.syn && packet.flags.ack;
        flow.gate_before = flow.gate;
        match packet.option {
            RateOption::Absent if answers_syn => return None,
            _ if !answers_syn && signal == Signal::OutOfBand => return None,
            // The gate does not apply when this switch lowers another switch's rate.
            RateOption::Assigned(value) if as_heard(rate) > value => return None,
            RateOption::Assigned(_) => {}
            _ if !answers_syn && now < flow.gate => return None,
            _ => {}
        }
        flow.gate = now + gap;
        Some(rate)
    }

    fn on_write_failed(&mut self, key: &K) {
        if let Some(flow) = self.table.get_mut(key) {
            flow.gate = flow.gate_before;
        }
    }

    fn on_timer(&mut self, now: Time, port: &PortCounters, actions: &mut Vec<Action<K>>) {
        self.at = now;
        let changed = port.capacity != self.capacity;
        if changed {
            self.set_capacity(port, actions);
        }
        if now >= self.sample_at || changed {
            self.report(now, port, actions);
        }
        // Timers are aligned to a grid, so that a late call does not shift later timers.
        let next = |at: Time, every: Span| if now < at + every { at + every } else { now + every };
        if now >= self.sample_at {
            self.sample_at = next(self.sample_at, self.params.sample);
        }
        if now >= self.window_at {
            self.window_at = next(self.window_at, self.params.period());
            self.end_window(now, actions);
        }
        if self.repeat_at < Time::NEVER && now >= self.repeat_at {
            self.repeat_at = next(self.repeat_at, REPEATED);
            if self.is_guided(now) {
                self.repeat(actions);
            }
        }
    }

    fn on_message(
        &mut self,
        now: Time,
        message: &Message<K>,
        _port: &PortCounters,
        actions: &mut Vec<Action<K>>,
    ) {
        match message {
            Message::Grants { port, flows, newcomers } if *port == self.port => {
                self.on_grants(now, flows, newcomers, actions);
            }
            // The controller has just started, and requests announcements of all flows.
            Message::Poll if self.asked.is_none_or(|at| now.since(at) >= self.params.idle_after) => {
                self.asked = Some(now);
                for flow in self.table.iter().filter(|flow| flow.state == State::Active) {
                    self.announce(
                        flow.key,
                        true,
                        flow.meter.demand().map(|rate| rate.max(self.floor)),
                        actions,
                    );
                }
            }
            Message::Report(_)
            | Message::Poll
            | Message::Grants { .. }
            | Message::Congestion { .. }
            | Message::FlowAdvertisement { .. }
            | Message::Flow { .. } => {}
        }
    }

    fn next_timer(&self) -> Time {
        self.sample_at.min(self.window_at).min(self.repeat_at)
    }

    fn allocation(&self, key: &K) -> Option<Rate> {
        let flow = self.table.get(key)?;
        flow.rate().filter(|_| flow.state == State::Active)
    }

    fn into_aggregated(mut self: Box<Self>) -> Option<Box<dyn Aggregated<K>>> {
        self.on_switch = true;
        Some(self)
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        let active = self.table.iter().filter(|flow| flow.state == State::Active);
        let (mut flows, mut limited, mut allocated) = (0u32, 0u32, 0.0);
        for flow in active {
            flows += 1;
            limited += u32::from(flow.meter.demand().is_some());
            allocated += flow.rate().map_or(0.0, Rate::as_f64);
        }
        trace("link", self.capacity.map_or(0.0, Rate::as_f64));
        trace("allocated", allocated);
        trace("flows_rated", f64::from(flows));
        trace("flows_limited", f64::from(limited));
        trace("newcomers_got", self.taken.as_f64());
    }
}
