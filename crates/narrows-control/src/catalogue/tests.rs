use proptest::prelude::*;

use super::*;
use crate::congestion::harness::{ack_at, connection, initial_window, window};
use crate::congestion::{Ack, Congestion, Controller, Signal, Window};
use crate::parameter::testing::{positions, random_values};
use crate::parameter::{Parameters, Value, Values, rate_from, whole};
use crate::units::{Rate, Span, Time};

/// Returns each name that a scenario can use, with its row in the catalogue.
fn names() -> Vec<(&'static str, &'static Entry)> {
    let rows = Catalogue::built_in().entries().iter();
    rows.flat_map(|e| std::iter::once((e.name, e)).chain(e.presets.iter().map(move |p| (p.name, e))))
        .collect()
}

fn choice(name: &str, params: &[(&str, Value)]) -> Choice {
    let params = params.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    Choice { name: name.to_owned(), params }
}

fn refused(name: &str, params: &[(&str, Value)]) -> String {
    Catalogue::built_in().check(&choice(name, params)).expect_err("a problem").to_string()
}

#[test]
fn every_row_passes_the_checks_for_rows_from_outside() {
    let mut catalogue = Catalogue { entries: Vec::new(), rate_controllers: Vec::new() };
    for entry in Catalogue::built_in().entries() {
        catalogue.add(*entry).unwrap_or_else(|problem| panic!("{}: {problem}", entry.name));
    }
    assert_eq!(catalogue.entries().len(), Catalogue::built_in().entries().len());
}

#[test]
fn every_parameter_has_a_meaning_and_a_source() {
    for entry in Catalogue::built_in().entries() {
        for (name, parameter, _) in entry.parameters() {
            assert!(
                parameter.meaning.trim().ends_with('.'),
                "{}.{name}: {:?}",
                entry.name,
                parameter.meaning
            );
            assert!(!parameter.shape.source.is_empty(), "{}.{name}", entry.name);
            assert_eq!(
                entry.parameter(&name).map(|p| p.meaning),
                Some(parameter.meaning),
                "{}.{name}",
                entry.name
            );
        }
    }
}

#[test]
fn every_row_has_a_look_of_its_own() {
    let looks = names().into_iter().map(|(name, entry)| {
        let preset = entry.presets.iter().find(|preset| preset.name == name);
        preset.map_or(entry.look, |preset| Some(preset.look)).unwrap_or_else(|| panic!("{name} has no look"))
    });
    let mut colours: Vec<&str> = looks.map(|look| look.light).collect();
    let count = colours.len();
    colours.sort_unstable();
    colours.dedup();
    assert_eq!(colours.len(), count);
}

/// Returns the window and threshold after a fixed sequence of ACKs, losses, marks and timeouts.
fn behaviour(mut controller: Box<dyn Controller>) -> Vec<Window> {
    let mut w = initial_window();
    controller.on_established(&connection(Some(Span::from_millis(20)), None), &mut w);
    let mut delivered = 0;
    (0..4000u64)
        .map(|n| {
            let now = Time::ZERO + Span::from_millis(n);
            delivered += 2;
            let rtt = Span::from_millis(20 + n % 97);
            let mut ack = Ack {
                acked: 2,
                delivered,
                snd_una: delivered,
                snd_nxt: delivered + 40,
                prior_in_flight: 40,
                in_flight: 38,
                rtt: Some(rtt),
                srtt: rtt,
                min_rtt: Span::from_millis(20),
                ..ack_at(now)
            };
            ack.rate.delivered = 2;
            ack.rate.interval = Span::from_millis(2);
            ack.rate.prior_delivered = delivered.saturating_sub(40);
            ack.ece = n % 5 == 0;
            controller.on_sample(&ack);
            controller.on_ack(&ack, &mut w);
            if n % 701 == 700 {
                let signal = [Signal::Loss, Signal::Ecn, Signal::Timeout][(n / 701 % 3) as usize];
                let event = Congestion { now, in_flight: 40, srtt: rtt, ..Congestion::new(signal, now) };
                controller.on_congestion(&event, &mut w);
                w.cwnd = w.ssthresh.min(w.cwnd).max(1);
                controller.on_recovered(now, &mut w);
            }
            w.clone()
        })
        .collect()
}

/// If a scenario states the default of a parameter, the behaviour is the same as without a value. This holds although
/// the algorithm stores the value as a fixed-point number.
#[test]
fn defaults_that_are_given_behave_as_defaults_that_are_left_out() {
    for entry in Catalogue::built_in().entries() {
        let plain = behaviour((entry.build)(&Values::new()));
        for (name, _, default) in entry.parameters() {
            let given = behaviour((entry.build)(&[(name.clone(), default.clone())].into()));
            assert!(given == plain, "{}.{name} = {default:?} differs from its default", entry.name);
        }
        let all: Values = entry.parameters().map(|(name, _, default)| (name, default)).collect();
        assert!(behaviour((entry.build)(&all)) == plain, "{}: all defaults", entry.name);
    }
}

