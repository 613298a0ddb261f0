//! Networks of namespaces: senders, a switch (router or bridge), a cable with a delay, and a receiver.

use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use narrows_agent::netns::Netns;
use narrows_lab::{Hosts, Need, Room, can_run, must};
use serde_json::json;

/// RTT of the path between switch and receiver.
pub(crate) const RTT_MS: u64 = 20;

/// The wire's rate, a little above the switch's rate. If HTB is missing, the wire limits the flows. Without this limit,
/// the speed of the machine would limit them.
const WIRE: &str = "rate 110mbit burst 32kb limit 1500000";

/// How Linux implements the switch.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Forwarding {
    Router,
    Bridge,
}

/// A network.
pub(crate) struct Net {
    // The relays are dropped before the namespaces in which they work.
    relays: Vec<Relay>,
    forwarding: Forwarding,
    hosts: Hosts,
}

/// A cable whose packets the emulator carries. It delays all packets, and loses some of the packets from its first end
/// to its second end.
struct Relay {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Net {
    /// Returns an empty network, or `None` if this machine cannot run the test.
    pub(crate) fn empty(forwarding: Forwarding, room: Room) -> Option<Net> {
        let tools = ["ip -V", "tc -V", "nsenter -V", "ethtool --version", "iperf3 --version"];
        let needs = [Need::Root, Need::Btf].into_iter().chain(tools.map(Need::Tool));
        can_run(&needs.collect::<Vec<_>>()).then(|| Net {
            relays: Vec::new(),
            forwarding,
            hosts: Hosts::new("nwl", room),
        })
    }

    /// Returns a network in which the senders `s1`, `s2` ... reach `c` through the switch `r` and a path of 20 ms. The
    /// port to control is the interface `c` of `r`. Other interfaces of `r` are `s1`, `s2` ...
    pub(crate) fn star(forwarding: Forwarding, senders: usize) -> Option<Net> {
        Net::star_on(forwarding, senders, WIRE, Room::Half)
    }

    /// Like [`Net::star`], but no other test runs at the same time.
    pub(crate) fn star_alone(forwarding: Forwarding, senders: usize) -> Option<Net> {
        Net::star_on(forwarding, senders, WIRE, Room::Whole)
    }

    /// Like [`Net::star`], but `wire` has the arguments of the cable's token bucket (tc-tbf(8)).
    pub(crate) fn star_on(forwarding: Forwarding, senders: usize, wire: &str, room: Room) -> Option<Net> {
        let mut net = Net::empty(forwarding, room)?;
        net.switch("r");
        net.host("c");
        net.cable_on("r", "c", RTT_MS, 0.0, wire);
        net.address("c", "r", 9, 1);
        net.address("r", "c", 9, 2);
        net.route("c", "r", 9);
        for i in 1..=senders {
            let name = format!("s{i}");
            net.host(&name);
            net.link(&name, "r");
            net.attach_sender(&name, "r", i);
        }
        Some(net)
    }

    /// Sets the addresses and routes of sender `i` (the host `name`), and the address of `switch` toward this sender.
    pub(crate) fn attach_sender(&self, name: &str, switch: &str, i: usize) {
        self.address(switch, name, i, 2);
        match self.forwarding {
            Forwarding::Router => {
                self.address(name, switch, i, 1);
                self.route(name, switch, i);
            }
            Forwarding::Bridge => self.address(name, switch, 9, 10 + i),
        }
    }

    /// Returns the address of sender `i` (counted from 1), or of the receiver if `i` is 0.
    pub(crate) fn of(&self, i: usize, v6: bool) -> IpAddr {
        let (network, host) = match (i, self.forwarding) {
            (0, _) => (9, 1),
            (i, Forwarding::Router) => (i, 1),
            (i, Forwarding::Bridge) => (9, 10 + i),
        };
        let text = if v6 { format!("fd77:{network}::{host}") } else { format!("10.77.{network}.{host}") };
        text.parse().expect("an address")
    }

    /// Returns the address of a server at the receiver.
    pub(crate) fn server(&self, port: u16, v6: bool) -> SocketAddr {
        SocketAddr::new(self.of(0, v6), port)
    }

    pub(crate) fn host(&mut self, name: &str) {
        self.hosts.add(name);
        for (key, value) in [
            // With these buffer sizes, windows never limit a flow.
            ("net/ipv4/tcp_rmem", "4096 4000000 8000000"),
            ("net/ipv4/tcp_wmem", "4096 1000000 8000000"),
            ("net/ipv6/conf/default/accept_dad", "0"),
        ] {
            self.hosts.sysctl(name, key, value);
        }
    }

    pub(crate) fn switch(&mut self, name: &str) {
        self.host(name);
        match self.forwarding {
            Forwarding::Router => {
                self.hosts.sysctl(name, "net/ipv4/ip_forward", "1");
                self.hosts.sysctl(name, "net/ipv6/conf/all/forwarding", "1");
            }
            Forwarding::Bridge => {
                self.hosts.ip(name, "link add br0 type bridge forward_delay 0");
                self.hosts.ip(name, "link set br0 up");
            }
        }
    }

    /// Makes a cable between two hosts. Each interface has the name of the host at its other end.
    pub(crate) fn link(&self, a: &str, b: &str) {
        self.hosts.cable((a, b), (b, a));
        self.join_bridge(a, b);
        self.join_bridge(b, a);
    }

    fn is_bridge(&self, host: &str) -> bool {
        self.hosts.says(host, "ip link show br0").is_ok()
    }

    fn join_bridge(&self, host: &str, interface: &str) {
        if self.is_bridge(host) {
            self.hosts.ip(host, &format!("link set {interface} master br0"));
        }
    }

