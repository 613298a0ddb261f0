//! These tests rename, move, exchange and delete interfaces while a switch runs. Some changes follow each other faster
//! than the agent can examine them.

use std::fs;
use std::thread;
use std::time::Duration;

use narrows_agent::clock;
use narrows_agent::htb::Rtnl;
use narrows_agent::netns::Netns;
use narrows_control::units::Span;
use narrows_lab::must;
use nix::sys::signal::{SIGCONT, SIGHUP, SIGSTOP};

use super::agent::{Agent, htb_of, patience, run};
use super::kernel;

fn index(interface: &str) -> u32 {
    Rtnl::open().unwrap().link(interface).unwrap().index
}

fn rate_of(lab: &kernel::Lab, interface: &str) -> String {
    let shown = lab.says(&format!("tc class show dev {interface} classid 4e57:1")).unwrap_or_default();
    shown.split(" rate ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or_default().to_owned()
}

/// Returns whether the switch program is attached to an interface (bpf(2), BPF_PROG_QUERY).
fn has_program(interface: &str) -> bool {
    let (mut ids, mut count) = ([0u32; 64], 64u32);
    // SAFETY: both pointers are valid for the call, and the array has `count` elements.
    #[allow(unsafe_code)]
    let code = unsafe {
        let at = libbpf_sys::BPF_TCX_EGRESS;
        let (flags, none) = (0, std::ptr::null_mut());
        libbpf_sys::bpf_prog_query(index(interface) as i32, at, flags, none, ids.as_mut_ptr(), &raw mut count)
    };
    assert_eq!(code, 0);
    count > 0
}

/// A port's name decides which interface is controlled. An interface that is renamed gets back the state in which the
/// agent found it.
#[test]
fn a_renamed_port_is_given_up_and_the_interface_with_its_name_is_taken() {
    let Some(lab) = kernel::lab() else { return };
    lab.here()
        .run(|| {
            let switch = Agent::switch();
            run("ip link set dev a name b");
            assert!(patience(|| switch.present() == ["y", "x"]), "{}", switch.said());
            assert!(!htb_of(&lab, "b") && !has_program("b"), "{}", switch.said());
            run("ip link set dev b name a");
            assert!(patience(|| switch.present() == ["a", "y", "x"]), "{}", switch.said());
            assert!(htb_of(&lab, "a") && has_program("a"));

            // Two ports and an interface that is not a port exchange their names before the agent examines them.
            let [a, y, x] = ["a", "y", "x"].map(index);
            switch.signal(SIGSTOP);
            for (from, to) in [("a", "t"), ("y", "a"), ("x", "y"), ("t", "x")] {
                run(&format!("ip link set dev {from} name {to}"));
            }
            switch.signal(SIGCONT);
            let back = |interface: &str, index: u32| {
                let line = format!("event=\"interface-back\" interface=\"{interface}\" index={index}\n");
                patience(|| switch.said().contains(&line))
            };
            assert!(back("a", y) && back("y", x) && back("x", a), "{}", switch.said());
            assert_eq!(["a", "y", "x"].map(|name| rate_of(&lab, name)), ["10Mbit", "20Mbit", ""]);
            assert!(["a", "y", "x"].iter().all(|name| has_program(name)));
        })
        .unwrap();
}

/// The agent gives up an interface that leaves the namespace, even if it returns with the same name and ifindex.
#[test]
fn a_port_that_moves_to_another_namespace_and_back_is_controlled_again() {
    let Some(lab) = kernel::lab() else { return };
    let other = format!("{}o", lab.name());
    must(&format!("ip netns add {other}"));
    let there = Netns::named(&other);
    lab.here()
        .run(|| {
            let switch = Agent::switch();
            let before = index("a");
            run(&format!("ip link set dev a netns {other}"));
            assert!(patience(|| switch.present() == ["y", "x"]), "{}", switch.said());
            let left = there.run(|| has_program("a")).unwrap();
            assert!(!left, "{}", switch.said());
            must(&format!("ip -n {other} link set dev a netns {}", lab.name()));
            assert!(patience(|| switch.present() == ["a", "y", "x"]), "{}", switch.said());
            assert!(htb_of(&lab, "a") && has_program("a"));
            // The interface returns before the agent examines its interfaces.
            switch.signal(SIGSTOP);
            run(&format!("ip link set dev a netns {other}"));
            must(&format!("ip -n {other} link set dev a netns {}", lab.name()));
            switch.signal(SIGCONT);
            let backs = || switch.said().matches("event=\"interface-back\" interface=\"a\"").count();
            assert!(patience(|| backs() == 2), "{}", switch.said());
            assert!(htb_of(&lab, "a") && has_program("a") && index("a") == before);
        })
        .unwrap();
    must(&format!("ip netns delete {other}"));
}

/// One request deletes all interfaces, so that the kernel reports them together.
#[test]
fn ports_that_vanish_together_are_taken_back() {
    let Some(lab) = kernel::lab() else { return };
    lab.here()
        .run(|| {
            let switch = Agent::switch();
            for interface in ["a", "y", "x"] {
                run(&format!("ip link set dev {interface} group 77"));
            }
            run("ip link del group 77");
            assert!(patience(|| switch.present().is_empty()), "{}", switch.said());
            for interface in ["a", "y", "x"] {
                run(&format!("ip link add name {interface} type veth peer name {interface}-peer"));
            }
            assert!(patience(|| switch.present() == ["a", "y", "x"]), "{}", switch.said());
            assert!(htb_of(&lab, "a") && htb_of(&lab, "y"));
        })
        .unwrap();
}

/// The agent reads its configuration before it notices the vanished port. With a tick of one second, the agent examines
/// interfaces and queues once a second, and always reads the configuration first.
#[test]
fn a_reload_while_a_port_vanishes_applies_when_it_is_back() {
    let Some(lab) = kernel::lab() else { return };
    lab.here()
        .run(|| {
            let switch = Agent::switch();
            let file = switch.folder.path().join("config");
            let text = fs::read_to_string(&file).unwrap();
            let slow = text.replacen("pin = false", "pin = false\ntick = '1s'\nwatchdog = '3s'", 1);
            fs::write(&file, &slow).unwrap();
            switch.signal(SIGHUP);
            assert!(patience(|| switch.said().contains("switch.tick")), "{}", switch.said());
            fs::write(&file, slow.replace("'10mbit'", "'5mbit'").replace("20mbit", "15mbit")).unwrap();
            switch.signal(SIGSTOP);
            run("ip link del dev a");
            switch.signal(SIGHUP);
            switch.signal(SIGCONT);
            assert!(patience(|| rate_of(&lab, "y") == "15Mbit"), "{}", switch.said());
            assert!(patience(|| switch.present() == ["y", "x"]), "{}", switch.said());
            run("ip link add name a type veth peer name a-peer");
            assert!(patience(|| switch.present() == ["a", "y", "x"]), "{}", switch.said());
            assert_eq!(rate_of(&lab, "a"), "5Mbit", "{}", switch.said());
            assert!(!switch.said().contains("reload-failed"), "{}", switch.said());
        })
        .unwrap();
}

/// A new interface gets the ifindex of a deleted one while the agent changes the classes of the deleted interface's
/// queue. The kernel's answer does not show whether the interface or only the queue is gone.
#[test]
fn a_queue_that_vanishes_at_any_moment_does_not_end_the_switch() {
    let Some(lab) = kernel::lab() else { return };
    lab.here()
        .run(|| {
            let mut switch = Agent::switch();
            let number = index("a");
            let file = switch.folder.path().join("config");
            let text = fs::read_to_string(&file).unwrap();
            let end = clock::now() + Span::from_secs(5);
            let mut rounds = 0;
            while clock::now() < end {
                rounds += 1;
                fs::write(&file, text.replace("20mbit", &format!("{}mbit", 20 + rounds % 7))).unwrap();
                switch.signal(SIGHUP);
                if rounds % 2 == 0 {
                    run("ip link del dev a");
                    run(&format!("ip link add name a index {number} type veth peer name a-peer"));
                } else {
                    let _ = lab.says("tc qdisc del dev a root");
                    let _ = lab.says("tc qdisc del dev y root");
                }
                thread::sleep(Duration::from_millis(rounds % 17));
                assert!(switch.child.0.try_wait().unwrap().is_none(), "{}", switch.said());
            }
            assert!(patience(|| switch.present() == ["a", "y", "x"]), "{}", switch.said());
            assert!(patience(|| htb_of(&lab, "a") && htb_of(&lab, "y")), "{}", switch.said());
        })
        .unwrap();
}

/// An interface vanishes and returns twenty times a second, with reloads in between. The other port stays controlled,
/// the log stays short, and no descriptors leak.
#[test]
fn an_interface_that_flaps_is_damped_and_nothing_leaks() {
    let Some(lab) = kernel::lab() else { return };
    lab.here()
        .run(|| {
            let mut switch = Agent::switch();
            let descriptors = || fs::read_dir(format!("/proc/{}/fd", switch.child.0.id())).unwrap().count();
            let before = descriptors();
            for round in 0..100 {
                let next = clock::now() + Span::from_millis(50);
                run("ip link del dev a");
                run("ip link add name a type veth peer name a-peer");
                if round % 10 == 0 {
                    switch.signal(SIGHUP);
                }
                thread::sleep(Duration::from_nanos(next.since(clock::now()).as_nanos()));
            }
            assert!(htb_of(&lab, "y"), "{}", switch.said());
            assert!(patience(|| switch.present() == ["a", "y", "x"]), "{}", switch.said());
            assert!(htb_of(&lab, "a") && has_program("a"));
            assert!(patience(|| descriptors() <= before), "{} descriptors, {before} before", descriptors());
            let lines = switch.said().lines().filter(|line| line.contains("interface=\"a\"")).count();
            assert!(lines <= 20, "{lines} lines:\n{}", switch.said());
            let flaps = "lost 4 times within 10 s; the agent uses it again once it has existed for 1 s";
            assert!(switch.said().contains(flaps), "{}", switch.said());
            assert!(switch.child.0.try_wait().unwrap().is_none());
        })
        .unwrap();
}
