//! What an agent shows of itself: one [`Snapshot`], which the control loop fills and everyone else reads.
//!
//! `narrows-agent status` and `top` ask for it over a Unix socket ([`server`], [`client`]), Prometheus over HTTP
//! ([`crate::metrics`]). The loop builds it only when somebody looks: [`Board::wanted`].

pub mod client;
mod histogram;
pub mod server;
pub mod text;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use narrows_control::rate::LEAVES;
use narrows_control::units::{Bytes, Rate, Span, Time};
use serde::{Deserialize, Serialize};

pub(crate) use histogram::BOUNDS_US;
pub use histogram::LoopTimes;

/// Names of the leaves in output, in the order of `narrows_control::rate::Leaf`.
pub const LEAF_NAMES: [&str; LEAVES] = ["mouse", "elephant", "other-tcp", "udp"];

/// An agent at one moment. In JSON times are ns, rates bytes/s (L3), sizes bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// `switch`, `sender` or `receiver`.
    pub role: String,
    /// Name of the agent.
    pub name: String,
    /// When it was taken (CLOCK_MONOTONIC).
    pub at: Time,
    /// When the agent started.
    pub started: Time,
    /// How long turns of the control loop took.
    pub loop_times: LoopTimes,
    /// Controlled ports.
    pub ports: Vec<PortStatus>,
    /// Flows in the table, all ports together; more than `flows` may list.
    pub flow_count: u64,
    /// The flows, when they were asked for.
    pub flows: Vec<FlowStatus>,
    /// Counters of a sender or receiver: name, value.
    pub counters: Vec<(String, u64)>,
    /// Whether the SDN controller is connected; `None`: there is none to be connected to.
    pub controller: Option<bool>,
}

/// A controlled port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PortStatus {
    /// Its interface.
    pub interface: String,
    /// Rate of the link, told or measured.
    pub capacity: Rate,
    /// Shares of rated flows, other TCP, UDP.
    pub shares: [Rate; 3],
    /// Phase of the rate controller, e.g. `measure`.
    pub phase: String,
    /// `none`, `queue` or `burst`.
    pub congestion: String,
    /// Flows by leaf.
    pub flows: [u64; LEAVES],
    /// Queue of each leaf.
    pub leaves: [LeafStatus; LEAVES],
    /// Counters of the data plane: name (as in `struct nrw_port`), value.
    pub counters: Vec<(String, u64)>,
}

/// A leaf of a port's queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeafStatus {
    /// Bytes that left.
    pub bytes: Bytes,
    /// Packets that left.
    pub packets: u64,
    /// Packets that wait.
    pub queued_packets: u32,
    /// Bytes that wait.
    pub queued_bytes: Bytes,
    /// Packets that found no room.
    pub drops: u64,
}

/// A flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowStatus {
    /// Interface of its port.
    pub port: String,
    /// Source of the data, `address:port`.
    pub source: String,
    /// Destination of the data.
    pub destination: String,
    /// `rated` or `other`.
    pub class: String,
    /// Leaf of the port's queue, one of [`LEAF_NAMES`].
    pub leaf: String,
    /// What it may send; `None`: not told anything.
    pub allocation: Option<Rate>,
    /// What it sends.
    pub rate: Rate,
    /// Round-trip time; `None`: not known yet.
    pub rtt: Option<Span>,
    /// Packets that wait in its leaf.
    pub queued_packets: u32,
    /// When its first packet was seen.
    pub since: Time,
}

/// Where the loop puts snapshots and others find them.
#[derive(Debug, Default)]
pub struct Board {
    latest: Mutex<Arc<Snapshot>>,
    /// Until when (ns of the monotonic clock) somebody looks, without and with flows.
    wanted: AtomicU64,
    flows_wanted: AtomicU64,
    /// Rates of links that the loop has not taken yet.
    rates: Mutex<BTreeMap<String, Rate>>,
}

/// What a look at the board is worth: the loop keeps on publishing for this long.
const INTEREST: Span = Span::from_secs(20);

impl Board {
    /// An empty board.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// For the loop: shows this from now on.
    pub fn publish(&self, snapshot: Snapshot) {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(snapshot);
    }

    /// For the loop: `(a snapshot, with flows)` would be read if it were published now.
    pub fn wanted(&self, now: Time) -> (bool, bool) {
        let until = |mark: &AtomicU64| mark.load(Ordering::Relaxed) > now.as_nanos();
        (until(&self.wanted) || until(&self.flows_wanted), until(&self.flows_wanted))
    }

    /// For those who know better: the links behind these interfaces have these rates now.
    pub fn ask_rates(&self, rates: BTreeMap<String, Rate>) {
        self.rates.lock().unwrap_or_else(PoisonError::into_inner).extend(rates);
    }

    /// For the loop: rates that were asked for since the last call.
    pub fn take_rates(&self) -> BTreeMap<String, Rate> {
        std::mem::take(&mut *self.rates.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// For readers: the latest snapshot. Tells the loop that somebody looks.
    pub fn look(&self, now: Time, flows: bool) -> Arc<Snapshot> {
        let mark = if flows { &self.flows_wanted } else { &self.wanted };
        mark.fetch_max((now + INTEREST).as_nanos(), Ordering::Relaxed);
        Arc::clone(&self.latest.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_handed_to_the_loop_once_and_the_last_one_counts() {
        let board = Board::new();
        for mbit in [50, 80] {
            let rate = Rate::from_bits_per_sec(mbit * 1_000_000);
            board.ask_rates(BTreeMap::from([("eth1".to_owned(), rate)]));
        }
        let taken: Vec<_> = board.take_rates().into_iter().collect();
        assert_eq!(taken, [("eth1".to_owned(), Rate::from_bits_per_sec(80_000_000))]);
        assert!(board.take_rates().is_empty());
    }

    #[test]
    fn the_loop_is_told_who_looks_and_for_how_long() {
        let board = Board::new();
        let now = Time::from_nanos(1_000_000_000);
        assert_eq!(board.wanted(now), (false, false));
        board.look(now, false);
        assert_eq!(board.wanted(now), (true, false));
        board.look(now, true);
        assert_eq!(board.wanted(now), (true, true));
        assert_eq!(board.wanted(now + INTEREST), (false, false));
        board.publish(Snapshot { flow_count: 7, ..Snapshot::default() });
        assert_eq!(board.look(now, false).flow_count, 7);
    }
}
