//! Checks that the guardian removes the objects that a killed agent leaves. Without root, the tests are skipped.

#[path = "guard/agent.rs"]
mod agent;
#[path = "guard/changes.rs"]
mod changes;
#[path = "guard/interfaces.rs"]
mod interfaces;
mod kernel;
#[path = "guard/pins.rs"]
mod pins;

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{fs, thread};

use narrows_agent::clean;
use narrows_agent::dataplane::program::{Sizes, Switch, Tunables};
use narrows_agent::guard::{Charge, Guardian};
use narrows_agent::host::DefaultBefore;
use narrows_agent::htb::{Htb, Layout, Remains, Rtnl};
use narrows_agent::status::server::{FOLDER, path_of};
use narrows_control::units::{Bytes, Rate};
use narrows_lab::{Need, can_run};

use agent::{Agent, htb_of, patience, run};

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

/// This test runs in the machine's own namespace for some milliseconds. In any other namespace, the kernel accepts only
/// `reno` as the default.
#[test]
fn the_default_congestion_control_is_restored_unless_it_was_changed() {
    if !can_run(&[Need::Root]) {
        return;
    }
    let setting = "/proc/sys/net/ipv4/tcp_congestion_control";
    let now = || fs::read_to_string(setting).unwrap().trim().to_owned();
    let first = now();
    // This test uses `reno` instead of `brf`, because every kernel has `reno`.
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

/// A `sleep` process acts as the agent: it holds the pipe and is killed. The guardian gets the signals that a service
/// manager would send.
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
            // Write an incomplete line, as if the agent had died while it wrote the line.
            std::io::Write::write_all(&mut pipe, b"{\"htb\":{\"ind").unwrap();
            let mut agent = Command::new("sleep")
                .arg("600")
                .stdout(Stdio::from(std::os::fd::OwnedFd::from(pipe)))
                .spawn()
                .unwrap();
            // Wait until /proc (SigIgn) shows that the guardian ignores signals.
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

/// If the guardian is killed, too, objects remain. Both the next start of the agent and the command `clean` remove
/// these objects, and do not affect other agents that run.
#[test]
fn what_a_killed_guardian_leaves_is_removed_while_other_agents_run() {
    let Some(lab) = kernel::lab() else { return };
    lab.here()
        .run(|| {
            let algorithm = format!("nwg{}", std::process::id() % 100_000);
            let sender = Agent::start("sender", &format!("algorithm = {algorithm:?}"));
            let mut dead = Agent::switch();
            run("ip link add name z type veth peer name z-peer");
            let port = "pin = false\n[[ports]]\ninterface = 'z'\nrate = '10mbit'";
            let live = Agent::start("switch", port);
            let left = || ["a", "y", "z"].map(|interface| htb_of(&lab, interface));

            dead.kill_with_guardian();
            assert!(left() == [true; 3] && path_of(&dead.name).exists());
            dead.restart();
            assert_eq!(dead.present(), ["a", "y", "x"]);
            nix::sys::signal::kill(
                nix::unistd::Pid::from_raw(dead.child.0.id() as i32),
                nix::sys::signal::SIGTERM,
            )
            .unwrap();
            assert!(dead.child.0.wait().unwrap().success(), "{}", dead.said());
            assert!(left() == [false, false, true] && !path_of(&dead.name).exists());

            dead.restart();
            dead.kill_with_guardian();
            let pins = tempfile::tempdir().unwrap();
            let cleaned = clean::clean(Path::new(FOLDER), &pins.path().join("none"));
            assert_eq!(cleaned.failed, Vec::<String>::new());
            for what in ["HTB of a", "HTB of y"] {
                assert!(cleaned.removed.contains(&what.to_owned()), "{cleaned:?}");
            }
            assert!(left() == [false, false, true] && !path_of(&dead.name).exists());
            for agent in [&sender, &live] {
                assert!(agent.status().is_some(), "{}", agent.said());
            }
        })
        .unwrap();
}

#[test]
fn clean_removes_queues_of_every_namespace() {
    let Some(lab) = kernel::lab() else { return };
    let listed = clean::namespaces();
    let mine = |(name, _): &&(String, _)| name.ends_with(&format!(" {}", lab.name()));
    assert_eq!(listed.iter().filter(mine).count(), 1, "{listed:?}");
    lab.here()
        .run(|| {
            let (_, _, mut htb) = install();
            htb.keep();
        })
        .unwrap();
    assert!(root_is_ours(&lab));
    let namespaces = [(" in namespace lab".to_owned(), Some(lab.here()))];
    let cleaned = clean::clean_all(&namespaces, Path::new("/nonexistent"), Path::new("/nonexistent"));
    assert_eq!((cleaned.removed, cleaned.failed), (vec!["HTB of a in namespace lab".to_owned()], Vec::new()));
    assert!(!root_is_ours(&lab));
}

/// On kernels without tcx, a filter of clsact stays after its agent has died.
#[test]
fn clean_removes_the_programs_filters() {
    let Some(lab) = kernel::lab() else { return };
    lab.here()
        .run(|| {
            let index = Rtnl::open().unwrap().link("a").unwrap().index;
            let plane = Switch::load(Sizes::default(), Tunables::default()).unwrap();
            std::mem::forget(plane.attach_clsact(index).unwrap());
            drop(plane);
            let filters = || lab.says("tc filter show dev a egress").unwrap();
            assert!(filters().contains("nrw_switch"), "{}", filters());
            let cleaned = clean::clean(Path::new("/nonexistent"), Path::new("/nonexistent"));
            assert_eq!((cleaned.removed, cleaned.failed), (vec!["filter of a".to_owned()], Vec::new()));
            assert_eq!(filters(), "");
        })
        .unwrap();
}

/// If only the guardian is killed, the agent starts a new guardian, and sends it the list of objects to remove.
#[test]
fn a_killed_guardian_is_replaced() {
    let Some(lab) = kernel::lab() else { return };
    lab.here()
        .run(|| {
            let mut switch = Agent::switch();
            for round in 1..=2 {
                switch.kill_guardian();
                let replaced = || switch.said().matches("event=\"guardian-restarted\"").count() == round;
                assert!(patience(replaced), "{}", switch.said());
            }
            // The new guardian must also learn about interfaces that vanish and return.
            run("ip link del dev a");
            run("ip link add name a type veth peer name a-peer");
            let is_back = || switch.said().contains("event=\"interface-back\" interface=\"a\"");
            assert!(patience(is_back) && htb_of(&lab, "a"), "{}", switch.said());
            switch.child.0.kill().unwrap();
            assert!(patience(|| !htb_of(&lab, "a") && !htb_of(&lab, "y")), "{}", switch.said());
        })
        .unwrap();
}
