//! PACEC with rates in messages (PAC-3b). The test's own controller runs the law of `narrows-control`.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use narrows_agent::clock;
use narrows_agent::netns::Netns;
use narrows_channel::{ToController, VERSION, to_agent};
use narrows_control::feedback::code::RateCode;
use narrows_control::feedback::message::{self, RateMessage};
use narrows_control::rate::domain::{DomainController, Topology};
use narrows_control::rate::pacec::{Pacec, Params};
use narrows_control::rate::{FlowKey, Message, PortId, PortParameters};
use narrows_control::units::{Bytes, Rate, Span};
use narrows_lab::patiently;

use super::agent::{Agent, since};
use super::flow::{Flow, all_well, rates};
use super::frames::{Dice, Port, tcp_in};
use super::net::{Forwarding, Net};

const CHANNEL: u16 = 6690;

/// A network in which every flow passes the agent's only port.
struct OnePort;

impl Topology for OnePort {
    fn path(&self, _flow: &FlowKey) -> Vec<PortId> {
        vec![0]
    }
}

/// The controller of a PACEC domain with one port. It serves one agent, without TLS.
struct Controller {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Controller {
    fn start(netns: Netns) -> Controller {
        let stop = Arc::new(AtomicBool::new(false));
        let ending = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            netns.enter().expect("the switch's namespace");
            let listener = TcpListener::bind(("127.0.0.1", CHANNEL)).expect("the controller can listen");
            listener.set_nonblocking(true).expect("a socket that does not block");
            while !ending.load(Relaxed) {
                match listener.accept() {
                    Ok((stream, _)) => serve(stream, &ending),
                    Err(_) => thread::sleep(Duration::from_millis(5)),
                }
            }
        });
        Controller { stop, thread: Some(thread) }
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(mut stream: TcpStream, stop: &AtomicBool) {
    stream.set_nonblocking(false).expect("a socket that blocks");
    stream.set_read_timeout(Some(Duration::from_millis(2))).expect("a timeout");
    let mut lines = BufReader::new(stream.try_clone().expect("the same socket"));
    let (mut line, mut domain, mut out) = (String::new(), None, Vec::new());
    while !stop.load(Relaxed) {
        match lines.read_line(&mut line) {
            Ok(0) => return,
            Ok(_) => {
                let text = std::mem::take(&mut line);
                on_line(text.trim_end(), &mut domain, &mut stream, &mut out);
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => return,
        }
        let Some(domain) = &mut domain else { continue };
        let now = clock::now();
        if now >= domain.next_timer() {
            domain.on_timer(now, &OnePort, &mut out);
        }
        for (port, message) in out.drain(..) {
            for body in to_agent(&message, port) {
                if writeln!(stream, "{body}").is_err() {
                    return;
                }
            }
        }
    }
}

fn on_line(line: &str, domain: &mut Option<Pacec>, stream: &mut TcpStream, out: &mut Vec<(PortId, Message)>) {
    let now = clock::now();
    if line.contains("\"role\":\"agent\"") {
        let _ = writeln!(stream, "{{\"narrows\":{VERSION},\"role\":\"controller\",\"name\":\"test\"}}");
        return;
    }
    let messages = match ToController::parse(line).expect("a body of the protocol") {
        ToController::Ports(ports) => {
            let params = ports.ports.iter().map(|port| {
                (port.port, Params::read("pacec", &port.params).expect("the parameters are valid"))
            });
            *domain = Some(Pacec::new(params, Bytes::new(1500), now));
            vec![]
        }
        ToController::Flows(_) => vec![],
        ToController::FlowChanges(changes) => {
            let flow = |change: &narrows_channel::FlowChange| Message::Flow {
                port: changes.port,
                key: change.key,
                begun: change.begun,
                demand: change.demand,
            };
            changes.changes.iter().map(flow).collect()
        }
        ToController::Message(message) => vec![message],
    };
    let Some(domain) = domain else { return };
    for message in messages {
        domain.on_message(now, 0, &message, &OnePort, out);
    }
}

/// Counts of packets that arrived at a source.
#[derive(Copy, Clone, Debug, Default)]
struct Arrived {
    syn_acks_with_rate: u32,
    acks: u32,
    acks_with_option: u32,
    messages: u32,
    /// The numbers of the last ACK: sequence number and acknowledgement number.
    numbers: Option<(u32, u32)>,
}

/// Reads the packets that have arrived since the last call.
fn read(port: &Port, arrived: &mut Arrived) {
    while let Some(packet) = port.receive() {
        if packet.len() >= 28 && packet[9] == 17 && packet[22..24] == message::PORT.to_be_bytes() {
            arrived.messages += 1;
        }
        let Some(segment) = tcp_in(&packet).map(|ip| &ip[20..]) else { continue };
        let option = segment[20..].windows(4).any(|word| word == [253, 6, 0x4e, 0x57]);
        if segment[13] & 0x02 != 0 {
            arrived.syn_acks_with_rate += u32::from(option);
            continue;
        }
        let number = |at: usize| u32::from_be_bytes(segment[at..at + 4].try_into().expect("four bytes"));
        arrived.acks += 1;
        arrived.acks_with_option += u32::from(option);
        arrived.numbers = Some((number(4), number(8)));
    }
}

/// The network of the tests: `s1` has a plain cable, and the cable of `s2` can drop UDP.
fn net(forwarding: Forwarding) -> Option<Net> {
    let mut net = Net::star(forwarding, 1)?;
    net.host("s2");
    net.cable("s2", "r", 2, 0.0);
    net.attach_sender("s2", "r", 2);
    // The second class drops all packets.
    for line in [
        "qdisc add dev s2 root handle 1: htb default 1",
        "class add dev s2 parent 1: classid 1:1 htb rate 1gbit",
        "class add dev s2 parent 1: classid 1:2 htb rate 1gbit",
        "qdisc add dev s2 parent 1:2 blackhole",
    ] {
        net.says("s2r", &format!("tc {line}"));
    }
    Some(net)
}

fn pacec(net: &Net) -> Agent {
    Agent::switch_with(
        net,
        "100mbit",
        "",
        "rate_controller = \"pacec\"\nparams = { signal = \"out-of-band\" }\n[controller]\naddress = \"127.0.0.1:6690\"",
    )
}

fn host_counters(sender: &Agent) -> BTreeMap<String, u64> {
    sender.fresh().counters.into_iter().collect()
}

fn share_by_messages(forwarding: Forwarding) {
    patiently(|| {
        let Some(net) = net(forwarding) else { return };
        let _controller = Controller::start(net.netns("r"));
        let switch = pacec(&net);
        let sender = Agent::listening_sender(&net, "all", &[("s1", "r"), ("s2", "r")]);
        let (mut one, mut two) = (Arrived::default(), Arrived::default());
        let ports = [Port::open(&net, "s1", "r"), Port::open(&net, "s2", "r")];
        let first = Flow::from_sender(&net, 1, 5001);
        first.wait_for_data();
        let second = Flow::from_sender(&net, 2, 5002);
        second.wait_for_data();
        thread::sleep(Duration::from_secs(2));
        let shared = rates(&[&first, &second], Duration::from_secs(3));
        read(&ports[0], &mut one);
        read(&ports[1], &mut two);
        let counted = host_counters(&sender);
        println!("{forwarding:?}: {shared:.2?} Mbit/s; {one:?} {two:?}; {counted:?}");
        all_well(&[&first, &second]);
        for arrived in [one, two] {
            assert!(arrived.syn_acks_with_rate >= 1, "the first rate is in the SYN-ACK");
            assert!(arrived.acks > 1000 && arrived.acks_with_option == 0, "no option in later ACKs");
            assert!(arrived.messages >= 8, "messages at least every 500 ms");
        }
        assert_eq!((counted["orphaned"], counted["messages_refused"]), (0, 0));
        assert_eq!(switch.port().leaves.iter().map(|leaf| leaf.drops).sum::<u64>(), 0);
        let fair = 46.7;
        assert!(shared.iter().all(|rate| (rate - fair).abs() < 0.05 * fair), "{shared:?}");
    });
}

#[test]
fn flows_share_a_port_by_messages_through_a_router() {
    share_by_messages(Forwarding::Router);
}

#[test]
fn flows_share_a_port_by_messages_through_a_bridge() {
    share_by_messages(Forwarding::Bridge);
}

/// The messages about a newcomer's arrival are lost. The older flow gets its new rate with a later message, and does not
/// change to CUBIC.
#[test]
fn a_later_message_repairs_a_lost_one() {
    patiently(|| {
        let Some(net) = net(Forwarding::Router) else { return };
        let _controller = Controller::start(net.netns("r"));
        let _switch = pacec(&net);
        let sender = Agent::listening_sender(&net, "all", &[("s1", "r"), ("s2", "r")]);
        let older = Flow::from_sender(&net, 2, 5002);
        older.wait_for_data();
        thread::sleep(Duration::from_secs(2));
        let alone = rates(&[&older], Duration::from_secs(1))[0];
        let udp = "tc filter add dev s2 parent 1: protocol ip u32 match ip protocol 17 0xff flowid 1:2";
        net.says("s2r", udp);
        let newcomer = Flow::from_sender(&net, 1, 5001);
        newcomer.wait_for_data();
        thread::sleep(Duration::from_millis(100));
        let deaf = rates(&[&older], Duration::from_millis(300))[0];
        net.says("s2r", "tc filter del dev s2 parent 1:");
        let repaired = clock::now();
        thread::sleep(Duration::from_millis(600));
        let shared = rates(&[&older, &newcomer], Duration::from_secs(2));
        let counted = host_counters(&sender);
        println!(
            "alone {alone:.1}; without messages {deaf:.1}; {:?} later {shared:.1?} Mbit/s; {counted:?}",
            since(repaired)
        );
        all_well(&[&older, &newcomer]);
        assert!(deaf > 1.4 * shared[0], "without messages the rate stays: {deaf} {shared:?}");
        assert!((shared[0] - 46.7).abs() < 0.05 * 46.7, "{shared:?}");
        assert_eq!(counted["orphaned"], 0);
    });
}

/// Without a controller, the messages end after two seconds, and sources change to CUBIC a second later.
#[test]
fn sources_change_to_cubic_if_the_messages_end() {
    patiently(|| {
        let Some(net) = net(Forwarding::Router) else { return };
        let controller = Controller::start(net.netns("r"));
        let _switch = pacec(&net);
        let sender = Agent::listening_sender(&net, "all", &[("s1", "r"), ("s2", "r")]);
        let flow = Flow::from_sender(&net, 1, 5001);
        flow.wait_for_data();
        thread::sleep(Duration::from_millis(1500));
        assert_eq!(host_counters(&sender)["orphaned"], 0);
        drop(controller);
        thread::sleep(Duration::from_millis(4500));
        let orphaned = host_counters(&sender)["orphaned"];
        let _next = Controller::start(net.netns("r"));
        thread::sleep(Duration::from_secs(4));
        let rate = rates(&[&flow], Duration::from_secs(2))[0];
        let counted = host_counters(&sender);
        println!("{orphaned} without a controller; {rate:.1} Mbit/s with the next, {counted:?}");
        all_well(&[&flow]);
        assert_eq!((orphaned, counted["orphaned"], counted["adopted"]), (1, 1, 1));
        assert!((rate - 93.5).abs() < 0.05 * 93.5, "{rate}");
    });
}

fn forged(flow: (IpAddr, u16), to: (IpAddr, u16), numbers: (u32, u32)) -> Vec<u8> {
    let code = RateCode::encode(Rate::from_bits_per_sec(1_000_000));
    let message = RateMessage { sport: flow.1, dport: to.1, seq: numbers.1, ack: numbers.0, code };
    message.datagram(flow.0, to.0).expect("one family")
}

/// Another host sends messages with a flow's addresses and ports. The source refuses those with guessed numbers. With
/// the right numbers, which only hosts on the path know, the same message is accepted.
#[test]
fn a_forged_message_with_guessed_numbers_is_refused() {
    patiently(|| {
        let Some(net) = net(Forwarding::Router) else { return };
        let _controller = Controller::start(net.netns("r"));
        let switch = pacec(&net);
        let sender = Agent::listening_sender(&net, "all", &[("s1", "r"), ("s2", "r")]);
        let flow = Flow::from_sender(&net, 2, 5002);
        flow.wait_for_data();
        let tap = Port::open(&net, "s2", "r");
        thread::sleep(Duration::from_secs(2));
        let seen = switch.fresh().flows.into_iter().find(|f| f.destination.ends_with(":5002"));
        let end = |text: &str| {
            text.parse::<std::net::SocketAddr>().map(|end| (end.ip(), end.port())).expect("an end")
        };
        let (source, destination) = seen.map(|f| (end(&f.source), end(&f.destination))).expect("the flow");
        let attacker = Port::open(&net, "s1", "r");
        let before = rates(&[&flow], Duration::from_secs(1))[0];
        let mut dice = Dice(31);
        let begun = clock::now();
        let mut sent = 0;
        let attacked = thread::scope(|scope| {
            let measured = scope.spawn(|| rates(&[&flow], Duration::from_secs(3))[0]);
            while since(begun) < Span::from_secs(3) {
                attacker.send(&forged(source, destination, (dice.roll() as u32, dice.roll() as u32)));
                sent += 1;
                thread::sleep(Duration::from_millis(1));
            }
            measured.join().expect("it ends")
        });
        let refused = host_counters(&sender);
        let mut arrived = Arrived::default();
        // Always the numbers of the latest ACK, as a host on the path would use them.
        let known = clock::now();
        while since(known) < Span::from_secs(1) {
            read(&tap, &mut arrived);
            if let Some(numbers) = arrived.numbers {
                attacker.send(&forged(source, destination, numbers));
            }
            thread::sleep(Duration::from_millis(10));
        }
        let accepted = host_counters(&sender);
        println!(
            "{before:.1}; {sent} forged: {attacked:.1} Mbit/s; {refused:?}; with the numbers of ACKs: {accepted:?}"
        );
        all_well(&[&flow]);
        assert!(attacked > 0.95 * before, "{before} -> {attacked}");
        assert!(refused["messages_refused"] >= sent * 95 / 100, "{sent}: {refused:?}");
        assert!(accepted["messages"] >= refused["messages"] + 80, "{accepted:?}");
    });
}
