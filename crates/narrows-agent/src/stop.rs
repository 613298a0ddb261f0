//! SIGINT, SIGTERM and SIGHUP as a descriptor to poll.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// The signals that make an agent stop in an orderly way.
#[derive(Debug)]
pub struct Stop {
    fd: SignalFd,
}

impl Stop {
    /// Reads these signals from now on. Call this function before threads start, because threads inherit the signal
    /// mask.
    ///
    /// # Errors
    /// If no descriptors are left.
    pub fn new() -> io::Result<Self> {
        let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect();
        signals.thread_block()?;
        Ok(Stop { fd: SignalFd::with_flags(&signals, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)? })
    }

    /// Whether one of the signals has arrived.
    pub fn requested(&self) -> bool {
        matches!(self.fd.read_signal(), Ok(Some(_)))
    }
}

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
