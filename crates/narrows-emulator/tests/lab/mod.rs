//! A network for tests: host a, a relay, host b, each in a namespace of its own, gone when dropped.

#![allow(unreachable_pub, reason = "a module of tests")]

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// `a` - `r` - `b`, with the interfaces `x` (of a and b), `ra` and `rb` (of the relay).
pub struct Lab {
    prefix: String,
}

pub fn run(command: &str) -> Output {
    Command::new("sh").args(["-c", command]).output().expect("sh starts")
}

fn must(command: &str) {
    let out = run(command);
    assert!(out.status.success(), "{command}: {}", String::from_utf8_lossy(&out.stderr));
}

impl Lab {
    /// `None`, said loudly, where namespaces cannot be made; with NARROWS_REQUIRE_KERNEL=1 that is a failure.
    pub fn new(test: &str) -> Option<Self> {
        let prefix = format!("nwe{}x{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let probe = run(&format!("ip netns add {prefix}a"));
        if !probe.status.success() {
            let why = String::from_utf8_lossy(&probe.stderr).trim().to_owned();
            assert!(std::env::var("NARROWS_REQUIRE_KERNEL").as_deref() != Ok("1"), "{test}: {why}");
            eprintln!("SKIPPED {test}: needs root and ip(8): {why}");
            return None;
        }
        let lab = Lab { prefix };
        let p = &lab.prefix;
        must(&format!("ip netns add {p}r && ip netns add {p}b"));
        for (host, address) in [("a", "10.77.0.1"), ("b", "10.77.0.2")] {
            must(&format!(
                "ip -n {p}{host} link add x type veth peer name r{host} netns {p}r && \
                 ip netns exec {p}r sysctl -qw net.ipv6.conf.r{host}.disable_ipv6=1 && \
                 ip -n {p}{host} addr add {address}/24 dev x && ip -n {p}{host} link set lo up && \
                 ip -n {p}{host} link set x up && ip -n {p}r link set r{host} up && \
                 ip netns exec {p}{host} sysctl -qw net.ipv4.tcp_rmem='4096 4000000 67108864' \
                 net.ipv4.tcp_wmem='4096 4000000 67108864'"
            ));
        }
        Some(lab)
    }

    /// Runs tc(8) at host `host`.
    pub fn tc(&self, host: &str, arguments: &str) {
        must(&format!("tc -n {}{host} {arguments}", self.prefix));
    }

    /// Turns the offloads of a host off.
    pub fn no_offloads(&self, host: &str) {
        must(&format!("ip netns exec {}{host} ethtool -K x tso off gso off gro off", self.prefix));
    }

    /// A program at a host.
    pub fn program(&self, host: &str, command: &str) -> Command {
        let mut c = Command::new("ip");
        c.args(["netns", "exec", &format!("{}{host}", self.prefix), "sh", "-c", command]);
        c
    }

    pub fn netns(&self, host: &str) -> PathBuf {
        PathBuf::from(format!("/run/netns/{}{host}", self.prefix))
    }

    /// A spec: link 0 from A to B, link 1 back, both relayed; `edit` changes it.
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

/// A TCP flow from A to B, and where it runs.
pub fn flow(name: &str, app: Value) -> Value {
    json!({"name": name, "from": 0, "to": 1, "start": 100_000_000, "app": app,
           "transport": {"kind": "tcp", "cc": "cubic"}})
}

pub fn place(flow: u32, port: u16) -> Value {
    json!({"flow": flow, "source": "10.77.0.1", "destination": "10.77.0.2", "port": port})
}

impl Drop for Lab {
    fn drop(&mut self) {
        for host in ["a", "r", "b"] {
            run(&format!("ip netns del {}{host}", self.prefix));
        }
    }
}
