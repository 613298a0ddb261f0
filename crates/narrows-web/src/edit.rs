//! Changes of single keys in the text of a scenario. The rest of the text stays as its author wrote it.

use toml_edit::{ArrayOfTables, DocumentMut, InlineTable, Item, Table, Value};

type Result<T> = std::result::Result<T, String>;

/// Sets a dotted key to a value that is written as in TOML, or removes the key if `value` is empty.
pub(crate) fn set(toml: &str, key: &str, value: &str) -> Result<String> {
    let mut document = parse(toml)?;
    let parts: Vec<&str> = key.split('.').collect();
    let Some((last, above)) = parts.split_last() else { return Err(no_place(key)) };
    let value = match value.trim() {
        "" => None,
        text => Some(
            text.parse::<Value>().map_err(|_| format!("{key}: found {text}, expected a value in TOML"))?,
        ),
    };
    let mut place = document.as_item_mut();
    for part in above {
        place = match step(place, part, value.is_some()) {
            Some(next) => next,
            None if value.is_none() => return Ok(toml.to_owned()), // nothing to remove
            None => return Err(no_place(key)),
        };
        if *part == "cc" && value.is_some() {
            name_as_table(place);
        }
    }
    match (place.as_table_like_mut(), value) {
        (Some(table), Some(mut value)) => {
            if let Some(old) = table.get_mut(last).and_then(Item::as_value_mut) {
                *value.decor_mut() = old.decor().clone(); // keeps the comment behind the value
                *old = value;
            } else {
                table.insert(last, Item::Value(value));
            }
        }
        (Some(table), None) => {
            table.remove(last);
        }
        (None, _) => return Err(no_place(key)),
    }
    Ok(document.to_string())
}

/// Appends a table to a list of tables.
pub(crate) fn add(toml: &str, list: &str, body: &str) -> Result<String> {
    let mut document = parse(toml)?;
    let added = parse(body)?;
    let item = document.entry(list).or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
    if let Some(tables) = item.as_array_of_tables_mut() {
        let mut table = added.as_table().clone();
        if !tables.is_empty() || !toml.trim().is_empty() {
            table.decor_mut().set_prefix("\n");
        }
        table.set_position(None);
        tables.push(table);
    } else if let Some(array) = item.as_array_mut() {
        array.push(added.as_table().clone().into_inline_table());
    } else {
        return Err(format!("{list}: found no list of tables, expected one"));
    }
    Ok(document.to_string())
}

/// Removes a table from a list of tables.
pub(crate) fn remove(toml: &str, list: &str, index: usize) -> Result<String> {
    let mut document = parse(toml)?;
    match document.get_mut(list) {
        Some(Item::ArrayOfTables(tables)) if index < tables.len() => {
            tables.remove(index);
        }
        Some(Item::Value(Value::Array(array))) if index < array.len() => {
            array.remove(index);
        }
        _ => return Err(format!("{list}: found no entry {index}, expected one")),
    }
    Ok(document.to_string())
}

fn parse(toml: &str) -> Result<DocumentMut> {
    let first_line = |text: String| text.lines().next().unwrap_or_default().to_owned();
    toml.parse().map_err(|error: toml_edit::TomlError| {
        format!("{}: found no valid TOML: {}", crate::SOURCE, first_line(error.message().to_owned()))
    })
}

fn no_place(key: &str) -> String {
    format!("{key}: found no place for this key, expected a table")
}

/// Goes from a table to the value of a key, or from a list to an entry. With `make`, a missing table is made.
fn step<'d>(place: &'d mut Item, part: &str, make: bool) -> Option<&'d mut Item> {
    if let Some(index) = part.parse::<usize>().ok().filter(|_| !place.is_table_like()) {
        return match place {
            // An entry of a list of tables is not an `Item`, so `get_mut` of the list finds it by its index.
            Item::ArrayOfTables(_) | Item::Value(Value::Array(_)) => place.get_mut(index),
            _ => None,
        };
    }
    let table = place.as_table_like_mut()?;
    if !table.contains_key(part) {
        if !make {
            return None;
        }
        table.insert(part, Item::Table(Table::new()));
    }
    table.get_mut(part)
}

/// Replaces the name of a controller with a table that has this name, so that parameters have a place.
fn name_as_table(place: &mut Item) {
    if let Some(name) = place.as_str().map(str::to_owned) {
        let mut table = InlineTable::new();
        table.insert("name", name.into());
        *place = Item::Value(Value::InlineTable(table));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"# A link.
duration = "30s" # half a minute

[topology]
kind = "dumbbell"
rate = "50mbit"

[[flows]]
cc = "cubic"

[[flows]]
cc = { name = "bbr", cwnd_gain = 2.0 }
"#;

    #[test]
    fn a_key_changes_and_the_rest_stays() {
        let text = set(TEXT, "topology.rate", "\"20mbit\"").unwrap();
        assert_eq!(text, TEXT.replace("50mbit", "20mbit"));
        let text = set(TEXT, "duration", "\"5s\"").unwrap();
        assert_eq!(text, TEXT.replace("30s", "5s"));
        let text = set(TEXT, "flows.1.cc", "\"reno\"").unwrap();
        assert_eq!(text, TEXT.replace("{ name = \"bbr\", cwnd_gain = 2.0 }", "\"reno\""));
    }

    #[test]
    fn a_new_key_gets_a_place_and_an_empty_value_removes_it() {
        let text = set(TEXT, "topology.rtt", "\"30ms\"").unwrap();
        assert_eq!(text, TEXT.replace("rate = \"50mbit\"\n", "rate = \"50mbit\"\nrtt = \"30ms\"\n"));
        assert_eq!(set(&text, "topology.rtt", "").unwrap(), TEXT);
        assert_eq!(set(TEXT, "probes.interval", "").unwrap(), TEXT);
        let text = set(TEXT, "probes.traces", "true").unwrap();
        assert!(text.ends_with("\n[probes]\ntraces = true\n"), "{text}");
    }

    #[test]
    fn a_parameter_of_a_controller_that_has_only_a_name() {
        let text = set(TEXT, "flows.0.cc.beta", "0.5").unwrap();
        assert_eq!(text, TEXT.replace("cc = \"cubic\"", "cc = { name = \"cubic\", beta = 0.5 }"));
    }

    #[test]
    fn entries_of_lists() {
        let text = add(TEXT, "flows", "cc = \"reno\"").unwrap();
        assert_eq!(text, format!("{TEXT}\n[[flows]]\ncc = \"reno\"\n"));
        assert_eq!(remove(&text, "flows", 2).unwrap(), TEXT);
        assert_eq!(add("", "flows", "cc = \"reno\"").unwrap(), "[[flows]]\ncc = \"reno\"\n");
        assert_eq!(remove(TEXT, "flows", 2), Err("flows: found no entry 2, expected one".to_owned()));
        assert_eq!(
            add(TEXT, "topology", ""),
            Err("topology: found no list of tables, expected one".to_owned())
        );
    }

    #[test]
    fn wrong_texts_and_keys_are_one_line() {
        let problem = |result: Result<String>| result.unwrap_err();
        assert_eq!(problem(set("a = [", "a", "1")).lines().count(), 1);
        assert_eq!(problem(set(TEXT, "duration", "5 s")), "duration: found 5 s, expected a value in TOML");
        let place = "found no place for this key, expected a table";
        assert_eq!(problem(set(TEXT, "duration.x", "1")).split_once(": ").unwrap().1, place);
        assert_eq!(problem(set(TEXT, "flows.7.cc", "\"reno\"")).split_once(": ").unwrap().1, place);
    }
}
