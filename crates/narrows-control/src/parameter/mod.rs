//! Parameters of algorithms. The macro [`parameters!`](crate::parameters) declares a structure together with the table
//! of its parameters. So the name, unit, range, default, meaning and source of a parameter are in one place.

mod declare;
mod field;
mod problem;
#[cfg(test)]
pub(crate) mod testing;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};

pub use self::field::Field;
pub use self::problem::Problem;
use crate::units::{Rate, Span};

/// The value of a parameter in base units. Times are in ns, and rates are in L3 bytes/s.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged, expecting = "true, false, a number or a string")]
pub enum Value {
    /// `true` or `false`.
    Flag(bool),
    /// A number, a time or a rate.
    Number(f64),
    /// A word.
    Word(Cow<'static, str>),
}

impl Serialize for Value {
    /// Writes whole numbers without a decimal point, as in plans and configurations.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Flag(flag) => serializer.serialize_bool(*flag),
            &Value::Number(n) if is_whole(n.abs()) => serializer.serialize_i64(n as i64),
            Value::Number(n) => serializer.serialize_f64(*n),
            Value::Word(word) => serializer.serialize_str(word),
        }
    }
}

/// All whole numbers below this number are exact in floating point.
const EXACT: f64 = (1u64 << 53) as f64;

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Value {
    fn schema_name() -> Cow<'static, str> {
        "Value".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": ["boolean", "number", "string"] })
    }
}

crate::words! {
    /// The way in which a paper is implemented. A paper may leave choices open, or its scheme may not work if it is
    /// implemented word by word.
    #[derive(Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    #[serde(rename_all = "lowercase")]
    pub enum Reading {
        /// The implementation makes its own choices and has safeguards.
        Resolved = "resolved",
        /// The implementation follows the paper's sentences word by word.
        Literal = "literal",
    }
}

/// The word for an optional parameter that has no value. Depending on the parameter, `none` means "no limit", "not
/// used" or "as another parameter says".
pub const NONE: &str = "none";

/// Given parameters, by name.
pub type Values = BTreeMap<String, Value>;

/// The kind of values that a parameter takes, with its range.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Takes {
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A word. The contained text lists the accepted forms of the word. The type of the parameter's field in the
    /// structure of parameters parses the word.
    Text(&'static str),
    /// One of these words, or the contents of a file. Scenarios and configurations hold the path of the file, and
    /// plans hold its contents. The type of the parameter's field parses the contents.
    Contents {
        /// The words.
        words: &'static [&'static str],
        /// A description of the file's contents, for error messages.
        of: &'static str,
        /// Maximum length of the contents in bytes.
        max: usize,
    },
    /// A whole number.
    Whole {
        /// Smallest value.
        min: u64,
        /// Largest value.
        max: u64,
    },
    /// A number. The algorithm stores the number as a multiple of `1 / per`.
    Number {
        /// Smallest value.
        min: f64,
        /// Largest value.
        max: f64,
        /// Denominator of the algorithm's fixed-point numbers.
        per: u32,
    },
    /// A time.
    Time {
        /// Shortest time.
        min: Span,
        /// Longest time.
        max: Span,
    },
    /// A rate.
    Rate {
        /// Lowest rate.
        min: Rate,
        /// Highest rate.
        max: Rate,
    },
}

/// A parameter of a Linux module. It has the same meaning as the parameter of the algorithm.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Module {
    /// The file of the module's parameter in `/sys/module/MODULE/parameters`.
    pub parameter: &'static str,
    /// The conversion of values to the module's whole numbers.
    pub values: ModuleValues,
}

/// The conversion of a parameter's values to a module's whole numbers.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum ModuleValues {
    /// The value in base units is multiplied by this factor and rounded. A flag is 0 or 1.
    Scaled(f64),
    /// The module has a number for each of these words. It does not support other words.
    Words(&'static [(&'static str, i64)]),
}

/// All properties of a parameter except its field, its meaning and its default.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Shape {
    /// The kind of the parameter's values, with the range.
    pub takes: Takes,
    /// Unit of a number, e.g. `segments`. The text is empty if the number has no unit.
    pub unit: &'static str,
    /// The source of the default: an RFC section, a paper or a kernel constant.
    pub source: &'static str,
    /// Whether the parameter may be [`NONE`].
    pub optional: bool,
    /// The writable parameter with the same meaning in a Linux module, if there is one.
    pub module: Option<Module>,
    /// The name in scenarios, if it differs from the field's name.
    pub name: Option<&'static str>,
}

