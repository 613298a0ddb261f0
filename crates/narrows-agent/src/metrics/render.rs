//! A snapshot in Prometheus' text format.

use std::fmt::Write;

use crate::status::{BOUNDS_US, LEAF_NAMES, LoopTimes, PortStatus, Snapshot};

const CLASS_NAMES: [&str; 3] = ["rated", "other-tcp", "udp"];

/// The text, one family after the other with its help and type.
pub fn render(snapshot: &Snapshot) -> String {
    let mut page = Page::default();
    let agent = [("role", snapshot.role.as_str()), ("name", snapshot.name.as_str())];
    page.family("narrows_agent_info", "gauge", "The agent that this is.");
    page.sample("narrows_agent_info", &agent, 1.0);
    page.family("narrows_agent_uptime_seconds", "gauge", "Seconds since the agent started.");
    page.sample("narrows_agent_uptime_seconds", &[], snapshot.at.since(snapshot.started).as_secs_f64());
    page.family("narrows_flows", "gauge", "Flows in the table, all ports together.");
    page.sample("narrows_flows", &[], snapshot.flow_count as f64);
    if let Some(connected) = snapshot.controller {
        page.family("narrows_controller_connected", "gauge", "1 while the SDN controller is connected.");
        page.sample("narrows_controller_connected", &[], f64::from(u8::from(connected)));
    }
    loop_times(&mut page, &snapshot.loop_times);
    ports(&mut page, snapshot);
    if !snapshot.counters.is_empty() {
        page.family("narrows_host_events_total", "counter", "What a sender or receiver counted.");
        for (what, n) in &snapshot.counters {
            page.sample("narrows_host_events_total", &[("event", what)], *n as f64);
        }
    }
    page.text
}

fn loop_times(page: &mut Page, times: &LoopTimes) {
    let name = "narrows_loop_duration_seconds";
    page.family(name, "histogram", "How long turns of the control loop took.");
    let mut below = 0;
    for (n, count) in times.buckets.iter().enumerate() {
        below += count;
        let bound = BOUNDS_US.get(n).map_or("+Inf".to_owned(), |us| format!("{}", *us as f64 / 1e6));
        page.sample(&format!("{name}_bucket"), &[("le", &bound)], below as f64);
    }
    page.sample(&format!("{name}_sum"), &[], times.total.as_secs_f64());
    page.sample(&format!("{name}_count"), &[], times.count() as f64);
}

