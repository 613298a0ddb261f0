//! Layouts: topologies that convert a few keys into nodes, links and default ends of flows.

use crate::error::{Error, Result, found_text};
use crate::files::Files;
use crate::model::network::Traits;
use crate::model::queue::Queue;
use crate::model::topology::MAX_PAIRS;
use crate::model::{Dumbbell, Link, Named, ParkingLot, Star, Topology};
use crate::topology::{self, Facts};
use crate::units::{BitRate, Limit, MAX_BITS_PER_SEC, Span, format_rate};
use crate::value::python::six_digits;

/// Ratio of the rate of access links to the rate of the topology's fastest link.
pub const ACCESS_FACTOR: u64 = 10;
/// Lowest rate, bit/s. It is one byte per second, because rates in plans are whole bytes per second.
pub(super) const LEAST_RATE: u64 = 8;
/// Suffix of the names of hosts. The rest of the name is the name of the host's switch.
pub const HOST: &str = ".host";

/// Returns the rates that a scaled link or demand may have, in words.
pub(super) fn rates() -> String {
    format!("from {} to {}", format_rate(BitRate(LEAST_RATE)), format_rate(BitRate(MAX_BITS_PER_SEC)))
}

/// A link before its directions are made.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) name: Option<String>,
    pub(super) between: (String, String),
    pub(super) traits: Traits,
    pub(super) back: Option<Traits>,
}

impl Draft {
    fn new(a: impl Into<String>, b: impl Into<String>, traits: Traits) -> Self {
        Draft { name: None, between: (a.into(), b.into()), traits, back: None }
    }

    fn named(self, name: impl Into<String>) -> Self {
        Draft { name: Some(name.into()), ..self }
    }

    pub(super) fn of(link: &Link) -> Self {
        let end = |i: usize| link.between.get(i).cloned().unwrap_or_default();
        Draft {
            name: link.name.clone(),
            between: (end(0), end(1)),
            traits: link.traits.clone(),
            back: link.back.clone(),
        }
    }
}

/// The expansion of a topology.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    pub(super) links: Vec<Draft>,
    /// Default ends of flows, as pairs of (from, to). If entry i of the flows has no `from` or `to`, it takes that end
    /// from pair i modulo the number of pairs.
    pub(super) endpoints: Vec<(String, String)>,
    /// Names of the intended bottleneck links.
    pub(super) bottlenecks: Vec<String>,
}

/// Returns the expansion of a layout; `None` for a published network.
///
/// # Arguments
/// * `flows`: the number of entries of flows.
/// * `trace_peak`: the highest rate of the bottleneck's trace.
pub(super) fn layout(topology: &Topology, flows: usize, trace_peak: Option<BitRate>) -> Option<Layout> {
    match topology {
        Topology::Dumbbell(dumbbell) => Some(of_dumbbell(dumbbell, flows, trace_peak)),
        Topology::ParkingLot(lot) => Some(of_parking_lot(lot, trace_peak)),
        Topology::Star(star) => Some(of_star(star)),
        Topology::Named(_) => None,
    }
}

fn one_bdp() -> Queue {
    Queue::fifo(Limit::Bdp(1.0))
}

/// Returns a bottleneck link with a topology's properties. By default its queue is one BDP.
fn tight(traits: &Traits, delay: Span) -> Traits {
    let queue = traits.queue.clone().unwrap_or_else(one_bdp);
    Traits { delay: Some(delay), queue: Some(queue), ..traits.clone() }
}

fn access(rate: BitRate, delay: Span) -> Traits {
    Traits::plain(rate, delay, Queue::fifo(Limit::Infinite))
}

/// Returns the default rate of access links: `ACCESS_FACTOR` times the highest rate of the bottleneck.
fn widest(traits: &Traits, trace_peak: Option<BitRate>) -> BitRate {
    let changes = traits.at.iter().filter_map(|change| change.rate);
    let most = traits.rate.into_iter().chain(trace_peak).chain(changes).max().unwrap_or_default();
    BitRate(most.0.saturating_mul(ACCESS_FACTOR).min(MAX_BITS_PER_SEC))
}

