//! Hosts of a test, each in a network namespace.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

use nix::sched::{CloneFlags, setns};

static NEXT: AtomicU32 = AtomicU32::new(0);
static FREE: Mutex<u8> = Mutex::new(Room::Whole as u8);
static FREED: Condvar = Condvar::new();

/// The part of the machine that a test needs for its measurements.
#[derive(Clone, Copy, Debug)]
pub enum Room {
    /// Half of the machine. Two such tests may run at the same time.
    Half = 1,
    /// The whole machine, so that the test runs alone.
    Whole = 2,
}

/// A reserved part of the machine. Dropping this value frees the part.
#[derive(Debug)]
struct Held(Room);

impl Held {
    fn wait_for(room: Room) -> Held {
        let free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = FREED.wait_while(free, |free| *free < room as u8);
        *waited.unwrap_or_else(PoisonError::into_inner) -= room as u8;
        Held(room)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        *FREE.lock().unwrap_or_else(PoisonError::into_inner) += self.0 as u8;
        FREED.notify_all();
    }
}

/// The namespaces of a test, which are deleted when this value is dropped. While they exist, a part of the machine is
/// reserved for the test. Otherwise, tests that send at full rate would disturb each other's measurements.
#[derive(Debug)]
pub struct Hosts {
    prefix: String,
    spaces: Vec<String>,
    _held: Held,
}

impl Hosts {
    /// Waits until the part `room` of the machine is free, reserves it, and returns a set without hosts. The names of
    /// all namespaces will begin with `tag`.
    pub fn new(tag: &str, room: Room) -> Self {
        let held = Held::wait_for(room);
        let prefix = format!("{tag}{}x{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        Hosts { prefix, spaces: Vec::new(), _held: held }
    }

    /// Creates a host with its loopback interface up.
    ///
    /// # Panics
    /// If a command fails. The methods below that run a command also panic if it fails, unless they return a `Result`.
    pub fn add(&mut self, host: &str) {
        let space = self.name(host);
        must(&format!("ip netns add {space}"));
        must(&format!("ip -n {space} link set lo up"));
        self.spaces.push(space);
    }

    /// Returns whether the host exists.
    pub fn has(&self, host: &str) -> bool {
        self.spaces.contains(&self.name(host))
    }

    /// Returns the name of the host's namespace.
    pub fn name(&self, host: &str) -> String {
        format!("{}{host}", self.prefix)
    }

    /// Returns the path of the host's namespace.
    pub fn path(&self, host: &str) -> PathBuf {
        PathBuf::from("/run/netns").join(self.name(host))
    }

    /// Connects two hosts by a veth pair, and sets both interfaces up. Each argument is the name of a host and the name
    /// of its interface.
    pub fn cable(&self, a: (&str, &str), b: (&str, &str)) {
        let (here, there) = (self.name(a.0), self.name(b.0));
        must(&format!("ip -n {here} link add {} type veth peer name {} netns {there}", a.1, b.1));
        self.ip(a.0, &format!("link set {} up", a.1));
        self.ip(b.0, &format!("link set {} up", b.1));
    }

    /// Runs `ip ARGUMENTS` at a host.
    pub fn ip(&self, host: &str, arguments: &str) {
        must(&format!("ip -n {} {arguments}", self.name(host)));
    }

    /// Disables the offloads of an interface. Without offloads, its packets are not larger than the MTU, and have
    /// complete checksums, as on the wire.
    pub fn no_offloads(&self, host: &str, interface: &str) {
        let off = format!("ethtool -K {interface} tx off tso off gso off gro off");
        self.says(host, &off).unwrap_or_else(|trouble| panic!("{trouble}"));
    }

    /// Sets `/proc/sys/KEY` of a host.
    pub fn sysctl(&self, host: &str, key: &str, value: &str) {
        // The files in /proc/sys/net belong to the namespace of the thread that opens them.
        let set = || fs::write(PathBuf::from("/proc/sys").join(key), value);
        self.inside(host, set).unwrap_or_else(|error| panic!("{key}: {error}"));
    }

    /// Runs a command at a host and returns its output.
    ///
    /// # Errors
    /// The command's error output, if the command fails.
    pub fn says(&self, host: &str, command: &str) -> Result<String, String> {
        says(&format!("nsenter --net={} {command}", self.path(host).display()))
    }

    /// Returns a command that runs a program at a host. It does not use `ip netns exec`, which would hide the file
    /// systems of cgroup2 and bpf.
    pub fn command(&self, host: &str, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.path(host).display())).arg(program);
        command
    }

    /// Runs `work` in a separate thread, in the host's namespace.
    pub fn inside<T: Send>(&self, host: &str, work: impl FnOnce() -> T + Send) -> T {
        let space = File::open(self.path(host)).expect("the namespace is there");
        thread::scope(|scope| {
            let there = scope.spawn(|| {
                setns(space, CloneFlags::CLONE_NEWNET).expect("the thread can enter it");
                work()
            });
            there.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for space in &self.spaces {
            let _ = says(&format!("ip netns delete {space}"));
        }
    }
}

/// Runs a command that must succeed. Single spaces separate the words of the command.
///
/// # Panics
/// If the command fails.
pub fn must(command: &str) {
    if let Err(trouble) = says(command) {
        panic!("{trouble}");
    }
}

/// Runs a command and returns its output. Single spaces separate the words of the command.
///
/// # Errors
/// The command's error output, if the command fails.
pub fn says(command: &str) -> Result<String, String> {
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
