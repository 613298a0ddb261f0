//! Tests a sender or receiver with `[[namespaces]]`. Interfaces and namespaces vanish and return, the kernel refuses to
//! attach programs, and reloads change the configuration.

#![allow(unsafe_code, reason = "programs are attached by system calls that have no wrapper")]

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::thread;
use std::time::Duration;

use narrows_agent::clock;
use narrows_agent::status::Snapshot;
use narrows_control::units::Span;
use narrows_lab::{Room, must};

use super::agent::{Agent, since};
use super::flow::{Flow, all_well};
use super::kill::sender_counter;
use super::net::{Forwarding, Net};
use super::reload::reload;

/// Returns a network in which `s1` and `s2` reach `c` through `r`, without a delay.
fn network() -> Option<Net> {
    let mut net = Net::empty(Forwarding::Router, Room::Half)?;
    net.switch("r");
    net.host("c");
    net.link("r", "c");
    net.address("c", "r", 9, 1);
    net.address("r", "c", 9, 2);
    net.route("c", "r", 9);
    for i in 1..=2 {
        let name = format!("s{i}");
        net.host(&name);
        connect(&net, i);
    }
    Some(net)
}

/// Makes the cable of sender `i`. If the sender's namespace was deleted, the kernel removes the earlier cable some time
/// later. First wait until this cable is gone.
fn connect(net: &Net, i: usize) {
    let (earlier, begun) = (format!("ip -n {} link show s{i}", net.name("r")), clock::now());
    while narrows_lab::says(&earlier).is_ok() {
        assert!(since(begun) < Span::from_secs(30), "the earlier cable of s{i} is still there");
        thread::sleep(Duration::from_millis(5));
    }
    net.link(&format!("s{i}"), "r");
    net.attach_sender(&format!("s{i}"), "r", i);
}

/// Waits for a condition. The deadline exists only to end a test that hangs.
fn wait_until(agent: &mut Agent, what: &str, mut is_so: impl FnMut(&Agent) -> bool) {
    let begun = clock::now();
    while !is_so(agent) {
        assert!(agent.runs() && since(begun) < Span::from_secs(30), "{what}:\n{}", agent.log());
        thread::sleep(Duration::from_millis(20));
    }
}

fn status(agent: &Agent) -> Snapshot {
    agent.status(0).expect("the agent answers")
}

/// Returns the hosts whose interface the sender uses.
fn held(net: &Net, agent: &Agent) -> Vec<String> {
    let hosts = ["s1", "s2"].into_iter().filter(|host| {
        let path = format!("/run/netns/{}", net.name(host));
        status(agent).interfaces.iter().any(|i| i.netns.as_ref() == Some(&path) && i.present)
    });
    hosts.map(str::to_owned).collect()
}

/// Returns the hosts whose namespace the agent uses.
fn entered(net: &Net, agent: &Agent) -> Vec<String> {
    let hosts = ["s1", "s2"].into_iter().filter(|host| {
        let path = format!("/run/netns/{}", net.name(host));
        status(agent).namespaces.iter().any(|namespace| namespace.path == path && namespace.present)
    });
    hosts.map(str::to_owned).collect()
}

/// Returns the number of lines in the agent's log that report this event in a host's namespace.
fn count(net: &Net, agent: &Agent, event: &str, host: &str) -> usize {
    let (event, netns) = (format!("event=\"{event}\""), format!("netns=/run/netns/{}", net.name(host)));
    let log = agent.log();
    // This search is exact, because no host's name is the beginning of another host's name.
    log.lines().filter(|line| line.contains(&event) && line.contains(&netns)).count()
}

/// Checks that a sender's new connections ask for rates, and that their data is marked at its interface.
fn assert_in_use(net: &Net, sender: &mut Agent, i: usize, port: u16) {
    let (asked, marked) = (sender_counter(sender, "asked"), sender_counter(sender, "marked"));
    let flow = Flow::from_sender(net, i, port);
    flow.wait_for_data();
    // An earlier flow can still cause marks, so wait for both counters.
    wait_until(sender, "no request or no marks", |sender| {
        sender_counter(sender, "asked") > asked && sender_counter(sender, "marked") > marked + 2
    });
    all_well(&[&flow]);
}

