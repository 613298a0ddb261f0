//! Tests the pinned mode: the data plane and its flows outlive the agent.

use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use narrows_agent::clock;
use narrows_control::rate::Leaf;
use narrows_lab::patiently;
use nix::mount::{MntFlags, MsFlags, mount, umount2};

use super::agent::{Agent, counter, since};
use super::flow::{Flow, all_well, rates};
use super::net::{Forwarding, Net};

/// A bpffs for one test, because the machine may have none.
pub(crate) struct Bpffs(tempfile::TempDir);

impl Bpffs {
    /// Mounts a bpffs. Also returns a folder in it, for the switch's pins.
    pub(crate) fn with_pins() -> (Bpffs, PathBuf) {
        let bpffs = Bpffs::mount();
        let pins = bpffs.path().join("sw");
        (bpffs, pins)
    }

    fn mount() -> Bpffs {
        let folder = tempfile::tempdir().expect("a folder");
        mount(Some("none"), folder.path(), Some("bpf"), MsFlags::empty(), None::<&str>).expect("bpffs");
        Bpffs(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Bpffs {
    fn drop(&mut self) {
        // Pins vanish with their bpffs, and BPF links vanish with their pins.
        let _ = umount2(self.0.path(), MntFlags::MNT_DETACH);
    }
}

#[test]
fn a_pinned_data_plane_and_its_flows_outlive_the_agent() {
    patiently(|| {
        let Some(net) = Net::star(Forwarding::Router, 2) else { return };
        let (_bpffs, pin) = Bpffs::with_pins();
        let mut switch = Agent::switch_with(&net, "100mbit", &format!("pin = {pin:?}"), "");
        let _sender = Agent::sender(&net, "all", &[("s1", "r"), ("s2", "r")]);
        let flows = [Flow::from_sender(&net, 1, 5001), Flow::from_sender(&net, 2, 5002)];
        let both = [&flows[0], &flows[1]];
        both.iter().for_each(|flow| flow.wait_for_data());
        thread::sleep(Duration::from_secs(2));
        let before = switch.fresh();
        let sent_again = both.map(Flow::retransmissions);

        let killed = clock::now();
        switch.kill();
        thread::sleep(Duration::from_millis(300));
        assert!(net.says("r", "tc qdisc show dev c").contains("htb 4e57: root"), "HTB stays");
        let between = rates(&both, Duration::from_millis(300));
        switch.restart();
        let away = since(killed);
        thread::sleep(Duration::from_secs(1));
        let then = rates(&both, Duration::from_secs(2));
        let after = switch.fresh();
        println!(
            "agent away for {away:?}: meanwhile {between:.1?}, then {then:.1?} Mbit/s, flows {} -> {}, retransmissions {sent_again:?} -> {:?}",
            before.flow_count,
            after.flow_count,
            both.map(Flow::retransmissions)
        );
        all_well(&both);
        assert_eq!(after.flow_count, 2);
        for rate in between.iter().chain(&then) {
            assert!((rate - 46.7).abs() < 0.15 * 46.7, "{between:?} {then:?} {:#?}", after.flows);
        }
        drop(flows);
        drop(switch);
        // The data plane also survives a clean stop.
        assert!(net.says("r", "tc qdisc show dev c").contains("htb 4e57: root"));
        assert!(pin.join("program").exists());
        let cleaned = net.inside("r", || narrows_agent::clean::clean(Path::new("/nonexistent"), &pin));
        assert!(cleaned.failed.is_empty(), "{cleaned:?}");
        assert!(!pin.exists(), "{cleaned:?}");
        assert!(!net.says("r", "tc qdisc show dev c").contains("htb 4e57: root"), "{cleaned:?}");
    });
}

/// The next agent's tick is longer than the first agent's watchdog.
#[test]
fn a_pinned_data_plane_follows_the_watchdog_of_the_running_agent() {
    patiently(|| {
        let Some(net) = Net::star(Forwarding::Router, 1) else { return };
        let (_bpffs, pin) = Bpffs::with_pins();
        let more = format!("pin = {pin:?}\nwatchdog = \"60ms\"");
        let mut switch = Agent::switch_with(&net, "100mbit", &more, "");
        switch.kill();
        let text = fs::read_to_string(switch.config()).expect("a file");
        let new = "watchdog = \"9s\"\ntick = \"1s\"\nmax_flows = 100";
        fs::write(switch.config(), text.replace("watchdog = \"60ms\"", new)).expect("a file");
        switch.restart();
        let log = switch.log();
        assert!(log.contains("event=\"max-flows-kept\" wanted=100 pinned=131072"), "{log}");

        let (before, to) = (switch.port(), net.server(9, false));
        net.inside("s1", || {
            let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
            for _ in 0..50 {
                // If the receiver's port is closed, this call returns the error of an earlier datagram.
                let _ = socket.send_to(b"hello", to);
                thread::sleep(Duration::from_millis(20));
            }
        });
        let after = switch.port();
        let sent = after.leaves[Leaf::Udp as usize].packets - before.leaves[Leaf::Udp as usize].packets;
        let [missed, before] = [&after, &before].map(|port| counter(port, "watchdog"));
        println!("{sent} datagrams were handled, {} passed without the agent", missed - before);
        assert_eq!(missed, before);
        assert!(sent >= 50, "{sent}");
    });
}
