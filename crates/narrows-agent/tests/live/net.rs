//! Networks of namespaces: senders, a switch (router or bridge), a cable with a delay, a receiver.

use std::fs;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use narrows_agent::netns::Netns;
use serde_json::json;

static NEXT: AtomicU32 = AtomicU32::new(0);
static ALONE: Mutex<()> = Mutex::new(());

/// RTT of the path between switch and receiver.
pub(crate) const RTT_MS: u64 = 20;

/// What the switch is to Linux.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Forwarding {
    Router,
    Bridge,
}

/// A network, and the right to be the only one.
pub(crate) struct Net {
    prefix: String,
    forwarding: Forwarding,
    hosts: Vec<String>,
    relays: Vec<Relay>,
    _alone: MutexGuard<'static, ()>,
}

/// A cable with a delay (and loss from its first end to its second), carried by the emulator.
struct Relay {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Net {
    /// An empty network, or why there is none.
    pub(crate) fn empty(forwarding: Forwarding) -> Option<Net> {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(missing) = missing() {
            assert!(std::env::var("NARROWS_REQUIRE_KERNEL").as_deref() != Ok("1"), "{missing}");
            // Not by eprintln, which a test that passes does not show.
            let _ = writeln!(std::io::stderr(), "SKIPPED, nothing was tested: {missing}");
            return None;
        }
        let prefix = format!("nwl{}x{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        Some(Net { prefix, forwarding, hosts: Vec::new(), relays: Vec::new(), _alone: alone })
    }

    /// `s1`.. - `r` - (20 ms) - `c`. The port to control is `c` of `r`; its other interfaces are `s1`..
    pub(crate) fn star(forwarding: Forwarding, senders: usize) -> Option<Net> {
        let mut net = Net::empty(forwarding)?;
        net.switch("r");
        net.host("c");
        net.cable("r", "c", RTT_MS, 0.0);
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

    /// Addresses and routes of sender `i` at switch `r`.
    pub(crate) fn attach_sender(&mut self, name: &str, switch: &str, i: usize) {
        self.address(switch, name, i, 2);
        match self.forwarding {
            Forwarding::Router => {
                self.address(name, switch, i, 1);
                self.route(name, switch, i);
            }
            Forwarding::Bridge => self.address(name, switch, 9, 10 + i),
        }
    }

    /// Address of sender `i` (from 1) or, for 0, of the receiver.
    pub(crate) fn of(&self, i: usize, v6: bool) -> IpAddr {
        let (network, host) = match (i, self.forwarding) {
            (0, _) => (9, 1),
            (i, Forwarding::Router) => (i, 1),
            (i, Forwarding::Bridge) => (9, 10 + i),
        };
        let text = if v6 { format!("fd77:{network}::{host}") } else { format!("10.77.{network}.{host}") };
        text.parse().expect("an address")
    }

    /// A server's address at the receiver.
    pub(crate) fn server(&self, port: u16, v6: bool) -> SocketAddr {
        SocketAddr::new(self.of(0, v6), port)
    }

    /// Makes a host.
    pub(crate) fn host(&mut self, name: &str) {
        let space = self.name(name);
        must(&format!("ip netns add {space}"));
        self.hosts.push(space.clone());
        must(&format!("ip -n {space} link set lo up"));
        self.inside(name, || {
            for (key, value) in [
                // Neither the first window nor the largest is to limit a flow.
                ("net/ipv4/tcp_rmem", "4096 4000000 8000000"),
                ("net/ipv4/tcp_wmem", "4096 1000000 8000000"),
                ("net/ipv6/conf/default/accept_dad", "0"),
            ] {
                sysctl(key, value);
            }
        });
    }

    /// Makes a switch.
    pub(crate) fn switch(&mut self, name: &str) {
        self.host(name);
        let space = self.name(name);
        match self.forwarding {
            Forwarding::Router => self.inside(name, || {
                sysctl("net/ipv4/ip_forward", "1");
                sysctl("net/ipv6/conf/all/forwarding", "1");
            }),
            Forwarding::Bridge => {
                must(&format!("ip -n {space} link add br0 type bridge forward_delay 0"));
                must(&format!("ip -n {space} link set br0 up"));
            }
        }
    }

    /// A cable between two hosts; each end has the other's name.
    pub(crate) fn link(&self, a: &str, b: &str) {
        let (here, there) = (self.name(a), self.name(b));
        must(&format!("ip -n {here} link add {b} type veth peer name {a} netns {there}"));
        for (space, end) in [(&here, b), (&there, a)] {
            must(&format!("ip -n {space} link set {end} up"));
            if self.forwarding == Forwarding::Bridge && says(&format!("ip -n {space} link show br0")).is_ok()
            {
                must(&format!("ip -n {space} link set {end} master br0"));
            }
        }
    }

    /// A cable with a delay in the round trip, and loss of what `a` sends.
    pub(crate) fn cable(&mut self, a: &str, b: &str, rtt_ms: u64, loss: f64) {
        let middle = format!("{a}{b}");
        self.host(&middle);
        // No packet of its own.
        self.inside(&middle, || sysctl("net/ipv6/conf/default/disable_ipv6", "1"));
        let (here, there, space) = (self.name(a), self.name(b), self.name(&middle));
        must(&format!("ip -n {here} link add {b} type veth peer name {a} netns {space}"));
        must(&format!("ip -n {there} link add {a} type veth peer name {b} netns {space}"));
        for (space, end) in [(&here, b), (&there, a), (&space, a), (&space, b)] {
            must(&format!("ip -n {space} link set {end} up"));
            if self.forwarding == Forwarding::Bridge && says(&format!("ip -n {space} link show br0")).is_ok()
            {
                must(&format!("ip -n {space} link set {end} master br0"));
            }
        }
        // The wire's own rate, a little above what the switch is told: without HTB it is still a wire of its kind, and not as
        // fast as the machine.
        must(&format!("tc -n {space} qdisc add dev {b} root tbf rate 110mbit burst 32kb limit 1500000"));
        let netns = format!("/run/netns/{space}");
        self.relays.push(Relay::start(&netns, [a, b], rtt_ms * 1_000_000 / 2, loss));
    }

    /// Gives an interface its addresses in network `n`; on a bridge, nothing.
    pub(crate) fn address(&self, host: &str, interface: &str, n: usize, number: usize) {
        let space = self.name(host);
        if says(&format!("ip -n {space} link show br0")).is_ok() {
            return;
        }
        must(&format!("ip -n {space} addr add 10.77.{n}.{number}/24 dev {interface}"));
        must(&format!("ip -n {space} addr add fd77:{n}::{number}/64 dev {interface} nodad"));
    }

    /// The default route of a host by its router in network `n`.
    pub(crate) fn route(&self, host: &str, by: &str, n: usize) {
        self.route_to(host, by, "default", &format!("10.77.{n}.2"), &format!("fd77:{n}::2"));
    }

    /// A route; `to` is `default` or, for both families, a network's number.
    pub(crate) fn route_to(&self, host: &str, by: &str, to: &str, v4: &str, v6: &str) {
        if self.forwarding == Forwarding::Bridge {
            return;
        }
        let space = self.name(host);
        let (to4, to6) = match to {
            "default" => (to.to_owned(), to.to_owned()),
            n => (format!("10.77.{n}.0/24"), format!("fd77:{n}::/64")),
        };
        must(&format!("ip -n {space} route add {to4} via {v4} dev {by}"));
        must(&format!("ip -n {space} -6 route add {to6} via {v6} dev {by}"));
    }

    /// The namespace's name.
    pub(crate) fn name(&self, host: &str) -> String {
        format!("{}{host}", self.prefix)
    }

    /// The namespace.
    pub(crate) fn netns(&self, host: &str) -> Netns {
        Netns::named(&self.name(host))
    }

    /// Does something there.
    pub(crate) fn inside<T: Send>(&self, host: &str, work: impl FnOnce() -> T + Send) -> T {
        self.netns(host).run(work).expect("the namespace is there")
    }

    /// A program there. `ip netns exec` would hide the file systems of cgroup2 and bpf.
    pub(crate) fn command(&self, host: &str, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.name(host))).arg(program);
        command
    }

