//! The logic of the control loop. The loop reads slots and computes the orders that the program follows for each flow.
//! The caller carries out the rate controllers' actions.
//!
//! A tick occurs every 10 ms by default, and when a controller's timer is due. In each tick, the loop visits each live
//! slot once. It reports the program's counts to the port's controller, and writes the controller's decisions into the
//! slots. Between ticks, the program announces new flows ("newcomers"). The loop then updates the decisions for all
//! other flows without waiting for the next tick. The loop needs system calls for a slot only when its flow ends.

use narrows_control::feedback::code::RateCode;
use narrows_control::rate::aggregate::{Aggregated, Decision, Reports, Standing};
use narrows_control::rate::{Action, FlowKey, Message, PortCounters};
use narrows_control::units::{Bytes, Span, Time};

use crate::dataplane::layout::newcomers_up_to;

use super::services::{Service, Services};
use super::shadow::{Opening, Openings, Shadow};
use super::story::Teller;
use super::table::{Flags, FlowTable, Orders};

/// In this time, the loop scans all slots once, a part of them in each tick. The scan finds flows whose announcement
/// was lost, flows that a controller has removed, and decisions that changed without an event.
const SCAN_EVERY: Span = Span::from_millis(200);
/// A flow that the controller does not accept within this time loses its slot.
const UNKNOWN_FOR: Span = Span::from_secs(5);
/// If the controller keeps a flow for this time, the loop treats the flow as real, even if the flow's ACKs take another
/// path (BRF-63).
const CONFIRMED_AFTER: Span = Span::from_secs(4);
/// Largest number of services with their own grant (the size of the program's table).
const SERVICES: usize = 1024;
/// Shortest time between two reports about a flow that sends only packets without data (keepalives).
const MENTION_EVERY: Span = Span::from_secs(10);

/// A controlled port.
pub struct Port {
    /// The port's controller.
    pub controller: Box<dyn Aggregated>,
    /// Counters of the port's queue and of the program, as of the last tick.
    pub counters: PortCounters,
    /// L3 bytes of UDP that arrived since the last tick.
    pub udp: Bytes,
    /// Designated packets since the last tick, if the controller counts them.
    pub reports: Reports,
    version: u64,
    /// Whether the controller's allocations have changed. If so, the orders of all flows of the port must be updated.
    changed: bool,
}

/// An action of a port's controller that the caller must carry out.
#[derive(Debug, PartialEq)]
pub struct Asked {
    /// Number of the port.
    pub port: usize,
    /// The controller's action.
    pub action: Action,
}

/// Counters of the loop's work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Number of flows that hold slots.
    pub live: usize,
    /// Number of flows that were reported in the last tick.
    pub reported: usize,
    /// Number of orders that changed in the last tick.
    pub ordered: usize,
    /// How often freeing slots or returning them to the program has failed so far.
    pub release_failures: u64,
}

/// A live flow, for display.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// The flow's slot.
    pub slot: u32,
    /// Addresses of the flow, in the data direction.
    pub key: FlowKey,
    /// Number of the port.
    pub port: usize,
    /// The program's orders for the flow.
    pub orders: Orders,
    /// L3 bytes of data up to the last report.
    pub bytes: u64,
    /// When the loop opened the flow's slot.
    pub opened: Time,
    /// The value of `bytes` when the loop opened the slot. It is above zero if the flow is older than the slot's record.
    pub bytes_at_opening: u64,
    /// Whether the port's controller knows the flow.
    pub known: bool,
}

/// All controlled ports and the flows through them.
pub struct Switch<T> {
    table: T,
    ports: Vec<Port>,
    /// The loop's record of each slot, by slot number.
    shadows: Vec<Option<Shadow>>,
    openings: Openings,
    live: Vec<u32>,
    services: Services,
    /// Whether slots that are opened now may hold flows older than the agent or the controller. This is true until the
    /// first scan has examined the whole table.
    inheriting: bool,
    /// Whether slots were added to or removed from `live` since it was sorted.
    unsorted: bool,
    /// Where the scan continues.
    scanned_to: u32,
    /// Time of the last tick; `None` before the first tick.
    ticked: Option<Time>,
    work: Work,
    actions: Vec<Action>,
}

