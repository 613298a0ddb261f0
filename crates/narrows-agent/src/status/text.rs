//! A snapshot as readable text, with a paragraph for each port.

use std::fmt::Write;

use narrows_control::units::{Rate, Span};

use super::{LEAF_NAMES, NamespaceStatus, Snapshot};

/// Returns a rate in Mbit/s as text, with three significant digits.
pub fn mbit(rate: Rate) -> String {
    let mbit = rate.as_bits_per_sec() / 1e6;
    match mbit {
        m if m >= 100.0 => format!("{m:.0}"),
        m if m >= 10.0 => format!("{m:.1}"),
        m => format!("{m:.2}"),
    }
}

/// Returns a duration in ms as text.
pub fn ms(span: Span) -> String {
    format!("{:.2}", span.as_secs_f64() * 1e3)
}

/// Returns the snapshot as text, without its flows.
pub fn render(snapshot: &Snapshot) -> String {
    let mut out = String::new();
    // Writing into a string cannot fail.
    let _ = write_into(&mut out, snapshot);
    out
}

fn write_into(out: &mut String, s: &Snapshot) -> std::fmt::Result {
    let up = s.at.since(s.started).as_secs_f64();
    let controller = match s.controller {
        None => "",
        Some(true) => ", controller connected",
        Some(false) => ", controller disconnected",
    };
    writeln!(out, "{} {:?}: up {up:.0} s, {} flows{controller}", s.role, s.name, s.flow_count)?;
    if s.loop_times.count() > 0 {
        let (half, most) = (s.loop_times.quantile(0.5), s.loop_times.quantile(0.99));
        let longest = ms(s.loop_times.longest);
        writeln!(
            out,
            "  control loop iteration: median <= {} ms, p99 <= {} ms, longest {longest} ms",
            ms(half),
            ms(most)
        )?;
    }
    let gone: Vec<_> = s.namespaces.iter().filter(|namespace| !namespace.present).collect();
    for NamespaceStatus { path, refusal, .. } in &gone {
        writeln!(out, "  namespace {path}: {}; the programs do not apply to it", absence(refusal))?;
    }
    for interface in s.interfaces.iter().filter(|interface| !interface.present) {
        let place = match &interface.netns {
            Some(path) if gone.iter().any(|namespace| namespace.path == *path) => continue,
            Some(path) => format!(" in {path}"),
            None => String::new(),
        };
        let (name, absence) = (&interface.name, absence(&interface.refusal));
        let what = if interface.controlled { "is not controlled" } else { "has no program" };
        writeln!(out, "  interface {name}{place}: {absence}; it {what}")?;
    }
    for port in &s.ports {
        let [rated, other, udp] = port.shares.map(mbit);
        let subscribers = port.subscribers.map_or_else(String::new, |n| format!(", {n} subscribers"));
        writeln!(
            out,
            "  port {}: {} Mbit/s (rated {rated}, other TCP {other}, UDP {udp}), phase {}, congestion {}{subscribers}",
            port.interface,
            mbit(port.capacity),
            port.phase,
            port.congestion
        )?;
        for ((name, leaf), flows) in LEAF_NAMES.iter().zip(&port.leaves).zip(port.flows) {
            writeln!(
                out,
                "    {name:<9} {flows:>6} flows, {:>6} packets queued ({} bytes), {} sent, {} dropped",
                leaf.queued_packets,
                leaf.queued_bytes.get(),
                leaf.packets,
                leaf.drops
            )?;
        }
        let counters = port.counters.iter().filter(|(_, n)| *n > 0);
        let counters: Vec<_> = counters.map(|(name, n)| format!("{name} {n}")).collect();
        if !counters.is_empty() {
            writeln!(out, "    {}", counters.join(", "))?;
        }
    }
    for (name, n) in &s.counters {
        writeln!(out, "  {name} {n}")?;
    }
    if let Some(line) = first_segments(s) {
        writeln!(out, "  first segments of connections: {line}")?;
    }
    Ok(())
}

/// Returns whether the first ten segments of a sender's connections are paced. Returns `None` as long as no connection
/// had a rate.
fn first_segments(s: &Snapshot) -> Option<&'static str> {
    let count = |name: &str| s.counters.iter().find(|(counter, _)| counter == name).map(|(_, n)| *n);
    match (count("rated")?, count("held")?) {
        (0, _) => None,
        (_, 0) => Some("none waited; they are paced only if the interface has the qdisc fq"),
        _ => Some("paced by the qdisc fq"),
    }
}

/// Returns why an interface or a namespace is not used.
fn absence(refusal: &str) -> String {
    if refusal.is_empty() { "missing".to_owned() } else { format!("refused ({refusal})") }
}

/// Returns the flows as text, one line each.
pub fn flows(snapshot: &Snapshot) -> String {
    let mut out = String::new();
    for flow in &snapshot.flows {
        let allocation = flow.allocation.map_or("-".to_owned(), mbit);
        let rtt = flow.rtt.map_or("-".to_owned(), ms);
        let _ = writeln!(
            out,
            "  {} > {} ({}, {}): {} of {allocation} Mbit/s, RTT {rtt} ms",
            flow.source,
            flow.destination,
            flow.class,
            flow.leaf,
            mbit(flow.rate)
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::PortStatus;
    use super::*;

    #[test]
    fn a_port_shows_its_subscribers_if_they_share() {
        let of = |subscribers| {
            let port = PortStatus { interface: "eth1".into(), subscribers, ..PortStatus::default() };
            render(&Snapshot { ports: vec![port], ..Snapshot::default() })
        };
        assert!(of(Some(2)).contains(", 2 subscribers\n"), "{}", of(Some(2)));
        assert!(!of(None).contains("subscribers"));
    }

    #[test]
    fn a_sender_states_whether_first_segments_are_paced() {
        let of = |rated, held| {
            let counters = vec![("rated".into(), rated), ("held".into(), held)];
            render(&Snapshot { counters, ..Snapshot::default() })
        };
        assert!(of(3, 7).ends_with("first segments of connections: paced by the qdisc fq\n"));
        assert!(of(3, 0).contains("only if the interface has the qdisc fq"));
        assert!(!of(0, 0).contains("first segments"));
    }
}
