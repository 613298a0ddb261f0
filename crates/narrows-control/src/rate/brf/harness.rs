//! Simulates a port and paced senders in steps of a millisecond, for the tests of the controller.

use std::collections::VecDeque;

use super::table::List;
use super::{Brf, Params};
use crate::feedback::code::as_heard;
use crate::rate::aggregate::{Aggregated, Counts, Standing};
pub(super) use crate::rate::kit::testing::*;
use crate::rate::{
    Action, Admission, LEAVES, Leaf, PacketInfo, PerFlowController, PortCounters, RateOption, TcpFlags,
};
use crate::units::{Bytes, Rate, Span, Time};

/// A sender next to the switch. `rtt` is the time from the switch to the receiver and back, ms.
pub(super) struct Sender {
    pub(super) n: u32,
    pub(super) rtt: u64,
    pub(super) start: u64,
    /// The application's limit.
    pub(super) limit: Rate,
    /// The rate of a sender that ignores the feedback.
    pub(super) insists: Option<Rate>,
    /// Every n-th packet is lost before the switch; 0 for none.
    pub(super) lose_every: u64,
    /// Whether the sender reports its application's limit.
    pub(super) says: bool,
    /// The rate in the last feedback; 0 before the first feedback.
    pub(super) told: Rate,
    /// L3 bytes sent. `feedbacks` has the times (ms) at which the feedback gave a rate.
    pub(super) sent: u64,
    pub(super) feedbacks: Vec<u64>,
    credit: f64,
    seq: u64,
    acks: VecDeque<(u64, TcpFlags)>,
    counts: Counts,
    expected: u64,
    /// The rate that a data plane with counts would write into ACKs; `None` to write no rate.
    code: Option<Rate>,
    leaf: Leaf,
    /// The controller's version at the last query.
    version: Option<u64>,
}

pub(super) struct Net {
    /// The time between two reports of counts, ms. With 0, the controller gets each packet.
    pub(super) report_every: u64,
    pub(super) brf: Brf,
    pub(super) now: u64,
    pub(super) port: PortCounters,
    pub(super) senders: Vec<Sender>,
    pub(super) actions: Vec<Action>,
}

impl Net {
    pub(super) fn new(params: Params, capacity: Rate) -> Self {
        let port = PortCounters {
            capacity: Some(capacity),
            limit_packets: [1000; LEAVES],
            ..PortCounters::default()
        };
        let mut brf = Brf::new(params, 1, Bytes::new(MTU));
        let mut actions = Vec::new();
        brf.on_start(Time::ZERO, &port, &mut actions);
        Net { report_every: 0, brf, now: 0, port, senders: Vec::new(), actions }
    }

    /// Adds a greedy sender. The caller may change the returned sender.
    pub(super) fn sender(&mut self, n: u32, rtt: u64, start: u64) -> &mut Sender {
        self.senders.push(Sender {
            n,
            rtt,
            start,
            limit: Rate::MAX,
            insists: None,
            lose_every: 0,
            says: false,
            told: Rate::ZERO,
            sent: 0,
            feedbacks: Vec::new(),
            credit: 0.0,
            seq: 0,
            acks: VecDeque::new(),
            counts: Counts::default(),
            expected: 0,
            code: None,
            leaf: Leaf::Elephant,
            version: None,
        });
        self.senders.last_mut().unwrap()
    }

    pub(super) fn allocated(&self, n: u32) -> Rate {
        self.brf.allocation(&key(n)).unwrap_or(Rate::ZERO)
    }

    pub(super) fn allocated_sum(&self) -> u64 {
        let ids = self.brf.table.ids(List::Rated);
        ids.filter_map(|id| Some((id, self.brf.table.meter(id)?)))
            .map(|(id, m)| self.brf.rate_for(id, m).as_bytes_per_sec())
            .sum()
    }

    pub(super) fn logged(&self, event: &str) -> usize {
        self.actions.iter().filter(|a| matches!(a, Action::Log { event: e, .. } if *e == event)).count()
    }

    pub(super) fn offer(&mut self, packet: &PacketInfo) -> Admission {
        let admission = self.brf.on_data(ms(self.now), packet, &self.port, &mut self.actions);
        if let Admission::Queue(leaf) = admission {
            self.port.arrived[leaf as usize] += packet.size;
            self.port.queued[leaf as usize] += packet.size;
        }
        admission
    }

    pub(super) fn reverse(&mut self, packet: &PacketInfo) -> Option<Rate> {
        self.brf.on_reverse(ms(self.now), packet, &mut self.actions)
    }

    pub(super) fn run(&mut self, until: u64) {
        while self.now < until {
            self.step();
        }
    }

