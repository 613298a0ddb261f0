//! Reads a TOML table key by key and collects *all* errors, one line each. serde would stop at the first error.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::{self, Display};

use toml::{Table, Value};

use super::units;

/// One error of a configuration: the key, what was found, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Path of the key, e.g. `ports[0].rate`. Empty: the whole file.
    pub key: String,
    /// The value found and the value expected.
    pub text: String,
}

impl Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() { f.write_str(&self.text) } else { write!(f, "{}: {}", self.key, self.text) }
    }
}

/// The errors that were found so far.
pub(super) type Problems = RefCell<Vec<Problem>>;

/// A table that is being read.
pub(super) struct Reader<'a> {
    table: &'a Table,
    path: String,
    problems: &'a Problems,
    asked: RefCell<BTreeSet<&'static str>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(table: &'a Table, path: &str, problems: &'a Problems) -> Self {
        Reader { table, path: path.to_owned(), problems, asked: RefCell::default() }
    }

    fn path_of(&self, key: &str) -> String {
        match (self.path.is_empty(), key.is_empty()) {
            (true, _) => key.to_owned(),
            (false, true) => self.path.clone(),
            (false, false) => format!("{}.{key}", self.path),
        }
    }

    /// Records an error about a key of this table. An empty key means the table itself.
    pub(super) fn problem(&self, key: &str, text: impl Display) {
        let problem = Problem { key: self.path_of(key), text: text.to_string() };
        self.problems.borrow_mut().push(problem);
    }

    /// Returns the raw value of a key, and marks the key as known.
    pub(super) fn value(&self, key: &'static str) -> Option<&'a Value> {
        self.asked.borrow_mut().insert(key);
        self.table.get(key)
    }

    /// Returns the value of a key, parsed by `read`. The error of `read` says what is expected. Returns `None` if the
    /// value is missing or invalid, and records an error if it is invalid.
    pub(super) fn get<T>(
        &self,
        key: &'static str,
        read: impl FnOnce(&'a Value) -> Result<T, String>,
    ) -> Option<T> {
        let value = self.value(key)?;
        match read(value) {
            Ok(read) => Some(read),
            Err(expected) => {
                self.problem(key, format_args!("found {}, expected {expected}", found(value)));
                None
            }
        }
    }

    /// Like [`Reader::get`], but records an error if the key is missing.
    pub(super) fn need<T>(
        &self,
        key: &'static str,
        read: impl FnOnce(&'a Value) -> Result<T, String>,
        example: &str,
    ) -> Option<T> {
        if self.value(key).is_none() {
            self.problem(key, format_args!("found nothing, expected this key, e.g. {key} = {example}"));
        }
        self.get(key, read)
    }

    /// Returns the table with this key, or `None` if it is missing or invalid.
    pub(super) fn table(&self, key: &'static str) -> Option<Reader<'a>> {
        let table = self.get(key, |v| v.as_table().ok_or_else(|| format!("a table [{key}]")))?;
        Some(Reader::new(table, &self.path_of(key), self.problems))
    }

    /// Returns the tables of an array. If it is missing or invalid, the list is empty.
    pub(super) fn tables(&self, key: &'static str) -> Vec<Reader<'a>> {
        let expected = || format!("tables [[{key}]]");
        let read = |v: &'a Value| {
            let items = v.as_array().ok_or_else(expected)?;
            items.iter().map(|item| item.as_table().ok_or_else(expected)).collect::<Result<Vec<_>, _>>()
        };
        let tables = self.get(key, read).unwrap_or_default().into_iter().enumerate();
        tables.map(|(n, t)| Reader::new(t, &format!("{}[{n}]", self.path_of(key)), self.problems)).collect()
    }

    /// Records an error for each unknown key.
    pub(super) fn done(self) {
        let asked = self.asked.borrow();
        for key in self.table.keys().filter(|key| !asked.contains(key.as_str())) {
            self.problem(key, format_args!("found an unknown key{}", hint(key, asked.iter().copied())));
        }
    }
}

/// Returns a hint for an unknown word: the most similar known name, or the list of known names.
pub(super) fn hint<'n>(word: &str, names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<_> = names.collect();
    let near = names.iter().map(|name| (strsim::jaro_winkler(word, name), name));
    match near.max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((likeness, name)) if likeness > 0.75 => format!("; did you mean {name:?}?"),
        _ => format!("; there are: {}", names.join(", ")),
    }
}

/// Returns a value as text for an error message. Long texts are shortened.
pub(super) fn found(value: &Value) -> String {
    let text = match value {
        Value::Table(_) => "a table".to_owned(),
        Value::Array(items) => format!("a list of {}", items.len()),
        other => other.to_string(),
    };
    if text.chars().count() > 60 { format!("{}...", text.chars().take(57).collect::<String>()) } else { text }
}

// Functions that read values. Their errors say what is expected.

/// Returns a function that reads text with a unit, by a function of [`super::units`].
pub(super) fn unit<T>(read: fn(&str) -> Result<T, String>) -> impl Fn(&Value) -> Result<T, String> {
    // If the value is not a string, pass an empty string to `read`, which refuses it with the right error.
    move |value| read(value.as_str().unwrap_or_default())
}

pub(super) fn text(value: &Value) -> Result<String, String> {
    match value.as_str() {
        Some(text) if !text.is_empty() => Ok(text.to_owned()),
        _ => Err("a string in quotes".to_owned()),
    }
}

pub(super) fn yes_no(value: &Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| "true or false".to_owned())
}

pub(super) fn texts(value: &Value) -> Result<Vec<String>, String> {
    let expected = "a list of strings such as [\"eth0\"]";
    let items = value.as_array().ok_or(expected)?;
    items.iter().map(|item| text(item).map_err(|_| expected.to_owned())).collect()
}

/// Reads a share, which is written as `"2%"` or 0.02.
pub(super) fn share(value: &Value) -> Result<f64, String> {
    match value.as_float() {
        Some(number) => units::probability(&number.to_string()),
        None => units::probability(value.as_str().unwrap_or_default()),
    }
    .map_err(|_| "a share such as \"2%\" or 0.02".to_owned())
}

/// Returns a function that reads a whole number within a range.
pub(super) fn whole(least: u32, most: u32) -> impl Fn(&Value) -> Result<u32, String> {
    move |value| {
        let number = value.as_integer().and_then(|n| u32::try_from(n).ok());
        let fits = number.filter(|n| (least..=most).contains(n));
        fits.ok_or_else(|| format!("a whole number from {least} to {most}"))
    }
}

/// Returns a function that reads one of these words and returns its value.
pub(super) fn one_of<T: Copy>(words: &[(&'static str, T)]) -> impl Fn(&Value) -> Result<T, String> {
    move |value| {
        let word = value.as_str().unwrap_or_default();
        let known = words.iter().find(|(name, _)| *name == word);
        known.map(|(_, meaning)| *meaning).ok_or_else(|| {
            let names: Vec<_> = words.iter().map(|(name, _)| format!("{name:?}")).collect();
            format!("one of {}", names.join(", "))
        })
    }
}
