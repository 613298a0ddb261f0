//! SIGINT, SIGTERM and SIGHUP as a descriptor to poll.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// The signals that make an agent stop in an orderly way, or read its configuration again.
#[derive(Debug)]
pub struct Stop {
    fd: SignalFd,
    /// Whether SIGHUP asks for a reload. If not, SIGHUP stops the agent.
    reloads: bool,
    reload: Cell<bool>,
}

impl Stop {
    /// Reads these signals from now on. Call this function before threads start, because threads inherit the signal
    /// mask. SIGHUP stops an agent that has no file to read again (`reloads` is false).
    ///
    /// # Errors
    /// If no descriptors are left.
    pub fn new(reloads: bool) -> io::Result<Self> {
        let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect();
        signals.thread_block()?;
        let fd = SignalFd::with_flags(&signals, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        Ok(Stop { fd, reloads, reload: Cell::new(false) })
    }

    /// Whether a signal to stop has arrived.
    pub fn requested(&self) -> bool {
        while let Ok(Some(signal)) = self.fd.read_signal() {
            if !self.reloads || signal.ssi_signo != Signal::SIGHUP as u32 {
                return true;
            }
            self.reload.set(true);
        }
        false
    }

    /// Whether [`requested`](Stop::requested) has read a SIGHUP since the last call.
    pub(crate) fn take_reload(&self) -> bool {
        self.reload.take()
    }
}

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
