//! Congestion controllers from outside the crate: a program adds a row to the catalogue and names it in a plan.
#![allow(missing_docs)]

mod common;

use std::sync::atomic::AtomicBool;

use common::*;
use narrows_control::catalogue::{Catalogue, Choice, Entry, Family, Group};
use narrows_control::congestion::{Ack, Congestion, Controller, Window};
use narrows_control::parameter::{Parameters, Value, time_from, whole};
use narrows_control::units::Span;
use narrows_sim::plan::{Plan, TransportPlan, check_with};

narrows_control::parameters! {
    /// Parameters of [`Fixed`].
    struct Params {
        /// Segments in flight.
        segments: u32 = 20, whole(1, 1000).unit("segments").from("this test");
        /// Time of the first decision.
        wait: Span = Span::ZERO, time_from(Span::ZERO, Span::from_secs(10)).from("this test");
    }
}

/// Keeps a number of segments in flight.
struct Fixed(Params);

impl Controller for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) {
        window.cwnd = if ack.now.as_nanos() < self.0.wait.as_nanos() { 1 } else { self.0.segments };
    }

    fn on_congestion(&mut self, _event: &Congestion, window: &mut Window) {
        window.ssthresh = self.0.segments;
    }
}

const FIXED: Entry = Entry {
    parameters: &[Group::of::<Params>("")],
    ..Entry::new("fixed", Family::Loss, "a constant window", |values| {
        Box::new(Fixed(Params::default().with("", values)))
    })
};

fn catalogue() -> Catalogue {
    let mut catalogue = Catalogue::built_in().clone();
    catalogue.add(FIXED).expect("a free name");
    catalogue
}

fn plan(cc: Choice) -> Plan {
    let mut plan = path(mbit(50), ms(20), fifo(packets(100)), 5);
    plan.flows = vec![bulk("a")];
    if let TransportPlan::Tcp { cc: choice, ecn, .. } = &mut plan.flows[0].transport {
        (*choice, *ecn) = (cc, false);
    }
    // The plan as a file would hold it.
    serde_json::from_str(&serde_json::to_string(&plan).expect("JSON")).expect("a plan")
}

/// Name in results and goodput in Mbit/s.
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
    let (name, half) = run_fixed(Choice::from("fixed").with("segments", Value::Number(10.0)));
    assert_eq!(name, "fixed(segments=10)");
    assert!((default / half - 2.0).abs() < 0.1, "{default:.2} and {half:.2} Mbit/s");
    let (name, late) = run_fixed(Choice::from("fixed").with("wait", Value::Number(2.5e9)));
    assert_eq!(name, "fixed(wait=2500ms)");
    assert!(late < 0.75 * default, "{late:.2} of {default:.2} Mbit/s");
}

#[test]
fn errors_about_its_parameters_name_the_flow_and_the_range() {
    let refused = |cc: Choice| check_with(&plan(cc), &catalogue()).expect_err("an invalid plan").to_string();
    let wide = refused(Choice::from("fixed").with("segments", Value::Number(0.0)));
    assert!(wide.ends_with(".cc.segments: found 0, expected a whole number from 1 to 1000"), "{wide}");
    let unknown = refused(Choice::from("fixed").with("size", Value::Number(1.0)));
    assert!(
        unknown.ends_with(".cc: found \"size\", expected a parameter of fixed: segments, wait"),
        "{unknown}"
    );
    let built_in =
        check_with(&plan("fixed".into()), Catalogue::built_in()).expect_err("an unknown name").to_string();
    assert!(
        built_in.ends_with(".cc: found \"fixed\", expected the name of a congestion controller"),
        "{built_in}"
    );
}
