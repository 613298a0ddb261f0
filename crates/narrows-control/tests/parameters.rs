//! Errors of rate controllers' parameters.

use narrows_control::rate::FlowKey;
use narrows_control::rate::registry::build;
use narrows_control::units::Bytes;
use serde_json::json;

fn refused(name: &str, params: serde_json::Value) -> String {
    build::<FlowKey, _>(name, params, 1, Bytes::new(1500)).err().expect("an error").to_string()
}

#[test]
fn an_error_of_a_type_names_the_parameter_the_value_and_the_type() {
    for (params, expected) in [
        (json!({ "udp_ceiling": "95" }), "udp_ceiling is \"95\", but must be a number"),
        (json!({ "eta": 0.9, "b_head": true }), "b_head is true, but must be a number"),
        (json!({ "eta": [1] }), "eta is a list, but must be a number"),
        (json!({ "eta": { "a": 1 } }), "eta is a table, but must be a number"),
        (json!({ "eta": null }), "eta is empty, but must be a number"),
        (json!({ "max_flows": 1.5 }), "max_flows is 1.5, but must be a whole number"),
        (json!({ "max_flows": -1 }), "max_flows is -1, but must be a whole number"),
        (json!({ "believe_senders": 1 }), "believe_senders is 1, but must be true or false"),
        (json!({ "poll": "a, expected `b`" }), "poll is \"a, expected `b`\", but must be a whole number"),
        (json!({ "mode": "x" }), "mode is \"x\", but must be \"literal\" or \"resolved\""),
        (json!({ "mode": 3 }), "mode is 3, but must be a string"),
        (json!({ "share": 24 }), "share is 24, but must be a string"),
    ] {
        assert_eq!(refused("brf", params), expected);
    }
    for name in ["rcp", "xcp", "bdr", "obp", "pacec"] {
        let text = refused(name, json!({ "max_flows": "many" }));
        let unknown = text.starts_with("unknown field `max_flows`");
        assert!(unknown || text == "max_flows is \"many\", but must be a whole number", "{name}: {text}");
    }
}

#[test]
fn text_is_read_with_the_same_errors() {
    let mut json = serde_json::Deserializer::from_str("{ \"eta\":\n \"high\" }");
    let error = build::<FlowKey, _>("brf", &mut json, 1, Bytes::new(1500)).err().expect("an error");
    assert_eq!(error.to_string(), "eta is \"high\", but must be a number");
}
