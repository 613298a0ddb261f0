//! Tests of a congestion controller and its parameters in JSON, as in plans.
#![allow(missing_docs)]

use narrows_control::catalogue::{Catalogue, Choice};
use narrows_control::parameter::Value;

#[test]
fn a_name_alone_stays_a_string() {
    assert_eq!(serde_json::to_string(&Choice::from("cubic")).expect("JSON"), "\"cubic\"");
    assert_eq!(serde_json::from_str::<Choice>("\"cubic\"").expect("a choice"), Choice::from("cubic"));
}

#[test]
fn parameters_are_beside_the_name_and_survive_a_round_trip() {
    let choice = Choice::from("cubic")
        .with("beta", Value::Number(0.5))
        .with("fast_convergence", Value::Flag(false))
        .with("slow_start", Value::Word("plain".into()));
    let text = serde_json::to_string(&choice).expect("JSON");
    assert_eq!(text, r#"{"name":"cubic","beta":0.5,"fast_convergence":false,"slow_start":"plain"}"#);
    assert_eq!(serde_json::from_str::<Choice>(&text).expect("a choice"), choice);
    let written = r#"{"name": "vegas", "alpha": 3}"#;
    let read: Choice = serde_json::from_str(written).expect("a choice");
    assert_eq!(Catalogue::built_in().check(&read), Ok(()));
    assert_eq!(Catalogue::built_in().label(&read), "vegas(alpha=3)");
}

#[test]
fn other_values_are_refused() {
    for text in
        ["7", r#"{"beta": 0.5}"#, r#"{"name": "cubic", "beta": [0.5]}"#, r#"{"name": "cubic", "beta": null}"#]
    {
        assert!(serde_json::from_str::<Choice>(text).is_err(), "{text}");
    }
}
