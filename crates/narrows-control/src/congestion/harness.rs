//! A closed loop for the controllers' tests: one greedy sender, one drop-tail link, an ACK for every packet.
//!
//! The loop is simpler than the simulator. Packets stay in order. A loss is detected one RTT later. Recovery ends when
//! all data that was in flight at its start has been delivered or detected as lost. There are no timeouts, and lost
//! data is not retransmitted.

use std::collections::VecDeque;

use super::{
    Ack, Congestion, Connection, Controller, Lost, RateSample, Recovery, Signal, State, Timestamps, Window,
};
use crate::units::{Bytes, NANOS_PER_SEC, Rate, Span, Time};

const PACKET: u32 = 1500;

/// Returns an ACK of one segment, with ordinary values in all fields.
pub(crate) fn ack_at(now: Time) -> Ack {
    Ack { prior_in_flight: 1, in_flight: 1, ..Ack::new(now, 1) }
}

/// Returns a congestion event with 10 segments in flight.
pub(crate) fn congestion(signal: Signal) -> Congestion {
    Congestion { in_flight: 10, srtt: Span::from_millis(20), ..Congestion::new(signal, Time::ZERO) }
}

/// Returns the window of a new connection.
pub(crate) fn initial_window() -> Window {
    Window::new(10)
}

/// Returns a window in congestion avoidance.
pub(crate) fn window(cwnd: u32) -> Window {
    Window { cwnd, ssthresh: 2, pacing_rate: None }
}

/// Returns a connection after a handshake that took `rtt` and carried `feedback`.
pub(crate) fn connection(rtt: Option<Span>, feedback: Option<Rate>) -> Connection {
    let possible = feedback.is_some();
    Connection { feedback, feedback_possible: possible, seed: 1, ..Connection::new(Time::ZERO, PACKET, rtt) }
}

/// Returns a function that drops every `n`th packet of a path.
pub(crate) fn periodic_loss(n: u64) -> Box<dyn FnMut(u64, Time) -> bool> {
    Box::new(move |seq, _| seq % n == n - 1)
}

/// Number of segments between two losses in [`per_rtt_with_rare_losses`].
pub(crate) const RARE: f64 = 20_000.0;

/// Returns the mean number of segments per RTT between 100 s and 300 s. The link has a rate of 1 Gbit/s, and the RTT
/// without a queue is 100 ms. One in [`RARE`] segments is lost.
pub(crate) fn per_rtt_with_rare_losses(controller: Box<dyn Controller>) -> f64 {
    let path =
        Path { loss: periodic_loss(RARE as u64), ..Path::new(Rate::from_bits_per_sec(1_000_000_000), 100) };
    let mut sender = Sender::new(controller, path);
    sender.run_for(Span::from_secs(100));
    let before = sender.delivered();
    sender.run_for(Span::from_secs(200));
    (sender.delivered() - before) as f64 * 0.100 / 200.0
}

/// The path of the sender: one link with a queue.
pub(crate) struct Path {
    pub(crate) rate: Rate,
    /// RTT without queue.
    pub(crate) rtt: Span,
    /// Number of packets that fit into the queue.
    pub(crate) queue: u64,
    /// Returns whether the packet with this sequence number is lost if it is sent at this time.
    pub(crate) loss: Box<dyn FnMut(u64, Time) -> bool>,
    /// Returns the rate that the network writes into an ACK at this time.
    pub(crate) feedback: Box<dyn FnMut(Time) -> Option<Rate>>,
}

impl Path {
    /// Returns a path that loses packets only when its queue of 1000 packets overflows, and gives no feedback.
    pub(crate) fn new(rate: Rate, rtt_millis: u64) -> Self {
        Path {
            rate,
            rtt: Span::from_millis(rtt_millis),
            queue: 1000,
            loss: Box::new(|_, _| false),
            feedback: Box::new(|_| None),
        }
    }
}

struct Packet {
    sent: Time,
    due: Time,
    lost: bool,
    prior_delivered: u64,
    delivered_time: Time,
    first_sent: Time,
    tx_in_flight: u32,
    lost_before: u64,
}

/// The sender with its controller and path.
pub(crate) struct Sender {
    controller: Box<dyn Controller>,
    window: Window,
    path: Path,
    now: Time,
    next_send: Time,
    link_free: Time,
    flight: VecDeque<Packet>,
    snd_nxt: u64,
    delivered: u64,
    delivered_time: Time,
    first_sent: Time,
    total_lost: u64,
    /// Segments lost since the last ACK.
    lost: u32,
    srtt: Span,
    min_rtt: Span,
    recovery_until: Option<u64>,
    queue_seconds: f64,
}

impl Sender {
    pub(crate) fn new(mut controller: Box<dyn Controller>, mut path: Path) -> Self {
        let mut window = initial_window();
        let now = Time::ZERO + path.rtt;
        let feedback = if controller.wants_feedback() { (path.feedback)(now) } else { None };
        let connection = Connection { now, ..connection(Some(path.rtt), feedback) };
        controller.on_established(&connection, &mut window);
        Sender {
            controller,
            window,
            now,
            next_send: now,
            link_free: now,
            flight: VecDeque::new(),
            snd_nxt: 0,
            delivered: 0,
            delivered_time: now,
            first_sent: now,
            total_lost: 0,
            lost: 0,
            srtt: path.rtt,
            min_rtt: path.rtt,
            recovery_until: None,
            queue_seconds: 0.0,
            path,
        }
    }

