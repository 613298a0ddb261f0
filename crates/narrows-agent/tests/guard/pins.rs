//! Tests of the parts of a data plane that remain after their agent has ended.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;

use narrows_agent::bpffs;
use narrows_agent::htb::Rtnl;
use narrows_agent::status::server::path_of;
use narrows_control::rate::Leaf;
use narrows_lab::{mount_bpffs, with_own_mounts};

use super::agent::{Agent, htb_of, patience, run};
use super::{PROGRAM, kernel};

/// The agent takes over a pinned data plane, but not the BPF link of a port that has vanished.
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
            // The port vanishes once while the agent runs, and once while no agent runs.
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

/// By default, the next agent takes over the data plane of a dead agent. If the agent is stopped instead of killed, all
/// its objects are removed.
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
            let pins = Path::new(bpffs::AGENTS).join(&switch.name);
            let kept = || (htb_of(&lab, "a"), htb_of(&lab, "y"), pins.join("program").exists());
            assert_eq!(kept(), (true, true, true), "{}", switch.said());
            switch.kill_with_guardian();
            assert_eq!(kept(), (true, true, true));
            switch.restart();
            assert_eq!(switch.said().matches("event=\"taken-over\"").count(), 1, "{}", switch.said());

            // The next agent has other ports, so it cannot take over the data plane of the killed agent.
            switch.kill_with_guardian();
            switch.configure(&(port("y", "20mbit") + &port("a", "10mbit")));
            switch.restart();
            assert!(switch.said().contains("event=\"pins-removed\""), "{}", switch.said());
            assert_eq!(switch.present(), ["y", "a"]);

            // With `pin = false`, the agent removes the pinned data plane. Otherwise, the programs of both data planes
            // would write into each packet.
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
            assert!(!Path::new(bpffs::AGENTS).exists() && !path_of(&switch.name).exists());
        })
    })
    .unwrap();
}

/// Without a bpffs, nothing is pinned by default, and the guardian removes the objects of a dead agent.
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

            let elsewhere = switch.folder.path().join("pins");
            switch.configure(&format!("pin = {elsewhere:?}\n[[ports]]\ninterface = 'a'\nrate = '10mbit'"));
            let config = switch.folder.path().join("config");
            let done = Command::new(PROGRAM).args(["switch".as_ref(), config.as_path()]).output().unwrap();
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            let reason = "pin: found a folder that is not in a bpffs, expected one below /sys/fs/bpf";
            assert_eq!(said, format!("narrows-agent: {}: {reason}\n", elsewhere.display()));
            assert_eq!((done.status.code(), elsewhere.exists(), htb_of(&lab, "a")), (Some(2), false, false));
        })
    })
    .unwrap();
}

/// A deleted interface returns with the same name and ifindex, as with a recreated container. The pinned link belongs
/// to the old interface, so the agent must attach the program again.
#[test]
fn an_interface_that_was_made_again_after_the_agents_death_gets_the_program() {
    let Some(lab) = kernel::lab() else { return };
    with_own_mounts(|| {
        mount_bpffs();
        lab.here().run(|| {
            let mut switch = Agent::start("switch", "[[ports]]\ninterface = 'a'\nrate = '10mbit'");
            switch.kill_with_guardian();
            let index = Rtnl::open().unwrap().link("a").unwrap().index;
            run("ip link del dev a");
            run(&format!("ip link add name a index {index} type veth peer name a-peer"));
            switch.restart();
            assert!(switch.said().contains("event=\"taken-over\""), "{}", switch.said());

            run("ip link set dev a up");
            run("ip link set dev a-peer up");
            run("ip address add 10.9.9.1/24 dev a");
            run("ip neighbour add 10.9.9.2 lladdr 02:00:00:00:00:02 dev a");
            UdpSocket::bind("10.9.9.1:0").unwrap().send_to(b"datagram", "10.9.9.2:9").unwrap();
            let sent = || switch.status().unwrap().ports[0].leaves[Leaf::Udp as usize].packets;
            assert!(patience(|| sent() == 1), "without the program the packet is in another class");
        })
    })
    .unwrap();
}
