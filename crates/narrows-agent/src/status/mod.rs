//! The state of an agent as a [`Snapshot`]. The control loop fills the snapshot, and other threads read it.
//!
//! `narrows-agent status` and `top` request the snapshot over a Unix socket ([`server`], [`client`]), and Prometheus
//! requests it over HTTP ([`crate::metrics`]). After the first snapshot, the loop builds a snapshot only if a reader
//! wants it ([`Board::wanted`]).

pub mod client;
mod histogram;
pub mod server;
pub mod text;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use narrows_control::rate::LEAVES;
use narrows_control::units::{Bytes, Rate, Span, Time};
use serde::{Deserialize, Serialize};

pub(crate) use histogram::BOUNDS_US;
pub use histogram::LoopTimes;

/// Names of the leaves, in the order of `narrows_control::rate::Leaf`.
pub const LEAF_NAMES: [&str; LEAVES] = ["mouse", "elephant", "other-tcp", "udp"];

/// The state of an agent. In JSON, times are in ns, rates in bytes/s (L3) and sizes in bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// `switch`, `sender` or `receiver`.
    pub role: String,
    /// Name of the agent.
    pub name: String,
    /// Time of the snapshot (CLOCK_MONOTONIC).
    pub at: Time,
    /// Time when the agent started.
    pub started: Time,
    /// Durations of iterations of the control loop.
    pub loop_times: LoopTimes,
    /// Controlled ports.
    pub ports: Vec<PortStatus>,
    /// Interfaces of the configuration.
    #[serde(default)]
    pub interfaces: Vec<InterfaceStatus>,
    /// Network namespaces in `[[namespaces]]` of a sender or receiver.
    #[serde(default)]
    pub namespaces: Vec<NamespaceStatus>,
    /// Number of flows in the table, of all ports together. `flows` may list only some of them.
    pub flow_count: u64,
    /// The flows, if they were requested.
    pub flows: Vec<FlowStatus>,
    /// Counters of a sender or receiver, as name and value.
    pub counters: Vec<(String, u64)>,
    /// Whether the SDN controller is connected. `None`: no SDN controller is configured.
    pub controller: Option<bool>,
}

/// An interface of an agent's configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceStatus {
    /// Name of the interface.
    pub name: String,
    /// File of the interface's network namespace; `None`: the agent's own namespace.
    #[serde(default)]
    pub netns: Option<String>,
    /// Whether the interface is a controlled port.
    pub controlled: bool,
    /// Whether the interface exists and has the program.
    pub present: bool,
    /// Why an existing interface has no program; otherwise empty.
    #[serde(default)]
    pub refusal: String,
}

/// A network namespace of a host's configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceStatus {
    /// File of the namespace.
    pub path: String,
    /// Whether the namespace exists and the programs apply to it.
    pub present: bool,
    /// Why the programs do not apply to an existing namespace; otherwise empty.
    #[serde(default)]
    pub refusal: String,
}

/// A controlled port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PortStatus {
    /// Name of the port's interface.
    pub interface: String,
    /// Rate of the link, configured or measured.
    pub capacity: Rate,
    /// Shares of the link as rates, in the order rated flows, other TCP, UDP.
    pub shares: [Rate; 3],
    /// Phase of the rate controller, e.g. `measure`.
    pub phase: String,
    /// Kind of congestion: `none`, `queue` or `burst`.
    pub congestion: String,
    /// Number of subscribers, each with a share of the link. `None`: each flow has a share.
    #[serde(default)]
    pub subscribers: Option<u64>,
    /// Number of flows in each leaf.
    pub flows: [u64; LEAVES],
    /// Queue of each leaf.
    pub leaves: [LeafStatus; LEAVES],
    /// Counters of the data plane as name and value. The names are fields of `struct nrw_port`.
    pub counters: Vec<(String, u64)>,
}

/// A leaf of a port's queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeafStatus {
    /// Bytes sent.
    pub bytes: Bytes,
    /// Packets sent.
    pub packets: u64,
    /// Packets queued.
    pub queued_packets: u32,
    /// Bytes queued.
    pub queued_bytes: Bytes,
    /// Packets dropped because the queue was full.
    pub drops: u64,
}

/// A flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowStatus {
    /// Interface of the flow's port.
    pub port: String,
    /// Source of the data, `address:port`.
    pub source: String,
    /// Destination of the data, `address:port`.
    pub destination: String,
    /// Class of the flow: `rated` or `other`.
    pub class: String,
    /// Leaf of the port's queue, one of [`LEAF_NAMES`].
    pub leaf: String,
    /// Rate allocated to the flow, if any.
    pub allocation: Option<Rate>,
    /// Rate at which the flow sends.
    pub rate: Rate,
    /// Round-trip time, if known.
    pub rtt: Option<Span>,
    /// Number of queued packets in the flow's leaf.
    pub queued_packets: u32,
    /// Time of the flow's first packet.
    pub since: Time,
}

/// Passes snapshots from the control loop to readers.
#[derive(Debug, Default)]
pub struct Board {
    /// The latest snapshot, and the number of snapshots so far.
    latest: Mutex<(u64, Arc<Snapshot>)>,
    published: Condvar,
    /// Whether a reader waits for the next snapshot.
    next_wanted: AtomicBool,
    /// Until when the loop publishes snapshots (monotonic clock, ns): `wanted` is for snapshots without flows,
    /// `flows_wanted` for those with flows.
    wanted: AtomicU64,
    flows_wanted: AtomicU64,
    /// Requests for new rates that the loop has not read yet.
    rates: Mutex<Vec<RateRequest>>,
}

