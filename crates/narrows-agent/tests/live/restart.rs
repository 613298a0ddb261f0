//! A switch without pins restarts on a port that is slower than its wire. While no switch runs, the senders use CUBIC,
//! and send at the wire's whole rate. When the switch starts again, all flows therefore have large windows in flight.

use std::thread;
use std::time::Duration;

use narrows_agent::clock;
use narrows_control::units::Span;
use narrows_lab::{Room, patiently};

use super::agent::{Agent, since};
use super::flow::{Flow, all_well};
use super::net::{Forwarding, Net, RTT_MS};

/// Rate of the wire: ten times the port's rate.
const WIRE: &str = "rate 1gbit burst 256kb limit 4000000";
/// Packets per second of a flow with half of 100 Mbit/s, at the controller's target of 0.98 and with frames of 1514
/// bytes.
const SHARE: f64 = 0.98 * 100e6 / 8.0 / 1514.0 / 2.0;
/// A flow has its share if it gets at least 90 % of it in every period of this length.
const LASTING: Span = Span::from_millis(400);
const WATCHED: Span = Span::from_millis(2500);
const DEADLINE: Span = Span::from_millis(1000 + 4 * RTT_MS);

fn is_shaped(net: &Net) -> bool {
    net.says("r", "tc qdisc show dev c").contains("htb 4e57: root")
}

/// Returns the first time after which every flow has its share in all samples. A sample consists of a time and the
/// number of packets that each flow has delivered by then. A high rate that does not last is ignored: at first, packets
/// that are already on the wire arrive faster than the port sends.
fn back_at(samples: &[(Span, [u64; 2])]) -> Option<Span> {
    let is_fair = |at: &Span, from: &[u64; 2]| {
        let (later, to) = samples.iter().find(|(later, _)| *later >= *at + LASTING)?;
        let expected = 0.9 * SHARE * (*later - *at).as_secs_f64();
        Some(from.iter().zip(to).all(|(from, to)| (to - from) as f64 >= expected))
    };
    let judged: Vec<_> =
        samples.iter().filter_map(|(at, delivered)| Some((*at, is_fair(at, delivered)?))).collect();
    let fair_at_the_end = judged.iter().rev().take_while(|(_, fair)| *fair).count();
    judged.get(judged.len() - fair_at_the_end).map(|(at, _)| *at)
}

/// Kills the switch and, if it is given, the sender. Starts both again after `unshaped`. Returns the time from the
/// moment when the port is shaped again until every flow has its share. Returns `None` if this time is longer than
/// [`WATCHED`].
fn recovery(
    net: &Net,
    switch: &mut Agent,
    sender: Option<&mut Agent>,
    flows: [&Flow; 2],
    unshaped: Duration,
) -> Option<Span> {
    switch.kill();
    let sender = sender.map(|sender| {
        sender.kill();
        sender
    });
    thread::sleep(unshaped / 2);
    let before = flows.map(Flow::delivered);
    thread::sleep(unshaped / 2);
    let free: Vec<f64> = flows
        .iter()
        .zip(before)
        .map(|(flow, before)| (flow.delivered() - before) as f64 / SHARE / (unshaped.as_secs_f64() / 2.0))
        .collect();
    thread::scope(|scope| {
        let restarted = scope.spawn(|| switch.restart());
        let sender_restarted = sender.map(|sender| scope.spawn(|| sender.restart()));
        while !is_shaped(net) && !restarted.is_finished() {
            thread::sleep(Duration::from_millis(2));
        }
        let begun = clock::now();
        let mut samples = Vec::new();
        while since(begun) < WATCHED {
            samples.push((since(begun), flows.map(Flow::delivered)));
            thread::sleep(Duration::from_millis(10));
        }
        restarted.join().expect("the switch starts again");
        if let Some(sender) = sender_restarted {
            sender.join().expect("the sender starts again");
        }
        let back = back_at(&samples);
        println!("without the switch {free:.1?} shares; back after {back:?}");
        all_well(&flows);
        back
    })
}

/// Returns a network with two flows that have sent for this time, or `None` if this machine cannot run the test.
fn running(time: Duration) -> Option<(Net, Agent, Agent, [Flow; 2])> {
    let net = Net::star_on(Forwarding::Router, 2, WIRE, Room::Whole)?;
    let switch = Agent::unpinned_switch(&net, "100mbit");
    let sender = Agent::sender(&net, "all", &[("s1", "r"), ("s2", "r")]);
    let flows = [1, 2].map(|i| Flow::from_sender(&net, i, 5000 + i as u16));
    flows.iter().for_each(Flow::wait_for_data);
    thread::sleep(time);
    Some((net, switch, sender, flows))
}

#[test]
fn every_flow_is_back_at_its_share_soon_after_a_restart() {
    patiently(|| {
        let Some((net, mut switch, mut sender, flows)) = running(Duration::from_millis(500)) else { return };
        for with_sender in [false, true] {
            let killed = with_sender.then_some(&mut sender);
            let back = recovery(&net, &mut switch, killed, flows.each_ref(), Duration::from_secs(3));
            assert!(back.is_some_and(|after| after <= DEADLINE), "{back:?}: {:#?}", switch.fresh().flows);
        }
    });
}

/// Measures a number of runs, each with new connections. NARROWS_RESTARTS sets the number (default: 50). In every second
/// run, the sender is killed, too.
#[test]
#[ignore = "takes ten minutes"]
fn restarts() {
    let runs = std::env::var("NARROWS_RESTARTS").ok().and_then(|n| n.parse().ok()).unwrap_or(50).max(1);
    let mut times = Vec::new();
    for run in 0..runs {
        let Some((net, mut switch, mut sender, flows)) = running(Duration::from_secs(1)) else { return };
        let killed = (run % 2 == 1).then_some(&mut sender);
        times.push(recovery(&net, &mut switch, killed, flows.each_ref(), Duration::from_secs(4)));
    }
    let in_time = times.iter().flatten().filter(|after| **after <= DEADLINE).count();
    times.sort_by_key(|time| time.unwrap_or(Span::MAX));
    println!(
        "{in_time} of {runs} within {DEADLINE:?}; median {:?}, longest {:?}",
        times[runs / 2],
        times.last()
    );
    assert_eq!(in_time, runs, "{times:?}");
}
