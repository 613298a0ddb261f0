//! Tests that the checked-in JSON schema equals the schema that is generated from the types.

#[test]
fn the_checked_in_schema_is_current() {
    // The schemas are not compared as text, because other crates of a build can enable a feature of serde_json that
    // changes the order of keys.
    let current = serde_json::to_value(narrows_plan::schema()).unwrap();
    let kept: serde_json::Value = serde_json::from_str(include_str!("../schema.json")).unwrap();
    assert!(kept == current, "crates/narrows-plan/schema.json is out of date; run tools/plan_types.py");
}
