//! Tests BRF together with CUBIC, and together with senders that claim to use BRF but ignore rates.

use std::net::SocketAddr;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use narrows_control::rate::Leaf;
use narrows_lab::patiently;

use super::agent::Agent;
use super::flow::{Flow, Sends, all_well, jain, rates};
use super::net::{Forwarding, Net};

#[test]
fn brf_and_cubic_have_equal_shares() {
    patiently(|| {
        let Some(net) = Net::star(Forwarding::Router, 2) else { return };
        let switch = Agent::switch(&net, "100mbit");
        let _sender = Agent::sender(&net, "all", &[("s1", "r")]);
        let brf = Flow::from_sender(&net, 1, 5001);
        let cubic = Flow::open(
            net.netns("s2"),
            net.netns("c"),
            net.server(5002, false),
            Sends::Client,
            Some("cubic"),
        );
        cubic.wait_for_data();
        // CUBIC needs time to fill its class.
        thread::sleep(Duration::from_secs(4));
        let both = rates(&[&brf, &cubic], Duration::from_secs(4));
        let port = switch.port();
        println!(
            "BRF, CUBIC: {both:.1?} Mbit/s, Jain {:.4}, queues {:?}",
            jain(&both),
            port.leaves.map(|l| l.queued_packets)
        );
        all_well(&[&brf, &cubic]);
        assert!(jain(&both) >= 0.95, "{both:?}");
        assert_eq!((port.flows[Leaf::Elephant as usize], port.flows[Leaf::OtherTcp as usize]), (1, 1));
    });
}

/// The client asks for feedback. One server applies rates. The other server is a plain Linux host, whose SYN-ACK does
/// not ask for feedback.
#[test]
fn downloads_from_a_plain_server_are_other_tcp() {
    patiently(|| {
        let Some(net) = Net::star(Forwarding::Router, 2) else { return };
        let switch = Agent::switch(&net, "100mbit");
        let _sender = Agent::sender(&net, "all", &[("s1", "r"), ("c", "r")]);
        let download = |i: usize| {
            let server = SocketAddr::new(net.of(i, false), 5000);
            Flow::open(net.netns("c"), net.netns(&format!("s{i}")), server, Sends::Server, None)
        };
        let (obeys, plain) = (download(1), download(2));
        obeys.wait_for_data();
        plain.wait_for_data();
        thread::sleep(Duration::from_secs(1));
        let status = switch.fresh();
        let of = |i| {
            let address = SocketAddr::new(net.of(i, false), 5000).to_string();
            let flow = status.flows.iter().find(|f| f.source == address);
            flow.map(|f| (f.class.as_str(), f.leaf.as_str()))
        };
        all_well(&[&obeys, &plain]);
        assert_eq!(of(1), Some(("rated", "elephant")), "{:#?}", status.flows);
        assert_eq!(of(2), Some(("other", "other-tcp")), "{:#?}", status.flows);
    });
}

/// `iperf3 -C cubic` sets its congestion control after it has connected. Its earlier SYN asked for feedback, but the
/// flow does not apply rates.
#[test]
fn a_flow_that_claims_brf_and_ignores_rates_is_demoted() {
    patiently(|| {
        let Some(net) = Net::star(Forwarding::Router, 2) else { return };
        let switch = Agent::switch(&net, "100mbit");
        let _sender = Agent::sender(&net, "unchosen", &[("s1", "r"), ("s2", "r")]);
        let honest = Flow::from_sender(&net, 1, 5001);
        honest.wait_for_data();
        let quiet =
            |mut command: std::process::Command| command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut server = net.command("c", "iperf3");
        server.args(["-s", "-1", "-p", "5201"]);
        let mut server = quiet(server).expect("iperf3 is there");
        thread::sleep(Duration::from_millis(500));
        let mut client = net.command("s2", "iperf3");
        client.args(["-c", "10.77.9.1", "-p", "5201", "-C", "cubic", "-t", "10"]);
        let mut client = quiet(client).expect("iperf3 is there");
        thread::sleep(Duration::from_secs(5));
        let rate = rates(&[&honest], Duration::from_secs(3))[0];
        let status = switch.fresh();
        let of_cheat: Vec<_> = status.flows.iter().filter(|f| f.destination.ends_with(":5201")).collect();
        println!("honest {rate:.1} Mbit/s, {of_cheat:#?}");
        let heaviest = of_cheat.iter().max_by_key(|f| f.rate).expect("the other flow is known");
        let (leaf, cheat) = (heaviest.leaf.clone(), heaviest.rate.as_f64() * 8.0 / 1e6);
        let _ = client.kill();
        let _ = (client.wait(), server.kill(), server.wait());
        println!("cheat: {leaf}, {cheat:.1} Mbit/s");
        all_well(&[&honest]);
        assert_eq!(leaf, "other-tcp");
        assert!(rate > 0.9 * 46.7, "{rate}");
    });
}