#[test]
fn an_interface_in_another_namespace_is_taken_back() {
    let Some(net) = network() else { return };
    let _switch = Agent::switch(&net, "100mbit");
    let mut sender = Agent::sender(&net, "all", &[("s1", "r"), ("s2", "r")]);
    assert_eq!(held(&net, &sender), ["s1", "s2"]);
    for round in 1..=2 {
        net.says("s1", "ip link del dev r");
        wait_until(&mut sender, "it is still there", |sender| held(&net, sender) == ["s2"]);
        assert_eq!(entered(&net, &sender), ["s1", "s2"], "the namespace is still there");
        assert_in_use(&net, &mut sender, 2, 5000 + round);
        connect(&net, 1);
        wait_until(&mut sender, "it is not taken back", |sender| held(&net, sender) == ["s1", "s2"]);
        assert_in_use(&net, &mut sender, 1, 5010 + round);
        let said = ["interface-gone", "interface-back"].map(|event| count(&net, &sender, event, "s1"));
        assert_eq!(said, [usize::from(round); 2], "{}", sender.log());
    }
    assert_eq!(count(&net, &sender, "interface-gone", "s2"), 0, "{}", sender.log());
}

#[test]
fn a_namespace_that_is_made_again_is_taken_back() {
    let Some(mut net) = network() else { return };
    let _switch = Agent::switch(&net, "100mbit");
    let mut sender = Agent::sender(&net, "all", &[("s1", "r"), ("s2", "r")]);
    for round in 1..=2 {
        // In the first round, the namespace returns at once, so the agent never finds it missing. In the second round,
        // the namespace returns after a while.
        let path = format!("/run/netns/{}", net.name("s1"));
        must(&format!("ip netns delete {}", net.name("s1")));
        if round == 2 {
            wait_until(&mut sender, "it is still there", |sender| entered(&net, sender) == ["s2"]);
            let shown =
                narrows_lab::says(&format!("{PROGRAM} status --name {}", sender.name)).expect("a status");
            assert!(shown.contains(&format!("namespace {path}: missing; ")), "{shown}");
            assert_in_use(&net, &mut sender, 2, 5020);
        }
        net.host("s1");
        connect(&net, 1);
        let back = |sender: &Agent| {
            count(&net, sender, "namespace-back", "s1") == round && held(&net, sender) == ["s1", "s2"]
        };
        wait_until(&mut sender, "it is not taken back", back);
        assert_in_use(&net, &mut sender, 1, 5000 + round as u16);
        assert_in_use(&net, &mut sender, 2, 5010 + round as u16);
    }
    assert_eq!(count(&net, &sender, "namespace-gone", "s1"), 1, "{}", sender.log());
}

const PROGRAM: &str = env!("CARGO_BIN_EXE_narrows-agent");

/// Returns whether SYNs of this host ask for rates, which shows that the receiver's program applies to it.
fn asks(net: &Net, receiver: &Agent, host: &str) -> bool {
    let server = net.server(5000, false);
    let listener = net.inside("c", || TcpListener::bind(server)).expect("a server");
    let before = sender_counter(receiver, "asked");
    net.inside(host, || TcpStream::connect(server)).expect("the server listens");
    drop(listener);
    let asked = status(receiver).at;
    while status(receiver).at <= asked {
        thread::sleep(Duration::from_millis(20));
    }
    sender_counter(receiver, "asked") > before
}

fn receiver(net: &Net, hosts: &[&str]) -> Agent {
    let tables = hosts.iter().map(|host| format!("[[namespaces]]\npath = '/run/netns/{}'\n", net.name(host)));
    Agent::start("receiver", &format!("[receiver]\nask = true\n{}", tables.collect::<String>()))
}

