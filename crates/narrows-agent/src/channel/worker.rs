//! The channel's thread. It handles the sockets and the pauses between connections. [`Transport`] handles TLS, and
//! [`Session`] handles the lines.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use narrows_channel::{Ports, ToController};
use narrows_control::rate::Message;
use narrows_control::units::{Span, Time};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{setsockopt, sockopt};

use rustls::ClientConfig;

use super::session::{Refusal, Session};
use super::transport::{TlsRefusal, Transport};
use super::{ARRIVED_MAX, ChannelConfig, ChannelState, Shared};
use crate::clock;

/// First and longest pause between attempts, in ms. Up to the longest pause, each pause is twice as long as the
/// previous one.
const PAUSES_MS: (u16, u16) = (100, 5000);
/// Longest pause with several controllers, in ms. It is shorter than with one controller, because another controller
/// may have just taken over.
const PAUSE_OF_SEVERAL_MS: u16 = 500;
/// Timeout of a connection attempt.
const CONNECT: Duration = Duration::from_secs(2);
/// The controller must accept the agent within this time.
const GREETING: Span = Span::from_secs(5);
/// With several controllers, the agent disconnects from a controller that has sent nothing for this time. A working
/// controller sends a line every second.
const MUTE: Span = Span::from_secs(4);
/// Unacknowledged data or an unanswered keep-alive ends the connection after this time, in ms.
const PEER_DEAD_MS: u32 = 5000;
/// Stop taking lines from the queue when the buffer holds this many bytes. With a slow controller, bodies therefore
/// wait in the queue, which drops the oldest.
const BUFFER: usize = 64 << 10;

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("refused: {0}")]
    Refused(#[from] Refusal),
    #[error("refused: {0}")]
    Tls(#[from] TlsRefusal),
    #[error("the controller closed the connection")]
    Closed,
    #[error("the controller closed the connection without an answer; it may expect keys: controller.key")]
    ClosedPlain,
    #[error("no answer within {} s", GREETING.as_nanos() / 1_000_000_000)]
    Silent,
    #[error("the controller sent nothing for {} s", MUTE.as_nanos() / 1_000_000_000)]
    Mute,
    #[error("the agent stops")]
    Stopped,
}

pub(super) struct Worker {
    config: ChannelConfig,
    tls: Option<Arc<ClientConfig>>,
    shared: Arc<Shared>,
}

impl Worker {
    pub(super) fn new(config: ChannelConfig, tls: Option<Arc<ClientConfig>>, shared: Arc<Shared>) -> Self {
        Worker { config, tls, shared }
    }

    /// Runs until the channel is dropped.
    pub(super) fn run(self) {
        let longest = if self.config.controllers.len() > 1 { PAUSE_OF_SEVERAL_MS } else { PAUSES_MS.1 };
        let mut pause = PAUSES_MS.0;
        // The last error of each controller, so that repeated errors are logged once.
        let mut troubles = vec![String::new(); self.config.controllers.len()];
        loop {
            for (controller, trouble) in self.config.controllers.iter().zip(&mut troubles) {
                let mut known = false;
                let ended = match self.connection(*controller, &mut known) {
                    Ok(()) | Err(Ended::Stopped) => return,
                    Err(ended) => ended,
                };
                let line = format!("controller {controller}: {ended}");
                if known {
                    pause = PAUSES_MS.0;
                }
                if known || *trouble != line {
                    tracing::warn!("{line}");
                    trouble.clone_from(&line);
                }
                self.shared.lock().state = ChannelState::Failed(line);
            }
            if self.wait(pause) {
                return;
            }
            pause = pause.saturating_mul(2).min(longest);
        }
    }

    /// Waits for the time `pause_ms`, and returns whether the thread must stop.
    fn wait(&self, pause_ms: u16) -> bool {
        let mut left = pause_ms;
        // Sleep in slices, so that the thread stops within 100 ms. New bodies stay in the queue.
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

    /// Runs one connection until it ends. Sets `known` when the controller has accepted the agent.
    fn connection(&self, controller: SocketAddr, known: &mut bool) -> Result<(), Ended> {
        let deadline = clock::now() + GREETING;
        let mut stream = TcpStream::connect_timeout(&controller, CONNECT)?;
        stream.set_nodelay(true)?;
        keep_alive(&stream)?;
        stream.set_nonblocking(true)?;

        let mut transport = Transport::new(self.tls.as_ref(), controller.ip())?;
        let mut session = Session::new(&self.config.name);
        transport.send(session.greeting().as_bytes());
        let mut out = Vec::new();
        let (mut lines, mut arrived) = (Vec::new(), Vec::new());
        let mut buffer = vec![0; 16 << 10];
        self.shared.lock().ports_due = true;
        let mut heard = clock::now();
        loop {
            self.fill(&session, &mut transport, &mut out)?;
            flush(&mut stream, &mut out)?;
            let timeout = match (*known, self.config.controllers.len()) {
                (false, _) => until(deadline).ok_or(Ended::Silent)?,
                (true, 1) => PollTimeout::NONE,
                (true, _) => until(heard + MUTE).ok_or(Ended::Mute)?,
            };
            self.sleep_until_something(&stream, !out.is_empty(), timeout)?;
            loop {
                let n = match stream.read(&mut buffer) {
                    Ok(0) if self.tls.is_none() && !*known => return Err(Ended::ClosedPlain),
                    Ok(0) => return Err(Ended::Closed),
                    Ok(n) => n,
                    Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                    Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                    Err(e) => return Err(e.into()),
                };
                heard = clock::now();
                if let Err(refusal) = transport.receive(buffer.get(..n).unwrap_or_default(), &mut lines) {
                    // The TLS alert tells the controller why the agent closes the connection.
                    transport.take(&mut out);
                    let _ = flush(&mut stream, &mut out);
                    return Err(refusal.into());
                }
                session.receive(&lines, &mut arrived)?;
                lines.clear();
            }
            if session.is_open() && !*known {
                *known = true;
                tracing::info!(controller = session.controller(), "connected to the controller");
                self.shared.lock().state = ChannelState::Connected(session.controller().into());
            }
            self.deliver(&mut arrived);
        }
    }

    /// Moves bodies from the queue through the transport to `out`, until the queue is empty or `out` holds [`BUFFER`]
    /// bytes. Before the controller has accepted the agent, moves only the greeting.
    fn fill(&self, session: &Session, transport: &mut Transport, out: &mut Vec<u8>) -> Result<(), Ended> {
        loop {
            transport.take(out);
            let body = {
                let mut queues = self.shared.lock();
                if queues.stop {
                    return Err(Ended::Stopped);
                }
                if !session.is_open() || out.len() >= BUFFER {
                    return Ok(());
                }
                if std::mem::take(&mut queues.ports_due) {
                    // The controller ignores messages about ports that it does not know yet.
                    queues.waiting.retain(|body| !body.is_perishable());
                    ToController::Ports(Ports { ports: queues.ports.clone() })
                } else {
                    match queues.waiting.pop_front() {
                        Some(body) => body,
                        None => return Ok(()),
                    }
                }
            };
            if let Some(line) = session.line(&body) {
                transport.send(line.as_bytes());
            }
        }
    }

    fn sleep_until_something(
        &self,
        stream: &TcpStream,
        writing: bool,
        timeout: PollTimeout,
    ) -> io::Result<()> {
        let mut flags = PollFlags::POLLIN;
        flags.set(PollFlags::POLLOUT, writing);
        let mut fds =
            [PollFd::new(stream.as_fd(), flags), PollFd::new(self.shared.wake.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, timeout) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(e) => return Err(e.into()),
        }
        // Reset the counter of `wake`. It may be zero already.
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

/// Returns the time to wait until a deadline, or `None` after the deadline.
fn until(deadline: Time) -> Option<PollTimeout> {
    let left = deadline.since(clock::now());
    // Round up, so that the thread does not wake too early.
    let millis = u16::try_from(left.as_nanos() / 1_000_000 + 1).unwrap_or(u16::MAX);
    (left > Span::ZERO).then(|| PollTimeout::from(millis))
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

/// Lets the kernel detect that the controller's host has vanished.
fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    setsockopt(stream, sockopt::KeepAlive, &true)?;
    setsockopt(stream, sockopt::TcpKeepIdle, &2)?;
    setsockopt(stream, sockopt::TcpKeepInterval, &1)?;
    setsockopt(stream, sockopt::TcpUserTimeout, &PEER_DEAD_MS)?;
    Ok(())
}
