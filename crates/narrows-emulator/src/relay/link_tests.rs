//! Tests of the link model, without real packets.

use narrows_control::units::Rate;
use narrows_sim::plan::{JitterPlan, LossPlan, PolicerPlan, RatePlan};
use proptest::prelude::*;

use super::*;

fn plan() -> LinkPlan {
    LinkPlan {
        name: "A->B".into(),
        from: 0,
        to: 1,
        rate: RatePlan::Steps {
            steps: vec![(Time::ZERO, Rate::from_bits_per_sec(12_000_000))],
            period: None,
        },
        delay: vec![(Time::ZERO, Span::from_millis(10))],
        jitter: None,
        jitter_changes: Vec::new(),
        loss: Vec::new(),
        duplicate: 0.0,
        policer: None,
        aggregation: None,
        queue: QueuePlan::Fifo { limit: LimitPlan::default(), mark: MarkPlan::None },
    }
}

fn link(plan: &LinkPlan, model: RelayModel) -> Link {
    Link::new(plan, 7, 3, model, Time::ZERO).unwrap()
}

fn ms(n: u64) -> Time {
    Time::ZERO + Span::from_millis(n)
}

#[test]
fn a_step_of_the_delay_applies_from_its_time_on() {
    let mut p = plan();
    p.delay.push((ms(50), Span::from_millis(30)));
    let mut l = link(&p, RelayModel::Delay);
    // 1500 bytes take 1 ms at 12 Mbit/s, even if the kernel implements the queue.
    assert_eq!(l.offer(ms(48), 1500), Fate::Arrives { at: ms(59), is_duplicated: false });
    assert_eq!(l.offer(ms(49), 1500), Fate::Arrives { at: ms(80), is_duplicated: false });
    for n in [81, 82, 82] {
        let at = Fate::Arrives { at: ms(n), is_duplicated: false };
        assert_eq!(
            l.offer(ms(49), 1500),
            at,
            "packets of a burst leave one after the other, but wait for two at most"
        );
    }
    assert_eq!(l.delayed(ms(50)), ms(80), "housekeeping has the same delay");
}

#[test]
fn the_rate_model_serves_packets_in_order_and_drops_at_the_tail() {
    let mut p = plan();
    p.queue = QueuePlan::Fifo { limit: LimitPlan { packets: Some(2), bytes: None }, mark: MarkPlan::None };
    let mut l = link(&p, RelayModel::Rate);
    // 1500 bytes take 1 ms at 12 Mbit/s. One packet is in transmission, two packets wait, and the fourth packet does
    // not fit.
    let fates: Vec<Fate> = (0..4).map(|_| l.offer(ms(0), 1500)).collect();
    for (i, fate) in fates.iter().take(3).enumerate() {
        assert_eq!(*fate, Fate::Arrives { at: ms(11 + i as u64), is_duplicated: false });
    }
    assert_eq!(fates[3], Fate::Dropped);
    assert_eq!((l.stats.offered, l.stats.dropped, l.backlog(ms(0))), (4, 1, (2, 3000)));
    assert_eq!(l.backlog(ms(2)), (0, 0));
    let (sojourn, mean) = l.sojourn().unwrap();
    assert_eq!((mean, sojourn.quantile(1.0)), (0.001, 0.002));
}

#[test]
fn a_trace_driven_link_uses_its_opportunities() {
    let mut p = plan();
    p.rate = RatePlan::Opportunities { millis: vec![5, 20], period_millis: 20, bytes: 1500 };
    let mut l = link(&p, RelayModel::Rate);
    assert_eq!(l.offer(ms(0), 1500), Fate::Arrives { at: ms(15), is_duplicated: false });
    assert_eq!(l.offer(ms(0), 1500), Fate::Arrives { at: ms(30), is_duplicated: false });
}

#[test]
fn the_share_of_lost_packets_is_the_configured_one() {
    let mut p = plan();
    p.loss = vec![(Time::ZERO, LossPlan::Bernoulli { p: 0.02 })];
    let mut l = link(&p, RelayModel::Delay);
    let n = 100_000;
    for i in 0..n {
        l.offer(Time::from_nanos(i * 1000), 1500);
    }
    // The tolerance is five standard deviations of a binomial distribution.
    let deviation = (n as f64 * 0.02 * 0.98).sqrt();
    assert!((l.stats.lost as f64 - n as f64 * 0.02).abs() < 5.0 * deviation, "{}", l.stats.lost);
}

#[test]
fn the_losses_are_the_same_as_in_the_simulator() {
    let mut p = plan();
    p.loss = vec![(Time::ZERO, LossPlan::GilbertElliott { p: 0.05, r: 0.3, good: 0.0, bad: 0.8 })];
    let mut l = link(&p, RelayModel::Delay);
    let mut simulator = Impairments::new(&p, 7, 3).unwrap();
    for i in 0..2000 {
        let now = Time::from_nanos(i);
        assert_eq!(l.offer(now, 100) == Fate::Lost, simulator.draw_fate(now, Bytes::new(100)).is_lost);
    }
    assert!(l.stats.lost > 0);
}

#[test]
fn a_policer_and_aggregation_are_those_of_the_simulator() {
    let mut p = plan();
    // The policer accepts a burst of two packets, and one more packet every 3 ms. Aggregation lets packets arrive only
    // every 5 ms.
    p.policer = Some(PolicerPlan { rate: Rate::from_bits_per_sec(4_000_000), burst: Bytes::new(3000) });
    p.aggregation = Some(Span::from_millis(5));
    let mut l = link(&p, RelayModel::Delay);
    let mut simulator = Impairments::new(&p, 7, 3).unwrap();
    let mut lost = 0;
    for n in 0..100 {
        let (now, sent) = (ms(2 * n), ms(2 * n + 1)); // a packet takes 1 ms on the wire
        let expected = simulator.draw_fate(sent, Bytes::new(1500));
        let fate = match expected.is_lost {
            true => Fate::Lost,
            false => Fate::Arrives {
                at: sent + Span::from_millis(10) + expected.extra_delay,
                is_duplicated: false,
            },
        };
        assert_eq!(l.offer(now, 1500), fate);
        lost += u64::from(expected.is_lost);
    }
    // A packet arrives every 2 ms for 300 ms, and there are tokens for one packet every 3 ms.
    assert_eq!((l.stats.lost, lost), (32, 32));
}

#[test]
fn an_unsupported_queue_is_refused_by_name() {
    let mut p = plan();
    p.queue = QueuePlan::Priority { classes: vec![LimitPlan::default()] };
    let error = Link::new(&p, 1, 0, RelayModel::Rate, Time::ZERO).err().unwrap().to_string();
    assert!(error.contains("A->B") && error.contains("priority"), "{error}");
}

proptest! {
    #[test]
    fn packets_arrive_after_the_delay_and_before_delay_jitter_and_burst(
        gaps in prop::collection::vec(0u64..3_000_000, 1..60),
        jitter in 1u64..5_000_000,
    ) {
        let mut p = plan();
        p.jitter = Some(JitterPlan { max: Span::from_nanos(jitter), reorder: true });
        let mut l = link(&p, RelayModel::Delay);
        let mut now = 0;
        for gap in gaps {
            now += gap;
            let Fate::Arrives { at, .. } = l.offer(Time::from_nanos(now), 1500) else { panic!("lost") };
            let took = at.as_nanos() - now;
            // The packet's transmission takes 1 ms, and at most two other packets are transmitted before it.
            prop_assert!((11_000_000..=13_000_000 + jitter).contains(&took), "{}", took);
        }
    }
}
