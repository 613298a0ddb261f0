//! Two flows share a port of 100 Mbit/s. The tests cover each kind of switch and each kind of packets. The goal is 46
//! to 47 Mbit/s for each flow, no queue and no retransmission.

use std::thread;
use std::time::Duration;

use narrows_agent::clock;
use narrows_control::rate::Leaf;
use narrows_lab::patiently;

use super::agent::{Agent, since};
use super::flow::{Flow, Sends, all_well, jain, rates};
use super::net::{Forwarding, Net};

/// Goodput of a flow with half of 100 Mbit/s at the controller's target, in Mbit/s: 100 x 0.98 x 1448 / 1514 / 2.
const SHARE: f64 = 46.7;

fn two_flows_share(forwarding: Forwarding, v6: bool, sends: Sends) {
    let Some(net) = Net::star(forwarding, 2) else { return };
    let switch = Agent::switch(&net, "100mbit");
    let hosts: &[(&str, &str)] = if sends == Sends::Client {
        &[("s1", "r"), ("s2", "r")]
    } else {
        &[("s1", "r"), ("s2", "r"), ("c", "r")]
    };
    let _sender = Agent::sender(&net, "all", hosts);
    let open = |i: usize| match sends {
        Sends::Client => {
            let server = net.server(5000 + i as u16, v6);
            Flow::open(net.netns(&format!("s{i}")), net.netns("c"), server, sends, None)
        }
        // The client runs on the host `c` and asks for feedback. The server runs on the host of sender `i`, upstream of
        // the switch, and sends the data.
        Sends::Server => {
            let server = std::net::SocketAddr::new(net.of(i, v6), 5000);
            Flow::open(net.netns("c"), net.netns(&format!("s{i}")), server, sends, None)
        }
    };
    // Allocations are L3 rates, so IPv6's longer header leaves less goodput.
    let share = if v6 { SHARE * 1428.0 / 1448.0 } else { SHARE };
    let first = open(1);
    first.wait_for_data();
    let alone = rates(&[&first], Duration::from_millis(1500))[0];
    let second = open(2);
    second.wait_for_data();
    let begun = clock::now();
    let mut near = None;
    let mut path = Vec::new();
    for _ in 0..20 {
        let now = rates(&[&first, &second], Duration::from_millis(60));
        path.push((now[0].round(), now[1].round()));
        let fair = now.iter().all(|r| (r - share).abs() < 0.1 * share);
        near = if fair { near.or(Some(since(begun))) } else { None };
    }
    let mut queue = Vec::new();
    let mut measure = || {
        thread::scope(|scope| {
            let measured = scope.spawn(|| rates(&[&first, &second], Duration::from_secs(3)));
            while !measured.is_finished() {
                queue.push(f64::from(switch.port().leaves[Leaf::Elephant as usize].queued_packets));
            }
            measured.join().expect("the measurement")
        })
    };
    let fair = |both: &[f64]| both.iter().all(|rate| (rate - share).abs() < 0.05 * share);
    let mut both = measure();
    // A sender without CPU time counts as limited by its application. As soon as the sender has CPU time again, it must
    // no longer count as limited.
    for _ in 0..2 {
        if !fair(&both) {
            println!("once more: {both:.1?}");
            both = measure();
        }
    }
    all_well(&[&first, &second]);
    let mean_queue = queue.iter().sum::<f64>() / queue.len() as f64;
    let most = queue.iter().fold(0.0_f64, |a, b| a.max(*b));
    let again = [first.retransmissions(), second.retransmissions()];
    println!(
        "{forwarding:?} v6={v6} {sends:?}: alone {alone:.1}, both {both:.1?} Mbit/s (Jain {:.4}), near the share for good \
         after {near:?}, retransmissions {again:?}, queue mean {mean_queue:.2} most {most} of {} samples; {path:?}",
        jain(&both),
        queue.len()
    );
    let status = switch.fresh();
    println!("  congestion {}, loop {:?}", status.ports[0].congestion, status.loop_times);
    assert!(alone > 0.93 * 2.0 * share, "{alone}");
    assert!(fair(&both), "{both:?}\n{:?}", status.flows);
    // No packet was dropped. A stack that waited for CPU time may still send one or two probes (RFC 8985), which count
    // as retransmissions.
    assert_eq!(status.ports[0].leaves[Leaf::Elephant as usize].drops, 0);
    assert!(again.iter().sum::<u32>() < 30, "{again:?}");
    assert!(mean_queue < 8.0, "{queue:?}");
}

