//! Tests that errors keep their words. The errors come from the Python package of version 0.3.0, which had an
//! implementation of its own. `errors.json` has scenarios in TOML, each with its error. `changed.json` has the tables
//! of scenarios after random changes, each with its error.

use narrows_scenario::{Disk, Error, Memory, Scenario, Settings, Table, Value, expand, resolve};

#[test]
fn errors_in_toml_keep_their_words() {
    let cases: Vec<(String, String)> =
        serde_json::from_str(include_str!("errors.json")).expect("pairs of strings");
    assert!(cases.len() > 100);
    for (text, expected) in cases {
        let error = Scenario::parse(&text, "scenario", &[]).err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some(expected.as_str()), "{text}");
    }
}

/// Returns the first error of a scenario, of its sweep, or of the plans of its first runs.
fn first_error(data: Table) -> Result<(), Error> {
    let scenario = Scenario::from_table(data, "")?.with_source("x.toml");
    for run in expand(&scenario, Some(1))?.iter().take(3) {
        resolve(&run.scenario(), &Settings::simulator(&Disk::default()))?;
    }
    Ok(())
}

#[test]
fn errors_in_tables_keep_their_words() {
    let cases: Vec<(Table, String)> =
        serde_json::from_str(include_str!("changed.json")).expect("pairs of tables and strings");
    assert!(cases.len() > 100);
    for (data, expected) in cases {
        let written = serde_json::to_string(&data).expect("JSON");
        let error = first_error(data).err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some(expected.as_str()), "{written}");
    }
}

/// Resolves a scenario with this network of two islands and a node without a name.
fn with_two_islands(text: &str) -> Result<narrows_plan::Plan, String> {
    let network = r#"{
        "nodes": [{"id": 0, "name": "a"}, {"id": 1, "name": "a"}, {"id": 2, "name": "c d"}, {"id": 3, "name": null}],
        "edges": [{"source": 0, "target": 1, "dist": 10}, {"source": 2, "target": 3}, {"source": 2, "target": 2}]
    }"#;
    let files = Memory::default().with_network("two/islands", network);
    let scenario = Scenario::parse(text, "scenario", &[]).map_err(|error| error.to_string())?;
    resolve(&scenario, &Settings::simulator(&files)).map_err(|error| error.to_string())
}

#[test]
fn a_network_of_two_islands_needs_links_between_them() {
    let apart = "[topology]\nname = 'two/islands'\nrate = '1mbit'\n[[flows]]\nfrom = 'a-0'\nto = 'a-1'\n";
    let expected = "scenario: topology.name: found 2 islands in 'two/islands' (a-0, a-1, a-0.host, ...; c_d, n3), \
                    expected one; [[links]] may join them";
    assert_eq!(with_two_islands(apart).err().as_deref(), Some(expected));
    let joined = format!("{apart}[[links]]\nbetween = ['a-1', 'n3']\nrate = '1mbit'\n");
    let plan = with_two_islands(&joined).expect("a plan");
    assert_eq!(plan.nodes, ["a-0", "a-1", "c_d", "n3", "a-0.host", "a-1.host"]);
    let unknown = with_two_islands(&apart.replace("two/islands", "two/island"));
    let expected =
        "scenario: topology.name: found 'two/island', expected a network; nearest is 'two/islands'";
    assert_eq!(unknown.err().as_deref(), Some(expected));
}

#[test]
fn overrides_of_a_command_line_are_toml_or_text() {
    let read = |text| narrows_scenario::parse_override(text).map_err(|error| error.to_string());
    assert_eq!(read("seed=7"), Ok(("seed".to_owned(), Value::Int(7))));
    assert_eq!(read(" a.b = x = y "), Ok(("a.b".to_owned(), Value::from("x = y"))));
    assert_eq!(read("=1"), Err("--set: found '=1', expected key=value".to_owned()));
}
