//! A host off the path forges packets of both ends of a flow. This host, the attacker, knows addresses and ports, and
//! guesses sequence numbers.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use narrows_agent::clock;
use narrows_lab::patiently;

use super::agent::{Agent, since};
use super::flow::{Flow, all_well, rates};
use super::frames::{ACK, Dice, Port, RST, Segment};
use super::net::{Forwarding, Net};

const MEASURED: Duration = Duration::from_secs(6);
/// The option with the code for one byte per second, as another switch would write it.
const TEN: [u8; 8] = [1, 1, 253, 6, 0x4e, 0x57, 0, 10];

type End = (Ipv4Addr, u16);

/// Contents of the forged packets, and their number per second.
#[derive(Copy, Clone)]
struct Attack {
    flags: u8,
    options: &'static [u8],
    per_second: u64,
}

/// Until `stop` is set, sends packets that seem to come from the receiver. If the packets are RSTs, every second packet
/// seems to come from the sender instead. Returns the number of packets.
fn forge(attack: Attack, [to_sender, to_receiver]: [&Port; 2], ends: [End; 2], stop: &AtomicBool) -> u64 {
    let (mut dice, begun, sent) = (Dice(21), clock::now(), AtomicU64::new(0));
    while !stop.load(Relaxed) {
        let due = (since(begun).as_secs_f64() * attack.per_second as f64) as u64 + 1;
        while sent.load(Relaxed) < due {
            let n = sent.fetch_add(1, Relaxed);
            let as_sender = attack.flags & RST != 0 && n % 2 == 1;
            let (from, to) = if as_sender { (ends[0], ends[1]) } else { (ends[1], ends[0]) };
            let segment = Segment {
                from,
                to,
                flags: attack.flags,
                seq: dice.roll() as u32,
                ack: dice.roll() as u32,
                id: n as u16,
                options: attack.options,
                offset: None,
                payload: &[],
            };
            (if as_sender { to_receiver } else { to_sender }).send(&segment.datagram());
        }
        thread::sleep(Duration::from_millis(1));
    }
    sent.load(Relaxed)
}

fn v4(end: &str) -> End {
    match end.parse::<SocketAddr>().map(|end| (end.ip(), end.port())) {
        Ok((IpAddr::V4(address), port)) => (address, port),
        _ => panic!("not an IPv4 end: {end}"),
    }
}

fn forged_packets_do_not_slow_a_flow(forwarding: Forwarding) {
    patiently(|| {
        let Some(net) = Net::star(forwarding, 2) else { return };
        let switch = Agent::switch(&net, "100mbit");
        let _sender = Agent::sender(&net, "all", &[("s1", "r")]);
        let flow = Flow::from_sender(&net, 1, 5001);
        flow.wait_for_data();
        thread::sleep(Duration::from_secs(2));
        let seen = switch.fresh().flows.into_iter().find(|f| f.destination.ends_with(":5001"));
        let seen = seen.expect("the flow");
        let ends = [v4(&seen.source), v4(&seen.destination)];
        let ports = match forwarding {
            Forwarding::Router => [Port::open(&net, "s2", "r"), Port::open(&net, "s2", "r")],
            Forwarding::Bridge => {
                [("s1", "r"), ("c", "r")].map(|target| Port::toward(&net, ("s2", "r"), target))
            }
        };
        let goodput = |attack: Option<Attack>| {
            let (stop, ports) = (&AtomicBool::new(false), [&ports[0], &ports[1]]);
            thread::scope(|scope| {
                let forging = attack.map(|attack| scope.spawn(move || forge(attack, ports, ends, stop)));
                let rate = rates(&[&flow], MEASURED)[0];
                stop.store(true, Relaxed);
                (rate, forging.map_or(0, |thread| thread.join().expect("it ends")))
            })
        };
        let before = goodput(None);
        let acks = goodput(Some(Attack { flags: ACK, options: &TEN, per_second: 1 }));
        let between = goodput(None);
        let resets = goodput(Some(Attack { flags: RST, options: &[], per_second: 500 }));
        let counted = switch.counter("implausible");
        println!(
            "{forwarding:?}: {:.1} Mbit/s; {} forged ACKs {:.1}; {:.1}; {} forged RSTs {:.1}; implausible {counted}",
            before.0, acks.1, acks.0, between.0, resets.1, resets.0
        );
        all_well(&[&flow]);
        assert!(acks.0 > 0.95 * before.0, "forged ACKs: {before:?} -> {acks:?}");
        assert!(resets.0 > 0.95 * before.0, "forged RSTs: {before:?} -> {resets:?}");
        assert!(counted >= acks.1 + resets.1 * 9 / 10, "{counted} counted");
    });
}

#[test]
fn forged_packets_do_not_slow_a_flow_through_a_router() {
    forged_packets_do_not_slow_a_flow(Forwarding::Router);
}

#[test]
fn forged_packets_do_not_slow_a_flow_through_a_bridge() {
    forged_packets_do_not_slow_a_flow(Forwarding::Bridge);
}
