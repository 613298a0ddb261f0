//! `kill -9` of a sender's agent under load: its connections continue with CUBIC, and do not harm others.

use std::thread;
use std::time::Duration;

use narrows_lab::patiently;

use super::agent::Agent;
use super::flow::{Flow, all_well, rates};
use super::net::{Forwarding, Net};

/// Each of four connections without an agent sends at about its share, so that they fill the link. They have
/// announced that they follow rates, so the switch must find that they do not follow reductions.
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
        // After 1 s and 4 RTTs without feedback, the kernel's part of `brf` changes to CUBIC.
        thread::sleep(Duration::from_secs(3));
        let new: Vec<Flow> = (0..2).map(|n| Flow::from_sender(&net, 1, 5011 + n)).collect();
        new.iter().for_each(Flow::wait_for_data);
        thread::sleep(Duration::from_secs(3));
        let all: Vec<&Flow> = old.iter().chain(&new).collect();
        let rates = rates(&all, Duration::from_secs(3));
        let flows = switch.fresh().flows;
        println!("old and new: {rates:.1?} Mbit/s, {:?}", flows.iter().map(|f| &f.leaf).collect::<Vec<_>>());
        all_well(&all);
        // An equal share is 15.6 Mbit/s.
        assert!(rates[4..].iter().all(|rate| *rate > 13.0), "{rates:.1?}");
        assert_eq!(flows.iter().filter(|flow| flow.leaf == "other-tcp").count(), 4, "{flows:#?}");
    });
}
