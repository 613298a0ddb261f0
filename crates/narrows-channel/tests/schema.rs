//! Tests that the checked-in JSON schema equals the schema that is generated from the types.

#[test]
fn the_checked_in_schema_is_current() {
    // Compares values, not text. Another crate in the build can enable the feature of serde_json that changes the order
    // of keys.
    let current = serde_json::to_value(narrows_channel::schema()).unwrap();
    let kept: serde_json::Value = serde_json::from_str(include_str!("../schema.json")).unwrap();
    assert!(kept == current, "crates/narrows-channel/schema.json is out of date; run tools/channel_types.py");
}
