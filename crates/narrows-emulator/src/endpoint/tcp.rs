//! The sending and the receiving end of a TCP flow.

use std::ffi::OsString;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use narrows_control::units::Time;
use narrows_sim::model::{App, Chunk, EmptyPath};
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, MsgFlags, Shutdown, SockFlag, SockType, SockaddrStorage, bind, connect,
    getsockname, listen, send, setsockopt, shutdown, socket, sockopt,
};

use super::board::FlowBoard;
use super::unsent::Unsent;
use crate::raw;

/// Maximum number of bytes of one write.
const CHUNK_BYTES: usize = 64 * 1024;
static ZEROS: [u8; CHUNK_BYTES] = [0; CHUNK_BYTES];

/// Maximum number of bytes that one call discards at a receiving socket.
const DISCARD_BYTES: usize = 1 << 20;

/// Length of the timestamp option (RFC 7323) with its padding. The payload of a full segment is shorter than the value
/// of the MSS option by this length.
const TIMESTAMPS_BYTES: u32 = 12;

/// Payload of a full segment with an MTU of 1500. If the plan's MSS has this value, TCP_MAXSEG is not set.
const DEFAULT_MSS_BYTES: u32 = 1448;

/// Parameters of a connection.
#[derive(Clone, Debug)]
pub(crate) struct TcpConfig {
    pub(crate) congestion: String,
    pub(crate) mss: u32,
    pub(crate) pacing: bool,
    pub(crate) receive_window: Option<u32>,
    pub(crate) path: EmptyPath,
}

impl TcpConfig {
    /// Returns the largest receive window in bytes, or `None` if the plan does not limit it.
    pub(crate) fn window_clamp(&self) -> Option<i32> {
        self.receive_window.map(|segments| segments.saturating_mul(self.mss).min(i32::MAX as u32) as i32)
    }
}

fn clamp_window(fd: impl AsFd, most: i32) -> io::Result<()> {
    raw::set_option(fd, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, most)
}

fn family(address: &SocketAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

fn tcp_socket(address: &SocketAddr) -> nix::Result<OwnedFd> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let fd = socket(family(address), SockType::Stream, flags, None)?;
    // This option permits the reuse of ports whose connections are in TIME_WAIT. A source of many flows would otherwise
    // run out of ports.
    setsockopt(&fd, sockopt::ReuseAddr, &true)?;
    Ok(fd)
}

/// The algorithm that must be set at both ends. If only the sender uses DCTCP, the receiver does not accept ECN from
/// SYNs with ECT, and the sender's kernel runs Reno instead. In addition, the receiver does not echo marks individually
/// (tcp_ecn_create_request, net/ipv4/tcp_input.c; dctcp_init, net/ipv4/tcp_dctcp.c).
const AT_BOTH_ENDS: &str = "dctcp";

/// Opens a listening socket in the calling thread's namespace.
pub(crate) fn listener(address: SocketAddr, config: &TcpConfig) -> io::Result<TcpListener> {
    let fd = tcp_socket(&address)?;
    if let Some(most) = config.window_clamp() {
        clamp_window(&fd, most)?;
    }
    if config.congestion == AT_BOTH_ENDS {
        set_congestion(&fd, &config.congestion)?; // accepted connections inherit this algorithm
    }
    bind(fd.as_raw_fd(), &SockaddrStorage::from(address))?;
    listen(&fd, Backlog::new(4096).unwrap_or(Backlog::MAXCONN))?;
    Ok(TcpListener::from(fd))
}

fn set_congestion(fd: &OwnedFd, name: &str) -> io::Result<()> {
    setsockopt(fd, sockopt::TcpCongestion, &OsString::from(name))
        .map_err(|e| io::Error::other(format!("congestion control {name}: {}", io::Error::from(e))))
}

/// The event that a sender waits for.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum Next {
    /// An event of the socket.
    Socket,
    /// A time or an event of the socket, whichever occurs first.
    Time(Time),
    /// No event, because the flow has finished.
    Finished,
}

/// The sending end.
pub(crate) struct Sender {
    pub(crate) fd: Arc<OwnedFd>,
    pub(crate) board: Arc<FlowBoard>,
    app: App,
    stop: Time,
    mss: u16,
    unsent: Unsent,
    /// The limit of unsent data that is currently set in the kernel.
    unsent_max: u32,
    /// Bytes that were taken from the application but not yet written to the socket.
    pending: usize,
    finished: bool,
    shut: bool,
    connected: bool,
}

impl Sender {
    /// Opens the connection from `source` (port 0: any) in the calling thread's namespace. `announce` is
    /// called with the source port before the first packet leaves. `flows` is the number of flows that the
    /// host sends in the run.
    pub(crate) fn connect(
        source: SocketAddr,
        destination: SocketAddr,
        config: &TcpConfig,
        (app, stop, flows): (App, Time, usize),
        board: &Arc<FlowBoard>,
        announce: impl FnOnce(u16),
    ) -> io::Result<Self> {
        let fd = tcp_socket(&destination)?;
        set_congestion(&fd, &config.congestion)?;
        setsockopt(&fd, sockopt::TcpNoDelay, &true)?;
        if config.mss != DEFAULT_MSS_BYTES {
            let option = (config.mss + TIMESTAMPS_BYTES) as i32;
            raw::set_option(&fd, libc::IPPROTO_TCP, libc::TCP_MAXSEG, option)?;
        }
        if config.pacing {
            // Any limit of the pacing rate turns on the kernel's own pacing (net/core/sock.c, SO_MAX_PACING_RATE). This
            // limit is so high that it has no other effect.
            raw::set_option(&fd, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, 1u64 << 40)?;
        }
        bind(fd.as_raw_fd(), &SockaddrStorage::from(source))?;
        let own: SockaddrStorage = getsockname(fd.as_raw_fd())?;
        let port = own.as_sockaddr_in().map(|a| a.port()).or(own.as_sockaddr_in6().map(|a| a.port()));
        announce(port.unwrap_or(0));
        match connect(fd.as_raw_fd(), &SockaddrStorage::from(destination)) {
            Ok(()) | Err(Errno::EINPROGRESS) => {}
            Err(e) => return Err(e.into()),
        }
        let fd = Arc::new(fd);
        board.set_socket(fd.clone());
        Ok(Sender {
            fd,
            board: board.clone(),
            app,
            stop,
            mss: config.mss.min(u16::MAX as u32) as u16,
            unsent: Unsent::new(&config.path, flows, stop),
            unsent_max: 0,
            pending: 0,
            finished: false,
            shut: false,
            connected: false,
        })
    }

