//! The life of a flow: begin, confirmation, idle time and end (BRF-12 to BRF-17).

use super::allocate::AppClass;
use super::feedback::Gate;
use super::newcomer::{initial, literal_factor};
use super::state::State;
use super::table::{Flow, FlowId, List, Meter};
use super::timers::Due;
use super::{Brf, allocate};
use crate::rate::kit::features::{Features, second_of_day};
use crate::rate::kit::half_open::HalfOpen;
use crate::rate::kit::lifecycle::{Life, Step, accepts_unconfirmed};
use crate::rate::kit::rtt::RTT_MIN;
use crate::rate::kit::waterfill::UNBOUNDED;
use crate::rate::{Action, Class, FlowEvent, FlowIdentity, PacketInfo, RateOption, Segment, Side};
use crate::units::{Rate, Span, Time};

/// Relative changes of a held rate up to this size are ignored.
const HELD_CHANGE: f64 = 0.002;

impl<K: FlowIdentity> Brf<K> {
    /// Updates the table for a TCP packet from this side, and returns the packet's flow.
    pub(super) fn on_tcp(
        &mut self,
        now: Time,
        event: &FlowEvent<K>,
        actions: &mut Vec<Action<K>>,
    ) -> Option<FlowId> {
        let found = self.table.find(&event.key);
        let id = match self.half_open.step(now, event) {
            Step::Opens => {
                // A finished flow has no allocation, so a forged SYN takes nothing from it.
                if let Some(over) = found.filter(|id| self.is_over(*id)) {
                    self.remove(now, over, actions);
                }
                return None;
            }
            Step::Ends => {
                if let Some(id) = found {
                    self.remove(now, id, actions);
                }
                return None;
            }
            Step::Answers(half) => {
                if let Some(old) = found {
                    self.remove(now, old, actions);
                }
                self.begin(now, event, &half, actions)?
            }
            Step::Repeats => self.repeat(found?),
            Step::Continues => match found {
                Some(id) => self.correct_class(now, id, event, actions)?,
                None => self.adopt(now, event, actions)?,
            },
        };
        self.heard(now, event, id, actions);
        Some(id)
    }

    /// Begins a flow at its SYN-ACK, if the flow asked for rates.
    fn begin(
        &mut self,
        now: Time,
        event: &FlowEvent<K>,
        half: &HalfOpen,
        actions: &mut Vec<Action<K>>,
    ) -> Option<FlowId> {
        if !half.permitted || !self.make_room_for_unconfirmed(now, actions) {
            return None;
        }
        self.half_open.remove(&event.key);
        let flow = Flow::new(event.key, Class::Rated, Life::answered(now, half));
        let id = self.add(now, flow, event, actions)?;
        self.newcomer(now, id, actions);
        Some(id)
    }

    /// Handles a repeated SYN-ACK. The gate is opened, so that the initial rate is written again (BRF-60).
    fn repeat(&mut self, id: FlowId) -> FlowId {
        if let Some(flow) = self.table.get_mut(id).filter(|flow| flow.life.awaited.is_some()) {
            flow.gate = Gate::default();
        }
        id
    }

    /// Begins a flow whose SYN-ACK created no record, for example because this port did not see the handshake.
    fn adopt(&mut self, now: Time, event: &FlowEvent<K>, actions: &mut Vec<Action<K>>) -> Option<FlowId> {
        let half = self.half_open.get(&event.key);
        let life = match half {
            Some(half) if half.answered.is_some() => {
                (half.opener == event.from).then(|| Life::late(now, half))?
            }
            _ => event.has_data.then(|| Life::unseen(now, half))?,
        };
        let rated = half.map_or(event.follows_rates, |half| half.permitted);
        if !self.make_room_for_unconfirmed(now, actions) {
            return None;
        }
        self.half_open.remove(&event.key);
        let class = if rated { Class::Rated } else { Class::OtherTcp };
        self.add(now, Flow::new(event.key, class, life), event, actions)
    }

