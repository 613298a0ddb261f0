//! The switch's agent is killed (`kill -9`) under load. The agent's programs end with it, and connections continue.

use std::thread;
use std::time::Duration;

use narrows_agent::clock;
use narrows_control::units::Span;
use narrows_lab::patiently;

use super::agent::{Agent, since};
use super::flow::{Flow, all_well, rates};
use super::net::{Forwarding, Net};

#[test]
fn connections_outlive_their_switch_and_get_rates_from_the_next_one() {
    patiently(|| {
        let Some(net) = Net::star(Forwarding::Router, 2) else { return };
        let mut switch = Agent::unpinned_switch(&net, "100mbit");
        let sender = Agent::sender(&net, "all", &[("s1", "r"), ("s2", "r")]);
        let flows = [Flow::from_sender(&net, 1, 5001), Flow::from_sender(&net, 2, 5002)];
        let both = [&flows[0], &flows[1]];
        both.iter().for_each(|flow| flow.wait_for_data());
        thread::sleep(Duration::from_secs(1));
        assert!(net.says("r", "tc qdisc show dev c").contains("htb 4e57: root"));

        let killed = clock::now();
        switch.kill();
        while net.says("r", "tc qdisc show dev c").contains("htb 4e57: root") {
            assert!(since(killed) < Span::from_secs(10), "the guardian has not removed HTB");
            thread::sleep(Duration::from_millis(5));
        }
        let without_queue = since(killed);
        // The programs end with their links, so no rates are written. Connections change to CUBIC 1 s and 4 RTTs after
        // the last feedback. Counters are published every 200 ms.
        while sender_counter(&sender, "orphaned") < 2 {
            assert!(since(killed) < Span::from_secs(10), "still rated");
            thread::sleep(Duration::from_millis(20));
        }
        let fallback = since(killed);
        thread::sleep(Duration::from_secs(2));
        let without = rates(&both, Duration::from_secs(1));
        all_well(&both);

        let restarted = clock::now();
        switch.restart();
        let ready = since(restarted);
        let mut rated = None;
        while since(restarted) < Span::from_secs(30) {
            let now = rates(&both, Duration::from_millis(200));
            if now.iter().all(|r| (r - 46.7).abs() < 0.1 * 46.7) {
                rated = Some(since(restarted));
                break;
            }
        }
        thread::sleep(Duration::from_secs(1));
        let then = rates(&both, Duration::from_secs(2));
        let status = switch.fresh();
        println!(
            "killed: HTB gone after {without_queue:?}, CUBIC after {fallback:?}, {without:.1?} Mbit/s; \
             restarted: ready after {ready:?}, at the share after {rated:?}, then {then:.1?} Mbit/s"
        );
        all_well(&both);
        assert_eq!(status.flow_count, 2, "{:#?}", status.flows);
        for rate in &then {
            assert!((rate - 46.7).abs() < 0.15 * 46.7, "{then:?} {:#?}", status.flows);
        }
    });
}

pub(crate) fn sender_counter(sender: &Agent, name: &str) -> u64 {
    let status = sender.status(0).expect("the sender answers");
    status.counters.iter().find(|(n, _)| n == name).map_or(0, |(_, value)| *value)
}
