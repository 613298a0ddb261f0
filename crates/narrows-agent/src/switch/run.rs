//! The switch agent: the control loop with its data plane, its ports and its connection to the SDN controller.

mod controlled;
mod interfaces;
mod pins;
mod reload;
mod start;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;

use libbpf_rs::RingBufferBuilder;
use narrows_control::feedback::code::RateCode;
use narrows_control::rate::kit::lifecycle;
use narrows_control::rate::{Action, Class, LEAVES, Leaf, Message, Queueing};
use narrows_control::units::{Bytes, Rate, Span, Time};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use controlled::Controlled;
use interfaces::Interfaces;

use super::core::{Asked, Switch};
use super::link::Link;
use super::messages::Messages;
use super::policers;
use super::reports::{self, Reported};
use super::view::{self, Meters, UNOPENED};
use crate::clock;
use crate::config;
use crate::dataplane::layout::{GRANTS, Key};
use crate::dataplane::program;
use crate::dataplane::slots::announced_slot;
use crate::events;
use crate::guard::Guardian;
use crate::services::{Failure, Services};
use crate::status::{RateRequest, Snapshot};

/// Shortest time between two iterations of the loop, and between two reactions to new flows.
const LEAST_PAUSE: Span = Span::from_millis(1);
/// The counters and the clock must be read within this time. If reading takes longer, both are read again.
const PROMPT: Span = Span::from_micros(100);
/// Largest number of repeated readings. On a very busy machine, all of them may take longer than [`PROMPT`]. In this
/// case, the last reading is used.
const RECOUNTS: usize = 3;
/// Shortest time between two updates of the services' grants. The grants depend on averages over finished flows. These
/// averages change slowly.
const SERVICES_EVERY: Span = Span::from_millis(500);
/// Except in a flood, the limit on unconfirmed flows is at least this number. If there are more confirmed flows than
/// this, the limit is the number of confirmed flows.
const UNCONFIRMED_MIN: u32 = lifecycle::UNCONFIRMED_MIN as u32;
/// Largest number of unconfirmed flows in a flood. In a flood, almost all unconfirmed flows are forged, but each takes
/// the share of a new flow for a while. A real flow that is refused gets a slot with its first data.
const UNCONFIRMED_IN_FLOOD: u32 = 8;
/// A flood is over when no flow was refused for this time.
const FLOOD_OVER: Span = Span::from_secs(1);

/// Allowed link rates in bytes/s: from the least rate of an HTB class to 1 Tbit/s.
const LINK_RATES: RangeInclusive<u64> = 1_500..=125_000_000_000;

/// A running switch.
pub struct Runner {
    switch: Switch<program::Switch>,
    interfaces: Interfaces,
    ports: Vec<Controlled>,
    link: Option<Link>,
    messages: Messages,
    meters: Meters,
    tick: Span,
    /// The configuration in force.
    config: config::Switch,
    started: Time,
    times: crate::status::LoopTimes,
    asked: Vec<Asked>,
    services_at: Time,
}

impl Runner {
    /// Runs until [`Services::stop`] asks to stop.
    ///
    /// # Errors
    /// If the kernel refuses an operation. A vanished interface is no error, because the switch continues without it.
    pub fn run(&mut self, services: &mut Services) -> Result<(), Failure> {
        // Slots that the program has announced, and that the loop has not opened yet.
        let waiting: Rc<RefCell<Vec<u32>>> = Rc::default();
        let slots = Rc::clone(&waiting);
        let mut builder = RingBufferBuilder::new();
        builder.add(self.switch.table().bells(), move |bell| {
            slots.borrow_mut().extend(announced_slot(bell));
            0
        })?;
        let bells = builder.build()?;
        // SAFETY: the descriptor belongs to `bells`, which outlives all its uses in this function.
        #[allow(unsafe_code)]
        let bell_fd = unsafe { BorrowedFd::borrow_raw(bells.epoll_fd()) };
        let mut next = clock::now();
        let (mut last, mut answered) = (Time::ZERO, Time::ZERO);
        while !services.stop.requested() {
            let due = next.min(self.switch.next_timer()).max(last + LEAST_PAUSE);
            if waiting.borrow().is_empty() {
                sleep_until(due, &[services.stop.as_fd(), bell_fd])?;
            } else {
                // Announcements during this wait are handled at its end.
                sleep_until(due.min(answered + LEAST_PAUSE), &[services.stop.as_fd()])?;
            }
            bells.consume()?;
            let now = clock::now();
            if now >= answered + LEAST_PAUSE && !waiting.borrow().is_empty() {
                answered = now;
                let new = waiting.take();
                self.switch.newcomers(now, &new, &mut self.asked);
                if let Err(error) = self.carry_out()
                    && !self.lost_interface(services)?
                {
                    return Err(error);
                }
                self.publish_grants(now);
            }
            if now >= due {
                if let Err(error) = self.turn(services)
                    && !self.lost_interface(services)?
                {
                    return Err(error);
                }
                last = now;
                next = if now.since(next) > self.tick { now + self.tick } else { next + self.tick };
                self.show(services, now);
                self.times.record(clock::now().since(now));
            }
        }
        Ok(())
    }