    pub(crate) fn now(&self) -> Time {
        self.now
    }
    pub(crate) fn window(&self) -> &Window {
        &self.window
    }
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }
    pub(crate) fn lost(&self) -> u64 {
        self.total_lost
    }
    pub(crate) fn path(&mut self) -> &mut Path {
        &mut self.path
    }
    /// Returns the integral of the queueing delay over time, s^2.
    pub(crate) fn queue_seconds(&self) -> f64 {
        self.queue_seconds
    }
    /// Returns the value that the controller's trace gives for this name.
    pub(crate) fn figure(&self, name: &str) -> f64 {
        let mut found = f64::NAN;
        self.controller.trace(&mut |n, v| {
            if n == name {
                found = v;
            }
        });
        found
    }

    /// Advances virtual time.
    pub(crate) fn run_for(&mut self, span: Span) {
        self.run_until(self.now + span, |_| false);
    }

    /// Advances virtual time until `end`, or until `stop` returns true after an ACK.
    pub(crate) fn run_until(&mut self, end: Time, mut stop: impl FnMut(&Sender) -> bool) {
        while self.now < end {
            let may_send = (self.flight.len() as u64) < u64::from(self.window.cwnd);
            let send_at = if may_send { self.next_send.max(self.now) } else { Time::NEVER };
            let due = self.flight.front().map_or(Time::NEVER, |p| p.due);
            let next = send_at.min(due).min(end);
            let passed = next.since(self.now).as_secs_f64();
            self.queue_seconds += passed * self.link_free.since(self.now).as_secs_f64();
            self.now = next;
            if next == end {
                return;
            }
            if due <= send_at {
                self.receive();
                if stop(self) {
                    return;
                }
            } else {
                self.send();
            }
        }
    }

    fn send(&mut self) {
        let now = self.now;
        if self.flight.is_empty() {
            self.first_sent = now;
            self.delivered_time = now;
        }
        let backlog = self.path.rate.bytes_in(self.link_free.since(now)).get() / u64::from(PACKET);
        let dropped = backlog >= self.path.queue;
        if !dropped {
            self.link_free = self.link_free.max(now) + self.path.rate.time_for(Bytes::new(u64::from(PACKET)));
        }
        let lost = (self.path.loss)(self.snd_nxt, now) || dropped;
        self.snd_nxt += 1;
        self.flight.push_back(Packet {
            sent: now,
            due: self.link_free.max(now) + self.path.rtt,
            lost,
            prior_delivered: self.delivered,
            delivered_time: self.delivered_time,
            first_sent: self.first_sent,
            tx_in_flight: self.flight.len() as u32 + 1,
            lost_before: self.total_lost,
        });
        if let Some(rate) = self.window.pacing_rate {
            assert!(rate > Rate::ZERO, "the pacing rate is zero");
            self.next_send = self.next_send.max(now) + rate.time_for(Bytes::new(u64::from(PACKET)));
        }
    }

    fn receive(&mut self) {
        let prior_in_flight = self.flight.len() as u32;
        let Some(packet) = self.flight.pop_front() else { return };
        let in_flight = self.flight.len() as u32;
        let una = self.snd_nxt - u64::from(in_flight);
        if packet.lost {
            self.lost += 1;
            self.total_lost += 1;
            let lost = Lost {
                now: self.now,
                delivered: self.delivered,
                tx_in_flight: packet.tx_in_flight,
                lost: (self.total_lost - packet.lost_before) as u32,
                app_limited: false,
            };
            self.controller.on_lost(&lost, &self.window);
            if self.recovery_until.is_none() {
                self.recovery_until = Some(self.snd_nxt);
                let event = Congestion {
                    again: false,
                    signal: Signal::Loss,
                    now: self.now,
                    in_flight,
                    srtt: self.srtt,
                };
                self.controller.on_congestion(&event, &mut self.window);
                if self.controller.recovery() == Recovery::Transport {
                    self.window.cwnd = self.window.ssthresh;
                }
            }
            return;
        }
        let rtt = self.now.since(packet.sent);
        self.srtt = Span::from_nanos((7 * self.srtt.as_nanos() + rtt.as_nanos()) / 8);
        self.min_rtt = self.min_rtt.min(rtt);
        self.delivered += 1;
        self.delivered_time = self.now;
        let send_span = packet.sent.since(packet.first_sent);
        let ack_span = self.now.since(packet.delivered_time);
        self.first_sent = packet.sent;
        if self.recovery_until.is_some_and(|until| una >= until) {
            self.recovery_until = None;
            self.controller.on_recovered(self.now, &mut self.window);
        }
        let state = if self.recovery_until.is_some() { State::Recovery } else { State::Open };
        let ack = Ack {
            lost: core::mem::take(&mut self.lost),
            delivered: self.delivered,
            total_lost: self.total_lost,
            snd_una: una,
            snd_nxt: self.snd_nxt,
            prior_in_flight,
            in_flight,
            rtt: Some(rtt),
            srtt: self.srtt,
            min_rtt: self.min_rtt,
            rate: RateSample {
                delivered: (self.delivered - packet.prior_delivered) as u32,
                interval: send_span.max(ack_span),
                prior_delivered: packet.prior_delivered,
                tx_in_flight: packet.tx_in_flight,
                lost: (self.total_lost - packet.lost_before) as u32,
                ..RateSample::default()
            },
            state,
            cwnd_limited: prior_in_flight >= self.window.cwnd,
            feedback: (self.path.feedback)(self.now),
            timestamps: Some(Timestamps {
                value: Timestamps::clock(self.now - self.path.rtt.scale(1, 2)),
                echo: Timestamps::clock(packet.sent),
            }),
            ..ack_at(self.now)
        };
        self.controller.on_sample(&ack);
        if state == State::Open || self.controller.recovery() == Recovery::Controller {
            self.controller.on_ack(&ack, &mut self.window);
        }
        assert!(self.window.cwnd >= 1);
        assert!(self.now.as_nanos() < 10_000 * NANOS_PER_SEC);
    }
}
