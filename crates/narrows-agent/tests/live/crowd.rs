//! Tests a crowd: so many connections that the fair share of each is less than one packet per RTT.

use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use narrows_agent::clock;
use narrows_control::units::{Span, Time};
use narrows_lab::patiently;
use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, connect, socket};

use super::agent::{Agent, since};
use super::flow::{jain, tcp_info};
use super::net::{Forwarding, Net};

/// Time from the beginning until the measurement of the connections.
const SETTLED: Span = Span::from_secs(5);
/// Longest allowed queueing delay after [`SETTLED`]. A full queue would cause a delay of 500 ms. The limit allows for
/// other programs of the machine, which delay the packets of many flows at the same time.
const LONGEST_MS: f64 = 30.0;

pub(crate) struct Crowd {
    pub(crate) connections: usize,
    pub(crate) mbit: u64,
    pub(crate) seconds: u64,
    /// Time within which the connections arrive, at equal intervals.
    pub(crate) arrival: Span,
}

/// Reads numbers from an environment variable.
fn numbers<const N: usize>(variable: &str) -> Option<[u64; N]> {
    let text = std::env::var(variable).ok()?;
    let found: Option<Vec<u64>> = text.split(',').map(|number| number.parse().ok()).collect();
    let numbers = found.and_then(|found| found.try_into().ok());
    Some(numbers.unwrap_or_else(|| panic!("{variable}: found {text:?}, expected {N} numbers")))
}

/// `NARROWS_CROWD=2500,100,40` sets connections, Mbit/s and seconds (default: 600,24,8). `NARROWS_CROWD_ARRIVAL_MS`
/// sets the time of the arrival (default: 1000).
fn crowd() -> Crowd {
    let [connections, mbit, seconds] = numbers("NARROWS_CROWD").unwrap_or([600, 24, 8]);
    let [arrival_ms] = numbers("NARROWS_CROWD_ARRIVAL_MS").unwrap_or([1000]);
    Crowd { connections: connections as usize, mbit, seconds, arrival: Span::from_millis(arrival_ms) }
}

/// `NARROWS_CROWD_RTO_MIN_MS=270` sets the smallest retransmission timeout of the senders' namespace (default: the
/// kernel's, 200 ms).
fn set_least_rto(net: &Net) {
    if let Some([ms]) = numbers("NARROWS_CROWD_RTO_MIN_MS") {
        net.says("s1", &format!("sysctl -q -w net.ipv4.tcp_rto_min_us={}", 1000 * ms));
    }
}

/// `NARROWS_CROWD_QDISC=fq` sets the qdisc of the senders' interface (default: the kernel's, which does not hold
/// packets until their departure time).
fn set_qdisc(net: &Net) {
    if let Ok(qdisc) = std::env::var("NARROWS_CROWD_QDISC") {
        // The default limits of fq are too small for a crowd on a single host.
        let set = format!("tc qdisc replace dev r root {qdisc} limit 1000000");
        net.says("s1", &set);
    }
}

impl Crowd {
    /// Returns the number of bytes that each connection sends. It is twice the number that an equal share carries
    /// during the test.
    fn bytes(&self) -> u64 {
        let share = self.mbit * 1_000_000 / 8 / self.connections as u64;
        (2 * share * self.seconds).max(100_000)
    }
}

/// Begins to open a connection, but does not wait until it is open.
fn open(to: SocketAddr) -> TcpStream {
    let SocketAddr::V4(to) = to else { panic!("expected an IPv4 address") };
    let fd = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_NONBLOCK, None).expect("a socket");
    match connect(fd.as_raw_fd(), &SockaddrIn::from(to)) {
        Ok(()) | Err(Errno::EINPROGRESS) => TcpStream::from(fd),
        Err(error) => panic!("connect: {error}"),
    }
}

/// Opens the connections and writes all their data into the sockets, so that they need no threads. Returns each
/// connection with the number of bytes that the kernel accepted.
pub(crate) fn arrive(net: &Net, to: SocketAddr, crowd: &Crowd) -> Vec<(TcpStream, u64)> {
    let data = vec![0x5a; crowd.bytes() as usize];
    net.inside("s1", || {
        let begun = clock::now();
        let mut streams = Vec::with_capacity(crowd.connections);
        let mut filled = vec![None; crowd.connections];
        while filled.contains(&None) {
            let due = (since(begun).as_secs_f64() / crowd.arrival.as_secs_f64() * crowd.connections as f64)
                as usize;
            while streams.len() < due.min(crowd.connections) {
                streams.push(open(to));
            }
            for (stream, filled) in streams.iter_mut().zip(&mut filled).filter(|(_, filled)| filled.is_none())
            {
                match stream.write(&data) {
                    Ok(bytes) => *filled = Some(bytes as u64),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(error) => panic!("write: {error}"),
                }
            }
            assert!(since(begun) < Span::from_secs(60), "not all connections opened");
            thread::sleep(Duration::from_millis(1));
        }
        println!("{} connections opened in {:?}", streams.len(), since(begun));
        streams.into_iter().zip(filled.into_iter().flatten()).collect()
    })
}

