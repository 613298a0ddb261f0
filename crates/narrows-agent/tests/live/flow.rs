//! Plain TCP connections between hosts, with measurements of the data that arrives.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use narrows_agent::clock;
use narrows_agent::netns::Netns;
use narrows_control::units::{Span, Time};

use super::agent::since;
use super::net::Net;

/// A connection that sends as much as it can, until it is dropped.
pub(crate) struct Flow {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    trouble: Mutex<Option<String>>,
    /// The sending end.
    sender: OnceLock<TcpStream>,
}

impl Shared {
    fn note(&self, what: &str, error: &std::io::Error) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        trouble.get_or_insert_with(|| format!("{what}: {error}"));
    }
}

/// The sending side.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sends {
    Client,
    Server,
}

impl Flow {
    /// Opens a connection from sender number `sender` (`s1`, `s2` ...) to the port `port` of the receiver.
    pub(crate) fn from_sender(net: &Net, sender: usize, port: u16) -> Flow {
        let sender = net.netns(&format!("s{sender}"));
        Flow::open(sender, net.netns("c"), net.server(port, false), Sends::Client, None)
    }

    /// Opens a connection. `congestion` is the sending end's congestion control, set before the first data.
    pub(crate) fn open(
        client: Netns,
        server: Netns,
        address: SocketAddr,
        sends: Sends,
        congestion: Option<&'static str>,
    ) -> Flow {
        let shared = Arc::new(Shared::default());
        let (ready, is_ready) = mpsc::channel();
        let at_server = Arc::clone(&shared);
        let serve = move || {
            server.enter().expect("the server's namespace");
            let listener = TcpListener::bind(address).expect("the server can listen");
            if let Some(name) = congestion.filter(|_| sends == Sends::Server) {
                set_congestion(&listener, name);
            }
            ready.send(()).expect("somebody waits");
            let (stream, _) = listener.accept().expect("the client comes");
            talk(stream, sends == Sends::Server, &at_server);
        };
        let mut threads = vec![thread::spawn(serve)];
        is_ready.recv().expect("the server is ready");
        let at_client = Arc::clone(&shared);
        threads.push(thread::spawn(move || {
            client.enter().expect("the client's namespace");
            match TcpStream::connect(address) {
                Ok(stream) => {
                    if let Some(name) = congestion.filter(|_| sends == Sends::Client) {
                        set_congestion(&stream, name);
                    }
                    talk(stream, sends == Sends::Client, &at_client);
                }
                Err(error) => at_client.note("connect", &error),
            }
        }));
        Flow { shared, threads }
    }

    /// Returns the number of bytes that arrived. The kernel counts them, because the reading program may be delayed on
    /// a busy machine.
    pub(crate) fn received(&self) -> u64 {
        self.shared.sender.get().map_or(0, |stream| tcp_info(stream).1)
    }

    /// Returns the number of delivered packets, including selectively acknowledged ones. Unlike [`Flow::received`],
    /// this number also grows while an earlier packet is missing.
    pub(crate) fn delivered(&self) -> u64 {
        self.shared.sender.get().map_or(0, |stream| u64::from(tcp_info(stream).2))
    }

    /// Returns the errors so far.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the number of retransmitted segments (`tcpi_total_retrans`).
    pub(crate) fn retransmissions(&self) -> u32 {
        self.shared.sender.get().map_or(0, |stream| tcp_info(stream).0)
    }

    /// Waits for the first data.
    pub(crate) fn wait_for_data(&self) {
        let begun = clock::now();
        // The SYN counts as one byte.
        while self.received() <= 1 {
            assert!(since(begun) < Span::from_secs(20), "no data came: {:?}", self.trouble());
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.shared.stop.store(true, Relaxed);
        if let Some(stream) = self.shared.sender.get() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn talk(mut stream: TcpStream, sends: bool, shared: &Shared) {
    if sends {
        if let Ok(clone) = stream.try_clone() {
            let _ = shared.sender.set(clone);
        }
        let chunk = vec![0x5a; 1 << 14];
        while !shared.stop.load(Relaxed) {
            if let Err(error) = stream.write_all(&chunk) {
                if !shared.stop.load(Relaxed) {
                    shared.note("write", &error);
                }
                break;
            }
        }
        let _ = stream.shutdown(Shutdown::Write);
        return;
    }
    let mut sink = vec![0; 1 << 16];
    loop {
        match stream.read(&mut sink) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => {
                if !shared.stop.load(Relaxed) {
                    shared.note("read", &error);
                }
                break;
            }
        }
    }
}

fn set_congestion(socket: &impl std::os::fd::AsFd, name: &str) {
    let name = name.into();
    nix::sys::socket::setsockopt(&socket, nix::sys::socket::sockopt::TcpCongestion, &name)
        .expect("the kernel has this congestion control");
}

/// Returns `tcpi_total_retrans`, `tcpi_bytes_acked` and `tcpi_delivered` of `struct tcp_info` (uapi/linux/tcp.h). The C
/// library declares only the beginning of this structure.
pub(crate) fn tcp_info(stream: &TcpStream) -> (u32, u64, u32) {
    let mut info = [0u8; 256];
    let mut len = info.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes.
    #[allow(unsafe_code)]
    unsafe {
        let to = info.as_mut_ptr().cast();
        libc::getsockopt(stream.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, to, &raw mut len);
    }
    let number = |at: usize| u32::from_ne_bytes([info[at], info[at + 1], info[at + 2], info[at + 3]]);
    let acked = info[120..128].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    (number(100), acked, number(192))
}

/// Measures for the time `span`. Returns each flow's mean rate in Mbit/s.
pub(crate) fn rates(flows: &[&Flow], span: Duration) -> Vec<f64> {
    let read = || -> (Time, Vec<u64>) { (clock::now(), flows.iter().map(|f| f.received()).collect()) };
    let (begun, before) = read();
    thread::sleep(span);
    let (ended, after) = read();
    let seconds = ended.since(begun).as_secs_f64();
    before.iter().zip(after).map(|(b, a)| (a - b) as f64 * 8.0 / seconds / 1e6).collect()
}

/// Returns Jain's index of the rates.
pub(crate) fn jain(rates: &[f64]) -> f64 {
    let (sum, squares) = rates.iter().fold((0.0, 0.0), |(s, q), r| (s + r, q + r * r));
    sum * sum / (rates.len() as f64 * squares)
}

/// Panics if a flow had an error.
pub(crate) fn all_well(flows: &[&Flow]) {
    for (i, flow) in flows.iter().enumerate() {
        assert_eq!(flow.trouble(), None, "flow {i}");
    }
}
