//! Runs agents with the real binary, writes their configurations, and reads their status.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use narrows_agent::status::client::Client;
use narrows_agent::status::server::{Request, path_of};
use narrows_agent::status::{PortStatus, Snapshot};
use narrows_agent::{bpffs, clock};
use narrows_control::units::{Span, Time};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::net::Net;

const PROGRAM: &str = env!("CARGO_BIN_EXE_narrows-agent");
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A running agent. Dropping it ends the agent, and prints the log if the test fails.
pub(crate) struct Agent {
    pub(crate) name: String,
    config: PathBuf,
    role: &'static str,
    child: Child,
    folder: tempfile::TempDir,
}

impl Agent {
    /// Starts an agent and waits until it is ready. Adds a name to the first table of `config`.
    pub(crate) fn start(role: &'static str, config: &str) -> Agent {
        let mut agent = Agent::launch(role, config);
        agent.wait_until_ready();
        agent
    }

    /// Starts an agent, but does not wait until it is ready. The agent serves metrics only if `config` has the table
    /// `[metrics]`.
    pub(crate) fn launch(role: &'static str, config: &str) -> Agent {
        let name = format!("live{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("agent.toml");
        let head = format!("[{role}]\n");
        let config = config.replacen(&head, &format!("{head}name = \"{name}\"\n"), 1);
        let metrics = if config.contains("[metrics]") { "" } else { "[metrics]\nenabled = false\n" };
        fs::write(&path, config + metrics).expect("a file");
        let child = spawn(role, &path, &folder);
        Agent { name, config: path, role, child, folder }
    }

    /// Starts the switch of a star. Its port has this rate. `more` is appended to `[switch]`, and `tail` to the file.
    pub(crate) fn switch_with(net: &Net, rate: &str, more: &str, tail: &str) -> Agent {
        let config = format!(
            "[switch]\nnetns = \"{}\"\ninterfaces = {:?}\n{more}\n[[ports]]\ninterface = \"c\"\nrate = \"{rate}\"\n{tail}\n",
            net.name("r"),
            net.senders()
        );
        Agent::start("switch", &config)
    }

    pub(crate) fn switch(net: &Net, rate: &str) -> Agent {
        Agent::switch_with(net, rate, "", "")
    }

    /// Like [`Agent::switch`], but the guardian removes the data plane of a killed switch.
    pub(crate) fn unpinned_switch(net: &Net, rate: &str) -> Agent {
        Agent::switch_with(net, rate, "pin = false", "")
    }

    /// Starts a sender that applies BRF at one interface of each host. `hosts` has pairs of a host and its interface.
    pub(crate) fn sender(net: &Net, choice: &str, hosts: &[(&str, &str)]) -> Agent {
        Agent::sender_with(net, choice, hosts, "")
    }

    /// Like [`Agent::sender`], but connections also designate packets for BDR.
    pub(crate) fn designating_sender(net: &Net, choice: &str, hosts: &[(&str, &str)]) -> Agent {
        Agent::sender_with(net, choice, hosts, "designate = true\n")
    }

    /// Like [`Agent::sender`], but connections get their rates in messages.
    pub(crate) fn listening_sender(net: &Net, choice: &str, hosts: &[(&str, &str)]) -> Agent {
        Agent::sender_with(net, choice, hosts, "messages = true\n")
    }

    fn sender_with(net: &Net, choice: &str, hosts: &[(&str, &str)], more: &str) -> Agent {
        // Names of algorithms are global to the machine, and tests run at the same time, so each sender needs its own
        // name.
        let algorithm =
            format!("nwl{}", std::process::id() % 100_000 * 100 + NEXT.fetch_add(1, Ordering::Relaxed) % 100);
        let mut config = format!("[sender]\nchoice = \"{choice}\"\nalgorithm = \"{algorithm}\"\n{more}");
        for (host, interface) in hosts {
            let path = format!("/run/netns/{}", net.name(host));
            config += &format!("[[namespaces]]\npath = {path:?}\ninterfaces = [{interface:?}]\n");
        }
        Agent::start("sender", &config)
    }

    /// Waits until the agent answers. If another sender has the same algorithm name, starts the agent again until that
    /// sender has ended.
    pub(crate) fn wait_until_ready(&mut self) {
        let begun = clock::now();
        while self.status(0).is_none_or(|s| s.role != self.role) {
            let log = self.log();
            let again = !self.runs() && log.contains("File exists");
            assert!(since(begun) < Span::from_secs(60), "{} is not ready:\n{log}", self.role);
            thread::sleep(Duration::from_millis(if again { 500 } else { 20 }));
            if again {
                self.child = spawn(self.role, &self.config, &self.folder);
            }
        }
    }

    /// Returns the agent's status, if it answers.
    pub(crate) fn status(&self, flows: usize) -> Option<Snapshot> {
        let request = Request { flows, ..Request::default() };
        Client::connect(&path_of(&self.name), &request).ok()?.next()?.ok()
    }

    /// Returns the state of the first port, from a snapshot that the agent makes after the start of this call.
    pub(crate) fn port(&self) -> PortStatus {
        let asked = clock::now();
        loop {
            match self.status(0) {
                Some(mut status) if status.at >= asked && !status.ports.is_empty() => {
                    return status.ports.swap_remove(0);
                }
                _ if since(asked) > Span::from_secs(10) => panic!("the switch is silent:\n{}", self.log()),
                _ => thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    /// Returns a snapshot that includes flows. The agent makes this snapshot after the start of this call.
    pub(crate) fn fresh(&self) -> Snapshot {
        let asked = clock::now();
        loop {
            match self.status(10_000) {
                Some(status) if status.at >= asked => return status,
                _ if since(asked) > Span::from_secs(10) => panic!("the agent is silent:\n{}", self.log()),
                _ => thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    pub(crate) fn counter(&self, name: &str) -> u64 {
        counter(&self.port(), name)
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    pub(crate) fn config(&self) -> &Path {
        &self.config
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).expect("the agent is there");
    }

    /// Kills the agent, but not its guardian.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("the agent is there");
        self.child.wait().expect("it is our child");
    }

    /// Starts the agent again after [`Agent::kill`].
    pub(crate) fn restart(&mut self) {
        self.child = spawn(self.role, &self.config, &self.folder);
        self.wait_until_ready();
    }

    pub(crate) fn runs(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

pub(crate) fn counter(port: &PortStatus, name: &str) -> u64 {
    port.counters
        .iter()
        .find(|(n, _)| n == name)
        .map_or_else(|| panic!("no counter {name}"), |(_, value)| *value)
}

fn spawn(role: &str, config: &PathBuf, folder: &tempfile::TempDir) -> Child {
    let log = File::options().create(true).append(true).open(folder.path().join("log")).expect("a log");
    Command::new(PROGRAM).arg(role).arg(config).stderr(log).spawn().expect("the agent starts")
}

pub(crate) fn since(then: Time) -> Span {
    clock::now().since(then)
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = kill(self.pid(), Signal::SIGCONT);
        let _ = kill(self.pid(), Signal::SIGTERM);
        let begun = clock::now();
        while self.runs() && since(begun) < Span::from_secs(5) {
            thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        // A killed agent leaves its pins, so remove them.
        let _ = fs::remove_dir_all(Path::new(bpffs::AGENTS).join(&self.name));
        if thread::panicking() {
            eprintln!("--- log of {} {}:\n{}", self.role, self.name, self.log());
        }
    }
}
