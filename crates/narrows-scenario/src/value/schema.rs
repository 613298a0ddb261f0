//! The JSON schema of scenarios, from the declarations of tables. Editors complete and check scenario files with it.

use std::collections::BTreeMap;

use narrows_control::parameter::{NONE, Parameter, Shape, Takes as Kind, Value as BaseValue};
use serde_json::{Map, Value as Json, json};

use super::table::About;
use crate::resolve::Settings;
use crate::units::MAX_PACKETS;

const TIME: &str = r"^\s*[0-9.]+([eE][+-]?[0-9]+)?\s*(ns|us|µs|ms|s|sec|min|h)\s*$";
const RATE: &str = r"^\s*[0-9.]+([eE][+-]?[0-9]+)?\s*([kKmMgGtT]i?)?([bB]its?|b|B)(/s|ps)?\s*$";
const SIZE: &str = r"^\s*[0-9.]+([eE][+-]?[0-9]+)?\s*([kKmMgGtT]i?)?(B|[bB]ytes?)\s*$";
const LENGTH: &str =
    r"^(infinite|\s*[0-9.]+([eE][+-]?[0-9]+)?\s*(p|packets|pkts|bdp|BDP|([kKmMgGtT]i?)?(B|[bB]ytes?))\s*)$";
const BUFFER: &str = r"^(auto|\s*[0-9.]+([eE][+-]?[0-9]+)?\s*([kKmMgGtT]i?)?(B|[bB]ytes?)\s*)$";

fn pattern(pattern: &str, examples: &[&str]) -> Json {
    json!({ "type": "string", "pattern": pattern, "examples": examples })
}

fn or_zero(schema: Json) -> Json {
    json!({ "anyOf": [schema, { "const": 0 }] })
}

pub(crate) fn time() -> Json {
    or_zero(pattern(TIME, &["20ms", "30s"]))
}

pub(crate) fn rate() -> Json {
    pattern(RATE, &["100mbit", "2.5Mbit/s"])
}

pub(crate) fn size() -> Json {
    or_zero(pattern(SIZE, &["64kB", "1MiB"]))
}

pub(crate) fn probability() -> Json {
    let percent = pattern(r"^\s*[0-9.]+([eE][+-]?[0-9]+)?\s*%?\s*$", &["0.1%"]);
    json!({ "anyOf": [{ "type": "number", "minimum": 0, "maximum": 1 }, percent] })
}

pub(crate) fn queue_length() -> Json {
    pattern(LENGTH, &["1000p", "150kB", "1bdp", "infinite"])
}

pub(crate) fn mark() -> Json {
    any_of(vec![json!({ "type": "integer", "minimum": 1, "maximum": MAX_PACKETS }), queue_length()])
}

pub(crate) fn receive_buffer() -> Json {
    pattern(BUFFER, &["auto", "6MiB"])
}

pub(crate) fn name() -> Json {
    text(1, 64)
}

pub(crate) fn quantity() -> Json {
    json!({ "anyOf": [{ "type": "number" }, { "type": "string" }], "examples": ["40mbit", "5ms", "1%"] })
}

pub(crate) fn anything() -> Json {
    json!({})
}

pub(crate) fn text(least: usize, most: usize) -> Json {
    bounded(json!({ "type": "string" }), "Length", least, most)
}

pub(crate) fn list(items: Json, least: usize, most: usize) -> Json {
    bounded(json!({ "type": "array", "items": items }), "Items", least, most)
}

fn bounded(mut schema: Json, what: &str, least: usize, most: usize) -> Json {
    if least > 0 {
        schema[format!("min{what}")] = json!(least);
    }
    if most < usize::MAX {
        schema[format!("max{what}")] = json!(most);
    }
    schema
}

/// Returns the schema of the values of a table without fixed keys.
pub(crate) fn additional(schema: Json) -> Json {
    if schema == anything() { json!(true) } else { schema }
}

pub(crate) fn word(word: &str) -> Json {
    json!({ "type": "string", "const": word })
}

pub(crate) fn words(words: &[&str]) -> Json {
    match words {
        [only] => word(only),
        several => json!({ "type": "string", "enum": several }),
    }
}

/// Returns the schema of values that match one of these schemas.
pub(crate) fn any_of(schemas: Vec<Json>) -> Json {
    let mut all = Vec::new();
    for schema in schemas {
        match schema.get("anyOf").and_then(Json::as_array) {
            Some(inner) => all.extend(inner.iter().cloned()),
            None => all.push(schema),
        }
    }
    json!({ "anyOf": all })
}