    fn step(&mut self) {
        self.drain();
        let due = ms(self.now) >= self.brf.next_timer();
        if self.report_every > 0 && (due || self.now.is_multiple_of(self.report_every)) {
            self.report();
        }
        if due {
            self.brf.on_timer(ms(self.now), &self.port, &mut self.actions);
        }
        let mut senders = core::mem::take(&mut self.senders);
        let now = self.now;
        for sender in senders.iter_mut().filter(|s| s.start <= now) {
            self.step_sender(sender);
        }
        self.senders.extend(senders);
        // In resolved mode the sum stays below the capacity at every moment. In literal mode the sum can exceed the
        // capacity (TV-4).
        if !self.brf.is_literal() {
            let (sum, capacity) = (self.allocated_sum(), self.brf.shares.capacity());
            let ids = self.brf.shares.flows();
            // With newcomers, the sum may exceed the capacity by the minimum rates.
            let newcomers = self.brf.shares.committed() > Rate::ZERO;
            let floors = if newcomers { self.brf.shares.floor().mul_f64(ids as f64) } else { Rate::ZERO };
            assert!(
                sum <= (capacity + floors).as_bytes_per_sec(),
                "{sum} of {capacity:?} at {} ms",
                self.now
            );
        }
        self.now += 1;
    }

    /// Reports the counts of a data plane, and applies the controller's decision.
    fn report(&mut self) {
        let now = ms(self.now);
        for s in &mut self.senders {
            let Some(handle) = self.brf.handle(&key(s.n)) else { continue };
            let next = Counts { since: now, ..Counts::default() };
            let counts = core::mem::replace(&mut s.counts, next);
            let standing = self.brf.on_counts(now, handle, &counts, &mut self.actions);
            let version = self.brf.version();
            // A host must ask for a decision after `Changed`, after a new version, and occasionally in any case.
            let anew = s.version != Some(version) || self.now.is_multiple_of(200);
            if standing == Standing::Same && !anew {
                continue;
            }
            s.version = Some(version);
            let Some(decision) = self.brf.decide(now, handle) else { continue };
            (s.code, s.leaf) = (decision.rate, decision.leaf);
        }
    }

    /// Simulates one millisecond of the link, which serves the leaves in the order of [`Leaf`].
    fn drain(&mut self) {
        let mut left = self.port.capacity.unwrap_or(Rate::ZERO).bytes_in(Span::from_millis(1));
        for leaf in 0..LEAVES {
            let sent = self.port.queued[leaf].min(left);
            left -= sent;
            self.port.queued[leaf] -= sent;
            self.port.departed[leaf] += sent;
            self.port.queued_packets[leaf] = self.port.queued[leaf].get().div_ceil(MTU) as u32;
        }
        let departed: Bytes = self.port.departed.iter().copied().sum();
        self.port.departed_packets = departed.get() / MTU;
    }

    fn step_sender(&mut self, s: &mut Sender) {
        if self.now == s.start {
            self.offer(&packet(s.n, 0, SYN, RateOption::Unassigned));
            s.acks.push_back((self.now + s.rtt, SYN_ACK));
        }
        while let Some((at, flags)) = s.acks.front().copied()
            && at <= self.now
        {
            s.acks.pop_front();
            let mut ack = packet(s.n, 0, flags, RateOption::Unassigned);
            ack.timestamps = Some((self.now as u32, (at - s.rtt) as u32));
            let rate = if self.report_every > 0 && !flags.syn { s.code } else { self.reverse(&ack) };
            if let Some(rate) = rate {
                s.told = as_heard(rate);
                s.feedbacks.push(self.now);
            }
            if flags.syn {
                self.offer(&packet(s.n, 0, ACK, RateOption::Unassigned));
            }
        }
        let pace = s.insists.unwrap_or(s.told.min(s.limit));
        s.credit += pace.as_f64() / 1000.0;
        while s.credit >= MTU as f64 {
            s.credit -= MTU as f64;
            s.sent += MTU;
            let mut data = packet(s.n, MTU - 52, ACK, RateOption::Absent);
            (data.seq, data.timestamps) = (s.seq, Some((self.now as u32, self.now as u32)));
            data.unlimited = s.says.then_some(s.limit > s.told);
            s.seq += MTU - 52;
            if s.lose_every == 0 || !(s.sent / MTU).is_multiple_of(s.lose_every) {
                if self.report_every > 0 {
                    self.port.arrived[s.leaf as usize] += data.size;
                    self.port.queued[s.leaf as usize] += data.size;
                    s.counts.bytes += data.size;
                    s.counts.missing += Bytes::new(data.seq.saturating_sub(s.expected));
                    s.expected = s.seq;
                    s.counts.unlimited |= data.unlimited == Some(true);
                    s.counts.limited |= data.unlimited == Some(false);
                    s.counts.receiver_half = Some(Span::from_millis(s.rtt));
                } else {
                    self.offer(&data);
                }
                s.acks.push_back((self.now + s.rtt, ACK));
            }
        }
    }
}