    /// Replaces the record of a flow with one of a rated flow, if this packet shows that the flow uses BRF. The flow
    /// was classified as other TCP, because its first packet at this port did not carry the option. Data carries the
    /// option only once per RTT, and not at all if there is little data. ACKs also show that the flow uses BRF, because
    /// receivers leave room for a rate if the SYN asked for one (BRF-9).
    fn correct_class(
        &mut self,
        now: Time,
        id: FlowId,
        event: &FlowEvent<K>,
        actions: &mut Vec<Action<K>>,
    ) -> Option<FlowId> {
        let flow = self.table.get(id)?;
        let life = &flow.life;
        if !life.guessed || flow.class == Class::Rated || self.is_over(id) || !event.follows_rates {
            return Some(id);
        }
        let life = Life { guessed: false, ..life.clone() };
        let confirmed = life.awaited.is_none();
        let flow = Flow { class: Class::Rated, life, ..flow.clone() };
        self.remove(now, id, actions);
        let id = self.add(now, flow, event, actions)?;
        if confirmed {
            self.rejoin(now, id, actions);
        }
        Some(id)
    }

    /// Returns whether the table has room for another unconfirmed flow. If the table is full, removes an idle flow.
    fn make_room_for_unconfirmed(&mut self, now: Time, actions: &mut Vec<Action<K>>) -> bool {
        if !accepts_unconfirmed(self.table.unconfirmed_and_confirmed()) {
            return false;
        }
        if self.table.is_full()
            && let Some(idle) = self.table.front(List::Idle)
        {
            self.remove(now, idle, actions);
        }
        !self.table.is_full()
    }

    /// Adds a record for this event's flow.
    fn add(
        &mut self,
        now: Time,
        flow: Flow<K>,
        event: &FlowEvent<K>,
        actions: &mut Vec<Action<K>>,
    ) -> Option<FlowId> {
        let (key, class) = (flow.key, flow.class);
        let wait = flow.life.rtt.get().unwrap_or(Span::ZERO).scale(3, 1).max(self.params.ack_timer_min);
        let id = self.table.insert(flow)?;
        self.shares.join(id.slot, self.params.share.subscriber(event));
        self.timers.set(now + self.params.handshake_timeout.max(wait + wait), id, Due::Confirmation);
        self.timers.set(now + wait, id, Due::FirstAck);
        let event = if class == Class::Rated { "flow-added" } else { "other-flow-added" };
        actions.push(Action::Log { event, flow: Some(key), value: self.table.len(List::Rated) as f64 });
        Some(id)
    }

    /// Handles a packet of a known flow from this side.
    fn heard(&mut self, now: Time, event: &FlowEvent<K>, id: FlowId, actions: &mut Vec<Action<K>>) {
        let Some(flow) = self.table.get_mut(id) else { return };
        let confirms = flow.life.hear(now, event);
        flow.ack_seen_here |= event.from == Side::Receiver;
        let (closed, class) = (flow.life.is_closed(), flow.class);
        self.note_rtt(id);
        if confirms {
            self.table.confirm(id);
        }
        let list = self.table.list(id);
        if closed && (confirms || list != Some(List::Waiting)) {
            self.deactivate(now, id, List::Waiting, actions);
            self.timers.set(now + self.rtt(id), id, Due::Removal);
        } else if self.is_over(id) {
            if list != Some(List::Idle) && self.table.get(id).is_some_and(|flow| flow.life.awaited.is_none())
            {
                self.deactivate(now, id, List::Idle, actions);
            }
        } else if confirms && list == Some(List::Waiting) {
            match class {
                Class::Rated => self.rejoin(now, id, actions),
                _ => self.table.move_to(id, List::Idle),
            }
        } else if event.from == Side::Receiver
            && event.segment != Segment::SynAck
            && self.table.meter(id).is_some_and(|meter| meter.first_data < now)
        {
            self.establish(id);
        }
    }

