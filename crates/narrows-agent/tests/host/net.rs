//! Two hosts with a switch between them, in network namespaces, and connections between the hosts.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use narrows_agent::host::{Namespace, Scope};
use narrows_agent::netns::Netns;
use narrows_lab::{Hosts, Need, Room, run_before_others};

use super::switch::{Behaviour, Switch};

/// Returns whether the tests can run on this machine.
pub(super) fn can_run() -> bool {
    narrows_lab::can_run(&[
        Need::Root,
        Need::Btf,
        Need::Tool("ip -V"),
        Need::Tool("nsenter -V"),
        Need::Tool("ethtool --version"),
    ])
}

/// Puts the test process into its own cgroup, so that the programs do not affect other sockets of the machine.
fn cgroup() -> &'static PathBuf {
    static CGROUP: OnceLock<PathBuf> = OnceLock::new();
    CGROUP.get_or_init(|| {
        let mounts = fs::read_to_string("/proc/self/mounts").expect("proc is mounted");
        let root = mounts
            .lines()
            .filter_map(|line| line.split(' ').nth(1).filter(|_| line.split(' ').nth(2) == Some("cgroup2")))
            .next()
            .expect("cgroup2 is mounted");
        // Remove the cgroups of earlier runs, which could not be removed while their processes were in them.
        for entry in fs::read_dir(root).expect("cgroup2 can be read").flatten() {
            if entry.file_name().to_string_lossy().starts_with("narrows-host-test-") {
                let _ = fs::remove_dir(entry.path());
            }
        }
        let folder = PathBuf::from(root).join(format!("narrows-host-test-{}", std::process::id()));
        fs::create_dir(&folder).expect("a cgroup can be made");
        fs::write(folder.join("cgroup.procs"), std::process::id().to_string()).expect("the process can move");
        folder
    })
}

/// The hosts A (10.7.0.1) and B (10.7.0.2), with the test's switch between them.
pub(super) struct Net {
    // The switch is dropped before the namespaces in which it works.
    pub(super) switch: Switch,
    hosts: Hosts,
}

/// Delay of the switch in each direction, in ns.
pub(super) const DELAY_NS: u64 = 5_000_000;
const A: &str = "10.7.0.1";
const B: &str = "10.7.0.2";

impl Net {
    pub(super) fn new(behaviour: Behaviour) -> Self {
        Net::with_delay(DELAY_NS, behaviour)
    }

    pub(super) fn with_delay(delay_ns: u64, behaviour: Behaviour) -> Self {
        cgroup();
        // The threads of switch and connections inherit this thread's priority.
        run_before_others();
        let mut hosts = Hosts::new("nrwh", Room::Whole);
        hosts.add("s");
        for (side, address) in [("a", A), ("b", B)] {
            hosts.add(side);
            let there = format!("to{side}");
            hosts.cable((side, "eth0"), ("s", &there));
            hosts.ip(side, &format!("addr add {address}/24 dev eth0"));
            // The switch expects frames that are no larger than on the wire.
            hosts.no_offloads(side, "eth0");
        }
        let middle = Netns::named(&hosts.name("s"));
        let enter = move || middle.enter().expect("the namespace is there");
        let switch = Switch::start(["toa".into(), "tob".into()], delay_ns, behaviour, enter);
        Net { switch, hosts }
    }

    /// Returns a scope with only host A or only host B.
    pub(super) fn scope(&self, side: &str) -> Scope {
        let namespace = Namespace { path: Some(self.hosts.path(side)), interfaces: vec!["eth0".to_owned()] };
        Scope { cgroup: Some(cgroup().clone()), namespaces: vec![namespace] }
    }

    pub(super) fn command(&self, side: &str, program: &str, arguments: &[&str]) -> Command {
        let mut command = self.hosts.command(side, program);
        command.args(arguments);
        command
    }

    /// Opens a connection from a client on A to a server on B. One end calls `write` again and again until `time` has
    /// passed: the server if `server_sends` is true, otherwise the client.
    pub(super) fn transfer(
        &self,
        time: Duration,
        server_sends: bool,
        write: impl Fn(&mut TcpStream) + Send + Sync,
    ) {
        self.transfer_at(self.listen(), time, server_sends, write);
    }

    /// Opens the listener of a server on B.
    pub(super) fn listen(&self) -> TcpListener {
        let address: SocketAddr = format!("{B}:5001").parse().expect("an address");
        self.hosts.inside("b", || TcpListener::bind(address).expect("a server can listen"))
    }

    /// Like [`Net::transfer`], with a server that already listens.
    pub(super) fn transfer_at(
        &self,
        listener: TcpListener,
        time: Duration,
        server_sends: bool,
        write: impl Fn(&mut TcpStream) + Send + Sync,
    ) {
        let address = listener.local_addr().expect("it listens");
        let stop = AtomicBool::new(false);
        let send = |mut stream: TcpStream| {
            while !stop.load(Ordering::Relaxed) {
                write(&mut stream);
            }
        };
        let receive = |mut stream: TcpStream| {
            let mut sink = vec![0; 1 << 16];
            while stream.read(&mut sink).is_ok_and(|n| n > 0) {}
        };
        thread::scope(|scope| {
            let (send, receive) = (&send, &receive);
            scope.spawn(move || {
                let (stream, _) = listener.accept().expect("a client comes");
                if server_sends { send(stream) } else { receive(stream) }
            });
            scope.spawn(move || {
                let stream =
                    self.hosts.inside("a", || TcpStream::connect(address).expect("the server answers"));
                if server_sends { receive(stream) } else { send(stream) }
            });
            thread::sleep(time);
            stop.store(true, Ordering::Relaxed);
        });
    }
}

/// Writes as much as the socket accepts.
pub(super) fn greedy(stream: &mut TcpStream) {
    let _ = stream.write(&[0; 1 << 14]);
}