#[test]
fn a_receiver_takes_a_namespace_back() {
    let Some(mut net) = network() else { return };
    let mut receiver = receiver(&net, &["s1", "s2"]);
    assert!(asks(&net, &receiver, "s1"));
    must(&format!("ip netns delete {}", net.name("s1")));
    net.host("s1");
    connect(&net, 1);
    let begun = clock::now();
    while !asks(&net, &receiver, "s1") {
        assert!(since(begun) < Span::from_secs(30), "{}", receiver.log());
    }
    assert!(asks(&net, &receiver, "s2") && !asks(&net, &receiver, "r"));
    assert!(receiver.runs());
}

/// Returns the number of the agent's descriptors: the smallest of several counts, because a connection to the status
/// socket may add some.
fn descriptors(agent: &Agent) -> usize {
    let counts = (0..20).map(|_| {
        thread::sleep(Duration::from_millis(10));
        fs::read_dir(format!("/proc/{}/fd", agent.pid())).expect("descriptors").count()
    });
    counts.min().unwrap_or_default()
}

/// The namespace is deleted and recreated many times a second, with reloads in between.
#[test]
fn a_namespace_that_flaps_is_damped_and_nothing_leaks() {
    let Some(mut net) = network() else { return };
    let mut receiver = receiver(&net, &["s1", "s2"]);
    let before = descriptors(&receiver);
    let name = net.name("s1");
    for round in 0..60 {
        must(&format!("ip netns delete {name}"));
        must(&format!("ip netns add {name}"));
        if round % 10 == 0 {
            receiver.signal(nix::sys::signal::Signal::SIGHUP);
        }
        thread::sleep(Duration::from_millis(50));
    }
    assert!(asks(&net, &receiver, "s2"), "{}", receiver.log());
    must(&format!("ip netns delete {name}"));
    net.host("s1");
    connect(&net, 1);
    wait_until(&mut receiver, "it is not taken back", |receiver| entered(&net, receiver) == ["s1", "s2"]);
    assert!(asks(&net, &receiver, "s1"), "{}", receiver.log());
    let flaps = "lost 4 times within 10 s; the agent uses it again once it has existed for 1 s";
    assert!(receiver.log().contains(flaps), "{}", receiver.log());
    let lines = receiver.log().lines().filter(|line| line.contains(&name)).count();
    assert!(lines <= 20, "{lines} lines:\n{}", receiver.log());
    let after = descriptors(&receiver);
    assert!(after <= before, "{before} descriptors at first, {after} at last");
}

#[test]
fn a_reload_adds_and_removes_namespaces() {
    let Some(net) = network() else { return };
    let mut receiver = receiver(&net, &["s1"]);
    assert!(asks(&net, &receiver, "s1") && !asks(&net, &receiver, "s2"));
    let path = |host: &str| format!("/run/netns/{}'", net.name(host));
    let said = reload(&mut receiver, &path("s1"), &path("s2"));
    assert!(said.contains("changed=\"namespaces\"") && said.lines().count() == 1, "{said}");
    wait_until(&mut receiver, "it is not entered", |receiver| entered(&net, receiver) == ["s2"]);
    assert!(!asks(&net, &receiver, "s1") && asks(&net, &receiver, "s2"));

    // A reload cannot replace `[[namespaces]]` by another kind of scope. It logs one line, and nothing changes.
    let table = format!("[[namespaces]]\npath = '{}\n", path("s2"));
    reload(&mut receiver, &table, "");
    wait_until(&mut receiver, "nothing is said", |receiver| receiver.log().contains("restart-needed"));
    assert!(receiver.log().contains("event=\"restart-needed\" keys=\"namespaces\""), "{}", receiver.log());
    assert!(asks(&net, &receiver, "s2"), "{}", receiver.log());
}

