//! Tests the metrics endpoint under attack: the control loop continues, and Prometheus gets its page. The tests need no
//! root.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use narrows_agent::clock;
use narrows_agent::metrics::{self, Metrics};
use narrows_agent::status::client::Client;
use narrows_agent::status::server::{Request, Server};
use narrows_agent::status::{Board, PortStatus, Snapshot};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use proptest::prelude::*;

/// Longest time that a client waits.
const PATIENCE: Duration = Duration::from_secs(30);

/// An agent with a control loop, a status socket and metrics, but without a data plane in the kernel.
struct Agent {
    beats: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    control: Option<JoinHandle<()>>,
    metrics: Metrics,
    _server: Server,
    folder: tempfile::TempDir,
}

impl Agent {
    fn start() -> Agent {
        // This process has both ends of a thousand connections open, so raise the limit of open files.
        let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        setrlimit(Resource::RLIMIT_NOFILE, most, most).unwrap();
        let (board, beats, stop) = (Board::new(), Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let control = thread::spawn({
            let (board, beats, stop) = (Arc::clone(&board), Arc::clone(&beats), Arc::clone(&stop));
            move || {
                board.publish(snapshot(0));
                while !stop.load(Ordering::Relaxed) {
                    let beat = beats.fetch_add(1, Ordering::Relaxed) + 1;
                    if board.wanted(clock::now()).0 {
                        board.publish(snapshot(beat));
                    }
                    thread::sleep(Duration::from_millis(2));
                }
            }
        });
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(&folder.path().join("s.sock"), Arc::clone(&board)).unwrap();
        let listener = metrics::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let metrics = Metrics::start(listener, board).unwrap();
        Agent { beats, stop, control: Some(control), metrics, _server: server, folder }
    }

    fn address(&self) -> SocketAddr {
        self.metrics.address()
    }

    fn get(&self, path: &str) -> String {
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        self.said(request.as_bytes())
    }

    fn said(&self, request: &[u8]) -> String {
        let mut stream = self.connect();
        stream.write_all(request).unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        said
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Opens connections that send these bytes, and then do nothing.
    fn held(&self, count: usize, bytes: &[u8]) -> Vec<TcpStream> {
        let hold = |_| {
            let mut stream = self.connect();
            // The endpoint may have closed the connection already.
            let _ = stream.write_all(bytes);
            stream
        };
        (0..count).map(hold).collect()
    }

    /// Checks that the loop runs, the status socket answers, and the page shows the present state.
    fn goes_on(&self) {
        let before = self.beats.load(Ordering::Relaxed);
        while self.beats.load(Ordering::Relaxed) < before + 10 {
            assert!(self.control.as_ref().is_some_and(|control| !control.is_finished()));
            thread::sleep(Duration::from_millis(2));
        }
        let mut client = Client::connect(&self.folder.path().join("s.sock"), &Request::default()).unwrap();
        assert!(client.next().unwrap().unwrap().flow_count >= before);
        // If two requests follow shortly after each other, the endpoint answers both with the same page. Therefore
        // wait.
        thread::sleep(Duration::from_millis(250));
        let (before, begun) = (self.beats.load(Ordering::Relaxed), clock::now());
        let page = self.get("/metrics");
        println!("a page took {:.3} s", clock::now().since(begun).as_secs_f64());
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.ends_with("# EOF\n"), "{page}");
        assert!(page.contains("narrows_agent_info{role=\"switch\",name=\"s1\"} 1\n"), "{page}");
        let flows = page.lines().find_map(|line| line.strip_prefix("narrows_flows ")).unwrap();
        assert!(flows.parse::<u64>().unwrap() >= before, "{flows} is older than {before}");
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.control.take().map(JoinHandle::join);
    }
}

/// Returns the agent's state in iteration `beat` of the control loop. The metrics page of this state is long.
fn snapshot(beat: u64) -> Snapshot {
    let port = |n: usize| PortStatus { interface: format!("eth{n}"), ..PortStatus::default() };
    let ports = (0..63).map(port).collect();
    Snapshot {
        role: "switch".into(),
        name: "s1".into(),
        flow_count: beat,
        at: clock::now(),
        ports,
        ..Snapshot::default()
    }
}

#[test]
fn only_metrics_are_served_over_http() {
    let agent = Agent::start();
    let page = agent.get("/metrics");
    assert!(
        page.starts_with("HTTP/1.1 200") && page.contains("application/openmetrics-text; version=1.0.0"),
        "{page}"
    );
    assert!(page.contains("\nnarrows_port_capacity_bytes_per_second{port=\"eth62\"} 0.0\n"), "{page}");
    assert!(agent.get("/").starts_with("HTTP/1.1 404"));
    assert!(agent.said(b"POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
    let head = agent.said(b"HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "{head}");
}

#[test]
fn the_first_page_has_the_present_state() {
    let agent = Agent::start();
    while agent.beats.load(Ordering::Relaxed) < 10 {
        thread::sleep(Duration::from_millis(2));
    }
    let page = agent.get("/metrics");
    let flows = page.lines().find_map(|line| line.strip_prefix("narrows_flows ")).unwrap();
    assert!(flows.parse::<u64>().unwrap() >= 10, "{flows}");
}

#[test]
fn a_loop_that_hangs_is_reported() {
    let mut agent = Agent::start();
    agent.stop.store(true, Ordering::Relaxed);
    agent.control.take().unwrap().join().unwrap();
    assert!(agent.get("/metrics").starts_with("HTTP/1.1 503"));
}

#[test]
fn an_announced_body_is_neither_read_nor_allocated() {
    let agent = Agent::start();
    for method in ["POST", "PUT", "GET"] {
        for field in [
            "Content-Length: 99999999999",
            "Content-Length: 18446744073709551615",
            "Transfer-Encoding: chunked",
        ] {
            let path = if method == "GET" { "/metrics" } else { "/x" };
            let said = agent.said(format!("{method} {path} HTTP/1.1\r\n{field}\r\n\r\n").as_bytes());
            let expected = if method == "GET" { "HTTP/1.1 413" } else { "HTTP/1.1 405" };
            assert!(said.starts_with(expected), "{method} {field}: {said}");
        }
    }
    agent.goes_on();
}

#[test]
fn fifty_posts_of_a_gigabyte_without_a_body_do_not_block_the_page() {
    let agent = Agent::start();
    let held = agent.held(50, b"POST /metrics HTTP/1.1\r\nContent-Length: 1000000000\r\n\r\n");
    agent.goes_on();
    drop(held);
}

#[test]
fn a_thousand_idle_connections_do_not_block_the_page() {
    let agent = Agent::start();
    let held = agent.held(1000, b"");
    agent.goes_on();
    drop(held);
}

#[test]
fn unread_answers_do_not_block_the_page() {
    let agent = Agent::start();
    let held = agent.held(200, b"GET /metrics HTTP/1.1\r\n\r\n");
    agent.goes_on();
    drop(held);
}

#[test]
fn slow_requests_do_not_block_the_page_and_are_given_up() {
    let agent = Agent::start();
    let mut held = agent.held(200, b"GET /metrics HTTP/1.1\r\n");
    let (stop, address) = (Arc::<AtomicBool>::default(), agent.address());
    let loris = thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            // If the endpoint has closed a connection, the client connects again.
            while !stop.load(Ordering::Relaxed) {
                for stream in &mut held {
                    if stream.write_all(b"A: b\r\n").is_err() {
                        *stream = TcpStream::connect(address).unwrap();
                    }
                }
                thread::sleep(Duration::from_millis(10));
            }
        }
    });
    for _ in 0..3 {
        agent.goes_on();
    }
    stop.store(true, Ordering::Relaxed);
    loris.join().unwrap();
    // If a request does not end, the endpoint closes the connection.
    let mut slow = agent.connect();
    slow.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
    assert_eq!(slow.read(&mut [0; 1]).unwrap(), 0);
}

#[test]
fn of_pipelined_requests_the_first_is_answered() {
    let agent = Agent::start();
    let said = agent.said(&b"GET /metrics HTTP/1.1\r\n\r\n".repeat(500));
    assert_eq!(said.matches("HTTP/1.1 200").count(), 1);
    agent.goes_on();
}

#[test]
fn a_megabyte_of_headers_is_refused() {
    let agent = Agent::start();
    let mut stream = agent.connect();
    let long = [&b"GET /metrics HTTP/1.1\r\nA: "[..], &vec![b'a'; 1_000_000]].concat();
    // The endpoint closes the connection before it has read all data. The kernel then resets the connection, so this
    // write may fail.
    let _ = stream.write_all(&long);
    let mut said = [0; 12];
    if stream.read_exact(&mut said).is_ok() {
        assert_eq!(&said, b"HTTP/1.1 431");
    }
    agent.goes_on();
}

#[test]
fn random_bytes_do_no_harm() {
    let agent = Agent::start();
    let begins = prop_oneof![Just(""), Just("GET /metrics HTTP/1.1\r\n"), Just("POST /x HTTP/1.1\r\n")];
    let bytes = (begins, proptest::collection::vec(any::<u8>(), 0..20_000));
    let config = ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let ran = runner.run(&bytes, |(begin, bytes)| {
        drop(agent.held(1, &[begin.as_bytes(), &bytes].concat()));
        Ok(())
    });
    ran.unwrap();
    agent.goes_on();
}
