//! Checks that the Grafana dashboard shows the metrics that agents serve. The tests need no root.

use std::collections::{BTreeMap, BTreeSet};

use narrows_agent::metrics::{registry, render};
use narrows_agent::status::{Board, InterfaceStatus, PortStatus, Snapshot};
use serde_json::Value;

/// Labels that Prometheus adds to every series.
const FROM_PROMETHEUS: [&str; 1] = ["instance"];

/// Returns the labels of each series on the metrics page of a switch that has a controller.
fn served() -> BTreeMap<String, BTreeSet<String>> {
    let board = Board::new();
    let port = PortStatus {
        counters: vec![("stamped".into(), 1), ("unconfirmed".into(), 1)],
        ..PortStatus::default()
    };
    let counters = vec![("release_failures".into(), 1)];
    let interfaces = vec![InterfaceStatus::default()];
    let controller = Some(true);
    board.publish(Snapshot { ports: vec![port], interfaces, counters, controller, ..Snapshot::default() });
    let page = render(&registry(board));
    let samples = page.lines().filter(|line| !line.starts_with('#'));
    let label = |pair: &str| pair.split_once('=').map(|(key, _)| key.to_owned());
    samples
        .map(|line| {
            let (series, _) = line.rsplit_once(' ').unwrap();
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            (name.to_owned(), labels.split(',').filter_map(label).collect())
        })
        .collect()
}

fn dashboard() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/grafana/narrows-agent.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Returns each query of a panel with its legend, and the queries of the dashboard's variables.
fn queries(dashboard: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let targets = dashboard["panels"].as_array().unwrap().iter().flat_map(|panel| {
        panel["targets"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|t| (text(&t["expr"]), text(&t["legendFormat"])))
    });
    let variables = dashboard["templating"]["list"].as_array().unwrap().iter();
    let variables = variables.map(|v| (text(&v["query"]["query"]), String::new()));
    targets.chain(variables.filter(|(query, _)| !query.is_empty())).collect()
}

/// Returns the names of the metrics in a query.
fn metrics(query: &str) -> BTreeSet<String> {
    let words = query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("narrows_")).map(str::to_owned).collect()
}

/// Returns the labels in a query's filters and groups, and in its legend.
fn labels(query: &str, legend: &str) -> BTreeSet<String> {
    let between = |text: &str, open: &str, close: &str| -> Vec<String> {
        let parts = text.split(open).skip(1);
        parts.filter_map(|part| part.split_once(close).map(|(inside, _)| inside.to_owned())).collect()
    };
    let mut found: BTreeSet<String> = between(legend, "{{", "}}").into_iter().collect();
    for filter in between(query, "{", "}") {
        found.extend(filter.split(',').filter_map(|pair| Some(pair.split_once("=~")?.0.to_owned())));
    }
    for group in between(query, "by (", ")") {
        found.extend(group.split(", ").map(str::to_owned));
    }
    found
}

#[test]
fn every_metric_and_label_that_the_dashboard_queries_is_served() {
    let served = served();
    let queries = queries(&dashboard());
    assert!(queries.len() > 15, "{queries:?}");
    for (query, legend) in &queries {
        let metrics = metrics(query);
        assert!(!metrics.is_empty(), "{query} queries no metric");
        for metric in metrics {
            let has = served.get(&metric).unwrap_or_else(|| panic!("{metric} of {query} is not served"));
            for label in labels(query, legend) {
                let known = has.contains(&label) || FROM_PROMETHEUS.contains(&label.as_str());
                assert!(known, "{metric} has no label {label}: {query} / {legend}");
            }
        }
    }
}

#[test]
fn the_dashboard_shows_every_metric() {
    let shown: BTreeSet<_> = queries(&dashboard()).iter().flat_map(|(query, _)| metrics(query)).collect();
    let parts = ["narrows_loop_duration_seconds_sum", "narrows_loop_duration_seconds_count"];
    for metric in served().keys().filter(|metric| !parts.contains(&metric.as_str())) {
        assert!(shown.contains(metric), "no panel shows {metric}");
    }
}
