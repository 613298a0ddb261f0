//! Values as TOML and JSON have them, before they are checked, and the way from values to checked tables.
//!
//! | module | idea |
//! | --- | --- |
//! | `toml` | reads TOML text |
//! | `reader` | reads the keys of a table, and collects all problems |
//! | `table` | the macros that declare tables, and the properties of each key |
//! | `fields` | the types of fields: how each one reads and writes a value |
//! | `words` | the macro that declares choices between words |
//! | `schema` | the JSON schema of scenarios |
//! | `reference` | the tables of keys in the documentation |
//! | `problem` | chooses the problem to report, and words it |
//! | `decimal` | exact decimal numbers |
//! | `python` | values and numbers in messages, as Python writes them |

pub(crate) mod decimal;
pub(crate) mod fields;
pub(crate) mod problem;
pub(crate) mod python;
pub(crate) mod reader;
pub(crate) mod reference;
pub(crate) mod schema;
pub(crate) mod table;
pub(crate) mod toml;
pub(crate) mod words;

use std::fmt;

use indexmap::IndexMap;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use self::python::{repr_float, repr_text};

/// A table: values by key, in the order of the file.
pub type Table = IndexMap<String, Value>;

/// A value of a scenario that has not been checked yet.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// No value: `null` in JSON. TOML has no such value. Optional keys accept it.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// The decimal digits of a whole number that needs more than 64 bits, with the sign of a negative number. If the
    /// number has more than 4300 digits, the text contains no digits.
    Big(String),
    /// A floating-point number.
    Float(f64),
    /// A string.
    Text(String),
    /// A date, a time or both, as TOML spells it. No key of a scenario takes dates.
    Date(String),
    /// A list.
    List(Vec<Value>),
    /// A table.
    Table(Table),
}

impl Value {
    /// Returns the entry with this key, if this is a table that has the key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        match self {
            Value::Table(table) => table.get(key),
            _ => None,
        }
    }

    /// Returns the text, if this is a string.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the number, if this is a number.
    pub(crate) fn as_number(&self) -> Option<f64> {
        match self {
            Value::Int(n) => Some(*n as f64),
            Value::Float(n) => Some(*n),
            Value::Big(digits) => Some(digits.parse().unwrap_or(f64::INFINITY)),
            _ => None,
        }
    }

    /// Returns the value as Python would print its representation.
    pub(crate) fn repr(&self) -> String {
        match self {
            Value::Null => "None".to_owned(),
            Value::Bool(true) => "True".to_owned(),
            Value::Bool(false) => "False".to_owned(),
            Value::Int(n) => n.to_string(),
            Value::Big(digits) if digits.trim_start_matches('-').is_empty() => "a huge number".to_owned(),
            Value::Big(digits) => digits.clone(),
            Value::Float(n) => repr_float(*n),
            Value::Text(text) => repr_text(text),
            Value::Date(text) => text.clone(),
            Value::List(list) => {
                format!("[{}]", list.iter().map(Value::repr).collect::<Vec<_>>().join(", "))
            }
            Value::Table(table) => {
                let pairs = table.iter().map(|(key, value)| format!("{}: {}", repr_text(key), value.repr()));
                format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
            }
        }
    }

    /// Returns a string as it is, and every other value as [`repr`](Value::repr).
    pub(crate) fn display(&self) -> String {
        match self {
            Value::Text(text) => text.clone(),
            other => other.repr(),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(text)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Value::Bool(flag)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Value::Float(number)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Value::Int(number)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        i64::try_from(number).map_or_else(|_| Value::Big(number.to_string()), Value::Int)
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(flag) => serializer.serialize_bool(*flag),
            Value::Int(n) => serializer.serialize_i64(*n),
            Value::Big(digits) => serializer.serialize_f64(digits.parse().unwrap_or(f64::MAX)),
            Value::Float(n) => serializer.serialize_f64(*n),
            Value::Text(text) | Value::Date(text) => serializer.serialize_str(text),
            Value::List(list) => {
                let mut items = serializer.serialize_seq(Some(list.len()))?;
                list.iter().try_for_each(|item| items.serialize_element(item))?;
                items.end()
            }
            Value::Table(table) => {
                let mut entries = serializer.serialize_map(Some(table.len()))?;
                table.iter().try_for_each(|(key, value)| entries.serialize_entry(key, value))?;
                entries.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyValue;

        impl<'de> Visitor<'de> for AnyValue {
            type Value = Value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, a number, true, false, a list or a table")
            }
            fn visit_unit<E>(self) -> Result<Value, E> {
                Ok(Value::Null)
            }
            fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
                Ok(Value::Bool(flag))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
                Ok(Value::Int(number))
            }
            fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
                Ok(Value::from(number))
            }
            fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
                Ok(Value::Float(number))
            }
            fn visit_str<E>(self, text: &str) -> Result<Value, E> {
                Ok(Value::from(text))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = items.next_element()? {
                    list.push(item);
                }
                Ok(Value::List(list))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
                let mut table = Table::new();
                while let Some((key, value)) = entries.next_entry()? {
                    table.insert(key, value);
                }
                Ok(Value::Table(table))
            }
        }

        deserializer.deserialize_any(AnyValue)
    }
}
