//! Parameters of algorithms. The macro [`parameters!`](crate::parameters) declares a structure and its table
//! at once, so name, unit, range, default, meaning and source of a parameter are in one place.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::units::{Rate, Span};

/// The value of a parameter in base units: times are in ns, rates in L3 bytes/s.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// `true` or `false`.
    Flag(bool),
    /// A number, a time or a rate.
    Number(f64),
    /// A word.
    Word(Cow<'static, str>),
}

crate::words! {
    /// The reading of a paper that leaves choices open, or that is unusable if taken word by word.
    pub enum Reading {
        /// With the choices and safeguards of this implementation.
        Resolved = "resolved",
        /// The paper's sentences word by word.
        Literal = "literal",
    }
}

/// The word for "no limit" or "not used" of parameters that may be absent.
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
    /// A whole number.
    Whole {
        /// Smallest value.
        min: u64,
        /// Largest value.
        max: u64,
    },
    /// A number. The algorithm keeps it as a whole number of `1 / per`.
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

/// The parameter of a Linux module that has the same meaning.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Module {
    /// Its file in `/sys/module/MODULE/parameters`.
    pub parameter: &'static str,
    /// How values convert to the module's whole numbers.
    pub values: ModuleValues,
}

/// How values of a parameter convert to a module's whole numbers.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum ModuleValues {
    /// The value in base units times this factor, rounded. A flag is 0 or 1.
    Scaled(f64),
    /// Words that have a number. The module does not know other words.
    Words(&'static [(&'static str, i64)]),
}

/// Everything about a parameter except its name, meaning and default.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Shape {
    /// The kind of its values, with the range.
    pub takes: Takes,
    /// Unit of a number, e.g. `segments`; empty if it has none.
    pub unit: &'static str,
    /// The source of its default: RFC section, paper or kernel constant.
    pub source: &'static str,
    /// Whether it may be [`NONE`].
    pub optional: bool,
    /// The parameter of a Linux module, if there is one that can be written.
    pub module: Option<Module>,
    /// The name in scenarios if it is not the field's name.
    pub name: Option<&'static str>,
}

