//! Tests ports, controller and sources together, on fluid links.

use super::harness::{Network, mbit};
use super::{Mode, Params, Signal};
use crate::units::{Bytes, Rate, Span};

const MODES: [Mode; 2] = [Mode::Resolved, Mode::Incremental];

fn params(mode: Mode) -> Params {
    Params { mode, ..Params::default() }
}

/// Returns a network with two flows on one link of 100 Mbit/s.
fn two_flows(params: Params, delay: Span) -> Network {
    let mut network = Network::new(params, &[100.0], &[&[1], &[1]], delay);
    network.begin(0);
    network.begin(1);
    network
}

/// Returns the first flow's rate after each of this many periods, in Mbit/s.
fn course(network: &mut Network, periods: usize) -> Vec<f64> {
    (0..periods)
        .map(|_| {
            network.period();
            network.sources[0].rate.as_bits_per_sec() / 1e6
        })
        .collect()
}

fn assert_near(found: &[u64], expected: &[f64], within: f64) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        let found = *found as f64 / 125_000.0;
        assert!((found - expected).abs() <= expected * within, "{found} Mbit/s, not {expected}");
    }
}

/// PAC-18: r(s+1) = (C - N r(s)) / N has the eigenvalue -1.
#[test]
fn tv_p3_literal_oscillates_with_period_two() {
    let mut network = two_flows(params(Mode::Literal), Span::ZERO);
    assert_eq!(network.rates(), [0, 0]);
    let course = course(&mut network, 40);
    assert!(course.chunks(2).all(|rates| rates == [50.0, 0.0]), "{course:?}");
}

/// If new rates reach the link f * Tc after an update, the next update sees a mean of the old and the new rate: r(s+1)
/// = C / N - (1 - f) r(s) - f r(s-1). For 0 < f < 1 the eigenvalues have magnitudes below 1. So the oscillation decays.
/// Half the capacity stays unused. Here f = 2 / 5, and the magnitudes are sqrt(f).
#[test]
fn literal_with_delays_settles_at_half_the_capacity() {
    let mut network = two_flows(params(Mode::Literal), Span::from_millis(10));
    let course = course(&mut network, 60);
    assert!(course[..3].contains(&50.0), "{course:?}");
    assert!(course.iter().skip(20).all(|rate| (rate - 25.0).abs() < 0.1), "{course:?}");
}

/// If the delay is a whole period (f = 1), the eigenvalues are i and -i.
#[test]
fn literal_with_a_period_of_delay_oscillates_with_period_four() {
    let mut network = two_flows(Params { samples: 4, ..params(Mode::Literal) }, Span::from_millis(20));
    let course = course(&mut network, 60);
    assert!(course[4..].chunks(4).all(|rates| rates == &course[4..8]), "{course:?}");
    assert!(course[4..8].contains(&0.0) && course[4..8].contains(&50.0), "{course:?}");
}

/// PAC-19: each step covers half of the remaining distance to 50 Mbit/s.
#[test]
fn tv_p3_incremental_covers_half_of_the_distance() {
    let mut network =
        two_flows(Params { eta: 1.0, floor_packets: Some(0.0), ..params(Mode::Incremental) }, Span::ZERO);
    let course = course(&mut network, 20);
    assert_eq!(course[..3], [25.0, 37.5, 43.75]);
    for (s, rate) in course.iter().enumerate() {
        let expected = 50.0 * (1.0 - libm::pow(0.5, s as f64 + 1.0));
        // The controller does not send a change of less than a thousandth.
        assert!((rate - expected).abs() < 0.06, "{s}: {rate}, not {expected}");
    }
}

#[test]
fn resolved_converges_with_the_first_update() {
    let mut network = two_flows(params(Mode::Resolved), Span::ZERO);
    assert_eq!(course(&mut network, 20), [49.0; 20]);
    assert_eq!(network.queued(), Bytes::ZERO);
}

