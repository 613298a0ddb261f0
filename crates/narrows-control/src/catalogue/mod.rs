//! The catalogue of congestion controllers: one row per algorithm. Names in scenarios, parameters, looks in
//! figures and kernel modules follow from it.
//!
//! A program can add its own rows ([`Catalogue::add`]) and run them by name.

mod entries;
mod parameter;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::congestion::Controller;

pub use parameter::{
    Field, Module, ModuleValues, NONE, Parameter, Parameters, Shape, Takes, Value, Values, flag, gain,
    number, rate_from, time_from, whole, word,
};

crate::words! {
    /// The reading of a paper that leaves choices open or whose letter does not give a usable controller.
    pub enum Reading {
        /// With the choices and safeguards of this implementation.
        Resolved = "resolved",
        /// The paper's sentences word by word.
        Literal = "literal",
    }
}

/// The signal that an algorithm mainly responds to. Figures and tables are sorted by family.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Losses.
    Loss,
    /// Delay, or losses and delay.
    Delay,
    /// A model of the path: bandwidth and propagation time.
    Model,
    /// ECN marks.
    Marks,
    /// Rates or windows from the network.
    Network,
}

impl Family {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Family::Loss => "loss",
            Family::Delay => "delay",
            Family::Model => "model",
            Family::Marks => "marks",
            Family::Network => "network",
        }
    }
}

/// How the network's answer reaches the sender.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Feedback {
    /// In a TCP option of ACKs.
    Option,
    /// In a congestion header of data packets, which the receiver echoes.
    Header,
    /// In a message of its own.
    Message,
}

impl Feedback {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Feedback::Option => "option",
            Feedback::Header => "header",
            Feedback::Message => "message",
        }
    }
}

/// The rate controller at ports that an algorithm depends on.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Kind of the rate controller.
    pub kind: &'static str,
    /// Its `mode`, if the algorithm needs a particular one.
    pub mode: Option<&'static str>,
    /// Whether a controller of the domain is needed too.
    pub domain: bool,
    /// How its answers reach the sender.
    pub feedback: Feedback,
}

/// Requirements on the network.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Without ECN marks it behaves as this algorithm.
    pub marks_or_else: Option<&'static str>,
    /// The rate controller that serves it.
    pub service: Option<Service>,
}

impl Needs {
    /// No requirements.
    pub const NOTHING: Needs = Needs { marks_or_else: None, service: None };
}

/// The algorithm in Linux.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Linux {
    /// The kernel's name of the algorithm (`TCP_CONGESTION`).
    pub name: &'static str,
    /// Its module; `None` if the code is part of TCP itself.
    pub module: Option<&'static str>,
}

/// How figures draw an algorithm.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// The name in legends.
    pub label: &'static str,
    /// Colour on white.
    pub light: &'static str,
    /// Colour on a dark page.
    pub dark: &'static str,
    /// `solid`, `dashed`, `dotted` or `dash-dot`.
    pub dash: &'static str,
    /// Shape of points.
    pub marker: &'static str,
}

impl Look {
    /// A look.
    pub const fn new(
        label: &'static str,
        light: &'static str,
        dark: &'static str,
        dash: &'static str,
        marker: &'static str,
    ) -> Self {
        Look { label, light, dark, dash, marker }
    }
}

/// The value of a parameter in a preset.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Constant {
    /// `true` or `false`.
    Flag(bool),
    /// A number in base units.
    Number(f64),
    /// A word.
    Word(&'static str),
}

impl From<Constant> for Value {
    fn from(constant: Constant) -> Self {
        match constant {
            Constant::Flag(flag) => Value::Flag(flag),
            Constant::Number(n) => Value::Number(n),
            Constant::Word(word) => Value::Word(word.into()),
        }
    }
}

/// A name for an algorithm with certain parameters.
#[derive(Copy, Clone, Debug)]
pub struct Preset {
    /// The name in scenarios and results.
    pub name: &'static str,
    /// One line of description.
    pub summary: &'static str,
    /// Its parameters.
    pub values: &'static [(&'static str, Constant)],
    /// Its look.
    pub look: Look,
    /// `mode` of the rate controller that serves it, if it differs from the algorithm's.
    pub mode: Option<&'static str>,
}

impl Preset {
    /// The parameters by name.
    pub fn params(&self) -> Values {
        self.values.iter().map(|&(name, value)| (name.to_owned(), value.into())).collect()
    }
}

/// Parameters of a structure, with a common prefix of their names.
#[derive(Copy, Clone)]
pub struct Group {
    /// Prefix of the names in scenarios.
    pub prefix: &'static str,
    /// The parameters.
    pub table: &'static [Parameter],
    /// Their defaults, in the order of the table.
    pub defaults: fn() -> Vec<Value>,
}

impl Group {
    /// The parameters of a structure with its defaults.
    pub const fn of<P: Parameters + Default>(prefix: &'static str) -> Self {
        Group { prefix, table: P::TABLE, defaults: || P::default().values() }
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group")
            .field("prefix", &self.prefix)
            .field("table", &self.table)
            .finish_non_exhaustive()
    }
}

