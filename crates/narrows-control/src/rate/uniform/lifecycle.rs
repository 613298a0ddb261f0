//! The life of a flow: begin, confirmation, reports, idle time and end. The lifecycle follows BRF's rules (BRF-12 to
//! BRF-16), but all flows have the same rate.
//!
//! A flow reports once per RTT: with its first data that arrives at least an RTT after its last report. A flow's life
//! begins with its SYN, so its first report includes the handshake (BDR-20). The life ends with FIN, RST or idle time.
//! After a FIN or idle time, the last report also includes the time until the ACK of the last data, because BDR counts
//! a flow until its FIN is acknowledged.

use super::table::{Flow, FlowId};
use super::{Law, Uniform};
use crate::rate::kit::half_open::HalfOpen;
use crate::rate::kit::lifecycle::{Life, Step, accepts_unconfirmed};
use crate::rate::{FlowEvent, FlowIdentity, Segment, Side};
use crate::units::{Bytes, Span, Time};

/// Time in which the whole table is scanned once. Each expiry of the timer scans a part of the table.
const SWEEP_EVERY: Span = Span::from_millis(200);

impl<L: Law, K: FlowIdentity> Uniform<L, K> {
    /// Updates the table for a TCP packet from this side, and returns the packet's flow.
    pub(super) fn on_tcp(&mut self, now: Time, event: &FlowEvent<K>) -> Option<FlowId> {
        let found = self.table.find(&event.key);
        let id = match self.half_open.step(now, event) {
            Step::Opens => return None,
            Step::Ends => {
                if let Some(id) = found {
                    self.remove(now, id);
                }
                return None;
            }
            Step::Answers(half) => {
                if let Some(old) = found {
                    self.remove(now, old);
                }
                self.begin(now, event, &half)?
            }
            // A repeated SYN-ACK gets the rate, as any other packet of the reverse direction does.
            Step::Repeats => found?,
            Step::Continues => match found {
                Some(id) => id,
                None => self.adopt(now, event)?,
            },
        };
        self.heard(now, event, id);
        Some(id)
    }

    /// Begins a flow at its SYN-ACK.
    fn begin(&mut self, now: Time, event: &FlowEvent<K>, half: &HalfOpen) -> Option<FlowId> {
        if !self.has_room() {
            return None;
        }
        self.half_open.remove(&event.key);
        let mut flow = Flow::new(now, event.key, half.permitted, Life::answered(now, half));
        if flow.follows_rates {
            flow.reported = Some(half.syn_at);
            self.law.on_begin(now, &self.watch.port);
        }
        self.table.insert(flow)
    }

    /// Begins a flow whose SYN-ACK created no record, for example because the port did not see the handshake. There are
    /// two differences from BRF. First, if the packet completes a handshake, the flow is confirmed at once, without an
    /// RTT sample. Second, data with a FIN creates no record.
    fn adopt(&mut self, now: Time, event: &FlowEvent<K>) -> Option<FlowId> {
        let half = self.half_open.get(&event.key);
        let life = match half {
            Some(half) if half.answered.is_some() && half.opener == event.from => Life::new(now, None),
            _ if event.has_data && event.segment != Segment::Fin => Life::unseen(now, half),
            _ => return None,
        };
        let rated = half.map_or(event.follows_rates, |half| half.permitted);
        if !self.has_room() {
            return None;
        }
        self.half_open.remove(&event.key);
        self.table.insert(Flow::new(now, event.key, rated, life))
    }

    fn has_room(&self) -> bool {
        accepts_unconfirmed(self.table.unconfirmed_and_confirmed())
    }

