//! Receives SIGINT, SIGTERM and SIGHUP through a descriptor that can be polled.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// Receives the signals that ask an agent to stop, or to read its configuration again.
#[derive(Debug)]
pub struct Stop {
    fd: SignalFd,
    /// Whether SIGHUP reloads the configuration. Otherwise, SIGHUP stops the agent.
    reloads: bool,
    reload: Cell<bool>,
}

impl Stop {
    /// Blocks the signals and opens the descriptor that receives them. Call this before other threads start, because
    /// threads inherit the signal mask. If `reloads` is false, SIGHUP stops the agent.
    ///
    /// # Errors
    /// If no descriptors are left.
    pub fn new(reloads: bool) -> io::Result<Self> {
        let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect();
        signals.thread_block()?;
        let fd = SignalFd::with_flags(&signals, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        Ok(Stop { fd, reloads, reload: Cell::new(false) })
    }

    /// Returns whether a signal to stop has arrived. Also records each SIGHUP that asks for a reload.
    pub fn requested(&self) -> bool {
        while let Ok(Some(signal)) = self.fd.read_signal() {
            if !self.reloads || signal.ssi_signo != Signal::SIGHUP as u32 {
                return true;
            }
            self.reload.set(true);
        }
        false
    }

    /// Returns whether [`requested`](Stop::requested) has recorded a SIGHUP since the last call.
    pub(crate) fn take_reload(&self) -> bool {
        self.reload.take()
    }
}

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
