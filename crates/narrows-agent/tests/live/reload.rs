//! SIGHUP applies a new configuration to a switch with flows. An invalid configuration changes nothing.

use std::fs;
use std::thread;
use std::time::Duration;

use narrows_agent::clock;
use narrows_control::units::Span;
use narrows_lab::patiently;
use nix::sys::signal::Signal;

use super::agent::{Agent, since};
use super::flow::{Flow, all_well, rates};
use super::net::{Forwarding, Net};

/// Changes the agent's file, asks for a reload, and returns the new lines of the log.
pub(crate) fn reload(agent: &mut Agent, found: &str, replacement: &str) -> String {
    let before = agent.log();
    let text = fs::read_to_string(agent.config()).expect("a file");
    assert!(text.contains(found), "{text}");
    fs::write(agent.config(), text.replacen(found, replacement, 1)).expect("a file");
    let asked = clock::now();
    agent.signal(Signal::SIGHUP);
    loop {
        let new = agent.log()[before.len()..].to_owned();
        if new.contains("event=\"reload") && new.ends_with('\n') {
            return new;
        }
        assert!(since(asked) < Span::from_secs(10) && agent.runs(), "no reload:\n{new}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn flows_survive_a_reload_and_follow_the_new_rate_and_parameters() {
    patiently(|| {
        let Some(net) = Net::star(Forwarding::Router, 2) else { return };
        let mut switch = Agent::switch(&net, "100mbit");
        let _sender = Agent::sender(&net, "all", &[("s1", "r"), ("s2", "r")]);
        let flows = [Flow::from_sender(&net, 1, 5001), Flow::from_sender(&net, 2, 5002)];
        let both = [&flows[0], &flows[1]];
        both.iter().for_each(|flow| flow.wait_for_data());
        thread::sleep(Duration::from_secs(1));

        let said = reload(&mut switch, "rate = \"100mbit\"", "rate = \"fast\"");
        let expected = "ports[0].rate: found \\\"fast\\\", expected a rate";
        assert!(said.contains("reload-refused") && said.contains(expected), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(net.says("r", "tc class show dev c classid 4e57:1").contains(" rate 100Mbit "));

        let said = reload(&mut switch, "rate = \"fast\"", "rate = \"60mbit\"\n[ports.params]\neta = 0.8");
        assert!(said.contains("changed=\"ports.c.rate ports.c.params.eta\""), "{said}");
        // No flow has lost its slot.
        let count = switch.fresh().flow_count;
        thread::sleep(Duration::from_secs(1));
        let then = rates(&both, Duration::from_secs(2));
        println!("after the reload {then:.1?} Mbit/s");
        all_well(&both);
        assert_eq!((count, switch.fresh().flow_count), (2, 2));
        // Two flows share 80 % of a link of 60 Mbit/s. The link's rate counts whole frames. The expected 22.9 Mbit/s is
        // the payload rate of one flow.
        for rate in &then {
            assert!((rate - 22.9).abs() < 0.15 * 22.9, "{then:?} {:#?}", switch.fresh().flows);
        }

        let said = reload(&mut switch, "[switch]\n", "[switch]\nmax_flows = 100\n");
        assert!(said.contains("changed=\"\"") && said.contains("keys=\"switch.max_flows\""), "{said}");
        assert!(switch.runs());
    });
}
