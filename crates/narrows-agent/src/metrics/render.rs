//! Encodes a snapshot as OpenMetrics families.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::status::{BOUNDS_US, Board, LEAF_NAMES, LoopTimes, PortStatus, Snapshot};

const CLASS_NAMES: [&str; 3] = ["rated", "other-tcp", "udp"];

/// Name of the only counter of the data plane that can decrease. It is exported as a gauge.
const UNCONFIRMED: &str = "unconfirmed";

/// Creates the registry of an agent. For each page, the registry reads the board's latest snapshot once.
pub fn registry(board: Arc<Board>) -> Registry {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(BoardCollector(board)));
    registry
}

/// Returns the registry's metrics in the OpenMetrics text format.
pub fn render(registry: &Registry) -> String {
    let mut page = String::new();
    // Writing into a string cannot fail.
    let _ = text::encode(&mut page, registry);
    page
}

#[derive(Debug)]
struct BoardCollector(Arc<Board>);

impl Collector for BoardCollector {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        encode(&mut Families(encoder), &self.0.latest())
    }
}

fn encode(families: &mut Families<'_>, snapshot: &Snapshot) -> fmt::Result {
    let agent = [("role", snapshot.role.as_str()), ("name", snapshot.name.as_str())];
    Info::new(agent.map(|(key, value)| (key, value.to_owned()))).encode(families.family(
        "narrows_agent",
        MetricType::Info,
        "Role and name of the agent.",
    )?)?;
    let uptime = snapshot.at.since(snapshot.started).as_secs_f64();
    families.gauge("narrows_agent_uptime_seconds", "Time since the agent started.")?.encode_gauge(&uptime)?;
    families
        .gauge("narrows_flows", "Flows in the table, over all ports.")?
        .encode_gauge(&snapshot.flow_count)?;
    if let Some(connected) = snapshot.controller {
        families
            .gauge("narrows_controller_connected", "1 while the SDN controller is connected, else 0.")?
            .encode_gauge(&u32::from(connected))?;
    }
    encode_loop_times(families, &snapshot.loop_times)?;
    let mut family = families
        .gauge("narrows_interface_present", "1 while the interface exists and has the program, else 0.")?;
    for interface in &snapshot.interfaces {
        let (name, present) = (("interface", interface.name.as_str()), u32::from(interface.present));
        match &interface.netns {
            Some(netns) => family.encode_family(&[name, ("netns", netns)])?.encode_gauge(&present)?,
            None => family.encode_family(&[name])?.encode_gauge(&present)?,
        }
    }
    let mut family = families
        .gauge("narrows_namespace_present", "1 while the network namespace exists and is in use, else 0.")?;
    for namespace in &snapshot.namespaces {
        family
            .encode_family(&[("netns", namespace.path.as_str())])?
            .encode_gauge(&u32::from(namespace.present))?;
    }
    encode_ports(families, &snapshot.ports)?;
    encode_leaves(families, &snapshot.ports)?;
    encode_dataplane(families, &snapshot.ports)?;
    if !snapshot.counters.is_empty() {
        let mut family = families.counter("narrows_host_events", "Events that the agent counts.")?;
        for (event, count) in &snapshot.counters {
            encode_count(&mut family, &[("event", event)], *count)?;
        }
    }
    Ok(())
}

fn encode_loop_times(families: &mut Families<'_>, times: &LoopTimes) -> fmt::Result {
    let bounds = BOUNDS_US.iter().map(|us| *us as f64 / 1e6).chain([f64::INFINITY]);
    let buckets: Vec<_> = bounds.zip(times.buckets).collect();
    families
        .family(
            "narrows_loop_duration_seconds",
            MetricType::Histogram,
            "Duration of an iteration of the control loop.",
        )?
        .encode_histogram::<NoLabelSet>(times.total.as_secs_f64(), times.count(), &buckets, None)
}

