//! The SDN controllers of the domain, at most one for each kind of rate controller. Every message between a controller and
//! a switch takes a control delay.
//!
//! The event loop calls `message_event`. Actions of rate controllers call `send_to_domain`.

use narrows_control::rate::domain::{DomainController, Settings, Topology};
use narrows_control::rate::{self, PortId, registry};
use narrows_control::units::{Bytes, Span, Time};

use super::World;
use super::flow_table::FlowTable;
use super::flows::Source;
use crate::engine::{Kind, Ring};
use crate::error::Error;
use crate::flow::FlowIndex;
use crate::net::{Paths, Port};

/// Control events with this index or a higher one are notices to sources.
pub(super) const NOTICES_FROM: u32 = 16;

/// A message of a rate controller.
pub(super) type Message = rate::Message<FlowIndex>;

/// A controller, its control network and its outages.
pub(super) struct Domain {
    /// Kind of the rate controllers, and the ports that they control.
    kind: String,
    ports: Vec<PortId>,
    controller: Option<Box<dyn DomainController<FlowIndex>>>,
    settings: Settings,
    delay: Span,
    outages: Vec<(Time, Time)>,
    /// Messages under way, in order of arrival: (arrival time, port, message).
    to_controller: Ring<(Time, PortId, Message)>,
    to_switch: Ring<(Time, PortId, Message)>,
    /// Time of the pending Domain event.
    event_at: Time,
    out: Vec<(PortId, Message)>,
}

/// Takes the next message that has arrived.
fn take_arrived(queue: &mut Ring<(Time, PortId, Message)>, now: Time) -> Option<(Time, PortId, Message)> {
    if queue.front()?.0 <= now { queue.pop_front() } else { None }
}

/// The controllers' view of the routes.
struct Routes<'w> {
    flows: &'w FlowTable,
    sources: &'w [Source],
    paths: &'w Paths,
    ports: &'w [Port],
}

impl Topology<FlowIndex> for Routes<'_> {
    fn path(&self, key: &FlowIndex) -> Vec<PortId> {
        let Some(flow) = self.flows.find(key) else { return Vec::new() };
        let links = self.paths.links_of(self.sources[flow.meta.plan as usize].forward());
        links.iter().filter_map(|&link| self.ports[link as usize].switch).collect()
    }
}

impl World<'_> {
    pub(super) fn start_domains(&mut self) -> Result<(), Error> {
        let Some(plan) = &self.plan.sdn else { return Ok(()) };
        let mut kinds: Vec<&str> = self.plan.rate_controllers.iter().map(|c| c.kind.as_str()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        for kind in kinds {
            let of_kind = |i: &u32| self.plan.rate_controllers[*i as usize].kind == kind;
            let ports: Vec<PortId> = (0..self.switches.len() as PortId).filter(of_kind).collect();
            let settings = Settings { poll: plan.poll };
            let Some(controller) = self.build_domain(kind, &ports, &settings)? else { continue };
            self.domains.push(Domain {
                kind: kind.to_owned(),
                ports,
                controller: Some(controller),
                settings,
                delay: plan.delay,
                outages: plan.outages.clone(),
                to_controller: Ring::new(),
                to_switch: Ring::new(),
                event_at: Time::NEVER,
                out: Vec::new(),
            });
            self.schedule_domain(self.domains.len() - 1);
        }
        Ok(())
    }

    /// A new controller of these ports, without any state.
    fn build_domain(
        &self,
        kind: &str,
        ports: &[PortId],
        settings: &Settings,
    ) -> Result<Option<Box<dyn DomainController<FlowIndex>>>, Error> {
        let none = serde_json::Value::Object(serde_json::Map::new());
        let params = ports.iter().map(|&port| {
            let params = &self.plan.rate_controllers[port as usize].params;
            (port, if params.is_null() { none.clone() } else { params.clone() })
        });
        registry::build_domain(kind, params.collect(), settings, Bytes::new(1500), self.now)
            .map_err(|e| Error::Parameters { what: format!("params of {kind:?}"), reason: e.to_string() })
    }

    pub(super) fn send_to_domain(&mut self, from: PortId, message: Message) {
        let Some(index) = self.domains.iter().position(|domain| domain.ports.contains(&from)) else { return };
        self.switches[from as usize].signalling.count_message(&message);
        let domain = &mut self.domains[index];
        domain.to_controller.push_back((self.now + domain.delay, from, message));
        self.schedule_domain(index);
    }

    /// Handles the arrival of a message on the control network, or a controller's timer.
    pub(super) fn message_event(&mut self, index: u32) {
        match index.checked_sub(NOTICES_FROM) {
            Some(notice) => self.notice_event(notice),
            None => self.domain_event(index as usize),
        }
    }

    /// Handles messages that arrive at the controller or at a switch, the controller's timer, and outages.
    fn domain_event(&mut self, index: usize) {
        if self.domains[index].event_at != self.now {
            return;
        }
        self.domains[index].event_at = Time::NEVER;
        self.fail_or_recover(index);
        let World { domains, flows, sources, paths, ports, switches, now, .. } = self;
        let (domain, now) = (&mut domains[index], *now);
        let routes = Routes { flows, sources, paths, ports };
        while let Some((_, from, message)) = take_arrived(&mut domain.to_controller, now) {
            if let Some(controller) = &mut domain.controller {
                controller.on_message(now, from, &message, &routes, &mut domain.out);
            }
        }
        if let Some(controller) = &mut domain.controller
            && controller.next_timer() <= now
        {
            controller.on_timer(now, &routes, &mut domain.out);
        }
        let arrives = now + domain.delay;
        for (port, message) in domain.out.drain(..) {
            if let Some(switch) = switches.get_mut(port as usize) {
                switch.signalling.count_message(&message);
            }
            domain.to_switch.push_back((arrives, port, message));
        }
        while let Some((_, port, message)) = take_arrived(&mut self.domains[index].to_switch, self.now) {
            self.message_to_switch(port, &message);
        }
        self.schedule_domain(index);
    }

    fn fail_or_recover(&mut self, index: usize) {
        let domain = &self.domains[index];
        let has_failed = domain.outages.iter().any(|&(from, to)| from <= self.now && self.now < to);
        if has_failed {
            self.domains[index].controller = None;
        } else if domain.controller.is_none() {
            // The parameters were valid at the start.
            let fresh = self.build_domain(&domain.kind, &domain.ports, &domain.settings);
            self.domains[index].controller = fresh.ok().flatten();
        }
    }

    fn schedule_domain(&mut self, index: usize) {
        let domain = &mut self.domains[index];
        let heads =
            [&domain.to_controller, &domain.to_switch].map(|q| q.front().map_or(Time::NEVER, |m| m.0));
        let timer = domain.controller.as_ref().map_or(Time::NEVER, |c| c.next_timer());
        let outage = domain.outages.iter().flat_map(|&(a, b)| [a, b]).filter(|&t| t > self.now).min();
        let next = heads[0].min(heads[1]).min(timer).min(outage.unwrap_or(Time::NEVER));
        let next = next.max(self.now + Span::from_nanos(1));
        if next < domain.event_at {
            domain.event_at = next;
            self.events.push(next, Kind::Domain, index as u32);
        }
    }
}
