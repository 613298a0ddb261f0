//! Runs the real `narrows-agent` for one test.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{fs, thread};

use narrows_agent::status::Snapshot;
use narrows_agent::status::client::Client;
use narrows_agent::status::server::{Request, path_of};

use super::{PROGRAM, kernel};

pub(crate) struct Child(pub(crate) std::process::Child);

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn run(command: &str) {
    let mut words = command.split(' ');
    let done = Command::new(words.next().unwrap()).args(words).status().unwrap();
    assert!(done.success(), "{command}");
}

/// Waits for a condition, and returns whether it was met. The long deadline exists only to end a test that hangs.
pub(crate) fn patience(mut what: impl FnMut() -> bool) -> bool {
    (0..2000).any(|_| {
        thread::sleep(Duration::from_millis(10));
        what()
    })
}

/// Writes an agent's configuration. The text `config` is inserted after the name in the first table.
pub(crate) fn configure(folder: &tempfile::TempDir, role: &str, name: &str, config: &str) {
    let text = format!("[{role}]\nname = {name:?}\n{config}\n[metrics]\nenabled = false\n");
    fs::write(folder.path().join("config"), text).unwrap();
}

/// An agent with its configuration.
pub(crate) struct Agent {
    pub(crate) child: Child,
    role: &'static str,
    pub(crate) name: String,
    pub(crate) folder: tempfile::TempDir,
}

impl Agent {
    /// Starts an agent and waits until it answers. `config` is inserted after the name in the first table.
    pub(crate) fn start(role: &'static str, config: &str) -> Agent {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("guard-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = tempfile::tempdir().unwrap();
        configure(&folder, role, &name, config);
        let child = Agent::spawn(role, &folder);
        let mut agent = Agent { child, role, name, folder };
        agent.wait();
        agent
    }

    /// Changes the agent's configuration for its next start.
    pub(crate) fn configure(&self, config: &str) {
        configure(&self.folder, self.role, &self.name, config);
    }

    /// Starts a switch with two ports, `a` and `y`, and the uncontrolled interface `x`.
    pub(crate) fn switch() -> Agent {
        run("ip link add name x type veth peer name x-peer");
        run("ip link add name y type veth peer name y-peer");
        let ports =
            "[[ports]]\ninterface = 'a'\nrate = '10mbit'\n[[ports]]\ninterface = 'y'\nrate = '20mbit'";
        Agent::start("switch", &format!("interfaces = ['x']\npin = false\n{ports}"))
    }

    fn spawn(role: &str, folder: &tempfile::TempDir) -> Child {
        let log = fs::File::options().create(true).append(true).open(folder.path().join("log")).unwrap();
        let mut command = Command::new(PROGRAM);
        command.args([Path::new(role), &folder.path().join("config")]).stdout(Stdio::null()).stderr(log);
        Child(command.spawn().unwrap())
    }

    fn wait(&mut self) {
        assert!(
            patience(|| self.status().is_some() || self.child.0.try_wait().unwrap().is_some()),
            "{}",
            self.said()
        );
        assert!(self.status().is_some(), "{}", self.said());
    }

    pub(crate) fn restart(&mut self) {
        self.child = Agent::spawn(self.role, &self.folder);
        self.wait();
    }

    /// Kills the guardian and the agent. The agent first gets SIGSTOP, so that it starts no other guardian.
    pub(crate) fn kill_with_guardian(&mut self) {
        self.signal(nix::sys::signal::SIGSTOP);
        self.kill_guardian();
        self.child.0.kill().unwrap();
        self.child.0.wait().unwrap();
    }

    pub(crate) fn kill_guardian(&self) {
        let pid = self.child.0.id();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        let guardian = children.trim().parse().expect("one child: the guardian");
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(guardian), nix::sys::signal::SIGKILL).unwrap();
    }

    pub(crate) fn signal(&self, signal: nix::sys::signal::Signal) {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.child.0.id() as i32), signal).unwrap();
    }

    pub(crate) fn status(&self) -> Option<Snapshot> {
        Client::connect(&path_of(&self.name), &Request::default()).ok()?.next()?.ok()
    }

    /// Returns the names of the interfaces that the agent uses.
    pub(crate) fn present(&self) -> Vec<String> {
        let interfaces = self.status().unwrap_or_default().interfaces;
        interfaces.into_iter().filter(|i| i.present).map(|i| i.name).collect()
    }

    pub(crate) fn said(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }
}

pub(crate) fn htb_of(lab: &kernel::Lab, interface: &str) -> bool {
    let shown = lab.says(&format!("tc qdisc show dev {interface}"));
    shown.is_some_and(|shown| shown.contains("htb 4e57: root"))
}
