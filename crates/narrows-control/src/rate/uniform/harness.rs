//! Simulates a port and paced senders in steps of a millisecond. The controller gets each packet, or counts.

use std::collections::VecDeque;

use crate::feedback::code::as_heard;
use crate::rate::aggregate::{Aggregated, Counts, Standing};
use crate::rate::kit::testing::{ACK, FIN, MTU, SYN, SYN_ACK, key, ms, packet};
use crate::rate::{Action, LEAVES, Leaf, PacketInfo, PortCounters, RateOption};
use crate::units::{Bytes, Rate, Span};

/// A sender next to the switch. `rtt` is the time from the switch to the receiver and back, ms.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    pub(super) n: u32,
    pub(super) rtt: u64,
    pub(super) start: u64,
    /// The time at which the sender sends FIN.
    pub(super) end: u64,
    pub(super) told: Rate,
    credit: f64,
    acks: VecDeque<u64>,
    counts: Counts,
    code: Option<Rate>,
    version: Option<u64>,
}

pub(super) struct Net {
    /// The time between two reports of counts, ms. With 0, the controller gets each packet.
    report_every: u64,
    pub(super) controller: Box<dyn Aggregated>,
    pub(super) now: u64,
    pub(super) port: PortCounters,
    pub(super) senders: Vec<Sender>,
    pub(super) actions: Vec<Action>,
    /// The longest queue so far.
    pub(super) longest: Bytes,
}

impl Net {
    pub(super) fn new(mut controller: Box<dyn Aggregated>, capacity: Rate, report_every: u64) -> Self {
        let port = PortCounters {
            capacity: Some(capacity),
            limit_packets: [1000; LEAVES],
            ..PortCounters::default()
        };
        let mut actions = Vec::new();
        controller.on_start(ms(0), &port, &mut actions);
        let longest = Bytes::ZERO;
        Net { report_every, controller, now: 0, port, senders: Vec::new(), actions, longest }
    }

    pub(super) fn sender(&mut self, n: u32, rtt: u64, start: u64, end: u64) {
        self.senders.push(Sender {
            n,
            rtt,
            start,
            end,
            told: Rate::ZERO,
            credit: 0.0,
            acks: VecDeque::new(),
            counts: Counts::default(),
            code: None,
            version: None,
        });
    }

    pub(super) fn traced(&self, wanted: &str) -> f64 {
        let mut found = f64::NAN;
        self.controller.trace(&mut |key, value| {
            if key == wanted {
                found = value;
            }
        });
        found
    }

    pub(super) fn told(&self, n: u32) -> f64 {
        self.senders.iter().find(|s| s.n == n).map_or(0.0, |s| s.told.as_bits_per_sec() / 1e6)
    }

    pub(super) fn offer(&mut self, packet: &PacketInfo) {
        self.controller.on_data(ms(self.now), packet, &self.port, &mut self.actions);
        self.join(packet.size);
    }

    pub(super) fn reverse(&mut self, packet: &PacketInfo) -> Option<Rate> {
        self.controller.on_reverse(ms(self.now), packet, &mut self.actions)
    }

    fn join(&mut self, size: Bytes) {
        self.port.arrived[Leaf::Elephant as usize] += size;
        self.port.queued[Leaf::Elephant as usize] += size;
    }

    pub(super) fn run(&mut self, until: u64) {
        while self.now < until {
            self.step();
        }
    }

    fn step(&mut self) {
        let leaf = Leaf::Elephant as usize;
        let rate = self.port.capacity.unwrap_or_default();
        let sent = self.port.queued[leaf].min(rate.bytes_in(Span::from_millis(1)));
        self.port.queued[leaf] -= sent;
        self.port.departed[leaf] += sent;
        self.longest = self.longest.max(self.port.queued[leaf]);
        let due = ms(self.now) >= self.controller.next_timer();
        if self.report_every > 0 && (due || self.now.is_multiple_of(self.report_every)) {
            self.report();
        }
        if due {
            self.controller.on_timer(ms(self.now), &self.port, &mut self.actions);
        }
        let mut senders = core::mem::take(&mut self.senders);
        senders.iter_mut().for_each(|sender| self.step_sender(sender));
        self.senders = senders;
        self.now += 1;
    }

    fn report(&mut self) {
        let now = ms(self.now);
        let controller = &mut self.controller;
        for s in &mut self.senders {
            let Some(handle) = controller.handle(&key(s.n)) else { continue };
            let counts = core::mem::replace(&mut s.counts, Counts { since: now, ..Counts::default() });
            let standing = controller.on_counts(now, handle, &counts, &mut self.actions);
            let version = controller.version();
            if standing == Standing::Same && s.version == Some(version) && !self.now.is_multiple_of(200) {
                continue;
            }
            s.version = Some(version);
            if let Some(decision) = controller.decide(now, handle) {
                s.code = decision.rate;
            }
        }
    }

    fn step_sender(&mut self, s: &mut Sender) {
        if self.now < s.start || self.now > s.end + s.rtt {
            return;
        }
        if self.now == s.start {
            self.offer(&packet(s.n, 0, SYN, RateOption::Unassigned));
        }
        if self.now == s.start + s.rtt {
            let granted = self.reverse(&packet(s.n, 0, SYN_ACK, RateOption::Unassigned));
            (s.told, s.code) = (granted.map_or(Rate::ZERO, as_heard), granted);
            self.offer(&packet(s.n, 0, ACK, RateOption::Unassigned));
        }
        while s.acks.front().is_some_and(|at| *at <= self.now) {
            let at = s.acks.pop_front().unwrap_or_default();
            let mut ack = packet(s.n, 0, ACK, RateOption::Unassigned);
            ack.timestamps = Some((self.now as u32, (at - s.rtt) as u32));
            let rate = if self.report_every > 0 { s.code } else { self.reverse(&ack) };
            s.told = rate.map_or(s.told, as_heard);
        }
        if self.now == s.end {
            self.offer(&packet(s.n, 0, FIN, RateOption::Absent));
            self.reverse(&packet(s.n, 0, FIN, RateOption::Absent));
        }
        if self.now >= s.end {
            return;
        }
        s.credit += s.told.as_f64() / 1000.0;
        while s.credit >= MTU as f64 {
            s.credit -= MTU as f64;
            let mut data = packet(s.n, MTU - 52, ACK, RateOption::Absent);
            data.timestamps = Some((self.now as u32, self.now as u32));
            if self.report_every > 0 {
                self.join(data.size);
                s.counts.bytes += data.size;
                s.counts.receiver_half = Some(Span::from_millis(s.rtt));
            } else {
                self.offer(&data);
            }
            s.acks.push_back(self.now + s.rtt);
        }
    }
}
