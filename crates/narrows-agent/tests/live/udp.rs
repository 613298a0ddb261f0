//! Tests UDP on an idle port, UDP next to TCP, a small flow of UDP next to a flood of UDP, and two floods of UDP.
//!
//! The tests use the kernel's counters of the switch's queues. The tests do not count the bytes that an application
//! receives, because an application on a busy machine may lose packets that the network has delivered.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, Scope};
use std::time::Duration;

use narrows_agent::clock;
use narrows_control::rate::Leaf;
use narrows_lab::patiently;

use super::agent::{Agent, since};
use super::flow::{Flow, all_well, rates};
use super::net::{Forwarding, Net};

/// Rate of the link (100 Mbit/s of frames), in Mbit/s of IP datagrams with 1500 bytes.
const LINK: f64 = 100.0 * 1500.0 / 1514.0;
/// UDP's floor and ceiling: the agent's defaults.
const FLOOR: f64 = 0.05 * LINK;
const CEILING: f64 = 0.95 * LINK;
/// Goodput of each of two TCP flows next to UDP, in Mbit/s.
const TCP_SHARE: f64 = LINK * 0.98 * 0.95 / 2.0 * 1448.0 / 1500.0;
const DATAGRAM: u64 = 1500;
/// Largest number of datagrams that a delayed sender sends at once.
const BURST: u64 = 10;

/// A flow of UDP.
struct Datagrams {
    socket: UdpSocket,
    /// The class of the flow's queue at the switch, as in tc(8).
    queue: String,
}

impl Datagrams {
    /// Opens a flow whose queue at the switch is not the queue of any flow in `others`.
    fn open(net: &Net, others: &[&Datagrams]) -> Datagrams {
        let to = net.server(7000, false);
        loop {
            let bind = || UdpSocket::bind("0.0.0.0:0").expect("a socket");
            let socket = net.inside("s3", bind);
            let before = queues(net);
            let sent = || queues(net).into_iter().find(|(queue, now)| now.sent > before[queue].sent);
            socket.send_to(&[0; DATAGRAM as usize - 28], to).expect("a route");
            let begun = clock::now();
            while sent().is_none() {
                assert!(since(begun).as_secs_f64() < 10.0, "no datagram reached a queue of UDP");
                thread::sleep(Duration::from_millis(5));
            }
            let queue = sent().map(|(queue, _)| queue).expect("a queue was found");
            if others.iter().all(|other| other.queue != queue) {
                return Datagrams { socket, queue };
            }
        }
    }
}

/// A sender of UDP datagrams at a fixed rate.
struct Blast {
    packets: AtomicU64,
    stop: AtomicBool,
}

impl Blast {
    fn new() -> Blast {
        Blast { packets: AtomicU64::new(0), stop: AtomicBool::new(false) }
    }

    /// Sends IP datagrams at this rate until the result is dropped, also after a panic. Otherwise, the scope of the
    /// thread would never end.
    fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        flow: &'scope Datagrams,
        net: &Net,
        mbit: f64,
    ) -> Sending<'scope> {
        let to = net.server(7000, false);
        scope.spawn(move || {
            let (mut due, gap) = (clock::now().as_nanos(), (DATAGRAM as f64 * 8e3 / mbit) as u64);
            while !self.stop.load(Relaxed) {
                let now = clock::now().as_nanos();
                due = due.max(now.saturating_sub(BURST * gap));
                while due <= now {
                    flow.socket.send_to(&[0; DATAGRAM as usize - 28], to).expect("a route");
                    self.packets.fetch_add(1, Relaxed);
                    due += gap;
                }
                thread::sleep(Duration::from_nanos(gap.min(500_000)));
            }
        });
        Sending(self)
    }
}

/// Stops its sender when it is dropped.
#[must_use]
struct Sending<'a>(&'a Blast);

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, Relaxed);
    }
}

/// Returns the rate of IP datagrams that each sender sends while `work` runs, in Mbit/s.
fn sent_mbit<const N: usize>(senders: [&Blast; N], work: impl FnOnce()) -> [f64; N] {
    let packets = || senders.map(|sender| sender.packets.load(Relaxed));
    let (begun, before) = (clock::now(), packets());
    work();
    let (after, seconds) = (packets(), since(begun).as_secs_f64());
    std::array::from_fn(|i| ((after[i] - before[i]) * DATAGRAM * 8) as f64 / 1e6 / seconds)
}

