//! Tests that TCP behaves as in Linux. Two endpoints exchange packets under a simulated clock. Each test decides what
//! happens to each packet.

mod congestion;
mod connection;
mod loss;
mod reordering;

use std::collections::BTreeMap;

use narrows_control::catalogue;
use narrows_control::units::{Bytes, Rate, Span, Time};

use super::{App, Config, Io, Offer, Phase, Receiver, Sender};
use crate::packet::{Packet, Template, flag};
use crate::packets::Packets;
use crate::plan::{AppPlan, INITIAL_WINDOW_PACKETS};

/// The effect of the network on a packet.
#[derive(Copy, Clone, Debug, PartialEq)]
enum Fate {
    Pass,
    Drop,
    /// The packet is delayed by this additional time.
    Late(Span),
    /// The link stops until this time. This packet and all later packets wait.
    Held(Time),
    /// The packet arrives twice.
    Twice,
    /// The packet is marked as congestion experienced.
    Mark,
}

/// A packet that was sent.
#[derive(Clone, Debug)]
struct Sent {
    at: Time,
    packet: Packet,
    fate: Fate,
}

impl Sent {
    fn is_data(&self) -> bool {
        !self.packet.is(flag::REVERSE) && self.packet.payload > 0
    }
    fn is_ack(&self) -> bool {
        self.packet.is(flag::REVERSE) && !self.packet.is(flag::SYN | flag::FIN)
    }
}

type Network<'n> = Box<dyn FnMut(&Packet, Time) -> Fate + 'n>;

/// Two endpoints and the network between them.
struct Pair<'n> {
    now: Time,
    sender: Sender,
    receiver: Receiver,
    delay: Span,
    /// Transmission time of a data packet at the bottleneck. The bottleneck's queue has no limit.
    slot: Span,
    free_at: Time,
    network: Network<'n>,
    flight: BTreeMap<(Time, u64), Packet>,
    log: Vec<Sent>,
}

const MSS: u64 = 1448;

fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

fn at(n: u64) -> Time {
    Time::ZERO + ms(n)
}

fn segments(n: u64) -> AppPlan {
    AppPlan::Size { bytes: Bytes::new(n * MSS) }
}

impl<'n> Pair<'n> {
    /// Creates a connection over an RTT of 40 ms and a link that carries a segment in 0.1 ms (120 Mbit/s).
    fn new(cc: &str, app: &AppPlan, network: impl FnMut(&Packet, Time) -> Fate + 'n) -> Self {
        let template = Template::default();
        let offer = Offer::new(MSS as u32, None, None, false);
        let config = Config {
            template,
            mss: MSS as u16,
            initial_segments: INITIAL_WINDOW_PACKETS,
            ecn: true,
            pacing: false,
            offer,
            seed: 1,
        };
        let app = App::new(app, Time::ZERO, Time::NEVER);
        let cc = catalogue::build(cc).unwrap();
        let exact_ce = cc.needs_exact_ce_echo();
        let sender = Sender::new(config, app, cc, Time::ZERO);
        let template = Template { flags: flag::REVERSE, ..template };
        let receiver = Receiver::new(template, true, exact_ce, offer.opening());
        Pair {
            now: Time::ZERO,
            sender,
            receiver,
            delay: ms(20),
            slot: Span::from_micros(100),
            free_at: Time::ZERO,
            network: Box::new(network),
            flight: BTreeMap::new(),
            log: Vec::new(),
        }
    }

    /// Limits the receive window, as the `receive_window` of a plan does.
    fn limit_window(&mut self, segments: u32) {
        let offer = Offer::new(MSS as u32, Some(segments), None, false);
        self.sender.offer = offer;
        self.receiver.window = offer.opening();
    }

    /// Sets the receive window to its maximum, because a growing window would cause additional ACKs.
    fn open_window(&mut self) {
        self.sender.offer.on_ack(0, 0, u32::MAX);
        self.receiver.window.grow(u32::MAX);
    }