/// A congestion control algorithm.
#[derive(Copy, Clone, Debug)]
pub struct Entry {
    /// The name in scenarios and results.
    pub name: &'static str,
    /// Its family.
    pub family: Family,
    /// One line of description.
    pub summary: &'static str,
    /// Its requirements on the network.
    pub needs: Needs,
    /// The algorithm in Linux, if Linux has it.
    pub linux: Option<Linux>,
    /// Its look in figures. Without one, figures choose a look that no other curve has.
    pub look: Option<Look>,
    /// Its parameters.
    pub parameters: &'static [Group],
    /// Names for certain parameters.
    pub presets: &'static [Preset],
    /// Builds the controller for one connection. The values are checked; those that are absent have their
    /// default.
    pub build: fn(&Values) -> Box<dyn Controller>,
}

impl Entry {
    /// An algorithm without parameters that needs nothing from the network.
    pub const fn new(
        name: &'static str,
        family: Family,
        summary: &'static str,
        build: fn(&Values) -> Box<dyn Controller>,
    ) -> Self {
        Entry {
            name,
            family,
            summary,
            needs: Needs::NOTHING,
            linux: None,
            look: None,
            parameters: &[],
            presets: &[],
            build,
        }
    }

    /// Full name, definition and default of each parameter.
    pub fn parameters(&self) -> impl Iterator<Item = (String, &'static Parameter, Value)> {
        self.parameters.iter().flat_map(|group| {
            let defaults = (group.defaults)();
            group
                .table
                .iter()
                .zip(defaults)
                .map(|(p, value)| (format!("{}{}", group.prefix, p.name), p, value))
        })
    }

    /// The definition of a parameter.
    pub fn parameter(&self, name: &str) -> Option<&'static Parameter> {
        self.parameters.iter().find_map(|group| {
            let rest = name.strip_prefix(group.prefix)?;
            group.table.iter().find(|p| p.name == rest)
        })
    }

    fn check(&self, values: &Values) -> Result<(), Problem> {
        for (name, value) in values {
            let Some(parameter) = self.parameter(name) else {
                let known: Vec<String> = self.parameters().map(|(name, ..)| name).collect();
                let expected = if known.is_empty() {
                    format!("no parameters for {}", self.name)
                } else {
                    format!("a parameter of {}: {}", self.name, known.join(", "))
                };
                return Err(Problem { parameter: None, found: format!("{name:?}"), expected });
            };
            let shape = &parameter.shape;
            if !shape.accepts(value) {
                let found = match value {
                    Value::Word(word) => format!("{word:?}"),
                    value => shape.text(value),
                };
                return Err(Problem { parameter: Some(name.clone()), found, expected: shape.expected() });
            }
        }
        Ok(())
    }
}

/// An algorithm and its parameters, as a plan names them: `"cubic"` or `{"name": "cubic", "beta": 0.5}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Choice {
    /// The name of an algorithm or preset.
    pub name: String,
    /// Given parameters in base units.
    pub params: Values,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Name(String),
    Table {
        name: String,
        #[serde(flatten)]
        params: Values,
    },
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Choice {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Choice".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "anyOf": [
                { "type": "string" },
                {
                    "type": "object",
                    "properties": { "name": { "type": "string" } },
                    "required": ["name"],
                    "additionalProperties": { "type": ["boolean", "number", "string"] },
                },
            ],
        })
    }
}

impl From<Written> for Choice {
    fn from(written: Written) -> Self {
        match written {
            Written::Name(name) => Choice { name, params: Values::new() },
            Written::Table { name, params } => Choice { name, params },
        }
    }
}

impl From<Choice> for Written {
    fn from(Choice { name, params }: Choice) -> Self {
        if params.is_empty() { Written::Name(name) } else { Written::Table { name, params } }
    }
}

impl From<&str> for Choice {
    fn from(name: &str) -> Self {
        Choice { name: name.to_owned(), params: Values::new() }
    }
}

impl From<String> for Choice {
    fn from(name: String) -> Self {
        Choice { name, params: Values::new() }
    }
}

impl Choice {
    /// The choice with another parameter, in base units.
    #[must_use]
    pub fn with(mut self, parameter: &str, value: Value) -> Self {
        self.params.insert(parameter.to_owned(), value);
        self
    }
}

/// The first invalid part of a [`Choice`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The parameter; `None` if the problem is a name.
    pub parameter: Option<String>,
    /// The value that was found.
    pub found: String,
    /// The values that were expected.
    pub expected: String,
}

impl Problem {
    /// No algorithm has this name.
    pub fn unknown(name: &str) -> Self {
        let expected = "the name of a congestion controller".to_owned();
        Problem { parameter: None, found: format!("{name:?}"), expected }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem { parameter, found, expected } = self;
        if let Some(parameter) = parameter {
            write!(f, "{parameter}: ")?;
        }
        write!(f, "found {found}, expected {expected}")
    }
}