fn half(span: Span) -> Span {
    Span::from_nanos(span.as_nanos() / 2)
}

/// The delay of the bottleneck link is `delay`, or half of the smallest one-way delay of all pairs. The rest of a
/// pair's delay is divided between the access links of the pair.
fn of_dumbbell(dumbbell: &Dumbbell, flows: usize, trace_peak: Option<BitRate>) -> Layout {
    let by_flows = || dumbbell.rtts.as_ref().map_or(flows.clamp(1, MAX_PAIRS), Vec::len);
    let pairs = dumbbell.pairs.map_or_else(by_flows, |pairs| pairs as usize);
    let one_way: Vec<Span> = match &dumbbell.rtts {
        Some(rtts) => rtts.iter().map(|rtt| half(*rtt)).collect(),
        None => vec![half(dumbbell.rtt.unwrap_or_default()); pairs],
    };
    let traits = &dumbbell.traits;
    let shortest = one_way.iter().min().copied().unwrap_or_default();
    let middle = traits.delay.unwrap_or(half(shortest));
    let rate = dumbbell.access_rate.unwrap_or_else(|| widest(traits, trace_peak));
    let mut links = vec![Draft::new("r1", "r2", tight(traits, middle)).named("bottleneck")];
    for (i, one_way) in (1..=pairs).zip(&one_way) {
        let rest = if traits.delay.is_some() { Span::ZERO } else { *one_way - middle };
        links.push(Draft::new(format!("s{i}"), "r1", access(rate, half(rest))));
        links.push(Draft::new("r2", format!("d{i}"), access(rate, rest - half(rest))));
    }
    let endpoints = (1..=pairs).map(|i| (format!("s{i}"), format!("d{i}"))).collect();
    Layout { links, endpoints, bottlenecks: vec!["bottleneck".to_owned()] }
}

/// By default, flow 0 crosses all hops, and flow i crosses hop i.
fn of_parking_lot(lot: &ParkingLot, trace_peak: Option<BitRate>) -> Layout {
    let rate = lot.access_rate.unwrap_or_else(|| widest(&lot.traits, trace_peak));
    let delay = lot.traits.delay.unwrap_or_default();
    let router = |i: u32| format!("r{i}");
    let host = || access(rate, lot.access_delay);
    let hop =
        |i: u32| Draft::new(router(i), router(i + 1), tight(&lot.traits, delay)).named(format!("hop{i}"));
    let mut links: Vec<Draft> = (1..=lot.hops).map(hop).collect();
    links.push(Draft::new("s0", "r1", host()));
    links.push(Draft::new(router(lot.hops + 1), "d0", host()));
    for i in 1..=lot.hops {
        links.push(Draft::new(format!("s{i}"), router(i), host()));
        links.push(Draft::new(router(i + 1), format!("d{i}"), host()));
    }
    Layout {
        links,
        endpoints: (0..=lot.hops).map(|i| (format!("s{i}"), format!("d{i}"))).collect(),
        bottlenecks: (1..=lot.hops).map(|i| format!("hop{i}")).collect(),
    }
}

/// The links begin at the hub, so their loss and trace apply to packets to the hosts.
fn of_star(star: &Star) -> Layout {
    let quarter = Span::from_nanos(star.rtt.unwrap_or_default().as_nanos() / 4);
    let delay = star.traits.delay.unwrap_or(quarter);
    let hosts: Vec<String> = (1..=star.leaves).map(|i| format!("h{i}")).collect();
    Layout {
        links: hosts.iter().map(|host| Draft::new("hub", host, tight(&star.traits, delay))).collect(),
        endpoints: hosts.iter().skip(1).map(|host| (host.clone(), "h1".to_owned())).collect(),
        bottlenecks: vec!["hub->h1".to_owned()],
    }
}

