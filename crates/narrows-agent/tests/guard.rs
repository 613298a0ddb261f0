//! The guardian removes what a killed agent leaves. Needs root; skipped otherwise.

mod kernel;

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{fs, thread};

use narrows_agent::clean;
use narrows_agent::guard::{Charge, Guardian};
use narrows_agent::host::DefaultBefore;
use narrows_agent::htb::{Htb, Layout, Remains, Rtnl};
use narrows_agent::status::client::Client;
use narrows_agent::status::server::{Request, path_of};
use narrows_control::units::{Bytes, Rate};
use narrows_lab::{Need, can_run};

const PROGRAM: &str = env!("CARGO_BIN_EXE_narrows-agent");

fn root_is_ours(lab: &kernel::Lab) -> bool {
    lab.says("tc qdisc show dev a").unwrap().contains("htb 4e57: root")
}

fn install() -> (Rtnl, u32, Htb) {
    let mut rtnl = Rtnl::open().unwrap();
    let index = rtnl.link("a").unwrap().index;
    let layout = Layout::new(Rate::from_bits_per_sec(10_000_000), Bytes::new(1500));
    let htb = Htb::install(index, &layout).unwrap();
    (rtnl, index, htb)
}

#[test]
fn the_guardian_cleans_up_when_the_pipe_closes() {
    let Some(lab) = kernel::lab() else { return };
    lab.here()
        .run(|| {
            let mut guardian = Guardian::start_program(Path::new(PROGRAM)).unwrap();
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("left");
            fs::write(&file, "").unwrap();
            let (mut rtnl, index, mut htb) = install();
            let before = Remains::before(&mut rtnl, index).unwrap();
            guardian.charge(&Charge::Htb(before)).unwrap();
            guardian.charge(&Charge::File(file.clone())).unwrap();
            guardian.charge(&Charge::File(folder.path().join("never made"))).unwrap();
            htb.keep();
            drop(htb);
            assert!(root_is_ours(&lab) && file.exists(), "nothing is removed while the agent runs");
            drop(guardian);
            assert!(!root_is_ours(&lab) && !file.exists());
        })
        .unwrap();
}

/// Runs in the machine's namespace for some milliseconds, because in any other namespace only
/// `reno` may become the default.
#[test]
fn the_default_congestion_control_is_restored_unless_it_was_changed() {
    if !can_run(&[Need::Root]) {
        return;
    }
    let setting = "/proc/sys/net/ipv4/tcp_congestion_control";
    let now = || fs::read_to_string(setting).unwrap().trim().to_owned();
    let first = now();
    // `reno`, which every kernel has, stands for our congestion control.
    for (chosen, left, expected) in [("reno", "cubic", "cubic"), ("cubic", "reno", "cubic")] {
        fs::write(setting, left).unwrap();
        let mut guardian = Guardian::start_program(Path::new(PROGRAM)).unwrap();
        guardian.charge(&Charge::Default(DefaultBefore::read("reno").unwrap())).unwrap();
        fs::write(setting, chosen).unwrap();
        drop(guardian);
        let found = now();
        fs::write(setting, &first).unwrap();
        assert_eq!(found, expected);
    }
}

