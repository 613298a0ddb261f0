//! What the ends of flows tell while they run; written by the hosts' threads, read by the sampler.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use narrows_control::units::Time;
use rustc_hash::FxHashMap;

use crate::sample::TcpInfo;

/// A moment that has not come yet.
const NOT_YET: u64 = u64::MAX;

/// A moment that is noted once.
#[derive(Debug)]
pub(crate) struct Moment(AtomicU64);

impl Default for Moment {
    fn default() -> Self {
        Moment(AtomicU64::new(NOT_YET))
    }
}

impl Moment {
    pub(crate) fn note(&self, time: Time) {
        let _ = self.0.compare_exchange(NOT_YET, time.as_nanos(), Ordering::Release, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> Option<Time> {
        Some(self.0.load(Ordering::Acquire)).filter(|&t| t != NOT_YET).map(Time::from_nanos)
    }
}

/// A flow of ours.
#[derive(Debug, Default)]
pub(crate) struct FlowBoard {
    /// The sender's socket, while it is open.
    socket: Mutex<Option<Arc<OwnedFd>>>,
    /// What the kernel said about it last.
    last: Mutex<Option<TcpInfo>>,
    /// When connect() was called, the sender had everything acknowledged, the receiver the last byte.
    pub(crate) started: Moment,
    pub(crate) sender_done: Moment,
    pub(crate) receiver_done: Moment,
    /// Application bytes that the receiver has read, in order.
    pub(crate) delivered: AtomicU64,
    /// UDP: datagrams sent and received.
    pub(crate) sent_packets: AtomicU64,
    /// The connection was refused or broken off.
    pub(crate) failed: AtomicBool,
    pub(crate) trouble: OnceLock<String>,
}

impl FlowBoard {
    pub(crate) fn opened(&self, socket: Arc<OwnedFd>) {
        if let Ok(mut slot) = self.socket.lock() {
            *slot = Some(socket);
        }
    }

    /// The sender's socket is about to be closed.
    pub(crate) fn closed(&self) {
        self.look();
        if let Ok(mut slot) = self.socket.lock() {
            *slot = None;
        }
    }

    /// The connection failed.
    pub(crate) fn fail(&self, why: impl ToString) {
        let _ = self.trouble.set(why.to_string());
        self.failed.store(true, Ordering::Relaxed);
    }

    /// What the kernel says about the connection now, or said last.
    pub(crate) fn look(&self) -> Option<TcpInfo> {
        let socket = self.socket.lock().ok()?.clone();
        let mut last = self.last.lock().ok()?;
        if let Some(info) = socket.and_then(|s| TcpInfo::of(&*s).ok()) {
            *last = Some(info);
        }
        *last
    }
}

/// Finds the flow of a connection at the receiver: by plan flow and the sender's port.
#[derive(Debug, Default)]
pub(crate) struct Registry(Mutex<FxHashMap<(usize, u16), Arc<FlowBoard>>>);

impl Registry {
    pub(crate) fn enter(&self, spec: usize, port: u16, board: &Arc<FlowBoard>) {
        if let Ok(mut map) = self.0.lock() {
            map.insert((spec, port), board.clone());
        }
    }

    pub(crate) fn find(&self, spec: usize, port: u16) -> Option<Arc<FlowBoard>> {
        self.0.lock().ok()?.get(&(spec, port)).cloned()
    }
}
