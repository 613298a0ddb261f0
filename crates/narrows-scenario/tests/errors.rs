//! Errors have the same words as in the Python package. `errors.json` has scenarios, each with its error in Python.
//! `tests/python/test_scenario_rust.py` compares many more.

use narrows_scenario::Scenario;

#[test]
fn errors_are_those_of_python() {
    let cases: Vec<(String, String)> =
        serde_json::from_str(include_str!("errors.json")).expect("pairs of strings");
    assert!(cases.len() > 100);
    for (text, expected) in cases {
        let error = Scenario::parse(&text, "scenario", &[]).err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some(expected.as_str()), "{text}");
    }
}