/// The agent is a `sleep` that holds the pipe and is killed with SIGKILL. The guardian gets the signals that
/// a service manager would send.
#[test]
fn the_guardian_survives_signals_and_cleans_up_after_kill_9() {
    let Some(lab) = kernel::lab() else { return };
    lab.here()
        .run(|| {
            let (mut rtnl, index, mut htb) = install();
            let charge = Charge::Htb(Remains::before(&mut rtnl, index).unwrap());
            htb.keep();
            drop(htb);
            let script = format!("exec {PROGRAM} guardian");
            let mut guardian = Command::new("sh")
                .args(["-c", &script])
                .stdin(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let mut pipe = guardian.stdin.take().unwrap();
            std::io::Write::write_all(&mut pipe, (serde_json::to_string(&charge).unwrap() + "\n").as_bytes())
                .unwrap();
            // A line cut off by the agent's death.
            std::io::Write::write_all(&mut pipe, b"{\"htb\":{\"ind").unwrap();
            let mut agent = Command::new("sleep")
                .arg("600")
                .stdout(Stdio::from(std::os::fd::OwnedFd::from(pipe)))
                .spawn()
                .unwrap();
            // Wait until it ignores signals: SigIgn in /proc shows it.
            let pid = nix::unistd::Pid::from_raw(guardian.id() as i32);
            let ignores = || {
                let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
                let mask =
                    status.lines().find_map(|l| l.strip_prefix("SigIgn:").map(str::trim).map(str::to_owned));
                let mask = mask.and_then(|m| u64::from_str_radix(&m, 16).ok()).unwrap_or(0);
                mask & 1 << (nix::libc::SIGTERM - 1) != 0
            };
            while !ignores() {
                thread::sleep(Duration::from_millis(5));
            }
            for signal in [nix::sys::signal::SIGTERM, nix::sys::signal::SIGINT, nix::sys::signal::SIGHUP] {
                nix::sys::signal::kill(pid, signal).unwrap();
            }
            assert!(
                root_is_ours(&lab) && guardian.try_wait().unwrap().is_none(),
                "signals do not end the guardian"
            );
            agent.kill().unwrap();
            agent.wait().unwrap();
            let output = guardian.wait_with_output().unwrap();
            assert!(output.status.success() && !root_is_ours(&lab));
            let log = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(log.contains("guardian-removed-htb"), "{log}");
        })
        .unwrap();
}

#[test]
fn clean_removes_everything_that_agents_left() {
    let Some(lab) = kernel::lab() else { return };
    lab.here()
        .run(|| {
            let (_, _, mut htb) = install();
            htb.keep();
            drop(htb);
            assert!(root_is_ours(&lab));
            let folder = tempfile::tempdir().unwrap();
            let (sockets, pins) = (folder.path().join("run"), folder.path().join("pins"));
            fs::create_dir_all(pins.join("s1")).unwrap();
            fs::create_dir(&sockets).unwrap();
            let live = UnixListener::bind(sockets.join("live.sock")).unwrap();
            drop(UnixListener::bind(sockets.join("dead.sock")).unwrap());
            assert_eq!(clean::running(&sockets), ["live"]);
            drop(live);
            assert!(clean::running(&sockets).is_empty());
            let cleaned = clean::clean(&sockets, &pins);
            assert_eq!((cleaned.removed.len(), cleaned.failed.len()), (4, 0), "{cleaned:?}");
            assert!(cleaned.removed.contains(&"HTB of a".to_owned()), "{cleaned:?}");
            assert!(!pins.exists() && fs::read_dir(&sockets).unwrap().next().is_none());
            assert!(!root_is_ours(&lab));
        })
        .unwrap();
}

/// A child process that ends with the test.
struct Child(std::process::Child);

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn run(command: &str) {
    let mut words = command.split(' ');
    let done = Command::new(words.next().unwrap()).args(words).status().unwrap();
    assert!(done.success(), "{command}");
}

/// Whether something becomes true. The deadline only ends a test that hangs.
fn patience(mut what: impl FnMut() -> bool) -> bool {
    (0..2000).any(|_| {
        thread::sleep(Duration::from_millis(10));
        what()
    })
}

/// During the start, while queues are built and programs attached, any call may be the first to fail because an
/// interface is gone. The agent reports the interface and ends.
#[test]
fn an_interface_deleted_during_the_start_ends_the_agent() {
    let Some(lab) = kernel::lab() else { return };
    lab.here()
        .run(|| {
            let folder = tempfile::tempdir().unwrap();
            let log = folder.path().join("log");
            let mut agent = Child(
                Command::new(PROGRAM)
                    .args(["switch", "--port", "a=10mbit"])
                    .stdout(Stdio::null())
                    .stderr(fs::File::create(&log).unwrap())
                    .spawn()
                    .unwrap(),
            );
            let said = || fs::read_to_string(&log).unwrap();
            assert!(patience(|| root_is_ours(&lab)), "{}", said());
            run("ip link del dev a");
            // The interface may also vanish just after the start. Then the agent works on without it.
            let ended = patience(|| {
                agent.0.try_wait().unwrap().is_some() || said().contains("event=\"interface-gone\"")
            });
            assert!(ended, "{}", said());
            if agent.0.try_wait().unwrap().is_some() {
                assert!(!agent.0.wait().unwrap().success(), "{}", said());
                assert!(said().contains("a: the interface no longer exists"), "{}", said());
            }
        })
        .unwrap();
}

/// A switch with two ports, `a` and `y`, and the uncontrolled interface `x`.
struct Switch {
    agent: Child,
    name: String,
    log: std::path::PathBuf,
    _folder: tempfile::TempDir,
}

impl Switch {
    fn start() -> Switch {
        run("ip link add name x type veth peer name x-peer");
        run("ip link add name y type veth peer name y-peer");
        let folder = tempfile::tempdir().unwrap();
        let name = format!("guard-{}-{:?}", std::process::id(), thread::current().id());
        let name: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
        let (config, log) = (folder.path().join("switch.toml"), folder.path().join("log"));
        let text = format!(
            "[switch]\nname = {name:?}\ninterfaces = ['x']\npin = false\n[[ports]]\ninterface = 'a'\nrate = '10mbit'\n\
             [[ports]]\ninterface = 'y'\nrate = '20mbit'\n[metrics]\nenabled = false\n"
        );
        fs::write(&config, text).unwrap();
        let agent = Command::new(PROGRAM)
            .args([Path::new("switch"), &config])
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let switch = Switch { agent: Child(agent), name, log, _folder: folder };
        assert!(patience(|| switch.present() == ["a", "y", "x"]), "{}", switch.said());
        switch
    }

    /// Names of the interfaces that the agent holds.
    fn present(&self) -> Vec<String> {
        let Ok(client) = Client::connect(&path_of(&self.name), &Request::default()) else {
            return Vec::new();
        };
        let status = client.into_iter().next().and_then(Result::ok).unwrap_or_default();
        status.interfaces.into_iter().filter(|i| i.present).map(|i| i.name).collect()
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }
}

fn htb_of(lab: &kernel::Lab, interface: &str) -> bool {
    let shown = lab.says(&format!("tc qdisc show dev {interface}"));
    shown.is_some_and(|shown| shown.contains("htb 4e57: root"))
}

/// The agent works on without a deleted interface, and controls the next interface of this name.
#[test]
fn deleted_interfaces_are_given_up_and_taken_back() {
    let Some(lab) = kernel::lab() else { return };
    lab.here()
        .run(|| {
            let mut switch = Switch::start();
            for round in 1..=2 {
                run("ip link del dev a");
                run("ip link del dev x");
                assert!(patience(|| switch.present() == ["y"]), "{}", switch.said());
                assert!(htb_of(&lab, "y"));
                run("ip link add name a type veth peer name a-peer");
                run("ip link add name x type veth peer name x-peer");
                assert!(patience(|| switch.present() == ["a", "y", "x"]), "{}", switch.said());
                assert!(htb_of(&lab, "a") && htb_of(&lab, "y"));
                let said = switch.said();
                for line in
                    ["event=\"interface-gone\" interface=\"a\"", "event=\"interface-back\" interface=\"x\""]
                {
                    assert_eq!(said.matches(line).count(), round, "{line}\n{said}");
                }
            }
            // With the old number, so that only the report of the deletion shows the change.
            let index = Rtnl::open().unwrap().link("a").unwrap().index;
            run("ip link del dev a");
            run(&format!("ip link add name a index {index} type veth peer name a-peer"));
            let back = || switch.said().matches("event=\"interface-back\" interface=\"a\"").count() == 3;
            assert!(patience(back), "{}", switch.said());
            assert!(htb_of(&lab, "a"));
            // The queue alone is removed, by another program.
            run("tc qdisc del dev y root");
            assert!(patience(|| htb_of(&lab, "y")), "{}", switch.said());
            assert!(patience(|| switch.present() == ["a", "y", "x"]), "{}", switch.said());
            // The guardian knows the new numbers.
            switch.agent.0.kill().unwrap();
            assert!(patience(|| !htb_of(&lab, "a") && !htb_of(&lab, "y")), "{}", switch.said());
        })
        .unwrap();
}
