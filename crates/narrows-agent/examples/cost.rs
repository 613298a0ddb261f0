//! Measures the cost of the eBPF programs. For each program, the results are the time per run in ns under live traffic
//! (by the kernel's statistics), and the number of instructions that the verifier checked. A further result is the
//! throughput of a Linux bridge with and without the switch's program. The example needs root.
//!
//! `cargo run --release -p narrows-agent --example cost [-- SECONDS REPETITIONS]` prints one line of JSON. Two hosts
//! and a bridge between them are in network namespaces, with offloads enabled. One iperf3 connection runs at a time.

use std::error::Error;
use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use narrows_agent::dataplane::cost::{self, Statistics};
use narrows_agent::dataplane::layout::{GRANTS, MODE_CONTROLLED};
use narrows_agent::dataplane::program::{Attachment, Sizes, Switch, Tunables};
use narrows_agent::host::{Namespace, Receiver, ReceiverOptions, Scope, Sender, SenderOptions};
use narrows_control::feedback::code::RateCode;
use narrows_control::units::{Rate, Time};
use nix::sched::{CloneFlags, setns};
use serde_json::{Value, json};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// This rate is higher than the bridge's throughput, so feedback costs CPU time but limits no flow.
const ALLOCATED: Rate = Rate::from_bits_per_sec(100_000_000_000);
/// The congestion control algorithm of a connection without rate feedback.
const PLAIN: Option<&str> = Some("cubic");
const RECEIVER: &str = "10.77.0.2";

fn ip(arguments: &str) -> Outcome<()> {
    let output = Command::new("ip").args(arguments.split_whitespace()).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("ip {arguments}: {}", String::from_utf8_lossy(&output.stderr).trim()).into())
}

/// The network namespaces: `a` and `b` are hosts, and `s` has the bridge.
struct Net(String);

impl Net {
    fn new() -> Outcome<Net> {
        let net = Net(format!("nrwc{}", std::process::id()));
        for side in ["a", "b", "s"] {
            ip(&format!("netns add {}", net.name(side)))?;
        }
        let bridge = net.name("s");
        ip(&format!("-n {bridge} link add br0 type bridge"))?;
        ip(&format!("-n {bridge} link set br0 up"))?;
        for (side, address) in [("a", "10.77.0.1"), ("b", RECEIVER)] {
            let host = net.name(side);
            ip(&format!("link add eth0 netns {host} type veth peer name to{side} netns {bridge}"))?;
            ip(&format!("-n {host} addr add {address}/24 dev eth0"))?;
            ip(&format!("-n {host} link set eth0 up"))?;
            ip(&format!("-n {bridge} link set to{side} master br0"))?;
            ip(&format!("-n {bridge} link set to{side} up"))?;
        }
        Ok(net)
    }

    fn name(&self, side: &str) -> String {
        format!("{}{side}", self.0)
    }

    fn path(&self, side: &str) -> String {
        format!("/run/netns/{}", self.name(side))
    }

    fn scope(&self, side: &str) -> Scope {
        let namespace = Namespace { path: Some(self.path(side).into()), interfaces: vec!["eth0".to_owned()] };
        Scope { namespaces: vec![namespace], ..Scope::default() }
    }

