//! The reference of scenario files in Markdown, with a row for each key, from the declarations of tables.

use std::collections::BTreeMap;

use super::Value;
use super::table::{About, Key};

/// The tables below each heading.
const HEADINGS: [(&str, &[&str]); 19] = [
    ("Top level", &["Content"]),
    ("Topology", &["Dumbbell", "ParkingLot", "Star", "Named", "Access"]),
    ("Nodes", &["Node"]),
    // `Traits` are the keys of `back`, which the table of links lists.
    ("Links", &["Link", "Traits"]),
    ("Changes", &["Change", "Beginning"]),
    ("Queues", &["Fifo", "Threshold", "Red", "Codel", "FqCodel", "Priority", "Htb", "HtbClass"]),
    ("Random loss", &["Bernoulli", "GilbertElliott"]),
    ("Jitter", &["Jitter"]),
    ("Policers", &["Policer"]),
    ("Traces", &["Trace"]),
    ("Flows", &["Flow", "Congestion", "App", "AppChange", "Arrivals", "Requests", "SizeDistribution"]),
    ("Programs", &["Program"]),
    ("Rate controllers", &["RateController", "RateStep"]),
    ("SDN controller", &["Sdn"]),
    ("Probes", &["Probes"]),
    ("Captures", &["Capture"]),
    ("Kernel backend", &["Kernel"]),
    ("Sweep", &["Sweep", "Case"]),
    ("Expectations", &["Expectation", "Selection"]),
];

/// The line with which a table begins in a scenario file. Tables with a kind are not in this list.
const PLACES: [(&str, &str); 28] = [
    ("Named", "name = \"...\""),
    ("Access", "access = { ... }"),
    ("Node", "[[nodes]]"),
    ("Link", "[[links]]"),
    ("Change", "at = [{ ... }]"),
    ("Beginning", "when = { ... }"),
    ("HtbClass", "classes = [{ ... }]"),
    ("Jitter", "jitter = { ... }"),
    ("Policer", "policer = { ... }"),
    ("Trace", "trace = { ... }"),
    ("Flow", "[[flows]]"),
    ("Congestion", "cc = { ... }"),
    ("App", "app = { ... }"),
    ("AppChange", "app.at = [{ ... }]"),
    ("Arrivals", "arrivals = { ... }"),
    ("Requests", "requests = { ... }"),
    ("SizeDistribution", "arrivals.size = { ... }, requests.size = { ... }"),
    ("Program", "program = { ... }"),
    ("RateController", "[[rate_controllers]]"),
    ("RateStep", "shape = [{ ... }]"),
    ("Sdn", "[sdn]"),
    ("Probes", "[probes]"),
    ("Capture", "[capture]"),
    ("Kernel", "[kernel]"),
    ("Sweep", "[sweep]"),
    ("Case", "[[sweep.case]]"),
    ("Expectation", "[[expect]]"),
    ("Selection", "than = { ... }"),
];

/// Bounds above this value are not shown. They are limits of the implementation, not of the format.
const LARGEST_SHOWN: f64 = 1e6;

/// Returns the bounds of a number in words, such as `, 1 to 4096`.
pub(crate) fn range(least: f64, includes: bool, most: f64) -> String {
    let is_shown = most <= LARGEST_SHOWN;
    match (includes, is_shown) {
        (true, true) => format!(", {least} to {most}"),
        (true, false) => format!(", {least} or more"),
        (false, true) => format!(", above {least}, up to {most}"),
        (false, false) => format!(", above {least}"),
    }
}

/// Returns words as a choice, such as `` `"a"`, `"b"` or `"c"` ``.
pub(crate) fn quoted(words: &[&str]) -> String {
    series(words.iter().map(|word| format!("\"{word}\"")), "or")
}

/// Returns names as a list in words, such as `` `a`, `b` and `c` ``.
fn series(names: impl Iterator<Item = String>, last: &str) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    match names.split_last() {
        Some((end, first)) if !first.is_empty() => format!("{} {last} {end}", first.join(", ")),
        _ => names.concat(),
    }
}

/// Returns the values of a key that takes values of several types.
pub(crate) fn either(words: &[String]) -> String {
    let has_comma = words.iter().any(|words| words.contains(", "));
    words.join(if has_comma { ", or " } else { " or " })
}

/// Returns a link to the heading of a table.
pub(crate) fn link(table: &str) -> String {
    let heading =
        HEADINGS.iter().find(|(_, tables)| tables.contains(&table)).map_or("", |(heading, _)| *heading);
    format!("[table](#{})", heading.to_lowercase().replace(' ', "-"))
}

/// Returns the plural of the words for a type.
pub(crate) fn plural(words: &str) -> String {
    if words == "list of times" {
        return "pairs of times".to_owned();
    }
    if words.starts_with("[table]") {
        return words.replace("[table]", "[tables]");
    }
    match words.split_once(' ') {
        Some((first @ ("time" | "list"), rest)) => format!("{first}s {rest}"),
        _ => format!("{words}s"),
    }
}

/// Returns all tables that a scenario may have, by name.
fn reachable(root: &'static About) -> BTreeMap<&'static str, &'static About> {
    let mut known = BTreeMap::new();
    let mut waiting = vec![root];
    while let Some(table) = waiting.pop() {
        if known.insert(table.name, table).is_none() {
            waiting.extend(table.all_keys().iter().flat_map(|key| (key.takes)().tables()));
        }
    }
    known
}

