use core::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::rate::{FlowKey, Proto};

fn features(service: u16) -> Features {
    let host = |last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
    let key = FlowKey { saddr: host(1), daddr: host(2), sport: service, dport: 50_000, proto: Proto::Tcp };
    Features::of(&key, 3_600)
}

/// Returns a model that predicts 1 Mbit/s for ports up to 100, and no limit for other ports.
fn two_services() -> Value {
    let [slow, fast] = [1e6, 1e9].map(libm::log);
    json!({
        "format": "narrows-bandwidth-model",
        "version": 1,
        "base": 1.0,
        "unlimited_bps": 50e6,
        "trees": [[["service", 100.5, 1, 2], slow - 1.0, fast - 1.0], [0.0]],
    })
}

#[test]
fn the_values_of_all_trees_are_added() {
    let model = Model::read(&two_services().to_string()).unwrap();
    let slow = model.predict(&features(100)).unwrap().as_f64() * 8.0;
    assert!((slow - 1e6).abs() < 10.0, "{slow}");
    assert_eq!(model.predict(&features(101)), None, "at least unlimited_bps");
}

#[test]
fn errors_state_key_found_and_expected() {
    let said = |change: &dyn Fn(&mut Value)| {
        let mut model = two_services();
        change(&mut model);
        Model::read(&model.to_string()).map(drop).unwrap_err().to_string()
    };
    assert_eq!(said(&|m| m["version"] = json!(2)), "predictor: found 2 at version of the model, expected 1");
    assert_eq!(
        said(&|m| m["trees"][0][0][0] = json!("sprt")),
        "predictor: found \"sprt\" at trees.0.0.0 of the model, expected a feature: source_high, source_low, \
         destination_high, destination_low, ip_version, service, protocol, second_of_day"
    );
    for (place, child) in [(2, 0), (3, 3)] {
        let expected = format!(
            "predictor: found {child} at trees.0.0.{place} of the model, expected the number of a later node, below 3"
        );
        assert_eq!(said(&|m| m["trees"][0][0][place] = json!(child)), expected);
    }
    assert_eq!(
        said(&|m| m["trees"][1][0] = json!(65)),
        "predictor: found 65 at trees.1.0 of the model, expected a number from -64 to 64"
    );
    let many = said(&|m| m["trees"] = json!(vec![vec![0.0]; TREES_MAX + 1]));
    assert_eq!(
        many,
        "predictor: found a list of 129 at trees of the model, expected a list of at most 128 trees"
    );
    let deep = |m: &mut Value| {
        let nodes = (0..=DEPTH_MAX)
            .flat_map(|level| [json!(["service", 1, 2 * level + 1, 2 * level + 2]), json!(0.0)]);
        m["trees"] = json!([nodes.chain([json!(0.0)]).collect::<Vec<_>>()]);
    };
    assert_eq!(
        said(&deep),
        "predictor: found a list of 4 at trees.0.16 of the model, expected a leaf, because a tree has at most 8 levels"
    );
    let said = |text: &str| Model::read(text).map(drop).unwrap_err().to_string();
    assert!(said("on").starts_with("predictor: found no JSON in line 1"));
    assert!(said(&" ".repeat(LENGTH_MAX + 1)).ends_with("expected at most 262144 bytes"));
}

/// Generates JSON that resembles a model but has wrong values in arbitrary places.
fn almost_a_model() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        (0u32..9).prop_map(|n| json!(n)),
        (-70.0..70.0).prop_map(|n: f64| json!(n)),
        Just(json!(-1e300)),
        Just(json!(null)),
    ];
    let name = prop_oneof![Just("service"), Just("second_of_day"), Just("nothing")];
    let split = (name, number.clone(), number.clone(), number.clone());
    let split = split.prop_map(|(name, threshold, low, high)| json!([name, threshold, low, high]));
    let node = prop_oneof![number.clone(), split];
    let trees = prop::collection::vec(prop::collection::vec(node, 0..9), 0..4);
    (number.clone(), number, trees).prop_map(|(base, unlimited, trees)| {
        let (format, version) = ("narrows-bandwidth-model", 1);
        json!({ "format": format, "version": version, "base": base, "unlimited_bps": unlimited, "trees": trees })
    })
}

proptest! {
    #[test]
    fn a_model_that_was_read_predicts_a_valid_rate(model in almost_a_model(), service in 0u16..20) {
        if let Ok(model) = Model::read(&model.to_string())
            && let Some(rate) = model.predict(&features(service))
        {
            prop_assert!((1..=125_000_000_000_100u64).contains(&rate.as_bytes_per_sec()));
        }
    }

    #[test]
    fn no_text_causes_a_panic(text in ".{0,200}", at in 0usize..300, byte in 0u8..128) {
        let _ = Model::read(&text);
        let mut changed = two_services().to_string().into_bytes();
        let at = at % changed.len();
        changed[at] = byte;
        if let Ok(changed) = String::from_utf8(changed) {
            let _ = Model::read(&changed).map(|model| model.predict(&features(1)));
        }
    }
}

/// `tests/python/test_bandwidth_model.py` writes the vectors with scikit-learn.
#[test]
fn a_prediction_is_that_of_the_library() {
    let vectors = include_str!("../../../../../../tests/vectors/bandwidth-model.json");
    let vectors: Value = serde_json::from_str(vectors).unwrap();
    let model = Model::read(&vectors["model"].to_string()).unwrap();
    let cases = vectors["cases"].as_array().unwrap();
    for case in cases {
        let features: [u32; 8] = serde_json::from_value(case["features"].clone()).unwrap();
        let (found, expected) = (model.predict(&features.into()).unwrap(), case["bps"].as_f64().unwrap());
        assert!((found.as_f64() * 8.0 - expected).abs() < 8.0, "{case} {found:?}");
    }
    assert!(cases.len() > 10);
}
