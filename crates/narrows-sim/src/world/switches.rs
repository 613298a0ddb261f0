//! Switches. A switch passes the fields of packets to a rate controller of `narrows-control`, and performs the actions
//! that the rate controller returns.
//!
//! The event loop calls `admit` for each packet at a port with a rate controller. It calls `pass_switches` for each
//! packet at the end of a link to a switch, and `switch_timer` for timers. `domain` calls `message_to_switch` for each
//! message to a switch. `samples` asks for allocated rates.

use narrows_control::catalogue::Controllers;
use narrows_control::feedback::code::RateCode;
use narrows_control::rate::{
    self, Admission, Leaf, PacketInfo, PortCounters, RateOption, TcpFlags, plain_leaf, registry,
};
use narrows_control::units::{Bytes, Rate, Time};

use super::World;
use super::domain::Message;
use super::signalling::SignallingCounts;
use crate::engine::Kind;
use crate::error::Error;
use crate::flow::FlowIndex;
use crate::net::{Port, watch};
use crate::packet::{Packet, flag};
use crate::plan::{ControllerPlan, TransportPlan};
use crate::probe::{Cell, row};

/// A rate controller that identifies flows by [`FlowIndex`].
pub(crate) type RateController = rate::RateController<FlowIndex>;
type Action = rate::Action<FlowIndex>;

/// A port with a rate controller.
pub(super) struct Switch {
    pub(super) link: u32,
    /// The rate controller; `None` during an outage.
    pub(super) controller: Option<RateController>,
    plan: ControllerPlan,
    /// Time of the pending Switch event.
    timer_at: Time,
    actions: Vec<Action>,
    pub(super) signalling: SignallingCounts,
}

