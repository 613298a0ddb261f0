//! Prometheus metrics: the latest snapshot in the OpenMetrics text format, over HTTP.
//!
//! The number of series is bounded by the number of ports and leaves. Flows are counted, never named.

mod render;

use std::net::SocketAddr;
use std::sync::Arc;
use std::{io, thread};

use tiny_http::{Header, Method, Response};

pub use render::{registry, render};

use crate::status::Board;

/// The media type of the page (OpenMetrics 1.0, section "Content-Type").
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The endpoint of a running agent. Dropping it closes the endpoint.
pub struct Metrics {
    server: Arc<tiny_http::Server>,
}

impl Metrics {
    /// Serves `/metrics` at `address`. Port 0 takes any free port.
    ///
    /// # Errors
    /// When the address is in use or does not belong to this host.
    pub fn start(address: SocketAddr, board: Arc<Board>) -> io::Result<Metrics> {
        let named = |e| io::Error::other(format!("metrics.address: {address}: {e}"));
        let server = Arc::new(tiny_http::Server::http(address).map_err(named)?);
        let listener = Arc::clone(&server);
        let registry = registry(board);
        let serve = move || {
            for request in listener.incoming_requests() {
                // A client that has closed the connection is not an error.
                let _ = match (request.method(), request.url()) {
                    (Method::Get, "/metrics") => {
                        request.respond(Response::from_string(render(&registry)).with_header(content_type()))
                    }
                    _ => request.respond(Response::from_string("try /metrics\n").with_status_code(404)),
                };
            }
        };
        thread::Builder::new().name("metrics".into()).spawn(serve)?;
        Ok(Metrics { server })
    }

    /// The address at which it listens.
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
    // The field and its value are constant and valid, so parsing cannot fail.
    Header::from_bytes("Content-Type", CONTENT_TYPE).unwrap_or_else(|()| unreachable!("a constant header"))
}
