//! What happened, as structured events on standard error.

use std::io;

use narrows_control::rate::{Action, FlowKey, Proto};
use tracing_subscriber::EnvFilter;

use crate::config::Log;

/// Sends events to standard error as the configuration says. Once per process; a second call changes nothing.
pub fn start(log: &Log) {
    let filter = EnvFilter::try_new(&log.level).unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    // Fails when a test has installed another: then that one is used.
    let _ = if log.json {
        builder.json().flatten_event(true).with_current_span(false).try_init()
    } else {
        builder.with_ansi(false).try_init()
    };
}

/// `10.0.0.1:4000>10.0.0.2:80/tcp`
pub fn flow_name(key: &FlowKey) -> String {
    let end = |address, port| std::net::SocketAddr::new(address, port);
    let proto = match key.proto {
        Proto::Tcp => "tcp",
        Proto::Udp => "udp",
    };
    format!("{}>{}/{proto}", end(key.saddr, key.sport), end(key.daddr, key.dport))
}

/// Logs what a rate controller decided at `port` (an interface). Decisions about flows are `debug`: there may be
/// thousands in a second. The value is in SI units (bytes/s, seconds, count).
pub fn action(port: &str, action: &Action) {
    match action {
        Action::Log { event, flow: None, value } => tracing::info!(port, event, value),
        Action::Log { event, flow: Some(flow), value } => {
            tracing::debug!(port, event, flow = %flow_name(flow), value);
        }
        Action::SetClass { class, rate, ceil } => {
            let (rate, ceil) = (rate.as_bytes_per_sec(), ceil.as_bytes_per_sec());
            tracing::debug!(port, event = "set-class", ?class, rate, ceil);
        }
        Action::ToController(message) => tracing::trace!(port, event = "to-controller", ?message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_named_by_both_ends() {
        let mut key = FlowKey {
            saddr: [10, 0, 0, 1].into(),
            daddr: [10, 0, 0, 2].into(),
            sport: 4000,
            dport: 80,
            proto: Proto::Tcp,
        };
        assert_eq!(flow_name(&key), "10.0.0.1:4000>10.0.0.2:80/tcp");
        key.saddr = std::net::Ipv6Addr::LOCALHOST.into();
        assert_eq!(flow_name(&key), "[::1]:4000>10.0.0.2:80/tcp");
    }
}
