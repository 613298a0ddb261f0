//! Makes two network namespaces with a veth pair for a test, and removes them afterwards.

use narrows_agent::netns::Netns;
use narrows_lab::{Hosts, Need, Room, can_run};

/// Two namespaces with a veth pair: one has the end `a` (10.99.0.1), the other has the end `b` (10.99.0.2).
pub(crate) struct Lab(Hosts);

/// Returns a lab, or `None` if this machine cannot run the test. With NARROWS_REQUIRE_KERNEL=1, the test fails on such
/// a machine.
pub(crate) fn lab() -> Option<Lab> {
    if !can_run(&[Need::Root, Need::Tool("ip -V"), Need::Tool("tc -V"), Need::Tool("nsenter -V")]) {
        return None;
    }
    let mut hosts = Hosts::new("nwcore", Room::Whole);
    hosts.add("a");
    hosts.add("b");
    // With fixed addresses and without IPv6, only packets of the test are sent.
    let (mac_a, mac_b) = ("02:00:00:00:00:01", "02:00:00:00:00:02");
    hosts.ip(
        "a",
        &format!(
            "link add name a address {mac_a} type veth peer name b address {mac_b} netns {}",
            hosts.name("b")
        ),
    );
    for (end, address, peer, mac) in [("a", 1, 2, mac_b), ("b", 2, 1, mac_a)] {
        hosts.ip(end, &format!("address add 10.99.0.{address}/24 dev {end}"));
        hosts.ip(end, &format!("link set dev {end} addrgenmode none up"));
        hosts.ip(end, &format!("neigh add 10.99.0.{peer} lladdr {mac} dev {end} nud permanent"));
    }
    Some(Lab(hosts))
}

impl Lab {
    pub(crate) fn here(&self) -> Netns {
        Netns::named(&self.name())
    }

    pub(crate) fn name(&self) -> String {
        self.0.name("a")
    }

    /// Runs a command in the namespace of `a`. Returns its output, or `None` if it fails.
    #[allow(dead_code, reason = "each test program uses its part")]
    pub(crate) fn says(&self, command: &str) -> Option<String> {
        self.0.says("a", command).ok()
    }
}
