//! Pairs of hosts for an entry of flows that has several senders or receivers.

use std::collections::HashSet;

use indexmap::{IndexMap, IndexSet};

use super::entries::Published;
use super::layout;
use super::random::Random;
use crate::error::{Error, Result, found_text, hint};
use crate::model::flow::MAX_ENTRIES;
use crate::model::{Ends, Flow, Pattern, Topology};
use crate::scenario::Scenario;

/// Returns the pairs (sender, receiver) of an entry, in the order of its senders.
///
/// The scenario's seed determines the random pairs of the patterns `permutation` and `random`. In a sweep, the scenario
/// has the seed of a point's first run.
///
/// # Errors
/// Returns an error if a name matches no host, or if there are too few hosts.
pub(super) fn pairs(
    scenario: &Scenario,
    published: &Published,
    flow: &Flow,
    index: usize,
) -> Result<Vec<(String, String)>> {
    let key = format!("flows.{index}");
    let known = hosts(scenario, published)?;
    let senders = named(flow.source.as_ref(), &known, &format!("{key}.from"))?;
    let receivers = named(flow.to.as_ref(), &known, &format!("{key}.to"))?;
    let mut random = Random::new(&format!("{}/{index}", scenario.seed));
    match flow.pattern {
        Some(Pattern::Permutation) => {
            if senders.len() < 2 {
                let message = format!("found {} hosts, expected at least two", senders.len());
                return Err(Error::new(message, format!("{key}.from")));
            }
            let receivers = cycle(&senders, &mut random);
            Ok(senders.into_iter().zip(receivers).collect())
        }
        Some(Pattern::Random) => senders
            .into_iter()
            .map(|sender| other(&receivers, &sender, &mut random, &key).map(|receiver| (sender, receiver)))
            .collect(),
        _ => {
            let unique: HashSet<&String> = senders.iter().collect();
            let same = receivers.iter().collect::<HashSet<_>>().intersection(&unique).count();
            let count = senders.len().saturating_mul(receivers.len()).saturating_sub(same);
            if count == 0 {
                let message = "found no pair of two different hosts, expected one";
                return Err(Error::new(message, format!("{key}.to")));
            }
            if count > MAX_ENTRIES {
                let message = format!("found {count} pairs of hosts, expected at most {MAX_ENTRIES}");
                return Err(Error::new(message, key));
            }
            let all = senders.iter().flat_map(|a| receivers.iter().map(move |b| (a, b)));
            Ok(all.filter(|(a, b)| a != b).map(|(a, b)| (a.clone(), b.clone())).collect())
        }
    }
}

/// Returns the nodes that a pattern uses if the entry of flows names no nodes.
///
/// If the scenario has a topology, these are the topology's hosts. If a published network has no hosts of its own,
/// these are all its nodes. Without a topology, these are the nodes with one neighbour.
fn hosts(scenario: &Scenario, published: &Published) -> Result<Vec<String>> {
    match &scenario.topology {
        Some(Topology::Named(_)) => {
            let Some(facts) = published.get()? else { return Ok(Vec::new()) };
            let hosts: Vec<String> =
                facts.nodes.iter().filter(|node| facts.hosts.contains(*node)).cloned().collect();
            Ok(if hosts.is_empty() { facts.nodes.clone() } else { hosts })
        }
        Some(topology) => {
            let ends = layout::layout(topology, scenario.flows.len(), None).unwrap_or_default().endpoints;
            let (from, to): (Vec<String>, Vec<String>) = ends.into_iter().unzip();
            Ok(from.into_iter().chain(to).collect::<IndexSet<_>>().into_iter().collect())
        }
        None => {
            let mut near: IndexMap<&String, HashSet<&String>> = IndexMap::new();
            for link in &scenario.links {
                if let [a, b] = link.between.as_slice() {
                    near.entry(a).or_default().insert(b);
                    near.entry(b).or_default().insert(a);
                }
            }
            Ok(near.iter().filter(|(_, others)| others.len() == 1).map(|(node, _)| (*node).clone()).collect())
        }
    }
}

/// Returns the hosts with these names. Names may be patterns with `*` and `?`.
fn named(given: Option<&Ends>, known: &[String], key: &str) -> Result<Vec<String>> {
    let listed: Vec<(&String, String)> = match given {
        None => return Ok(known.to_vec()),
        Some(Ends::One(name)) => vec![(name, key.to_owned())],
        Some(Ends::Many(names)) => {
            names.iter().enumerate().map(|(i, name)| (name, format!("{key}.{i}"))).collect()
        }
    };
    let mut names: IndexSet<String> = IndexSet::new();
    for (name, place) in listed {
        if !name.contains(['*', '?']) {
            // The name may be wrong. The graph, which has all nodes, checks it later.
            names.insert(name.clone());
            continue;
        }
        let matching: Vec<&String> = known.iter().filter(|host| matches(name, host)).collect();
        if matching.is_empty() {
            let near = hint(name, known.iter().map(String::as_str));
            return Err(Error::new(format!("found {}, expected a host{near}", found_text(name)), place));
        }
        names.extend(matching.into_iter().cloned());
    }
    Ok(names.into_iter().collect())
}

/// Returns whether a name matches a pattern with `*` and `?`.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // The place after the last star, and the part of the name that this star matches so far.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p + 1, n));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((after, until)) => {
                    star = Some((after, until + 1));
                    (p, n) = (after, until + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// Returns a receiver for each host, in the order of `hosts`. Each host is the receiver of exactly one other host.
///
/// This is Sattolo's algorithm: the hosts form one cycle, and all cycles are equally likely.
fn cycle(hosts: &[String], random: &mut Random) -> Vec<String> {
    let mut order = hosts.to_vec();
    for i in (1..order.len()).rev() {
        order.swap(i, random.below(i));
    }
    order
}

/// Returns a random host that is not the sender. All other hosts are equally likely.
fn other(hosts: &[String], sender: &str, random: &mut Random, key: &str) -> Result<String> {
    if hosts.iter().take(2).all(|host| host == sender) {
        let message = "found no receiver that is not the sender, expected one";
        return Err(Error::new(message, format!("{key}.to")));
    }
    loop {
        match hosts.get(random.below(hosts.len())) {
            Some(drawn) if drawn != sender => return Ok(drawn.clone()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn stars_and_question_marks_match() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("h*", "h1", true),
            ("h?", "h12", false),
            ("*b*c", "abcbc", true),
            ("*b*d", "abcbc", false),
            ("[h]", "[h]", true),
            ("a*", "b", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
