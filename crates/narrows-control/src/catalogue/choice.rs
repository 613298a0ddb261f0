//! An algorithm and its parameters, in the form that plans use.

use serde::{Deserialize, Serialize};

use crate::parameter::{Value, Values};

/// An algorithm and its parameters, in the form that plans use: `"cubic"` or `{"name": "cubic", "beta": 0.5}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Choice {
    /// The name of an algorithm or preset.
    pub name: String,
    /// The parameters that are given explicitly, in base units.
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
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "anyOf": [
                { "type": "string" },
                {
                    "type": "object",
                    "properties": { "name": { "type": "string" } },
                    "required": ["name"],
                    "additionalProperties": generator.subschema_for::<Value>(),
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
    /// Returns the choice with one more parameter, whose value is in base units.
    #[must_use]
    pub fn with(mut self, parameter: &str, value: Value) -> Self {
        self.params.insert(parameter.to_owned(), value);
        self
    }
}
