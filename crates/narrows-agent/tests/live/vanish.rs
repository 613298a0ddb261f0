//! Interfaces vanish and return. The other interfaces stay controlled, and all flows get their shares again.

use std::thread;
use std::time::Duration;

use narrows_agent::clock;
use narrows_control::units::Span;
use narrows_lab::patiently;

use super::agent::{Agent, since};
use super::flow::{Flow, all_well, rates};
use super::kill::sender_counter;
use super::net::{Forwarding, Net};

#[test]
fn an_interface_that_comes_back_has_its_share_again_and_the_others_keep_theirs() {
    patiently(|| {
        let Some(net) = Net::star(Forwarding::Router, 2) else { return };
        let mut switch = Agent::switch(&net, "100mbit");
        let _sender = Agent::sender(&net, "all", &[("s1", "r"), ("s2", "r")]);
        let (first, second) = (Flow::from_sender(&net, 1, 5001), Flow::from_sender(&net, 2, 5002));
        first.wait_for_data();
        second.wait_for_data();
        thread::sleep(Duration::from_secs(1));

        net.says("r", "ip link del dev s1");
        let deleted = clock::now();
        let is_missing = || switch.fresh().interfaces.iter().any(|i| i.name == "s1" && !i.present);
        while !is_missing() {
            assert!(since(deleted) < Span::from_secs(10), "s1 is still there");
        }
        thread::sleep(Duration::from_secs(1));
        let alone = rates(&[&second], Duration::from_secs(1))[0];

        net.link("s1", "r");
        net.attach_sender("s1", "r", 1);
        let back = clock::now();
        while is_missing() {
            assert!(since(back) < Span::from_secs(10), "s1 is not taken back");
        }
        // The first flow waits for its retransmission timer.
        while rates(&[&first], Duration::from_millis(100))[0] < 1.0 {
            assert!(since(back) < Span::from_secs(30), "the first flow does not continue");
        }
        thread::sleep(Duration::from_secs(2));
        let then = rates(&[&first, &second], Duration::from_secs(2));
        let status = switch.fresh();
        println!("alone {alone:.1} Mbit/s, then {then:.1?} Mbit/s");
        all_well(&[&first, &second]);
        assert!(switch.runs() && status.flow_count == 2, "{:#?}", status.flows);
        assert!(alone > 46.7, "the other port is not controlled: {alone}");
        for rate in &then {
            assert!((rate - 46.7).abs() < 0.15 * 46.7, "{then:?} {:#?}", status.flows);
        }
    });
}

#[test]
fn a_sender_attaches_again_to_an_interface_that_comes_back() {
    patiently(|| {
        let Some(net) = Net::star(Forwarding::Router, 1) else { return };
        let _switch = Agent::switch(&net, "100mbit");
        let netns = net.name("s1");
        let config = format!("[sender]\nnetns = \"{netns}\"\nchoice = \"all\"\ninterfaces = [\"r\"]\n");
        let sender = Agent::start("sender", &config);
        let flow = Flow::from_sender(&net, 1, 5001);
        flow.wait_for_data();
        let marked = || sender_counter(&sender, "marked");
        let wait_for_marks = |what: &str| {
            let (begun, before) = (clock::now(), marked());
            while marked() <= before {
                assert!(since(begun) < Span::from_secs(20), "no marks {what}:\n{}", sender.log());
                thread::sleep(Duration::from_millis(50));
            }
        };
        wait_for_marks("at first");

        net.says("r", "ip link del dev s1");
        thread::sleep(Duration::from_millis(500));
        net.link("s1", "r");
        net.attach_sender("s1", "r", 1);
        wait_for_marks("after the interface is back");
        all_well(&[&flow]);
        let log = sender.log();
        assert!(log.contains("interface-gone") && log.contains("interface-back"), "{log}");
    });
}
