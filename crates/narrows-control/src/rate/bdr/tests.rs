//! Tests the whole law: steps, steady streams of short flows, and two flows in a closed loop.

use super::*;
use crate::congestion::network::bdr::designator::{apply_gain, window};
use crate::parameter::Reading;
use crate::rate::PortParameters;
use crate::units::{Bytes, Rate, Span, Time};

const PACKET: Bytes = Bytes::new(1000);
const RTT: Span = Span::from_millis(100);

fn at(secs: f64) -> Time {
    Time::from_secs_f64(secs)
}

fn gbit() -> Rate {
    Rate::from_bits_per_sec(1_000_000_000)
}

fn mbit100() -> Rate {
    Rate::from_bits_per_sec(100_000_000)
}

fn law(params: Params, capacity: Rate) -> Law {
    assert_eq!(params.check(), Ok(()));
    Law::new(params, capacity, Time::ZERO)
}

/// Returns a report of 0.1 s in the middle of a flow's life.
fn report() -> Report {
    Report { t_rep: RTT, size_cwin: 20, time_per_cwin: RTT, packet_size: PACKET, ..Report::default() }
}

fn hear(law: &mut Law, now: Time, report: &Report) -> Recommendation {
    law.on_report(now, report, Bytes::ZERO, None)
}

/// Passes the reports of `flows` flows to the law. Each flow reports every 0.1 s, and the reports are evenly spaced.
fn steady(law: &mut Law, flows: u32, from: f64, to: f64) {
    let every = 0.1 / f64::from(flows);
    for i in 1..=((to - from) / every + 0.5) as u32 {
        hear(law, at(from + f64::from(i) * every), &report());
    }
}

#[test]
fn tv_d2_a_step_from_100_to_400_flows_is_359_after_a_second() {
    let mut law = law(Params::default(), gbit());
    steady(&mut law, 100, 0.0, 20.0);
    steady(&mut law, 400, 20.0, 21.0);
    let flows = law.flows(at(21.0));
    assert!((flows - 359.4).abs() < 0.2, "{flows}");
    let share = law.rate(at(21.0)).as_bits_per_sec();
    assert!((share * flows / 0.98e9 - 1.0).abs() < 1e-5, "{share}");
}

/// BDR-D1: ten seconds after a step from 100 to 400 flows, the law with the paper's estimator still counts only 127
/// flows.
#[test]
fn bdr_d1_the_literal_law_lags_behind() {
    let mut law = law(Params { mode: Reading::Literal, ..Params::default() }, gbit());
    steady(&mut law, 100, 0.0, 100.0);
    steady(&mut law, 400, 100.0, 110.0);
    assert!((law.flows(at(110.0)) - 127.27).abs() < 0.005, "{}", law.flows(at(110.0)));
}

/// Passes the reports of short flows to the law: `per_rtt` flows begin every 0.1 s, and each flow lasts `rtts` RTTs.
fn stream(law: &mut Law, per_rtt: u32, rtts: u32, secs: f64) -> Time {
    let mut now = Time::ZERO;
    for k in 0..(f64::from(per_rtt) * 10.0 * secs) as u32 {
        now = at(f64::from(k) / (f64::from(per_rtt) * 10.0));
        hear(law, now, &Report { syn: true, ..Report::default() });
        for n in (1..=rtts).filter(|n| k >= n * per_rtt) {
            hear(law, now, &Report { first_data: n == 1, fin: n == rtts, ..report() });
        }
        if now >= law.next() {
            let capacity = law.capacity();
            law.on_timer(now, capacity, Bytes::ZERO, None);
        }
    }
    now
}

/// TV-D4: the estimated number of flows agrees with Little's law, and the windows with TV-D3.
#[test]
fn tv_d4_the_count_of_short_flows_agrees_with_littles_law() {
    for (capacity, per_rtt, rtts, flows, packets) in
        [(gbit(), 200, 2, 400.0, 30), (gbit(), 200, 3, 600.0, 20), (mbit100(), 40, 2, 80.0, 15)]
    {
        for estimator in [Estimator::Exponential, Estimator::Sliding] {
            let params = Params { redistribution: false, estimator, ..Params::default() };
            let mut law = law(params, capacity);
            let now = stream(&mut law, per_rtt, rtts, 6.0);
            let read = law.flows(now);
            assert!((read / flows - 1.0).abs() < 0.005, "{read}");
            assert_eq!(window(law.rate(now), RTT, PACKET), packets);
        }
    }
}