    /// Called when the flow's RTT estimate may have changed.
    pub(super) fn note_rtt(&mut self, id: FlowId) {
        let rtt = self.table.get(id).and_then(|flow| flow.life.rtt.get());
        // Hosts can influence their samples. Without this limit, a host could postpone its own evaluation by more
        // than T.
        let most = self.params.period_max.max(RTT_MIN);
        if let (Some(meter), Some(rtt)) = (self.table.meter_mut(id), rtt) {
            meter.rtt = rtt.max(RTT_MIN).min(most);
        }
        if self.table.list(id) == Some(List::Rated) {
            self.cycle.rtt_max = self.cycle.rtt_max.max(self.rtt(id));
        }
    }

    /// Records the arrival of a known flow's data.
    pub(super) fn record_data(&mut self, now: Time, id: FlowId, actions: &mut Vec<Action<K>>) {
        let (list, over) = (self.table.list(id), self.is_over(id));
        let Some(flow) = self.table.get_mut(id) else { return };
        flow.life.last_data = now;
        let live = flow.life.awaited.is_none() && !over;
        let (wakes, class) = (live && list == Some(List::Idle), flow.class);
        if let Some(meter) = self.table.meter_mut(id) {
            meter.first_data = meter.first_data.min(now);
        }
        match list {
            Some(list @ (List::Rated | List::Other)) => self.table.move_to(id, list),
            _ if wakes && class == Class::Rated => {
                if let Some(meter) = self.table.meter_mut(id) {
                    meter.first_data = now;
                }
                self.rejoin(now, id, actions);
            }
            _ if wakes => {
                self.table.move_to(id, List::Other);
                self.shares.count_active(id.slot, false, 1);
                self.update_split(now, actions);
            }
            _ => {}
        }
    }

    /// Returns the minimum rate of each of `flows` flows that share `capacity` (BRF-47).
    pub(super) fn minimum(&self, capacity: Rate, flows: u64) -> Rate {
        allocate::floor(&self.params, self.mtu, self.cycle.period, capacity, flows)
    }

    /// Returns the first rate of a newcomer (BRF-34). `equal` is the paper's rate (BRF-31, BRF-32), and `share` is a
    /// part of the uncommitted capacity. `flows` flows, including newcomers, share `capacity`.
    pub(super) fn first_rate(&self, equal: Rate, share: Rate, capacity: Rate, flows: u64) -> Rate {
        if self.is_literal() {
            return equal;
        }
        equal.min(share).max(self.minimum(capacity, flows))
    }

    /// Returns whether the flow has sent all of its data at least once, as the sender's FIN shows. In literal mode, the
    /// FINs of both sides are required, as in the paper (BRF-15).
    fn is_over(&self, id: FlowId) -> bool {
        let literal = self.is_literal();
        let is_over = |life: &Life| if literal { life.is_closed() } else { life.has_sent_all() };
        self.table.get(id).is_some_and(|flow| is_over(&flow.life))
    }

    /// Returns the rate for the SYN-ACK of a flow that gets no record, because too many flows are unconfirmed.
    pub(super) fn offer(&mut self, packet: &PacketInfo<K>) -> Option<Rate> {
        if !(packet.flags.syn && packet.flags.ack) || self.is_down() {
            return None;
        }
        self.half_open.get(&packet.key).filter(|half| half.permitted && half.opener == Side::Sender)?;
        let (capacity, flows) = (self.shares.capacity(), self.table.len(List::Rated) as u64 + 1);
        let equal = initial(self.predictor.predict(&packet.key), capacity, flows);
        Some(self.first_rate(equal, self.shares.newcomer_share(capacity, 1), capacity, flows))
    }

