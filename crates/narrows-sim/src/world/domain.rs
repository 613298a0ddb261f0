//! The SDN controllers. There is at most one SDN controller for each kind of rate controller. An SDN controller and its
//! switches exchange messages. A message arrives after the control delay of the plan.
//!
//! The event loop calls `message_event` for each Domain event. If a rate controller has a message for its SDN
//! controller, `switches` calls `send_to_domain`.

use narrows_control::parameter::Values;
use narrows_control::rate::domain::{DomainController, Settings, Topology};
use narrows_control::rate::{self, PortId, registry};
use narrows_control::units::{Bytes, Span, Time};

use super::World;
use super::flow_table::FlowTable;
use crate::engine::{Kind, Ring};
use crate::error::Error;
use crate::flow::FlowIndex;
use crate::net::{Paths, Port};
use crate::plan::{Plan, SdnPlan};

/// Lowest index of Domain events that deliver notices. Lower indices are those of SDN controllers.
pub(super) const NOTICES_FROM: u32 = 16;

/// A message between a rate controller and its SDN controller.
pub(super) type Message = rate::Message<FlowIndex>;

/// An SDN controller, the messages between it and its switches, and its outages.
pub(super) struct Domain {
    /// The SDN controller serves all rate controllers of this kind. `ports` lists their ports and parameters.
    kind: String,
    ports: Vec<(PortId, Values)>,
    /// The controller; `None` during an outage.
    controller: Option<Box<dyn DomainController<FlowIndex>>>,
    settings: Settings,
    delay: Span,
    outages: Vec<(Time, Time)>,
    /// Messages that have not arrived yet, in order of arrival: (arrival time, port, message).
    to_controller: Ring<(Time, PortId, Message)>,
    to_switch: Ring<(Time, PortId, Message)>,
    /// Time of the pending Domain event.
    event_at: Time,
    out: Vec<(PortId, Message)>,
}

impl Domain {
    /// Creates the SDN controller for all rate controllers of this kind. Returns `None` if this kind has no SDN
    /// controller.
    fn new(plan: &Plan, sdn: &SdnPlan, kind: &str, now: Time) -> Result<Option<Self>, Error> {
        let numbered = (0..).zip(&plan.rate_controllers);
        let ports = numbered.filter(|(_, c)| c.kind == kind).map(|(port, c)| (port, c.params.clone()));
        let mut domain = Domain {
            kind: kind.to_owned(),
            ports: ports.collect(),
            controller: None,
            settings: Settings { poll: sdn.poll },
            delay: sdn.delay,
            outages: sdn.outages.clone(),
            to_controller: Ring::new(),
            to_switch: Ring::new(),
            event_at: Time::NEVER,
            out: Vec::new(),
        };
        domain.controller = domain.build(now)?;
        Ok(domain.controller.is_some().then_some(domain))
    }

    /// Builds a new SDN controller. The new controller has no record of any flow.
    fn build(&self, now: Time) -> Result<Option<Box<dyn DomainController<FlowIndex>>>, Error> {
        registry::build_domain(&self.kind, &self.ports, &self.settings, Bytes::new(1500), now).map_err(
            |problem| Error::invalid(format!("params of {:?}", self.kind), problem.found, problem.expected),
        )
    }

    fn controls(&self, port: PortId) -> bool {
        self.ports.iter().any(|(controlled, _)| *controlled == port)
    }

    /// Starts or ends an outage, if one is due. After an outage, the SDN controller restarts without state.
    fn fail_or_recover(&mut self, now: Time) {
        let has_failed = self.outages.iter().any(|&(from, to)| from <= now && now < to);
        if has_failed {
            self.controller = None;
        } else if self.controller.is_none() {
            // The parameters cannot be invalid, because the run has already built a controller from them.
            self.controller = self.build(now).ok().flatten();
        }
    }

    /// Passes the messages that have arrived to the SDN controller, and runs its timer if it is due. Adds the
    /// controller's answers to `out`.
    fn react(&mut self, now: Time, routes: &Routes<'_>) {
        while let Some((_, from, message)) = take_arrived(&mut self.to_controller, now) {
            if let Some(controller) = &mut self.controller {
                controller.on_message(now, from, &message, routes, &mut self.out);
            }
        }
        if let Some(controller) = &mut self.controller
            && controller.next_timer() <= now
        {
            controller.on_timer(now, routes, &mut self.out);
        }
    }