#[test]
fn a_reload_adds_an_interface_in_a_namespace() {
    let Some(net) = network() else { return };
    let _switch = Agent::switch(&net, "100mbit");
    let mut sender = Agent::sender(&net, "all", &[("s1", "r")]);
    reload(&mut sender, "interfaces = [\"r\"]", "interfaces = [\"x\", \"r\"]");
    wait_until(&mut sender, "it is not missed", |sender| count(&net, sender, "interface-missing", "s1") == 1);
    net.says("s1", "ip link add x type veth peer name y");
    let present = |sender: &Agent| status(sender).interfaces.iter().filter(|i| i.present).count();
    wait_until(&mut sender, "it is not taken", |sender| present(sender) == 2);
    reload(&mut sender, "interfaces = [\"x\", \"r\"]", "interfaces = []");
    wait_until(&mut sender, "they are still there", |sender| status(sender).interfaces.is_empty());
}

/// Returns the effective and permitted capabilities of each matching thread of the agent.
fn capabilities(agent: &Agent, is_it: impl Fn(i32, &str) -> bool) -> Vec<(u64, u64)> {
    let of = |task: fs::DirEntry| {
        let name = fs::read_to_string(task.path().join("comm")).ok()?;
        let status = fs::read_to_string(task.path().join("status")).ok()?;
        let mask = |key| {
            let line = status.lines().find_map(|line| line.strip_prefix(key))?;
            u64::from_str_radix(line.trim(), 16).ok()
        };
        let number = task.file_name().to_str()?.parse().ok()?;
        is_it(number, name.trim()).then_some((mask("CapEff:")?, mask("CapPrm:")?))
    };
    let tasks = fs::read_dir(format!("/proc/{}/task", agent.pid())).expect("threads");
    tasks.flatten().filter_map(of).collect()
}

/// Only the main thread keeps the privilege to enter namespaces, and only with `[[namespaces]]`. The thread that enters
/// namespaces exists only for a moment, and makes the privilege effective.
#[test]
fn the_privilege_to_enter_namespaces_is_in_reserve_with_namespaces_only() {
    let Some(net) = network() else { return };
    let netns = net.name("s1");
    // The mask `running` has CAP_NET_ADMIN and CAP_BPF. The mask `entering` has CAP_SYS_ADMIN
    // (include/uapi/linux/capability.h).
    let (running, entering) = (1 << 12 | 1 << 39, 1 << 21);
    let with = format!("[receiver]\n[[namespaces]]\npath = '/run/netns/{netns}'\n");
    let without = format!("[receiver]\nnetns = '{netns}'\n");
    for (config, reserve) in [(with, entering), (without, 0)] {
        let agent = Agent::start("receiver", &config);
        let main = agent.pid().as_raw();
        assert_eq!(capabilities(&agent, |number, _| number == main), [(running, running | reserve)]);
        let others = capabilities(&agent, |number, name| number != main && name != "namespaces");
        assert!(!others.is_empty() && others.iter().all(|caps| *caps == (running, running)), "{others:x?}");
    }
}

/// Attaches as many programs as possible at the egress of an interface of this host: one less than Linux's
/// BPF_MPROG_MAX.
fn fill(net: &Net, host: &str, interface: &str) -> Vec<OwnedFd> {
    net.inside(host, || {
        // r0 = -1 (TCX_NEXT); exit
        let instructions = [
            libbpf_sys::bpf_insn { code: 0xb7, imm: -1, ..Default::default() },
            libbpf_sys::bpf_insn { code: 0x95, ..Default::default() },
        ];
        let index = nix::net::if_::if_nametoindex(interface).expect("the interface") as i32;
        // A program can be attached only once, so each link needs its own program.
        let attach = |_| {
            let (kind, options) = (libbpf_sys::BPF_PROG_TYPE_SCHED_CLS, std::ptr::null_mut());
            let (name, licence) = (c"other".as_ptr(), c"GPL".as_ptr());
            let (code, len) = (instructions.as_ptr(), instructions.len() as _);
            // SAFETY: the array has `len` instructions, and name and licence end with NUL. The options may be null.
            let program =
                owned(unsafe { libbpf_sys::bpf_prog_load(kind, name, licence, code, len, options) });
            let (at, options) = (libbpf_sys::BPF_TCX_EGRESS, std::ptr::null());
            // SAFETY: the descriptor is valid. The options may be null.
            owned(unsafe { libbpf_sys::bpf_link_create(program.as_raw_fd(), index, at, options) })
        };
        (0..63).map(attach).collect()
    })
}