fn encode_ports(families: &mut Families<'_>, ports: &[PortStatus]) -> fmt::Result {
    let mut family = families.gauge("narrows_port_capacity_bytes_per_second", "Rate of the port's link.")?;
    for port in ports {
        family.encode_family(&[("port", port.interface.as_str())])?.encode_gauge(&port.capacity.as_f64())?;
    }
    let mut family = families
        .gauge("narrows_port_share_bytes_per_second", "Share of the link that a traffic class has.")?;
    for port in ports {
        for (class, share) in CLASS_NAMES.iter().zip(port.shares) {
            family
                .encode_family(&[("port", port.interface.as_str()), ("class", class)])?
                .encode_gauge(&share.as_f64())?;
        }
    }
    let mut family =
        families.gauge("narrows_port_congested", "1 while the port has this kind of congestion, else 0.")?;
    for port in ports {
        for kind in ["queue", "burst"] {
            family
                .encode_family(&[("port", port.interface.as_str()), ("kind", kind)])?
                .encode_gauge(&u32::from(port.congestion == kind))?;
        }
    }
    Ok(())
}

fn encode_leaves(families: &mut Families<'_>, ports: &[PortStatus]) -> fmt::Result {
    type Read = fn(&PortStatus, usize) -> u64;
    let all: [(&str, MetricType, &str, Read); 6] = [
        ("narrows_leaf_flows", MetricType::Gauge, "Flows in the leaf.", |p, n| p.flows[n]),
        ("narrows_leaf_bytes", MetricType::Counter, "Bytes sent from the leaf.", |p, n| {
            p.leaves[n].bytes.get()
        }),
        ("narrows_leaf_packets", MetricType::Counter, "Packets sent from the leaf.", |p, n| {
            p.leaves[n].packets
        }),
        ("narrows_leaf_drops", MetricType::Counter, "Packets dropped because the leaf was full.", |p, n| {
            p.leaves[n].drops
        }),
        ("narrows_leaf_queued_packets", MetricType::Gauge, "Packets queued in the leaf.", |p, n| {
            u64::from(p.leaves[n].queued_packets)
        }),
        ("narrows_leaf_queued_bytes", MetricType::Gauge, "Bytes queued in the leaf.", |p, n| {
            p.leaves[n].queued_bytes.get()
        }),
    ];
    for (name, kind, help, read) in all {
        let is_counter = matches!(kind, MetricType::Counter);
        let mut family = families.family(name, kind, help)?;
        for port in ports {
            for (n, leaf) in LEAF_NAMES.iter().enumerate() {
                let labels = [("port", port.interface.as_str()), ("leaf", leaf)];
                if is_counter {
                    encode_count(&mut family, &labels, read(port, n))?;
                } else {
                    family.encode_family(&labels)?.encode_gauge(&read(port, n))?;
                }
            }
        }
    }
    Ok(())
}

fn encode_dataplane(families: &mut Families<'_>, ports: &[PortStatus]) -> fmt::Result {
    let mut family =
        families.counter("narrows_dataplane_events", "Events counted by the port's eBPF program.")?;
    for port in ports {
        for (event, count) in port.counters.iter().filter(|(event, _)| event != UNCONFIRMED) {
            encode_count(&mut family, &[("port", port.interface.as_str()), ("event", event)], *count)?;
        }
    }
    let mut family = families
        .gauge("narrows_port_unconfirmed_flows", "Flows of which only one direction has been seen so far.")?;
    for port in ports {
        for (_, count) in port.counters.iter().filter(|(event, _)| event == UNCONFIRMED) {
            family.encode_family(&[("port", port.interface.as_str())])?.encode_gauge(count)?;
        }
    }
    Ok(())
}

/// Encodes one sample of a counter. The encoder adds the suffix `_total` to the name of the family.
fn encode_count<const N: usize>(
    family: &mut MetricEncoder<'_>,
    labels: &[(&str, &str); N],
    count: u64,
) -> fmt::Result {
    family.encode_family(labels)?.encode_counter::<NoLabelSet, u64, u64>(&count, None)
}

/// Writes the help and type of a family, and returns the encoder of its samples.
struct Families<'a>(DescriptorEncoder<'a>);