    fn command(&self, side: &str, line: &str) -> Command {
        let mut words = line.split_whitespace();
        // `ip netns exec` would hide the cgroup file system.
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.path(side))).args(words.by_ref());
        command
    }

    /// Goodput of one connection, in bit/s. `algorithm` replaces the host's default. A default of BBR would be
    /// unsuitable: its pacing limits the goodput, so the goodput does not show the cost of a packet.
    fn throughput(&self, seconds: u32, algorithm: Option<&str>) -> Outcome<f64> {
        let server: Child =
            self.command("b", "iperf3 -s -1").stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let mut server = Ended(server);
        let mut last = String::new();
        for _ in 0..20 {
            thread::sleep(Duration::from_millis(200));
            let algorithm = algorithm.map(|name| format!("-C {name}")).unwrap_or_default();
            let line = format!("iperf3 -J -t {seconds} -O 1 -c {RECEIVER} {algorithm}");
            let client = self.command("a", &line).output()?;
            let report: Value = serde_json::from_slice(&client.stdout)?;
            if let Some(rate) = report["end"]["sum_received"]["bits_per_second"].as_f64() {
                server.0.wait()?;
                return Ok(rate);
            }
            last = report["error"].as_str().unwrap_or("no result").to_owned();
        }
        Err(format!("iperf3: {last}").into())
    }

    /// Attaches the program to both ports. The heartbeat never expires, and grants limit no flow.
    fn attach(&self, switch: &Switch) -> Outcome<Vec<Attachment>> {
        // Interfaces are looked up in the thread's namespace, so enter the bridge's namespace.
        let home = File::open("/proc/thread-self/ns/net")?;
        setns(File::open(self.path("s"))?, CloneFlags::CLONE_NEWNET)?;
        let mut attached = Vec::new();
        for (number, interface) in (0u8..).zip(["toa", "tob"]) {
            let index = nix::net::if_::if_nametoindex(interface)?;
            switch.set_interface(index, number)?;
            let port = switch.ports.get(number).ok_or("no such port")?;
            port.beat(Time::from_nanos(u64::MAX));
            port.set_mode(MODE_CONTROLLED);
            port.set_unconfirmed_max(1024);
            port.set_grants([RateCode::encode(ALLOCATED); GRANTS]);
            attached.push(switch.attach(index)?);
        }
        setns(home, CloneFlags::CLONE_NEWNET)?;
        Ok(attached)
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for side in ["a", "b", "s"] {
            let _ = Command::new("ip").args(["netns", "del", &self.name(side)]).output();
        }
    }
}

/// A child process, which is killed when this value is dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs `work`. Returns its result, and the ids of the programs that it loaded.
fn loaded_by<T>(work: impl FnOnce() -> Outcome<T>) -> Outcome<(T, Vec<u32>)> {
    let before = cost::loaded();
    let made = work()?;
    let mut new = cost::loaded();
    new.retain(|id| !before.contains(id));
    Ok((made, new))
}

/// Measures the programs while hosts send traffic and apply rates.
fn programs(net: &Net, seconds: u32) -> Outcome<Vec<Value>> {
    let name = format!("nrwc{}", std::process::id() % 1_000_000);
    let options = SenderOptions { scope: net.scope("a"), name, ..SenderOptions::default() };
    let (sender, sending) = loaded_by(|| Ok(Sender::load(&options)?))?;
    let options = ReceiverOptions { scope: net.scope("b"), ..ReceiverOptions::default() };
    let (receiver, receiving) = loaded_by(|| Ok(Receiver::load(&options)?))?;
    let (switch, switching) = loaded_by(|| Ok(Switch::load(Sizes::default(), Tunables::default())?))?;
    let attached = net.attach(&switch)?;
    let counting = Statistics::enable()?;
    net.throughput(seconds, None)?;
    let mut rows = Vec::new();
    for (part, ids) in [("switch", switching), ("sender", sending), ("receiver", receiving)] {
        for id in ids {
            let (name, cost) = cost::by_id(id)?;
            if let Some(ns) = cost.ns_per_run() {
                rows.push(json!({
                    "part": part, "program": name, "runs": cost.runs, "ns": ns,
                    "verified": cost.verified_instructions, "translated_bytes": cost.translated_bytes,
                    "machine_bytes": cost.machine_bytes,
                }));
            }
        }
    }
    drop((counting, attached, receiver, sender));
    Ok(rows)
}

fn run() -> Outcome<Value> {
    let mut words = std::env::args().skip(1).filter_map(|word| word.parse::<u32>().ok());
    let (seconds, repetitions) = (words.next().unwrap_or(3), words.next().unwrap_or(5));
    let net = Net::new()?;
    net.throughput(1, PLAIN)?;
    let (mut without, mut with) = (Vec::new(), Vec::new());
    let switch = Switch::load(Sizes::default(), Tunables::default())?;
    for _ in 0..repetitions {
        without.push(net.throughput(seconds, PLAIN)?);
        let attached = net.attach(&switch)?;
        with.push(net.throughput(seconds, PLAIN)?);
        drop(attached);
    }
    Ok(json!({ "programs": programs(&net, seconds)?, "without": without, "with": with }))
}

fn main() {
    match run() {
        Ok(report) => println!("{report}"),
        Err(error) => {
            eprintln!("cost: {error}");
            std::process::exit(1);
        }
    }
}
