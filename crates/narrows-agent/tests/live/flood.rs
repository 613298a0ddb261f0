//! Tests a flood of SYNs from unused addresses. The server answers them.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use narrows_agent::clock;
use narrows_control::units::Span;
use narrows_lab::{patiently, says};

use super::agent::{Agent, counter, since};
use super::flow::{Flow, all_well, rates};
use super::frames::{ASKS, Dice, Port, SYN, Segment};
use super::net::{Forwarding, Net};

/// SYNs per second, if the machine has enough CPU time. The machine also runs the flows, their path and the switch.
/// `NARROWS_FLOOD` sets another number.
const PACE: u64 = 100_000;

fn pace() -> u64 {
    std::env::var("NARROWS_FLOOD").ok().and_then(|pace| pace.parse().ok()).unwrap_or(PACE)
}

/// Sends SYNs until it is stopped. Half of them ask for feedback.
fn flood(port: &Port, to: (Ipv4Addr, u16), stop: &AtomicBool, sent: &AtomicU64) {
    let mut dice = Dice(7);
    let (begun, pace) = (clock::now(), pace());
    while !stop.load(Relaxed) {
        let allowed = (since(begun).as_secs_f64() * pace as f64) as u64;
        // After a pause, the attacker does not send the missed packets in one burst, because a network card could not
        // do this.
        let now = sent.load(Relaxed);
        for _ in 0..allowed.saturating_sub(now).min(200) {
            let n = dice.roll();
            let from = (Ipv4Addr::new(10, 99, n as u8, (n >> 8) as u8), (n >> 16) as u16 | 1024);
            let options = if n & 1 << 40 == 0 { &ASKS[..] } else { &[] };
            let segment = Segment {
                from,
                to,
                flags: SYN,
                seq: n as u32,
                ack: 0,
                id: n as u16,
                options,
                offset: None,
                payload: &[],
            };
            port.send(&segment.datagram());
            sent.fetch_add(1, Relaxed);
        }
        if allowed <= now {
            thread::sleep(Duration::from_micros(200));
        }
    }
}

#[test]
fn a_syn_flood_does_not_affect_established_flows() {
    patiently(|| {
        let Some(net) = Net::star_alone(Forwarding::Router, 3) else { return };
        // The server's answers go back to the attacker, which ignores them.
        says(&format!("ip -n {} route add 10.99.0.0/16 via 10.77.3.1", net.name("r"))).expect("a route");
        let switch = Agent::switch(&net, "100mbit");
        let _sender = Agent::sender(&net, "all", &[("s1", "r"), ("s2", "r")]);
        let open = |i: usize, port: u16| Flow::from_sender(&net, i, port);
        let flows = [open(1, 5001), open(2, 5002)];
        let both = [&flows[0], &flows[1]];
        both.iter().for_each(|flow| flow.wait_for_data());
        thread::sleep(Duration::from_secs(1));
        let before = rates(&both, Duration::from_secs(2));

        let flooder = Port::open(&net, "s3", "r");
        let (stop, sent) = (AtomicBool::new(false), AtomicU64::new(0));
        let target = (Ipv4Addr::new(10, 77, 9, 1), 5001);
        let (during, newcomer, worst, pace, opened) = thread::scope(|scope| {
            scope.spawn(|| flood(&flooder, target, &stop, &sent));
            let begun = clock::now();
            thread::sleep(Duration::from_secs(1));
            let during = rates(&both, Duration::from_secs(4));
            let mut worst = (0, 0);
            for _ in 0..20 {
                let status = switch.fresh();
                let unconfirmed = counter(&status.ports[0], "unconfirmed");
                worst = (worst.0.max(status.flow_count), worst.1.max(unconfirmed));
            }
            // Open a real new flow. The switch probably drops its SYN, which the host repeats after a second.
            let asked = clock::now();
            let third = open(2, 5003);
            third.wait_for_data();
            let opened = since(asked);
            thread::sleep(Duration::from_secs(1));
            let newcomer = rates(&[both[0], both[1], &third], Duration::from_secs(2));
            let known = switch.fresh().flows.iter().find(|f| f.destination.ends_with(":5003")).cloned();
            println!("the newcomer: {known:?}");
            let pace = sent.load(Relaxed) as f64 / since(begun).as_secs_f64();
            stop.store(true, Relaxed);
            (during, newcomer, worst, pace, opened)
        });
        let port = switch.port();
        println!(
            "flood of {pace:.0} SYNs/s: established {before:.1?} -> {during:.1?} Mbit/s; flows at most {}, unconfirmed {}; newcomer's \
             first data after {opened:?}, then {newcomer:.1?}; refused {}, no slot {}, policed {}, congestion {}, retransmissions {:?}",
            worst.0,
            worst.1,
            counter(&port, "refused"),
            counter(&port, "no_slot"),
            counter(&port, "syn_policed"),
            port.congestion,
            both.map(Flow::retransmissions)
        );
        all_well(&both);
        assert!(sent.load(Relaxed) > 20_000 && counter(&port, "refused") > 0, "that was no flood");
        assert!(counter(&port, "syn_policed") > 10_000);
        let (sum_before, sum_during): (f64, f64) = (before.iter().sum(), during.iter().sum());
        assert!(sum_during > 0.95 * sum_before, "{before:?} -> {during:?}");
        assert!(worst.1 <= 64 && worst.0 <= 64 + 3, "{worst:?}");
        assert!(newcomer[2] > 10.0, "{newcomer:?}");
        let ended = clock::now();
        while switch.fresh().flow_count > 3 {
            assert!(since(ended) < Span::from_secs(15), "{:#?}", switch.fresh().flows);
            thread::sleep(Duration::from_millis(100));
        }
        println!("table clean {:?} after the flood", since(ended));
    });
}
