//! The catalogues of congestion controllers and rate controllers as JSON, for programs in other languages. They read
//! names, parameters, colours of figures and documentation from this JSON.

use narrows_control::catalogue::{Catalogue, Entry, Look, Preset, RateEntry, Service};
use narrows_control::parameter::{ModuleValues, Parameter, Takes, Value, Values};
use narrows_control::rate::registry;
use serde_json::{Value as Json, json};

/// Returns all congestion controllers as JSON, in the order in which figures show them.
pub fn congestion(catalogue: &Catalogue) -> String {
    Json::Array(catalogue.entries().iter().map(entry).collect()).to_string()
}

/// Returns all rate controllers as JSON.
pub fn rate(catalogue: &Catalogue) -> String {
    let built_in = registry::all().iter().map(rate_controller);
    Json::Array(built_in.chain(catalogue.rate_controllers().iter().map(added)).collect()).to_string()
}

fn rate_controller(entry: &registry::Entry) -> Json {
    let defaults = entry.defaults(&Values::new());
    json!({
        "name": entry.name,
        "summary": entry.summary,
        "on_switches": entry.on_switches(),
        "parameters": defaults.map(|(p, default)| parameter(p.name, p, &default)).collect::<Vec<_>>(),
        "literal": literal(entry),
    })
}

/// Returns the entry of a rate controller that another crate has added. Real switches cannot run this controller.
fn added(entry: &RateEntry) -> Json {
    json!({
        "name": entry.name,
        "summary": entry.summary,
        "on_switches": [],
        "parameters": entry.parameters().map(|(name, p, default)| parameter(&name, p, &default)).collect::<Vec<_>>(),
        "literal": {},
    })
}

/// Returns the defaults that parameters have in the mode `literal`, but only those that differ from the defaults
/// without a mode.
fn literal(entry: &registry::Entry) -> Values {
    if entry.parameter("mode").is_none() {
        return Values::new();
    }
    let given = [("mode".to_owned(), Value::Word("literal".into()))].into();
    let both = entry.defaults(&given).zip(entry.defaults(&Values::new()));
    both.filter(|((_, literal), (_, default))| literal != default)
        .map(|((parameter, literal), _)| (parameter.name.to_owned(), literal))
        .collect()
}

fn entry(entry: &Entry) -> Json {
    json!({
        "name": entry.name,
        "family": entry.family.name(),
        "summary": entry.summary,
        "marks_or_else": entry.needs.marks_or_else,
        "service": entry.needs.service.as_ref().map(service),
        "linux": entry.linux.map(|linux| json!({ "name": linux.name, "module": linux.module })),
        "look": entry.look.as_ref().map(look),
        "parameters": entry.parameters().map(|(name, p, default)| parameter(&name, p, &default)).collect::<Vec<_>>(),
        "presets": entry.presets.iter().map(preset).collect::<Vec<_>>(),
    })
}

fn service(service: &Service) -> Json {
    json!({
        "kind": service.kind,
        "mode": service.mode,
        "domain": service.domain,
        "feedback": service.feedback.name(),
    })
}

fn look(look: &Look) -> Json {
    json!({
        "label": look.label,
        "light": look.light,
        "dark": look.dark,
        "dash": look.dash,
        "marker": look.marker,
    })
}

fn preset(preset: &Preset) -> Json {
    json!({
        "name": preset.name,
        "summary": preset.summary,
        "params": preset.params(),
        "mode": preset.mode,
        "look": look(&preset.look),
    })
}

fn parameter(name: &str, parameter: &Parameter, default: &Value) -> Json {
    let shape = &parameter.shape;
    let (kind, min, max) = match shape.takes {
        Takes::Flag => ("flag", None, None),
        Takes::Word(_) => ("word", None, None),
        Takes::Text(_) => ("text", None, None),
        Takes::Contents { max, .. } => ("contents", None, Some(max as f64)),
        Takes::Whole { min, max } => ("whole", Some(min as f64), Some(max as f64)),
        Takes::Number { min, max, .. } => ("number", Some(min), Some(max)),
        Takes::Time { min, max } => ("time", Some(min.as_nanos() as f64), Some(max.as_nanos() as f64)),
        Takes::Rate { min, max } => ("rate", Some(min.as_f64()), Some(max.as_f64())),
    };
    let words: &[&str] = match shape.takes {
        Takes::Word(words) | Takes::Contents { words, .. } => words,
        _ => &[],
    };
    json!({
        "name": name,
        "kind": kind,
        "min": min,
        "max": max,
        "words": words,
        "optional": shape.optional,
        "unit": shape.unit,
        "default": default,
        "default_text": shape.text(default),
        "expected": shape.expected(),
        "meaning": parameter.meaning.split_whitespace().collect::<Vec<_>>().join(" "),
        "source": shape.source,
        "module": shape.module.map(|module| match module.values {
            ModuleValues::Scaled(factor) => json!({ "parameter": module.parameter, "factor": factor }),
            ModuleValues::Words(words) => json!({
                "parameter": module.parameter,
                "words": words.iter().copied().collect::<std::collections::BTreeMap<_, _>>(),
            }),
        }),
    })
}
