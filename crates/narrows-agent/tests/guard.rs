//! The guardian removes what a killed agent leaves. Needs root; skipped otherwise.

mod kernel;

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{fs, thread};

use narrows_agent::clean;
use narrows_agent::dataplane::program::{Sizes, Switch, Tunables};
use narrows_agent::guard::{Charge, Guardian};
use narrows_agent::host::DefaultBefore;
use narrows_agent::htb::{Htb, Layout, Remains, Rtnl};
use narrows_agent::status::Snapshot;
use narrows_agent::status::client::Client;
use narrows_agent::status::server::{FOLDER, Request, path_of};
use narrows_control::units::{Bytes, Rate};
use narrows_lab::{Need, can_run, mount_bpffs, with_own_mounts};

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

/// Writes an agent's configuration. `config` follows the name in the first table.
fn configure(folder: &tempfile::TempDir, role: &str, name: &str, config: &str) {
    let text = format!("[{role}]\nname = {name:?}\n{config}\n[metrics]\nenabled = false\n");
    fs::write(folder.path().join("config"), text).unwrap();
}

/// An agent with its configuration.
struct Agent {
    child: Child,
    role: &'static str,
    name: String,
    folder: tempfile::TempDir,
}

impl Agent {
    /// Starts an agent and waits until it answers. `config` follows the name in the first table.
    fn start(role: &'static str, config: &str) -> Agent {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("guard-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = tempfile::tempdir().unwrap();
        configure(&folder, role, &name, config);
        let child = Agent::spawn(role, &folder);
        let mut agent = Agent { child, role, name, folder };
        agent.wait();
        agent
    }

    /// Changes its configuration for the next start.
    fn configure(&self, config: &str) {
        configure(&self.folder, self.role, &self.name, config);
    }

    /// A switch with two ports, `a` and `y`, and the uncontrolled interface `x`.
    fn switch() -> Agent {
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

    fn restart(&mut self) {
        self.child = Agent::spawn(self.role, &self.folder);
        self.wait();
    }

    /// Ends the guardian and the agent with SIGKILL. The agent is stopped first, so that it starts no other guardian.
    fn kill_with_guardian(&mut self) {
        self.signal(nix::sys::signal::SIGSTOP);
        self.kill_guardian();
        self.child.0.kill().unwrap();
        self.child.0.wait().unwrap();
    }

    fn kill_guardian(&self) {
        let pid = self.child.0.id();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        let guardian = children.trim().parse().expect("one child: the guardian");
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(guardian), nix::sys::signal::SIGKILL).unwrap();
    }

    fn signal(&self, signal: nix::sys::signal::Signal) {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.child.0.id() as i32), signal).unwrap();
    }

    fn status(&self) -> Option<Snapshot> {
        Client::connect(&path_of(&self.name), &Request::default()).ok()?.next()?.ok()
    }

    /// Names of the interfaces that the agent holds.
    fn present(&self) -> Vec<String> {
        let interfaces = self.status().unwrap_or_default().interfaces;
        interfaces.into_iter().filter(|i| i.present).map(|i| i.name).collect()
    }

    fn said(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
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
            let mut switch = Agent::switch();
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
            let removed = "interface=\"y\" reason=\"its queue is gone\"";
            assert_eq!(switch.said().matches(removed).count(), 1, "{}", switch.said());
            // The guardian knows the new numbers.
            switch.child.0.kill().unwrap();
            assert!(patience(|| !htb_of(&lab, "a") && !htb_of(&lab, "y")), "{}", switch.said());
        })
        .unwrap();
}

/// The next start and `clean` remove what remains if the guardian was killed too. Both leave running agents alone.
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

/// On kernels without tcx, a filter of clsact outlives its agent.
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

