//! State of flows during a run. The hosts' threads write this state, and the sampler reads it.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use narrows_control::units::Time;
use rustc_hash::FxHashMap;

use crate::sample::{EbpfMaps, Reported, TcpInfo};

/// Value of a [`Moment`] that is not set.
const NOT_SET: u64 = u64::MAX;

/// A time that can be set only once. Further calls of [`Moment::set`] have no effect.
#[derive(Debug)]
pub(crate) struct Moment(AtomicU64);

impl Default for Moment {
    fn default() -> Self {
        Moment(AtomicU64::new(NOT_SET))
    }
}

impl Moment {
    pub(crate) fn set(&self, time: Time) {
        let _ = self.0.compare_exchange(NOT_SET, time.as_nanos(), Ordering::Release, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> Option<Time> {
        Some(self.0.load(Ordering::Acquire)).filter(|&t| t != NOT_SET).map(Time::from_nanos)
    }
}

/// State of a flow that the emulator itself sends.
#[derive(Debug, Default)]
pub(crate) struct FlowBoard {
    /// The sender's socket, while it is open.
    socket: Mutex<Option<Arc<OwnedFd>>>,
    /// The kernel's most recent statistics of the connection.
    last: Mutex<Option<TcpInfo>>,
    /// Time just before the sender called connect().
    pub(crate) started: Moment,
    /// Time at which the sender learned that all data was acknowledged.
    pub(crate) sender_done: Moment,
    /// Time at which the receiver read the end of the stream.
    pub(crate) receiver_done: Moment,
    /// Number of application bytes that the receiver has read.
    pub(crate) delivered: AtomicU64,
    /// Number of datagrams that a UDP sender has sent.
    pub(crate) sent_packets: AtomicU64,
    /// Whether the connection was refused or aborted.
    pub(crate) failed: AtomicBool,
    /// The reason why the connection failed.
    pub(crate) reason: OnceLock<String>,
}

impl FlowBoard {
    pub(crate) fn set_socket(&self, socket: Arc<OwnedFd>) {
        if let Ok(mut slot) = self.socket.lock() {
            *slot = Some(socket);
        }
    }

    /// Reads the kernel's statistics a last time and releases the sender's socket.
    pub(crate) fn clear_socket(&self) {
        self.sample();
        if let Ok(mut slot) = self.socket.lock() {
            *slot = None;
        }
    }

    /// Records that the connection has failed.
    pub(crate) fn fail(&self, why: impl ToString) {
        let _ = self.reason.set(why.to_string());
        self.failed.store(true, Ordering::Relaxed);
    }

    /// Returns the kernel's current statistics of the connection, or the last statistics if the socket is closed.
    pub(crate) fn sample(&self) -> Option<TcpInfo> {
        let socket = self.socket.lock().ok()?.clone();
        let mut last = self.last.lock().ok()?;
        if let Some(info) = socket.and_then(|s| TcpInfo::of(&*s).ok()) {
            *last = Some(info);
        }
        *last
    }

    /// Returns the state of the congestion controller, if its socket is open. `maps`: the maps of the controller, if it
    /// is in eBPF.
    pub(crate) fn reported(&self, maps: Option<&EbpfMaps>) -> Option<Reported> {
        let socket = self.socket.lock().ok()?.clone()?;
        Reported::of(&*socket, maps)
    }
}

/// Maps connections to flows, for the receivers. A key consists of the flow's index in the spec and the sender's port.
#[derive(Debug, Default)]
pub(crate) struct Registry(Mutex<FxHashMap<(usize, u16), Arc<FlowBoard>>>);

impl Registry {
    pub(crate) fn insert(&self, spec: usize, port: u16, board: &Arc<FlowBoard>) {
        if let Ok(mut map) = self.0.lock() {
            map.insert((spec, port), board.clone());
        }
    }

    pub(crate) fn find(&self, spec: usize, port: u16) -> Option<Arc<FlowBoard>> {
        self.0.lock().ok()?.get(&(spec, port)).cloned()
    }
}
