//! Builds the switch's snapshots for `status`, `top` and Prometheus.

use std::net::SocketAddr;

use narrows_control::rate::aggregate::Aggregated;
use narrows_control::rate::{LEAVES, Leaf};
use narrows_control::units::{Bytes, Rate, Span, Time};

use super::core::{Flow, Switch};
use super::table::{FlowTable, Orders};
use crate::dataplane::layout;
use crate::dataplane::ports::Counters;
use crate::htb::LeafStats;
use crate::status::{FlowStatus, LEAF_NAMES, LeafStatus, PortStatus};

/// Rates of flows, computed from the bytes of two consecutive snapshots.
#[derive(Default)]
pub(super) struct Meters {
    at: Time,
    /// The last snapshot of each slot's flow.
    last: Vec<Last>,
}

/// A flow at a snapshot.
#[derive(Clone, Copy)]
struct Last {
    /// When the flow's slot was opened. If the time differs, the slot has another flow now.
    opened: Time,
    bytes: u64,
    rate: Rate,
}

/// Shortest time between two snapshots. Rates over a shorter time would be inaccurate.
const LEAST: Span = Span::from_millis(200);

impl Meters {
    /// Takes a snapshot of all flows, unless the last one is younger than [`LEAST`].
    pub(super) fn look<T: FlowTable>(&mut self, now: Time, switch: &Switch<T>) {
        let span = now.since(self.at);
        if span < LEAST {
            return;
        }
        self.at = now;
        let nothing = Last { opened: Time::ZERO, bytes: 0, rate: Rate::ZERO };
        self.last.resize(switch.table().capacity() as usize, nothing);
        for flow in switch.flows() {
            if let Some(last) = self.last.get_mut(flow.slot as usize) {
                last.rate = mean_rate(last, &flow, span, now);
                (last.opened, last.bytes) = (flow.opened, flow.bytes);
            }
        }
    }

    /// Returns a flow's rate, or zero if the last snapshot lacks the flow.
    pub(super) fn of(&self, flow: &Flow) -> Rate {
        let last = self.last.get(flow.slot as usize).filter(|last| last.opened == flow.opened);
        last.map_or(Rate::ZERO, |last| last.rate)
    }
}

/// Returns a flow's mean rate since the last snapshot, `span` ago, or since its opening if that snapshot lacks the flow.
fn mean_rate(last: &Last, flow: &Flow, span: Span, now: Time) -> Rate {
    let (from, over) = if last.opened == flow.opened {
        (last.bytes, span)
    } else {
        (flow.bytes_at_opening, now.since(flow.opened).max(LEAST))
    };
    Rate::of(Bytes::new(flow.bytes.saturating_sub(from)), over)
}

/// Values of a flow for the status snapshot and for the SDN controller's list.
pub(super) struct Seen {
    pub(super) rated: bool,
    pub(super) leaf: Leaf,
    pub(super) allocation: Option<Rate>,
    pub(super) rtt: Option<Span>,
}

impl Seen {
    pub(super) fn of(flow: &Flow) -> Seen {
        let Orders { code, leaf, rtt_us } = flow.orders;
        Seen {
            rated: matches!(leaf, Leaf::Mouse | Leaf::Elephant),
            leaf,
            allocation: code.decode(),
            rtt: (rtt_us > 0).then(|| Span::from_micros(u64::from(rtt_us))),
        }
    }
}

/// Returns the snapshot of a flow.
pub(super) fn flow(flow: &Flow, interface: &str, rate: Rate, queued: &[LeafStats; LEAVES]) -> FlowStatus {
    let Seen { rated, leaf, allocation, rtt } = Seen::of(flow);
    FlowStatus {
        port: interface.to_owned(),
        source: SocketAddr::new(flow.key.saddr, flow.key.sport).to_string(),
        destination: SocketAddr::new(flow.key.daddr, flow.key.dport).to_string(),
        class: if rated { "rated" } else { "other" }.to_owned(),
        leaf: LEAF_NAMES[leaf as usize].to_owned(),
        allocation,
        rate,
        rtt,
        queued_packets: queued[flow.orders.leaf as usize].queued_packets,
        since: flow.opened,
    }
}

/// Returns the snapshot of a port, without flows and the program's counters. On a switch without state per flow, the
/// controller estimates the number of flows that apply rates.
pub(super) fn port(
    interface: &str,
    controller: &dyn Aggregated,
    keeps_flows: bool,
    stats: &[LeafStats; LEAVES],
    shares: [Rate; 3],
    congestion: &str,
) -> PortStatus {
    let (mut capacity, mut congested, mut subscribers) = (0.0, false, None);
    let mut counted = 0;
    controller.trace(&mut |name, value| match name {
        "link" => capacity = value,
        "congested" => congested = value > 0.0,
        "flows" if !keeps_flows => counted = (value + 0.5) as u64,
        "subscribers" => subscribers = Some(value as u64),
        _ => {}
    });
    let leaf = |stats: &LeafStats| LeafStatus {
        bytes: Bytes::new(stats.bytes),
        packets: stats.packets,
        queued_packets: stats.queued_packets,
        queued_bytes: Bytes::new(u64::from(stats.queued_bytes)),
        drops: u64::from(stats.drops),
    };
    PortStatus {
        interface: interface.to_owned(),
        capacity: Rate::from_f64(capacity),
        shares,
        phase: if congested { "congested" } else { "normal" }.to_owned(),
        congestion: congestion.to_owned(),
        subscribers,
        leaves: stats.map(|stats| leaf(&stats)),
        flows: [0, counted, 0, 0],
        ..PortStatus::default()
    }
}

