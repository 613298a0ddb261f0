//! Words a problem of a scenario as one line.

use super::Value;
use super::python::repr_text;
use super::reader::Part;
use super::table::{About, Takes};
use super::toml::double_brackets;
use crate::error::{Error, choice, found, hint, one_of};

/// A problem with a value of a scenario.
#[derive(Clone, Debug)]
pub(crate) struct Problem<'v> {
    pub(crate) way: Vec<Part<'v>>,
    pub(crate) kind: Kind,
    /// The value; `None`: the problem is about a table as a whole, or about a missing key.
    pub(crate) value: Option<&'v Value>,
}

/// The kind of a problem.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// The table has no such key.
    Unknown,
    /// A required key is missing.
    Missing,
    /// The key that selects one of several tables is missing.
    NoTag { tag: &'static str, tags: Vec<&'static str> },
    /// The key that selects one of several tables has another value.
    WrongTag { tag: &'static str, word: String, tags: Vec<&'static str> },
    /// The value is none of these words.
    Word(Vec<&'static str>),
    /// The value has the wrong form. The text completes "expected ...".
    Refused(String),
    /// The keys of a table do not fit together. The text completes "expected ...".
    Inconsistent(String),
    /// The value has another type. The text completes "expected ...".
    Type(&'static str),
    /// A number is out of range. The text completes "expected ...".
    Bound(String),
    /// A list or text is too short or too long. The text completes "expected ...".
    Length(String),
}

/// Kind of a topology for which the scenario has only a `name`.
const BY_NAME: &str = "named";

/// Tables whose keys users most likely write at the top level by mistake.
const PLACES: [(&str, &str); 4] =
    [("topology", "topology"), ("links", "links.0"), ("flows", "flows.0"), ("sweep", "sweep")];

const VARY: &str = "sweep.vary.";

/// Returns the error about the first of these problems, unknown keys first.
///
/// # Arguments
/// * `problems`: the problems, in the order in which they were found.
/// * `data`: the whole scenario.
/// * `root`: the table at the top level.
pub(crate) fn first_error(problems: &[Problem<'_>], data: &Value, root: &'static About) -> Option<Error> {
    let unknown = problems.iter().find(|problem| matches!(problem.kind, Kind::Unknown));
    let first = unknown.or_else(|| problems.first())?;
    let key = dotted(&first.way, data, matches!(first.kind, Kind::Missing));
    let (message, key) = message(first, key, data, root);
    let remedy = remedy(first, &key, root);
    Some(Error::new(format!("{message}{remedy}"), key))
}

/// Returns the message about a problem, and the key that the message is about.
fn message(first: &Problem<'_>, key: String, data: &Value, root: &'static About) -> (String, String) {
    let shown = || first.value.map(found).unwrap_or_default();
    match &first.kind {
        Kind::Unknown => (format!("found an unknown key{}", other_key(&first.way, data, root)), key),
        Kind::Missing => {
            let what = match first.way.last() {
                Some(Part::Key("leaves")) => "a number of hosts, 2 or more",
                Some(Part::Key("hops")) => "a number of bottleneck links, 1 or more",
                _ => "this key",
            };
            (format!("found nothing, expected {what}"), key)
        }
        Kind::NoTag { tag, tags } => match first.value {
            Some(Value::Table(_)) => {
                (format!("found nothing, expected {}", tag_choice(tag, tags)), format!("{key}.{tag}"))
            }
            _ => (format!("found {}, expected a table", shown()), key),
        },
        Kind::WrongTag { tag, word, tags } => {
            let offered = tags.iter().copied().filter(|name| *name != BY_NAME);
            (one_of(word, offered, &format!("a {tag}"), ""), format!("{key}.{tag}"))
        }
        Kind::Word(names) => (first.value.map(|value| choice(value, names)).unwrap_or_default(), key),
        Kind::Inconsistent(expected) => (format!("expected {expected}"), key),
        Kind::Refused(expected) => {
            let is_table = matches!(first.value, Some(Value::Table(_))) && may_be_table(&first.way, root);
            let start = if is_table { String::new() } else { format!("found {}, ", shown()) };
            (format!("{start}expected {expected}"), key)
        }
        Kind::Type("a table") if first.way.last() == Some(&Part::Key("trace")) => {
            let example = match first.value {
                Some(value @ Value::Text(_)) => format!(" such as {{ file = {} }}", found(value)),
                _ => String::new(),
            };
            (format!("found {}, expected a table{example}", shown()), key)
        }
        Kind::Type(expected) => (format!("found {}, expected {expected}", shown()), key),
        Kind::Bound(expected) | Kind::Length(expected) => {
            (format!("found {}, expected {expected}", shown()), key)
        }
    }
}

/// Returns the values of a tag, as the end of "expected ...".
fn tag_choice(tag: &str, tags: &[&str]) -> String {
    let others: Vec<&str> = tags.iter().copied().filter(|name| *name != BY_NAME).collect();
    let listed = others.join(", ");
    if others.len() == tags.len() {
        return format!("a {tag}: {listed}");
    }
    format!("a {tag} ({listed}), or a name that `narrows list networks` has")
}

/// Returns the valid key that is most similar to an unknown key, or the list of valid keys.
fn other_key(way: &[Part<'_>], data: &Value, root: &'static About) -> String {
    let Some((Part::Key(unknown), parents)) = way.split_last() else { return String::new() };
    if parents.is_empty() {
        for (table, place) in PLACES {
            let is_there = table == "sweep" || data.get(table).is_some();
            let inner = tables_at(root, &[Part::Key(table)]);
            if is_there && names(&inner).contains(unknown) {
                return format!("; nearest is {}", repr_text(&format!("{place}.{unknown}")));
            }
        }
    }
    hint(unknown, names(&tables_at(root, parents)))
}

/// Returns advice on how to write a value that has the wrong form. The text is empty if there is no advice.
fn remedy(first: &Problem<'_>, key: &str, root: &'static About) -> String {
    let is_named = matches!(first.way.last(), Some(Part::Key(_) | Part::Form(_)));
    let is_in_sweep = key.split('.').next() == Some("sweep");
    let may_be_list = matches!(first.kind, Kind::Length(_) | Kind::Unknown);
    if is_named && !is_in_sweep && first.value.is_some_and(is_series) && !may_be_list {
        return format!("; to vary it, write \"{key}\" = [...] under [sweep.vary]");
    }
    if let (Some(value @ Value::Table(table)), Kind::Type("a list")) = (first.value, &first.kind) {
        if let Some(varied) = key.strip_prefix(VARY) {
            return format!("; put the dotted key in quotes: \"{}\" = [...]", deepest(varied, value));
        }
        let is_number = |text: &str| !text.is_empty() && text.chars().all(char::is_numeric);
        let names: Vec<&str> = key.split('.').filter(|part| !is_number(part)).collect();
        if is_list_of_tables(root, &names) && !table.keys().any(|name| is_number(name)) {
            return format!("; write {}", double_brackets(&names));
        }
    }
    String::new()
}

/// Returns whether the dotted key with these parts is a list of tables.
pub(crate) fn is_list_of_tables(root: &'static About, names: &[impl AsRef<str>]) -> bool {
    let Some((last, parents)) = names.split_last() else { return false };
    let way: Vec<Part<'_>> = parents.iter().map(|name| Part::Key(name.as_ref())).collect();
    let keys = tables_at(root, &way).into_iter().filter_map(|table| table.key(last.as_ref()));
    keys.into_iter().any(|key| matches!((key.takes)(), Takes::List(inner) if !inner.tables().is_empty()))
}

/// Returns whether a value is a list of plain values. The user probably meant one value per run.
fn is_series(value: &Value) -> bool {
    let is_plain = |value: &Value| !matches!(value, Value::List(_) | Value::Table(_));
    matches!(value, Value::List(list) if !list.is_empty() && list.iter().all(is_plain))
}

/// Returns the dotted key of the first value in nested tables.
fn deepest(key: &str, mut value: &Value) -> String {
    let mut key = key.to_owned();
    while let Value::Table(table) = value {
        let Some((name, inner)) = table.first() else { break };
        key = format!("{key}.{name}");
        value = inner;
    }
    key
}

/// Returns the way as a dotted key, without forms and without keys that the scenario does not have.
fn dotted(way: &[Part<'_>], data: &Value, last_is_new: bool) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut here = Some(data);
    for (i, part) in way.iter().enumerate() {
        match part {
            Part::Index(index) => {
                here = match here {
                    Some(Value::List(list)) => list.get(*index),
                    _ => None,
                };
                parts.push(index.to_string());
            }
            Part::Key(name) | Part::Form(name) => match here.and_then(|value| value.get(name)) {
                Some(inner) => {
                    here = Some(inner);
                    parts.push((*name).to_owned());
                }
                None if last_is_new && i + 1 == way.len() => parts.push((*name).to_owned()),
                None => {}
            },
        }
    }
    parts.join(".")
}

/// Returns whether the value at this place may be a table. If so, the problem is about a key of this table.
fn may_be_table(way: &[Part<'_>], root: &'static About) -> bool {
    let Some((last, parents)) = way.split_last() else { return true };
    let (Part::Key(name) | Part::Form(name)) = last else { return true };
    let keys: Vec<_> = tables_at(root, parents).iter().filter_map(|table| table.key(name)).collect();
    keys.is_empty() || keys.iter().any(|key| matches!((key.takes)(), Takes::Tables(_)))
}

/// Returns the valid keys of these tables, sorted.
fn names(tables: &[&'static About]) -> Vec<&'static str> {
    let mut names: Vec<&str> = tables
        .iter()
        .flat_map(|table| {
            table.all_keys().into_iter().map(|key| key.name).chain(table.tag.map(|(name, _)| name))
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns the tables at a place: several if the form of the table is unknown.
fn tables_at(root: &'static About, way: &[Part<'_>]) -> Vec<&'static About> {
    let mut at = vec![root];
    for part in way {
        let (Part::Key(name) | Part::Form(name)) = part else { continue };
        let inner: Vec<&About> =
            at.iter().filter_map(|table| table.key(name)).flat_map(|key| (key.takes)().tables()).collect();
        if !inner.is_empty() {
            at = inner;
            continue;
        }
        let of_form: Vec<&About> =
            at.iter().copied().filter(|table| table.tag.is_some_and(|(_, word)| word == *name)).collect();
        if !of_form.is_empty() {
            at = of_form;
        }
    }
    at
}
