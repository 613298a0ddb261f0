//! Checks whether the entries of a scenario fit together. Each entry has already been checked by itself.

use std::collections::{HashMap, HashSet};

use indexmap::IndexSet;
use narrows_plan::LimitPlan;

use super::entries::Entry;
use super::graph::{Direction, Graph};
use super::paths::Path;
use crate::data::{FULL_PACKET, HEADERS};
use crate::error::{Error, Result, found_text};
use crate::model::{Flow, Queue, Topology, Transport};
use crate::scenario::Scenario;
use crate::units::{BitRate, Bytes, Limit, format_rate};

/// Checks flows against the network.
///
/// # Errors
/// Returns an error for the first contradiction.
pub(super) fn check(scenario: &Scenario, graph: &Graph<'_>, entries: &[Entry], paths: &[Path]) -> Result<()> {
    every_rtt_is_used(scenario, entries)?;
    for link in &graph.links {
        // If the reverse direction inherits a queue, the rates of its classes are not checked, because the queue was
        // chosen for the rate of the forward direction.
        if !link.inherits_queue {
            guarantees(link)?;
        }
    }
    let mut controlled: HashSet<usize> = HashSet::new();
    for (i, controller) in scenario.rate_controllers.iter().enumerate() {
        let links = graph.controlled(controller, &format!("rate_controllers.{i}"))?;
        controlled.extend(links.into_iter().map(|(link, _)| link));
    }
    let classes: HashMap<usize, usize> = graph
        .links
        .iter()
        .enumerate()
        .filter(|(i, _)| !controlled.contains(i))
        .map(|(i, link)| (i, link.traits.queue.as_ref().map_or(0, Queue::classes)))
        .filter(|(_, n)| *n > 0)
        .collect();
    for (entry, path) in entries.iter().zip(paths) {
        if classes.is_empty() && entry.flow.class_ == 0 {
            continue;
        }
        // The links that the flow's data or ACKs cross, without duplicates.
        let crossed: IndexSet<usize> =
            path.data_links().chain(path.back.iter().chain(&path.also_back).copied()).collect();
        let crossed = crossed
            .into_iter()
            .filter_map(|link| classes.get(&link).and_then(|n| graph.links.get(link).map(|link| (link, *n))));
        class(&entry.flow, &format!("{}.class", entry.key()), &crossed.collect::<Vec<_>>())?;
    }
    if scenario.sdn.is_some() && scenario.rate_controllers.is_empty() {
        let message = "found no [[rate_controllers]], expected at least one that [sdn] can poll";
        return Err(Error::new(message, "sdn"));
    }
    Ok(())
}

/// Checks that the sum of the classes' rates does not exceed the link's rate. Links with a trace are not checked,
/// because a trace has no single rate.
fn guarantees(link: &Direction) -> Result<()> {
    let (Some(Queue::Htb(queue)), None) = (&link.traits.queue, &link.capacity) else { return Ok(()) };
    let changes = link.traits.at.iter().filter_map(|change| change.rate);
    let most = changes.chain([link.rate()]).max().unwrap_or_default();
    let total = BitRate(queue.classes.iter().fold(0u64, |sum, class| sum.saturating_add(class.rate.0)));
    if total > most {
        let (total, most) = (format_rate(total), format_rate(most));
        let message = format!("found rates of {total} in all, expected at most the link's {most}");
        return Err(Error::new(message, format!("{}.queue.classes", link.key)));
    }
    Ok(())
}

/// Checks that a flow's class exists. The simulator would replace a missing class by the last class.
///
/// `with_classes` has the links of the flow's paths whose queues have classes, each with its number of classes.
fn class(flow: &Flow, key: &str, with_classes: &[(&Direction, usize)]) -> Result<()> {
    let class = usize::from(flow.class_);
    for (link, n) in with_classes {
        if class >= *n {
            let what = if *n > 1 { format!("0 to {}", n - 1) } else { "0".to_owned() };
            let queue = format!("(the queue of {} has {n})", found_text(&link.name));
            return Err(Error::new(format!("found {class}, expected {what} {queue}"), key));
        }
    }
    if class > 0 && with_classes.is_empty() {
        let message = format!("found {class}, expected 0: no queue on the flow's path has classes");
        return Err(Error::new(message, key));
    }
    Ok(())
}