/// SIGHUP changes the list of interfaces. A new port is controlled as soon as its interface exists.
#[test]
fn a_reload_adds_and_removes_interfaces_and_adds_ports() {
    let Some(lab) = kernel::lab() else { return };
    lab.here()
        .run(|| {
            let switch = Agent::switch();
            let file = switch.folder.path().join("config");
            let text = fs::read_to_string(&file).unwrap().replace("['x']", "['w']");
            fs::write(&file, text + "[[ports]]\ninterface = 'v'\nrate = '30mbit'\n").unwrap();
            let pid = nix::unistd::Pid::from_raw(switch.child.0.id() as i32);
            nix::sys::signal::kill(pid, nix::sys::signal::SIGHUP).unwrap();
            assert!(patience(|| switch.present() == ["a", "y"]), "{}", switch.said());
            assert!(switch.said().contains("changed=\"ports.v switch.interfaces\""), "{}", switch.said());
            run("ip link add name w type veth peer name v");
            assert!(patience(|| switch.present() == ["a", "y", "w", "v"]), "{}", switch.said());
            assert!(["a", "y", "v"].iter().all(|interface| htb_of(&lab, interface)), "{}", switch.said());
        })
        .unwrap();
}

/// A switch starts with the interfaces that exist, and takes the others when they appear.
#[test]
fn interfaces_may_be_missing_at_the_start_but_not_all_ports() {
    let Some(lab) = kernel::lab() else { return };
    lab.here()
        .run(|| {
            let ports =
                "[[ports]]\ninterface = 'y'\nrate = '20mbit'\n[[ports]]\ninterface = 'a'\nrate = '10mbit'";
            let mut switch = Agent::start("switch", &format!("interfaces = ['x']\npin = false\n{ports}"));
            assert_eq!(switch.present(), ["a"], "{}", switch.said());
            run("ip link add name x type veth peer name y");
            assert!(patience(|| switch.present() == ["y", "a", "x"]), "{}", switch.said());
            assert!(htb_of(&lab, "a") && htb_of(&lab, "y"));
            nix::sys::signal::kill(
                nix::unistd::Pid::from_raw(switch.child.0.id() as i32),
                nix::sys::signal::SIGTERM,
            )
            .unwrap();
            assert!(switch.child.0.wait().unwrap().success(), "{}", switch.said());
            assert!(!htb_of(&lab, "a") && !htb_of(&lab, "y"));

            let alone = ["switch", "--port", "nosuch=10mbit", "--also", "a"];
            let done = Command::new(PROGRAM).args(alone).output().unwrap();
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            assert!(!done.status.success() && said.contains("there is no interface nosuch"), "{said}");
        })
        .unwrap();
}

/// A pinned data plane whose port has vanished is taken over, without the links of the old interface.
#[test]
fn a_pinned_switch_restarts_while_a_port_is_missing() {
    let Some(lab) = kernel::lab() else { return };
    lab.here()
        .run(|| {
            let folder = tempfile::tempdir().unwrap();
            let (none, kind) = (None::<&str>, Some("bpf"));
            nix::mount::mount(Some("none"), folder.path(), kind, nix::mount::MsFlags::empty(), none).unwrap();
            let pin = folder.path().join("pin");
            run("ip link add name y type veth peer name y-peer");
            let ports =
                "[[ports]]\ninterface = 'a'\nrate = '10mbit'\n[[ports]]\ninterface = 'y'\nrate = '20mbit'";
            let mut switch = Agent::start("switch", &format!("pin = {pin:?}\n{ports}"));
            let links = || {
                let names = fs::read_dir(&pin).unwrap().map(|entry| entry.unwrap().file_name());
                names.filter(|name| name.to_string_lossy().starts_with("link_")).count()
            };
            assert_eq!((switch.present(), links()), (vec!["a".to_owned(), "y".to_owned()], 2));
            // Once while the agent works, and once while it does not.
            run("ip link del dev a");
            assert!(patience(|| switch.present() == ["y"]), "{}", switch.said());
            assert_eq!(links(), 1);
            switch.kill_with_guardian();
            switch.restart();
            assert_eq!(switch.present(), ["y"]);
            run("ip link add name a type veth peer name a-peer");
            assert!(patience(|| switch.present() == ["a", "y"]), "{}", switch.said());
            switch.kill_with_guardian();
            run("ip link del dev a");
            switch.restart();
            assert_eq!((switch.present(), links()), (vec!["y".to_owned()], 1));
            drop(switch);
            nix::mount::umount2(folder.path(), nix::mount::MntFlags::MNT_DETACH).unwrap();
        })
        .unwrap();
}

