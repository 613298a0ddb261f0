//! Requests for objects on streams of one connection, as HTTP/3 makes them.
//!
//! The receiver of the flow opens a bidirectional stream for each request and writes the size of the object into it.
//! The sender answers with this number of bytes on the same stream.

use std::collections::VecDeque;

use bytes::Bytes as Contents;
use narrows_control::units::Time;
use narrows_sim::transport::{Output, Requests};
use quinn_proto::{Connection, Dir, ReadError, StreamId, VarInt};

use super::flow::ZEROS;

/// Bytes of a request: the size of the object, big endian.
const REQUEST_BYTES: usize = 8;
/// Bytes that the sender writes to a stream before it turns to the next stream: about a datagram.
const TURN_BYTES: u64 = 1200;

/// Returns the number of streams that the sender allows. A stream ends for the sender only when the last data is
/// acknowledged, and quinn announces new streams in groups. With a limit of `parallel` streams, requests would wait for
/// these announcements. Servers of HTTP/3 should allow at least 100 streams (RFC 9114, section 6.1).
pub(super) fn stream_limit(requests: &Requests) -> VarInt {
    VarInt::from_u32(requests.parallel().saturating_mul(4).max(100))
}

/// The receiver's end: open requests, and requests to come.
pub(super) struct Requester {
    requests: Requests,
    /// Stream and number of each open request.
    open: Vec<(StreamId, usize)>,
    /// Times at which requests are due, in order.
    due: VecDeque<Time>,
    has_begun: bool,
    pub(super) delivered: u64,
    /// The time at which the last object was complete.
    pub(super) received_at: Option<Time>,
}

impl Requester {
    pub(super) fn new(requests: Requests) -> Self {
        Requester {
            requests,
            open: Vec::new(),
            due: VecDeque::new(),
            has_begun: false,
            delivered: 0,
            received_at: None,
        }
    }

    /// Schedules the first requests. Called when the connection is established.
    pub(super) fn begin(&mut self, now: Time) {
        self.has_begun = true;
        self.due = vec![now; self.requests.parallel() as usize].into();
    }

    /// Returns the time at which the next request is due.
    pub(super) fn wake(&self) -> Time {
        self.due.front().copied().unwrap_or(Time::NEVER)
    }

    /// Whether all objects are complete, and no request follows.
    pub(super) fn is_done(&self) -> bool {
        self.has_begun && self.open.is_empty() && self.due.is_empty()
    }

    /// Reads the objects that have arrived, and sends the requests that are due.
    pub(super) fn drive(&mut self, connection: &mut Connection, output: &mut Output<'_>) {
        let now = output.now();
        let next = now + self.requests.think();
        let Requester { open, due, delivered, received_at, .. } = self;
        open.retain(|&(stream, number)| {
            let is_complete = read_object(connection, stream, delivered);
            if is_complete {
                output.record_object(number);
                *received_at = Some(now);
                due.push_back(next);
            }
            !is_complete
        });
        while self.wake() <= now && self.requests.has_more(now) {
            let Some(stream) = connection.streams().open(Dir::Bi) else { break };
            let Some(size) = self.requests.next_size(now) else { break };
            self.due.pop_front();
            let mut request = [Contents::copy_from_slice(&size.get().to_be_bytes())];
            // The sender's window has room for the short requests of all streams, so this does not fail.
            let _ = connection.send_stream(stream).write_chunks(&mut request);
            let _ = connection.send_stream(stream).finish();
            self.open.push((stream, output.record_request(size)));
        }
        if !self.requests.has_more(self.wake()) {
            self.due.clear();
        }
    }
}

/// Reads the part of an object that has arrived. Returns whether the object is complete.
fn read_object(connection: &mut Connection, stream: StreamId, delivered: &mut u64) -> bool {
    let mut received = connection.recv_stream(stream);
    let Ok(mut chunks) = received.read(true) else { return false };
    let is_complete = loop {
        match chunks.next(usize::MAX) {
            Ok(Some(chunk)) => *delivered += chunk.bytes.len() as u64,
            Ok(None) => break true,
            // The sender in this module resets no stream.
            Err(ReadError::Blocked | ReadError::Reset(_)) => break false,
        }
    };
    let _ = chunks.finalize();
    is_complete
}

/// The sender's end: the objects that are being sent.
#[derive(Default)]
pub(super) struct Responder {
    /// Streams whose request has not arrived completely, and the part that has arrived.
    asking: Vec<(StreamId, Vec<u8>)>,
    /// Streams of objects, and the number of bytes still to be written. The first stream is the next one to write to.
    answers: VecDeque<(StreamId, u64)>,
    pub(super) written: u64,
}

impl Responder {
    /// Reads requests, and writes as much of the objects as the stack accepts, but at most up to `most` bytes in all.
    /// Objects take turns. RFC 9218 (section 10) describes this for objects of equal urgency that a browser can use
    /// incrementally.
    pub(super) fn drive(&mut self, connection: &mut Connection, most: u64) {
        while let Some(stream) = connection.streams().accept(Dir::Bi) {
            self.asking.push((stream, Vec::new()));
        }
        self.asking.retain_mut(|(stream, request)| match read_request(connection, *stream, request) {
            Some(size) => {
                self.answers.push_back((*stream, size));
                false
            }
            None => true,
        });
        // The number of streams in a row that accepted nothing.
        let mut blocked = 0;
        while self.written < most && blocked < self.answers.len() {
            let Some((stream, left)) = self.answers.pop_front() else { break };
            let bytes = left.min(TURN_BYTES) as usize;
            let mut chunk = [Contents::from_static(&ZEROS[..bytes])];
            let written =
                connection.send_stream(stream).write_chunks(&mut chunk).map_or(0, |done| done.bytes as u64);
            self.written += written;
            blocked = if written == 0 { blocked + 1 } else { 0 };
            if written == left {
                let _ = connection.send_stream(stream).finish();
            } else {
                self.answers.push_back((stream, left - written));
            }
        }
    }
}

/// Returns the size of the object once the whole request has arrived.
fn read_request(connection: &mut Connection, stream: StreamId, request: &mut Vec<u8>) -> Option<u64> {
    let mut received = connection.recv_stream(stream);
    let mut chunks = received.read(true).ok()?;
    while let Ok(Some(chunk)) = chunks.next(REQUEST_BYTES) {
        request.extend_from_slice(&chunk.bytes);
    }
    let _ = chunks.finalize();
    let bytes: [u8; REQUEST_BYTES] = request.get(..REQUEST_BYTES)?.try_into().ok()?;
    Some(u64::from_be_bytes(bytes))
}
