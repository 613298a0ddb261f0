//! Tests BDR: senders designate packets, and the switch counts them without an entry for any flow.

use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use libbpf_rs::{MapCore, MapHandle};
use narrows_agent::clock;
use narrows_control::rate::Leaf;
use narrows_control::units::Span;
use narrows_lab::patiently;

use super::agent::{Agent, counter, since};
use super::crowd::{Crowd, accept, arrive, percentile, watch};
use super::flow::{Flow, Sends, all_well, jain, rates, tcp_info};
use super::net::{Forwarding, Net};
use super::pinned::Bpffs;

const BDR: &str = "rate_controller = \"bdr\"";
/// Goodput of all flows together, in Mbit/s. A port of 100 Mbit/s carries 99.08 Mbit/s of datagrams, of which the rate
/// controller allocates 98 %. The room for a report takes 8 of the 1448 bytes of payload in a full segment.
const SHARED: f64 = 100.0 * 1500.0 / 1514.0 * 0.98 * 1440.0 / 1492.0;

/// Asserts that the switch's maps have no room for flows, and that its status lists no flow.
fn assert_no_flows(switch: &Agent, pins: &Path) {
    for name in ["flows", "slots", "half_open", "adverts"] {
        let map = MapHandle::from_pinned_path(pins.join(name)).expect("the data plane is pinned");
        assert_eq!(map.max_entries(), 1, "{name}");
        if name == "flows" {
            assert_eq!(map.keys().count(), 0);
        }
    }
    assert_eq!(switch.fresh().flows.len(), 0);
}

/// For two seconds, samples the number of flows that the switch counts.
fn counts(switch: &Agent) -> Vec<f64> {
    let sample = |_| {
        thread::sleep(Duration::from_millis(50));
        switch.port().flows[Leaf::Elephant as usize] as f64
    };
    (0..40).map(sample).collect()
}

fn mean(of: &[f64]) -> f64 {
    of.iter().sum::<f64>() / of.len() as f64
}

#[test]
fn two_flows_and_cubic_share_without_a_table() {
    patiently(|| {
        let Some(net) = Net::star(Forwarding::Bridge, 3) else { return };
        let (_bpffs, pins) = Bpffs::with_pins();
        let switch = Agent::switch_with(&net, "100mbit", &format!("pin = {pins:?}"), BDR);
        let sender = Agent::designating_sender(&net, "all", &[("s1", "r"), ("s2", "r")]);
        let first = Flow::from_sender(&net, 1, 5001);
        first.wait_for_data();
        thread::sleep(Duration::from_secs(3));
        let alone = rates(&[&first], Duration::from_secs(3));
        println!("alone: {alone:.1?} Mbit/s, counted {:.2}", mean(&counts(&switch)));
        let second = Flow::from_sender(&net, 2, 5002);
        second.wait_for_data();
        thread::sleep(Duration::from_secs(3));
        let (both, counted) = (rates(&[&first, &second], Duration::from_secs(3)), mean(&counts(&switch)));
        let port = switch.port();
        let queue = watch(&switch, clock::now(), Span::from_secs(2), 100);
        let delays: Vec<f64> = queue.iter().map(|(_, delay)| *delay).collect();
        println!(
            "two: {both:.1?} Mbit/s, counted {counted:.2}, queue p50 {:.2} ms, p99 {:.2} ms, reports {}, designated {:?}",
            percentile(&delays, 50),
            percentile(&delays, 99),
            counter(&port, "reports"),
            sender.status(0).map(|s| s.counters)
        );
        let cubic = Flow::open(
            net.netns("s3"),
            net.netns("c"),
            net.server(5003, false),
            Sends::Client,
            Some("cubic"),
        );
        cubic.wait_for_data();
        thread::sleep(Duration::from_secs(4));
        let three = rates(&[&first, &second, &cubic], Duration::from_secs(4));
        println!("with CUBIC: {three:.1?} Mbit/s");
        all_well(&[&first, &second, &cubic]);
        assert_no_flows(&switch, &pins);
        assert!(alone[0] > 0.9 * SHARED, "{alone:?}");
        assert!(jain(&both) > 0.99 && both.iter().sum::<f64>() > 0.9 * SHARED, "{both:?}");
        assert!((1.5..2.5).contains(&counted), "{counted}");
        assert!(percentile(&delays, 99) < 5.0);
        assert!(three[0] + three[1] > 80.0 && three[2] > 3.0, "{three:?}");
    });
}

