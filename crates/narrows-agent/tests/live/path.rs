//! Tests two switches on a path, and losses upstream of a switch.

use narrows_lab::{Room, patiently, says};
use std::thread;
use std::time::Duration;

use super::agent::Agent;
use super::flow::{Flow, all_well, rates};
use super::net::{Forwarding, Net};

/// The sender gets the slower switch's rate, whichever switch comes first on the path (BRF-61).
#[test]
fn the_narrower_of_two_switches_decides() {
    patiently(|| {
        for (first, second) in [(40, 94), (94, 40)] {
            let Some(mut net) = Net::empty(Forwarding::Router, Room::Half) else { return };
            // The path: s1 - q - r - (20 ms) - c.
            net.switch("q");
            net.switch("r");
            net.host("s1");
            net.host("c");
            net.link("s1", "q");
            net.attach_sender("s1", "q", 1);
            net.link("q", "r");
            net.address("q", "r", 5, 1);
            net.address("r", "q", 5, 2);
            net.route("q", "r", 5);
            net.route_to("r", "q", "1", "10.77.5.1", "fd77:5::1");
            net.cable("r", "c", 20, 0.0);
            net.address("r", "c", 9, 2);
            net.address("c", "r", 9, 1);
            net.route("c", "r", 9);
            let switch = |host: &str, port: &str, other: &str, rate: u32| {
                let netns = net.name(host);
                Agent::start(
                    "switch",
                    &format!(
                        "[switch]\nnetns = \"{netns}\"\ninterfaces = [\"{other}\"]\n[[ports]]\ninterface = \"{port}\"\n\
                         rate = \"{rate}mbit\"\n"
                    ),
                )
            };
            let _q = switch("q", "r", "s1", first);
            let r = switch("r", "c", "q", second);
            let _sender = Agent::sender(&net, "all", &[("s1", "q")]);
            let flow = Flow::from_sender(&net, 1, 5001);
            flow.wait_for_data();
            thread::sleep(Duration::from_secs(2));
            let rate = rates(&[&flow], Duration::from_secs(3))[0];
            let narrow = 40.0 * 0.98 * 1448.0 / 1514.0;
            println!(
                "{first} then {second} Mbit/s: {rate:.2} arrive ({:+.1} % of {narrow:.1}), {} sent again, queue {:?}",
                (rate / narrow - 1.0) * 100.0,
                flow.retransmissions(),
                r.port().leaves.map(|l| l.queued_packets)
            );
            all_well(&[&flow]);
            assert!((rate - narrow).abs() < 0.05 * narrow, "{rate}");
        }
    });
}

/// A flow's demand includes packets that are lost upstream of the switch. The demand is therefore greater than the rate
/// of the data that arrives at the switch (BRF-100).
#[test]
fn losses_before_the_switch_do_not_starve_a_flow() {
    patiently(|| {
        let Some(mut net) = Net::star(Forwarding::Router, 1) else { return };
        net.host("s2");
        net.cable("s2", "r", 2, 0.2);
        net.attach_sender("s2", "r", 2);
        // The relay must drop single packets, so disable super-packets.
        let space = net.name("s2");
        says(&format!("nsenter --net=/run/netns/{space} ethtool -K r tso off gso off")).expect("ethtool");
        let switch = Agent::switch(&net, "100mbit");
        let _sender = Agent::sender(&net, "all", &[("s1", "r"), ("s2", "r")]);
        let clean = Flow::from_sender(&net, 1, 5001);
        let lossy = Flow::from_sender(&net, 2, 5002);
        lossy.wait_for_data();
        thread::sleep(Duration::from_secs(4));
        let both = rates(&[&clean, &lossy], Duration::from_secs(5));
        let status = switch.fresh();
        let told: Vec<_> = status
            .flows
            .iter()
            .map(|f| (f.source.clone(), f.leaf.clone(), f.allocation.map(|r| r.as_f64() * 8.0 / 1e6)))
            .collect();
        println!("without loss, with 20 %: {both:.1?} Mbit/s; allocated {told:?}");
        all_well(&[&clean, &lossy]);
        // A fifth of 46.7 Mbit/s never reaches the switch. Loss recovery reduces the rate further.
        assert!(both[1] > 15.0, "{both:?}");
        assert!(both[0] < 75.0, "{both:?}");
    });
}
