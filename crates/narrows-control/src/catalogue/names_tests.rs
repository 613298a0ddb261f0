use proptest::prelude::*;

use super::*;
use crate::congestion::harness::{ack_at, connection, initial_window};
use crate::congestion::{
    Ack, Congestion, Connection, Departing, Lost, RateSample, Recovery, Signal, State, Timestamps, Window,
};
use crate::feedback::header::{Echo, Header};
use crate::units::{Rate, Span, Time};

#[test]
fn every_name_is_listed_once_in_order_and_builds() {
    let names: Vec<&str> = all().iter().map(|e| e.name).collect();
    let mut ordered = names.clone();
    ordered.sort_unstable();
    ordered.dedup();
    assert_eq!(names, ordered, "a name occurs twice");
    for entry in all() {
        assert!(!entry.summary.is_empty());
        let built = build(entry.name).map(|c| c.name());
        assert_eq!(built, Some(entry.entry.name));
    }
    assert!(build("no-such-thing").is_none());
}

#[test]
fn a_sender_limited_by_its_application_does_not_grow() {
    for entry in all() {
        let mut controller = entry.build();
        let mut window = Window { cwnd: 10, ssthresh: 8, pacing_rate: None };
        controller.on_established(&connection(None, None), &mut window);
        if controller.recovery() != Recovery::Transport {
            continue;
        }
        // Some controllers change the initial window of 10.
        let initial = window.cwnd;
        for n in 0..1000 {
            let ack = Ack { cwnd_limited: false, ..ack_at(Time::ZERO + Span::from_millis(n)) };
            controller.on_ack(&ack, &mut window);
        }
        assert_eq!(window.cwnd, initial, "{}", entry.name);
    }
}

/// An event at a sender.
#[derive(Clone, Debug)]
enum Step {
    Ack {
        after: u64,
        acked: u32,
        lost: u32,
        rtt: Option<u64>,
        interval: u64,
        delivered: u32,
        state: State,
        flags: u8,
        feedback: Option<u64>,
    },
    Lost {
        tx_in_flight: u32,
        lost: u32,
        app_limited: bool,
    },
    Congestion(Signal),
    Recovered,
    Undo,
    Restart(u64),
    Sent {
        syn: bool,
        fin: bool,
        again: bool,
    },
    Told(u64),
}

/// Generates mostly small numbers, and sometimes extreme numbers.
fn nanos() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0u64..50_000_000, 1 => 0u64..100_000_000_000, 1 => Just(u64::MAX / 2)]
}

fn count() -> impl Strategy<Value = u32> {
    prop_oneof![8 => 0u32..20, 1 => 0u32..100_000, 1 => Just(u32::MAX)]
}

fn step() -> impl Strategy<Value = Step> {
    let state = prop_oneof![
        6 => Just(State::Open), 1 => Just(State::Disorder), 1 => Just(State::Cwr),
        2 => Just(State::Recovery), 1 => Just(State::Loss)
    ];
    let signal = prop_oneof![Just(Signal::Loss), Just(Signal::Ecn), Just(Signal::Timeout)];
    let ack = (
        (nanos(), count(), count(), prop::option::of(nanos())),
        (nanos(), count(), state, any::<u8>(), prop::option::of(any::<u64>())),
    )
        .prop_map(|((after, acked, lost, rtt), (interval, delivered, state, flags, feedback))| {
            Step::Ack { after, acked, lost, rtt, interval, delivered, state, flags, feedback }
        });
    prop_oneof![
        20 => ack,
        3 => (count(), count(), any::<bool>())
            .prop_map(|(tx_in_flight, lost, app_limited)| Step::Lost { tx_in_flight, lost, app_limited }),
        2 => signal.prop_map(Step::Congestion),
        1 => Just(Step::Recovered),
        1 => Just(Step::Undo),
        1 => nanos().prop_map(Step::Restart),
        4 => (0u8..20).prop_map(|n| Step::Sent { syn: n == 0, fin: n == 1, again: n == 2 }),
        1 => any::<u64>().prop_map(Step::Told),
    ]
}

/// The totals that the test puts into ACKs.
#[derive(Default)]
struct Totals {
    now: u64,
    delivered: u64,
    lost: u64,
    in_flight: u32,
}