impl Shape {
    const fn new(takes: Takes) -> Self {
        Shape { takes, unit: "", source: "", optional: false, module: None, name: None }
    }
    /// Sets the unit of a number.
    pub const fn unit(self, unit: &'static str) -> Self {
        Shape { unit, ..self }
    }
    /// Sets the source of the default.
    pub const fn from(self, source: &'static str) -> Self {
        Shape { source, ..self }
    }
    /// Sets the denominator. The algorithm stores the number as a multiple of `1 / per`.
    pub const fn per(self, per: u32) -> Self {
        match self.takes {
            Takes::Number { min, max, .. } => Shape { takes: Takes::Number { min, max, per }, ..self },
            _ => self,
        }
    }
    /// Makes the parameter also accept [`NONE`].
    pub const fn or_none(self) -> Self {
        Shape { optional: true, ..self }
    }
    /// Sets the name in scenarios.
    pub const fn named(self, name: &'static str) -> Self {
        Shape { name: Some(name), ..self }
    }
    /// Sets the module's parameter. The module's value is the value in base units times `factor`.
    pub const fn module(self, parameter: &'static str, factor: f64) -> Self {
        Shape { module: Some(Module { parameter, values: ModuleValues::Scaled(factor) }), ..self }
    }
    /// Sets the module's parameter. The module has a number for each of these words.
    pub const fn module_words(self, parameter: &'static str, words: &'static [(&'static str, i64)]) -> Self {
        Shape { module: Some(Module { parameter, values: ModuleValues::Words(words) }), ..self }
    }

    /// Returns whether the value is of the right kind and within the range.
    pub fn accepts(&self, value: &Value) -> bool {
        match (value, self.takes) {
            (Value::Word(word), _) if self.optional && word == NONE => true,
            (Value::Flag(_), Takes::Flag) => true,
            (Value::Word(word), Takes::Word(words)) => words.contains(&word.as_ref()),
            (Value::Word(_), Takes::Text(_)) => true,
            (Value::Word(word), Takes::Contents { words, max, .. }) => {
                words.contains(&word.as_ref()) || word.len() <= max
            }
            (&Value::Number(n), Takes::Whole { min, max }) => {
                n.fract() == 0.0 && (min as f64..=max as f64).contains(&n)
            }
            (&Value::Number(n), Takes::Number { min, max, .. }) => (min..=max).contains(&n),
            (&Value::Number(n), Takes::Time { min, max }) => {
                (min.as_nanos() as f64..=max.as_nanos() as f64).contains(&n)
            }
            (&Value::Number(n), Takes::Rate { min, max }) => (min.as_f64()..=max.as_f64()).contains(&n),
            _ => false,
        }
    }

    /// Returns the accepted values, as the text that follows "expected" in an error.
    pub fn expected(&self) -> String {
        let what = match self.takes {
            Takes::Flag => "true or false".to_owned(),
            Takes::Word(words) => either(words),
            Takes::Text(forms) => forms.to_owned(),
            Takes::Contents { words, of, max } => {
                format!("{}, or the file of {of} (at most {} KiB)", words.join(", "), max >> 10)
            }
            Takes::Whole { min, max } => format!("a whole number from {min} to {max}"),
            Takes::Number { min, max, .. } => format!("a number from {min} to {max}"),
            Takes::Time { min, max } => format!("a time from {} to {}", time(min), time(max)),
            Takes::Rate { min, max } => format!("a rate from {} to {}", rate(min), rate(max)),
        };
        if self.optional { format!("{what}, or {NONE}") } else { what }
    }

    /// Returns the value as text in an error, with words in quotes.
    pub fn quoted(&self, value: &Value) -> String {
        if let Value::Word(word) = value { format!("{word:?}") } else { self.text(value) }
    }

    /// Returns the value as a scenario spells it, without quotes.
    pub fn text(&self, value: &Value) -> String {
        match (value, self.takes) {
            (Value::Flag(flag), _) => flag.to_string(),
            (Value::Word(word), _) => word.to_string(),
            (&Value::Number(n), Takes::Time { .. }) if is_whole(n) => time(Span::from_nanos(n as u64)),
            (&Value::Number(n), Takes::Rate { .. }) if is_whole(n) => {
                rate(Rate::from_bytes_per_sec(n as u64))
            }
            (Value::Number(n), _) => n.to_string(),
        }
    }

    fn per_unit(&self) -> f64 {
        if let Takes::Number { per, .. } = self.takes { f64::from(per.max(1)) } else { 1.0 }
    }
}

/// Returns the shape of a flag: `true` or `false`.
pub const fn flag() -> Shape {
    Shape::new(Takes::Flag)
}
/// Returns the shape of a parameter that takes one of these words.
pub const fn word(words: &'static [&'static str]) -> Shape {
    Shape::new(Takes::Word(words))
}
/// Returns the shape of a parameter that takes a word. The text `forms` lists the accepted forms of the word.
pub const fn text(forms: &'static str) -> Shape {
    Shape::new(Takes::Text(forms))
}
/// Returns the shape of a parameter that takes one of these words, or a file with at most `max` bytes.
pub const fn contents(words: &'static [&'static str], of: &'static str, max: usize) -> Shape {
    Shape::new(Takes::Contents { words, of, max })
}
/// Returns the shape of a whole number.
pub const fn whole(min: u64, max: u64) -> Shape {
    Shape::new(Takes::Whole { min, max })
}
/// Returns the shape of a number.
pub const fn number(min: f64, max: f64) -> Shape {
    Shape::new(Takes::Number { min, max, per: 1 })
}
/// Returns the shape of a gain, which is a number that the algorithm stores in units of 1/256.
pub const fn gain(min: f64, max: f64) -> Shape {
    number(min, max).per(256)
}
/// Returns the shape of a time.
pub const fn time_from(min: Span, max: Span) -> Shape {
    Shape::new(Takes::Time { min, max })
}
/// Returns the shape of a rate.
pub const fn rate_from(min: Rate, max: Rate) -> Shape {
    Shape::new(Takes::Rate { min, max })
}

