//! Serves metrics for Prometheus: the present state of the agent in the OpenMetrics text format, over HTTP.
//!
//! The number of series is bounded by the number of ports and leaves. The metrics count flows, but do not name them.

mod http;
mod render;

use std::net::{SocketAddr, TcpListener};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use std::{io, thread};

use nix::sys::eventfd::EventFd;
use nix::sys::socket::{Backlog, listen};

pub use http::answer;
pub use render::{registry, render};

use crate::status::Board;

/// The media type of the page (OpenMetrics 1.0, section "Content-Type").
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// After a request, the control loop must publish its state within this time. A tick takes at most a second.
const LOOP_TIME: Duration = Duration::from_secs(2);
/// Pause before the endpoint restarts after a failure.
const PAUSE: Duration = Duration::from_secs(1);

/// Opens the endpoint's address in the calling thread's network namespace. Port 0 takes any free port.
///
/// # Errors
/// If the address is in use or does not belong to this namespace.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let open = || {
        let listener = TcpListener::bind(address)?;
        // std's queue has room for only 128 connections. If the queue were full, a new connection would be delayed by a
        // second.
        listen(&listener, Backlog::MAXCONN)?;
        Ok(listener)
    };
    open().map_err(|e: io::Error| io::Error::new(e.kind(), format!("metrics.address: {address}: {e}")))
}

/// The endpoint of a running agent. Dropping this value closes the endpoint.
#[derive(Debug)]
pub struct Metrics {
    address: SocketAddr,
    stop: Arc<EventFd>,
}

impl Metrics {
    /// Serves the page `/metrics` on the listener.
    ///
    /// # Errors
    /// If no descriptors or threads are left.
    pub fn start(listener: TcpListener, board: Arc<Board>) -> io::Result<Metrics> {
        let registry = registry(Arc::clone(&board));
        Metrics::serve(listener, move || board.fresh(LOOP_TIME).map(|_| render(&registry)))
    }

    fn serve(
        listener: TcpListener,
        mut page: impl FnMut() -> Option<String> + Send + 'static,
    ) -> io::Result<Metrics> {
        let address = listener.local_addr()?;
        let stop = Arc::new(EventFd::new()?);
        let stopped = Arc::clone(&stop);
        // A failure of this thread must not end the agent.
        let run = move || {
            loop {
                match catch_unwind(AssertUnwindSafe(|| http::serve(&listener, &stopped, &mut page))) {
                    Ok(Ok(())) => return,
                    Ok(Err(error)) => tracing::warn!(event = "metrics-restarted", %error),
                    Err(_) => tracing::warn!(event = "metrics-restarted", error = "panic"),
                }
                thread::sleep(PAUSE);
            }
        };
        thread::Builder::new().name("metrics".into()).spawn(run)?;
        Ok(Metrics { address, stop })
    }

    /// Returns the address at which the endpoint listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        // The write fails only if the counter is full. In this case, the thread was already asked to stop.
        let _ = self.stop.write(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    #[test]
    fn the_endpoint_works_again_after_a_panic() {
        let mut calls = 0;
        let page = move || {
            calls += 1;
            assert!(calls > 1, "the first page panics");
            Some("page".to_owned())
        };
        let metrics = Metrics::serve(bind("127.0.0.1:0".parse().unwrap()).unwrap(), page).unwrap();
        let get = || {
            let mut stream = TcpStream::connect(metrics.address()).unwrap();
            let mut said = String::new();
            stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
            let _ = stream.read_to_string(&mut said);
            said
        };
        assert_eq!(get(), "");
        assert!(get().ends_with("\r\n\r\npage"));
    }

    #[test]
    fn a_closed_endpoint_frees_its_address() {
        let listener = bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let metrics = Metrics::serve(listener, || None).unwrap();
        let address = metrics.address();
        drop(metrics);
        // The thread closes the socket a moment later.
        assert!((0..1000).any(|_| {
            thread::sleep(Duration::from_millis(5));
            bind(address).is_ok()
        }));
    }
}
