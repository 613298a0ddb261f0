//! The sending and the receiving end of a constant-rate UDP flow.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use narrows_control::units::{Bytes, Rate, Time};
use rustc_hash::FxHashMap;

use super::board::{FlowBoard, Registry};
use super::tcp::Next;
use crate::raw;

/// Number of datagrams of one socket that are processed before another socket is served.
const TURN: usize = 64;

const RECEIVE_BUFFER_BYTES: i32 = 16 << 20;

fn open(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// The sending end.
pub(crate) struct UdpSender {
    pub(crate) socket: UdpSocket,
    pub(crate) board: Arc<FlowBoard>,
    payload: Vec<u8>,
    /// Size of a datagram in L3 bytes, and rate in L3 bytes/s.
    size: u64,
    rate: Rate,
    start: Time,
    stop: Time,
    sent: u64,
}

impl UdpSender {
    pub(crate) fn open(
        source: IpAddr,
        destination: SocketAddr,
        (rate, size): (Rate, u32),
        (start, stop): (Time, Time),
        board: &Arc<FlowBoard>,
        announce: impl FnOnce(u16),
    ) -> io::Result<Self> {
        let socket = open(SocketAddr::new(source, 0))?;
        announce(socket.local_addr()?.port());
        socket.connect(destination)?;
        let header = if destination.is_ipv4() { 28 } else { 48 };
        let payload = vec![0; (size as usize).saturating_sub(header)];
        Ok(UdpSender { socket, board: board.clone(), payload, size: size as u64, rate, start, stop, sent: 0 })
    }

    /// Sends the datagrams that are due, but at most [`TURN`] of them. Late datagrams are not skipped, so that the
    /// average rate is correct.
    pub(crate) fn pump(&mut self, now: Time) -> Next {
        for _ in 0..TURN {
            let due = self.start + self.rate.time_for(Bytes::new(self.size.saturating_mul(self.sent)));
            if now >= self.stop || due >= self.stop {
                return Next::Finished;
            }
            if due > now {
                return Next::Time(due);
            }
            // An error means that the device's queue is full. The datagram counts as sent, but is lost.
            let _ = self.socket.send(&self.payload);
            self.sent += 1;
            self.board.sent_packets.store(self.sent, Ordering::Relaxed);
        }
        Next::Time(now)
    }
}

/// The receiving end of all flows that belong to one entry in the spec.
pub(crate) struct UdpSink {
    pub(crate) socket: UdpSocket,
    spec: usize,
    known: FxHashMap<u16, Arc<FlowBoard>>,
    buffer: Vec<u8>,
}

impl UdpSink {
    pub(crate) fn open(address: SocketAddr, spec: usize) -> io::Result<Self> {
        let socket = open(address)?;
        raw::set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES)?;
        Ok(UdpSink { socket, spec, known: FxHashMap::default(), buffer: vec![0; 1 << 16] })
    }

    /// Receives the datagrams that have arrived.
    pub(crate) fn on_socket(&mut self, registry: &Registry) {
        for _ in 0..TURN {
            let Ok((n, from)) = self.socket.recv_from(&mut self.buffer) else { return };
            let board = match self.known.get(&from.port()) {
                Some(board) => board,
                None => match registry.find(self.spec, from.port()) {
                    Some(board) => self.known.entry(from.port()).or_insert(board),
                    None => continue,
                },
            };
            board.delivered.fetch_add(n as u64, Ordering::Relaxed);
        }
    }
}