/// PAC-18a: each flow gets half of the link, although the second flow needs only 12.5 Mbit/s.
#[test]
fn pac_18a_equal_leaves_idle_what_a_limited_flow_does_not_use() {
    let mut network = two_flows(params(Mode::Equal), Span::from_millis(5));
    network.sources[1].demand = mbit(12.5);
    let course = course(&mut network, 60);
    assert_near(&network.rates(), &[49.0, 49.0], 0.001);
    assert!(course.iter().skip(1).all(|rate| (rate - 49.0).abs() < 0.1), "{course:?}");
    network.end(1);
    network.period();
    network.period();
    assert_near(&network.rates()[..1], &[98.0], 0.001);
}

/// PAC-18a: flows a and b share the first link, and flows b and c the second. Flow a gets only half of the first link,
/// although flow b uses just 19.6 Mbit/s of it.
#[test]
fn pac_18a_equal_shares_of_links_that_paths_share() {
    let paths: [&[u32]; 3] = [&[1], &[1, 2], &[2]];
    let mut network = Network::new(params(Mode::Equal), &[100.0, 40.0], &paths, Span::from_millis(5));
    (0..3).for_each(|n| network.begin(n));
    course(&mut network, 20);
    assert_near(&network.rates(), &[49.0, 19.6, 19.6], 0.001);
    assert_eq!(network.queued(), Bytes::ZERO);
}

#[test]
fn settles_with_delays_in_both_modes_and_by_both_signals() {
    for mode in MODES {
        for signal in [Signal::OutOfBand, Signal::InBand] {
            let mut network = two_flows(Params { signal, ..params(mode) }, Span::from_millis(10));
            course(&mut network, 40);
            assert_near(&network.rates(), &[49.0, 49.0], 0.01);
            assert_eq!(network.queued(), Bytes::ZERO, "{mode:?} {signal:?}");
            let later = course(&mut network, 20);
            assert!(later.iter().all(|rate| (rate - 49.0).abs() < 0.5), "{mode:?} {signal:?}: {later:?}");
        }
    }
}

#[test]
fn background_traffic_is_not_allocated_and_its_queue_drains() {
    for mode in [Mode::Resolved, Mode::Equal, Mode::Incremental] {
        let mut network = two_flows(params(mode), Span::from_millis(5));
        course(&mut network, 20);
        network.ports[0].background = mbit(30.0);
        network.period();
        assert!(network.queued() > Bytes::new(100_000), "98 and 30 Mbit/s are more than 100");
        course(&mut network, 40);
        assert_near(&network.rates(), &[34.0, 34.0], 0.02);
        assert_eq!(network.queued(), Bytes::ZERO, "{mode:?}");
    }
}

/// TV-P4 in a closed loop, with eta. In literal mode each path divides the residual capacity as if no other path used
/// its links.
#[test]
fn pac_20_links_that_paths_share() {
    for mode in MODES {
        let paths: [&[u32]; 3] = [&[1], &[1, 2], &[2]];
        let mut network = Network::new(params(mode), &[100.0, 40.0], &paths, Span::from_millis(5));
        (0..3).for_each(|n| network.begin(n));
        course(&mut network, 60);
        assert_near(&network.rates(), &[78.4, 19.6, 19.6], 0.01);
    }
    let paths: [&[u32]; 2] = [&[1, 2], &[1, 3]];
    let mut network = Network::new(params(Mode::Literal), &[100.0, 1000.0, 1000.0], &paths, Span::ZERO);
    network.begin(0);
    network.begin(1);
    network.period();
    assert_near(&network.rates(), &[100.0, 100.0], 0.01);
}

#[test]
fn pac_22_a_newcomer_between_updates_gets_the_unallocated_rate() {
    // Flows 0 and 100 have the same destination. When the first flow has begun, the controller sends the ingress a rate
    // for newcomers to this destination.
    let paths: Vec<&[u32]> = vec![&[1]; 102];
    let mut network = Network::new(params(Mode::Resolved), &[100.0], &paths, Span::from_millis(5));
    network.begin(0);
    assert_near(&network.rates()[..1], &[0.48], 0.001);
    network.sources[0].demand = mbit(20.0);
    course(&mut network, 20);
    network.begin(100);
    // The newcomer gets 98 Mbit/s minus the demand of the first flow, which is limited.
    let left = 98.0 - 22.0;
    assert_near(&network.rates()[100..101], &[left], 0.02);
    network.begin(101);
    assert_near(&network.rates()[101..], &[0.48], 0.001);
    course(&mut network, 2);
    assert_near(&network.rates()[100..], &[38.0, 38.0], 0.02);
    assert_eq!(network.queued(), Bytes::ZERO);
}