    /// Makes a cable with this round-trip delay and with random loss of the packets from `a`.
    pub(crate) fn cable(&mut self, a: &str, b: &str, rtt_ms: u64, loss: f64) {
        self.cable_on(a, b, rtt_ms, loss, WIRE);
    }

    /// With `NARROWS_LIVE_NETEM=1`, netem delays the packets from `b` to `a` by the whole RTT, and `wire` does not apply.
    /// A guest of `--on vm` has too little processor time for a relay at 50 Mbit/s.
    fn cable_on(&mut self, a: &str, b: &str, rtt_ms: u64, loss: f64, wire: &str) {
        if loss == 0.0 && std::env::var_os("NARROWS_LIVE_NETEM").is_some() {
            self.link(a, b);
            let space = self.name(b);
            return must(&format!(
                "tc -n {space} qdisc add dev {a} root netem delay {rtt_ms}ms limit 1000000"
            ));
        }
        let middle = format!("{a}{b}");
        self.host(&middle);
        // Without IPv6, the cable sends no packets of its own.
        self.hosts.sysctl(&middle, "net/ipv6/conf/default/disable_ipv6", "1");
        for (host, other) in [(a, b), (b, a)] {
            self.hosts.cable((host, other), (&middle, host));
            self.join_bridge(host, other);
        }
        let space = self.name(&middle);
        must(&format!("tc -n {space} qdisc add dev {b} root tbf {wire}"));
        let netns = format!("/run/netns/{space}");
        self.relays.push(Relay::start(&netns, [a, b], rtt_ms * 1_000_000 / 2, loss));
    }

    /// Gives an interface its addresses in network `n`, unless the host is a bridge.
    pub(crate) fn address(&self, host: &str, interface: &str, n: usize, number: usize) {
        if self.is_bridge(host) {
            return;
        }
        self.hosts.ip(host, &format!("addr add 10.77.{n}.{number}/24 dev {interface}"));
        self.hosts.ip(host, &format!("addr add fd77:{n}::{number}/64 dev {interface} nodad"));
    }

    pub(crate) fn route(&self, host: &str, by: &str, n: usize) {
        self.route_to(host, by, "default", &format!("10.77.{n}.2"), &format!("fd77:{n}::2"));
    }

    /// Adds a route. `to` is `default` or the number of a network.
    pub(crate) fn route_to(&self, host: &str, by: &str, to: &str, v4: &str, v6: &str) {
        if self.forwarding == Forwarding::Bridge {
            return;
        }
        let (to4, to6) = match to {
            "default" => (to.to_owned(), to.to_owned()),
            n => (format!("10.77.{n}.0/24"), format!("fd77:{n}::/64")),
        };
        self.hosts.ip(host, &format!("route add {to4} via {v4} dev {by}"));
        self.hosts.ip(host, &format!("-6 route add {to6} via {v6} dev {by}"));
    }

    pub(crate) fn name(&self, host: &str) -> String {
        self.hosts.name(host)
    }

    pub(crate) fn netns(&self, host: &str) -> Netns {
        Netns::named(&self.name(host))
    }

    pub(crate) fn inside<T: Send>(&self, host: &str, work: impl FnOnce() -> T + Send) -> T {
        self.hosts.inside(host, work)
    }

    pub(crate) fn command(&self, host: &str, program: &str) -> Command {
        self.hosts.command(host, program)
    }

    pub(crate) fn says(&self, host: &str, command: &str) -> String {
        self.hosts.says(host, command).unwrap_or_else(|trouble| panic!("{trouble}"))
    }

    /// Returns the names of the senders in a star. The switch's interfaces to the senders have the same names.
    pub(crate) fn senders(&self) -> Vec<String> {
        (1..10).map(|i| format!("s{i}")).take_while(|host| self.hosts.has(host)).collect()
    }
}

impl Relay {
    fn start(netns: &str, ends: [&str; 2], delay_ns: u64, loss: f64) -> Relay {
        let link = |from: u32, to: u32, loss: f64| {
            let mut link = json!({"name": format!("{from}to{to}"), "from": from, "to": to, "delay": [[0, delay_ns]],
                "rate": {"kind": "steps", "steps": [[0, 1_250_000_000_u64]]},
                "queue": {"kind": "fifo", "limit": {"packets": 1000}}});
            if loss > 0.0 {
                link["loss"] = json!([[0, {"kind": "bernoulli", "p": loss}]]);
            }
            link
        };
        let interface = |name: &str| json!({"netns": netns, "interface": name});
        let hour = 3_600_000_000_000_u64;
        let spec = json!({
            "plan": {"seed": 1, "duration": hour, "warmup": 0, "nodes": ["A", "B"],
                     "links": [link(0, 1, loss), link(1, 0, 0.0)], "flows": [],
                     "probes": {"interval": hour, "links": []}},
            "sample_interval": 50_000_000,
            "relays": [{"link": 0, "from": interface(ends[0]), "to": interface(ends[1])},
                       {"link": 1, "from": interface(ends[1]), "to": interface(ends[0])}],
        });
        let spec: narrows_emulator::Spec = serde_json::from_value(spec).expect("a spec");
        let stop = Arc::new(AtomicBool::new(false));
        let cancel = Arc::clone(&stop);
        let thread = thread::spawn(move || match narrows_emulator::emulate(&spec, &cancel) {
            Ok(_) | Err(narrows_emulator::Error::Cancelled) => {}
            Err(error) => panic!("the cable: {error}"),
        });
        Relay { stop, thread: Some(thread) }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