#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    sent: u64,
    dropped: u64,
}

/// Returns the switch's queues for UDP.
fn queues(net: &Net) -> BTreeMap<String, Queue> {
    let shown = net.says("r", "tc -s class show dev c");
    let mut found = BTreeMap::new();
    let mut lines = shown.lines();
    while let Some(line) = lines.next() {
        let queue = line.split_whitespace().nth(2).filter(|_| line.contains("parent 4e57:30"));
        let (Some(queue), Some(counts)) = (queue, lines.next()) else { continue };
        // " Sent 1514 bytes 1 pkt (dropped 0, overlimits 0 requeues 0) "
        let words: Vec<_> = counts.split([' ', ',']).collect();
        let after =
            |word| words.iter().position(|w| *w == word).and_then(|at| words.get(at + 1)?.parse().ok());
        let before_pkt = words.iter().position(|w| *w == "pkt").and_then(|at| words[at - 1].parse().ok());
        let counts = Queue { sent: before_pkt.expect(counts), dropped: after("(dropped").expect(counts) };
        found.insert(queue.to_owned(), counts);
    }
    assert!(found.len() > 1, "{shown}");
    found
}

/// Returns the share of a flow's datagrams that its queue dropped while `work` ran, and the number of all its
/// datagrams.
fn loss(net: &Net, flow: &Datagrams, work: impl FnOnce()) -> (f64, u64) {
    let before = queues(net)[&flow.queue];
    work();
    let after = queues(net)[&flow.queue];
    let (sent, dropped) = (after.sent - before.sent, after.dropped - before.dropped);
    (dropped as f64 / (sent + dropped).max(1) as f64, sent + dropped)
}

/// Measures for the time `span`. Returns the rate of UDP's IP datagrams that leave the port, in Mbit/s.
fn carried(switch: &Agent, span: Duration) -> f64 {
    let read = || {
        let status = switch.fresh();
        let udp = status.ports[0].leaves[Leaf::Udp as usize];
        (status.at, udp.bytes.get() - 14 * udp.packets)
    };
    let (begun, before) = read();
    thread::sleep(span);
    let (ended, after) = read();
    (after - before) as f64 * 8e-6 / ended.since(begun).as_secs_f64()
}

fn star() -> Option<(Net, UdpSocket)> {
    let net = Net::star(Forwarding::Router, 3)?;
    // Without this socket, the receiver would answer with ICMP.
    let sink = net.inside("c", || UdpSocket::bind("0.0.0.0:7000").expect("a socket"));
    Some((net, sink))
}

#[test]
fn udp_borrows_an_idle_port() {
    patiently(|| {
        let Some((net, _sink)) = star() else { return };
        let switch = Agent::switch(&net, "100mbit");
        let flood = Datagrams::open(&net, &[]);
        let small = Datagrams::open(&net, &[&flood]);

        let half = Blast::new();
        let (lost, offered) = loss(&net, &flood, || {
            thread::scope(|scope| {
                let _half = half.start(scope, &flood, &net, 50.0);
                thread::sleep(Duration::from_millis(1500));
            });
        });
        let policed = switch.counter("udp_policed");
        println!("50 Mbit/s on an idle port: {:.2} % of {offered} lost, {policed} policed", lost * 100.0);
        assert_eq!((policed, offered), (0, half.packets.load(Relaxed)), "the others did not reach the queue");
        assert!(lost < 0.05, "{lost}");

        // One flow sends twice the link's rate, next to a small flow.
        let (much, little) = (Blast::new(), Blast::new());
        let mut rate = 0.0;
        let mut asked = 0.0;
        let (lost, offered) = loss(&net, &small, || {
            thread::scope(|scope| {
                let _much = much.start(scope, &flood, &net, 200.0);
                let _little = little.start(scope, &small, &net, 2.0);
                thread::sleep(Duration::from_millis(300));
                [asked] = sent_mbit([&much], || rate = carried(&switch, Duration::from_millis(1500)));
            });
        });
        println!(
            "{asked:.0} Mbit/s: {rate:.1} carried; of a small flow, {:.2} % of {offered} lost",
            lost * 100.0
        );
        assert!(asked > 1.1 * LINK, "the machine sent only {asked} Mbit/s");
        assert!((0.97 * CEILING..=1.02 * CEILING).contains(&rate), "{rate}");
        assert!(offered > 200 && lost < 0.01, "{lost} of {offered}");
    });
}

