//! Reads a rate controller's parameters. An error of a wrong type or word names the parameter, in the form of
//! all other errors of parameters: `eta is "high", but must be a number`.

use serde::de::{Deserialize, Deserializer, Error};

/// The parameters from any serde format.
pub(in crate::rate) fn read<'de, D: Deserializer<'de>, P: Deserialize<'de>>(
    params: D,
) -> Result<P, D::Error> {
    serde_path_to_error::deserialize(params).map_err(|error| {
        let key = error.path().to_string();
        match trouble(&error.inner().to_string()) {
            Some(trouble) => D::Error::custom(format_args!("{key} {trouble}")),
            None => error.into_inner(),
        }
    })
}

/// The sentence about a wrong type, value or word, without its subject. `None` for other errors, which name the
/// parameter themselves.
fn trouble(message: &str) -> Option<String> {
    // toml's errors have more lines.
    let line = message.lines().next()?;
    if let Some(rest) = line.strip_prefix("unknown variant `") {
        let (word, known) = rest.split_once("`, expected ")?;
        return Some(format!("is {word:?}, but must be {}", known.replace('`', "\"")));
    }
    let (_, rest) = line.split_once("invalid type: ").or_else(|| line.split_once("invalid value: "))?;
    let (found, expected) = rest.rsplit_once(", expected ")?;
    // serde_json's errors about text end with a place.
    let expected = expected.split(" at line ").next()?;
    Some(format!("is {}, but must be {}", value(found), kind(expected)))
}

/// A value in serde's words, such as ``integer `5` `` and `string "a"`, without the type of a plain value.
fn value(found: &str) -> &str {
    match found {
        "sequence" => "a list",
        "map" => "a table",
        "null" | "unit value" => "empty",
        _ => match found.split_once('`') {
            Some((_, plain)) if !found.starts_with("string") => plain.trim_end_matches('`'),
            _ => found.strip_prefix("string ").unwrap_or(found),
        },
    }
}

/// serde's word for a type in the words of a user.
fn kind(expected: &str) -> &str {
    match expected {
        "f64" => "a number",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number",
        "a boolean" => "true or false",
        "string or map" | "variant identifier" => "a string",
        _ => expected,
    }
}
