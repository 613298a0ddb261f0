//! A sender's agent is killed (`kill -9`) under load. Its connections continue with CUBIC until the next agent takes
//! them over. They do not harm other connections.

use std::thread;
use std::time::Duration;

use narrows_agent::clock;
use narrows_control::units::Span;
use narrows_lab::patiently;

use super::agent::{Agent, since};
use super::flow::{Flow, all_well, rates};
use super::kill::sender_counter;
use super::net::{Forwarding, Net};

/// Four connections without an agent fill the link, because each sends at about its share. They have announced that
/// they apply rates, so the switch must detect that they ignore reductions.
#[test]
fn connections_of_a_killed_sender_do_not_starve_new_ones() {
    patiently(|| {
        let Some(net) = Net::star(Forwarding::Router, 2) else { return };
        let switch = Agent::switch(&net, "100mbit");
        let _first = Agent::sender(&net, "all", &[("s1", "r")]);
        let mut second = Agent::sender(&net, "all", &[("s2", "r")]);
        let old: Vec<Flow> = (0..4).map(|n| Flow::from_sender(&net, 2, 5001 + n)).collect();
        old.iter().for_each(Flow::wait_for_data);
        thread::sleep(Duration::from_secs(1));
        second.kill();
        // After 1 s and 4 RTTs without feedback, `brf` changes to CUBIC in the kernel.
        thread::sleep(Duration::from_secs(3));
        let new: Vec<Flow> = (0..2).map(|n| Flow::from_sender(&net, 1, 5011 + n)).collect();
        new.iter().for_each(Flow::wait_for_data);
        thread::sleep(Duration::from_secs(3));
        let all: Vec<&Flow> = old.iter().chain(&new).collect();
        let rates = rates(&all, Duration::from_secs(3));
        let flows = switch.fresh().flows;
        println!("old and new: {rates:.1?} Mbit/s, {:?}", flows.iter().map(|f| &f.leaf).collect::<Vec<_>>());
        all_well(&all);
        // The equal share is 15.6 Mbit/s.
        assert!(rates[4..].iter().all(|rate| *rate > 13.0), "{rates:.1?}");
        assert_eq!(flows.iter().filter(|flow| flow.leaf == "other-tcp").count(), 4, "{flows:#?}");
    });
}

/// Three old and three new connections share the link. The equal share is 15.6 Mbit/s. In the first case, the agent is
/// missing only for a moment, in which the old connections keep their rates. In the second case, it is missing until
/// the switch has demoted at least two of the old connections.
#[test]
fn the_next_agent_takes_over_open_connections() {
    for demoted in [false, true] {
        patiently(|| {
            let Some(net) = Net::star(Forwarding::Router, 2) else { return };
            let switch = Agent::switch(&net, "100mbit");
            let _first = Agent::sender(&net, "all", &[("s1", "r")]);
            let mut second = Agent::sender(&net, "all", &[("s2", "r")]);
            let flows = |sender: usize| (0..3).map(move |n| (sender, 5000 + 10 * sender as u16 + n));
            let mut all: Vec<Flow> = flows(2).map(|(s, port)| Flow::from_sender(&net, s, port)).collect();
            all.extend(flows(1).map(|(s, port)| Flow::from_sender(&net, s, port)));
            all.iter().for_each(Flow::wait_for_data);
            thread::sleep(Duration::from_secs(1));
            let others = || switch.fresh().flows.iter().filter(|flow| flow.leaf == "other-tcp").count();
            second.kill();
            let killed = clock::now();
            while demoted && others() < 2 {
                assert!(since(killed) < Span::from_secs(20), "the switch demotes none of them");
            }
            second.restart();
            let restarted = clock::now();
            let back = |flows: &[Flow]| {
                let rates = rates(&flows.iter().collect::<Vec<_>>(), Duration::from_millis(500));
                let are_equal = rates.iter().all(|rate| (rate - 15.6).abs() < 0.15 * 15.6);
                (are_equal && others() == 0).then_some(rates)
            };
            let mut found = None;
            while found.is_none() && since(restarted) < Span::from_secs(10) {
                found = back(&all);
            }
            let after = since(restarted);
            println!("demoted: {demoted}; equal after {after:?}: {found:.1?} Mbit/s");
            all_well(&all.iter().collect::<Vec<_>>());
            assert_eq!(sender_counter(&second, "taken_over"), 3);
            let deadline = if demoted { Span::from_secs(6) } else { Span::from_secs(2) };
            assert!(after < deadline, "{after:?}: {:#?}", switch.fresh().flows);
        });
    }
}
