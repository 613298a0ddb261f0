//! Prometheus: the snapshot in the text format (version 0.0.4), over HTTP on loopback.
//!
//! Cardinality is bounded by ports and leaves; flows are counted, never named.

mod render;

use std::net::SocketAddr;
use std::sync::Arc;
use std::{io, thread};

use tiny_http::{Header, Method, Response};

pub use render::render;

use crate::clock;
use crate::status::Board;

/// The endpoint of a running agent; dropping it closes it.
pub struct Metrics {
    server: Arc<tiny_http::Server>,
}

impl Metrics {
    /// Serves `/metrics` at `address`; port 0 takes any.
    ///
    /// # Errors
    /// When the address is taken or not of this host.
    pub fn start(address: SocketAddr, board: Arc<Board>) -> io::Result<Metrics> {
        let named = |e| io::Error::other(format!("metrics.address: {address}: {e}"));
        let server = Arc::new(tiny_http::Server::http(address).map_err(named)?);
        let listener = Arc::clone(&server);
        let serve = move || {
            for request in listener.incoming_requests() {
                // A client that has gone is no event.
                let _ = match (request.method(), request.url()) {
                    (Method::Get, "/metrics") => {
                        let text = render(&board.look(clock::now(), false));
                        request.respond(Response::from_string(text).with_header(content_type()))
                    }
                    _ => request.respond(Response::from_string("try /metrics\n").with_status_code(404)),
                };
            }
        };
        thread::Builder::new().name("metrics".into()).spawn(serve)?;
        Ok(Metrics { server })
    }

    /// Where it listens.
    pub fn address(&self) -> Option<SocketAddr> {
        self.server.server_addr().to_ip()
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        self.server.unblock();
    }
}

fn content_type() -> Header {
    // The field and value are constant and valid, so that the fallback is never used.
    Header::from_bytes("Content-Type", "text/plain; version=0.0.4")
        .unwrap_or_else(|()| unreachable!("a constant header"))
}