/// With 200 flows on a link of 100 Mbit/s, the share of a flow is less than one packet per RTT. Every packet is
/// therefore designated.
#[test]
fn two_hundred_flows_are_counted_without_a_table() {
    patiently(|| {
        let crowd = Crowd { connections: 200, mbit: 100, seconds: 14, arrival: Span::from_secs(1) };
        let Some(net) = Net::star_alone(Forwarding::Router, 1) else { return };
        let (_bpffs, pins) = Bpffs::with_pins();
        let switch = Agent::switch_with(&net, "100mbit", &format!("pin = {pins:?}"), BDR);
        let _sender = Agent::designating_sender(&net, "all", &[("s1", "r")]);
        let address = net.server(5001, false);
        let listener = net.inside("c", || TcpListener::bind(address).expect("a server can listen"));
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| accept(&listener, &stop));
            let begun = clock::now();
            let streams = arrive(&net, address, &crowd);
            watch(&switch, begun, Span::from_secs(6), crowd.mbit);
            let acked = || streams.iter().map(|(s, _)| tcp_info(s).1).collect::<Vec<u64>>();
            let (from, before) = (clock::now(), acked());
            let counted = counts(&switch);
            let queue = watch(&switch, clock::now(), Span::from_secs(3), crowd.mbit);
            let (after, seconds) = (acked(), since(from).as_secs_f64());
            let rates: Vec<f64> =
                before.iter().zip(after).map(|(b, a)| (a - b) as f64 * 8e-6 / seconds).collect();
            stop.store(true, Relaxed);
            let delays: Vec<f64> = queue.iter().map(|(_, delay)| *delay).collect();
            let (sum, p99) = (rates.iter().sum::<f64>(), percentile(&delays, 99));
            let (most, least) =
                counted.iter().fold((0.0, f64::MAX), |(m, l): (f64, f64), c| (m.max(*c), l.min(*c)));
            println!(
                "counted {:.1} (from {least} to {most}); {sum:.1} Mbit/s, Jain {:.4}; queue p50 {:.2} ms, p99 {p99:.2} ms",
                mean(&counted),
                jain(&rates),
                percentile(&delays, 50)
            );
            assert_no_flows(&switch, &pins);
            assert!((mean(&counted) / 200.0 - 1.0).abs() < 0.07, "{}", mean(&counted));
            assert!(jain(&rates) > 0.9, "{}", jain(&rates));
            assert!(sum > 0.85 * SHARED, "{sum}");
            assert!(p99 < 30.0, "{p99}");
        });
    });
}

/// If a BRF sender designates no packets, its flows count as other TCP, and the switch does not change their ACKs.
#[test]
fn without_designated_packets_a_sender_gets_no_rate() {
    patiently(|| {
        let Some(net) = Net::star(Forwarding::Router, 1) else { return };
        let (_bpffs, pins) = Bpffs::with_pins();
        let switch = Agent::switch_with(&net, "100mbit", &format!("pin = {pins:?}"), BDR);
        let sender = Agent::sender(&net, "all", &[("s1", "r")]);
        let flow = Flow::from_sender(&net, 1, 5001);
        flow.wait_for_data();
        thread::sleep(Duration::from_secs(2));
        let port = switch.port();
        let status = sender.status(0).expect("the sender answers");
        let of_sender = |name: &str| status.counters.iter().find(|(n, _)| n == name).map(|(_, value)| *value);
        assert_eq!((counter(&port, "reports"), counter(&port, "inserted")), (0, 0));
        assert_eq!((of_sender("unrated"), of_sender("rated")), (Some(1), Some(0)));
        assert!(port.leaves[Leaf::OtherTcp as usize].packets > 1000);
        assert_no_flows(&switch, &pins);
    });
}