fn owned(fd: i32) -> OwnedFd {
    assert!(fd >= 0, "{}", std::io::Error::from_raw_os_error(-fd));
    // SAFETY: the kernel has just opened the descriptor, and nothing else owns it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

#[test]
fn an_interface_that_the_kernel_refuses_is_tried_again_and_the_rest_works() {
    let Some(net) = network() else { return };
    let _switch = Agent::switch(&net, "100mbit");
    let full = fill(&net, "s1", "r");
    let mut sender = Agent::sender(&net, "all", &[("s1", "r"), ("s2", "r")]);
    assert_eq!(held(&net, &sender), ["s2"]);
    assert_in_use(&net, &mut sender, 2, 5001);
    let said = |sender: &Agent| count(&net, sender, "interface-refused", "s1");
    assert_eq!(said(&sender), 1, "{}", sender.log());
    let reason = "attaching to an interface (tcx): Numerical result out of range (os error 34); an interface can have at most 63 programs";
    assert!(sender.log().contains(reason), "{}", sender.log());
    let shown = narrows_lab::says(&format!("{PROGRAM} status --name {}", sender.name)).expect("a status");
    assert!(shown.contains(&format!("/run/netns/{}: refused ({reason}", net.name("s1"))), "{shown}");

    // The interface returns, and has room for programs.
    net.says("s1", "ip link del dev r");
    drop(full);
    wait_until(&mut sender, "not missed", |sender| count(&net, sender, "interface-missing", "s1") == 1);
    connect(&net, 1);
    wait_until(&mut sender, "it is not taken", |sender| held(&net, sender) == ["s1", "s2"]);
    assert_in_use(&net, &mut sender, 1, 5002);

    // The interface returns, but has no room for programs until later.
    net.says("s1", "ip link set dev r name elsewhere");
    wait_until(&mut sender, "it is still there", |sender| held(&net, sender) == ["s2"]);
    let full = fill(&net, "s1", "elsewhere");
    net.says("s1", "ip link set dev elsewhere name r");
    wait_until(&mut sender, "it is not refused", |sender| said(sender) == 2);
    drop(full);
    wait_until(&mut sender, "it is not taken", |sender| held(&net, sender) == ["s1", "s2"]);
    assert_eq!(said(&sender), 2, "{}", sender.log());
    assert_eq!(count(&net, &sender, "interface-back", "s1"), 2, "{}", sender.log());
}

/// A renamed or moved interface loses the program. The interface that now has the configured name gets the program.
#[test]
fn the_name_decides_which_interface_is_used() {
    let Some(net) = network() else { return };
    let _switch = Agent::switch(&net, "100mbit");
    let mut sender = Agent::sender(&net, "all", &[("s1", "r"), ("s2", "r")]);
    let index = |host: &str| net.inside(host, || nix::net::if_::if_nametoindex("r")).expect("the interface");
    // The interface moves to another host's namespace. A new interface with the same name and ifindex takes its place.
    let before = index("s1");
    sender.signal(nix::sys::signal::Signal::SIGSTOP);
    let (there, peer) = (net.name("c"), net.name("s1"));
    net.says("s1", &format!("ip link set dev r netns {there} name moved"));
    must(&format!("ip -n {} link del dev s1", net.name("r")));
    net.says(
        "s1",
        &format!("ip link add name r index {before} type veth peer name s1 netns {}", net.name("r")),
    );
    must(&format!("ip -n {peer} link set r up"));
    must(&format!("ip -n {} link set s1 up", net.name("r")));
    net.attach_sender("s1", "r", 1);
    sender.signal(nix::sys::signal::Signal::SIGCONT);
    assert_eq!(index("s1"), before);
    let asked = clock::now();
    wait_until(&mut sender, "no look", |sender| status(sender).at > asked);
    assert_in_use(&net, &mut sender, 1, 5001);
}
