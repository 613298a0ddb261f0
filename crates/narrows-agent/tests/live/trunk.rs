//! Tests routers whose controlled port is a VLAN trunk, or carries PPPoE or GTP-U.
//!
//! The router is a user-space program, so the kernel does not need to support VLANs, PPP or GTP. The program forwards
//! packets between two interfaces, and adds the headers to packets that leave by the controlled port. The router
//! `edge`, in front of the receiver, removes the headers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use narrows_agent::clock;
use narrows_control::units::Span;
use narrows_lab::{Room, patiently};

use super::agent::{Agent, since};
use super::flow::{Flow, Sends, all_well, rates};
use super::frames::packet_socket;
use super::net::{Forwarding, Net};
use super::reload::reload;

/// Headers that the controlled port adds to IP packets. Other packets, such as ARP and neighbour discovery, stay
/// unchanged.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Headers {
    /// 802.1Q.
    Tag,
    Pppoe,
    /// GTP-U over IPv4, without UDP's checksum.
    GtpU,
}

impl Headers {
    /// Returns the number of bytes that the headers add to a packet.
    fn len(self) -> usize {
        match self {
            Headers::Tag => 4,
            Headers::Pppoe => 8,
            Headers::GtpU => 36,
        }
    }

    fn add(self, frame: &[u8]) -> Vec<u8> {
        let (ethernet, ip) = frame.split_at(14);
        if ethernet[12..] != [8, 0] {
            return frame.to_vec();
        }
        let more = |n: usize| ((ip.len() + n) as u16).to_be_bytes();
        let headers = match self {
            Headers::Tag => vec![0x81, 0, 0, 20, 8, 0],
            Headers::Pppoe => [&[0x88, 0x64, 0x11, 0, 0, 1][..], &more(2), &[0, 0x21]].concat(),
            Headers::GtpU => {
                let mut outer = [&[0x45, 0][..], &more(36), &[0, 0, 0, 0, 64, 17, 0, 0]].concat();
                outer.extend([192, 0, 2, 1, 192, 0, 2, 2]);
                let sum = narrows_control::feedback::checksum::compute(&outer);
                outer[10..12].copy_from_slice(&sum.to_be_bytes());
                let udp = [&[8, 0x68, 8, 0x68][..], &more(16), &[0, 0]].concat();
                let gtp = [&[0x30, 255][..], &more(0), &[0, 0, 0, 7]].concat();
                [&[8, 0], &outer[..], &udp, &gtp].concat()
            }
        };
        [&ethernet[..12], &headers, ip].concat()
    }

    fn remove(self, frame: &[u8]) -> Vec<u8> {
        let kind: &[u8] = match self {
            Headers::Tag => &[0x81, 0],
            Headers::Pppoe => &[0x88, 0x64],
            Headers::GtpU => &[8, 0],
        };
        match frame.get(14 + self.len()..) {
            Some(ip) if frame[12..14] == *kind => [&frame[..12], &[8, 0], ip].concat(),
            _ => frame.to_vec(),
        }
    }
}