/// BDR-22: with anticipation, 100 SYNs raise the estimated number of flows by 50 before any data arrives.
#[test]
fn a_burst_is_anticipated() {
    let shares = [false, true].map(|anticipation| {
        let mut law = law(Params { anticipation, ..Params::default() }, gbit());
        steady(&mut law, 100, 0.0, 5.0);
        let syn = Report { syn: true, ..Report::default() };
        (0..100).for_each(|_| _ = hear(&mut law, at(5.0), &syn));
        law.flows(at(5.0))
    });
    assert!((shares[0] - 100.1).abs() < 0.1 && (shares[1] - 150.1).abs() < 0.1, "{shares:?}");
}

/// Runs two flows with windows of 90 and 10 packets on a link of 100 packets per RTT. Each flow reports once per RTT,
/// half an RTT after the report of the other flow. The queue that the law reads is always empty. Returns the windows
/// after 100 RTTs.
fn two_flows(mode: Reading) -> [u32; 2] {
    let mut law = law(Params { mode, ..Params::default() }, Rate::from_bytes_per_sec(1_000_000));
    let mut windows = [90u32, 10];
    for half in 1..=220u64 {
        let now = Time::ZERO + Span::from_millis(50 * half);
        let sum = u64::from(windows[0]) + u64::from(windows[1]);
        law.on_bytes(Bytes::new(sum.min(100) * 500), Bytes::ZERO);
        law.on_timer(now, Rate::from_bytes_per_sec(1_000_000), Bytes::ZERO, None);
        let flow = (half % 2) as usize;
        // The port measures for a second before the flows react. Otherwise the paper's law would treat the link as
        // unused.
        if half > 20 {
            let said = hear(&mut law, now, &Report { size_cwin: windows[flow], ..report() });
            windows[flow] = match said {
                Recommendation::Rate(rate) => window(rate, RTT, PACKET),
                Recommendation::Gain(gain) => apply_gain(windows[flow], gain),
            };
        }
    }
    windows
}

/// BDR-D2: a full link has no spare capacity to distribute, so unequal windows stay unequal.
#[test]
fn bdr_d2_the_literal_law_keeps_ninety_to_ten() {
    assert_eq!(two_flows(Reading::Literal), [90, 10]);
}

/// The two windows together are slightly below 98 packets. The law computes each share for 2.1 flows instead of two,
/// because it reads the count just after a report.
#[test]
fn the_resolved_law_gives_both_the_same() {
    let [a, b] = two_flows(Reading::Resolved);
    assert!(a == b && (88..=98).contains(&(a + b)), "{a} {b}");
}

/// BDR-24 in a closed loop: five of ten flows can use only a fifth of their shares. The other five flows get a part of
/// the unused bandwidth, and the link is not overloaded.
#[test]
fn the_rest_of_limited_flows_is_redistributed() {
    let run = |redistribution| {
        let capacity = Rate::from_bytes_per_sec(10_000_000);
        let mut law = law(Params { redistribution, ..Params::default() }, capacity);
        let limit = capacity.mul_f64(0.02);
        let mut peak = 0.0f64;
        for slot in 1..=2_000u64 {
            let now = Time::ZERO + Span::from_millis(10 * slot);
            let rate = law.rate(now);
            let all = 5.0 * (rate.as_f64() + rate.min(limit).as_f64());
            // The estimated number of flows needs two seconds to settle.
            if slot > 200 {
                peak = peak.max(all / capacity.as_f64());
            }
            law.on_bytes(Bytes::new((all * 0.01) as u64), Bytes::ZERO);
            if now >= law.next() {
                law.on_timer(now, capacity, Bytes::ZERO, Some(Bytes::new(1_000_000)));
            }
            law.on_report(now, &report(), Bytes::ZERO, Some(Bytes::new(1_000_000)));
        }
        (law.utilisation(), law.redistribution(), peak)
    };
    let (without, with) = (run(false), run(true));
    assert!((without.0 - 0.58).abs() < 0.02 && without.1 == 1.0, "{without:?}");
    assert!(with.0 > 0.7 && with.1 > 1.25 && with.2 < 0.98, "{with:?}");
}