/// Accepts connections and keeps them open until `stop` is set. It reads no data, because all data fits into the
/// sockets' buffers.
pub(crate) fn accept(listener: &TcpListener, stop: &AtomicBool) {
    listener.set_nonblocking(true).expect("a socket");
    let mut streams = Vec::new();
    while !stop.load(Relaxed) {
        match listener.accept() {
            Ok((stream, _)) => streams.push(stream),
            Err(_) => thread::sleep(Duration::from_millis(2)),
        }
    }
}

/// Samples the port's queueing delay until the time `begun` + `end`. Prints percentiles, and returns the samples in ms.
pub(crate) fn watch(switch: &Agent, begun: Time, end: Span, mbit: u64) -> Vec<(Span, f64)> {
    let (mut all, mut part) = (Vec::new(), Vec::new());
    let mut half_seconds = 0;
    while since(begun) < end {
        let port = switch.port();
        let queued: u64 = port.leaves.iter().map(|leaf| leaf.queued_bytes.get()).sum();
        let delay = queued as f64 * 8.0 / (mbit as f64 * 1e3);
        part.push(delay);
        all.push((since(begun), delay));
        let now = since(begun).as_micros() / 500_000;
        if now > half_seconds {
            half_seconds = now;
            let drops: u64 = port.leaves.iter().map(|leaf| leaf.drops).sum();
            println!(
                "{:4.1} s: queue p50 {:5.1} ms, p99 {:5.1} ms of {} samples; {} rated flows, {drops} drops, congestion {}",
                now as f64 / 2.0,
                percentile(&part, 50),
                percentile(&part, 99),
                part.len(),
                port.flows[0] + port.flows[1],
                port.congestion
            );
            part.clear();
        }
        // Between two samples, leave the processor to other programs. A guest has only one.
        thread::sleep(Duration::from_millis(1));
    }
    all
}

pub(crate) fn percentile(of: &[f64], percent: usize) -> f64 {
    let mut sorted = of.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(of.len() * percent / 100).copied().unwrap_or(f64::NAN)
}

/// If flows sent faster than their shares, the queue would stay full.
#[test]
fn a_crowd_leaves_the_queue_short() {
    patiently(|| {
        let crowd = crowd();
        let Some(net) = Net::star_alone(Forwarding::Router, 1) else { return };
        set_least_rto(&net);
        set_qdisc(&net);
        let (_, files) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
        setrlimit(Resource::RLIMIT_NOFILE, files, files).expect("a limit up to its maximum");
        let switch = Agent::switch_with(&net, &format!("{}mbit", crowd.mbit), "max_flows = 16384", "");
        let _sender = Agent::sender(&net, "all", &[("s1", "r")]);
        let address = net.server(5001, false);
        let listener = net.inside("c", || TcpListener::bind(address).expect("a server can listen"));
        let stop = AtomicBool::new(false);
        let end = Span::from_secs(crowd.seconds);
        let (queue, rates, drops) = thread::scope(|scope| {
            scope.spawn(|| accept(&listener, &stop));
            let begun = clock::now();
            let arriving = scope.spawn(|| arrive(&net, address, &crowd));
            let mut queue = watch(&switch, begun, SETTLED, crowd.mbit);
            let streams = arriving.join().expect("all connections open");
            let acked = || streams.iter().map(|(s, _)| tcp_info(s).1).collect::<Vec<u64>>();
            let drops = || switch.port().leaves.iter().map(|leaf| leaf.drops).sum::<u64>();
            let (from, before, dropped) = (clock::now(), acked(), drops());
            queue.extend(watch(&switch, begun, end, crowd.mbit));
            let (after, seconds) = (acked(), since(from).as_secs_f64());
            // Until the crowd has arrived, the first connections have large shares, so they may end early.
            let sending = streams.iter().zip(before.iter().zip(after)).filter(|((_, all), (_, a))| a < all);
            let rates: Vec<f64> = sending.map(|(_, (b, a))| (a - b) as f64 * 8e-6 / seconds).collect();
            stop.store(true, Relaxed);
            (queue, rates, drops() - dropped)
        });
        let settled: Vec<f64> =
            queue.iter().filter(|(at, _)| *at > SETTLED).map(|(_, delay)| *delay).collect();
        let (p99, sum) = (percentile(&settled, 99), rates.iter().sum::<f64>());
        println!(
            "from {SETTLED:?}: queue p50 {:.1} ms, p99 {p99:.1} ms; {sum:.2} Mbit/s, Jain {:.4}, {drops} drops",
            percentile(&settled, 50),
            jain(&rates)
        );
        let of_flows = [0, 1, 10, 50, 90, 99].map(|percent| 1e3 * percentile(&rates, percent));
        println!("flows' rates, percentiles 0, 1, 10, 50, 90, 99: {of_flows:.1?} kbit/s");
        assert!(p99 < LONGEST_MS, "{p99} ms");
        assert_eq!(drops, 0);
        assert!(sum > 0.8 * crowd.mbit as f64, "{sum} Mbit/s");
        assert!(jain(&rates) > 0.9, "{}", jain(&rates));
    });
}