fn orders_of(decision: &Decision) -> Orders {
    let code = decision.rate.map_or(RateCode::UNASSIGNED, RateCode::encode);
    Orders { code, leaf: decision.leaf, rtt_us: u32::try_from(decision.rtt.as_micros()).unwrap_or(u32::MAX) }
}

impl<T: FlowTable> Switch<T> {
    /// Returns a switch with these controlled ports, in the order of their numbers. `table` is empty, or holds the
    /// flows of a data plane that outlived its agent.
    pub fn new(table: T, ports: Vec<Port>) -> Self {
        let shadows = (0..table.capacity()).map(|_| None).collect();
        Switch {
            openings: Openings::new(table.capacity()),
            table,
            ports,
            shadows,
            live: Vec::new(),
            services: Services::new(SERVICES),
            inheriting: true,
            unsorted: false,
            scanned_to: 0,
            ticked: None,
            work: Work::default(),
            actions: Vec::new(),
        }
    }

    /// Returns the flow table.
    pub fn table(&self) -> &T {
        &self.table
    }

    /// Returns the ports.
    pub fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// Returns the ports, so that the caller can update their counters before a tick.
    pub fn ports_mut(&mut self) -> &mut [Port] {
        &mut self.ports
    }

    /// Returns the flow table, and mutable references to the ports.
    pub fn table_and_ports_mut(&mut self) -> (&T, &mut [Port]) {
        (&self.table, &mut self.ports)
    }

    /// Returns the counters of the last tick.
    pub fn work(&self) -> Work {
        self.work
    }