fn apply(controller: &mut dyn Controller, window: &mut Window, step: &Step, totals: &mut Totals) {
    let now = Time::from_nanos(totals.now);
    match *step {
        Step::Ack { after, acked, lost, rtt, interval, delivered, state, flags, feedback } => {
            totals.now = totals.now.saturating_add(after);
            totals.delivered = totals.delivered.saturating_add(u64::from(acked));
            totals.lost = totals.lost.saturating_add(u64::from(lost));
            let prior_in_flight = totals.in_flight;
            totals.in_flight = window.cwnd.saturating_sub(acked);
            let ack = Ack {
                acked,
                lost,
                delivered: totals.delivered,
                total_lost: totals.lost,
                snd_una: totals.delivered,
                snd_nxt: totals.delivered.saturating_add(u64::from(window.cwnd)),
                prior_in_flight,
                in_flight: totals.in_flight,
                rtt: rtt.map(Span::from_nanos),
                srtt: Span::from_nanos(rtt.unwrap_or(0)),
                rate: RateSample {
                    delivered,
                    interval: Span::from_nanos(interval),
                    prior_delivered: totals.delivered.saturating_sub(u64::from(delivered)),
                    app_limited: flags & 1 != 0,
                    tx_in_flight: prior_in_flight,
                    lost,
                    ..RateSample::default()
                },
                state,
                cwnd_limited: flags & 2 == 0,
                delayed: flags & 4 != 0,
                feedback: feedback.map(Rate::from_bytes_per_sec),
                echo: Echo::from_word(feedback.unwrap_or(0) as u32, flags >> 3),
                timestamps: rtt.map(|rtt| Timestamps {
                    value: Timestamps::clock(Time::from_nanos(totals.now)),
                    echo: Timestamps::clock(Time::from_nanos(totals.now.saturating_sub(rtt))),
                }),
                ..ack_at(Time::from_nanos(totals.now))
            };
            controller.on_sample(&ack);
            let ours = !matches!(state, State::Cwr | State::Recovery);
            if ours || controller.recovery() == Recovery::Controller {
                controller.on_ack(&ack, window);
            }
        }
        Step::Lost { tx_in_flight, lost, app_limited } => {
            let delivered = totals.delivered;
            controller.on_lost(&Lost { now, delivered, tx_in_flight, lost, app_limited }, window);
        }
        Step::Congestion(signal) => {
            let event =
                Congestion { signal, now, in_flight: totals.in_flight, again: false, srtt: Span::ZERO };
            controller.on_congestion(&event, window);
            if signal == Signal::Timeout {
                window.cwnd = 1;
            } else if controller.recovery() == Recovery::Transport {
                window.cwnd = window.ssthresh;
            }
        }
        Step::Recovered => controller.on_recovered(now, window),
        Step::Undo => controller.on_undo(now, window),
        Step::Sent { syn, fin, again } => {
            let departing = Departing {
                now,
                syn,
                fin,
                again,
                seq: totals.delivered,
                srtt: Span::from_nanos(totals.now),
                min_rtt: Span::MAX,
                rto: Span::ZERO,
                packet_bytes: 1500,
            };
            let room = controller.header_bytes();
            let header = controller.header(&departing, window);
            // BDR may have to designate any packet (BDR-27, BDR-36), so its header may need more than `room` bytes.
            let designated = matches!(header, Header::Bdr(_));
            assert!(header.wire_bytes() <= room || designated || syn || again, "{header:?} in {room} bytes");
        }
        Step::Told(rate) => controller.on_feedback(now, Rate::from_bytes_per_sec(rate), window),
        Step::Restart(idle) => controller.on_restart(now, Span::from_nanos(idle), idle % 2 == 0, window),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_sequence_of_events_stops_or_panics_a_controller(
        steps in prop::collection::vec(step(), 1..120),
        rtt in prop::option::of(nanos()), feedback in prop::option::of(any::<u64>()), seed: u64,
    ) {
        for entry in all() {
            let mut controller = entry.build();
            let mut window = initial_window();
            let connection = Connection { seed, ..connection(rtt.map(Span::from_nanos), feedback.map(Rate::from_bytes_per_sec)) };
            controller.on_established(&connection, &mut window);
            let mut totals = Totals::default();
            for step in &steps {
                apply(controller.as_mut(), &mut window, step, &mut totals);
                prop_assert!(window.cwnd >= 1, "{}: no window after {step:?}", entry.name);
                prop_assert!(window.ssthresh >= 1, "{}: no threshold after {step:?}", entry.name);
                prop_assert_ne!(window.pacing_rate, Some(Rate::ZERO), "{} after {:?}", entry.name, step);
                let mut names = Vec::new();
                controller.trace(&mut |name, _| names.push(name));
                prop_assert!(!names.contains(&""));
            }
        }
    }

    #[test]
    fn the_same_events_give_the_same_decisions(
        steps in prop::collection::vec(step(), 1..60), seed: u64,
    ) {
        for entry in all() {
            let run = || {
                let mut controller = entry.build();
                let mut window = initial_window();
                let rtt = Some(Span::from_millis(20));
                let connection = Connection { seed, ..connection(rtt, None) };
                controller.on_established(&connection, &mut window);
                let mut totals = Totals::default();
                steps.iter().for_each(|step| apply(controller.as_mut(), &mut window, step, &mut totals));
                window
            };
            prop_assert_eq!(run(), run());
        }
    }
}
