//! A bounded HTTP/1 server for one page, in one thread.
//!
//! Any host that can reach the address can connect. The server therefore bounds the number of connections, the length
//! of a request, and the times for a request and its answer. It does not read a body, and allocates no memory for it.
//! If there are too many connections, a new connection displaces an old one. The displaced connection is the oldest
//! one of the address that has the most connections.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use narrows_control::units::{Span, Time};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::EventFd;

use crate::clock;

/// Largest number of connections at a time.
const CONNECTIONS: usize = 64;
/// Largest length of the request line and the headers together, in bytes.
const HEAD_MAX: usize = 8192;
/// Largest number of header fields of a request.
const HEADERS_MAX: usize = 64;
/// A request must be complete within this time.
const REQUEST_TIME: Span = Span::from_secs(5);
/// An answer must be written within this time.
const ANSWER_TIME: Span = Span::from_secs(5);
/// After an answer, the client must close the connection within this time. If the server closed the connection while
/// data is unread, the kernel would reset it, and the client could lose the answer.
const CLOSE_TIME: Span = Span::from_secs(1);
/// Largest number of bytes that are read and discarded within [`CLOSE_TIME`].
const DISCARD_MAX: usize = 65_536;
/// During this time after a page is made, the server answers all requests with this page.
const PAGE_TIME: Span = Span::from_millis(200);
/// Pause after an error of the listener, e.g. if no descriptors are free.
const PAUSE: Duration = Duration::from_millis(50);

/// Makes the page at `/metrics`, or returns `None` if this is impossible now.
pub(super) type Page = dyn FnMut() -> Option<String> + Send;

/// Serves the page until another thread writes to `stop`.
///
/// # Errors
/// If the kernel refuses to wait for descriptors.
pub(super) fn serve(listener: &TcpListener, stop: &EventFd, page: &mut Page) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let mut page = Cache { page, at: None };
    let mut open: Vec<Connection> = Vec::with_capacity(CONNECTIONS);
    loop {
        let ready = wait(listener, stop, &open)?;
        let [stopped, newcomers, ready @ ..] = &ready[..] else { return Ok(()) };
        if *stopped {
            return Ok(());
        }
        let now = clock::now();
        let mut ready = ready.iter();
        open.retain_mut(|one| {
            let is_ready = ready.next().copied().unwrap_or_default();
            one.deadline > now && (!is_ready || one.advance(now, &mut page))
        });
        if *newcomers {
            accept(listener, &mut open, now, &mut page);
        }
    }
}