    /// Performs one iteration of the loop.
    fn turn(&mut self, services: &mut Services) -> Result<(), Failure> {
        self.reload(services, clock::now())?;
        self.look_for_interfaces(&mut services.guardian)?;
        self.set_rates(services.board.take_rates());
        let now = self.refresh(&mut services.guardian)?;
        while let Some(message) = self.link.as_ref().and_then(Link::try_recv) {
            self.apply_message(now, &message);
        }
        self.switch.tick(now, &mut self.asked);
        self.carry_out()?;
        self.publish_grants(now);
        self.publish_services(now);
        if let Some(link) = &mut self.link
            && link.wants_flows(now)
        {
            self.meters.look(now, &self.switch);
            link.list_flows(now, &self.switch, &self.meters);
        }
        Ok(())
    }

    /// Reads the counters of queues and program, and returns the time of reading. The controllers divide counts by
    /// time. A delay between reading counters and clock would look like a burst, so a slow reading is repeated.
    fn refresh(&mut self, guardian: &mut Guardian) -> Result<Time, Failure> {
        self.lose_ports_without_queue(guardian)?;
        self.count_reports();
        let (mut counted, mut at) = self.count();
        for _ in 0..RECOUNTS {
            if clock::now().since(at) <= PROMPT {
                break;
            }
            (counted, at) = self.count();
        }
        for ((port, core), arrived) in self.ports.iter().zip(self.switch.ports_mut()).zip(counted) {
            port.framing.count(&port.stats, &mut core.counters);
            let before = core.counters.arrived[Leaf::Udp as usize];
            core.counters.arrived = arrived;
            core.udp = core.counters.arrived[Leaf::Udp as usize] - before;
        }
        Ok(at)
    }

    /// On a switch without state per flow, adds the new designated packets to each port.
    fn count_reports(&mut self) {
        if self.config.keeps_flows() {
            return;
        }
        let records = &self.switch.table().ports;
        let counted: Vec<_> = (0u8..)
            .zip(&mut self.ports)
            .map(|(number, port)| {
                let now =
                    records.get(number).map(|record| Reported::of(&record.counters())).unwrap_or_default();
                now.since(std::mem::replace(&mut port.reported, now))
            })
            .collect();
        for (port, new) in self.switch.ports_mut().iter_mut().zip(counted) {
            reports::add(&mut port.reports, &new);
        }
    }

    /// Returns the bytes that arrived, by port and leaf, and the time just before the reading.
    fn count(&self) -> (Vec<[Bytes; LEAVES]>, Time) {
        let at = clock::now();
        let records = &self.switch.table().ports;
        let arrived = |port| records.get(port).map(|port| port.counters().arrived_bytes).unwrap_or_default();
        ((0u8..).take(self.ports.len()).map(|port| arrived(port).map(Bytes::new)).collect(), at)
    }

    fn apply_message(&mut self, now: Time, message: &Message) {
        let ports = 0..self.ports.len();
        match message {
            Message::Congestion { port, .. } | Message::Grants { port, .. } => {
                self.switch.on_message(now, *port as usize, message, &mut self.asked);
            }
            _ => ports.for_each(|port| self.switch.on_message(now, port, message, &mut self.asked)),
        }
        let Message::FlowAdvertisement { key, .. } = message else { return };
        // The controller's decision for a flow with a slot already includes the advertised rate.
        let advert = self.switch.ports().iter().find_map(|port| port.controller.advertised(now, key));
        let advert = advert.map(|(rate, until)| (RateCode::encode(rate), until));
        if let Err(error) = self.switch.table().set_advert(&Key::new(key, 0), advert) {
            tracing::warn!(event = "advert-failed", %error);
        }
    }

