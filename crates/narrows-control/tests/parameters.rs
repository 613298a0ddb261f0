//! Tests of the errors for parameters of rate controllers.

use narrows_control::parameter::Values;
use narrows_control::rate::FlowKey;
use narrows_control::rate::registry::{all, build};
use narrows_control::units::Bytes;
use serde_json::json;

fn refused(name: &str, params: &serde_json::Value) -> String {
    let params: Values = serde_json::from_value(params.clone()).expect("flags, numbers and words");
    build::<FlowKey>(name, &params, 1, Bytes::new(1500)).err().expect("an error").to_string()
}

#[test]
fn an_error_names_the_parameter_the_value_and_what_was_expected() {
    for (params, expected) in [
        (json!({ "udp_ceiling": "95" }), "udp_ceiling: found \"95\", expected a number from 0 to 1"),
        (json!({ "eta": 0.9, "b_head": true }), "b_head: found true, expected a number from 1 to 10"),
        (json!({ "max_flows": 1.5 }), "max_flows: found 1.5, expected a whole number from 1 to 2147483647"),
        (json!({ "max_flows": -1 }), "max_flows: found -1, expected a whole number from 1 to 2147483647"),
        (json!({ "believe_senders": 1 }), "believe_senders: found 1, expected true or false"),
        (
            json!({ "poll": "a, expected `b`" }),
            "poll: found \"a, expected `b`\", expected a time from 10us to 1000000s",
        ),
        (json!({ "poll": 1000 }), "poll: found 1us, expected a time from 10us to 1000000s"),
        (json!({ "mode": "x" }), "mode: found \"x\", expected resolved or literal"),
        (json!({ "mode": 3 }), "mode: found 3, expected resolved or literal"),
    ] {
        assert_eq!(refused("brf", &params), expected);
    }
    for share in [json!(24), json!("address"), json!("prefix/24"), json!("sender-prefix/33")] {
        let said = refused("brf", &json!({ "share": share }));
        assert!(
            said.starts_with(&format!("share: found {share}, expected flow, sender-address, ")),
            "{said}"
        );
    }
    for entry in all() {
        let said = refused(entry.name, &json!({ "max_flows": "many" }));
        let unknown =
            said.starts_with(&format!("found \"max_flows\", expected a parameter of {}: ", entry.name));
        assert!(
            unknown || said.starts_with("max_flows: found \"many\", expected a whole number from 1 to "),
            "{said}"
        );
    }
}