/// A request for new rates of links, which the loop must answer.
#[derive(Debug)]
pub struct RateRequest {
    /// The new rates, by interface.
    pub rates: BTreeMap<String, Rate>,
    answer: SyncSender<Result<(), String>>,
}

impl RateRequest {
    /// Answers the client. `Ok`: all rates apply. `Err`: none of the rates applies, and the text gives the reason.
    pub fn answer(self, answer: Result<(), String>) {
        // The client may have stopped waiting, which is no error.
        let _ = self.answer.try_send(answer);
    }
}

/// How long the loop publishes snapshots after [`Board::look`].
const INTEREST: Span = Span::from_secs(20);

impl Board {
    /// Creates an empty board.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Publishes a snapshot. For the control loop.
    pub fn publish(&self, snapshot: Snapshot) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        *latest = (latest.0 + 1, Arc::new(snapshot));
        self.next_wanted.store(false, Ordering::Relaxed);
        self.published.notify_all();
    }

    /// Returns whether readers want a snapshot now, and whether they want its flows. For the control loop.
    pub fn wanted(&self, now: Time) -> (bool, bool) {
        let until = |mark: &AtomicU64| mark.load(Ordering::Relaxed) > now.as_nanos();
        let any = until(&self.wanted) || self.next_wanted.load(Ordering::Relaxed);
        (any || until(&self.flows_wanted), until(&self.flows_wanted))
    }

    /// Requests new rates for the links of these interfaces, and waits for the loop's answer.
    ///
    /// # Errors
    /// If the loop refuses the rates, or does not answer within `patience`. The error is one line.
    pub fn request_rates(&self, rates: BTreeMap<String, Rate>, patience: Duration) -> Result<(), String> {
        if self.latest().ports.is_empty() {
            return Err("rates: found an agent that controls no port, expected a switch".into());
        }
        let (answer, answered) = sync_channel(1);
        self.rates.lock().unwrap_or_else(PoisonError::into_inner).push(RateRequest { rates, answer });
        answered.recv_timeout(patience).unwrap_or_else(|_| {
            Err("rates: the control loop does not answer; the new rates may still apply".into())
        })
    }

    /// Returns new requests for rates. For the control loop.
    pub fn take_rates(&self) -> Vec<RateRequest> {
        std::mem::take(&mut *self.rates.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the latest snapshot, and asks the control loop for further ones. For readers.
    pub fn look(&self, now: Time, flows: bool) -> Arc<Snapshot> {
        let mark = if flows { &self.flows_wanted } else { &self.wanted };
        mark.fetch_max((now + INTEREST).as_nanos(), Ordering::Relaxed);
        self.latest()
    }

    /// Returns the latest snapshot, which may be old. For readers.
    pub fn latest(&self) -> Arc<Snapshot> {
        Arc::clone(&self.latest.lock().unwrap_or_else(PoisonError::into_inner).1)
    }

    /// Waits for the next snapshot. Returns `None` if no snapshot is published within `patience`. One snapshot serves
    /// all waiting readers. For readers.
    pub fn fresh(&self, patience: Duration) -> Option<Arc<Snapshot>> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let before = latest.0;
        self.next_wanted.store(true, Ordering::Relaxed);
        let (latest, _) = self
            .published
            .wait_timeout_while(latest, patience, |latest| latest.0 == before)
            .unwrap_or_else(PoisonError::into_inner);
        (latest.0 != before).then(|| Arc::clone(&latest.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_control::rate::Leaf;

    #[test]
    fn the_leaves_have_their_names_on_the_wire() {
        for leaf in [Leaf::Mouse, Leaf::Elephant, Leaf::OtherTcp, Leaf::Udp] {
            assert_eq!(serde_json::to_value(leaf).unwrap(), LEAF_NAMES[leaf as usize]);
        }
    }

    #[test]
    fn the_loop_takes_a_request_for_rates_once_and_answers_it() {
        let (board, patience) = (Board::new(), Duration::from_secs(3600));
        let rates = BTreeMap::from([("eth1".to_owned(), Rate::from_bits_per_sec(80_000_000))]);
        assert!(board.request_rates(rates.clone(), patience).is_err(), "there is no port");
        board.publish(Snapshot { ports: vec![PortStatus::default()], ..Snapshot::default() });
        for answer in [Ok(()), Err("no".to_owned())] {
            let client = std::thread::spawn({
                let (board, rates) = (Arc::clone(&board), rates.clone());
                move || board.request_rates(rates, patience)
            });
            let mut taken = Vec::new();
            while taken.is_empty() {
                taken = board.take_rates();
            }
            assert!(board.take_rates().is_empty());
            let [request] = <[RateRequest; 1]>::try_from(taken).unwrap();
            assert_eq!(request.rates, rates);
            request.answer(answer.clone());
            assert_eq!(client.join().unwrap(), answer);
        }
    }

    #[test]
    fn the_loop_publishes_for_some_time_after_a_reader_has_looked() {
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

    #[test]
    fn a_waiting_reader_gets_the_next_snapshot_and_the_loop_publishes_it_once() {
        let (board, now) = (Board::new(), Time::from_nanos(1_000_000_000));
        board.publish(Snapshot { flow_count: 6, ..Snapshot::default() });
        assert_eq!(board.fresh(Duration::ZERO), None);
        let reader = std::thread::spawn({
            let board = Arc::clone(&board);
            move || board.fresh(Duration::from_secs(3600))
        });
        while !reader.is_finished() {
            if board.wanted(now) == (true, false) {
                board.publish(Snapshot { flow_count: 7, ..Snapshot::default() });
            }
        }
        assert_eq!(reader.join().unwrap().map(|snapshot| snapshot.flow_count), Some(7));
        assert_eq!(board.wanted(now), (false, false));
    }
}
