//! The SDN controller of the domain as a node of its own: it hears and says everything a control delay later.

use narrows_control::rate::brf::congestion::Thresholds;
use narrows_control::rate::brf::{self};
use narrows_control::rate::sdn::{Params, Sdn};
use narrows_control::rate::{Message, PortId};
use narrows_control::units::{Bytes, Span, Time};
use serde::Deserialize;

use super::World;
use crate::engine::{Kind, Ring};
use crate::error::Error;
use crate::plan::SdnPlan;

/// The controller, its control network and its outages.
pub(super) struct Domain {
    controller: Option<Sdn>,
    params: Params,
    delay: Span,
    outages: Vec<(Time, Time)>,
    /// Under way, in order of arrival: (when, port, message).
    to_controller: Ring<(Time, PortId, Message)>,
    to_switch: Ring<(Time, PortId, Message)>,
    /// A Domain event is pending for this time.
    event_at: Time,
    out: Vec<(PortId, Message)>,
}

/// The next message that has arrived.
fn arrived(queue: &mut Ring<(Time, PortId, Message)>, now: Time) -> Option<(Time, PortId, Message)> {
    if queue.front()?.0 <= now { queue.pop_front() } else { None }
}

impl World<'_> {
    pub(super) fn start_domain(&mut self) -> Result<(), Error> {
        let Some(plan) = &self.plan.sdn else { return Ok(()) };
        let params = self.domain_params(plan)?;
        let ports = 0..self.switches.len() as PortId;
        self.domain = Some(Domain {
            controller: Some(Sdn::new(params.clone(), ports, self.now)),
            params,
            delay: plan.delay,
            outages: plan.outages.clone(),
            to_controller: Ring::new(),
            to_switch: Ring::new(),
            event_at: Time::NEVER,
            out: Vec::new(),
        });
        self.schedule_domain();
        Ok(())
    }

    /// The detector's thresholds are those of the switches; the poll period is the controller's own.
    fn domain_params(&self, plan: &SdnPlan) -> Result<Params, Error> {
        let brf = match self.plan.controllers.first() {
            Some(c) if !c.params.is_null() => brf::Params::deserialize(&c.params).map_err(|e| {
                Error::Parameters { what: "controllers[0].params".into(), trouble: e.to_string() }
            })?,
            _ => brf::Params::resolved(),
        };
        Ok(Params { poll: plan.poll.unwrap_or(brf.poll), thresholds: Thresholds::of(&brf, Bytes::new(1500)) })
    }

    pub(super) fn send_to_domain(&mut self, from: PortId, message: Message) {
        if let Some(domain) = &mut self.domain {
            domain.to_controller.push_back((self.now + domain.delay, from, message));
            self.schedule_domain();
        }
    }

    /// Something arrives at the controller or at a switch, the controller polls, or an outage begins or ends.
    pub(super) fn domain_event(&mut self) {
        let Some(domain) = &mut self.domain else { return };
        if domain.event_at != self.now {
            return;
        }
        domain.event_at = Time::NEVER;
        let out_of_order = domain.outages.iter().any(|&(from, to)| from <= self.now && self.now < to);
        match (&domain.controller, out_of_order) {
            (Some(_), true) => domain.controller = None,
            (None, false) => {
                let ports = 0..self.switches.len() as PortId;
                domain.controller = Some(Sdn::new(domain.params.clone(), ports, self.now));
            }
            _ => {}
        }
        while let Some((_, from, message)) = arrived(&mut domain.to_controller, self.now) {
            if let Some(controller) = &mut domain.controller {
                controller.on_message(self.now, from, &message, &mut domain.out);
            }
        }
        if let Some(controller) = &mut domain.controller
            && controller.next_timer() <= self.now
        {
            controller.on_timer(self.now, &mut domain.out);
        }
        let arrives = self.now + domain.delay;
        domain.to_switch.extend(domain.out.drain(..).map(|(port, message)| (arrives, port, message)));
        while let Some((_, port, message)) =
            self.domain.as_mut().and_then(|d| arrived(&mut d.to_switch, self.now))
        {
            self.message_to_switch(port, &message);
        }
        self.schedule_domain();
    }

    fn schedule_domain(&mut self) {
        let Some(domain) = &mut self.domain else { return };
        let heads =
            [&domain.to_controller, &domain.to_switch].map(|q| q.front().map_or(Time::NEVER, |m| m.0));
        let poll = domain.controller.as_ref().map_or(Time::NEVER, Sdn::next_timer);
        let outage = domain.outages.iter().flat_map(|&(a, b)| [a, b]).filter(|&t| t > self.now).min();
        let next = heads[0].min(heads[1]).min(poll).min(outage.unwrap_or(Time::NEVER));
        let next = next.max(self.now + Span::from_nanos(1));
        if next < domain.event_at {
            domain.event_at = next;
            self.events.push(next, Kind::Domain, 0);
        }
    }
}