    /// Handles a packet of a known flow from this side.
    fn heard(&mut self, now: Time, event: &FlowEvent<K>, id: FlowId) {
        let Some(flow) = self.table.get_mut(id) else { return };
        // Data shows only once per RTT that its sender follows rates, and not at all if there is little data. ACKs also
        // show this, because receivers leave room for a rate in them.
        flow.follows_rates |= flow.life.guessed && event.follows_rates;
        if flow.life.hear(now, event) {
            self.table.confirm(id);
        }
        if event.segment == Segment::Fin
            && let Some(flow) = self.table.get_mut(id)
        {
            if flow.life.is_closed() {
                flow.closed_at.get_or_insert(now);
            }
            let acknowledged = self.acknowledged(id);
            if event.from == Side::Sender {
                self.finish(now, id, acknowledged.max(now));
            }
        }
    }

    /// Records the arrival of a known flow's data. Returns whether the flow was idle.
    pub(super) fn record_data(&mut self, now: Time, id: FlowId, bytes: Bytes) -> bool {
        let Some(flow) = self.table.get_mut(id) else { return false };
        (flow.life.last_data, flow.life.last_seen) = (now, now);
        if !flow.is_counted() {
            return false;
        }
        let rtt = flow.rtt();
        self.law.on_data(bytes, rtt);
        // Data that arrives after the FIN is late or retransmitted data.
        if flow.life.fin.0 {
            return false;
        }
        let Some(since) = flow.reported else {
            (flow.reported, flow.fresh) = (Some(now), true);
            self.law.on_begin(now, &self.watch.port);
            return true;
        };
        let lived = now.since(since);
        if lived >= rtt.unwrap_or(self.ageing.rtt_default) {
            let first = core::mem::take(&mut flow.fresh);
            flow.reported = Some(now);
            self.law.on_report(now, lived, first, false, &self.watch.port);
        }
        false
    }

    /// Returns the time at which the ACK of the flow's last data reaches the sender. The law counts the flow until
    /// then.
    fn acknowledged(&self, id: FlowId) -> Time {
        let Some(flow) = self.table.get(id) else { return Time::ZERO };
        flow.life.last_data + flow.rtt().unwrap_or(self.ageing.rtt_default)
    }

    /// Makes the flow's last report, which covers the time up to `until`.
    fn finish(&mut self, now: Time, id: FlowId, until: Time) {
        let Some(flow) = self.table.get_mut(id) else { return };
        let counted = flow.is_counted();
        if let Some(since) = flow.reported.take()
            && counted
        {
            let first = core::mem::take(&mut flow.fresh);
            self.law.on_report(now, until.since(since), first, true, &self.watch.port);
        }
    }

    pub(super) fn remove(&mut self, now: Time, id: FlowId) {
        self.finish(now, id, now);
        self.table.remove(id);
    }

    /// Scans as much of the table as the time since the last scan requires. Removes old flows, and makes silent flows
    /// idle.
    pub(super) fn sweep(&mut self, now: Time) {
        let slots = self.table.slots();
        let passed = now.since(self.swept).min(SWEEP_EVERY);
        self.swept = now;
        // The result is at most `slots`.
        let part = (slots as u128 * u128::from(passed.as_nanos()))
            .div_ceil(u128::from(SWEEP_EVERY.as_nanos())) as usize;
        for _ in 0..part {
            if let Some(id) = self.table.walk() {
                self.age(now, id);
            }
        }
        self.half_open.expire(now);
    }

    fn age(&mut self, now: Time, id: FlowId) {
        let Some(flow) = self.table.get(id) else { return };
        let rtt = flow.rtt().unwrap_or(self.ageing.rtt_default);
        let (unseen, last_data) = (now.since(flow.life.last_seen), flow.life.last_data);
        let over = self.acknowledged(id);
        // The record stays for an RTT after both FINs, because retransmissions and ACKs may still arrive.
        let closed = flow.closed_at.is_some_and(|at| now.since(at) >= rtt);
        let unanswered =
            flow.life.awaited.is_some() && now.since(flow.opened) >= self.ageing.handshake_timeout;
        if unanswered || unseen >= self.ageing.forget_after || closed {
            self.finish(now, id, over);
            self.table.remove(id);
        } else if now.since(last_data) >= self.ageing.idle_after.max(rtt.scale(2, 1)) {
            self.finish(now, id, over);
        }
    }
}