/// Returns whether the number is a whole number that is not negative and is exact in floating point.
fn is_whole(n: f64) -> bool {
    n.fract() == 0.0 && (0.0..EXACT).contains(&n)
}

/// Returns a list of words such as "literal, resolved or incremental".
fn either(words: &[&str]) -> String {
    match words {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

/// Returns a time in the largest unit that gives a whole number.
fn time(span: Span) -> String {
    scaled(span.as_nanos(), &[(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")])
}

/// Returns a rate in the largest unit that gives a whole number.
fn rate(rate: Rate) -> String {
    let bits = rate.as_bytes_per_sec().saturating_mul(8);
    scaled(bits, &[(1_000_000_000, "gbit"), (1_000_000, "mbit"), (1_000, "kbit"), (1, "bit")])
}

fn scaled(amount: u64, units: &[(u64, &str)]) -> String {
    if amount == 0 {
        return "0".to_owned();
    }
    let (size, name) = units.iter().find(|(size, _)| amount.is_multiple_of(*size)).unwrap_or(&(1, ""));
    format!("{}{name}", amount / size)
}

/// One parameter of a structure.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The name in scenarios, after the prefix of its [`Group`](crate::catalogue::Group).
    pub name: &'static str,
    /// The meaning of the parameter, from its doc comment. In this text, several spaces separate the lines of the
    /// comment.
    pub meaning: &'static str,
    /// Its values, unit and source.
    pub shape: Shape,
}

impl Parameter {
    /// Creates a parameter. The macro [`parameters!`](crate::parameters) calls this.
    pub const fn new(field: &'static str, meaning: &'static str, shape: Shape) -> Self {
        let name = match shape.name {
            Some(name) => name,
            None => field,
        };
        Parameter { name, meaning, shape }
    }

    /// Checks kind and range of a value.
    ///
    /// # Errors
    /// Returns an error if the value is of another kind or out of range.
    pub fn check(&self, value: &Value) -> Result<(), Problem> {
        if self.shape.accepts(value) { Ok(()) } else { Err(Problem::of(self.name, &self.shape, value)) }
    }
}

/// A structure of parameters that a scenario can set.
pub trait Parameters: Sized {
    /// The parameters of the structure, in the order of its fields.
    const TABLE: &'static [Parameter];

    /// Returns the present values, in the order of the table.
    fn values(&self) -> Vec<Value>;

    /// Sets a parameter, and returns whether this succeeded. An unknown name or an unreadable value changes nothing.
    fn set(&mut self, name: &str, value: &Value) -> bool;

    /// Returns the structure with the given values. Values with names that do not begin with `prefix` are ignored.
    fn with(mut self, prefix: &str, values: &Values) -> Self {
        for (name, value) in values {
            if let Some(name) = name.strip_prefix(prefix) {
                self.set(name, value);
            }
        }
        self
    }
}
