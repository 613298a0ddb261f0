//! Structured events on standard error.

use std::collections::BTreeMap;
use std::io;
use std::sync::OnceLock;

use narrows_control::rate::kit::features::Features;
use narrows_control::rate::{Action, FlowKey, Proto};
use narrows_control::units::{Rate, Span, Time};
use tracing_subscriber::EnvFilter;

use crate::clock;
use crate::config::Log;

/// The function that sets the level of the log, from [`start`].
static LEVEL: OnceLock<Box<dyn Fn(EnvFilter) + Send + Sync>> = OnceLock::new();

/// Starts the log on standard error. Call this once per process, because a second call has no effect.
pub fn start(log: &Log) {
    // libbpf's warnings get the level `debug`, because the agent reports the same problems in one line.
    libbpf_rs::set_print(Some((libbpf_rs::PrintLevel::Warn, |_, said| {
        tracing::debug!("{}", said.trim_end())
    })));
    let builder = tracing_subscriber::fmt().with_env_filter(filter(&log.level)).with_writer(io::stderr);
    // `try_init` fails if a test has installed another subscriber, which then stays.
    if log.json {
        let builder = builder.json().flatten_event(true).with_current_span(false).with_filter_reloading();
        let handle = builder.reload_handle();
        if builder.try_init().is_ok() {
            let _ = LEVEL.set(Box::new(move |filter| drop(handle.reload(filter))));
        }
    } else {
        let builder = builder.with_ansi(false).with_filter_reloading();
        let handle = builder.reload_handle();
        if builder.try_init().is_ok() {
            let _ = LEVEL.set(Box::new(move |filter| drop(handle.reload(filter))));
        }
    }
}

/// Changes the log's level while the agent runs.
pub fn set_level(level: &str) {
    if let Some(set) = LEVEL.get() {
        set(filter(level));
    }
}

fn filter(level: &str) -> EnvFilter {
    EnvFilter::try_new(level).unwrap_or_else(|_| EnvFilter::new("info"))
}

/// Returns the name of a flow in the log, e.g. `10.0.0.1:4000>10.0.0.2:80/tcp`.
pub fn flow_name(key: &FlowKey) -> String {
    let end = |address, port| std::net::SocketAddr::new(address, port);
    let proto = match key.proto {
        Proto::Tcp => "tcp",
        Proto::Udp => "udp",
    };
    format!("{}>{}/{proto}", end(key.saddr, key.sport), end(key.daddr, key.dport))
}

/// Shortest time between two logged events of the same kind at a port. Without this limit, a port that enters and
/// leaves congestion in every RTT would fill the log.
const SAME_EVERY: Span = Span::from_secs(10);

/// For each kind of event: when it was last logged, and how many events were suppressed since then.
#[derive(Debug, Default)]
pub struct Repetitions(BTreeMap<&'static str, (Time, u64)>);

impl Repetitions {
    /// Decides whether an event may be logged. If so, returns how many events of this kind were suppressed since the
    /// last logged event of this kind. Otherwise, returns `None`.
    fn admit(&mut self, now: Time, event: &'static str) -> Option<u64> {
        let Some((last, suppressed)) = self.0.get_mut(event) else {
            self.0.insert(event, (now, 0));
            return Some(0);
        };
        if now.since(*last) < SAME_EVERY {
            *suppressed += 1;
            return None;
        }
        *last = now;
        Some(core::mem::take(suppressed))
    }
}

/// Logs a rate controller's decision at `port` (an interface). Events of the port have the level `info`, or `debug` if
/// they are repeated within `SAME_EVERY`. Events of flows have the level `debug`, because there may be thousands per
/// second. The value is in SI units (bytes/s, seconds, count).
pub fn action(port: &str, repetitions: &mut Repetitions, action: &Action) {
    match action {
        Action::Log { event, flow: None, value } => match repetitions.admit(clock::now(), event) {
            Some(suppressed) => tracing::info!(port, event, value, suppressed),
            None => tracing::debug!(port, event, value),
        },
        Action::Log { event, flow: Some(flow), value } => {
            tracing::debug!(port, event, flow = %flow_name(flow), value);
        }
        Action::State { state, value } => tracing::trace!(port, event = state, value),
        Action::Record { flow: _, features, joined: _, rate, limited } => {
            record(port, features, *rate, *limited)
        }
        Action::SetClass { class, rate, ceil } => {
            let (rate, ceil) = (rate.as_bytes_per_sec(), ceil.as_bytes_per_sec());
            tracing::debug!(port, event = "set-class", ?class, rate, ceil);
        }
        Action::ToController(message) => tracing::trace!(port, event = "to-controller", ?message),
        Action::ToSource { flow, rate } => {
            tracing::trace!(port, event = "to-source", flow = %flow_name(flow), rate = rate.as_bytes_per_sec());
        }
    }
}

/// Logs the record of a flow, from which `narrows train` trains a bandwidth model. Records have their own target: with
/// the filter `info,narrows_agent::records=debug`, the log has the records, but no other events of the level `debug`.
fn record(port: &str, features: &Features, rate: Rate, limited: bool) {
    let [
        source_high,
        source_low,
        destination_high,
        destination_low,
        ip_version,
        service,
        protocol,
        second_of_day,
    ] = features.values();
    tracing::debug!(
        target: "narrows_agent::records",
        port,
        event = "flow-record",
        use_bps = rate.as_bytes_per_sec().saturating_mul(8),
        limited = u8::from(limited),
        source_high,
        source_low,
        destination_high,
        destination_low,
        ip_version,
        service,
        protocol,
        second_of_day,
    );
}

/// Warns that packets that leave by `port` may contain flows that the agent does not see. Call this once for each kind
/// of encapsulation.
pub fn unopened(port: &str, encapsulation: &str, advice: &str) {
    tracing::warn!(
        port,
        event = "unopened",
        encapsulation,
        "the agent does not rate flows inside these packets: {advice}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_events_are_logged_at_intervals_with_their_count() {
        let mut repetitions = Repetitions::default();
        let at = |s| Time::ZERO + Span::from_secs(s);
        assert_eq!(repetitions.admit(at(1), "congestion-burst"), Some(0));
        assert_eq!(repetitions.admit(at(1), "congestion-end"), Some(0), "another kind");
        for s in 2..11 {
            assert_eq!(repetitions.admit(at(s), "congestion-burst"), None);
        }
        assert_eq!(repetitions.admit(at(11), "congestion-burst"), Some(9));
        assert_eq!(repetitions.admit(at(12), "congestion-burst"), None);
        assert_eq!(repetitions.admit(at(21), "congestion-burst"), Some(1));
    }

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
