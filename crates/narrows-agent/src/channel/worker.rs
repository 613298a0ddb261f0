//! The channel's thread: sockets and pauses around a [`Session`].

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use narrows_control::rate::Message;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{setsockopt, sockopt};

use super::auth::{SIZE, Secret};
use super::session::{Refusal, Session};
use super::{ARRIVED_MAX, ChannelConfig, ChannelState, Shared, ToController};

/// First and longest pause between attempts, in ms. Each pause is twice the previous pause.
const PAUSES_MS: (u16, u16) = (100, 5000);
/// Timeout of a connection attempt.
const CONNECT: Duration = Duration::from_secs(2);
/// Unacknowledged data or an unanswered keep-alive ends the connection after this time, ms.
const PEER_DEAD_MS: u32 = 5000;
/// Lines are taken from the queue while the buffer holds fewer bytes than this. If the controller reads too slowly,
/// bodies wait in the queue instead of the buffer, and the queue drops the oldest.
const BUFFER: usize = 64 << 10;

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("refused: {0}")]
    Refused(#[from] Refusal),
    #[error("the controller closed the connection")]
    Closed,
    #[error("the agent stops")]
    Stopped,
}

pub(super) struct Worker {
    config: ChannelConfig,
    secret: Secret,
    shared: Arc<Shared>,
}

impl Worker {
    pub(super) fn new(config: ChannelConfig, secret: Secret, shared: Arc<Shared>) -> Self {
        Worker { config, secret, shared }
    }

    /// Runs until the channel is dropped.
    pub(super) fn run(self) {
        let mut pause = PAUSES_MS.0;
        loop {
            let mut known = false;
            let ended = match self.connection(&mut known) {
                Ok(()) | Err(Ended::Stopped) => return,
                Err(ended) => ended,
            };
            if known {
                pause = PAUSES_MS.0;
            }
            let line = format!("controller {}: {ended}", self.config.controller);
            let mut queues = self.shared.lock();
            // Logged once, not at every attempt.
            if queues.state != ChannelState::Failed(line.clone()) {
                tracing::warn!("{line}");
                queues.state = ChannelState::Failed(line);
            }
            drop(queues);
            if self.wait(pause) {
                return;
            }
            pause = pause.saturating_mul(2).min(PAUSES_MS.1);
        }
    }

    /// Waits, and returns whether to stop.
    fn wait(&self, pause_ms: u16) -> bool {
        let mut left = pause_ms;
        // Bodies wake the thread as well and stay queued. The pause is divided into slices, so no clock is
        // needed.
        while left > 0 {
            let slice = left.min(100);
            std::thread::sleep(Duration::from_millis(slice.into()));
            if self.shared.lock().stop {
                return true;
            }
            left -= slice;
        }
        false
    }

    /// Runs one connection and returns when it ends. `known` is set once the controller has authenticated
    /// itself.
    fn connection(&self, known: &mut bool) -> Result<(), Ended> {
        let mut stream = TcpStream::connect_timeout(&self.config.controller, CONNECT)?;
        stream.set_nodelay(true)?;
        keep_alive(&stream)?;
        stream.set_nonblocking(true)?;

        let mut nonce = [0; SIZE];
        getrandom::fill(&mut nonce).map_err(|e| io::Error::other(e.to_string()))?;
        let mut session = Session::new(self.secret.clone(), &self.config.name, nonce);
        let mut out = session.greeting().into_bytes();
        let mut arrived = Vec::new();
        let mut buffer = vec![0; 16 << 10];
        self.shared.lock().ports_due = true;
        loop {
            self.fill(&mut session, &mut out)?;
            flush(&mut stream, &mut out)?;
            self.sleep_until_something(&stream, !out.is_empty())?;
            loop {
                match stream.read(&mut buffer) {
                    Ok(0) => return Err(Ended::Closed),
                    Ok(n) => session.receive(buffer.get(..n).unwrap_or_default(), &mut arrived)?,
                    Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                    Err(e) if e.kind() == ErrorKind::Interrupted => {}
                    Err(e) => return Err(e.into()),
                }
            }
            if session.is_authenticated() && !*known {
                *known = true;
                tracing::info!(controller = session.controller(), "connected to the controller");
                self.shared.lock().state = ChannelState::Connected(session.controller().into());
            }
            self.deliver(&mut arrived);
        }
    }

    /// Takes lines from the queue, to send them.
    fn fill(&self, session: &mut Session, out: &mut Vec<u8>) -> Result<(), Ended> {
        loop {
            let body = {
                let mut queues = self.shared.lock();
                if queues.stop {
                    return Err(Ended::Stopped);
                }
                if !session.is_open() || out.len() >= BUFFER {
                    return Ok(());
                }
                if std::mem::take(&mut queues.ports_due) {
                    // The controller would ignore messages about ports that it does not know yet.
                    queues.waiting.retain(|body| !body.is_perishable());
                    ToController::Ports { ports: queues.ports.clone() }
                } else {
                    match queues.waiting.pop_front() {
                        Some(body) => body,
                        None => return Ok(()),
                    }
                }
            };
            if let Some(line) = session.seal(&body) {
                out.extend_from_slice(line.as_bytes());
            }
        }
    }

    fn sleep_until_something(&self, stream: &TcpStream, writing: bool) -> io::Result<()> {
        let mut flags = PollFlags::POLLIN;
        flags.set(PollFlags::POLLOUT, writing);
        let mut fds =
            [PollFd::new(stream.as_fd(), flags), PollFd::new(self.shared.wake.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(e) => return Err(e.into()),
        }
        // Resets the counter; it may be zero already.
        let _ = self.shared.wake.read();
        Ok(())
    }

    fn deliver(&self, arrived: &mut Vec<Message>) {
        if arrived.is_empty() {
            return;
        }
        let mut queues = self.shared.lock();
        queues.arrived.extend(arrived.drain(..));
        while queues.arrived.len() > ARRIVED_MAX {
            queues.arrived.pop_front();
        }
    }
}

fn flush(stream: &mut TcpStream, out: &mut Vec<u8>) -> Result<(), Ended> {
    while !out.is_empty() {
        match stream.write(out) {
            Ok(0) => return Err(Ended::Closed),
            Ok(n) => drop(out.drain(..n)),
            Err(e) if e.kind() == ErrorKind::WouldBlock => break,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

/// Detects that the controller's host vanished without closing the connection.
fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    setsockopt(stream, sockopt::KeepAlive, &true)?;
    setsockopt(stream, sockopt::TcpKeepIdle, &2)?;
    setsockopt(stream, sockopt::TcpKeepInterval, &1)?;
    setsockopt(stream, sockopt::TcpUserTimeout, &PEER_DEAD_MS)?;
    Ok(())
}