#[test]
fn a_queue_or_a_full_link_ends_redistribution_at_once() {
    let capacity = Rate::from_bytes_per_sec(1_000_000);
    let buffer = Some(Bytes::new(100_000));
    let mut law = law(Params::default(), capacity);
    let run = |law: &mut Law, from: u64, bytes: u64| {
        for half in from..from + 40 {
            let now = Time::ZERO + Span::from_millis(50 * half);
            law.on_bytes(Bytes::new(bytes), Bytes::ZERO);
            law.on_timer(now, capacity, Bytes::ZERO, buffer);
            hear(law, now, &report());
        }
        Time::ZERO + Span::from_millis(50 * (from + 39))
    };
    let now = run(&mut law, 1, 20_000);
    assert!(law.redistribution() > 1.5, "{}", law.redistribution());
    law.on_report(now, &report(), Bytes::new(1000), buffer);
    assert!(law.redistribution() > 1.5, "a queue of exactly 1 % of the buffer is not above the threshold");
    law.on_report(now, &report(), Bytes::new(1001), buffer);
    assert_eq!(law.redistribution(), 1.0);
    run(&mut law, 41, 20_000);
    assert!(law.redistribution() > 1.5);
    run(&mut law, 81, 50_000);
    assert_eq!(law.redistribution(), 1.0);
}

#[test]
fn without_flows_the_share_does_not_grow() {
    let mut law = law(Params::default(), gbit());
    for half in 1..=1_000u64 {
        law.on_timer(Time::ZERO + Span::from_millis(50 * half), gbit(), Bytes::ZERO, None);
    }
    assert_eq!(law.redistribution(), 1.0);
    assert_eq!(law.rate(at(50.0)), gbit().mul_f64(0.98));
}

#[test]
fn other_traffic_keeps_its_rate() {
    let mut law = law(Params { redistribution: false, ..Params::default() }, mbit100());
    for half in 1..=200u64 {
        // The port carries 8 Mbit/s of other traffic, as in TV-D10.
        law.on_bytes(Bytes::ZERO, Bytes::new(50_000));
        law.on_timer(Time::ZERO + Span::from_millis(50 * half), mbit100(), Bytes::ZERO, None);
    }
    assert!((law.background().as_bits_per_sec() - 8e6).abs() < 100.0);
    assert!((law.rate(at(10.0)).as_bits_per_sec() - 90e6).abs() < 100.0);
    // Draining TV-D10's queue of 150 kbit in 0.2 s takes 0.75 Mbit/s.
    let queued = Bytes::new(150_000 / 8);
    let Recommendation::Rate(rate) = law.on_report(at(10.0), &Report::default(), queued, None) else {
        panic!("not a rate");
    };
    assert!((rate.as_bits_per_sec() - 89.25e6).abs() < 100.0, "{rate:?}");
}

#[test]
fn a_change_of_capacity_takes_effect_at_once() {
    let mut law = law(Params::default(), gbit());
    steady(&mut law, 10, 0.0, 5.0);
    let before = law.next();
    law.on_timer(at(0.01), mbit100(), Bytes::ZERO, None);
    assert_eq!(law.next(), before, "the deadline of the measurement does not change");
    let (rate, flows) = (law.rate(at(5.0)), law.flows(at(5.0)));
    assert!((rate.as_bits_per_sec() * flows / 98e6 - 1.0).abs() < 1e-6);
    law.on_timer(at(5.0), Rate::ZERO, Bytes::ZERO, None);
    assert_eq!((law.rate(at(5.0)), law.utilisation()), (Rate::ZERO, 1.0));
}

#[test]
fn routers_only_lower_the_field() {
    let law = law(Params::default(), mbit100());
    let (rate, slow) = (law.rate(Time::ZERO), Rate::from_bytes_per_sec(5));
    assert_eq!(law.stamp(Time::ZERO, None), rate);
    assert_eq!(law.stamp(Time::ZERO, Some(slow)), slow);
    assert_eq!(law.stamp(Time::ZERO, Some(Rate::MAX)), rate);
    let gain = Recommendation::Gain;
    assert_eq!(gain(3).stamp(None), gain(3));
    assert_eq!(gain(3).stamp(Some(gain(-1))), gain(-1));
    assert_eq!(gain(-3).stamp(Some(gain(-1))), gain(-3));
    assert_eq!(gain(-3).stamp(Some(Recommendation::Rate(slow))), Recommendation::Rate(slow));
    assert_eq!(
        Recommendation::Rate(rate).stamp(Some(Recommendation::Rate(slow))),
        Recommendation::Rate(slow)
    );
}

/// A report after hours of idle time, or a false report, adds at most t_rep_max / tau_min to the number of flows.
#[test]
fn an_absurd_report_counts_for_little() {
    let mut law = law(Params::default(), gbit());
    steady(&mut law, 100, 0.0, 5.0);
    let absurd = Report { t_rep: Span::from_secs(36_000), ..report() };
    hear(&mut law, at(5.0), &absurd);
    assert!(law.flows(at(5.0)) < 105.0, "{}", law.flows(at(5.0)));
    assert!(law.mean_report() < Span::from_millis(250), "{:?}", law.mean_report());
}