#[test]
fn the_rest_of_a_limited_flow_goes_to_the_other_and_returns() {
    for mode in MODES {
        let mut network = two_flows(params(mode), Span::from_millis(5));
        network.sources[1].demand = mbit(12.5);
        course(&mut network, 60);
        assert_near(&network.rates(), &[98.0 - 13.75, 13.75], 0.02);
        network.sources[1].demand = Rate::MAX;
        course(&mut network, 30);
        assert_near(&network.rates(), &[49.0, 49.0], 0.02);
    }
}

#[test]
fn a_flow_that_ended_makes_room() {
    let mut network = two_flows(params(Mode::Resolved), Span::from_millis(5));
    course(&mut network, 10);
    network.end(1);
    course(&mut network, 3);
    assert_near(&network.rates()[..1], &[98.0], 0.01);
    assert_eq!(network.domain.flows(), 1);
    // The flow ends after one second of silence (PAC-21). The announcement of its end needs additional time to reach
    // the controller.
    network.sources[0].off = true;
    course(&mut network, 19);
    assert_eq!(network.domain.flows(), 1);
    course(&mut network, 3);
    assert_eq!(network.domain.flows(), 0);
    // The flow resumes and gets all remaining capacity at once.
    network.sources[0].off = false;
    network.sources[0].rate = mbit(1.0);
    network.step();
    assert_near(&network.rates()[..1], &[98.0], 0.01);
}

#[test]
fn pac_24_without_reports_the_flows_share_the_link() {
    let mut network = two_flows(params(Mode::Resolved), Span::ZERO);
    network.ports[0].background = mbit(30.0);
    course(&mut network, 10);
    network.ports[0].lost = true;
    assert!(
        course(&mut network, 3).iter().all(|rate| (rate - 34.0).abs() < 0.1),
        "the last samples stay valid for three periods"
    );
    let blind = course(&mut network, 3);
    assert_near(&network.rates(), &[49.0, 49.0], 0.001);
    assert!((blind[1] - 49.0).abs() < 0.1, "{blind:?}");
    network.ports[0].lost = false;
    course(&mut network, 20);
    assert_near(&network.rates(), &[34.0, 34.0], 0.02);
}

#[test]
fn a_restarted_controller_asks_for_the_flows() {
    for mode in MODES {
        let mut network = two_flows(params(mode), Span::from_millis(5));
        course(&mut network, 30);
        network.restart_controller();
        assert_eq!(network.domain.flows(), 0);
        network.period();
        assert_eq!(network.domain.flows(), 2, "{mode:?}");
        for _ in 0..40 {
            network.period();
            let sum: u64 = network.rates().iter().sum();
            assert!(sum <= mbit(98.1).as_bytes_per_sec(), "{mode:?}: {sum}");
        }
        assert_near(&network.rates(), &[49.0, 49.0], 0.02);
    }
}

#[test]
fn without_a_controller_the_rates_stand() {
    let mut network = two_flows(params(Mode::Resolved), Span::ZERO);
    course(&mut network, 10);
    let before = network.rates();
    // The control network fails.
    network.domain = super::Pacec::new([], super::harness::MTU, network.now);
    course(&mut network, 100);
    assert_eq!(network.rates(), before);
}

/// Every port announces the flow, but only the first port may send its rate to the source.
#[test]
fn the_ports_behind_the_first_are_told_that_they_do_not_limit() {
    let paths: [&[u32]; 1] = [&[1, 2, 3]];
    let mut network =
        Network::new(params(Mode::Resolved), &[100.0, 50.0, 80.0], &paths, Span::from_millis(5));
    network.begin(0);
    course(&mut network, 3);
    assert_near(&network.rates(), &[49.0], 0.01);
    let key = network.sources[0].key;
    let allocated = |at: usize| crate::rate::PerFlowController::allocation(&network.ports[at].control, &key);
    assert_eq!([1, 2].map(allocated), [None, None]);
    assert_eq!(allocated(0), Some(network.sources[0].rate));
}