    /// What a command says there.
    pub(crate) fn says(&self, host: &str, command: &str) -> String {
        says(&format!("nsenter --net=/run/netns/{} {command}", self.name(host)))
            .unwrap_or_else(|trouble| panic!("{trouble}"))
    }

    /// `[[ports]]` and `interfaces` of the switch of a star.
    pub(crate) fn senders(&self) -> Vec<String> {
        let number = |i: usize| self.hosts.contains(&self.name(&format!("s{i}"))).then(|| format!("s{i}"));
        (1..10).map_while(number).collect()
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        self.relays.clear();
        for host in &self.hosts {
            let _ = says(&format!("ip netns delete {host}"));
        }
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

/// What is needed and not there. Anything else that goes wrong is a failure.
fn missing() -> Option<&'static str> {
    if !nix::unistd::geteuid().is_root() {
        return Some("root is needed");
    }
    if !fs::exists("/sys/kernel/btf/vmlinux").unwrap_or(false) {
        return Some("the kernel has no BTF");
    }
    let tools = ["ip -V", "tc -V", "nsenter -V", "ethtool --version", "iperf3 --version"];
    tools.iter().any(|tool| says(tool).is_err()).then_some("iproute2, nsenter, ethtool and iperf3 are needed")
}

fn sysctl(key: &str, value: &str) {
    let path = PathBuf::from("/proc/sys").join(key);
    // /proc/sys/net shows the namespace of the thread that looks.
    fs::write(&path, value).unwrap_or_else(|error| panic!("{key}: {error}"));
}

fn must(command: &str) {
    if let Err(trouble) = says(command) {
        panic!("{trouble}");
    }
}

/// What a command says, if it succeeds.
pub(crate) fn says(command: &str) -> Result<String, String> {
    let mut words = command.split(' ');
    let output = Command::new(words.next().unwrap_or_default())
        .args(words)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("{command}: {e}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("{command}: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }
}
