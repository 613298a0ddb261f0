//! State of flows during a run. The hosts' threads write this state, and the sampler reads it.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use narrows_control::units::Time;
use rustc_hash::FxHashMap;

use crate::sample::TcpInfo;

/// A time that is not set.
const NOT_SET: u64 = u64::MAX;

/// A time that is set once.
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

/// A flow of the emulator.
#[derive(Debug, Default)]
pub(crate) struct FlowBoard {
    /// The sender's socket, while it is open.
    socket: Mutex<Option<Arc<OwnedFd>>>,
    /// The kernel's most recent statistics of the connection.
    last: Mutex<Option<TcpInfo>>,
    /// Three times: when connect() was called, when all data was acknowledged, and when the last byte arrived.
    pub(crate) started: Moment,
    pub(crate) sender_done: Moment,
    pub(crate) receiver_done: Moment,
    /// Application bytes that the receiver has read, in order.
    pub(crate) delivered: AtomicU64,
    /// UDP: datagrams sent.
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
}

/// Finds a connection's flow at the receiver. The key is the index of the flow in the spec and the sender's
/// port.
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
