//! Tests that flows get rates even if the switch has not seen their handshake, or no longer has a record of it
//! (BRF-105).

use crate::brf_common::*;
use narrows_control::units::Span;
use narrows_sim::plan::AppPlan;

/// Returns Jain's index of fairness (Jain, Chiu and Hawe 1984, equation 2).
fn jain(x: &[f64]) -> f64 {
    let sum: f64 = x.iter().sum();
    sum * sum / (x.len() as f64 * x.iter().map(|x| x * x).sum::<f64>())
}

/// The switch fails at 10 s and returns without state after `out` ms. In an established flow, only one segment per RTT
/// has the option that shows that the sender supports BRF. The first segment that the switch sees after its return
/// usually has no such option.
#[test]
fn every_flow_is_rated_within_a_second_after_the_switch_returns() {
    for (out, count, rtt) in [500, 5_000]
        .into_iter()
        .flat_map(|out| [1, 8].map(|count| (out, count)))
        .flat_map(|(out, count)| [10, 50].map(|rtt| (out, count, rtt)))
    {
        let what = format!("{count} flows, {rtt} ms, out for {out} ms");
        let (mut net, senders, client) = star(mbit(100), &[rtt], resolved(), 10 + 8 + out / 1_000);
        net.plan.rate_controllers[0].outages = vec![(at(10_000), at(10_000 + out))];
        let flows = net.add(senders[0], client, tcp("brf"));
        (flows.count, flows.spacing) = (count, ms(30));
        let r = net.run();
        let back = 10.0 + out as f64 / 1000.0;
        let end = back + 7.0;
        for flow in 0..u64::from(count) {
            let allocated = |from, to| samples(&r, "flow_samples", "flow", flow, "allocation_bps", from, to);
            assert!(
                allocated(back - 0.4, back).iter().all(|a| a.is_nan()),
                "{what}: the switch did not fail"
            );
            assert!(allocated(back + 1.0, end).iter().all(|a| *a > 0.0), "{what}: flow {flow}");
        }
        let rates: Vec<f64> = (0..u64::from(count)).map(|f| goodput(&r, f, back + 2.0, end)).collect();
        assert!(jain(&rates) >= 0.99, "{what}: {rates:?}");
        assert_near(rates.iter().sum(), 98.0 * PAYLOAD, 0.02);
    }
}

/// The switch forgets an idle flow after 60 s (BRF-15). When the flow resumes, the application limits it, so its data
/// segments do not carry the option that shows that the sender supports BRF. The switch must recognise the flow by the
/// option in its ACKs (BRF-9).
#[test]
fn a_flow_of_rare_bursts_is_rated_in_each() {
    let (mut net, senders, client) = star(mbit(100), &[20, 20], resolved(), 235);
    let secs = Span::from_secs;
    net.add(senders[0], client, tcp("brf")).app =
        AppPlan::Limited { rate: mbit(40), on: Some(secs(5)), off: Some(secs(70)) };
    net.add(senders[1], client, tcp("brf"));
    net.plan.probes.interval = ms(100);
    let r = net.run();
    for burst in [0.0, 75.0, 150.0, 225.0] {
        let (from, to) = (burst + 1.0, burst + 4.8);
        let allocated = samples(&r, "flow_samples", "flow", 0, "allocation_bps", from, to);
        assert!(allocated.iter().all(|a| *a >= 38e6), "burst at {burst}: {allocated:?}");
        assert_near(goodput(&r, 0, from, to), 40.0, 0.03);
        assert!(goodput(&r, 1, from, to) >= 50.0 * PAYLOAD);
    }
}