    fn act(&mut self, act: impl FnOnce(&mut Sender, &mut Receiver, &mut Io<'_>)) {
        let (mut packets, mut out) = (Packets::new(), Vec::new());
        let mut io = Io { now: self.now, packets: &mut packets, out: &mut out };
        act(&mut self.sender, &mut self.receiver, &mut io);
        for id in out {
            self.carry(*packets.get(id));
        }
    }

    fn carry(&mut self, mut packet: Packet) {
        let fate = (self.network)(&packet, self.now);
        if fate == Fate::Mark {
            assert!(packet.is(flag::ECT), "only an ECN-capable packet can be marked");
            packet.flags |= flag::CE;
        }
        let n = self.log.len() as u64;
        self.log.push(Sent { at: self.now, packet, fate });
        let mut arrival = self.now + self.delay;
        if let Fate::Held(until) = fate {
            self.free_at = self.free_at.max(until);
        }
        if packet.payload > 0 {
            self.free_at = self.free_at.max(self.now) + self.slot;
            arrival = self.free_at + self.delay;
        }
        match fate {
            Fate::Drop => return,
            Fate::Late(extra) => arrival += extra,
            Fate::Twice => drop(self.flight.insert((arrival + Span::from_nanos(1), n), packet)),
            Fate::Pass | Fate::Mark | Fate::Held(_) => {}
        }
        self.flight.insert((arrival, n), packet);
    }

    /// Runs until `end`, or until both ends have closed.
    fn run_until(&mut self, end: Time) -> &mut Self {
        if self.now == Time::ZERO && self.log.is_empty() {
            self.act(|s, _, io| s.connect(io));
        }
        while !(self.sender.phase == Phase::Closed && self.receiver.is_closed()) {
            let arrival = self.flight.keys().next().map_or(Time::NEVER, |k| k.0);
            let timer = self.sender.deadline().min(self.receiver.deadline());
            let send = self.sender.send_at(self.now);
            let next = arrival.min(timer).min(send);
            if next > end {
                self.now = end;
                break;
            }
            assert!(next >= self.now, "time goes backwards");
            self.now = next;
            if arrival == next {
                if let Some((_, p)) = self.flight.pop_first() {
                    self.act(
                        |s, r, io| {
                            if p.is(flag::REVERSE) { s.on_packet(io, &p) } else { r.on_packet(io, &p) }
                        },
                    );
                }
            } else if timer == next {
                self.act(|s, r, io| {
                    if r.deadline() <= io.now {
                        r.on_timer(io);
                    }
                    if s.deadline() <= io.now {
                        s.on_timer(io);
                    }
                });
            } else {
                self.act(|s, _, io| s.transmit(io));
            }
        }
        self
    }

    fn data(&self) -> impl Iterator<Item = &Sent> {
        self.log.iter().filter(|s| s.is_data())
    }

    fn acks(&self) -> impl Iterator<Item = &Sent> {
        self.log.iter().filter(|s| s.is_ack())
    }

    /// Returns the times of all transmissions of a segment.
    fn times_of(&self, seq: u32) -> Vec<Time> {
        self.data().filter(|s| s.packet.seq == seq).map(|s| s.at).collect()
    }

    fn is_closed(&self) -> bool {
        self.sender.phase == Phase::Closed && self.receiver.is_closed()
    }

    /// Asserts that all data was delivered exactly once and in order, and that both ends have closed.
    fn assert_complete(&self, bytes: u64) {
        assert!(self.is_closed(), "{:?} {:?}", self.sender.phase, self.receiver.phase);
        assert_eq!(self.receiver.delivered, bytes);
        let board = &self.sender.flight.board;
        assert_eq!((board.packets_out(), board.sacked_out, board.lost_out, board.retrans_out), (0, 0, 0, 0));
    }
}

/// Drops the first transmission of each of these segments.
fn lose(segments: &[u32]) -> impl FnMut(&Packet, Time) -> Fate + use<> {
    lose_times(segments.iter().map(|&s| (s, 1)).collect())
}

/// For each segment in `left`, drops the given number of transmissions.
fn lose_times(mut left: BTreeMap<u32, u32>) -> impl FnMut(&Packet, Time) -> Fate {
    move |p, _| {
        if p.is(flag::REVERSE | flag::SYN) || p.payload == 0 {
            return Fate::Pass;
        }
        match left.get_mut(&p.seq) {
            Some(n) if *n > 0 => {
                *n -= 1;
                Fate::Drop
            }
            _ => Fate::Pass,
        }
    }
}

/// Applies `fate` to the first packet that matches `which`.
fn first(fate: Fate, which: impl Fn(&Packet) -> bool) -> impl FnMut(&Packet, Time) -> Fate {
    let mut done = false;
    move |p, _| {
        if !done && which(p) {
            done = true;
            return fate;
        }
        Fate::Pass
    }
}

fn limited(mbit: u64) -> AppPlan {
    AppPlan::Limited { rate: Rate::from_bits_per_sec(mbit * 1_000_000), on: None, off: None }
}
