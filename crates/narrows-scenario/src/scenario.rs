//! A checked scenario, and the way from TOML to it.

use std::ops::Deref;

use crate::error::{Error, Result};
use crate::files::Files;
use crate::model::flow::result_names;
use crate::model::{Content, ReceiveBuffer};
use crate::retired::{self, Renamed};
use crate::sweep::override_key;
use crate::value::problem::{first_error, is_list_of_tables};
use crate::value::reader::Reader;
use crate::value::table::{Checked, Keys};
use crate::value::{Table, Value, toml};

/// Maximum size of a scenario file, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// A checked scenario.
///
/// ```
/// use narrows_scenario::Scenario;
///
/// let text = "[topology]\nkind = 'dumbbell'\nrate = '10 mbps'\nrtt = '20ms'\n[[flows]]\ncc = 'bbr'";
/// let scenario = Scenario::parse(text, "first.toml", &[]).unwrap();
/// assert_eq!(scenario.name, "first");
///
/// let error = Scenario::parse(&text.replace("mbps", "apples"), "first.toml", &[]).unwrap_err();
/// assert_eq!(error.to_string(), "first.toml: topology.rate: found '10 apples', expected a rate such as '100mbit'");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    content: Content,
    source: String,
    renamed: Vec<Renamed>,
}

impl Deref for Scenario {
    type Target = Content;

    fn deref(&self) -> &Content {
        &self.content
    }
}

impl Scenario {
    /// Reads a scenario file.
    ///
    /// # Arguments
    /// * `path`: a TOML file.
    /// * `overrides`: values that replace the file's values, by dotted key, e.g. `topology.rate`.
    ///
    /// # Errors
    /// Returns one line that names file, key, what was found and what was expected.
    pub fn load(path: &str, overrides: &[(String, Value)], files: &dyn Files) -> Result<Self> {
        let bytes = files
            .read(path, MAX_FILE_BYTES)
            .map_err(|problem| Error::in_file(problem.expected("a scenario"), "", path))?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            let message = format!("found more than {} MiB, expected a scenario", MAX_FILE_BYTES >> 20);
            return Err(Error::in_file(message, "", path));
        }
        let text = String::from_utf8(bytes)
            .map_err(|_| Error::in_file("found other bytes, expected UTF-8 text", "", path))?;
        Scenario::parse(&text, path, overrides)
    }

    /// Reads a scenario from TOML.
    ///
    /// # Arguments
    /// * `text`: the TOML.
    /// * `source`: path of the file with this text. Errors name this path. The stem of the path is the default of
    ///   `name`. Paths of traces are relative to the file's folder.
    /// * `overrides`: values by dotted key.
    ///
    /// # Errors
    /// Returns one line, as [`load`](Scenario::load) does.
    pub fn parse(text: &str, source: &str, overrides: &[(String, Value)]) -> Result<Self> {
        let read = || {
            let mut renamed = Vec::new();
            let data = toml::parse(text, |names| is_list_of_tables(Content::about(), names))?;
            let mut data = retired::current_names(data, &mut renamed)?;
            for (key, value) in overrides {
                override_key(&mut data, &retired::dotted_key(key, &mut renamed), value)?;
            }
            let mut named = Table::from_iter([("name".to_owned(), default_name(source).into())]);
            named.extend(data);
            Scenario::checked(named, source, renamed)
        };
        read().map_err(|error: Error| error.in_source(source))
    }

    /// Creates a scenario from tables, e.g. from JSON.
    ///
    /// # Errors
    /// Returns an error for the first wrong key or value. The error has no source.
    pub fn from_table(data: Table, source: &str) -> Result<Self> {
        Scenario::checked(data, source, Vec::new())
    }

    /// Checks tables. They may have old names, because an override can set a sweep that contains old names.
    fn checked(data: Table, source: &str, mut renamed: Vec<Renamed>) -> Result<Self> {
        let data = Value::Table(retired::current_names(data, &mut renamed)?);
        let mut reader = Reader::default();
        let content = reader.table::<Content>(&data);
        if let Some(error) = first_error(&reader.into_problems(), &data, Content::about()) {
            return Err(error);
        }
        // If there are no problems, `content` is set.
        let content = content.ok_or_else(|| Error::new("found no scenario, expected one", ""))?;
        Ok(Scenario { content, source: source.to_owned(), renamed })
    }

    /// Returns the scenario's file, for messages and relative paths.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the same scenario with `source` as its file.
    #[must_use]
    pub fn with_source(self, source: &str) -> Self {
        Scenario { source: source.to_owned(), ..self }
    }

    /// Returns the names that the entries of flows have in results.
    pub fn flow_names(&self) -> Vec<String> {
        let kinds: Vec<_> = self.flows.iter().map(|flow| (flow.name.clone(), flow.kind())).collect();
        result_names(&kinds)
    }

    /// Returns the folder to which the scenario's paths are relative.
    pub(crate) fn folder(&self) -> &str {
        self.source.rsplit_once('/').map_or("", |(folder, _)| if folder.is_empty() { "/" } else { folder })
    }

    /// Returns the same scenario with another seed.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.content.seed = seed;
        self.content.mark("seed");
        self
    }

    /// Returns the same scenario with the receive buffers of real sockets, for a comparison with real stacks.
    #[must_use]
    pub fn beside_real(mut self) -> Self {
        if self.content.receive_buffer.is_none() {
            self.content.receive_buffer = Some(ReceiveBuffer::Auto);
            self.content.mark("receive_buffer");
        }
        self
    }

    /// Returns the old names that the scenario uses. A program should tell its user about them.
    pub fn renamed(&self) -> &[Renamed] {
        &self.renamed
    }

    /// Returns only the keys that were set, with units, as in a scenario file.
    pub fn raw(&self) -> Table {
        self.table(Keys::Set)
    }

    /// Returns all keys with units, including those with default values.
    pub fn full(&self) -> Table {
        self.table(Keys::All)
    }

    /// Returns all keys that determine the results, with units. These are all keys except the expectations.
    pub fn facts(&self) -> Table {
        let mut table = self.full();
        table.shift_remove("expect");
        table
    }

    fn table(&self, keys: Keys) -> Table {
        let mut table = Table::new();
        self.content.write_keys(&mut table, keys);
        table
    }
}

/// Returns a scenario's name from its file's stem, with invalid characters replaced.
fn default_name(source: &str) -> String {
    let file = source.trim_end_matches('/').rsplit('/').next().unwrap_or("");
    let stem = match file.rfind('.') {
        Some(at) if at > 0 && at + 1 < file.len() => &file[..at],
        _ => file,
    };
    let is_valid = |c: char| c.is_ascii_alphanumeric() || "_.+-".contains(c);
    let valid: String = stem.chars().map(|c| if is_valid(c) { c } else { '-' }).collect();
    let name: String = valid.trim_start_matches(['.', '-']).chars().take(64).collect();
    if name.is_empty() { "scenario".to_owned() } else { name }
}