    /// Carries out the controllers' actions.
    fn carry_out(&mut self) -> Result<(), Failure> {
        for Asked { port: number, action } in self.asked.drain(..) {
            let Some(port) = self.ports.get_mut(number) else { continue };
            events::action(&port.interface, &mut port.repetitions, &action);
            match &action {
                Action::SetClass { class, rate, ceil } => {
                    port.wanted[*class as usize] = (*rate, *ceil);
                    port.changed = true;
                    let record = u8::try_from(number).ok().and_then(|n| self.switch.table().ports.get(n));
                    let Some(record) = record else { continue };
                    match class {
                        Class::Udp => {
                            let queues = self.switch.ports().get(number).is_some_and(|p| {
                                p.controller.requirements().queueing == Queueing::Classes { queues_udp: true }
                            });
                            record.set_udp_policing(port.capacity.is_none() || !queues);
                            let capacity = port.capacity.unwrap_or(*rate);
                            let (rate, burst) = policers::udp(*ceil, capacity, Bytes::new(port.framing.mtu));
                            record.set_udp(rate, burst);
                        }
                        // Other TCP may borrow the whole link, so its ceiling is the link's rate.
                        Class::OtherTcp => {
                            let (rate, burst) = policers::syn(*ceil, port.syn_share);
                            record.set_syn(rate, burst);
                        }
                        Class::Rated => {}
                    }
                }
                Action::ToController(message) => {
                    if let Some(link) = &mut self.link {
                        link.send(message);
                    }
                }
                Action::ToSource { flow, rate } => {
                    self.messages.send(&self.switch.table().slots, flow, *rate);
                }
                Action::Record { .. } | Action::State { .. } => {}
                Action::Log { event, .. } => match *event {
                    "congestion-queue" => port.congestion = "queue",
                    "congestion-burst" => port.congestion = "burst",
                    "congestion-end" => port.congestion = "none",
                    _ => {}
                },
            }
        }
        if let Some(link) = &mut self.link {
            link.flush();
        }
        for port in self.ports.iter_mut().filter(|port| port.changed) {
            port.give_classes()?;
        }
        Ok(())
    }

    /// Sets new link rates and answers the requests. A request with an invalid rate changes nothing.
    fn set_rates(&mut self, requests: Vec<RateRequest>) {
        for request in requests {
            let checked = self.check_rates(&request.rates);
            let answer = checked.and_then(|()| {
                request.rates.iter().try_for_each(|(interface, rate)| self.set_rate(interface, *rate))
            });
            if let Err(error) = &answer {
                tracing::warn!(event = "rate-refused", error);
            }
            request.answer(answer);
        }
    }

    fn check_rates(&self, rates: &BTreeMap<String, Rate>) -> Result<(), String> {
        for (interface, rate) in rates {
            let Some(port) = self.ports.iter().find(|port| port.interface == *interface) else {
                let known: Vec<_> = self.ports.iter().map(|port| port.interface.as_str()).collect();
                let known = known.join(", ");
                return Err(format!("rates: found {interface:?}, expected a controlled port: {known}"));
            };
            if !port.shaped {
                return Err(format!(
                    "rates.{interface}: found a port whose capacity is measured, expected one with `rate` or `shape`"
                ));
            }
            let found = rate.as_bytes_per_sec();
            if !LINK_RATES.contains(&found) {
                let (least, most) = LINK_RATES.into_inner();
                return Err(format!(
                    "rates.{interface}: found {found}, expected from {least} to {most} bytes/s"
                ));
            }
        }
        Ok(())
    }

    fn set_rate(&mut self, interface: &str, rate: Rate) -> Result<(), String> {
        let mut found = self.ports.iter_mut().zip(self.switch.ports_mut());
        let Some((port, core)) = found.find(|(port, _)| port.interface == interface) else { return Ok(()) };
        let before = port.link();
        if let Err(error) = port.set_link(rate) {
            // If the kernel refuses the old rate, too, the interface is gone. The loop soon notices this.
            let _ = port.set_link(before);
            return Err(format!("rates.{interface}: the kernel refused this rate: {error}"));
        }
        if port.capacity.is_some() {
            core.counters.capacity = port.capacity;
        }
        tracing::info!(event = "rate-set", port = interface, value = rate.as_bytes_per_sec());
        Ok(())
    }