#[test]
fn defaults_are_written_with_few_digits() {
    let defaults = |name: &str| -> Vec<(String, Value)> {
        let (entry, _) = Catalogue::built_in().find(name).expect("a row");
        entry.parameters().map(|(name, _, value)| (name, value)).collect()
    };
    let find =
        |of: &str, name: &str| defaults(of).into_iter().find(|(n, _)| n == name).map(|(_, value)| value);
    assert_eq!(find("cubic", "beta"), Some(Value::Number(0.7)));
    assert_eq!(find("cubic", "c"), Some(Value::Number(0.4)));
    assert_eq!(find("bbr", "high_gain"), Some(Value::Number(2.887)));
    assert_eq!(find("bbr3", "startup_pacing_gain"), Some(Value::Number(2.773)));
    assert_eq!(find("bbr2", "startup_pacing_gain"), Some(Value::Number(2.887)), "v2 has its own defaults");
    assert_eq!(find("bbr3", "drain_rounds"), Some(Value::Number(3.0)));
    assert_eq!(find("bbr2", "drain_rounds"), Some(Value::Word("none".into())));
    assert_eq!(find("brf", "silence_least"), Some(Value::Number(200e6)));
    assert_eq!(find("pacec", "silence_least"), Some(Value::Number(1e9)), "PACEC waits longer");
}

#[test]
fn a_parameter_reaches_its_controller() {
    let left_of = |choice: &Choice, cwnd| {
        let mut controller = Catalogue::built_in().build(choice).expect("a controller");
        let mut w = window(cwnd);
        controller.on_congestion(&Congestion::new(Signal::Loss, Time::ZERO), &mut w);
        w.ssthresh
    };
    let beta = |name: &str, beta| choice(name, &[("beta", Value::Number(beta))]);
    for (name, default, share, changed) in [("cubic", 70, 50, 50), ("reno", 50, 75, 75), ("bic", 79, 60, 59)]
    {
        assert_eq!(left_of(&name.into(), 100), default, "{name}");
        assert_eq!(left_of(&beta(name, f64::from(share) / 100.0), 100), changed, "{name}");
    }
    assert_eq!(left_of(&choice("scalable", &[("decrease_shift", Value::Number(1.0))]), 100), 50);
}

#[test]
fn presets_are_parameters_and_parameters_change_presets() {
    let catalogue = Catalogue::built_in();
    let same = [
        ("cubic-hystartpp", choice("cubic", &[("slow_start", Value::Word("hystart++".into()))])),
        ("bbr-a-literal", choice("bbr-a", &[("reading", Value::Word("literal".into()))])),
        ("bbr-c-recent", choice("bbr-c", &[("tmax_window", Value::Number(60e9))])),
        ("brf-literal", choice("brf", &[("reading", Value::Word("literal".into()))])),
    ];
    for (name, written_out) in same {
        let preset = behaviour(catalogue.build(&name.into()).expect(name));
        assert!(preset == behaviour(catalogue.build(&written_out).expect(name)), "{name}");
    }
    let changed = choice("cubic-hystartpp", &[("hystartpp_css_rounds", Value::Number(1.0))]);
    assert!(
        behaviour(catalogue.build(&changed).expect("a preset"))
            != behaviour(catalogue.build(&"cubic-hystartpp".into()).expect("a preset"))
    );
}

#[test]
fn errors_name_the_parameter_and_what_it_takes() {
    let number = Value::Number;
    assert_eq!(refused("cubick", &[]), "found \"cubick\", expected the name of a congestion controller");
    assert_eq!(
        refused("cubic", &[("beta", number(1.5))]),
        "beta: found 1.5, expected a number from 0.1 to 0.95"
    );
    assert_eq!(
        refused("cubic", &[("beta", Value::Flag(true))]),
        "beta: found true, expected a number from 0.1 to 0.95"
    );
    assert_eq!(
        refused("cubic", &[("beta", number(f64::NAN))]),
        "beta: found NaN, expected a number from 0.1 to 0.95"
    );
    assert_eq!(
        refused("vegas", &[("alpha", number(2.5))]),
        "alpha: found 2.5, expected a whole number from 0 to 1000000"
    );
    assert_eq!(
        refused("bbr", &[("probe_rtt_duration", number(1e12))]),
        "probe_rtt_duration: found 1000s, expected a time from 0 to 100s"
    );
    assert_eq!(
        refused("cubic", &[("slow_start", Value::Word("fast".into()))]),
        "slow_start: found \"fast\", expected hystart, hystart++ or plain"
    );
    assert_eq!(
        refused("bbr3", &[("drain_rounds", Value::Word("no".into()))]),
        "drain_rounds: found \"no\", expected a whole number from 1 to 1000, or none"
    );
    assert_eq!(refused("xcp", &[("beta", number(0.5))]), "found \"beta\", expected no parameters for xcp");
    assert!(
        refused("reno", &[("c", number(0.5))])
            .starts_with("found \"c\", expected a parameter of reno: beta, ")
    );
}