    /// Returns the time at which a new Domain event must be scheduled. Returns `None` if the pending event is early
    /// enough.
    fn schedule(&mut self, now: Time) -> Option<Time> {
        let heads = [&self.to_controller, &self.to_switch].map(|q| q.front().map_or(Time::NEVER, |m| m.0));
        let timer = self.controller.as_ref().map_or(Time::NEVER, |c| c.next_timer());
        let outage = self.outages.iter().flat_map(|&(a, b)| [a, b]).filter(|&t| t > now).min();
        let next = heads[0].min(heads[1]).min(timer).min(outage.unwrap_or(Time::NEVER));
        let next = next.max(now + Span::from_nanos(1));
        (next < self.event_at).then(|| {
            self.event_at = next;
            next
        })
    }
}

/// If the first message in the queue has arrived, removes this message and returns it.
fn take_arrived(queue: &mut Ring<(Time, PortId, Message)>, now: Time) -> Option<(Time, PortId, Message)> {
    if queue.front()?.0 <= now { queue.pop_front() } else { None }
}

/// Tells the SDN controllers which ports the path of a flow uses.
struct Routes<'w> {
    flows: &'w FlowTable,
    paths: &'w Paths,
    ports: &'w [Port],
}

impl Topology<FlowIndex> for Routes<'_> {
    fn path(&self, key: &FlowIndex) -> Vec<PortId> {
        let Some(flow) = self.flows.find(key) else { return Vec::new() };
        let links = self.paths.links_of(flow.forward());
        links.iter().filter_map(|&link| self.ports[link as usize].switch).collect()
    }
}

impl World<'_> {
    pub(super) fn start_domains(&mut self) -> Result<(), Error> {
        let Some(sdn) = &self.plan.sdn else { return Ok(()) };
        let mut kinds: Vec<&str> = self.plan.rate_controllers.iter().map(|c| c.kind.as_str()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        for kind in kinds {
            if let Some(domain) = Domain::new(self.plan, sdn, kind, self.now)? {
                self.domains.push(domain);
                self.schedule_domain(self.domains.len() - 1);
            }
        }
        Ok(())
    }

    pub(super) fn send_to_domain(&mut self, from: PortId, message: Message) {
        let Some(index) = self.domains.iter().position(|domain| domain.controls(from)) else { return };
        self.switches[from as usize].signalling.count_message(&message);
        let domain = &mut self.domains[index];
        domain.to_controller.push_back((self.now + domain.delay, from, message));
        self.schedule_domain(index);
    }

    /// Handles a Domain event. The event delivers a notice to a source, or it concerns an SDN controller.
    pub(super) fn message_event(&mut self, index: u32) {
        match index.checked_sub(NOTICES_FROM) {
            Some(notice) => self.notice_event(notice),
            None => self.domain_event(index as usize),
        }
    }

    /// Handles an event of an SDN controller. The event can be an expired timer, or the start or end of an outage. It
    /// can also be a message that arrives at the controller or at a switch.
    fn domain_event(&mut self, index: usize) {
        let World { domains, flows, paths, ports, switches, now, .. } = self;
        let (domain, now) = (&mut domains[index], *now);
        if domain.event_at != now {
            return;
        }
        domain.event_at = Time::NEVER;
        domain.fail_or_recover(now);
        domain.react(now, &Routes { flows, paths, ports });
        let arrives = now + domain.delay;
        for (port, message) in domain.out.drain(..) {
            if let Some(switch) = switches.get_mut(port as usize) {
                switch.signalling.count_message(&message);
            }
            domain.to_switch.push_back((arrives, port, message));
        }
        while let Some((_, port, message)) = take_arrived(&mut self.domains[index].to_switch, now) {
            self.message_to_switch(port, &message);
        }
        self.schedule_domain(index);
    }

    fn schedule_domain(&mut self, index: usize) {
        if let Some(at) = self.domains[index].schedule(self.now) {
            self.events.push(at, Kind::Domain, index as u32);
        }
    }
}
