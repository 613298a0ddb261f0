//! Tests congestion controllers that another crate defines. A program adds such a controller to the catalogue, and uses
//! its name in a plan.

use std::sync::atomic::AtomicBool;

use crate::common::*;
use narrows_control::catalogue::{Catalogue, Choice};
use narrows_control::parameter::Value;
use narrows_sim::plan::{Plan, TransportPlan, check_with};

/// An example program. Its constant `FIXED` is the entry that these tests add to the catalogue.
#[allow(dead_code)]
#[path = "../../examples/own_controller.rs"]
mod own_controller;

fn catalogue() -> Catalogue {
    let mut catalogue = Catalogue::built_in().clone();
    catalogue.add(own_controller::FIXED).expect("a free name");
    catalogue
}

fn plan(cc: Choice) -> Plan {
    let mut plan = path(mbit(50), ms(20), fifo(packets(100)), 5);
    plan.flows = vec![bulk("a")];
    if let TransportPlan::Tcp { cc: choice, ecn, .. } = &mut plan.flows[0].transport {
        (*choice, *ecn) = (cc, false);
    }
    // Convert the plan to JSON and back, as if it were stored in a file.
    serde_json::from_str(&serde_json::to_string(&plan).expect("JSON")).expect("a plan")
}

/// Runs the plan. Returns the name of the controller in the results, and the goodput in Mbit/s.
fn run_fixed(cc: Choice) -> (String, f64) {
    let results =
        narrows_sim::run_with(&plan(cc), &AtomicBool::new(false), &catalogue()).expect("a valid plan");
    let flows = results.table("flows").expect("each run has a table of flows");
    (flows.str("cc").expect("a name")[0].clone(), flows.f64("goodput_bps").expect("floats")[0] / 1e6)
}

#[test]
fn a_plan_names_a_row_from_outside_and_its_parameters() {
    let (name, default) = run_fixed("fixed".into());
    assert_eq!(name, "fixed");
    let (name, half) = run_fixed(Choice::from("fixed").with("segments", Value::Number(20.0)));
    assert_eq!(name, "fixed(segments=20)");
    assert!((default / half - 2.0).abs() < 0.1, "{default:.2} and {half:.2} Mbit/s");
}

#[test]
fn errors_about_its_parameters_name_the_flow_and_the_range() {
    let refused = |cc: Choice| check_with(&plan(cc), &catalogue()).expect_err("an invalid plan").to_string();
    let wide = refused(Choice::from("fixed").with("segments", Value::Number(0.0)));
    assert!(wide.ends_with(".cc.segments: found 0, expected a whole number from 1 to 1000000"), "{wide}");
    let unknown = refused(Choice::from("fixed").with("size", Value::Number(1.0)));
    assert!(unknown.ends_with(".cc: found \"size\", expected a parameter of fixed: segments"), "{unknown}");
    let built_in =
        check_with(&plan("fixed".into()), Catalogue::built_in()).expect_err("an unknown name").to_string();
    assert!(
        built_in.ends_with(".cc: found \"fixed\", expected the name of a congestion controller"),
        "{built_in}"
    );
}