/// Returns the schema of a table, by the name of its type.
pub(crate) fn reference(name: &str) -> Json {
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// Returns the schema of one of these tables.
pub(crate) fn one_of(tag: &str, tables: &[&About]) -> Json {
    let references: Vec<Json> = tables.iter().map(|table| reference(table.name)).collect();
    let mapping: Map<String, Json> = tables
        .iter()
        .filter_map(|table| {
            let (_, word) = table.tag?;
            Some((word.to_owned(), json!(format!("#/$defs/{}", table.name))))
        })
        .collect();
    json!({ "oneOf": references, "discriminator": { "propertyName": tag, "mapping": mapping } })
}

/// Returns the JSON schema of scenarios, with the parameters of all controllers of a catalogue.
pub(crate) fn of(root: &'static About, settings: &Settings<'_>) -> Json {
    let mut defs: BTreeMap<&str, Json> = BTreeMap::new();
    let mut waiting: Vec<&'static About> = vec![root];
    while let Some(table) = waiting.pop() {
        if defs.contains_key(table.name) {
            continue;
        }
        defs.insert(table.name, of_table(table));
        waiting.extend(table.all_keys().iter().flat_map(|key| (key.takes)().tables()));
    }
    let mut schema = defs.remove(root.name).unwrap_or_default();
    if let Some(properties) = schema["properties"].as_object_mut() {
        // The default of `name` applies only to scenarios that do not come from a file.
        if let Some(name) = properties.get_mut("name").and_then(Json::as_object_mut) {
            name.remove("default");
        }
    }
    if let Some(congestion) = defs.get_mut("Congestion") {
        congestion["allOf"] = Json::Array(congestion_parameters(settings));
    }
    if let Some(controller) = defs.get_mut("RateController") {
        controller["allOf"] = Json::Array(rate_parameters(settings));
    }
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("Narrows scenario");
    schema["$defs"] = json!(defs);
    schema
}

fn of_table(table: &About) -> Json {
    let mut properties = Map::new();
    let mut required: Vec<&str> = Vec::new();
    if let Some((tag, word_of_tag)) = table.tag {
        let mut schema = word(word_of_tag);
        // The key `name` identifies a published network, so `kind` is optional.
        if word_of_tag == "named" {
            schema["description"] = json!("Optional if there is a `name`.");
        } else {
            required.push(tag);
        }
        properties.insert(tag.to_owned(), schema);
    }
    for key in table.all_keys() {
        let mut schema = (key.schema)();
        let own = table.meanings.iter().find(|(name, _)| *name == key.name);
        schema["description"] = json!(paragraphs(own.map_or(key.meaning, |(_, meaning)| meaning)));
        if let Some(default) = (key.default)() {
            schema["default"] = json!(default);
        }
        properties.insert(key.name.to_owned(), schema);
        if key.is_required {
            required.push(key.name);
        }
    }
    let mut schema = json!({
        "type": "object",
        "description": paragraphs(table.meaning),
        "properties": properties,
        "additionalProperties": table.is_open,
    });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// Returns a doc comment with each paragraph on one line.
fn paragraphs(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let paragraphs = lines.split(|line| line.is_empty()).filter(|lines| !lines.is_empty());
    paragraphs.map(|lines| lines.join(" ")).collect::<Vec<_>>().join("\n\n")
}

/// Returns the schemas of the parameters of congestion controllers, for tables with the name of an algorithm or preset.
fn congestion_parameters(settings: &Settings<'_>) -> Vec<Json> {
    let rows = settings.catalogue.entries().iter().map(|row| {
        let names: Vec<&str> = [row.name].into_iter().chain(row.presets.iter().map(|p| p.name)).collect();
        let known =
            row.parameters().map(|(name, parameter, default)| (name, of_parameter(parameter, &default)));
        let mut properties: Map<String, Json> = known.collect();
        properties.insert("name".to_owned(), json!(true));
        json!({
            "if": { "properties": { "name": { "enum": names } }, "required": ["name"] },
            "then": { "properties": properties, "additionalProperties": false },
        })
    });
    rows.collect()
}

/// Returns the schemas of the parameters of rate controllers.
fn rate_parameters(settings: &Settings<'_>) -> Vec<Json> {
    let kinds = settings.rate_defaults().into_iter().map(|(kind, parameters)| {
        let known = parameters.into_iter().map(|(name, p, default)| (name, of_parameter(p, &default)));
        let params = json!({ "properties": known.collect::<Map<_, _>>(), "additionalProperties": false });
        json!({
            "if": { "properties": { "kind": { "const": kind } }, "required": ["kind"] },
            "then": { "properties": { "params": params } },
        })
    });
    kinds.collect()
}

fn of_parameter(parameter: &Parameter, default: &BaseValue) -> Json {
    let shape: &Shape = &parameter.shape;
    let mut schema = match shape.takes {
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Word(words) => json!({ "enum": words }),
        Kind::Text(_) | Kind::Contents { .. } => json!({ "type": "string" }),
        Kind::Whole { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Number { min, max, .. } => {
            let number = json!({ "type": "number", "minimum": min, "maximum": max });
            json!({ "anyOf": [number, { "type": "string", "pattern": "^ *[0-9.]+ *%$" }] })
        }
        Kind::Time { .. } => time(),
        Kind::Rate { .. } => rate(),
    };
    if shape.optional {
        schema = json!({ "anyOf": [schema, { "const": NONE }] });
    }
    schema["default"] = match (shape.takes, default) {
        (Kind::Time { .. } | Kind::Rate { .. }, BaseValue::Number(_)) => json!(shape.text(default)),
        _ => json!(default),
    };
    let meaning = parameter.meaning.split_whitespace().collect::<Vec<_>>().join(" ");
    schema["description"] = json!(format!("{meaning} Takes {}.", shape.expected()));
    schema
}