impl std::error::Error for Problem {}

/// A set of algorithms by name.
#[derive(Clone, Debug)]
pub struct Catalogue {
    entries: Vec<Entry>,
}

static BUILT_IN: LazyLock<Catalogue> = LazyLock::new(|| Catalogue { entries: entries::FAMILIES.concat() });

impl Catalogue {
    /// The algorithms of this crate, sorted by family.
    pub fn built_in() -> &'static Catalogue {
        &BUILT_IN
    }

    /// Adds an algorithm.
    ///
    /// # Errors
    /// A name of it is taken, a parameter stands twice, or a default or preset is not in its range.
    pub fn add(&mut self, entry: Entry) -> Result<(), Problem> {
        let names = std::iter::once(entry.name).chain(entry.presets.iter().map(|p| p.name));
        for name in names {
            if name.is_empty() || self.find(name).is_some() {
                let expected = "a name that no other algorithm has".to_owned();
                return Err(Problem { parameter: None, found: format!("{name:?}"), expected });
            }
        }
        let mut known = BTreeSet::new();
        for (name, parameter, default) in entry.parameters() {
            let expected = parameter.shape.expected();
            if !parameter.shape.accepts(&default) {
                let found = format!("the default {}", parameter.shape.text(&default));
                return Err(Problem { parameter: Some(name), found, expected });
            }
            if !known.insert(name.clone()) || name == "name" {
                let expected = "a name that no other parameter has".to_owned();
                return Err(Problem { parameter: None, found: format!("{name:?}"), expected });
            }
        }
        entry.presets.iter().try_for_each(|preset| entry.check(&preset.params()))?;
        self.entries.push(entry);
        Ok(())
    }

    /// All algorithms.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The algorithm with this name, or the algorithm and preset.
    pub fn find(&self, name: &str) -> Option<(&Entry, Option<&'static Preset>)> {
        let by_name = || self.entries.iter().find(|entry| entry.name == name).map(|entry| (entry, None));
        by_name().or_else(|| {
            self.entries.iter().find_map(|entry| {
                entry.presets.iter().find(|preset| preset.name == name).map(|preset| (entry, Some(preset)))
            })
        })
    }

    /// Checks a name and its parameters.
    ///
    /// # Errors
    /// The first invalid part.
    pub fn check(&self, choice: &Choice) -> Result<(), Problem> {
        let Some((entry, _)) = self.find(&choice.name) else {
            return Err(Problem::unknown(&choice.name));
        };
        entry.check(&choice.params)
    }

    /// A new controller; `None` if no algorithm has this name. Parameters that are not valid are ignored.
    pub fn build(&self, choice: &Choice) -> Option<Box<dyn Controller>> {
        let (entry, preset) = self.find(&choice.name)?;
        let Some(preset) = preset else { return Some((entry.build)(&choice.params)) };
        let mut values = preset.params();
        values.extend(choice.params.iter().map(|(name, value)| (name.clone(), value.clone())));
        Some((entry.build)(&values))
    }

    /// The choice in results: the name, and the given parameters in parentheses.
    pub fn label(&self, choice: &Choice) -> String {
        if choice.params.is_empty() {
            return choice.name.clone();
        }
        let entry = self.find(&choice.name).map(|(entry, _)| entry);
        let given = choice.params.iter().map(|(name, value)| {
            let shape = entry.and_then(|entry| entry.parameter(name)).map_or(number(0.0, 0.0), |p| p.shape);
            format!("{name}={}", shape.text(value))
        });
        format!("{}({})", choice.name, given.collect::<Vec<_>>().join(", "))
    }
}

/// The congestion controllers of a run. A [`Catalogue`] is one, and so is a function of a [`Choice`].
pub trait Controllers {
    /// Checks a name and its parameters.
    ///
    /// # Errors
    /// The first invalid part.
    fn check(&self, choice: &Choice) -> Result<(), Problem>;

    /// A new controller; `None` if no algorithm has this name.
    fn build(&self, choice: &Choice) -> Option<Box<dyn Controller>>;

    /// The choice in results.
    fn label(&self, choice: &Choice) -> String {
        Catalogue::built_in().label(choice)
    }
}

impl Controllers for Catalogue {
    fn check(&self, choice: &Choice) -> Result<(), Problem> {
        Catalogue::check(self, choice)
    }
    fn build(&self, choice: &Choice) -> Option<Box<dyn Controller>> {
        Catalogue::build(self, choice)
    }
    fn label(&self, choice: &Choice) -> String {
        Catalogue::label(self, choice)
    }
}

impl<F: Fn(&Choice) -> Option<Box<dyn Controller>>> Controllers for F {
    fn check(&self, choice: &Choice) -> Result<(), Problem> {
        self(choice).map(|_| ()).ok_or_else(|| Problem::unknown(&choice.name))
    }
    fn build(&self, choice: &Choice) -> Option<Box<dyn Controller>> {
        self(choice)
    }
}

#[cfg(test)]
mod tests;
