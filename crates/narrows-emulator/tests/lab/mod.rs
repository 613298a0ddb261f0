//! A network for tests, with host a, a relay and host b, each in its own namespace. Dropping the `Lab` removes the
//! namespaces.

#![allow(unreachable_pub, reason = "a module of tests")]

use std::path::PathBuf;
use std::process::Command;

use narrows_lab::{Hosts, Need, Room, can_run};
use serde_json::{Value, json};

/// The network `a` - `r` - `b`. Hosts a and b have the interface `x`, and the relay has the interfaces `ra` and `rb`.
pub struct Lab(Hosts);

impl Lab {
    /// If the test does not run as root or a tool is missing, prints a message and returns `None`. With
    /// NARROWS_REQUIRE_KERNEL=1, the test fails instead.
    pub fn new() -> Option<Self> {
        let tools = ["ip -V", "tc -V", "nsenter -V", "ethtool --version", "iperf3 --version", "ping -V"];
        if !can_run(&[Need::Root].into_iter().chain(tools.map(Need::Tool)).collect::<Vec<_>>()) {
            return None;
        }
        let mut hosts = Hosts::new("nwe", Room::Whole);
        hosts.add("r");
        for (host, address) in [("a", "10.77.0.1"), ("b", "10.77.0.2")] {
            hosts.add(host);
            let there = format!("r{host}");
            hosts.cable((host, "x"), ("r", &there));
            hosts.sysctl("r", &format!("net/ipv6/conf/{there}/disable_ipv6"), "1");
            hosts.ip(host, &format!("addr add {address}/24 dev x"));
            for memory in ["rmem", "wmem"] {
                hosts.sysctl(host, &format!("net/ipv4/tcp_{memory}"), "4096 4000000 67108864");
            }
        }
        Some(Lab(hosts))
    }

    /// Runs tc(8) at host `host`.
    pub fn tc(&self, host: &str, arguments: &str) {
        self.0.says(host, &format!("tc {arguments}")).unwrap_or_else(|trouble| panic!("{trouble}"));
    }

    /// Disables the offloads of a host's interface.
    pub fn no_offloads(&self, host: &str) {
        self.0.no_offloads(host, "x");
    }

    /// Returns a command that runs a program on a host.
    pub fn program(&self, host: &str, command: &str) -> Command {
        let mut words = command.split(' ');
        let mut program = self.0.command(host, words.next().unwrap_or_default());
        program.args(words);
        program
    }

    pub fn netns(&self, host: &str) -> PathBuf {
        self.0.path(host)
    }

    /// Returns a spec with link 0 from A to B and link 1 from B to A. The relay implements both links. `edit` changes
    /// the spec.
    pub fn spec(&self, seconds: f64, edit: impl FnOnce(&mut Value)) -> narrows_emulator::Spec {
        let ns = (seconds * 1e9) as u64;
        let link = |name: &str, from: u32, to: u32| {
            json!({"name": name, "from": from, "to": to, "delay": [[0, 10_000_000]],
                   "rate": {"kind": "steps", "steps": [[0, 12_500_000]]},
                   "queue": {"kind": "fifo", "limit": {"packets": 1000}}})
        };
        let interface = |i: &str| json!({"netns": self.netns("r"), "interface": i});
        let mut spec = json!({
            "plan": {"seed": 1, "duration": ns, "warmup": ns / 5, "nodes": ["A", "B"],
                     "links": [link("A->B", 0, 1), link("B->A", 1, 0)], "flows": [],
                     "probes": {"interval": 100_000_000, "links": [0, 1]}},
            "namespaces": {"A": self.netns("a"), "B": self.netns("b")},
            "relays": [{"link": 0, "from": interface("ra"), "to": interface("rb")},
                       {"link": 1, "from": interface("rb"), "to": interface("ra")}],
            "flows": [], "queues": [],
        });
        edit(&mut spec);
        serde_json::from_value(spec).expect("a spec")
    }
}

/// Returns a TCP flow from A to B.
pub fn flow(name: &str, app: Value) -> Value {
    json!({"name": name, "from": 0, "to": 1, "start": 100_000_000, "app": app,
           "transport": {"kind": "tcp", "cc": "cubic"}})
}

/// Returns the addresses of a flow.
pub fn place(flow: u32, port: u16) -> Value {
    json!({"flow": flow, "source": "10.77.0.1", "destination": "10.77.0.2", "port": port})
}