/// Checks that flows use each pair that `rtts` defines.
///
/// All flows of an entry use the same pair. If there are fewer entries than pairs, some pairs have no flows.
fn every_rtt_is_used(scenario: &Scenario, entries: &[Entry]) -> Result<()> {
    let Some(Topology::Dumbbell(dumbbell)) = &scenario.topology else { return Ok(()) };
    let Some(n) = dumbbell.rtts.as_ref().map(Vec::len).filter(|n| *n > 0) else { return Ok(()) };
    let mut used: HashSet<String> = HashSet::new();
    for entry in entries {
        let pair = entry.index % n + 1;
        used.insert(entry.from.clone().unwrap_or_else(|| format!("s{pair}")));
        used.insert(entry.to.clone().unwrap_or_else(|| format!("d{pair}")));
    }
    let is_used = |pair: &usize| used.contains(&format!("s{pair}")) || used.contains(&format!("d{pair}"));
    match (1..=n).find(|pair| !is_used(pair)) {
        Some(idle) if !scenario.flows.is_empty() => {
            let message = format!(
                "found {n} RTTs, but no flow uses pair {idle}; give each pair an entry of flows (all flows of an entry \
                 use one pair)"
            );
            Err(Error::new(message, "topology.rtts"))
        }
        _ => Ok(()),
    }
}

/// Returns the size of the largest data packet that crosses each link, L3 bytes.
pub(super) fn largest_packets(entries: &[Entry], paths: &[Path]) -> HashMap<usize, u64> {
    let mut largest: HashMap<usize, u64> = HashMap::new();
    for (entry, path) in entries.iter().zip(paths) {
        let flow = &entry.flow;
        let size = if flow.transport == Transport::Udp { flow.packet } else { flow.mss + HEADERS };
        for link in path.data_links() {
            let most = largest.entry(link).or_default();
            *most = (*most).max(u64::from(size));
        }
    }
    largest
}

/// Checks that a packet fits into a queue. Otherwise, each packet that arrives at a busy link is dropped.
///
/// # Errors
/// Returns an error if `limit` is less than a packet of `packet` bytes.
pub(super) fn check_limit(limit: Limit, packet: u64, key: &str) -> Result<()> {
    match limit {
        Limit::Bytes(bytes) if bytes < packet => {
            let found = found_text(&limit.to_string());
            let message = format!("found {found}, expected at least a full packet of its flows ({packet}B)");
            Err(Error::new(message, key))
        }
        _ => Ok(()),
    }
}

/// Checks that a packet fits into a policer's bucket. The policer would drop all larger packets.
///
/// # Errors
/// Returns an error if `burst` is less than a packet of `packet` bytes.
pub(super) fn check_burst(burst: Bytes, packet: u64, key: &str) -> Result<()> {
    if burst.get() >= packet {
        return Ok(());
    }
    Err(Error::new(format!("found '{}B', expected at least a full packet ({packet}B)", burst.get()), key))
}

/// Returns a length in whole packets.
pub(super) fn in_packets(limit: &LimitPlan) -> u32 {
    let bytes = limit.bytes.map_or(0.0, Bytes::as_f64);
    let whole = (bytes / f64::from(FULL_PACKET)).round_ties_even() as u32;
    limit.packets.filter(|packets| *packets > 0).unwrap_or(whole.max(1))
}

/// Checks that a queue can mark: its marking threshold must be below its limit. Otherwise the queue would drop packets
/// instead of marking them.
///
/// # Errors
/// Returns an error if `limit` is so small that the queue would drop every packet that it should mark.
pub(super) fn check_mark(mark: &LimitPlan, limit: &LimitPlan, key: &str) -> Result<()> {
    if let Some(packets) = limit.packets {
        let (length, most) = (i64::from(in_packets(mark)), i64::from(packets) - 1);
        if length >= most {
            let message = format!(
                "found {length} packets, expected less than {most}: the queue's limit is {packets}, so nothing would \
                 ever be marked"
            );
            return Err(Error::new(message, key));
        }
    } else if let Some(bytes) = limit.bytes {
        let length = mark.bytes.unwrap_or_default();
        if length >= bytes {
            let found = mark.bytes.map_or("None".to_owned(), |bytes| bytes.get().to_string());
            let message = format!(
                "found {found}B, expected less than the queue's limit of {}B: nothing would ever be marked",
                bytes.get()
            );
            return Err(Error::new(message, key));
        }
    }
    Ok(())
}
