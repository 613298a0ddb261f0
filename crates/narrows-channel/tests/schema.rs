//! The checked-in JSON schema equals the schema that is generated from the types.

#[test]
fn the_checked_in_schema_is_current() {
    let current = serde_json::to_string_pretty(&narrows_channel::schema()).unwrap() + "\n";
    let kept = include_str!("../schema.json");
    assert!(kept == current, "crates/narrows-channel/schema.json is out of date; run tools/channel_types.py");
}