    /// Performs BW_INIT for a flow whose SYN-ACK carries the rate. For an RTT, no ACK can change this rate (BRF-34).
    pub(super) fn newcomer(&mut self, now: Time, id: FlowId, actions: &mut Vec<Action<K>>) {
        let Some((equal, capacity, flows)) = self.enter(now, id, actions) else { return };
        if self.is_literal() {
            return self.init_literally(now, id, equal, actions);
        }
        let rate = self.first_rate(equal, self.shares.share_of_newcomer(id.slot), capacity, flows);
        self.shares.set_floor(self.minimum(capacity, flows));
        self.shares.commit(id.slot, rate.as_bytes_per_sec());
        self.shares.tighten();
        self.timers.set(now + self.rtt(id), id, Due::FirstFeedback);
        self.init(now, id, rate, AppClass::Newcomer, actions);
    }

    /// Performs BW_INIT for a flow that already sends, or that sends again after idle time. Its next ACK carries the rate
    /// (BRF-16, BRF-31 to BRF-33).
    pub(super) fn rejoin(&mut self, now: Time, id: FlowId, actions: &mut Vec<Action<K>>) {
        let Some((equal, capacity, flows)) = self.enter(now, id, actions) else { return };
        if self.is_literal() {
            return self.init_literally(now, id, equal, actions);
        }
        let floor = self.minimum(capacity, flows);
        self.shares.set_floor(floor);
        let rate = equal.max(floor);
        self.shares.insert(id.slot, rate.as_bytes_per_sec());
        self.shares.tighten();
        self.init(now, id, rate, AppClass::Unknown, actions);
    }

    /// Makes a flow rated. Returns three values: the paper's rate for the flow, C_BRF, and the number of rated flows.
    fn enter(&mut self, now: Time, id: FlowId, actions: &mut Vec<Action<K>>) -> Option<(Rate, Rate, u64)> {
        self.table.move_to(id, List::Rated);
        self.shares.count_active(id.slot, true, 1);
        // Update the split first, because the class may have been empty.
        self.update_split(now, actions);
        let key = self.table.get(id)?.key;
        let (capacity, flows) = (self.shares.capacity(), self.table.len(List::Rated) as u64);
        let equal = initial(self.predictor.predict(&key), capacity, self.shares.divisor(id.slot, flows));
        Some((equal, capacity, flows))
    }

    fn init_literally(&mut self, now: Time, id: FlowId, rate: Rate, actions: &mut Vec<Action<K>>) {
        self.make_way_literally(rate, id);
        self.shares.insert(id.slot, rate.as_bytes_per_sec());
        self.init(now, id, rate, AppClass::Unknown, actions);
    }

    /// Initialises the record of a flow that gets this rate now.
    fn init(&mut self, now: Time, id: FlowId, rate: Rate, class: AppClass, actions: &mut Vec<Action<K>>) {
        // BW_INIT takes no time and does not change the phase (BRF-35).
        self.report_state(State::BwInit, actions);
        self.report_phase(actions);
        let fair = self.fair_share();
        self.cycle.rtt_max = self.cycle.rtt_max.max(self.rtt(id));
        if let Some(meter) = self.table.meter_mut(id) {
            meter.demand = rate.as_bytes_per_sec();
            meter.app_class = class;
            (meter.joined, meter.told_at) = (now, Time::NEVER);
            (meter.held, meter.held_age, meter.headroom) = (UNBOUNDED, 0, 0);
            meter.drop_evidence();
        }
        let windows = self.cycle.windows;
        if let Some(flow) = self.table.get_mut(id) {
            flow.life.last_data = now;
            flow.gate = Default::default();
            flow.layer.assign(rate, fair, false);
            flow.layer_as_of = windows;
        }
    }

    /// Establishes a newcomer an RTT after its first data, if no ACK has established it. If that RTT has not passed
    /// yet, sets a later deadline. The deadline is necessary because data planes with counts do not report ACKs, and
    /// because ACKs may take another path.
    fn await_feedback(&mut self, now: Time, id: FlowId) {
        let Some(meter) = self.table.meter(id).filter(|meter| meter.app_class == AppClass::Newcomer) else {
            return;
        };
        // Without data, the receiver sends no ACK, so wait another RTT. A flow that stays silent becomes idle.
        let sent = if meter.first_data == Time::NEVER { now } else { meter.first_data.max(meter.joined) };
        let due = sent + meter.rtt;
        if due <= now {
            self.establish(id);
        } else {
            self.timers.set(due, id, Due::FirstFeedback);
        }
    }