impl World<'_> {
    pub(super) fn start_switches(&mut self) -> Result<(), Error> {
        for (i, plan) in self.plan.rate_controllers.iter().enumerate() {
            let link = plan.link as usize;
            let controller = build_rate_controller(plan, i as u32, self.controllers)?;
            self.ports[link].control(
                plan,
                controller.requirements().queueing,
                &self.plan.links[link],
                i as u32,
            );
            let node = self.ports[link].from;
            self.switches_at[node as usize].push(i as u32);
            for port in self.ports.iter_mut().filter(|p| p.to == node) {
                port.watch |= watch::SWITCH;
            }
            self.switches.push(Switch {
                link: plan.link,
                controller: Some(controller),
                plan: plan.clone(),
                timer_at: Time::NEVER,
                actions: Vec::new(),
                signalling: SignallingCounts::default(),
            });
            self.with_port(i as u32, |c, now, port, actions| c.on_start(now, port, actions));
        }
        self.start_domains()
    }

    /// Runs `act` on a switch's rate controller and on the counters of its port. Does nothing during an outage.
    pub(super) fn with_port<R: Default>(
        &mut self,
        index: u32,
        act: impl FnOnce(&mut RateController, Time, &PortCounters, &mut Vec<Action>) -> R,
    ) -> R {
        let is_configured = self.switches[index as usize].plan.capacity_is_configured;
        self.with_switch(index, |c, now, port, actions| match port.counters(now, is_configured) {
            Some(counters) => act(c, now, counters, actions),
            None => R::default(),
        })
    }

    /// Runs `act` on a switch's rate controller, and then performs the controller's actions. Does nothing during an
    /// outage.
    pub(super) fn with_switch<R: Default>(
        &mut self,
        index: u32,
        act: impl FnOnce(&mut RateController, Time, &mut Port, &mut Vec<Action>) -> R,
    ) -> R {
        let switch = &mut self.switches[index as usize];
        let port = &mut self.ports[switch.link as usize];
        let mut result = R::default();
        let mut wake_at = next_outage(&switch.plan, self.now);
        if let Some(controller) = &mut switch.controller {
            let mut actions = std::mem::take(&mut switch.actions);
            result = act(controller, self.now, port, &mut actions);
            wake_at = wake_at.min(controller.next_timer());
            if switch.plan.capacity_is_configured {
                wake_at = wake_at.min(port.service().next_change(self.now));
            }
            let link = switch.link;
            for action in actions.drain(..) {
                self.perform(index, link, action);
            }
            self.switches[index as usize].actions = actions;
        }
        let switch = &mut self.switches[index as usize];
        // The next event must be later than `now`. Otherwise the simulated time would not advance. If the timer is
        // already due, the event occurs a nanosecond from now.
        let wake_at = wake_at.max(self.now + narrows_control::units::Span::from_nanos(1));
        if wake_at < switch.timer_at {
            switch.timer_at = wake_at;
            self.events.push(wake_at, Kind::Switch, index);
        }
        result
    }

    fn perform(&mut self, index: u32, link: u32, action: Action) {
        match action {
            Action::SetClass { class, rate, ceil } => {
                let port = &mut self.ports[link as usize];
                // A class whose ceiling is at least the link's rate needs no token bucket, because the link itself
                // limits the class. If the link's rate varies, a token bucket would even waste capacity while the link
                // is faster than the ceiling.
                let ceil = if ceil >= port.service().configured_rate(self.now) { Rate::MAX } else { ceil };
                if let Some(htb) = port.htb() {
                    htb.set_class(self.now, class as usize, rate, ceil);
                }
                port.wake(self.now, link, &mut self.events);
            }
            Action::ToController(message) => self.send_to_domain(index, message),
            Action::ToSource { flow, rate } => self.notify_source(index, &flow, rate),
            Action::Record { flow: _, features, joined, rate, limited } => {
                let cells = row![link, joined.as_secs_f64(), rate.as_f64() * 8.0, u32::from(limited)];
                self.recorder.flow_records.push(cells.into_iter().chain(features.values().map(Cell::from)));
            }
            Action::State { state, value } => self.record_event(state, link, None, value),
            Action::Log { event, flow, value } => self.record_event(event, link, flow, value),
        }
    }

    /// Records an event of the port at `link`. If `flow` is not `None`, the event is about this flow. Otherwise it is
    /// about the port.
    fn record_event(&mut self, event: &str, link: u32, flow: Option<FlowIndex>, value: f64) {
        // The code borrows the port's name instead of copying it, because BRF records several events per port and
        // period.
        let plan = self.plan;
        let named = flow.map(|key| self.name_of(&key));
        let entity = named.as_deref().unwrap_or(&plan.links[link as usize].name);
        self.recorder.events.push(row![self.now.as_secs_f64(), event, entity, value]);
    }

    /// Handles a switch's timer, and the start or end of an outage.
    pub(super) fn switch_timer(&mut self, index: u32) {
        let switch = &mut self.switches[index as usize];
        if switch.timer_at != self.now {
            return;
        }
        switch.timer_at = Time::NEVER;
        let has_failed = switch.plan.outages.iter().any(|&(from, to)| from <= self.now && self.now < to);
        if has_failed && switch.controller.is_some() {
            switch.controller = None;
            self.ports[switch.link as usize].release(self.now);
        } else if !has_failed && switch.controller.is_none() {
            // After an outage, the controller restarts without state. It must detect the existing flows again.
            switch.controller = build_rate_controller(&switch.plan, index, self.controllers).ok();
            self.with_port(index, |c, now, port, actions| c.on_start(now, port, actions));
            return;
        }
        self.with_port(index, |c, now, port, actions| c.on_timer(now, port, actions));
    }

    /// Returns the leaf for a packet at a port with a rate controller. Returns `None` if the packet must be dropped. This
    /// function is not inlined, so that the code for ports without a rate controller stays short.
    #[inline(never)]
    pub(super) fn admit(&mut self, link: u32, packet: u32) -> Option<usize> {
        let p = *self.packets.get(packet);
        let index = self.ports[link as usize].switch?;
        match self.switches[index as usize].controller {
            None => return Some(Leaf::OtherTcp as usize),
            // This packet is an ACK. Its flow sends data in the other direction, so this port does not allocate a rate
            // to the flow.
            Some(RateController::PerFlow(_)) if p.is(flag::REVERSE) => return Some(Leaf::OtherTcp as usize),
            // A controller without per-flow state also counts ACKs of the other direction as input, because these ACKs
            // use its link (RCP-1, XCP-1).
            Some(_) => {}
        }
        let (mut info, mut has_header) = (self.packet_info(&p), false);
        let before = info.header;
        let admission = self.with_port(index, |c, now, port, actions| match c {
            RateController::PerFlow(c) => Some(c.on_data(now, &info, port, actions)),
            RateController::Headers(c) => {
                has_header = true;
                c.on_arrival(now, info.size, &mut info.header, port);
                Some(Admission::Queue(plain_leaf(&info)))
            }
        });
        if has_header && info.header != before && self.packets.replace_header(packet, info.header) {
            self.ports[link as usize].stats.rewritten += 1;
        }
        match admission {
            Some(Admission::Queue(leaf)) => Some(leaf as usize),
            Some(Admission::Drop) => None,
            None => Some(Leaf::OtherTcp as usize),
        }
    }

    /// Handles a Ready event of a port.
    pub(super) fn ready(&mut self, link: u32) {
        let port = &mut self.ports[link as usize];
        let controller = port.switch.and_then(|index| self.switches[index as usize].controller.as_mut());
        let writer = controller.and_then(|controller| match controller {
            RateController::Headers(controller) => Some(controller.as_mut()),
            RateController::PerFlow(_) => None,
        });
        port.ready(self.now, link, &mut self.packets, &mut self.events, writer);
    }

    /// Passes a packet through the switches of a node. A switch may write a rate into a packet of the reverse
    /// direction.
    pub(super) fn pass_switches(&mut self, link: u32, packet: u32) {
        let p = *self.packets.get(packet);
        if !p.is(flag::REVERSE) {
            return;
        }
        let node = self.ports[link as usize].to as usize;
        for k in 0..self.switches_at[node].len() {
            let index = self.switches_at[node][k];
            let info = self.packet_info(self.packets.get(packet));
            let rate = self.with_switch(index, |c, now, _, actions| match c {
                RateController::PerFlow(c) => c.on_reverse(now, &info, actions),
                RateController::Headers(_) => None,
            });
            if let Some(rate) = rate {
                let p = self.packets.get_mut(packet);
                if p.is(flag::RATE) {
                    let code = RateCode::encode(rate);
                    debug_assert!(crate::wire::survives_encoding(p, code), "{code:?} into {p:?}");
                    p.rate_code = code.to_bits();
                    self.switches[index as usize].signalling.acks += 1;
                } else {
                    // The TCP header of this packet has no room for the rate option (BRF-11).
                    self.with_switch(index, |c, _, _, _| {
                        if let RateController::PerFlow(c) = c {
                            c.on_write_failed(&info.key);
                        }
                    });
                }
            }
        }
    }

    /// Returns the fields of a packet that a switch can read.
    fn packet_info(&self, p: &Packet) -> PacketInfo<FlowIndex> {
        let code = RateCode::from_bits(p.rate_code);
        let option = match code.decode() {
            _ if !p.is(flag::RATE) => RateOption::Absent,
            Some(rate) => RateOption::Assigned(rate),
            None => RateOption::Unassigned,
        };
        let data = !p.is(flag::REVERSE);
        PacketInfo {
            key: self.flows.key_of(p),
            size: Bytes::new(p.size as u64),
            payload: Bytes::new(p.payload as u64),
            flags: TcpFlags {
                syn: p.is(flag::SYN),
                ack: p.is(flag::ACK),
                fin: p.is(flag::FIN),
                rst: p.is(flag::RST),
            },
            option,
            unlimited: (data && p.is(flag::RATE) && !p.is(flag::SYN)).then_some(code == RateCode::UNLIMITED),
            seq: p.seq as u64 * self.mss_of(p),
            timestamps: (!p.is(flag::UDP)).then_some((p.ts, p.ts_echo)),
            header: self.packets.header(p),
            vlan: 0,
            mark: u32::from(p.class),
        }
    }

    /// Returns the payload bytes of a full segment of the packet's flow.
    fn mss_of(&self, p: &Packet) -> u64 {
        let plan = self.flows[p.flow].meta.plan;
        match self.plan.flows[plan as usize].transport {
            TransportPlan::Tcp { mss, .. } => mss as u64,
            TransportPlan::Udp { .. } | TransportPlan::Stack(_) | TransportPlan::Program(_) => 1,
        }
    }

    /// Returns a flow's name for the table of events. If the flow has ended, the name consists of the name of its flow
    /// plan and its slot.
    fn name_of(&self, key: &FlowIndex) -> String {
        match (self.flows.find(key), self.plan.flows.get(key.plan as usize)) {
            (Some(flow), _) => self.flow_name(&flow.meta),
            (None, Some(plan)) => format!("{} (ended, slot {})", plan.name, key.slot),
            (None, None) => "late packets".to_owned(),
        }
    }

    /// Returns the rate that is allocated to a flow. If several switches allocate a rate, returns the lowest of these
    /// rates.
    pub(super) fn allocation(&self, slot: u32) -> Option<Rate> {
        let key = &self.flows[slot].meta.key;
        self.switches.iter().filter_map(|s| s.controller.as_ref()?.allocation(key)).min()
    }

    /// Delivers a message to a switch.
    pub(super) fn message_to_switch(&mut self, index: u32, message: &Message) {
        if (index as usize) < self.switches.len() {
            self.with_port(index, |c, now, port, actions| c.on_message(now, message, port, actions));
        }
    }
}

