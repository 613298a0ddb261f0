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

/// Bytes of one write.
const CHUNK: usize = 64 * 1024;
static ZEROS: [u8; CHUNK] = [0; CHUNK];

/// Bytes taken off a receiving socket at a time.
const DISCARD: usize = 1 << 20;

/// Difference between the maximum segment size option and the payload: the timestamp option (RFC 7323).
const TIMESTAMPS: u32 = 12;

/// Payload of a full segment with an MTU of 1500, which needs no option.
const DEFAULT_MSS: u32 = 1448;

/// How a connection is set up.
#[derive(Clone, Debug)]
pub(crate) struct TcpConfig {
    pub(crate) congestion: String,
    pub(crate) mss: u32,
    pub(crate) pacing: bool,
    pub(crate) receive_window: Option<u32>,
    pub(crate) path: EmptyPath,
}

impl TcpConfig {
    /// The largest receive window, bytes.
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
    // Ports of connections in TIME_WAIT may be used again: a source of many flows would run out of them.
    setsockopt(&fd, sockopt::ReuseAddr, &true)?;
    Ok(fd)
}

/// The controller that both ends must have: where the receiver's has not, SYNs with ECT are no offer of ECN to it, the kernel
/// runs Reno instead (tcp_ecn_create_request, net/ipv4/tcp_input.c; dctcp_init, net/ipv4/tcp_dctcp.c) and marks are not echoed
/// one by one.
const AT_BOTH_ENDS: &str = "dctcp";

/// Listens in the calling thread's namespace.
pub(crate) fn listener(address: SocketAddr, config: &TcpConfig) -> io::Result<TcpListener> {
    let fd = tcp_socket(&address)?;
    if let Some(most) = config.window_clamp() {
        clamp_window(&fd, most)?;
    }
    if config.congestion == AT_BOTH_ENDS {
        set_congestion(&fd, &config.congestion)?; // those that it accepts inherit it
    }
    bind(fd.as_raw_fd(), &SockaddrStorage::from(address))?;
    listen(&fd, Backlog::new(4096).unwrap_or(Backlog::MAXCONN))?;
    Ok(TcpListener::from(fd))
}

fn set_congestion(fd: &OwnedFd, name: &str) -> io::Result<()> {
    setsockopt(fd, sockopt::TcpCongestion, &OsString::from(name))
        .map_err(|e| io::Error::other(format!("congestion control {name}: {}", io::Error::from(e))))
}

/// What a sender waits for.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum Next {
    /// The socket.
    Socket,
    /// A time, or the socket.
    Time(Time),
    /// Nothing: it is over.
    Over,
}

/// The sending end.
pub(crate) struct Sender {
    pub(crate) fd: Arc<OwnedFd>,
    pub(crate) board: Arc<FlowBoard>,
    app: App,
    stop: Time,
    mss: u16,
    unsent: Unsent,
    /// What the kernel was told of it.
    unsent_max: u32,
    /// Taken from the application, not yet from us.
    pending: usize,
    finished: bool,
    shut: bool,
    connected: bool,
}

impl Sender {
    /// Opens the connection from `source` (port 0: any) in the calling thread's namespace; also gives the port it comes from,
    /// before the first packet leaves. `flows` are those that the host sends in the run.
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
        if config.mss != DEFAULT_MSS {
            raw::set_option(&fd, libc::IPPROTO_TCP, libc::TCP_MAXSEG, (config.mss + TIMESTAMPS) as i32)?;
        }
        if config.pacing {
            // Any limit turns the kernel's own pacing on (net/core/sock.c, SO_MAX_PACING_RATE); this one binds nobody.
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
        board.opened(fd.clone());
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

    /// The socket has news.
    pub(crate) fn on_socket(&mut self, now: Time, broken: bool) -> Next {
        if broken || !self.connected {
            let mut error = [0u8; 4];
            let code = match raw::get_option(&*self.fd, libc::SOL_SOCKET, libc::SO_ERROR, &mut error) {
                Ok(_) => i32::from_ne_bytes(error),
                Err(e) => e.raw_os_error().unwrap_or(libc::EIO),
            };
            if code != 0 {
                return self.over(Err(io::Error::from_raw_os_error(code)));
            }
            self.connected = true;
        }
        if self.shut {
            // The receiver closes when it has read the last byte, and its FIN acknowledges ours: that moment stands for "last byte
            // acknowledged", which the kernel tells nobody.
            match raw::discard(&*self.fd, DISCARD) {
                Ok(0) => {
                    self.board.sender_done.note(now);
                    return self.over(Ok(()));
                }
                Ok(_) => return Next::Socket,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Next::Socket,
                Err(e) => return self.over(Err(e)),
            }
        }
        self.pump(now)
    }

    /// Writes what the application has and the socket takes.
    pub(crate) fn pump(&mut self, now: Time) -> Next {
        if !self.connected || self.shut {
            return Next::Socket;
        }
        if let Err(e) = self.limit_unsent(now) {
            return self.over(Err(e));
        }
        let mut written = 0;
        while written < self.unsent.turn() {
            let mut wait = None;
            while self.pending < CHUNK && !self.finished {
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
                        Err(e) => self.over(Err(e.into())),
                    };
                }
                return wait.map_or(Next::Socket, Next::Time);
            }
            let data = &ZEROS[..self.pending.min(CHUNK)];
            match send(self.fd.as_raw_fd(), data, MsgFlags::MSG_NOSIGNAL) {
                Ok(n) => {
                    self.pending -= n.min(self.pending);
                    written += n as u64;
                }
                Err(Errno::EAGAIN) => return Next::Socket,
                Err(e) => return self.over(Err(e.into())),
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

    fn over(&mut self, outcome: io::Result<()>) -> Next {
        if let Err(e) = outcome {
            self.board.fail(e);
        }
        self.board.closed();
        Next::Over
    }
}

/// The receiving end.
pub(crate) struct Sink {
    pub(crate) stream: TcpStream,
    pub(crate) board: Arc<FlowBoard>,
    /// To be said again once data has come: the first full segment lets Linux 6.6 and later forget it, as they then know how much
    /// of the buffer is payload (`tcp_measure_rcv_mss`).
    pub(crate) clamp: Option<i32>,
}

impl Sink {
    /// Takes what has arrived, without copying it; `false` once the stream has ended.
    pub(crate) fn on_socket(&mut self, now: impl Fn() -> Time) -> bool {
        match raw::discard(self.stream.as_fd(), DISCARD) {
            Ok(0) => {
                self.board.receiver_done.note(now());
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

/// Makes the coming close() break the connection off instead of leaving a namespace busy with its end.
pub(crate) fn abort_on_close(fd: impl AsFd) {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    // A socket that is closed already has nothing to break off.
    let _ = raw::set_option(fd, libc::SOL_SOCKET, libc::SO_LINGER, linger);
}