    /// Ends the commitment to a newcomer (BRF-34), because an ACK can change the newcomer's rate now. From now on the
    /// newcomer's rate follows from its demand. The demand is unlimited unless the predictor expects less.
    pub(super) fn establish(&mut self, id: FlowId) {
        let Some(meter) = self.table.meter(id).filter(|meter| meter.app_class == AppClass::Newcomer) else {
            return;
        };
        let (rate, held) = (meter.demand, meter.held);
        let predicted = self.table.get(id).and_then(|flow| self.predictor.predict(&flow.key));
        let demand =
            predicted.map_or(UNBOUNDED, |rate| rate.max(self.shares.floor()).as_bytes_per_sec()).min(held);
        self.shares.release(id.slot, rate);
        self.shares.insert(id.slot, demand);
        self.shares.settle();
        if let Some(meter) = self.table.meter_mut(id) {
            (meter.app_class, meter.demand) = (AppClass::Unknown, demand);
        }
    }

    /// Reduces the allocations of all other flows by the paper's equations 11 to 13. As with the printed equations, the
    /// sum of allocations can exceed the capacity afterwards (TV-4).
    fn make_way_literally(&mut self, initial: Rate, newcomer: FlowId) {
        let others: Vec<FlowId> = self.table.ids(List::Rated).filter(|id| *id != newcomer).collect();
        let sum_real: f64 =
            others.iter().filter_map(|id| self.table.meter(*id)).map(|m| m.real.as_f64()).sum();
        let capacity = self.shares.capacity().as_f64();
        if let Some(factor) = literal_factor(capacity, initial.as_f64(), sum_real) {
            self.scale_literally(&others, factor);
        }
    }

    /// Multiplies the allocations of these flows by `factor`, as the paper does. Negative results become zero.
    pub(super) fn scale_literally(&mut self, flows: &[FlowId], factor: f64) {
        self.shares.count_allotment();
        for id in flows {
            if let Some(meter) = self.table.meter_mut(*id) {
                let demand = Rate::from_bytes_per_sec(meter.demand).mul_f64(factor).as_bytes_per_sec();
                let old = core::mem::replace(&mut meter.demand, demand);
                self.shares.change(id.slot, old, demand);
            }
        }
    }

    /// Returns the rate for an ACK of a flow with an allocation (BRF-60 to BRF-64).
    pub(super) fn answer(&mut self, now: Time, id: FlowId, packet: &PacketInfo<K>) -> Option<Rate> {
        let rtt = self.rtt(id);
        let urgent = self.params.urgent_decrease;
        let mut rate = self.rate_for(id, self.table.meter(id)?);
        if !matches!(packet.option, RateOption::Assigned(_)) {
            // If another switch has a lower rate, this switch writes that rate too. The gates of two switches do not
            // stay synchronised, so the other switch might not write into this ACK. In that case the sender would get
            // this port's higher rate (BRF-62).
            let held = self.table.meter(id)?.held;
            rate = rate.min(Rate::from_bytes_per_sec(held));
        }
        if let Some(advertised) = self.adverts.rate(now, &packet.key) {
            rate = rate.min(advertised);
        }
        if let RateOption::Assigned(value) = packet.option {
            self.hold(id, value);
        }
        if self.is_down() {
            return None;
        }
        let answer = self.table.get_mut(id)?.gate.answer(now, rtt, rate, packet.option, urgent);
        if answer.is_some()
            && let Some(told) = self.table.meter(id).map(|meter| (meter.told, meter.told_at))
            && let Some(flow) = self.table.get_mut(id)
        {
            flow.told_before = told;
        }
        if answer.is_some() || matches!(packet.option, RateOption::Assigned(_)) {
            self.note_told(now, id);
        }
        answer
    }

