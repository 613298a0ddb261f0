//! Tests with interfaces that vanish, appear and change while an agent starts or runs.

use std::fs;
use std::process::{Command, Stdio};

use narrows_agent::htb::Rtnl;

use super::agent::{Agent, Child, htb_of, patience, run};
use super::{PROGRAM, kernel, root_is_ours};

/// An interface vanishes while the agent starts, builds queues and attaches programs, so any system call may be the
/// first to fail. After the failure of any call, the agent reports the interface and ends.
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
            // The interface may also vanish just after the start. In this case, the agent continues without the
            // interface.
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
            // The new interface has the old ifindex, so only the kernel's report of the deletion shows the change.
            let index = Rtnl::open().unwrap().link("a").unwrap().index;
            run("ip link del dev a");
            run(&format!("ip link add name a index {index} type veth peer name a-peer"));
            let back = || switch.said().matches("event=\"interface-back\" interface=\"a\"").count() == 3;
            assert!(patience(back), "{}", switch.said());
            assert!(htb_of(&lab, "a"));
            run("tc qdisc del dev y root");
            assert!(patience(|| htb_of(&lab, "y")), "{}", switch.said());
            assert!(patience(|| switch.present() == ["a", "y", "x"]), "{}", switch.said());
            let removed = "interface=\"y\" reason=\"its queue is gone\"";
            assert_eq!(switch.said().matches(removed).count(), 1, "{}", switch.said());
            // The guardian must use the new ifindexes.
            switch.child.0.kill().unwrap();
            assert!(patience(|| !htb_of(&lab, "a") && !htb_of(&lab, "y")), "{}", switch.said());
        })
        .unwrap();
}

#[test]
fn a_reload_adds_and_removes_interfaces_and_adds_ports() {
    let Some(lab) = kernel::lab() else { return };
    lab.here()
        .run(|| {
            let switch = Agent::switch();
            let file = switch.folder.path().join("config");
            let text = fs::read_to_string(&file).unwrap().replace("['x']", "['w']");
            fs::write(&file, text + "[[ports]]\ninterface = 'v'\nrate = '30mbit'\n").unwrap();
            switch.signal(nix::sys::signal::SIGHUP);
            assert!(patience(|| switch.present() == ["a", "y"]), "{}", switch.said());
            assert!(switch.said().contains("changed=\"ports.v switch.interfaces\""), "{}", switch.said());
            run("ip link add name w type veth peer name v");
            assert!(patience(|| switch.present() == ["a", "y", "w", "v"]), "{}", switch.said());
            assert!(["a", "y", "v"].iter().all(|interface| htb_of(&lab, interface)), "{}", switch.said());
        })
        .unwrap();
}

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
            assert!(!done.status.success() && said.contains("no interface nosuch"), "{said}");
        })
        .unwrap();
}