impl Shape {
    const fn new(takes: Takes) -> Self {
        Shape { takes, unit: "", source: "", optional: false, module: None, name: None }
    }
    /// The unit of a number.
    pub const fn unit(self, unit: &'static str) -> Self {
        Shape { unit, ..self }
    }
    /// The source of the default.
    pub const fn from(self, source: &'static str) -> Self {
        Shape { source, ..self }
    }
    /// A number that the algorithm keeps in `1 / per`.
    pub const fn per(self, per: u32) -> Self {
        match self.takes {
            Takes::Number { min, max, .. } => Shape { takes: Takes::Number { min, max, per }, ..self },
            _ => self,
        }
    }
    /// It may be [`NONE`].
    pub const fn or_none(self) -> Self {
        Shape { optional: true, ..self }
    }
    /// The name in scenarios.
    pub const fn named(self, name: &'static str) -> Self {
        Shape { name: Some(name), ..self }
    }
    /// The module's parameter is this value in base units times a factor.
    pub const fn module(self, parameter: &'static str, factor: f64) -> Self {
        Shape { module: Some(Module { parameter, values: ModuleValues::Scaled(factor) }), ..self }
    }
    /// The module's parameter has a number for some words.
    pub const fn module_words(self, parameter: &'static str, words: &'static [(&'static str, i64)]) -> Self {
        Shape { module: Some(Module { parameter, values: ModuleValues::Words(words) }), ..self }
    }

    /// Whether the value is of the right kind and within the range.
    pub fn accepts(&self, value: &Value) -> bool {
        match (value, self.takes) {
            (Value::Word(word), _) if self.optional && word == NONE => true,
            (Value::Flag(_), Takes::Flag) => true,
            (Value::Word(word), Takes::Word(words)) => words.contains(&word.as_ref()),
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

    /// The values that it takes, as the end of "expected ...".
    pub fn expected(&self) -> String {
        let what = match self.takes {
            Takes::Flag => "true or false".to_owned(),
            Takes::Word(words) => words.join(" or "),
            Takes::Whole { min, max } => format!("a whole number from {min} to {max}"),
            Takes::Number { min, max, .. } => format!("a number from {min} to {max}"),
            Takes::Time { min, max } => format!("a time from {} to {}", time(min), time(max)),
            Takes::Rate { min, max } => format!("a rate from {} to {}", rate(min), rate(max)),
        };
        if self.optional { format!("{what}, or {NONE}") } else { what }
    }

    /// The value as a scenario spells it, without quotes.
    pub fn text(&self, value: &Value) -> String {
        match (value, self.takes) {
            (Value::Flag(flag), _) => flag.to_string(),
            (Value::Word(word), _) => word.to_string(),
            (&Value::Number(n), Takes::Time { .. }) => time(Span::from_nanos(n as u64)),
            (&Value::Number(n), Takes::Rate { .. }) => rate(Rate::from_bytes_per_sec(n as u64)),
            (Value::Number(n), _) => n.to_string(),
        }
    }

    fn per_unit(&self) -> f64 {
        if let Takes::Number { per, .. } = self.takes { f64::from(per.max(1)) } else { 1.0 }
    }
}

/// `true` or `false`.
pub const fn flag() -> Shape {
    Shape::new(Takes::Flag)
}
/// One of these words.
pub const fn word(words: &'static [&'static str]) -> Shape {
    Shape::new(Takes::Word(words))
}
/// A whole number.
pub const fn whole(min: u64, max: u64) -> Shape {
    Shape::new(Takes::Whole { min, max })
}
/// A number.
pub const fn number(min: f64, max: f64) -> Shape {
    Shape::new(Takes::Number { min, max, per: 1 })
}
/// A gain: a number in 1/256.
pub const fn gain(min: f64, max: f64) -> Shape {
    number(min, max).per(256)
}
/// A time.
pub const fn time_from(min: Span, max: Span) -> Shape {
    Shape::new(Takes::Time { min, max })
}
/// A rate.
pub const fn rate_from(min: Rate, max: Rate) -> Shape {
    Shape::new(Takes::Rate { min, max })
}

/// A time in the largest unit that gives a whole number.
fn time(span: Span) -> String {
    scaled(span.as_nanos(), &[(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")])
}

/// A rate in the largest unit that gives a whole number.
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
    /// The name in scenarios, after the prefix of its [`Group`](super::Group).
    pub name: &'static str,
    /// Its meaning. Lines are separated by more than one space.
    pub meaning: &'static str,
    /// Everything else.
    pub shape: Shape,
}

impl Parameter {
    /// A parameter. The macro [`parameters!`](crate::parameters) calls this.
    pub const fn new(field: &'static str, meaning: &'static str, shape: Shape) -> Self {
        let name = match shape.name {
            Some(name) => name,
            None => field,
        };
        Parameter { name, meaning, shape }
    }
}

/// A structure of parameters that a scenario can set.
pub trait Parameters: Sized {
    /// Its parameters, in the order of its fields.
    const TABLE: &'static [Parameter];

    /// The present values, in the order of the table.
    fn values(&self) -> Vec<Value>;

    /// Sets a parameter. Unknown names and values of another kind change nothing; the catalogue has checked
    /// them before.
    fn set(&mut self, name: &str, value: &Value);

    /// The structure with the given values whose names begin with `prefix`.
    fn with(mut self, prefix: &str, values: &Values) -> Self {
        for (name, value) in values {
            if let Some(name) = name.strip_prefix(prefix) {
                self.set(name, value);
            }
        }
        self
    }
}

/// A type of a field that a parameter can set.
pub trait Field: Sized {
    /// The field for a value; `None` if it is of another kind.
    fn read(value: &Value, shape: &Shape) -> Option<Self>;
    /// The value of the field, as short as possible.
    fn value(&self, shape: &Shape) -> Value;
}

impl Field for bool {
    fn read(value: &Value, _shape: &Shape) -> Option<Self> {
        if let Value::Flag(flag) = value { Some(*flag) } else { None }
    }
    fn value(&self, _shape: &Shape) -> Value {
        Value::Flag(*self)
    }
}

impl Field for u64 {
    fn read(value: &Value, shape: &Shape) -> Option<Self> {
        // Rounds to the nearest fixed-point number. Negative and NaN give zero.
        if let Value::Number(n) = value { Some((n * shape.per_unit() + 0.5) as u64) } else { None }
    }
    /// The decimal number with the fewest digits that gives this fixed-point number again.
    fn value(&self, shape: &Shape) -> Value {
        let exact = *self as f64 / shape.per_unit();
        let shorter = (0..9).filter_map(|digits| format!("{exact:.digits$}").parse().ok());
        let same = |n: &f64| Self::read(&Value::Number(*n), shape) == Some(*self);
        Value::Number(shorter.into_iter().find(same).unwrap_or(exact))
    }
}

impl Field for u32 {
    fn read(value: &Value, shape: &Shape) -> Option<Self> {
        u64::read(value, shape).map(|n| u32::try_from(n).unwrap_or(u32::MAX))
    }
    fn value(&self, shape: &Shape) -> Value {
        u64::from(*self).value(shape)
    }
}

impl Field for f64 {
    fn read(value: &Value, _shape: &Shape) -> Option<Self> {
        if let Value::Number(n) = value { Some(*n) } else { None }
    }
    fn value(&self, _shape: &Shape) -> Value {
        Value::Number(*self)
    }
}

impl Field for Span {
    fn read(value: &Value, shape: &Shape) -> Option<Self> {
        u64::read(value, shape).map(Span::from_nanos)
    }
    fn value(&self, _shape: &Shape) -> Value {
        Value::Number(self.as_nanos() as f64)
    }
}

impl Field for Rate {
    fn read(value: &Value, shape: &Shape) -> Option<Self> {
        u64::read(value, shape).map(Rate::from_bytes_per_sec)
    }
    fn value(&self, _shape: &Shape) -> Value {
        Value::Number(self.as_f64())
    }
}

impl<T: Field> Field for Option<T> {
    fn read(value: &Value, shape: &Shape) -> Option<Self> {
        if matches!(value, Value::Word(word) if word == NONE) {
            return Some(None);
        }
        T::read(value, shape).map(Some)
    }
    fn value(&self, shape: &Shape) -> Value {
        self.as_ref().map_or(Value::Word(Cow::Borrowed(NONE)), |inner| inner.value(shape))
    }
}

/// Declares a structure of parameters, and implements [`Parameters`](crate::parameter::Parameters) for it.
///
/// A field's doc comment is the meaning of the parameter. The last expression states values, unit and source.
/// Fields in a second block, after `and`, are not parameters.
///
/// ```
/// use narrows_control::parameter::{Parameters, Value, number};
///
/// narrows_control::parameters! {
///     /// Parameters of a window that multiplies.
///     pub struct Params {
///         /// Factor per round trip.
///         pub factor: f64 = 2.0, number(1.0, 8.0).from("invented");
///     }
/// }
///
/// let values = [("factor".to_owned(), Value::Number(3.0))].into();
/// assert_eq!(Params::default().with("", &values).factor, 3.0);
/// ```
#[macro_export]
macro_rules! parameters {
    (
        $(#[$about:meta])*
        $vis:vis struct $name:ident {
            $( $(#[doc = $doc:literal])+ $field_vis:vis $field:ident: $type:ty = $default:expr, $shape:expr; )*
        }
        $( and { $( $(#[doc = $other_doc:literal])+ $other_vis:vis $other:ident: $other_type:ty = $other_default:expr; )* } )?
    ) => {
        $crate::parameters! {
            $(#[$about])*
            $vis struct $name without default {
                $( $(#[doc = $doc])+ $field_vis $field: $type, $shape; )*
            }
            $( and { $( $(#[doc = $other_doc])+ $other_vis $other: $other_type; )* } )?
        }

        impl Default for $name {
            fn default() -> Self {
                $name { $( $field: $default, )* $( $( $other: $other_default, )* )? }
            }
        }
    };
    (
        $(#[$about:meta])*
        $vis:vis struct $name:ident without default {
            $( $(#[doc = $doc:literal])+ $field_vis:vis $field:ident: $type:ty, $shape:expr; )*
        }
        $( and { $( $(#[doc = $other_doc:literal])+ $other_vis:vis $other:ident: $other_type:ty; )* } )?
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug)]
        $vis struct $name {
            $( $(#[doc = $doc])+ $field_vis $field: $type, )*
            $( $( $(#[doc = $other_doc])+ $other_vis $other: $other_type, )* )?
        }

        impl $crate::parameter::Parameters for $name {
            const TABLE: &'static [$crate::parameter::Parameter] = &[
                $( $crate::parameter::Parameter::new(stringify!($field), concat!($($doc),+), $shape), )*
            ];

            fn values(&self) -> Vec<$crate::parameter::Value> {
                vec![ $( $crate::parameter::Field::value(&self.$field, &$shape), )* ]
            }

            fn set(&mut self, name: &str, value: &$crate::parameter::Value) {
                $(
                    let shape = &$shape;
                    if name == shape.name.unwrap_or(stringify!($field)) {
                        if let Some(value) = $crate::parameter::Field::read(value, shape) {
                            self.$field = value;
                        }
                        return;
                    }
                )*
            }
        }
    };
}

/// Declares an enumeration whose values scenarios write as words.
#[macro_export]
macro_rules! words {
    (
        $(#[$about:meta])*
        $vis:vis enum $name:ident {
            $( $(#[$doc:meta])* $variant:ident = $word:literal, )+
        }
    ) => {
        $(#[$about])*
        #[derive(Copy, Clone, Debug, PartialEq, Eq)]
        $vis enum $name {
            $( $(#[$doc])* $variant, )+
        }

        impl $name {
            /// The words, in the order of the values.
            pub const WORDS: &'static [&'static str] = &[$($word),+];
        }

        impl $crate::parameter::Field for $name {
            fn read(value: &$crate::parameter::Value, _shape: &$crate::parameter::Shape) -> Option<Self> {
                match value {
                    $( $crate::parameter::Value::Word(word) if word == $word => Some($name::$variant), )+
                    _ => None,
                }
            }
            fn value(&self, _shape: &$crate::parameter::Shape) -> $crate::parameter::Value {
                let word = match self { $( $name::$variant => $word, )+ };
                $crate::parameter::Value::Word(word.into())
            }
        }
    };
}