impl Families<'_> {
    fn family<'s>(
        &'s mut self,
        name: &'s str,
        kind: MetricType,
        help: &str,
    ) -> Result<MetricEncoder<'s>, fmt::Error> {
        self.0.encode_descriptor(name, help, None, kind)
    }

    fn gauge<'s>(&'s mut self, name: &'s str, help: &str) -> Result<MetricEncoder<'s>, fmt::Error> {
        self.family(name, MetricType::Gauge, help)
    }

    fn counter<'s>(&'s mut self, name: &'s str, help: &str) -> Result<MetricEncoder<'s>, fmt::Error> {
        self.family(name, MetricType::Counter, help)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::{FlowStatus, InterfaceStatus, NamespaceStatus};
    use narrows_control::units::{Rate, Span};
    use std::collections::BTreeMap;

    fn page() -> String {
        let mut snapshot =
            Snapshot { role: "switch".into(), name: "a\"b\\c\n".into(), ..Snapshot::default() };
        let counters = vec![("stamped".into(), 5), (UNCONFIRMED.into(), 3)];
        let capacity = Rate::from_bits_per_sec(100_000_000);
        let congestion = "burst".into();
        let port =
            PortStatus { interface: "eth1".into(), capacity, congestion, counters, ..Default::default() };
        snapshot.ports.push(port);
        let interface = |name: &str, netns: Option<&str>, present| InterfaceStatus {
            name: name.into(),
            netns: netns.map(String::from),
            present,
            ..Default::default()
        };
        let netns = "/run/netns/h1";
        snapshot.interfaces = vec![
            interface("eth1", None, true),
            interface("eth0", None, false),
            interface("eth0", Some(netns), false),
        ];
        snapshot.namespaces = vec![NamespaceStatus { path: netns.into(), ..Default::default() }];
        snapshot.flows = vec![FlowStatus { source: "10.0.0.1:1".into(), ..Default::default() }; 100];
        snapshot.loop_times.record(Span::from_micros(42));
        snapshot.loop_times.record(Span::from_secs(1));
        snapshot.counters.push(("release_failures".into(), 2));
        let board = Board::new();
        board.publish(snapshot);
        render(&registry(board))
    }

    /// Returns the suffixes for samples of this type (OpenMetrics 1.0, section "Metric Types").
    fn suffixes(kind: &str) -> &'static [&'static str] {
        match kind {
            "gauge" => &[""],
            "counter" => &["_total"],
            "info" => &["_info"],
            "histogram" => &["_bucket", "_sum", "_count"],
            other => panic!("{other}"),
        }
    }

    #[test]
    fn the_page_follows_the_openmetrics_grammar() {
        let text = page();
        let mut kinds = BTreeMap::new();
        let mut current = String::new();
        let mut lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.pop(), Some("# EOF"));
        for line in lines {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                current = rest.split(' ').next().unwrap().to_owned();
                assert!(!kinds.contains_key(&current), "{current} twice");
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert_eq!(name, current);
                kinds.insert(current.clone(), kind.to_owned());
            } else {
                let (series, value) = line.rsplit_once(' ').unwrap();
                assert!(value.parse::<f64>().is_ok(), "{line}");
                let name = series.split('{').next().unwrap();
                let allowed = suffixes(&kinds[&current]).iter().any(|s| name == format!("{current}{s}"));
                assert!(allowed, "{name} in {current}, a {}", kinds[&current]);
            }
        }
        assert!(text.ends_with("# EOF\n") && !text.contains("10.0.0.1"), "no flow is named");
    }

    #[test]
    fn the_page_has_the_values_of_the_snapshot() {
        let text = page();
        for line in [
            "narrows_agent_info{role=\"switch\",name=\"a\\\"b\\\\c\\n\"} 1",
            "narrows_port_capacity_bytes_per_second{port=\"eth1\"} 12500000.0",
            "narrows_port_congested{port=\"eth1\",kind=\"burst\"} 1",
            "narrows_port_congested{port=\"eth1\",kind=\"queue\"} 0",
            "narrows_leaf_bytes_total{port=\"eth1\",leaf=\"mouse\"} 0",
            "narrows_dataplane_events_total{port=\"eth1\",event=\"stamped\"} 5",
            "narrows_interface_present{interface=\"eth1\"} 1",
            "narrows_interface_present{interface=\"eth0\"} 0",
            "narrows_interface_present{interface=\"eth0\",netns=\"/run/netns/h1\"} 0",
            "narrows_namespace_present{netns=\"/run/netns/h1\"} 0",
            "narrows_port_unconfirmed_flows{port=\"eth1\"} 3",
            "narrows_host_events_total{event=\"release_failures\"} 2",
            "narrows_loop_duration_seconds_bucket{le=\"0.000025\"} 0",
            "narrows_loop_duration_seconds_bucket{le=\"0.00005\"} 1",
            "narrows_loop_duration_seconds_bucket{le=\"+Inf\"} 2",
            "narrows_loop_duration_seconds_count 2",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
    }
}