/// The first report sets the mean time between reports, and later reports have weight 1/16. The timer's period is half
/// of the mean.
#[test]
fn the_first_report_is_the_mean() {
    let mut law = law(Params::default(), gbit());
    assert_eq!((law.mean_report(), law.next()), (RTT, at(0.05)));
    hear(&mut law, at(0.01), &Report { t_rep: Span::from_millis(20), ..report() });
    assert_eq!(law.mean_report(), Span::from_millis(20));
    hear(&mut law, at(0.02), &Report { t_rep: Span::from_millis(36), ..report() });
    assert_eq!(law.mean_report(), Span::from_millis(21));
    law.on_timer(at(0.05), gbit(), Bytes::ZERO, None);
    assert_eq!(law.next(), at(0.0605), "the next timer is due after half of the mean");
}

/// The timer of the resolved law waits at least 1 ms. The paper's law measures over at least 10 ms, and its timer waits
/// half of this time.
#[test]
fn timers_have_a_minimum_wait() {
    for (mode, wait) in [(Reading::Resolved, 1), (Reading::Literal, 5)] {
        let mut law = law(Params { mode, ..Params::default() }, gbit());
        let (t_rep, time_per_cwin) = (Span::from_micros(1), Span::from_micros(1));
        hear(&mut law, at(0.01), &Report { t_rep, time_per_cwin, ..report() });
        law.on_timer(at(0.05), gbit(), Bytes::ZERO, None);
        assert_eq!(law.next(), at(0.05) + Span::from_millis(wait));
    }
}

/// BDR-22: The law forgets SYNs without data after at most 2.5 times the mean time between reports.
#[test]
fn a_flood_of_syns_is_soon_forgotten() {
    let mut law = law(Params::default(), gbit());
    let syn = Report { syn: true, ..Report::default() };
    (0..1000).for_each(|_| _ = hear(&mut law, at(0.04), &syn));
    assert_eq!(law.flows(at(0.04)), 501.0);
    for half in 1..=5u64 {
        assert!(law.flows(Time::ZERO + Span::from_millis(50 * half)) > 300.0);
        law.on_timer(Time::ZERO + Span::from_millis(50 * half), gbit(), Bytes::ZERO, None);
    }
    assert_eq!(law.flows(at(0.25)), 1.0);
}

#[test]
fn one_flow_never_gets_more_than_the_link() {
    let mut law = law(Params::default(), gbit());
    for tenth in 1..=100u64 {
        let now = Time::ZERO + RTT.scale(tenth, 1);
        law.on_bytes(Bytes::new(1_250_000), Bytes::ZERO);
        law.on_timer(now, gbit(), Bytes::ZERO, None);
        hear(&mut law, now, &report());
    }
    assert!(law.redistribution() > 5.0);
    assert_eq!(law.rate(at(10.0)), gbit().mul_f64(0.98));
}

#[test]
fn a_late_timer_takes_one_step() {
    let mut law = law(Params::default(), gbit());
    for half in 1..=5u64 {
        law.on_timer(at(half as f64 * 0.05), gbit(), Bytes::ZERO, None);
        steady(&mut law, 100, half as f64 * 0.05, half as f64 * 0.05 + 0.05);
    }
    steady(&mut law, 100, 60.0, 61.0);
    law.on_timer(at(61.0), gbit(), Bytes::ZERO, None);
    assert!((law.redistribution() - 1.1).abs() < 1e-9, "{}", law.redistribution());
}

/// A queue without a limit is above its threshold if it takes more than 1 % of T_q = 0.2 s to drain.
#[test]
fn a_queue_without_a_limit_is_judged_by_its_delay() {
    let factor = |queued| {
        let mut law = law(Params::default(), gbit());
        for half in 1..=40u64 {
            let now = Time::ZERO + Span::from_millis(50 * half);
            law.on_timer(now, gbit(), Bytes::ZERO, None);
            hear(&mut law, now, &report());
        }
        law.on_report(at(2.0), &report(), Bytes::new(queued), None);
        law.redistribution()
    };
    // 250,000 bytes take 2 ms at 1 Gbit/s.
    assert!(factor(249_000) > 1.0);
    assert_eq!(factor(251_000), 1.0);
}

/// BDR-3: a router keeps no state per flow. A type without a destructor owns no heap memory, so its size is fixed.
#[test]
fn a_port_owns_no_memory_on_the_heap() {
    assert!(!std::mem::needs_drop::<BdrPort>());
    assert!(size_of::<BdrPort>() < 1_000, "{}", size_of::<BdrPort>());
}