/// Returns the facts of a published network.
///
/// # Errors
/// Returns an error if there is no such network.
pub(super) fn facts(named: &Named, files: &dyn Files) -> Result<Facts> {
    topology::find(&named.name, named.k, files).map_err(|error| error.at("topology"))
}

/// Returns the links of a published network.
///
/// # Errors
/// Returns an error if the given keys do not determine the rates of the links.
pub(super) fn published_links(named: &Named, facts: &Facts) -> Result<Vec<Draft>> {
    let queue = named.queue.clone().unwrap_or_else(one_bdp);
    let made = facts.edges.iter().map(|edge| {
        let rate = published_rate(named, edge)?;
        let delay = named.delay.unwrap_or_else(|| edge.propagation());
        Ok(Draft::new(edge.a.clone(), edge.b.clone(), Traits::plain(rate, delay, queue.clone())))
    });
    made.collect()
}

fn published_rate(named: &Named, edge: &topology::Edge) -> Result<BitRate> {
    if let Some(rate) = named.rate {
        return Ok(rate);
    }
    let Some(own) = edge.rate else {
        let unused = if named.scale.is_some() { "; scale has no effect" } else { "" };
        let name = found_text(&named.name);
        let message = format!("found nothing, expected a rate: {name} has no capacities of its own{unused}");
        return Err(Error::new(message, "topology.rate"));
    };
    let scale = named.scale.unwrap_or(1.0);
    let scaled = (own as f64 * scale).round_ties_even() as u64;
    if !(LEAST_RATE..=MAX_BITS_PER_SEC).contains(&scaled) {
        let message = format!(
            "found {} (the link {}-{} would have {}), expected a scale that gives a rate {}",
            six_digits(scale),
            edge.a,
            edge.b,
            format_rate(BitRate(scaled)),
            rates()
        );
        return Err(Error::new(message, "topology.scale"));
    }
    Ok(BitRate(scaled))
}

/// Returns, for each end that is a switch, the name of its host, and the links of these hosts.
pub(super) fn published_hosts<'e>(
    named: &Named,
    facts: &Facts,
    ends: impl Iterator<Item = &'e str>,
    links: &[Draft],
) -> (indexmap::IndexMap<String, String>, Vec<Draft>) {
    let switches: std::collections::HashSet<&str> =
        facts.nodes.iter().map(String::as_str).filter(|node| !facts.hosts.contains(*node)).collect();
    let mut hosts = indexmap::IndexMap::new();
    for end in ends {
        let switch = end.strip_suffix(HOST).unwrap_or(end);
        if switches.contains(switch) {
            hosts.insert(end.to_owned(), format!("{switch}{HOST}"));
        }
    }
    let fastest = links.iter().filter_map(|link| link.traits.rate).max().unwrap_or_default();
    let by_factor = || BitRate(fastest.0.saturating_mul(ACCESS_FACTOR).min(MAX_BITS_PER_SEC));
    let rate = named.access.rate.unwrap_or_else(by_factor);
    let delay = named.access.delay.unwrap_or(facts.access_delay);
    let traits = Traits { jitter: named.access.jitter.clone(), ..access(rate, delay) };
    let unique: indexmap::IndexSet<&String> = hosts.values().collect();
    let made = unique
        .into_iter()
        .map(|host| {
            let switch = host.strip_suffix(HOST).unwrap_or(host);
            Draft::new(host.clone(), switch, traits.clone())
        })
        .collect();
    (hosts, made)
}

/// Returns the links from switches of a published network to its other nodes, as (from, to).
pub(super) fn published_core(facts: &Facts) -> Vec<(String, String)> {
    let both = facts.edges.iter().flat_map(|edge| [(&edge.a, &edge.b), (&edge.b, &edge.a)]);
    both.filter(|(a, _)| !facts.hosts.contains(*a)).map(|(a, b)| (a.clone(), b.clone())).collect()
}