    /// Returns the last rate, if any, of a flow that has sent all of its data. The flow repairs its losses at this
    /// rate. No capacity is reserved for the repair.
    pub(super) fn last_rate(&self, id: FlowId) -> Option<Rate> {
        let rated = self.table.get(id)?.class == Class::Rated;
        let told = self.table.meter(id)?.told;
        let over = rated && self.table.list(id) == Some(List::Idle) && told > Rate::ZERO;
        (over && !self.is_literal() && self.is_over(id)).then_some(told)
    }

    /// Returns the rate for an ACK of a flow that has sent all of its data.
    pub(super) fn repeat_last_rate(&mut self, now: Time, id: FlowId, packet: &PacketInfo<K>) -> Option<Rate> {
        let (rate, rtt) = (self.last_rate(id)?, self.rtt(id));
        self.table.get_mut(id)?.gate.answer(now, rtt, rate, packet.option, false)
    }

    /// Called when another switch wrote `value` into the flow's ACK, so that the flow cannot use more. Other flows get
    /// the rest of its share at once, before the next measurement (BRF-102). Returns whether the value is new.
    pub(super) fn hold(&mut self, id: FlowId, value: Rate) -> bool {
        // Only rated flows have a demand among the shares. Other flows get a new demand with their next data.
        if self.is_literal() || self.table.list(id) != Some(List::Rated) {
            return false;
        }
        let Some(meter) = self.table.meter_mut(id) else { return false };
        let level = match meter.app_class {
            AppClass::Newcomer => meter.demand,
            _ => self.shares.ceiling(id.slot, meter.demand),
        };
        let value = value.as_bytes_per_sec();
        let held = if value < level { value.max(1) } else { UNBOUNDED };
        let mut news = meter.held != held;
        (meter.held, meter.held_age) = (held, 0);
        let old = meter.demand;
        // If the measured demand is smaller than `held`, the demand stays valid.
        let new = match meter.app_class {
            AppClass::Newcomer | AppClass::Unknown | AppClass::Limited | AppClass::Held => old.min(held),
            AppClass::Unlimited => held,
        };
        let change = new.abs_diff(old) as f64;
        if new != old && (new == UNBOUNDED || old == UNBOUNDED || change > HELD_CHANGE * old as f64) {
            meter.demand = new;
            match meter.app_class {
                AppClass::Newcomer => self.shares.recommit(id.slot, old, new),
                _ => self.shares.change(id.slot, old, new),
            }
            self.shares.settle();
            news = true;
        }
        news
    }

    /// Records the base allocation that the sender knows, and since when the sender has known it.
    pub(super) fn note_told(&mut self, now: Time, id: FlowId) {
        let Some(meter) = self.table.meter_mut(id) else { return };
        let terms = self.shares.terms(id.slot, meter.app_class);
        meter.note_told(now, Rate::from_bytes_per_sec(self.shares.base_reduced(terms, meter.demand)));
    }

    /// Moves a flow from a list of active flows to the list `to`.
    pub(super) fn deactivate(&mut self, now: Time, id: FlowId, to: List, actions: &mut Vec<Action<K>>) {
        let (from, literal) = (self.table.list(id), self.is_literal());
        if from == Some(List::Rated)
            && let Some(meter) = self.table.meter_mut(id)
        {
            match meter.app_class {
                AppClass::Newcomer => {
                    self.shares.release(id.slot, meter.demand);
                    meter.app_class = AppClass::Unknown;
                }
                _ => self.shares.remove(id.slot, meter.demand),
            }
            self.shares.count_active(id.slot, true, -1);
            (meter.demand, meter.told_at) = (0, Time::NEVER);
            if !literal {
                self.shares.settle();
            }
        } else if from == Some(List::Other) {
            self.shares.count_active(id.slot, false, -1);
        }
        if to == List::Other {
            self.shares.count_active(id.slot, false, 1);
        }
        self.table.move_to(id, to);
        self.update_split(now, actions);
    }

