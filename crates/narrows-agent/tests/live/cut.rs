//! The agent is stopped, so feedback ends. The switch program notices this first, and the senders notice it later.

use std::thread;
use std::time::Duration;

use narrows_agent::clock;
use narrows_control::units::Span;
use narrows_lab::patiently;
use nix::sys::signal::Signal;

use super::agent::{Agent, since};
use super::flow::{Flow, all_well, rates};
use super::net::{Forwarding, Net};

#[test]
fn cubic_takes_over_without_feedback_and_returns_to_the_rate() {
    patiently(|| {
        let Some(net) = Net::star(Forwarding::Router, 2) else { return };
        let switch = Agent::switch(&net, "100mbit");
        let sender = Agent::sender(&net, "all", &[("s1", "r"), ("s2", "r")]);
        let orphaned = || {
            let status = sender.status(0).expect("the sender answers");
            status.counters.iter().find(|(n, _)| n == "orphaned").map_or(0, |(_, value)| *value)
        };
        let first = Flow::from_sender(&net, 1, 5001);
        let second = Flow::from_sender(&net, 2, 5002);
        first.wait_for_data();
        second.wait_for_data();
        thread::sleep(Duration::from_secs(1));
        let before = rates(&[&first, &second], Duration::from_secs(1));
        switch.signal(Signal::SIGSTOP);
        let stopped = clock::now();
        // The watchdog takes 1 s. The senders then take 1 s and 4 RTTs to notice that feedback has ended. They publish
        // their counters every 200 ms.
        while orphaned() < 2 {
            assert!(since(stopped) < Span::from_secs(10), "orphaned {}", orphaned());
            thread::sleep(Duration::from_millis(20));
        }
        let taken_over = since(stopped);
        // When one flow ends, the other flow takes the freed capacity, although no feedback arrives.
        drop(second);
        thread::sleep(Duration::from_secs(3));
        let free = rates(&[&first], Duration::from_secs(1))[0];
        switch.signal(Signal::SIGCONT);
        // A connection that opens before the agent's first heartbeat gets no rate and stays with CUBIC.
        thread::sleep(Duration::from_millis(300));
        let third = Flow::from_sender(&net, 2, 5003);
        third.wait_for_data();
        thread::sleep(Duration::from_secs(3));
        let after = rates(&[&first, &third], Duration::from_secs(2));
        println!(
            "rated {before:.1?}; CUBIC after {taken_over:?}, alone {free:.1}; rated again {after:.1?} Mbit/s; \
             {} packets passed the silent switch",
            switch.counter("watchdog")
        );
        for flow in switch.fresh().flows {
            println!(
                "  {} {} told {:?} sends {:?} rtt {:?}",
                flow.source, flow.leaf, flow.allocation, flow.rate, flow.rtt
            );
        }
        all_well(&[&first, &third]);
        assert!(free > 60.0, "{free}");
        for rate in before.iter().chain(&after) {
            assert!((rate - 46.7).abs() < 0.15 * 46.7, "{before:?} {after:?} {:#?}", switch.fresh().flows);
        }
    });
}