/// Neither of two floods gets more than the other, although one begins earlier and sends more.
#[test]
fn two_floods_of_udp_share_the_port_equally() {
    patiently(|| {
        let Some((net, _sink)) = star() else { return };
        let switch = Agent::switch(&net, "100mbit");
        let first = Datagrams::open(&net, &[]);
        let second = Datagrams::open(&net, &[&first]);
        let (more, less) = (Blast::new(), Blast::new());
        let mut rate = 0.0;
        let (mut sent, mut asked) = ([0; 2], [0.0; 2]);
        thread::scope(|scope| {
            let _more = more.start(scope, &first, &net, 120.0);
            thread::sleep(Duration::from_millis(300));
            let _less = less.start(scope, &second, &net, 80.0);
            thread::sleep(Duration::from_millis(500));
            let count = || [&first, &second].map(|flow| queues(&net)[&flow.queue].sent);
            let before = count();
            asked = sent_mbit([&more, &less], || rate = carried(&switch, Duration::from_secs(2)));
            let after = count();
            sent = [after[0] - before[0], after[1] - before[1]];
        });
        println!("two floods of {asked:.0?} Mbit/s: {rate:.1} carried, {sent:?} datagrams");
        assert!(
            asked.iter().all(|mbit| *mbit > 1.1 * CEILING / 2.0),
            "the machine sent only {asked:?} Mbit/s"
        );
        assert!((0.97 * CEILING..=1.02 * CEILING).contains(&rate), "{rate}");
        let share = sent[0] as f64 / (sent[0] + sent[1]) as f64;
        assert!((0.47..=0.53).contains(&share), "{sent:?}");
    });
}

/// If TCP flows send as much as they can, the UDP flows together get UDP's floor. TCP keeps its rates and its short
/// queue.
#[test]
fn udp_gets_its_floor_at_a_busy_port() {
    patiently(|| {
        let Some((net, _sink)) = star() else { return };
        let switch = Agent::switch(&net, "100mbit");
        let _sender = Agent::sender(&net, "all", &[("s1", "r"), ("s2", "r")]);
        let flood = Datagrams::open(&net, &[]);
        let small = Datagrams::open(&net, &[&flood]);
        let flows = [1, 2].map(|i| Flow::from_sender(&net, i, 5000 + i as u16));
        let both = [&flows[0], &flows[1]];
        both.iter().for_each(|flow| flow.wait_for_data());
        let (much, little) = (Blast::new(), Blast::new());
        let (mut udp, mut tcp, mut queue) = (0.0, Vec::new(), Vec::new());
        let mut lost = (0.0, 0);
        thread::scope(|scope| {
            let _much = much.start(scope, &flood, &net, 90.0);
            let _little = little.start(scope, &small, &net, 2.0);
            thread::sleep(Duration::from_millis(1000));
            lost = loss(&net, &small, || {
                let measured = scope.spawn(|| rates(&both, Duration::from_millis(2500)));
                let leaving = scope.spawn(|| carried(&switch, Duration::from_millis(2400)));
                while !measured.is_finished() {
                    queue.push(f64::from(switch.port().leaves[Leaf::Elephant as usize].queued_packets));
                }
                udp = leaving.join().expect("the measurement");
                tcp = measured.join().expect("the measurement");
            });
        });
        let mean_queue = queue.iter().sum::<f64>() / queue.len() as f64;
        println!(
            "busy port: UDP {udp:.2} Mbit/s (floor {FLOOR:.2}), TCP {tcp:.1?} (share {TCP_SHARE:.1}), its queue {mean_queue:.2} \
             on average; a small flow of UDP lost {:.2} % of {}",
            lost.0 * 100.0,
            lost.1
        );
        all_well(&both);
        assert!((udp - FLOOR).abs() < 0.1 * FLOOR, "{udp}");
        assert!(tcp.iter().all(|rate| (rate - TCP_SHARE).abs() < 0.05 * TCP_SHARE), "{tcp:?}");
        assert_eq!(switch.port().leaves[Leaf::Elephant as usize].drops, 0);
        assert!(mean_queue < 8.0, "{queue:?}");
        assert!(lost.1 > 200 && lost.0 < 0.01, "{lost:?}");
    });
}
