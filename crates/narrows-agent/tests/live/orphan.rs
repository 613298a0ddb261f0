//! `kill -9` of a sender's agent under load: its connections continue with CUBIC, and harm nobody.

use std::thread;
use std::time::Duration;

use narrows_lab::patiently;

use super::agent::Agent;
use super::flow::{Flow, all_well, rates};
use super::net::{Forwarding, Net};

/// The connections of a killed sender still claim to follow rates, but do not any more.
#[test]
fn flows_of_a_killed_sender_do_not_starve_others() {
    patiently(|| {
        let Some(net) = Net::star(Forwarding::Router, 2) else { return };
        let switch = Agent::switch(&net, "100mbit");
        let _first = Agent::sender(&net, "all", &[("s1", "r")]);
        let mut second = Agent::sender(&net, "all", &[("s2", "r")]);
        let old: Vec<Flow> = (0..4).map(|n| Flow::from_sender(&net, 2, 5001 + n)).collect();
        old.iter().for_each(Flow::wait_for_data);
        thread::sleep(Duration::from_secs(2));
        second.kill();
        thread::sleep(Duration::from_millis(500));
        second.restart();
        thread::sleep(Duration::from_secs(5));
        let status = switch.fresh();
        println!("{:?}", status.flows.iter().map(|f| format!("{} {} {:.1}", f.source, f.leaf, f.allocation.map_or(0.0, |r| r.as_f64() * 8e-6))).collect::<Vec<_>>());
        let new: Vec<Flow> = (0..2).map(|n| Flow::from_sender(&net, 1, 5011 + n as u16)).collect();
        new.iter().for_each(Flow::wait_for_data);
        let all: Vec<&Flow> = old.iter().chain(&new).collect();
        for _ in 0..15 {
            let now = rates(&all, Duration::from_secs(1));
            let status = switch.fresh();
            println!("{now:.1?} {:?}", status.flows.iter().map(|f| format!("{} {} {:.1}", f.source, f.leaf, f.allocation.map_or(0.0, |r| r.as_f64() * 8e-6))).collect::<Vec<_>>());
        }
        all_well(&all);
    });
}
