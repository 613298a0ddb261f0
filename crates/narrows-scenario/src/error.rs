//! The error about a scenario, and the words in which errors show values and names.

use std::fmt;

use crate::value::Value;
use crate::value::python::{is_printable, nearest, repr_text};

/// Maximum number of characters of a value in an error.
pub(crate) const LONGEST_FOUND: usize = 60;

/// A scenario that is not valid. Its text is one line: the source, the key, what was found and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Path of the file, or another name of the source.
    pub source: String,
    /// Dotted path in the scenario, e.g. `links.0.rate`. It can be empty.
    pub key: String,
    /// The problem, e.g. `found '10 apples', expected a rate such as '100mbit'`.
    pub message: String,
}

/// The result of a step from a scenario file to a plan.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Creates an error about a key, without a source.
    pub fn new(message: impl AsRef<str>, key: impl AsRef<str>) -> Self {
        Error { source: String::new(), key: one_line(key.as_ref()), message: one_line(message.as_ref()) }
    }

    /// Creates an error about a line or column of a file that the scenario names.
    pub(crate) fn in_file(message: impl AsRef<str>, key: impl AsRef<str>, file: &str) -> Self {
        Error { source: one_line(file), ..Error::new(message, key) }
    }

    /// Returns the same error with an absolute key. The error's own key is relative to the table with the key `key`.
    pub(crate) fn at(self, key: &str) -> Self {
        let key = if self.key.is_empty() { key.to_owned() } else { format!("{key}.{}", self.key) };
        Error { key, ..self }
    }

    /// Returns the same error with `source` as its file, unless the error already names a file, e.g. a trace.
    #[must_use]
    pub fn in_source(self, source: &str) -> Self {
        if self.source.is_empty() { Error { source: one_line(source), ..self } } else { self }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [&self.source, &self.key, &self.message];
        let given: Vec<&str> =
            parts.into_iter().filter(|part| !part.is_empty()).map(String::as_str).collect();
        f.write_str(&given.join(": "))
    }
}

impl std::error::Error for Error {}

/// Returns the text without line breaks and control characters.
pub(crate) fn one_line(text: &str) -> String {
    text.chars().map(|c| if is_printable(c) { c } else { ' ' }).collect()
}

/// Returns a value as an error message shows it: short, and as TOML writes it.
pub(crate) fn found(value: &Value) -> String {
    let text = match value {
        Value::Null => return "null".to_owned(),
        Value::Bool(flag) => return flag.to_string(),
        Value::Table(_) => return "a table".to_owned(),
        Value::List(list) if list.is_empty() => return "an empty list".to_owned(),
        Value::List(list) => return format!("a list of {}", list.len()),
        Value::Text(text) => return found_text(text),
        other => other.repr(),
    };
    shortened(text)
}

/// Returns a string as an error message shows it: in quotes, and cut inside the quotes if it is long.
pub(crate) fn found_text(text: &str) -> String {
    let whole = repr_text(text);
    if whole.chars().count() > LONGEST_FOUND {
        let start: String = text.chars().take(LONGEST_FOUND - 5).collect();
        return shortened(repr_text(&format!("{start}...")));
    }
    whole
}

fn shortened(text: String) -> String {
    if text.chars().count() <= LONGEST_FOUND {
        return text;
    }
    text.chars().take(LONGEST_FOUND - 3).chain("...".chars()).collect()
}

/// Returns `found X, expected <what>`, followed by the nearest name or by a list of names (see [`hint`]).
pub(crate) fn one_of<'n>(
    value: &str,
    names: impl IntoIterator<Item = &'n str>,
    what: &str,
    listing: &str,
) -> String {
    format!("found {}, expected {what}{}", found_text(value), hint_listing(value, names, listing))
}

/// Returns `found X, expected one of <names>`, with the nearest name.
pub(crate) fn choice(value: &Value, names: &[&str]) -> String {
    let near = suggestion(&value.display(), names);
    format!("found {}, expected one of {}{near}", found(value), names.join(", "))
}

/// Returns `; nearest is 'x'`, or an empty text if no name is near. Case is ignored.
fn suggestion(value: &str, known: &[&str]) -> String {
    nearest(value, known).map(|name| format!("; nearest is {}", repr_text(name))).unwrap_or_default()
}

/// Returns `; nearest is 'x'`, or the list of names, or an empty text.
pub(crate) fn hint<'n>(value: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    hint_listing(value, names, "")
}

/// Maximum number of names that an error lists.
const MOST_NAMES: usize = 16;

/// Like [`hint`]. `listing` is the kind of the names in `narrows list`. If there are many names, the hint says to run
/// `narrows list` with this kind.
pub(crate) fn hint_listing<'n>(
    value: &str,
    names: impl IntoIterator<Item = &'n str>,
    listing: &str,
) -> String {
    let known: Vec<&str> = names.into_iter().collect();
    let near = suggestion(value, &known);
    if !near.is_empty() || known.is_empty() {
        return near;
    }
    if known.len() > MOST_NAMES && !listing.is_empty() {
        return format!("; `narrows list {listing}` has them");
    }
    let more = if known.len() > MOST_NAMES { ", ..." } else { "" };
    format!(": {}{more}", known[..known.len().min(MOST_NAMES)].join(", "))
}