#[test]
fn labels_show_the_given_parameters() {
    let label = |choice: &Choice| Catalogue::built_in().label(choice);
    assert_eq!(label(&"cubic-hystartpp".into()), "cubic-hystartpp");
    let changed =
        Choice::from("cubic").with("beta", Value::Number(0.5)).with("hystart_delay_min", Value::Number(2e6));
    assert_eq!(label(&changed), "cubic(beta=0.5, hystart_delay_min=2ms)");
    assert_eq!(
        label(&Choice::from("cubic").with("fast_convergence", Value::Flag(false))),
        "cubic(fast_convergence=false)"
    );
}

/// A controller with a constant window.
struct Fixed(u32);

impl Controller for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }
    fn on_ack(&mut self, _ack: &Ack, window: &mut Window) {
        window.cwnd = self.0;
    }
    fn on_congestion(&mut self, _event: &Congestion, _window: &mut Window) {}
}

crate::parameters! {
    /// Parameters of [`Fixed`].
    struct FixedParams {
        /// The window.
        segments: u32 = 40, whole(1, 1000).unit("segments").from("invented");
        /// A rate without effect.
        rate: Rate = Rate::from_bits_per_sec(1_000_000), rate_from(Rate::ZERO, Rate::from_bits_per_sec(1_000_000_000))
            .from("invented");
    }
}

#[test]
fn a_row_from_outside_is_checked_and_built_by_name() {
    let row = Entry {
        parameters: &[Group {
            prefix: "",
            table: FixedParams::TABLE,
            defaults: || FixedParams::default().values(),
        }],
        ..Entry::new("fixed", Family::Loss, "a fixed window", |values| {
            Box::new(Fixed(FixedParams::default().with("", values).segments))
        })
    };
    let mut catalogue = Catalogue::built_in().clone();
    catalogue.add(row).expect("a free name");
    let changed = choice("fixed", &[("segments", Value::Number(7.0)), ("rate", Value::Number(250_000.0))]);
    assert_eq!(catalogue.check(&changed), Ok(()));
    assert_eq!(catalogue.label(&changed), "fixed(rate=2mbit, segments=7)");
    let mut w = window(10);
    catalogue.build(&changed).expect("a controller").on_ack(&ack_at(Time::ZERO), &mut w);
    assert_eq!(w.cwnd, 7);

    let taken = catalogue.add(row).expect_err("a taken name").to_string();
    assert_eq!(taken, "found \"fixed\", expected a name that no other algorithm has");
    const TWICE: &[Group] = &[Group::of::<FixedParams>(""), Group::of::<FixedParams>("")];
    let twice = Entry { name: "twice", parameters: TWICE, ..row };
    let problem = catalogue.add(twice).expect_err("a parameter that occurs twice").to_string();
    assert_eq!(problem, "found \"segments\", expected a name that no other parameter has");
    let wrong = Entry {
        name: "wrong",
        parameters: &[Group {
            prefix: "",
            table: FixedParams::TABLE,
            defaults: || vec![Value::Number(0.0), Value::Number(0.0)],
        }],
        ..row
    };
    let problem = catalogue.add(wrong).expect_err("a default out of range").to_string();
    assert_eq!(problem, "segments: found the default 0, expected a whole number from 1 to 1000");
    assert!(Catalogue::built_in().find("fixed").is_none(), "the built-in catalogue does not change");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn no_valid_parameters_stop_a_controller(seed: u64) {
        let mut next = positions(seed);
        for entry in Catalogue::built_in().entries() {
            let values = random_values(entry.parameters().map(|(name, parameter, _)| (name, parameter)), &mut next);
            let given = Choice { name: entry.name.to_owned(), params: values };
            prop_assert_eq!(Catalogue::built_in().check(&given), Ok(()));
            let text = format!("{given:?}");
            for window in behaviour((entry.build)(&given.params)) {
                prop_assert!(window.cwnd >= 1 && window.ssthresh >= 1, "{}: {:?}", text, window);
                prop_assert_ne!(window.pacing_rate, Some(Rate::ZERO), "{}", text);
            }
        }
    }
}