    /// Handles an event of the socket.
    pub(crate) fn on_socket(&mut self, now: Time, broken: bool) -> Next {
        if broken || !self.connected {
            let mut error = [0u8; 4];
            let code = match raw::get_option(&*self.fd, libc::SOL_SOCKET, libc::SO_ERROR, &mut error) {
                Ok(_) => i32::from_ne_bytes(error),
                Err(e) => e.raw_os_error().unwrap_or(libc::EIO),
            };
            if code != 0 {
                return self.finish(Err(io::Error::from_raw_os_error(code)));
            }
            self.connected = true;
        }
        if self.shut {
            // The kernel does not report when the last byte was acknowledged. The receiver closes its socket after it
            // has read the last byte, and the receiver's FIN acknowledges the sender's FIN. The sender therefore uses
            // the time at which the receiver's FIN arrives.
            match raw::discard(&*self.fd, DISCARD_BYTES) {
                Ok(0) => {
                    self.board.sender_done.set(now);
                    return self.finish(Ok(()));
                }
                Ok(_) => return Next::Socket,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Next::Socket,
                Err(e) => return self.finish(Err(e)),
            }
        }
        self.pump(now)
    }

    /// Writes the application's data until the socket accepts no more, or until a pause is due.
    pub(crate) fn pump(&mut self, now: Time) -> Next {
        if !self.connected || self.shut {
            return Next::Socket;
        }
        if let Err(e) = self.limit_unsent(now) {
            return self.finish(Err(e));
        }
        let mut written = 0;
        while written < self.unsent.turn() {
            let mut wait = None;
            while self.pending < CHUNK_BYTES && !self.finished {
                match self.app.take(now, self.mss) {
                    Chunk::Data { len, last } => {
                        self.pending += len as usize;
                        self.finished = last;
                    }
                    Chunk::Wait(until) => {
                        wait = Some(until);
                        break;
                    }
                    Chunk::Finished => self.finished = true,
                }
            }
            if now >= self.stop {
                self.pending = 0;
            }
            if self.pending == 0 {
                if self.finished {
                    self.shut = true;
                    return match shutdown(self.fd.as_raw_fd(), Shutdown::Write) {
                        Ok(()) => Next::Socket,
                        Err(e) => self.finish(Err(e.into())),
                    };
                }
                return wait.map_or(Next::Socket, Next::Time);
            }
            let data = &ZEROS[..self.pending.min(CHUNK_BYTES)];
            match send(self.fd.as_raw_fd(), data, MsgFlags::MSG_NOSIGNAL) {
                Ok(n) => {
                    self.pending -= n.min(self.pending);
                    written += n as u64;
                }
                Err(Errno::EAGAIN) => return Next::Socket,
                Err(e) => return self.finish(Err(e.into())),
            }
        }
        Next::Time(now + self.unsent.pause(written))
    }

    fn limit_unsent(&mut self, now: Time) -> io::Result<()> {
        let limit = self.unsent.limit(now);
        if limit == self.unsent_max {
            return Ok(());
        }
        self.unsent_max = limit;
        raw::set_option(&*self.fd, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, limit)
    }

    fn finish(&mut self, outcome: io::Result<()>) -> Next {
        if let Err(e) = outcome {
            self.board.fail(e);
        }
        self.board.clear_socket();
        Next::Finished
    }
}

/// The receiving end.
pub(crate) struct Sink {
    pub(crate) stream: TcpStream,
    pub(crate) board: Arc<FlowBoard>,
    /// The limit of the receive window (TCP_WINDOW_CLAMP), which must be set again after the first data. At the first
    /// full segment, Linux 6.18 measures the share of payload in the buffer (`tcp_measure_rcv_mss`), and resets the
    /// limit. `None`: nothing to set.
    pub(crate) clamp: Option<i32>,
}

impl Sink {
    /// Discards the received data without copying it. Returns `false` at the end of the stream.
    pub(crate) fn on_socket(&mut self, now: impl Fn() -> Time) -> bool {
        match raw::discard(self.stream.as_fd(), DISCARD_BYTES) {
            Ok(0) => {
                self.board.receiver_done.set(now());
                false
            }
            Ok(n) => {
                self.board.delivered.fetch_add(n as u64, Ordering::Relaxed);
                if let Some(Err(e)) = self.clamp.take().map(|most| clamp_window(&self.stream, most)) {
                    self.board.fail(e);
                }
                true
            }
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => true,
            Err(_) => false,
        }
    }
}

/// Makes close() abort the connection, because an open connection would keep its namespace in use.
pub(crate) fn abort_on_close(fd: impl AsFd) {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    // An error means that the connection is already closed.
    let _ = raw::set_option(fd, libc::SOL_SOCKET, libc::SO_LINGER, linger);
}