/// Forwards frames between two interfaces of a namespace, until this value is dropped.
struct Forwarder {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Forwarder {
    /// Starts a forwarder. `there` changes frames from the first interface to the second, and `back` changes frames in
    /// the other direction.
    fn start(
        net: &Net,
        host: &str,
        ends: [&str; 2],
        there: impl Fn(&[u8]) -> Vec<u8> + Send + 'static,
        back: impl Fn(&[u8]) -> Vec<u8> + Send + 'static,
    ) -> Forwarder {
        let stop = Arc::new(AtomicBool::new(false));
        let open = |name: &str| net.inside(host, || packet_socket(name)).expect("a packet socket");
        let [a, b] = ends.map(open);
        let (a, b) = (Arc::new(a), Arc::new(b));
        let threads = vec![
            spawn(Arc::clone(&stop), Arc::clone(&a), Arc::clone(&b), there),
            spawn(Arc::clone(&stop), b, a, back),
        ];
        Forwarder { stop, threads }
    }
}

fn spawn(
    stop: Arc<AtomicBool>,
    from: Arc<std::os::fd::OwnedFd>,
    to: Arc<std::os::fd::OwnedFd>,
    change: impl Fn(&[u8]) -> Vec<u8> + Send + 'static,
) -> JoinHandle<()> {
    use nix::poll::{PollFd, PollFlags, poll};
    use std::os::fd::AsFd;
    thread::spawn(move || {
        let mut frame = vec![0; 1 << 16];
        while !stop.load(Ordering::Relaxed) {
            match nix::unistd::read(&*from, &mut frame) {
                // A full queue drops packets. In these tests, this is not an error.
                Ok(n) if n >= 14 => drop(nix::unistd::write(&*to, &change(&frame[..n]))),
                Ok(_) => {}
                Err(_) => drop(poll(&mut [PollFd::new(from.as_fd(), PollFlags::POLLIN)], 50_u16)),
            }
        }
    })
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Tests a flow on the path `s1` - `r` - `edge` - `c`. Router `r` adds the headers at its controlled port `edge`, and
/// router `edge` removes them.
fn a_flow_is_rated(headers: Headers, more: &str) {
    // Only hosts have addresses, as with a bridge.
    let Some(mut net) = Net::empty(Forwarding::Bridge, Room::Half) else { return };
    for host in ["s1", "r", "edge", "c"] {
        net.host(host);
    }
    for (a, b) in [("s1", "r"), ("r", "edge"), ("edge", "c")] {
        net.link(a, b);
        for (host, interface) in [(a, b), (b, a)] {
            // Without offloads, forwarders see frames as on the wire: no super-packets, complete checksums.
            net.says(host, &format!("ethtool -K {interface} tx off tso off gso off gro off"));
        }
    }
    net.address("s1", "r", 9, 11);
    net.address("c", "edge", 9, 1);
    let _router =
        Forwarder::start(&net, "r", ["s1", "edge"], move |f| headers.add(f), move |f| headers.remove(f));
    let _peer =
        Forwarder::start(&net, "edge", ["r", "c"], move |f| headers.remove(f), move |f| headers.add(f));
    // A smaller MTU leaves room for the added headers in the frames.
    for (host, interface) in [("s1", "r"), ("c", "edge")] {
        net.says(host, &format!("ip link set {interface} mtu 1440"));
    }
    let config = format!(
        "[switch]\nnetns = \"{}\"\ninterfaces = [\"s1\"]\n{more}\n[[ports]]\ninterface = \"edge\"\nrate = \"20mbit\"\n\
         encapsulation = {}\n",
        net.name("r"),
        headers.len()
    );
    let mut switch = Agent::start("switch", &config);
    let _sender = Agent::sender(&net, "all", &[("s1", "r")]);
    let open = |port| {
        let flow = Flow::open(net.netns("s1"), net.netns("c"), net.server(port, false), Sends::Client, None);
        flow.wait_for_data();
        flow
    };
    if headers == Headers::GtpU {
        let _closed = open(4999);
        let line = "set gtp = true in [switch], and send GTP-U without fragments and without segmentation offload \
                    port=\"edge\" event=\"unopened\" encapsulation=\"GTP-U\"";
        let begun = clock::now();
        while !switch.log().contains(line) {
            assert!(since(begun) < Span::from_secs(10), "{}", switch.log());
            thread::sleep(Duration::from_millis(10));
        }
        assert!(switch.counter("unopened_gtp") > 0);
        assert_eq!(switch.fresh().flow_count, 0);
        let said = reload(&mut switch, "[switch]\n", "[switch]\ngtp = true\n");
        assert!(said.contains("changed=\"switch.gtp\""), "{said}");
    }
    let flow = open(5000);
    thread::sleep(Duration::from_millis(500));
    let rate = rates(&[&flow], Duration::from_millis(1500))[0];
    let status = switch.fresh();
    let seen: Vec<_> = status.flows.iter().filter(|f| f.destination.ends_with(":5000")).collect();
    let port = switch.port();
    let (inserted, queued) = (switch.counter("inserted"), port.leaves.map(|leaf| leaf.queued_packets));
    println!("{headers:?}: {rate:.2} Mbit/s, {inserted} rates inserted, {queued:?} packets queued, {seen:?}");
    all_well(&[&flow]);
    let is_rated = |f: &&&narrows_agent::status::FlowStatus| f.class == "rated" && f.leaf == "elephant";
    assert_eq!(seen.iter().filter(is_rated).count(), 1, "{:#?}", status.flows);
    assert!(inserted > 50);
    // The goodput is 98 % of the port's rate, less all headers.
    let payload = (1440.0 - 52.0) / (1440.0 + 14.0 + headers.len() as f64);
    let expected = 20.0 * 0.98 * payload;
    assert!((rate - expected).abs() < 0.1 * expected, "{rate}, expected {expected}");
    assert!(queued[1] < 20, "{queued:?}");
}

/// Data leaves by the trunk with a tag, and ACKs by a port without tags.
#[test]
fn a_flow_is_rated_at_the_trunk_of_a_router() {
    patiently(|| a_flow_is_rated(Headers::Tag, "vlans = \"routed\""));
}

#[test]
fn a_flow_is_rated_inside_pppoe() {
    patiently(|| a_flow_is_rated(Headers::Pppoe, ""));
}

/// At first, the switch does not look into GTP-U, and the log says that flows inside GTP-U are not rated.
#[test]
fn a_flow_is_rated_inside_gtp() {
    patiently(|| a_flow_is_rated(Headers::GtpU, ""));
}