#[test]
fn two_flows_share_a_port_of_a_router() {
    patiently(|| two_flows_share(Forwarding::Router, false, Sends::Client));
}

#[test]
fn two_flows_share_a_port_of_a_router_v6() {
    patiently(|| two_flows_share(Forwarding::Router, true, Sends::Client));
}

#[test]
fn two_flows_share_a_port_of_a_bridge() {
    patiently(|| two_flows_share(Forwarding::Bridge, false, Sends::Client));
}

#[test]
fn two_downloads_share_a_port_of_a_router() {
    patiently(|| two_flows_share(Forwarding::Router, false, Sends::Server));
}

#[test]
fn two_downloads_share_a_port_of_a_bridge_v6() {
    patiently(|| two_flows_share(Forwarding::Bridge, true, Sends::Server));
}

/// Two subscribers share a port. One subscriber has one connection, and the other subscriber has nine. Each subscriber
/// gets half of the port.
#[test]
fn a_subscriber_with_nine_connections_gets_as_much_as_one_with_one() {
    patiently(|| {
        let Some(net) = Net::star(Forwarding::Router, 2) else { return };
        let params = "params = { share = \"sender-address\" }";
        let switch = Agent::switch_with(&net, "100mbit", "", params);
        let _sender = Agent::sender(&net, "all", &[("s1", "r"), ("s2", "r")]);
        let open = |host: &str, port| {
            let (client, server) = (net.netns(host), net.netns("c"));
            Flow::open(client, server, net.server(port, false), Sends::Client, None)
        };
        let one = open("s1", 5000);
        let nine: Vec<Flow> = (5001..5010).map(|port| open("s2", port)).collect();
        let flows: Vec<&Flow> = std::iter::once(&one).chain(&nine).collect();
        flows.iter().for_each(|flow| flow.wait_for_data());
        thread::sleep(Duration::from_millis(500));
        let fair = |half: f64| (half - SHARE).abs() < 0.05 * SHARE;
        let (mut halves, mut parts) = ([0.0; 2], Vec::new());
        for _ in 0..3 {
            parts = rates(&flows, Duration::from_secs(2));
            halves = [parts[0], parts[1..].iter().sum()];
            if halves.into_iter().all(fair) {
                break;
            }
        }
        println!("one connection and nine: {halves:.1?} Mbit/s, of which {:.2?}", &parts[1..]);
        all_well(&flows);
        let status = switch.fresh();
        assert!(halves.into_iter().all(fair), "{halves:?} from {parts:?}\n{:?}", status.flows);
        assert!(jain(&parts[1..]) > 0.98, "{parts:?}");
        assert_eq!(status.ports[0].subscribers, Some(2));
        assert_eq!(status.ports[0].leaves[Leaf::Elephant as usize].drops, 0);
    });
}

/// Tests a switch that controls ports on both sides, as most switches do.
#[test]
fn a_download_is_rated_where_both_directions_are_controlled() {
    patiently(|| {
        let Some(net) = Net::star(Forwarding::Router, 1) else { return };
        let port = |name| format!("[[ports]]\ninterface = \"{name}\"\nrate = \"100mbit\"\n");
        let config = format!("[switch]\nnetns = \"{}\"\n{}{}", net.name("r"), port("c"), port("s1"));
        let switch = Agent::start("switch", &config);
        let _sender = Agent::sender(&net, "all", &[("s1", "r"), ("c", "r")]);
        let server = std::net::SocketAddr::new(net.of(1, false), 5000);
        let flow = Flow::open(net.netns("c"), net.netns("s1"), server, Sends::Server, None);
        flow.wait_for_data();
        thread::sleep(Duration::from_millis(500));
        let rate = rates(&[&flow], Duration::from_secs(2))[0];
        let status = switch.fresh();
        let source = server.to_string();
        let seen = status.flows.iter().find(|f| f.source == source);
        let seen = seen.map(|f| (f.class.as_str(), f.leaf.as_str()));
        println!("both directions: {rate:.1} Mbit/s, {} retransmissions, {seen:?}", flow.retransmissions());
        all_well(&[&flow]);
        assert_eq!(seen, Some(("rated", "elephant")), "{:#?}", status.flows);
        assert!(rate > 0.93 * 2.0 * SHARE, "{rate}");
        assert!(flow.retransmissions() < 30);
    });
}