/// Builds the rate controller that a plan selects. This is a built-in controller, or one of `controllers`.
pub(crate) fn build_rate_controller(
    plan: &ControllerPlan,
    port: u32,
    controllers: &dyn Controllers,
) -> Result<RateController, Error> {
    let mtu = Bytes::new(1500);
    let added = controllers.rate_controllers().iter().find(|entry| entry.name == plan.kind);
    let built = match added {
        None => registry::build(&plan.kind, &plan.params, port, mtu),
        Some(entry) => entry
            .check(&plan.params)
            .map(|()| rate::RateController::Headers((entry.build)(&plan.params, port, mtu))),
    };
    built.map_err(|problem| {
        let key = match problem.parameter {
            Some(parameter) => format!("params.{parameter}"),
            None if added.is_some() || registry::find(&plan.kind).is_some() => "params".to_owned(),
            None => "kind".to_owned(),
        };
        Error::invalid(format!("rate_controllers[{port}].{key}"), problem.found, problem.expected)
    })
}

/// Returns the next time after `now` at which an outage starts or ends.
fn next_outage(plan: &ControllerPlan, now: Time) -> Time {
    plan.outages.iter().flat_map(|&(from, to)| [from, to]).filter(|&t| t > now).min().unwrap_or(Time::NEVER)
}