fn ports(page: &mut Page, snapshot: &Snapshot) {
    page.family("narrows_port_capacity_bytes_per_second", "gauge", "Rate of the port's link.");
    for port in &snapshot.ports {
        let labels = [("port", port.interface.as_str())];
        page.sample("narrows_port_capacity_bytes_per_second", &labels, port.capacity.as_f64());
    }
    page.family("narrows_port_share_bytes_per_second", "gauge", "Share of a class in the link.");
    for port in &snapshot.ports {
        for (class, share) in CLASS_NAMES.iter().zip(port.shares) {
            let labels = [("port", port.interface.as_str()), ("class", class)];
            page.sample("narrows_port_share_bytes_per_second", &labels, share.as_f64());
        }
    }
    page.family("narrows_port_congested", "gauge", "1 while the port is congested, by kind.");
    for port in &snapshot.ports {
        for kind in ["queue", "burst"] {
            let labels = [("port", port.interface.as_str()), ("kind", kind)];
            page.sample("narrows_port_congested", &labels, f64::from(u8::from(port.congestion == kind)));
        }
    }
    // What a leaf's family shows of a port and the number of a leaf, which is below LEAVES.
    type Read = fn(&PortStatus, usize) -> f64;
    let families: [(&str, &str, &str, Read); 6] = [
        ("narrows_leaf_flows", "gauge", "Flows of a leaf.", |p, n| p.flows[n] as f64),
        ("narrows_leaf_bytes_total", "counter", "Bytes that left a leaf.", |p, n| p.leaves[n].bytes.as_f64()),
        ("narrows_leaf_packets_total", "counter", "Packets that left a leaf.", |p, n| {
            p.leaves[n].packets as f64
        }),
        ("narrows_leaf_drops_total", "counter", "Packets that found no room in a leaf.", |p, n| {
            p.leaves[n].drops as f64
        }),
        ("narrows_leaf_queued_packets", "gauge", "Packets that wait in a leaf.", |p, n| {
            f64::from(p.leaves[n].queued_packets)
        }),
        ("narrows_leaf_queued_bytes", "gauge", "Bytes that wait in a leaf.", |p, n| {
            p.leaves[n].queued_bytes.as_f64()
        }),
    ];
    for (name, kind, help, read) in families {
        page.family(name, kind, help);
        for port in &snapshot.ports {
            for (n, leaf) in LEAF_NAMES.iter().enumerate() {
                page.sample(name, &[("port", &port.interface), ("leaf", leaf)], read(port, n));
            }
        }
    }
    page.family("narrows_dataplane_events_total", "counter", "What the port's eBPF program counted.");
    for port in &snapshot.ports {
        for (event, n) in &port.counters {
            let labels = [("port", port.interface.as_str()), ("event", event)];
            page.sample("narrows_dataplane_events_total", &labels, *n as f64);
        }
    }
}

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    // Writing into a string cannot fail, so that results are dropped.

    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let escape = |v: &str| v.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels: Vec<_> = labels.iter().map(|(k, v)| format!("{k}=\"{}\"", escape(v))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.text, "{name}{labels} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::FlowStatus;
    use narrows_control::units::{Rate, Span};
    use std::collections::BTreeSet;

    fn snapshot() -> Snapshot {
        let mut snapshot =
            Snapshot { role: "switch".into(), name: "a\"b\\c\n".into(), ..Snapshot::default() };
        let counters = vec![("stamped".into(), 5)];
        let capacity = Rate::from_bits_per_sec(100_000_000);
        let congestion = "burst".into();
        let port =
            PortStatus { interface: "eth1".into(), capacity, congestion, counters, ..Default::default() };
        snapshot.ports.push(port);
        snapshot.flows = vec![FlowStatus { source: "10.0.0.1:1".into(), ..Default::default() }; 100];
        snapshot.loop_times.record(Span::from_micros(42));
        snapshot.loop_times.record(Span::from_secs(1));
        snapshot
    }

    /// The grammar of the exposition format: a family's help and type come once, before its samples, and each sample
    /// belongs to the family above it.
    #[test]
    fn every_line_obeys_the_text_format() {
        let text = render(&snapshot());
        let mut families = BTreeSet::new();
        let mut current = String::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                current = rest.split(' ').next().unwrap().to_owned();
                assert!(families.insert(current.clone()), "{current} twice");
            } else if !line.starts_with("# TYPE ") {
                assert!(line.starts_with(&current), "{line} in {current}");
                let (name, value) = line.rsplit_once(' ').unwrap();
                assert!(value.parse::<f64>().is_ok(), "{line}");
                assert_eq!(name.matches('{').count(), name.matches('}').count());
            }
        }
        assert!(text.ends_with('\n') && !text.contains("10.0.0.1"), "no flow is named");
    }

    #[test]
    fn figures_are_where_they_belong() {
        let text = render(&snapshot());
        for line in [
            "narrows_agent_info{role=\"switch\",name=\"a\\\"b\\\\c\\n\"} 1",
            "narrows_port_capacity_bytes_per_second{port=\"eth1\"} 12500000",
            "narrows_port_congested{port=\"eth1\",kind=\"burst\"} 1",
            "narrows_port_congested{port=\"eth1\",kind=\"queue\"} 0",
            "narrows_dataplane_events_total{port=\"eth1\",event=\"stamped\"} 5",
            "narrows_loop_duration_seconds_bucket{le=\"0.000025\"} 0",
            "narrows_loop_duration_seconds_bucket{le=\"0.00005\"} 1",
            "narrows_loop_duration_seconds_bucket{le=\"+Inf\"} 2",
            "narrows_loop_duration_seconds_count 2",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
    }
}