/// Returns the program's counters with their names.
pub(super) fn counters(counters: &Counters) -> Vec<(String, u64)> {
    let unopened = UNOPENED.iter().map(|kind| kind.name).zip(counters.unopened);
    let counters = [
        ("udp_policed", counters.udp_policed),
        ("stamped", counters.stamped),
        ("inserted", counters.inserted),
        ("lower_passed", counters.lower_passed),
        ("no_room", counters.no_room),
        ("with_data", counters.with_data),
        ("malformed", counters.malformed),
        ("no_slot", counters.no_slot),
        ("refused", counters.refused),
        ("syns", counters.syns),
        ("watchdog", counters.watchdog),
        ("syn_policed", counters.syn_policed),
        ("implausible", counters.implausible),
        ("unconfirmed", u64::from(counters.unconfirmed)),
        ("reports", layout::whole_reports(counters.reports)),
        ("designating_syns", counters.designating_syns),
    ];
    counters.into_iter().chain(unopened).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// A kind of packets that may contain flows that the program does not see.
pub(super) struct Unopened {
    /// The counter's name.
    pub(super) name: &'static str,
    /// The name in log messages.
    pub(super) encapsulation: &'static str,
    /// Advice to an operator who wants the agent to control these flows.
    pub(super) advice: &'static str,
}

const fn closed(name: &'static str, encapsulation: &'static str) -> Unopened {
    Unopened { name, encapsulation, advice: "control a port where these flows are outside of the tunnel" }
}

/// All kinds, in the order of the program's counters (`enum nrw_unopened`).
pub(super) const UNOPENED: [Unopened; layout::UNOPENED] = [
    closed("unopened_vlans", "more than two VLAN tags"),
    closed("unopened_mpls", "MPLS"),
    closed("unopened_pppoe", "PPPoE with compression or several links"),
    Unopened {
        name: "unopened_gtp",
        encapsulation: "GTP-U",
        advice: "set gtp = true in [switch], and send GTP-U without fragments and without segmentation offload",
    },
    closed("unopened_vxlan", "VXLAN or Geneve"),
    closed("unopened_ip", "IP in IP"),
    closed("unopened_gre", "GRE"),
    closed("unopened_ipsec", "IPsec"),
];

#[cfg(test)]
mod tests {
    use narrows_control::feedback::code::RateCode;
    use narrows_control::rate::{FlowKey, Proto};

    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn flow(opened: Time, bytes_at_opening: u64, bytes: u64) -> Flow {
        let address = "10.0.0.1".parse().expect("an address");
        let key = FlowKey { saddr: address, daddr: address, sport: 1, dport: 2, proto: Proto::Tcp };
        let orders = Orders { code: RateCode::UNASSIGNED, leaf: Leaf::Elephant, rtt_us: 0 };
        Flow { slot: 0, key, port: 0, orders, bytes, opened, bytes_at_opening, known: true }
    }

    fn last(opened: Time, bytes: u64) -> Last {
        Last { opened, bytes, rate: Rate::from_bits_per_sec(800) }
    }

    #[test]
    fn the_first_snapshot_of_a_flow_gives_its_rate_since_its_opening() {
        // The machine has run for an hour, and the flow for 2 s. No snapshot was taken before.
        let (now, opened) = (at(3_600_000), at(3_598_000));
        let (nothing, hour) = (last(Time::ZERO, 0), now.since(Time::ZERO));
        let rate = mean_rate(&nothing, &flow(opened, 0, 2_500_000), hour, now);
        assert_eq!(rate, Rate::from_bits_per_sec(10_000_000));
        // Between the snapshots of the same flow, only the bytes since the earlier snapshot count.
        let rate = mean_rate(&last(opened, 2_500_000), &flow(opened, 0, 3_000_000), Span::from_secs(1), now);
        assert_eq!(rate, Rate::from_bits_per_sec(4_000_000));
        // For a flow that has just opened, the rate is computed over at least `LEAST`, so that a few packets do not
        // give a high rate.
        let young = mean_rate(&nothing, &flow(at(3_599_999), 0, 2_500), hour, now);
        assert_eq!(young, Rate::of(Bytes::new(2_500), LEAST));
    }

    #[test]
    fn bytes_before_the_opening_do_not_count() {
        let (now, opened) = (at(3_600_000), at(3_598_000));
        let old = flow(opened, 10_000_000_000, 10_002_500_000);
        let rate = mean_rate(&last(Time::ZERO, 0), &old, now.since(Time::ZERO), now);
        assert_eq!(rate, Rate::from_bits_per_sec(10_000_000));
    }

    #[test]
    fn a_new_flow_in_a_used_slot_does_not_have_the_rate_of_the_earlier_flow() {
        let meters = Meters { at: at(1000), last: vec![last(at(10), 500)] };
        assert_eq!(meters.of(&flow(at(10), 0, 900)), Rate::from_bits_per_sec(800));
        assert_eq!(meters.of(&flow(at(1001), 0, 0)), Rate::ZERO);
    }
}