    pub(super) fn remove(&mut self, now: Time, id: FlowId, actions: &mut Vec<Action<K>>) {
        self.deactivate(now, id, List::Waiting, actions);
        let used = self.table.meter(id).and_then(|meter| Some((self.use_of_link(meter)?, meter)));
        let used = used.map(|(rate, meter)| (rate, meter.joined, meter.app_class == AppClass::Limited));
        let Some(flow) = self.table.remove(id) else { return };
        self.shares.leave(id.slot);
        if flow.class == Class::Rated
            && let Some((rate, joined, limited)) = used
        {
            self.predictor.learn(&flow.key, rate);
            // The rate is zero if an outage stopped the flow. A model cannot learn from such a flow.
            if rate > Rate::ZERO {
                let features = Features::of(&flow.key, second_of_day(self.params.time_of_day, joined));
                actions.push(Action::Record { flow: flow.key, features, joined, rate, limited });
            }
        }
        let value = self.table.len(List::Rated) as f64;
        actions.push(Action::Log { event: "flow-removed", flow: Some(flow.key), value });
    }

    /// Returns the rate that the predictor learns from a flow that has ended, or `None` if the flow was not measured
    /// (BRF-31).
    fn use_of_link(&self, meter: &Meter) -> Option<Rate> {
        let mean = meter.mean()?;
        // The rate of a flow that filled its share shows what the port gave, not what the flow could use. A prediction
        // from such rates would keep the next flows of the service slow.
        let shows_its_need = self.is_literal() || meter.app_class == AppClass::Limited;
        Some(if shows_its_need { mean } else { self.link.rate().max(mean) })
    }

    /// Handles the deadlines that have passed.
    pub(super) fn run_flow_timers(&mut self, now: Time, actions: &mut Vec<Action<K>>) {
        while let Some((id, due)) = self.timers.pop(now) {
            let Some(flow) = self.table.get(id) else { continue };
            let (class, list) = (flow.class, self.table.list(id));
            let sent = self.table.meter(id).is_some_and(|meter| meter.first_data <= now);
            match due {
                Due::Confirmation if flow.life.awaited.is_some() => self.remove(now, id, actions),
                Due::FirstAck if !flow.ack_seen_here && sent && !self.is_over(id) => {
                    // The flow has sent data but none of its ACKs has passed in this time, so its ACKs take
                    // another path (BRF-63).
                    self.table.confirm(id);
                    match (class, list) {
                        (Class::Rated, Some(List::Waiting)) => self.rejoin(now, id, actions),
                        (Class::OtherTcp, Some(List::Waiting)) => self.table.move_to(id, List::Idle),
                        _ => {}
                    }
                    if class == Class::Rated {
                        self.adverts.own.push(id);
                    }
                }
                Due::Removal => self.remove(now, id, actions),
                Due::FirstFeedback => self.await_feedback(now, id),
                Due::Confirmation | Due::FirstAck => {}
            }
        }
    }

    /// Makes silent flows idle, and removes them later. Amortised O(1) per flow.
    pub(super) fn sweep(&mut self, now: Time, actions: &mut Vec<Action<K>>) {
        let idle_after = self.idle_after();
        for list in [List::Rated, List::Other] {
            while let Some(id) = self.table.front(list)
                && self.table.get(id).is_some_and(|f| now.since(f.life.last_data) >= idle_after)
            {
                self.deactivate(now, id, List::Idle, actions);
            }
        }
        let forget_after = self.params.forget_after;
        // Examine each record once. An idle flow that still exchanges ACKs moves to the end of the list, so a loop without
        // this bound might not end.
        for _ in 0..self.table.len(List::Idle) {
            let Some(id) = self.table.front(List::Idle) else { break };
            let Some(flow) = self.table.get(id) else { break };
            if now.since(flow.life.last_seen) >= forget_after {
                self.remove(now, id, actions);
            } else if now.since(flow.life.last_data) >= forget_after {
                self.table.move_to(id, List::Idle);
            } else {
                break;
            }
        }
        self.half_open.expire(now);
        self.adverts.expire(now);
    }
}
