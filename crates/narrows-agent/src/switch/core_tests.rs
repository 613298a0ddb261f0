use std::cell::{Cell, RefCell};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;

use narrows_control::rate::brf::{Brf, Params};
use narrows_control::rate::{LEAVES, Leaf, Proto};
use narrows_control::units::Rate;

use super::super::table::{Head, Tags, Tail};
use super::*;

const RTT_US: u32 = 20_000;

#[derive(Clone, Copy, Default)]
struct Slot {
    head: Head,
    tail: Tail,
    orders: Option<Orders>,
    tags: Tags,
    /// The flow's key is made from this number.
    number: u8,
    credit: f64,
}

/// A flow table in memory, whose flows send at the rates in their slots.
#[derive(Clone)]
struct Plane {
    slots: Rc<RefCell<Vec<Slot>>>,
    released: Rc<Cell<usize>>,
}

impl FlowTable for Plane {
    fn capacity(&self) -> u32 {
        self.slots.borrow().len() as u32
    }
    fn head(&self, slot: u32) -> Head {
        self.slots.borrow()[slot as usize].head
    }
    fn tail(&self, slot: u32) -> Tail {
        self.slots.borrow()[slot as usize].tail
    }
    fn owner(&self, slot: u32) -> Option<(FlowKey, usize)> {
        let n = self.slots.borrow()[slot as usize].number;
        let address = |n| IpAddr::V4(Ipv4Addr::new(10, 0, 0, n));
        let (saddr, daddr) = (address(n), address(200));
        Some((FlowKey { saddr, daddr, sport: 1000, dport: 80, proto: Proto::Tcp }, 0))
    }
    fn tags(&self, slot: u32) -> Tags {
        self.slots.borrow()[slot as usize].tags
    }
    fn order(&self, slot: u32, orders: Orders) {
        self.slots.borrow_mut()[slot as usize].orders = Some(orders);
    }
    fn release(&mut self, slot: u32) -> io::Result<()> {
        self.slots.borrow_mut()[slot as usize] = Slot::default();
        self.released.set(self.released.get() + 1);
        Ok(())
    }
    fn confirm(&self, _slot: u32) {}
    fn begin_tick(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Net {
    plane: Plane,
    switch: Switch<Plane>,
    now: Time,
    asked: Vec<Asked>,
}

fn mbit(orders: Option<Orders>) -> f64 {
    let rate = orders.and_then(|orders| orders.code.decode());
    rate.map_or(0.0, |rate| rate.as_bits_per_sec() / 1e6)
}

impl Net {
    /// Returns a network with one port of 100 Mbit/s under BRF.
    fn new() -> Net {
        Net::under(Box::new(Brf::new(Params::resolved(), 0, Bytes::new(1500))))
    }

    /// Returns a network with one port of 100 Mbit/s under `controller`.
    fn under(controller: Box<dyn Aggregated>) -> Net {
        let plane = Plane { slots: Rc::new(RefCell::new(vec![Slot::default(); 8])), released: Rc::default() };
        let counters = PortCounters {
            capacity: Some(Rate::from_bits_per_sec(100_000_000)),
            limit_packets: [1000; LEAVES],
            ..PortCounters::default()
        };
        let port = Port::new(controller, counters);
        let mut switch = Switch::new(plane.clone(), vec![port]);
        let (now, mut asked) = (Time::from_nanos(5_000_000_000), Vec::new());
        switch.start(now, &mut asked);
        Net { plane, switch, now, asked }
    }

    fn set(&self, slot: usize, change: impl FnOnce(&mut Slot)) {
        change(&mut self.plane.slots.borrow_mut()[slot]);
    }

    fn ordered(&self, slot: usize) -> f64 {
        mbit(self.plane.slots.borrow()[slot].orders)
    }

    /// Simulates the SYN-ACK of flow `number`. With `ring`, announces the slot. Flow 1 has no tags. All other flows
    /// have the same tags.
    fn open(&mut self, slot: usize, number: u8, flags: Flags, ring: bool) {
        let grant = self.switch.grants::<1>(0)[0];
        self.set(slot, |s| {
            let head = Head { live: true, flags, ..Head::default() };
            let tail = Tail { rtt_receiver: (RTT_US - 100, 1), code: grant.to_bits(), ..Tail::default() };
            let own = number > 1;
            let tags = Tags { vlan: u16::from(own), mark: u32::from(own) };
            *s = Slot { head, tail, tags, number, ..Slot::default() };
        });
        if ring {
            self.switch.newcomers(self.now, &[slot as u32], &mut self.asked);
        }
    }

    fn flag(&self, slot: usize, flags: Flags) {
        self.set(slot, |s| s.head.flags = Flags(s.head.flags.0 | flags.0));
    }

    /// Simulates `ms` milliseconds in which the flows send at their rates.
    fn run(&mut self, ms: u64) {
        for _ in 0..ms {
            self.now += Span::from_millis(1);
            let mut sent = Bytes::ZERO;
            for slot in self.plane.slots.borrow_mut().iter_mut().filter(|slot| slot.head.live) {
                let orders = slot.orders.or(Some(Orders {
                    code: RateCode::from_bits(slot.tail.code),
                    leaf: Leaf::Elephant,
                    rtt_us: 0,
                }));
                slot.credit += mbit(orders) * 125.0;
                while slot.credit >= 1500.0 {
                    slot.credit -= 1500.0;
                    slot.head.bytes += 1500;
                    slot.tail.last_ns = self.now.as_nanos();
                    sent += Bytes::new(1500);
                }
            }
            // The simulated link is fast enough, so there is never a queue.
            let counters = &mut self.switch.ports_mut()[0].counters;
            counters.arrived[Leaf::Elephant as usize] += sent;
            counters.departed[Leaf::Elephant as usize] += sent;
            if self.now.as_nanos().is_multiple_of(10_000_000) || self.now >= self.switch.next_timer() {
                self.switch.tick(self.now, &mut self.asked);
            }
        }
    }

    fn handshake(&mut self, slot: usize, number: u8) {
        self.open(slot, number, Flags::RATED, true);
        self.run(1);
        self.set(slot, |s| s.tail.rtt_sender = (100, 1));
        self.flag(slot, Flags(Flags::SENDER_SEEN.0 | Flags::RECEIVER_SEEN.0));
    }
}

#[test]
fn a_new_flow_reduces_the_first_ones_rate_without_a_tick() {
    let mut net = Net::new();
    net.handshake(0, 1);
    net.run(500);
    assert!((net.ordered(0) - 98.0).abs() < 0.5, "{}", net.ordered(0));
    net.open(1, 2, Flags::RATED, true);
    // The new flow gets a third of the capacity (BRF-34). The first flow has the rest until an ACK of the new flow's
    // data passes.
    assert!((net.ordered(0) - 98.0 * 2.0 / 3.0).abs() < 0.5, "no tick was needed: {}", net.ordered(0));
    net.flag(1, Flags(Flags::SENDER_SEEN.0 | Flags::RECEIVER_SEEN.0));
    net.run(500);
    assert!((net.ordered(0) - 49.0).abs() < 0.5 && (net.ordered(1) - 49.0).abs() < 0.5);
    let classes = net.asked.iter().filter(|a| matches!(a.action, Action::SetClass { .. })).count();
    assert!(classes > 0, "HTB gets the split");
}

#[test]
fn a_flow_without_a_notification_is_found() {
    let mut net = Net::new();
    net.run(50);
    net.open(3, 1, Flags::RATED, false);
    net.run(250);
    assert_eq!(net.switch.work().live, 1);
}

#[test]
fn ends_give_slots_back() {
    let mut net = Net::new();
    for (slot, end) in
        [(0, Flags(Flags::FIN_SENDER.0 | Flags::FIN_RECEIVER.0)), (1, Flags::RST), (2, Flags::FIN_SENDER)]
    {
        net.handshake(slot, slot as u8 + 1);
        net.run(50);
        net.flag(slot, end);
    }
    net.run(300);
    assert_eq!((net.plane.released.get(), net.switch.work().live), (2, 1), "half closed is not closed");
    net.flag(2, Flags::FIN_RECEIVER);
    net.run(300);
    assert_eq!((net.plane.released.get(), net.switch.flows().count()), (3, 0));
}

#[test]
fn an_incomplete_handshake_frees_its_slot() {
    let mut net = Net::new();
    net.open(0, 1, Flags::RATED, true);
    // A forged flow sends no data.
    net.set(0, |s| s.tail.code = RateCode::UNASSIGNED.to_bits());
    net.plane.slots.borrow_mut()[0].orders = None;
    for _ in 0..80 {
        net.set(0, |s| s.orders = s.orders.map(|o| Orders { code: RateCode::UNASSIGNED, ..o }));
        net.run(100);
    }
    assert_eq!(net.plane.released.get(), 1);
}

#[test]
fn flows_from_before_the_agent_are_adopted() {
    let mut net = Net::new();
    let guessed = Flags(Flags::GUESSED.0 | Flags::RATED.0);
    net.open(0, 1, guessed, false);
    net.run(250);
    net.flag(0, Flags(Flags::RECEIVER_SEEN.0 | Flags::SENDER_SEEN.0));
    net.run(250);
    assert!((net.ordered(0) - 98.0).abs() < 0.5, "{}", net.ordered(0));
}

#[test]
fn a_flow_without_acks_here_is_advertised() {
    let mut net = Net::new();
    net.open(0, 1, Flags(Flags::RATED.0 | Flags::ADOPTED.0), true);
    net.flag(0, Flags::SENDER_SEEN);
    net.run(2000);
    let advertised: Vec<_> = net
        .asked
        .iter()
        .filter_map(|asked| match &asked.action {
            Action::ToController(Message::FlowAdvertisement { rate, .. }) => Some(rate.as_f64() * 8e-6),
            _ => None,
        })
        .collect();
    assert!(advertised.last().is_some_and(|rate| (rate - 98.0).abs() < 0.5), "{advertised:?}");
    let before = advertised.len();
    net.flag(0, Flags::RECEIVER_SEEN);
    net.run(1000);
    let after = net.asked.iter().filter(|a| matches!(a.action, Action::ToController(_))).count();
    assert!(after <= before + 1, "its ACKs take this path now: {before}, then {after}");
}

#[test]
fn other_tcp_gets_no_rate_and_its_own_leaf() {
    let mut net = Net::new();
    net.open(0, 1, Flags::default(), true);
    net.flag(0, Flags(Flags::SENDER_SEEN.0 | Flags::RECEIVER_SEEN.0));
    net.set(0, |s| s.head.bytes = 3000);
    net.run(20);
    let slot = net.plane.slots.borrow()[0];
    assert!(slot.orders.is_none_or(|o| o.code == RateCode::UNASSIGNED && o.leaf == Leaf::OtherTcp));
    net.handshake(1, 2);
    net.run(50);
    assert!((net.ordered(1) - 49.0).abs() < 0.5, "half for each class: {}", net.ordered(1));
}

#[test]
fn flows_with_the_same_tag_share_as_one() {
    for share in ["vlan", "mark"] {
        let params = Params { share: share.parse().unwrap(), ..Params::resolved() };
        let mut net = Net::under(Box::new(Brf::new(params, 0, Bytes::new(1500))));
        for slot in 0..4 {
            net.handshake(slot, slot as u8 + 1);
            net.run(100);
        }
        net.run(500);
        let found = [0, 1, 2, 3].map(|slot| net.ordered(slot));
        for (found, expected) in found.into_iter().zip([49.0, 49.0 / 3.0, 49.0 / 3.0, 49.0 / 3.0]) {
            assert!((found / expected - 1.0).abs() < 0.02, "{share}: {found} instead of {expected}");
        }
    }
}

fn stamped(kind: &str) -> Net {
    let signal = narrows_control::parameter::Value::Word("ack".into());
    let params = [("signal".to_owned(), signal)].into();
    let controller = narrows_control::rate::registry::build(kind, &params, 0, Bytes::new(1500)).unwrap();
    Net::under(controller.into_aggregated().unwrap())
}

#[test]
fn rcp_gives_equal_shares() {
    let mut net = stamped("rcp");
    let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.03;
    net.handshake(0, 1);
    net.run(3000);
    assert!(near(net.ordered(0), 100.0), "{}", net.ordered(0));
    net.handshake(1, 2);
    net.run(3000);
    assert!(
        near(net.ordered(0), 50.0) && near(net.ordered(1), 50.0),
        "{} {}",
        net.ordered(0),
        net.ordered(1)
    );
    net.flag(0, Flags(Flags::FIN_SENDER.0 | Flags::FIN_RECEIVER.0));
    net.run(3000);
    assert!(near(net.ordered(1), 100.0), "{}", net.ordered(1));
    assert_eq!((net.plane.released.get(), net.switch.work().live), (1, 1));
}

/// In each tick, a port with BDR gets the sums of its reports, and returns one rate for all flows.
#[test]
fn bdr_shares_by_its_reports_without_slots() {
    let params = narrows_control::rate::bdr::Params { redistribution: false, ..Default::default() };
    let mut net = Net::under(Box::new(narrows_control::rate::bdr::Stateless::new(params)));
    let share = |net: &mut Net| {
        let counter = net.switch.ports_mut()[0].controller.report_counter().unwrap();
        counter.common_rate(net.now).as_bits_per_sec() / 1e6
    };
    for (flows, expected) in [(1, 98.0), (4, 24.5), (200, 0.49)] {
        for _ in 0..300 {
            // Every 20 ms, each flow reports a time of 20 ms.
            let number = flows / 2;
            let lived = Span::from_millis(10 * flows);
            net.switch.ports_mut()[0].reports = Reports { number, lived, ..Reports::default() };
            net.run(10);
        }
        let found = share(&mut net);
        assert!((found / expected - 1.0).abs() < 0.12, "{flows}: {found}");
        assert_eq!((net.switch.work().live, net.switch.ports()[0].reports), (0, Reports::default()));
    }
    let grants = net.switch.grants::<2>(0).map(|code| code.decode().unwrap_or_default());
    assert!(grants[1] <= grants[0] && grants[0].as_bits_per_sec() < 0.6e6, "{grants:?}");
}

#[test]
fn rcp_releases_forged_flows_and_keeps_other_tcp() {
    let mut net = stamped("rcp");
    net.open(0, 1, Flags::RATED, true);
    net.open(1, 2, Flags::default(), true);
    net.flag(1, Flags(Flags::SENDER_SEEN.0 | Flags::RECEIVER_SEEN.0));
    net.set(0, |s| s.tail.code = RateCode::UNASSIGNED.to_bits());
    net.plane.slots.borrow_mut()[0].orders = None;
    for _ in 0..80 {
        net.set(0, |s| s.orders = s.orders.map(|o| Orders { code: RateCode::UNASSIGNED, ..o }));
        net.set(1, |s| s.head.bytes += 1500);
        net.run(100);
    }
    assert_eq!((net.plane.released.get(), net.switch.work().live), (1, 1));
    let slot = net.plane.slots.borrow()[1];
    assert!(slot.orders.is_none_or(|o| o.code == RateCode::UNASSIGNED && o.leaf == Leaf::OtherTcp));
    assert!(slot.head.live, "the other's slot stays");
}

#[test]
fn another_controller_takes_over_the_flows_of_its_port() {
    let mut net = Net::new();
    net.handshake(0, 1);
    net.handshake(1, 2);
    net.run(500);
    let before = net.ordered(0);
    assert!(before > 40.0, "{before}");
    let params = Params { eta: 0.5, ..Params::resolved() };
    let controller = Box::new(Brf::new(params, 0, Bytes::new(1500)));
    net.switch.replace(net.now, 0, controller, &mut net.asked);
    assert_eq!(net.switch.flows().filter(|flow| flow.known).count(), 2);
    net.run(500);
    let after = net.ordered(0);
    assert!((after / before - 0.5 / 0.98).abs() < 0.05, "{before} {after}");
    assert_eq!(net.plane.released.get(), 0);
}

#[test]
fn a_rate_of_another_switch_for_a_closed_flow_does_not_change_the_shares() {
    let mut net = Net::new();
    (0..3).for_each(|slot| net.handshake(slot, slot as u8 + 1));
    net.run(1000);
    net.flag(2, Flags(Flags::FIN_SENDER.0 | Flags::FIN_RECEIVER.0));
    net.set(2, |s| s.credit = -1e9);
    net.run(10);
    // A late retransmission passes, and its ACK carries another switch's rate.
    net.set(2, |s| {
        s.tail.passed = (RateCode::encode(Rate::from_bits_per_sec(10_000_000)).to_bits(), 1);
        s.credit = 1500.0;
    });
    net.run(10);
    net.set(2, |s| s.credit = -1e9);
    for _ in 0..50 {
        net.run(20);
        for slot in 0..2 {
            assert!((net.ordered(slot) - 49.0).abs() < 0.5, "two flows share: {}", net.ordered(slot));
        }
    }
}