/// Returns the reference of all tables of a scenario as Markdown.
pub(crate) fn markdown(root: &'static About) -> String {
    let known = reachable(root);
    let mut parts: Vec<String> = Vec::new();
    for (heading, tables) in HEADINGS {
        parts.push(format!("### {heading}"));
        let listed = tables.iter().filter(|name| **name != "Traits").filter_map(|name| known.get(name));
        parts.extend(listed.flat_map(|table| section(table)));
    }
    parts.join("\n\n") + "\n"
}

fn section(table: &About) -> Vec<String> {
    let mut about = flat(table.meaning);
    let (keys, shared) = keys(table);
    if !shared.is_empty() {
        let names = series(shared.iter().map(|key| key.name.to_owned()), "and");
        about = format!("{about} {names} are those of [a link](#links).");
    }
    let place = PLACES.iter().find(|(name, _)| *name == table.name).map(|(_, place)| (*place).to_owned());
    let place = place.or_else(|| table.tag.map(|(tag, word)| format!("{tag} = \"{word}\"")));
    let mut lines =
        vec!["| key | takes | default | meaning |".to_owned(), "| --- | --- | --- | --- |".to_owned()];
    lines.extend(keys.iter().map(|key| row(table, key)));
    vec![place.map_or(about.clone(), |place| format!("**`{place}`** {about}")), lines.join("\n")]
}

/// Returns the keys that the reference lists for a table, and the keys of links that a topology has unchanged.
fn keys(table: &About) -> (Vec<&'static Key>, Vec<&'static Key>) {
    let own = table.keys.iter();
    let Some(base) = table.base else { return (own.collect(), Vec::new()) };
    if table.name == "Link" {
        return (own.chain(base().keys).collect(), Vec::new());
    }
    let has_own_meaning = |key: &&Key| table.meanings.iter().any(|(name, _)| *name == key.name);
    let (changed, shared): (Vec<&Key>, Vec<&Key>) = base().keys.iter().partition(has_own_meaning);
    (changed.into_iter().chain(own).collect(), shared)
}

fn row(table: &About, key: &Key) -> String {
    let own = table.meanings.iter().find(|(name, _)| *name == key.name);
    let meaning = flat(own.map_or(key.meaning, |(_, meaning)| meaning));
    let default = match default(table, key) {
        text if text.is_empty() => "-".to_owned(),
        text => text,
    };
    format!("| `{}` | {} | {default} | {meaning} |", key.name, (key.words)())
}

/// Returns the default value, as written in a scenario file. The text is empty if there is no default.
fn default(table: &About, key: &Key) -> String {
    if (table.name, key.name) == ("Content", "name") {
        return "the file's stem".to_owned();
    }
    if key.is_required {
        return "required".to_owned();
    }
    match (key.default)() {
        None | Some(Value::List(_) | Value::Table(_)) => String::new(),
        Some(value) => format!("`{}`", serde_json::to_string(&value).unwrap_or_default()),
    }
}

/// Returns a doc comment on one line.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the values that a key of several tables can select, each with the first line of its meaning, e.g. the kinds
/// of queues.
pub(crate) fn choices(root: &'static About, table: &str, key: &str) -> Vec<(&'static str, String)> {
    let known = reachable(root);
    let tables = known.get(table).and_then(|table| table.key(key)).map(|key| (key.takes)().tables());
    let tagged = tables.into_iter().flatten().filter_map(|table| Some((table.tag?.1, table.meaning)));
    tagged.map(|(word, meaning)| (word, meaning.lines().next().unwrap_or("").trim().to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Content;
    use crate::value::table::Checked;

    #[test]
    fn every_table_has_a_heading_and_every_key_a_row() {
        let known = reachable(Content::about());
        let listed: Vec<&str> = HEADINGS.iter().flat_map(|(_, tables)| tables.iter().copied()).collect();
        let mut sorted = listed.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, known.keys().copied().collect::<Vec<_>>());
        let text = markdown(Content::about());
        for (name, table) in known {
            assert!(!table.meaning.trim().is_empty(), "{name}");
            for key in table.all_keys() {
                assert!(text.contains(&format!("| `{}` |", key.name)), "{name}.{}", key.name);
            }
        }
    }

    #[test]
    fn rows_have_types_and_defaults_as_a_file_would() {
        let text = markdown(Content::about());
        for row in [
            "| `duration` | time above 0 | `\"30s\"` | Length of a run. |",
            "| `between` | list of names | required | The two nodes. |",
            "| `queue` | queue length or [table](#queues) | - | Queue of every link",
            "| `weight` | number, above 0, up to 1 | `0.002` | Weight of the newest sample",
            "| `outages` | list of pairs of times | - | Outages of the SDN controller",
        ] {
            assert!(text.contains(row), "{row}");
        }
    }

    #[test]
    fn choices_are_the_kinds_of_a_key() {
        let loss = choices(Content::about(), "Link", "loss");
        assert_eq!(loss[0], ("bernoulli", "Each packet is lost independently.".to_owned()));
        assert_eq!(choices(Content::about(), "Content", "topology").len(), 4);
    }
}