/// Waits for events or the next deadline. Each element of the result says whether a descriptor has an event. The order
/// is: `stop`, the listener, the connections.
fn wait(listener: &TcpListener, stop: &EventFd, open: &[Connection]) -> io::Result<Vec<bool>> {
    let now = clock::now();
    let next = open.iter().map(|one| one.deadline).min();
    let timeout = next.map_or(PollTimeout::NONE, |then| {
        let ms = then.since(now).as_nanos().div_ceil(1_000_000);
        u16::try_from(ms).unwrap_or(u16::MAX).into()
    });
    let mut fds =
        vec![PollFd::new(stop.as_fd(), PollFlags::POLLIN), PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
    fds.extend(open.iter().map(|one| PollFd::new(one.stream.as_fd(), one.awaited())));
    match poll(&mut fds, timeout) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(fds.iter().map(|fd| fd.any().unwrap_or(true)).collect())
}

/// Accepts waiting connections, at most [`CONNECTIONS`] per call. Answers a complete request at once.
fn accept(listener: &TcpListener, open: &mut Vec<Connection>, now: Time, page: &mut Cache<'_>) {
    for _ in 0..CONNECTIONS {
        let (stream, peer) = match listener.accept() {
            Ok((stream, peer)) => (stream, peer.ip()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {
                continue;
            }
            Err(_) => {
                displace(open);
                thread::sleep(PAUSE);
                return;
            }
        };
        if stream.set_nonblocking(true).is_err() {
            continue;
        }
        let mut new = Connection {
            stream,
            peer,
            deadline: now + REQUEST_TIME,
            buffer: Box::new([0; HEAD_MAX]),
            filled: 0,
            phase: Phase::Request,
        };
        if new.advance(now, page) {
            if open.len() >= CONNECTIONS {
                displace(open);
            }
            open.push(new);
        }
    }
}

/// Closes the oldest connection of the address with the most connections.
fn displace(open: &mut Vec<Connection>) {
    let of_peer = |peer: IpAddr| open.iter().filter(|one| one.peer == peer).count();
    // If several connections have the largest count, `max_by_key` returns the last of them. The order is reversed, so
    // this is the oldest connection.
    let found = open.iter().enumerate().rev().max_by_key(|(_, one)| of_peer(one.peer)).map(|(at, _)| at);
    if let Some(at) = found {
        open.remove(at);
    }
}

enum Phase {
    /// The request is being read.
    Request,
    /// The answer is being written. The number counts the bytes written so far.
    Answer(Arc<[u8]>, usize),
    /// The answer is written. The number is the largest number of further bytes that are read and discarded.
    Close(usize),
}

struct Connection {
    stream: TcpStream,
    peer: IpAddr,
    deadline: Time,
    buffer: Box<[u8; HEAD_MAX]>,
    filled: usize,
    phase: Phase,
}

impl Connection {
    fn awaited(&self) -> PollFlags {
        match self.phase {
            Phase::Answer(..) => PollFlags::POLLOUT,
            Phase::Request | Phase::Close(_) => PollFlags::POLLIN,
        }
    }

    /// Reads and writes without waiting. Returns whether the connection stays open.
    fn advance(&mut self, now: Time, page: &mut Cache<'_>) -> bool {
        loop {
            match self.step(now, page) {
                Ok(true) => {}
                Ok(false) => return false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
    }

    /// Reads or writes once. Returns whether the connection stays open.
    fn step(&mut self, now: Time, page: &mut Cache<'_>) -> io::Result<bool> {
        match &mut self.phase {
            Phase::Request => {
                let room = self.buffer.get_mut(self.filled..).unwrap_or_default();
                let read = self.stream.read(room)?;
                self.filled += read;
                let head = self.buffer.get(..self.filled).unwrap_or_default();
                if let Some(answer) = respond(head, page) {
                    self.deadline = clock::now() + ANSWER_TIME;
                    self.phase = Phase::Answer(answer, 0);
                }
                Ok(read > 0)
            }
            Phase::Answer(answer, written) => {
                let rest = answer.get(*written..).unwrap_or_default();
                if rest.is_empty() {
                    self.stream.shutdown(Shutdown::Write)?;
                    self.deadline = now + CLOSE_TIME;
                    self.phase = Phase::Close(DISCARD_MAX);
                    return Ok(true);
                }
                let count = self.stream.write(rest)?;
                *written += count;
                Ok(count > 0)
            }
            Phase::Close(left) => {
                let read = self.stream.read(&mut self.buffer[..])?;
                *left = left.saturating_sub(read);
                Ok(read > 0 && *left > 0)
            }
        }
    }
}

/// Returns the answer to a request, or `None` while its head is incomplete. `page` makes the page. For the fuzzer and
/// tests.
pub fn answer(head: &[u8], page: &mut Page) -> Option<Vec<u8>> {
    respond(head, &mut Cache { page, at: None }).map(|answer| answer.to_vec())
}

/// Returns the answer to a request, or `None` while its head is incomplete.
fn respond(head: &[u8], page: &mut Cache<'_>) -> Option<Arc<[u8]>> {
    let mut fields = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) if head.len() < HEAD_MAX => return None,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return Some(plain("431 Request Header Fields Too Large", "", "the request is too long\n"));
        }
        Err(_) => return Some(plain("400 Bad Request", "", "expected GET /metrics\n")),
    }
    let is_head = request.method == Some("HEAD");
    if !is_head && request.method != Some("GET") {
        return Some(plain("405 Method Not Allowed", "Allow: GET, HEAD\r\n", "expected GET /metrics\n"));
    }
    let announces_body = |field: &httparse::Header<'_>| {
        field.name.eq_ignore_ascii_case("transfer-encoding")
            || (field.name.eq_ignore_ascii_case("content-length") && field.value != b"0")
    };
    if request.headers.iter().any(announces_body) {
        return Some(plain("413 Content Too Large", "", "expected a request without a body\n"));
    }
    let path = request.path.unwrap_or_default().split('?').next().unwrap_or_default();
    if path != "/metrics" {
        return Some(plain("404 Not Found", "", "expected GET /metrics\n"));
    }
    Some(page.answer(is_head))
}