/// By default the next agent takes over the data plane of a dead agent, and a stop removes everything.
#[test]
fn by_default_the_data_plane_stays_until_a_stop() {
    let Some(lab) = kernel::lab() else { return };
    with_own_mounts(|| {
        mount_bpffs();
        lab.here().run(|| {
            run("ip link add name y type veth peer name y-peer");
            let port = |name, rate| format!("[[ports]]\ninterface = '{name}'\nrate = '{rate}'\n");
            let ports = port("a", "10mbit") + &port("y", "20mbit");
            let mut switch = Agent::start("switch", &ports);
            let pins = Path::new(clean::PINS).join(&switch.name);
            let kept = || (htb_of(&lab, "a"), htb_of(&lab, "y"), pins.join("program").exists());
            assert_eq!(kept(), (true, true, true), "{}", switch.said());
            switch.kill_with_guardian();
            assert_eq!(kept(), (true, true, true));
            switch.restart();
            assert_eq!(switch.said().matches("event=\"taken-over\"").count(), 1, "{}", switch.said());

            // Other ports: the data plane does not fit.
            switch.kill_with_guardian();
            switch.configure(&(port("y", "20mbit") + &port("a", "10mbit")));
            switch.restart();
            assert!(switch.said().contains("event=\"pins-removed\""), "{}", switch.said());
            assert_eq!(switch.present(), ["y", "a"]);

            // It is removed if `pin` is false, because otherwise two programs would write into each packet.
            switch.kill_with_guardian();
            switch.configure(&format!("pin = false\n{ports}"));
            switch.restart();
            assert_eq!(kept(), (true, true, false), "{}", switch.said());
            switch.kill_with_guardian();
            switch.configure(&ports);
            switch.restart();

            switch.signal(nix::sys::signal::SIGTERM);
            assert!(switch.child.0.wait().unwrap().success(), "{}", switch.said());
            assert_eq!(kept(), (false, false, false));
            assert!(!Path::new(clean::PINS).exists() && !path_of(&switch.name).exists());
        })
    })
    .unwrap();
}

/// Without bpffs nothing is pinned by default, and the guardian removes the objects of a dead agent.
#[test]
fn without_bpffs_nothing_is_pinned() {
    let Some(lab) = kernel::lab() else { return };
    with_own_mounts(|| {
        lab.here().run(|| {
            let mut switch = Agent::start("switch", "[[ports]]\ninterface = 'a'\nrate = '10mbit'");
            let reason = "event=\"not-pinned\" reason=\"found no bpffs at /sys/fs/bpf\"";
            assert!(switch.said().contains(reason), "{}", switch.said());
            assert!(htb_of(&lab, "a"));
            switch.child.0.kill().unwrap();
            assert!(patience(|| !htb_of(&lab, "a")), "{}", switch.said());
        })
    })
    .unwrap();
}

/// A guardian that is killed alone is replaced, and the next one knows what it has to remove.
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
            // Interfaces that come and go need the guardian.
            run("ip link del dev a");
            run("ip link add name a type veth peer name a-peer");
            let is_back = || switch.said().contains("event=\"interface-back\" interface=\"a\"");
            assert!(patience(is_back) && htb_of(&lab, "a"), "{}", switch.said());
            switch.child.0.kill().unwrap();
            assert!(patience(|| !htb_of(&lab, "a") && !htb_of(&lab, "y")), "{}", switch.said());
        })
        .unwrap();
}
