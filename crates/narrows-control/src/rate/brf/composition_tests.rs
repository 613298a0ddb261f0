//! Tests several switches on a path. Their independent decisions must result in max-min fair rates in the network
//! (BRF-102).

use std::collections::VecDeque;

use super::harness::{ACK, MTU, SYN, SYN_ACK, mbit, ms, packet};
use super::{Brf, Params};
use crate::feedback::code::as_heard;
use crate::rate::{Action, Admission, PerFlowController, PortCounters, PortId, RateOption, TcpFlags};
use crate::units::{Bytes, Rate, Time};

struct Switch {
    brf: Brf,
    port: PortCounters,
    actions: Vec<Action>,
}

impl Switch {
    fn new(params: Params, id: PortId, capacity: Rate) -> Self {
        let port = PortCounters { capacity: Some(capacity), ..PortCounters::default() };
        let mut brf = Brf::new(params, id, Bytes::new(MTU));
        let mut actions = Vec::new();
        brf.on_start(Time::ZERO, &port, &mut actions);
        Switch { brf, port, actions }
    }
}

/// A greedy flow. Its data passes the switches in the order of `path`.
struct Flow {
    n: u32,
    path: Vec<usize>,
    rtt: u64,
    told: Rate,
    says: Option<bool>,
    credit: f64,
    acks: VecDeque<(u64, TcpFlags)>,
}

impl Flow {
    fn new(n: u32, path: &[usize], rtt: u64) -> Self {
        Flow { n, path: path.to_vec(), rtt, told: Rate::ZERO, says: None, credit: 0.0, acks: VecDeque::new() }
    }

    fn send(&mut self, now: u64, switches: &mut [Switch], payload: u64, flags: TcpFlags, option: RateOption) {
        let mut data = packet(self.n, payload, flags, option);
        data.unlimited = self.says.filter(|_| payload > 0);
        for at in &self.path {
            let switch = &mut switches[*at];
            if let Admission::Queue(leaf) =
                switch.brf.on_data(ms(now), &data, &switch.port, &mut switch.actions)
            {
                switch.port.arrived[leaf as usize] += data.size;
            }
        }
        if payload > 0 || flags.syn {
            self.acks.push_back((now + self.rtt, if flags.syn { SYN_ACK } else { ACK }));
        }
    }

    fn step(&mut self, now: u64, switches: &mut [Switch]) {
        if now == u64::from(self.n) {
            self.send(now, switches, 0, SYN, RateOption::Unassigned);
        }
        while let Some((at, flags)) = self.acks.front().copied()
            && at <= now
        {
            self.acks.pop_front();
            let mut ack = packet(self.n, 0, flags, RateOption::Unassigned);
            for at in self.path.iter().rev() {
                let switch = &mut switches[*at];
                if let Some(rate) = switch.brf.on_reverse(ms(now), &ack, &mut switch.actions) {
                    ack.option = RateOption::Assigned(as_heard(rate));
                }
            }
            if let RateOption::Assigned(rate) = ack.option {
                self.told = rate;
            }
            if flags.syn {
                self.send(now, switches, 0, ACK, RateOption::Absent);
            }
        }
        self.credit += self.told.as_f64() / 1000.0;
        while self.credit >= MTU as f64 {
            self.credit -= MTU as f64;
            self.send(now, switches, MTU - 52, ACK, RateOption::Absent);
        }
    }
}

/// Returns the rates of the flows after `until` ms, Mbit/s. `says` is the senders' report of BRF-100, or `None` if they
/// send no reports.
fn run(says: Option<bool>, capacities: &[f64], mut flows: Vec<Flow>, until: u64) -> Vec<f64> {
    let mut switches: Vec<Switch> =
        capacities.iter().zip(1..).map(|(c, id)| Switch::new(Params::resolved(), id, mbit(*c))).collect();
    flows.iter_mut().for_each(|flow| flow.says = says);
    for now in 0..until {
        for s in switches.iter_mut().filter(|s| s.brf.next_timer() <= ms(now)) {
            s.brf.on_timer(ms(now), &s.port, &mut s.actions);
        }
        flows.iter_mut().for_each(|flow| flow.step(now, &mut switches));
    }
    flows.iter().map(|flow| flow.told.as_bits_per_sec() / 1e6).collect()
}

fn assert_close(found: &[f64], expected: &[f64]) {
    for (f, e) in found.iter().zip(expected) {
        assert!((f - e).abs() <= 0.03 * e, "{found:?}, not {expected:?}");
    }
}

/// The second switch limits the flow through both switches to 24.5 Mbit/s. The first switch reads this rate in the
/// ACKs, and gives the rest of its link to its other flow. So the result does not need the senders' reports of BRF-100.
#[test]
fn two_bottlenecks_reach_the_networks_max_min_rates_in_ten_cycles() {
    for says in [None, Some(true)] {
        let flows = vec![Flow::new(1, &[0, 1], 20), Flow::new(2, &[0], 20), Flow::new(3, &[1], 20)];
        let told = run(says, &[100.0, 50.0], flows, 10 * 40 + 100);
        assert_close(&told, &[24.5, 73.5, 24.5]);
    }
}

/// The first and second switches give each of their flows 19.6 Mbit/s. The third switch must find by measurement that
/// two of its flows are limited elsewhere. This leaves 98 - 39.2 Mbit/s for the last flow. Without the senders'
/// reports, those two flows get the full headroom of a tenth, at the expense of the last flow.
#[test]
fn a_parking_lot_with_different_rtts_reaches_them_too() {
    for (says, last) in [(Some(true), 58.8), (None, 98.0 - 1.1 * 39.2)] {
        let flows = vec![
            Flow::new(1, &[0, 1, 2], 50),
            Flow::new(2, &[0], 10),
            Flow::new(3, &[1], 20),
            Flow::new(4, &[1, 2], 30),
            Flow::new(5, &[2], 20),
        ];
        let told = run(says, &[40.0, 60.0, 100.0], flows, 10 * 100 + 200);
        assert_close(&told, &[19.6, 19.6, 19.6, 19.6, last]);
    }
}
