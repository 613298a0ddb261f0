//! Two hosts and the place of a switch between them, in network namespaces, and programs that talk over them.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use narrows_agent::host::{Namespace, Scope};
use nix::sched::{CloneFlags, setns};

use super::switch::{Behaviour, Switch};

static NETS: AtomicU32 = AtomicU32::new(0);

/// Says why the test cannot run, or fails where it must (CI).
pub(super) fn can_run() -> bool {
    let missing = if !nix::unistd::geteuid().is_root() {
        "root is needed"
    } else if !fs::exists("/sys/kernel/btf/vmlinux").unwrap_or(false) {
        "the kernel has no BTF"
    } else if Command::new("ip").arg("-V").output().is_err()
        || Command::new("ethtool").arg("--version").output().is_err()
    {
        "ip and ethtool are needed"
    } else {
        return true;
    };
    assert!(std::env::var_os("NARROWS_REQUIRE_KERNEL").is_none(), "cannot run: {missing}");
    eprintln!("SKIPPED: {missing}");
    false
}

fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split_whitespace()).output().expect("ip runs");
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The test process in a cgroup of its own, so that other sockets of the machine see nothing of the tests' programs.
fn cgroup() -> &'static PathBuf {
    static CGROUP: OnceLock<PathBuf> = OnceLock::new();
    CGROUP.get_or_init(|| {
        let mounts = fs::read_to_string("/proc/self/mounts").expect("proc is mounted");
        let root = mounts
            .lines()
            .filter_map(|line| line.split(' ').nth(1).filter(|_| line.split(' ').nth(2) == Some("cgroup2")))
            .next()
            .expect("cgroup2 is mounted");
        // Those of earlier runs, which their processes could not take away while they lived in them.
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

/// A (10.7.0.1) and B (10.7.0.2), with the test's switch between.
pub(super) struct Net {
    name: String,
    pub(super) switch: Switch,
}

/// Delay of the test's switch in each direction.
pub(super) const DELAY_NS: u64 = 5_000_000;
const A: &str = "10.7.0.1";
const B: &str = "10.7.0.2";

impl Net {
    pub(super) fn new(behaviour: Behaviour) -> Self {
        cgroup();
        let name = format!("nrwh{}-{}", std::process::id(), NETS.fetch_add(1, Ordering::Relaxed));
        for side in ["a", "b", "s"] {
            ip(&format!("netns add {name}{side}"));
        }
        for (side, address) in [("a", A), ("b", B)] {
            ip(&format!("link add eth0 netns {name}{side} type veth peer name to{side} netns {name}s"));
            ip(&format!("-n {name}{side} addr add {address}/24 dev eth0"));
            ip(&format!("-n {name}{side} link set lo up"));
            ip(&format!("-n {name}{side} link set eth0 up"));
            ip(&format!("-n {name}s link set to{side} up"));
            // The test's switch takes frames as they are on a wire.
            let off = ["-K", "eth0", "tx", "off", "tso", "off", "gso", "off"];
            let ran = command_in(&format!("{name}{side}"), "ethtool", &off).output().expect("ethtool runs");
            assert!(ran.status.success(), "ethtool: {}", String::from_utf8_lossy(&ran.stderr));
        }
        let middle = namespace_path(&format!("{name}s"));
        let enter = move || enter(&middle);
        let switch = Switch::start(["toa".into(), "tob".into()], DELAY_NS, behaviour, enter);
        Net { name, switch }
    }

    /// Host A or B of this network and nothing else.
    pub(super) fn scope(&self, side: &str) -> Scope {
        let namespace =
            Namespace { path: Some(namespace_path(&self.host(side))), interfaces: vec!["eth0".to_owned()] };
        Scope { cgroup: Some(cgroup().clone()), namespaces: vec![namespace], pin: None }
    }

    pub(super) fn host(&self, side: &str) -> String {
        format!("{}{side}", self.name)
    }

    pub(super) fn command(&self, side: &str, program: &str, arguments: &[&str]) -> Command {
        command_in(&self.host(side), program, arguments)
    }

    /// A plain program on `from` sends to a plain server on the other host for so long, writing by `write`.
    /// The server is the one that sends if `server_sends`.
    pub(super) fn transfer(
        &self,
        time: Duration,
        server_sends: bool,
        write: impl Fn(&mut TcpStream) + Send + Sync,
    ) {
        self.transfer_at(self.listen(), time, server_sends, write);
    }

    /// A server on B.
    pub(super) fn listen(&self) -> TcpListener {
        let address: SocketAddr = format!("{B}:5001").parse().expect("an address");
        let bind = || {
            enter(&namespace_path(&self.host("b")));
            TcpListener::bind(address).expect("a server can listen")
        };
        thread::scope(|scope| scope.spawn(bind).join().expect("a server can listen"))
    }

    /// As [`Net::transfer`], to a server that listens already.
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
                enter(&namespace_path(&self.host("a")));
                let stream = TcpStream::connect(address).expect("the server answers");
                if server_sends { receive(stream) } else { send(stream) }
            });
            thread::sleep(time);
            stop.store(true, Ordering::Relaxed);
        });
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for side in ["a", "b", "s"] {
            let _ = Command::new("ip").args(["netns", "del", &self.host(side)]).output();
        }
    }
}

/// As much as the socket takes.
pub(super) fn greedy(stream: &mut TcpStream) {
    let _ = stream.write(&[0; 1 << 14]);
}

fn namespace_path(name: &str) -> PathBuf {
    PathBuf::from("/run/netns").join(name)
}

/// `ip netns exec` would hide the cgroup's and bpf's file systems.
fn command_in(namespace: &str, program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/run/netns/{namespace}")).arg(program).args(arguments);
    command
}

fn enter(path: &PathBuf) {
    let file = fs::File::open(path).expect("the namespace is there");
    setns(file, CloneFlags::CLONE_NEWNET).expect("the thread can enter it");
}