    /// Returns the live flows.
    pub fn flows(&self) -> impl Iterator<Item = Flow> + '_ {
        self.live.iter().filter_map(|slot| {
            let shadow = self.shadows.get(*slot as usize)?.as_ref()?;
            let opening = self.openings.get(*slot)?;
            Some(Flow {
                slot: *slot,
                key: opening.key,
                port: shadow.port(),
                orders: shadow.orders(),
                bytes: shadow.bytes(),
                bytes_at_opening: opening.bytes,
                opened: shadow.opened,
                known: shadow.handle.is_some(),
            })
        })
    }

    /// Starts the controllers of all ports. Call this when the ports are up.
    pub fn start(&mut self, now: Time, asked: &mut Vec<Asked>) {
        self.each_port(asked, |port, actions| port.controller.on_start(now, &port.counters, actions));
    }

    /// Returns the earliest time at which a controller needs the next [`tick`](Switch::tick).
    pub fn next_timer(&self) -> Time {
        self.ports.iter().map(|port| port.controller.next_timer()).min().unwrap_or(Time::NEVER)
    }

    /// Passes a message of the SDN controller to a port's controller.
    pub fn on_message(&mut self, now: Time, port: usize, message: &Message, asked: &mut Vec<Asked>) {
        let Some(at) = self.ports.get_mut(port) else { return };
        at.controller.on_message(now, message, &at.counters, &mut self.actions);
        asked.extend(self.actions.drain(..).map(|action| Asked { port, action }));
        self.decide_changed(now);
    }

    /// Opens announced slots. Updates the orders of all other flows, because they share the link with the new ones.
    pub fn newcomers(&mut self, now: Time, slots: &[u32], asked: &mut Vec<Asked>) {
        for slot in slots {
            self.open(now, *slot, asked);
        }
        self.decide_changed(now);
    }

    /// Adds a port with the next number. Call this when the port is up.
    pub fn add(&mut self, now: Time, mut port: Port, asked: &mut Vec<Asked>) {
        port.controller.on_start(now, &port.counters, &mut self.actions);
        let number = self.ports.len();
        asked.extend(self.actions.drain(..).map(|action| Asked { port: number, action }));
        self.ports.push(port);
    }

    /// Replaces the controller of a port. The new controller takes over the flows as if they came from an earlier
    /// agent.
    pub fn replace(
        &mut self,
        now: Time,
        port: usize,
        controller: Box<dyn Aggregated>,
        asked: &mut Vec<Asked>,
    ) {
        let Some(at) = self.ports.get_mut(port) else { return };
        (at.controller, at.version) = (controller, 0);
        at.controller.on_start(now, &at.counters, &mut self.actions);
        asked.extend(self.actions.drain(..).map(|action| Asked { port, action }));
        let is_here = |shadow: &Option<Shadow>| shadow.as_ref().is_some_and(|shadow| shadow.port() == port);
        let shadows = &mut self.shadows;
        let mut flows = Vec::new();
        self.live.retain(|slot| {
            let place = shadows.get_mut(*slot as usize).filter(|place| is_here(place));
            place.map(|place| *place = None).inspect(|()| flows.push(*slot)).is_none()
        });
        let inheriting = core::mem::replace(&mut self.inheriting, true);
        for slot in flows {
            self.open(now, slot, asked);
        }
        self.inheriting = inheriting;
        self.decide_changed(now);
    }

    /// Reports all flows, runs the controllers' timers and writes changed orders.
    pub fn tick(&mut self, now: Time, asked: &mut Vec<Asked>) {
        if self.table.begin_tick().is_err() {
            self.work.release_failures += 1;
        }
        let before = self.ticked.replace(now);
        let part = self.scan(now, before, asked);
        let since = before.unwrap_or(now);
        (self.work.reported, self.work.ordered) = (0, 0);
        self.each_port(asked, |port, actions| {
            if port.udp > Bytes::ZERO {
                port.controller.on_udp(now, port.udp, &port.counters, actions);
                port.udp = Bytes::ZERO;
            }
            if let Some(counter) = port.controller.report_counter() {
                counter.on_reports(now, &core::mem::take(&mut port.reports), &port.counters);
            }
        });
        let mut index = 0;
        while let Some(slot) = self.live.get(index).copied() {
            if self.report(now, since, slot, part.contains(&slot), asked) {
                index += 1;
            } else {
                self.release(slot);
                self.live.swap_remove(index);
                self.unsorted = true;
            }
        }
        self.each_port(asked, |port, actions| {
            if now >= port.controller.next_timer() {
                port.controller.on_timer(now, &port.counters, actions);
            }
        });
        self.decide_changed(now);
        self.work.live = self.live.len();
    }

    fn each_port(&mut self, asked: &mut Vec<Asked>, mut each: impl FnMut(&mut Port, &mut Vec<Action>)) {
        for (number, port) in self.ports.iter_mut().enumerate() {
            each(port, &mut self.actions);
            asked.extend(self.actions.drain(..).map(|action| Asked { port: number, action }));
        }
    }

    /// Scans the next part of the table, and opens live slots whose announcement was lost. Returns the range of the
    /// scanned slots.
    fn scan(&mut self, now: Time, before: Option<Time>, asked: &mut Vec<Asked>) -> core::ops::Range<u32> {
        let slots = self.table.capacity();
        let passed = before.map_or(SCAN_EVERY, |before| now.since(before).min(SCAN_EVERY));
        // At most `slots`, so the cast is exact.
        let part = (u64::from(slots) * passed.as_nanos()).div_ceil(SCAN_EVERY.as_nanos()) as u32;
        let from = if self.scanned_to < slots { self.scanned_to } else { 0 };
        let to = slots.min(from.saturating_add(part));
        for slot in from..to {
            if self.table.head(slot).live {
                self.open(now, slot, asked);
            }
        }
        self.inheriting = false;
        // Sort `live`, because a loop over it is faster if the slots are in the order of the table.
        if from == 0 && core::mem::take(&mut self.unsorted) {
            self.live.sort_unstable();
        }
        self.scanned_to = to;
        from..to
    }

    /// Opens a slot: creates the loop's record, and reports the flow's beginning to the controller.
    fn open(&mut self, now: Time, slot: u32, asked: &mut Vec<Asked>) {
        let Some(place) = self.shadows.get_mut(slot as usize).filter(|place| place.is_none()) else { return };
        let head = self.table.head(slot);
        let owner = self.table.owner(slot).filter(|(_, port)| *port < self.ports.len());
        let Some((key, port)) = owner.filter(|_| head.live) else { return };
        let tail = self.table.tail(slot);
        let Ok(number) = u8::try_from(port) else { return };
        let mut shadow = Shadow::new(now, slot, number, head.flags, &tail);
        if self.inheriting {
            shadow.inherit(&head, &tail);
        }
        let at = &mut self.ports[port];
        let (controller, counters) = (&mut *at.controller, &at.counters);
        let tags = self.table.tags(slot);
        let mut teller = Teller { key, tags, controller, counters, actions: &mut self.actions };
        teller.beginning(now, &shadow, &tail);
        asked.extend(self.actions.drain(..).map(|action| Asked { port, action }));
        shadow.handle = at.controller.handle(&key);
        *place = Some(shadow);
        self.openings.set(slot, Opening { key, bytes: head.bytes });
        self.services.note(port, &key);
        self.unsorted |= self.live.last().is_some_and(|last| *last > slot);
        self.live.push(slot);
    }

    /// Reports the flow's events and counts since the last tick, which was at `since`. With `look`, asks the controller
    /// for its decision even if nothing has happened. Returns `false` if the slot must be freed.
    fn report(&mut self, now: Time, since: Time, slot: u32, look: bool, asked: &mut Vec<Asked>) -> bool {
        let Some(Some(shadow)) = self.shadows.get_mut(slot as usize) else { return false };
        let number = shadow.port();
        let head = self.table.head(slot);
        let Some(port) = self.ports.get_mut(number).filter(|_| head.live) else { return false };
        let news = head.flags.since(shadow.flags);
        let (has_data, has_events) = (shadow.has_news(&head), news != Flags::default());
        if !(has_data || has_events || look) {
            return shadow.handle.is_some() || now.since(shadow.opened) < UNKNOWN_FOR;
        }
        let tail = self.table.tail(slot);
        let quiet = !has_data && shadow.unseen(now) >= MENTION_EVERY;
        let alive = quiet && now.since(Time::from_nanos(tail.last_ns)) < shadow.unseen(now);
        if (has_events || alive)
            && let Some(Opening { key, .. }) = self.openings.get(slot).copied()
        {
            let (controller, counters) = (&mut *port.controller, &port.counters);
            let tags = self.table.tags(slot);
            let mut teller = Teller { key, tags, controller, counters, actions: &mut self.actions };
            if has_events {
                teller.events(now, shadow, news, &tail);
                shadow.flags = head.flags;
                shadow.handle = None;
            } else {
                teller.alive(now);
            }
        }
        if has_data || alive {
            shadow.see(now);
        }
        let controller = &mut port.controller;
        if shadow.handle.is_none() {
            shadow.handle = self.openings.get(slot).and_then(|opening| controller.handle(&opening.key));
        }
        let mut standing = if has_events || look { Standing::Changed } else { Standing::Same };
        if has_data && let Some(handle) = shadow.handle {
            let counts = shadow.report(since, &head, &tail);
            match controller.on_counts(now, handle, &counts, &mut self.actions) {
                Standing::Same => {}
                news => standing = news,
            }
            self.work.reported += 1;
        }
        let keep = match (shadow.handle, standing) {
            (Some(_), Standing::Same) => true,
            (Some(_), Standing::Gone) => false,
            (Some(handle), Standing::Changed) => match controller.decide(now, handle) {
                Some(decision) => {
                    Self::order(&self.table, slot, shadow, &decision, &mut self.work);
                    let since = now.since(shadow.opened);
                    if look && since > CONFIRMED_AFTER && !shadow.flags.has(Flags::CONFIRMED) {
                        self.table.confirm(slot);
                    }
                    true
                }
                None => false,
            },
            (None, _) => !head.flags.has(Flags::RST) && now.since(shadow.opened) < UNKNOWN_FOR,
        };
        asked.extend(self.actions.drain(..).map(|action| Asked { port: number, action }));
        keep
    }

    fn order(table: &T, slot: u32, shadow: &mut Shadow, decision: &Decision, work: &mut Work) {
        let orders = orders_of(decision);
        if shadow.order(orders) {
            table.order(slot, orders);
            work.ordered += 1;
        }
    }

    /// Updates the orders of all flows at ports with changed allocations.
    fn decide_changed(&mut self, now: Time) {
        let mut any = false;
        for port in &mut self.ports {
            let version = port.controller.version();
            port.changed = core::mem::replace(&mut port.version, version) != version;
            any |= port.changed;
        }
        if !any {
            return;
        }
        for slot in &self.live {
            let Some(Some(shadow)) = self.shadows.get_mut(*slot as usize) else { continue };
            let Some(port) = self.ports.get_mut(shadow.port()).filter(|port| port.changed) else { continue };
            if let Some(handle) = shadow.handle
                && let Some(decision) = port.controller.decide(now, handle)
            {
                Self::order(&self.table, *slot, shadow, &decision, &mut self.work);
            }
        }
    }

    fn release(&mut self, slot: u32) {
        if let Some(place) = self.shadows.get_mut(slot as usize) {
            *place = None;
        }
        if self.table.release(slot).is_err() {
            self.work.release_failures += 1;
        }
    }

    /// Returns the services with a changed ready grant. The grant `None` means that the port's ready grant applies.
    /// Call this rarely, because it asks the controller for the grants of all services.
    pub fn service_grants(&mut self) -> Vec<(Service, Option<RateCode>)> {
        let ports = &self.ports;
        self.services.changes(|port, key| {
            let controller = &ports.get(port)?.controller;
            let (anybody, own) = (controller.grant(None, 1), controller.grant(Some(key), 1));
            own.filter(|own| anybody.is_none_or(|anybody| *own < anybody)).map(RateCode::encode)
        })
    }

    /// Returns the rate of all flows of the port, if its controller keeps no state per flow.
    pub fn common_rate(&mut self, now: Time, port: usize) -> Option<RateCode> {
        let counter = self.ports.get_mut(port)?.controller.report_counter()?;
        Some(RateCode::encode(counter.common_rate(now)))
    }

    /// Returns the ready grants for a port's next new flows. Several flows may get the same grant. The rate of a grant
    /// is the share that the last of these flows would get, so that all grants together do not exceed the rate of the
    /// link.
    pub fn grants<const N: usize>(&mut self, port: usize) -> [RateCode; N] {
        let mut grants = [RateCode::UNASSIGNED; N];
        if let Some(Port { controller, .. }) = self.ports.get(port) {
            for (grant, n) in grants.iter_mut().zip((0..).map(newcomers_up_to)) {
                *grant = controller.grant(None, n).map_or(RateCode::UNASSIGNED, RateCode::encode);
            }
        }
        grants
    }
}

impl Port {
    /// Returns a port whose controller is not started yet.
    pub fn new(controller: Box<dyn Aggregated>, counters: PortCounters) -> Self {
        Port {
            controller,
            counters,
            udp: Bytes::ZERO,
            reports: Reports::default(),
            version: 0,
            changed: false,
        }
    }
}

#[cfg(test)]
#[path = "core_tests.rs"]
mod tests;