fn plain(status: &str, fields: &str, body: &str) -> Arc<[u8]> {
    let (head, body) = (head_of(status, "text/plain; charset=utf-8", fields, body.len()), body.as_bytes());
    [head.as_bytes(), body].concat().into()
}

fn head_of(status: &str, kind: &str, fields: &str, length: usize) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{fields}Connection: close\r\n\r\n"
    )
}

/// Makes the page at most once per [`PAGE_TIME`].
struct Cache<'a> {
    page: &'a mut Page,
    /// When the page was made, and the answers to HEAD and GET.
    at: Option<(Time, [Arc<[u8]>; 2])>,
}

impl Cache<'_> {
    fn answer(&mut self, is_head: bool) -> Arc<[u8]> {
        let kept = self.at.take().filter(|(at, _)| clock::now().since(*at) < PAGE_TIME);
        let (at, answers) = kept.unwrap_or_else(|| {
            let answers = match (self.page)() {
                Some(body) => {
                    let head = head_of("200 OK", super::CONTENT_TYPE, "", body.len());
                    let whole = [head.as_bytes(), body.as_bytes()].concat();
                    [head.into_bytes().into(), whole.into()]
                }
                None => {
                    let text = "the control loop does not answer\n";
                    [const { "" }, text].map(|text| plain("503 Service Unavailable", "", text))
                }
            };
            (clock::now(), answers)
        });
        let answer = Arc::clone(&answers[usize::from(!is_head)]);
        self.at = Some((at, answers));
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn status_of(request: &[u8]) -> Option<String> {
        let mut page = || Some("page\n".to_owned());
        let text = String::from_utf8(answer(request, &mut page)?).unwrap();
        Some(text.split(' ').nth(1).unwrap().to_owned())
    }

    #[test]
    fn requests_get_the_right_status() {
        let many = "a: b\r\n".repeat(HEADERS_MAX + 1);
        let long = format!("GET /metrics HTTP/1.1\r\nA: {}", "a".repeat(HEAD_MAX));
        let cases = [
            ("GET /metrics HTTP/1.1\r\n\r\n", Some("200")),
            ("HEAD /metrics HTTP/1.0\r\n\r\n", Some("200")),
            ("GET /metrics?a=b HTTP/1.1\r\nContent-Length: 0\r\n\r\n", Some("200")),
            ("GET /metrics HTTP/1.1\r\nHost: x\r\n", None),
            ("GET / HTTP/1.1\r\n\r\n", Some("404")),
            ("POST /metrics HTTP/1.1\r\n\r\n", Some("405")),
            ("POST /x HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", Some("405")),
            ("GET /metrics HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", Some("413")),
            ("GET /metrics HTTP/1.1\r\ncontent-length: -1\r\n\r\n", Some("413")),
            ("GET /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", Some("413")),
            ("GET /metrics HTTP/9.9\r\n\r\n", Some("400")),
            ("\0\r\n\r\n", Some("400")),
            (&format!("GET /metrics HTTP/1.1\r\n{many}\r\n"), Some("431")),
            (&long[..HEAD_MAX], Some("431")),
        ];
        for (request, expected) in cases {
            assert_eq!(status_of(request.as_bytes()).as_deref(), expected, "{request:?}");
        }
    }

    #[test]
    fn the_answer_to_head_has_no_body() {
        let mut page = || Some("page\n".to_owned());
        let mut cache = Cache { page: &mut page, at: None };
        let [head, whole] = [true, false].map(|is_head| cache.answer(is_head).to_vec());
        assert!(head.ends_with(b"Content-Length: 5\r\nConnection: close\r\n\r\n"));
        assert_eq!(whole, [&head[..], b"page\n"].concat());
    }

    proptest! {
        #[test]
        fn any_bytes_get_an_answer_before_they_exceed_the_bound(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            method in prop_oneof![Just("GET "), Just("POST "), Just("HEAD /metrics HTTP/1.1\r\n"), Just("")],
        ) {
            let request = [method.as_bytes(), &bytes].concat();
            status_of(&request);
            let mut full = [request, vec![b'a'; HEAD_MAX]].concat();
            full.truncate(HEAD_MAX);
            prop_assert!(status_of(&full).is_some());
        }
    }
}
