//! Requests for objects on streams of one connection, as HTTP/3 makes them.
//!
//! The receiver of the flow opens a bidirectional stream for each request and writes the size of the object into it.
//! The sender answers with this number of bytes on the same stream.

use bytes::Bytes as Contents;
use narrows_control::units::{Bytes, Time};
use narrows_sim::transport::{Output, Requests};
use quinn_proto::{Connection, Dir, ReadError, StreamId};

use super::flow::ZEROS;

/// Bytes of a request: the size of the object, big endian.
const REQUEST_BYTES: usize = 8;

/// The receiver's end: open requests, and requests to come.
pub(super) struct Requester {
    requests: Requests,
    /// Stream and number of each open request.
    open: Vec<(StreamId, usize)>,
    /// Times at which requests are due, in order. A request stays due while the connection allows no more streams.
    due: Vec<Time>,
    /// Size of the next object, if its request waits for a stream.
    next: Option<Bytes>,
    pub(super) delivered: u64,
    /// The time at which the last object was complete.
    pub(super) received_at: Option<Time>,
}

impl Requester {
    pub(super) fn new(requests: Requests) -> Self {
        Requester { requests, open: Vec::new(), due: Vec::new(), next: None, delivered: 0, received_at: None }
    }

    /// Schedules the first requests. Called when the connection is established.
    pub(super) fn begin(&mut self, now: Time) {
        self.due = vec![now; self.requests.parallel() as usize];
    }

    /// Returns the time at which the next request is due.
    pub(super) fn wake(&self) -> Time {
        self.due.first().copied().unwrap_or(Time::NEVER)
    }

    /// Whether all objects are complete, and no request follows.
    fn is_done(&self) -> bool {
        self.open.is_empty() && self.due.is_empty()
    }

    /// Reads the objects that have arrived, and sends the requests that are due. Returns whether the requests are
    /// done.
    pub(super) fn drive(&mut self, connection: &mut Connection, output: &mut Output<'_>) -> bool {
        let now = output.now();
        let had_any = !self.is_done();
        let (delivered, think) = (&mut self.delivered, self.requests.think());
        let due = &mut self.due;
        let received_at = &mut self.received_at;
        self.open.retain(|&(stream, number)| {
            let is_complete = read_object(connection, stream, delivered);
            if is_complete {
                output.record_object(number);
                *received_at = Some(now);
                due.push(now + think);
            }
            !is_complete
        });
        while self.wake() <= now {
            let Some(size) = self.next.take().or_else(|| self.requests.next_size(now)) else {
                self.due.clear();
                break;
            };
            let Some(stream) = connection.streams().open(Dir::Bi) else {
                self.next = Some(size);
                break;
            };
            self.due.remove(0);
            let mut request = [Contents::copy_from_slice(&size.get().to_be_bytes())];
            // A new stream has room for a request, unless the sender's window is full. Then the object never comes.
            let _ = connection.send_stream(stream).write_chunks(&mut request);
            let _ = connection.send_stream(stream).finish();
            self.open.push((stream, output.record_request(size)));
        }
        had_any && self.is_done()
    }
}

/// Reads what has arrived of an object. Returns whether the object is complete.
fn read_object(connection: &mut Connection, stream: StreamId, delivered: &mut u64) -> bool {
    let mut received = connection.recv_stream(stream);
    let Ok(mut chunks) = received.read(true) else { return true };
    let is_complete = loop {
        match chunks.next(usize::MAX) {
            Ok(Some(chunk)) => *delivered += chunk.bytes.len() as u64,
            Ok(None) => break true,
            Err(ReadError::Blocked) => break false,
            Err(ReadError::Reset(_)) => break true,
        }
    };
    let _ = chunks.finalize();
    is_complete
}

/// The sender's end: the objects that are being sent.
#[derive(Default)]
pub(super) struct Responder {
    answers: Vec<Answer>,
    pub(super) written: u64,
}

struct Answer {
    stream: StreamId,
    /// The request, as far as it has arrived.
    request: Vec<u8>,
    /// Number of bytes still to be written; `None` before the whole request has arrived.
    left: Option<u64>,
}

impl Responder {
    /// Accepts the streams that the receiver has opened.
    pub(super) fn accept(&mut self, connection: &mut Connection) {
        while let Some(stream) = connection.streams().accept(Dir::Bi) {
            self.answers.push(Answer { stream, request: Vec::new(), left: None });
        }
    }

    /// Reads requests, and writes as much of the objects as the stack accepts, but at most up to `most` bytes in all.
    pub(super) fn drive(&mut self, connection: &mut Connection, most: u64) {
        let written = &mut self.written;
        self.answers.retain_mut(|answer| {
            if answer.left.is_none() {
                answer.left = read_request(connection, answer);
            }
            let Some(left) = &mut answer.left else { return true };
            while *left > 0 && *written < most {
                let bytes = (*left).min(ZEROS.len() as u64) as usize;
                let mut chunk = [Contents::from_static(&ZEROS[..bytes])];
                let Ok(done) = connection.send_stream(answer.stream).write_chunks(&mut chunk) else { break };
                *written += done.bytes as u64;
                *left -= done.bytes as u64;
            }
            if *left == 0 {
                let _ = connection.send_stream(answer.stream).finish();
            }
            *left > 0
        });
    }
}

/// Returns the size of the object once the whole request has arrived.
fn read_request(connection: &mut Connection, answer: &mut Answer) -> Option<u64> {
    let mut received = connection.recv_stream(answer.stream);
    let mut chunks = received.read(true).ok()?;
    while let Ok(Some(chunk)) = chunks.next(REQUEST_BYTES) {
        answer.request.extend_from_slice(&chunk.bytes);
    }
    let _ = chunks.finalize();
    let bytes: [u8; REQUEST_BYTES] = answer.request.get(..REQUEST_BYTES)?.try_into().ok()?;
    Some(Bytes::new(u64::from_be_bytes(bytes)).get())
}