    /// Publishes the ready grants, the limit for unconfirmed flows and the heartbeat.
    fn publish_grants(&mut self, now: Time) {
        let flows = self.switch.work().live as u32;
        let held = (0u8..).zip(&self.ports).filter_map(|(n, _)| self.switch.table().ports.get(n));
        let unconfirmed: u32 = held.map(|port| port.counters().unconfirmed).sum();
        // Both `flows` and `unconfirmed` are sums over all ports.
        let confirmed = flows.saturating_sub(unconfirmed);
        for number in 0..self.ports.len() {
            let grants = self.switch.grants::<GRANTS>(number);
            let common = self.switch.common_rate(now, number);
            let Some(record) = u8::try_from(number).ok().and_then(|n| self.switch.table().ports.get(n))
            else {
                continue;
            };
            let counters = record.counters();
            let Some(port) = self.ports.get_mut(number) else { continue };
            if counters.refused != port.refused.0 {
                port.refused = (counters.refused, Some(now));
            }
            for ((kind, count), reported) in UNOPENED.iter().zip(counters.unopened).zip(&mut port.unopened) {
                if count > 0 && !*reported {
                    *reported = true;
                    events::unopened(&port.interface, kind.encapsulation, kind.advice);
                }
            }
            let flood = port.refused.1.is_some_and(|last| now.since(last) < FLOOD_OVER);
            record.set_unconfirmed_max(if flood {
                UNCONFIRMED_IN_FLOOD
            } else {
                confirmed.max(UNCONFIRMED_MIN)
            });
            if let Some(common) = common {
                record.set_common(common);
            }
            record.set_grants(grants);
            record.beat(now);
        }
        if let Some(record) = self.switch.table().ports.get(interfaces::PLAIN) {
            record.beat(now);
        }
    }

    /// Publishes the ready grants of services that are expected to need less than the port's ready grant.
    fn publish_services(&mut self, now: Time) {
        if now.since(self.services_at) < SERVICES_EVERY {
            return;
        }
        self.services_at = now;
        for (service, code) in self.switch.service_grants() {
            let Ok(port) = u8::try_from(service.port) else { continue };
            let set = self.switch.table().set_service(port, service.network, service.number, code);
            if let Err(error) = set {
                tracing::warn!(event = "service-grant-failed", %error);
            }
        }
    }

    /// Publishes the state if a reader wants it.
    fn show(&mut self, services: &Services, now: Time) {
        let (wanted, with_flows) = services.board.wanted(now);
        if wanted {
            self.meters.look(now, &self.switch);
            services.board.publish(self.snapshot(now, with_flows));
        }
    }

    fn snapshot(&self, now: Time, with_flows: bool) -> Snapshot {
        let mut ports: Vec<_> = self
            .ports
            .iter()
            .zip(self.switch.ports())
            .map(|(port, core)| {
                view::port(
                    &port.interface,
                    &*core.controller,
                    self.config.keeps_flows(),
                    &port.stats,
                    port.wanted.map(|(rate, _)| rate),
                    port.congestion,
                )
            })
            .collect();
        for (number, port) in (0u8..).zip(&mut ports) {
            if let Some(record) = self.switch.table().ports.get(number) {
                port.counters = view::counters(&record.counters());
            }
        }
        let mut flows = Vec::new();
        for flow in self.switch.flows() {
            let (Some(port), Some(shown)) = (self.ports.get(flow.port), ports.get_mut(flow.port)) else {
                continue;
            };
            shown.flows[flow.orders.leaf as usize] += 1;
            if with_flows {
                flows.push(view::flow(&flow, &port.interface, self.meters.of(&flow), &port.stats));
            }
        }
        Snapshot {
            role: "switch".into(),
            name: self.config.common.name.clone(),
            at: now,
            started: self.started,
            loop_times: self.times.clone(),
            ports,
            interfaces: self.interfaces.status(),
            namespaces: Vec::new(),
            flow_count: self.switch.work().live as u64,
            flows,
            counters: vec![
                ("release_failures".into(), self.switch.work().release_failures),
                ("messages".into(), self.messages.sent),
                ("messages_unsent".into(), self.messages.unsent),
            ],
            controller: self.link.as_ref().map(Link::is_connected),
        }
    }
}

/// Waits until the time `then`, or until one of the descriptors is readable.
fn sleep_until(then: Time, readable: &[BorrowedFd<'_>]) -> Result<(), Failure> {
    let now = clock::now();
    if now >= then {
        return Ok(());
    }
    let mut fds: Vec<_> = readable.iter().map(|fd| PollFd::new(*fd, PollFlags::POLLIN)).collect();
    // Round up, because no work is due before `then`.
    let ms = u16::try_from(then.since(now).as_nanos().div_ceil(1_000_000)).unwrap_or(u16::MAX);
    match poll(&mut fds, PollTimeout::from(ms)) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
