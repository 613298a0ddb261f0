//! Tests of queues and links. Each measured value is compared with the value that theory predicts.

use crate::common::*;
use narrows_control::units::{Bytes, Rate, Span, Time};
use narrows_sim::plan::{
    AppPlan, HtbClassPlan, JitterPlan, LimitPlan, LossPlan, MarkPlan, Plan, PolicerPlan, QueuePlan, RatePlan,
};

fn codel(ecn: bool) -> QueuePlan {
    QueuePlan::Codel { limit: packets(1000), target: ms(5), interval: ms(100), ecn }
}

fn fq_codel() -> QueuePlan {
    QueuePlan::FqCodel {
        limit: packets(10_240),
        target: ms(5),
        interval: ms(100),
        quantum: Bytes::new(1514),
        queues: 1024,
        ecn: false,
    }
}

#[test]
fn a_fifo_holds_exactly_its_limit_and_drops_the_rest() {
    // 20 Mbit/s arrive at a link of 10 Mbit/s. The queue holds 50 packets, and the transmission of a packet
    // takes 1.2 ms.
    let mut plan = path(mbit(10), ms(0), fifo(packets(50)), 10);
    plan.flows = vec![udp(mbit(20))];
    let r = run(&plan);
    assert!((r.f("links", "drop_rate", 0) - 0.5).abs() < 0.01);
    assert!((r.f("links", "sojourn_max_s", 0) - 50.0 * 0.0012).abs() < 0.0013);
    assert!(r.all("link_samples", "t_s").len() > 900);
}

#[test]
fn a_limit_in_bytes_counts_bytes() {
    let mut plan =
        path(mbit(10), ms(0), fifo(LimitPlan { packets: None, bytes: Some(Bytes::new(15_000)) }), 5);
    plan.flows = vec![udp(mbit(20))];
    let r = run(&plan);
    assert!((r.f("links", "sojourn_max_s", 0) - 10.0 * 0.0012).abs() < 0.0013, "ten packets of 1500 bytes");
}

#[test]
fn a_reno_flow_fills_a_buffer_of_a_bandwidth_delay_product() {
    // The BDP is 20 Mbit/s x 50 ms = 83 packets.
    let mut plan = path(mbit(20), ms(50), fifo(packets(83)), 60);
    plan.warmup = Span::from_secs(10);
    plan.flows = vec![bulk("reno")];
    let r = run(&plan);
    assert!(r.f("links", "utilisation", 0) > 0.985, "{}", r.f("links", "utilisation", 0));
}

/// MET-13: in this network, the whole queueing delay is in the direction of the data, and the whole
/// propagation delay in the other direction.
#[test]
fn the_one_way_delay_is_the_part_of_the_rtt_in_the_direction_of_the_data() {
    let mut plan = path(mbit(20), ms(50), fifo(packets(83)), 20);
    plan.warmup = Span::from_secs(10);
    plan.flows = vec![bulk("cubic"), udp(mbit(1))];
    let r = run(&plan);
    let (delay, rtt) = (r.f("flows", "delay_mean_s", 0), r.f("flows", "rtt_mean_s", 0));
    let queued = r.f("links", "sojourn_mean_s", 0) + 1500.0 / mbit(20).as_f64();
    assert!(delay > 0.005 && (delay - queued).abs() < 0.05 * queued, "{delay}, {queued}");
    // The difference can exceed 50 ms, because the receiver delays some ACKs until a second segment arrives.
    assert!((0.050..0.052).contains(&(rtt - delay)), "{rtt}, {delay}");
    assert!(r.f("flows", "delay_mean_s", 1).is_nan(), "the delay of UDP is not measured");
}

#[test]
fn codel_keeps_the_sojourn_time_near_its_target() {
    let mut plan = path(mbit(20), ms(50), codel(false), 60);
    plan.warmup = Span::from_secs(10);
    plan.flows = vec![bulk("reno")];
    let r = run(&plan);
    let median = r.f("links", "sojourn_p50_s", 0);
    assert!(median < 0.010, "{median}");
    assert!(r.f("links", "sojourn_p95_s", 0) < 0.030);
    assert!(r.f("links", "utilisation", 0) > 0.80, "{}", r.f("links", "utilisation", 0));
    assert!(r.u("links", "dropped_packets", 0) > 5);
}

#[test]
fn codel_drops_an_unresponsive_flow_at_a_growing_rate() {
    // RFC 8289 section 4.3: the gap after the n-th drop is interval/sqrt(n). The sojourn time exceeds the target after
    // 0.03 s, and the first drop occurs an interval (0.1 s) later. 12 Mbit/s arrive at a link of 10 Mbit/s, so the
    // sojourn time does not fall below the target within 2 s.
    let mut plan = path(mbit(10), ms(0), codel(false), 2);
    plan.flows = vec![udp(mbit(12))];
    let r = run(&plan);
    let (mut t, mut n) = (0.030 + 0.1, 0u64);
    while t < 2.0 {
        n += 1;
        t += 0.1 / (n as f64).sqrt();
    }
    let dropped = r.u("links", "dropped_packets", 0);
    assert!(dropped.abs_diff(n) <= 3, "{dropped} drops, the law says {n}");
}

#[test]
fn codel_marks_ecn_flows_and_drops_none_of_their_packets() {
    let mut plan = path(mbit(20), ms(50), codel(true), 20);
    plan.flows = vec![flow(ecn("reno"), AppPlan::Bulk)];
    let r = run(&plan);
    assert_eq!((r.u("links", "dropped_packets", 0), r.u("flows", "retransmits", 0)), (0, 0));
    assert!(r.u("links", "marks", 0) > 5);
    assert!(r.f("links", "utilisation", 0) > 0.80, "{}", r.f("links", "utilisation", 0));
}

#[test]
fn fq_codel_shares_equally_between_unequal_flows() {
    let mut plan = path(mbit(30), ms(40), fq_codel(), 10);
    plan.warmup = Span::from_secs(2);
    plan.flows = vec![udp(mbit(15)), udp(mbit(30)), udp(mbit(60))];
    let r = run(&plan);
    for i in 0..3 {
        let share = r.goodput(i) * 1500.0 / 1472.0;
        assert!((share - 10.0).abs() < 0.1, "flow {i}: {share} Mbit/s");
    }
}

#[test]
fn fq_codel_protects_tcp_from_a_flood() {
    let mut plan = path(mbit(30), ms(40), fq_codel(), 30);
    plan.warmup = Span::from_secs(5);
    plan.flows = vec![bulk("reno"), bulk("cubic"), udp(mbit(40))];
    let r = run(&plan);
    for i in 0..2 {
        assert!(r.goodput(i) > 0.8 * 9.65, "flow {i}: {} Mbit/s of 9.65", r.goodput(i));
    }
}

#[test]
fn fq_codel_lets_a_sparse_flow_overtake_the_others() {
    let mut plan = path(mbit(10), ms(40), fq_codel(), 20);
    let sparse = AppPlan::Limited { rate: Rate::from_bits_per_sec(200_000), on: None, off: None };
    plan.flows = vec![udp(mbit(50)), flow(tcp("reno"), sparse)];
    let r = run(&plan);
    assert!((r.goodput(1) / 0.2 - 1.0).abs() < 0.03, "{}", r.goodput(1));
    // The RTT of the path is 40 ms. A delayed ACK adds at most 40 ms. Two transmissions add at most 4 ms: the rest of
    // the packet that is being sent, and the flow's own packet.
    assert!(r.f("flows", "rtt_p95_s", 1) < 0.040 + 0.040 + 0.004, "{}", r.f("flows", "rtt_p95_s", 1));
    assert_eq!(r.u("flows", "retransmits", 1), 0);
}

#[test]
fn red_keeps_the_queue_between_its_thresholds_and_marks_instead_of_dropping() {
    let mark = MarkPlan::Red { min: 20.0, max: 60.0, max_p: 0.1, weight: 0.002, ecn: true };
    let mut plan = path(mbit(20), ms(50), QueuePlan::Fifo { limit: packets(400), mark }, 40);
    plan.warmup = Span::from_secs(10);
    plan.flows = (0..8).map(|_| flow(ecn("reno"), AppPlan::Bulk)).collect();
    let r = run(&plan);
    assert!(r.u("links", "marks", 0) > 50);
    let mean = r.f("links", "backlog_mean_packets", 0);
    assert!((15.0..70.0).contains(&mean), "{mean}");
    // A few drops are possible: in the slow start of the eight flows, the queue may exceed twice the upper threshold.
    assert!(r.f("links", "drop_rate", 0) < 0.01);
}

#[test]
fn packets_that_arrive_above_the_threshold_are_marked() {
    let mark = MarkPlan::Threshold { packets: 20 };
    let mut plan = path(mbit(20), ms(20), QueuePlan::Fifo { limit: packets(1000), mark }, 20);
    plan.warmup = Span::from_secs(5);
    plan.flows = vec![flow(ecn("reno"), AppPlan::Bulk)];
    let r = run(&plan);
    assert_eq!(r.u("links", "dropped_packets", 0), 0);
    assert!(r.u("links", "marks", 0) > 5);
    let longest = r.f("links", "sojourn_max_s", 0) / 0.0006;
    assert!((20.0..50.0).contains(&longest), "{longest} packets at most");
}

#[test]
fn strict_priority_starves_the_lower_band() {
    let queue = QueuePlan::Priority { classes: vec![packets(50), packets(50)] };
    let mut plan = path(mbit(10), ms(0), queue, 10);
    plan.flows = vec![udp(mbit(8)), udp(mbit(8))];
    plan.flows[1].class = 1;
    let r = run(&plan);
    assert!((r.f("flows", "goodput_bps", 0) / 1e6 - 8.0 * 1472.0 / 1500.0).abs() < 0.05);
    assert!((r.goodput(1) - 2.0 * 1472.0 / 1500.0).abs() < 0.1, "{}", r.goodput(1));
}

fn htb(classes: [(u64, u64); 2]) -> QueuePlan {
    let class =
        |(rate, ceil)| HtbClassPlan { rate: mbit(rate), ceil: mbit(ceil), limit: packets(100), priority: 0 };
    QueuePlan::Htb { classes: classes.map(class).to_vec() }
}

fn two_classes(queue: QueuePlan, first: u64, second: u64) -> [f64; 2] {
    let mut plan = path(mbit(10), ms(0), queue, 10);
    plan.warmup = Span::from_secs(1);
    plan.flows = vec![udp(mbit(first)), udp(mbit(second))];
    plan.flows[1].class = 1;
    let r = run(&plan);
    [0, 1].map(|i| r.goodput(i) * 1500.0 / 1472.0)
}

fn near(got: [f64; 2], wanted: [f64; 2]) {
    let is_near = got.iter().zip(wanted).all(|(g, w)| (g - w).abs() < 0.03 * w + 0.05);
    assert!(is_near, "{got:?} Mbit/s, expected {wanted:?}");
}

#[test]
fn htb_gives_each_class_its_rate() {
    near(two_classes(htb([(7, 10), (3, 10)]), 20, 20), [7.0, 3.0]);
}

#[test]
fn htb_lends_unused_capacity() {
    near(two_classes(htb([(7, 10), (3, 10)]), 2, 20), [2.0, 8.0]);
}

#[test]
fn htb_keeps_a_class_below_its_ceiling() {
    near(two_classes(htb([(7, 10), (2, 4)]), 2, 20), [2.0, 4.0]);
}

#[test]
fn htb_divides_the_remaining_capacity_by_rates() {
    // The classes have guarantees of 4 and 2 Mbit/s, so 4 Mbit/s of the link remain. The classes borrow these 4 Mbit/s
    // in proportion to their quanta. A quantum is proportional to the class's rate, but it is at least one packet.
    let got = two_classes(htb([(4, 10), (2, 10)]), 20, 20);
    near(got, [20.0 / 3.0, 10.0 / 3.0]);
}

#[test]
fn borrowed_bytes_are_not_charged_later() {
    // In the first 5 s, the first class uses the whole link, so it borrows 4 Mbit/s. Then the second class starts. The
    // guarantees of the two classes leave 2 Mbit/s, which must be divided 3 to 1. The earlier borrowing of the first
    // class must have no effect.
    let mut plan = path(mbit(10), ms(0), htb([(6, 10), (2, 10)]), 6);
    plan.warmup = ms(5_100);
    plan.flows = vec![udp(mbit(20)), udp(mbit(20))];
    plan.flows[1].start = at(5_000);
    plan.flows[1].class = 1;
    let r = run(&plan);
    near([0, 1].map(|i| r.goodput(i) * 1500.0 / 1472.0), [7.5, 2.5]);
}

#[test]
fn a_link_with_a_changing_rate_carries_the_mean_rate() {
    let mut plan = path(mbit(10), ms(0), fifo(packets(20)), 10);
    let steps = vec![(Time::ZERO, mbit(10)), (at(500), mbit(2))];
    plan.links[0].rate = RatePlan::Steps { steps, period: Some(Span::from_secs(1)) };
    plan.flows = vec![udp(mbit(20))];
    let r = run(&plan);
    assert!((r.goodput(0) * 1500.0 / 1472.0 - 6.0).abs() < 0.05, "{}", r.goodput(0));
    assert!((r.f("links", "capacity_bps", 0) / 6e6 - 1.0).abs() < 1e-6);
    assert!(r.f("links", "utilisation", 0) > 0.99 && r.f("links", "utilisation", 0) < 1.003);
}

#[test]
fn a_mahimahi_trace_serves_all_its_opportunities() {
    // In each period of 10 ms, the link can send ten packets, all of them in the last millisecond of the period. This
    // gives 12 Mbit/s.
    let mut plan = path(mbit(10), ms(0), fifo(packets(50)), 5);
    plan.links[0].rate = RatePlan::Opportunities { millis: vec![10; 10], period_millis: 10, bytes: 1500 };
    plan.flows = vec![udp(mbit(20))];
    let r = run(&plan);
    assert!((r.goodput(0) * 1500.0 / 1472.0 - 12.0).abs() < 0.05, "{}", r.goodput(0));
    assert!((r.f("links", "utilisation", 0) - 1.0).abs() < 0.01);
}

#[test]
fn the_delay_changes_at_its_step() {
    let mut plan = path(mbit(100), ms(20), fifo(packets(100)), 4);
    plan.links[1].delay = vec![(Time::ZERO, ms(20)), (at(2_000), ms(60))];
    plan.flows = vec![flow(tcp("reno"), AppPlan::Limited { rate: mbit(2), on: None, off: None })];
    let r = run(&plan);
    let (t, rtt) = (r.all("flow_samples", "t_s"), r.all("flow_samples", "rtt_s"));
    let mean = |from: f64, to: f64| {
        let of: Vec<f64> =
            t.iter().zip(&rtt).filter(|(t, _)| **t > from && **t < to).map(|(_, r)| *r).collect();
        of.iter().sum::<f64>() / of.len() as f64
    };
    let rise = mean(2.5, 4.0) - mean(0.5, 1.9);
    assert!((rise - 0.040).abs() < 0.002, "{rise}");
}

fn lossy(loss: LossPlan) -> (f64, f64) {
    let mut plan = path(mbit(100), ms(0), fifo(packets(100)), 10);
    plan.links[0].loss = vec![(Time::ZERO, loss)];
    plan.flows = vec![udp(mbit(50))];
    let r = run(&plan);
    (r.u("links", "random_losses", 0) as f64, r.u("links", "offered_packets", 0) as f64)
}

#[test]
fn random_loss_has_the_mean_rate_of_its_model() {
    let (lost, offered) = lossy(LossPlan::Bernoulli { p: 0.02 });
    assert!((lost / offered - 0.02).abs() < 3.0 * (0.02 * 0.98 / offered).sqrt(), "{lost} of {offered}");
    // The stationary probability of the bad state is p/(p+r) = 0.01/0.26. Losses come in bursts, so the measured loss
    // rate varies more than with independent losses.
    let (lost, offered) = lossy(LossPlan::GilbertElliott { p: 0.01, r: 0.25, good: 0.0, bad: 0.5 });
    let mean = 0.01 / 0.26 * 0.5;
    assert!((lost / offered / mean - 1.0).abs() < 0.15, "{} for {mean}", lost / offered);
}

#[test]
fn a_policer_passes_its_burst_and_then_its_rate() {
    // The flow sends 20 Mbit/s for 10 s. The policer passes 5 Mbit/s and a burst of 1 MB. In the results, packets
    // that the policer drops count as random losses.
    let mut plan = path(mbit(100), ms(0), fifo(packets(1000)), 10);
    plan.links[0].policer = Some(PolicerPlan { rate: mbit(5), burst: Bytes::new(1_000_000) });
    plan.flows = vec![udp(mbit(20))];
    let r = run(&plan);
    let passed = (10 * 5_000_000 / 8 + 1_000_000) / 1500;
    let arrived = r.counts.delivered_packets;
    assert!(arrived.abs_diff(passed) <= 2, "{arrived} instead of {passed}");
    let links = r.table("links").unwrap();
    let lost = links.u64("random_losses").unwrap()[0];
    assert!((arrived + lost).abs_diff(10 * 20_000_000 / 8 / 1500) <= 2, "{lost} lost");
}

#[test]
fn acks_on_an_aggregating_link_arrive_in_bursts_and_cubic_still_fills_the_link() {
    let mut plan = path(mbit(20), ms(20), fifo(packets(200)), 20);
    plan.links[1].aggregation = Some(ms(10));
    plan.flows = vec![bulk("cubic")];
    let r = run(&plan);
    assert!(utilisation(&r) > 0.95, "{}", utilisation(&r));
    let flows = r.table("flows").unwrap();
    // An ACK waits for up to 10 ms at the aggregating link.
    let shortest = flows.f64("min_rtt_s").unwrap()[0];
    assert!((0.020..0.031).contains(&shortest), "{shortest}");
}

#[test]
fn duplicates_arrive_and_count_once_for_tcp() {
    let mut plan = path(mbit(20), ms(20), fifo(packets(5_000)), 30);
    plan.links[0].duplicate = 0.1;
    plan.flows = vec![sized("cubic", 5_000_000)];
    let r = run(&plan);
    assert_eq!(r.u("flows", "delivered_bytes", 0), 5_000_000);
    let copies = r.counts.delivered_packets as f64 / r.u("flows", "sent_packets", 0) as f64;
    assert!((copies - 1.1).abs() < 0.02, "{copies}");
    assert_eq!(r.u("flows", "retransmits", 0), 0, "{}", r.u("links", "dropped_packets", 0));
}

fn jittered(reorder: bool) -> Plan {
    let mut plan = path(mbit(20), ms(40), fifo(packets(500)), 20);
    plan.links[0].jitter = Some(JitterPlan { max: ms(8), reorder });
    plan.flows = vec![sized("reno", 20_000_000)];
    plan
}

#[test]
fn jitter_without_reordering_causes_no_retransmission() {
    let r = run(&jittered(false));
    assert_eq!(r.u("flows", "delivered_bytes", 0), 20_000_000);
    let lost = r.u("links", "dropped_packets", 0);
    assert_eq!(r.u("flows", "retransmits", 0), lost, "only dropped packets are retransmitted");
}

#[test]
fn tcp_adapts_to_reordering_and_keeps_its_throughput() {
    let with = run(&jittered(true));
    let without = run(&jittered(false));
    assert_eq!(with.u("flows", "delivered_bytes", 0), 20_000_000);
    let ratio = with.f("flows", "fct_s", 0) / without.f("flows", "fct_s", 0);
    assert!(ratio < 1.2, "{ratio}");
}

#[test]
fn dctcp_keeps_a_marking_queue_near_its_threshold_and_the_link_full() {
    // RFC 8257 section 3.1: the threshold K must be above C x RTT / 7. Here, 100 Mbit/s x 20 ms / 7 = 24 packets.
    let queue = |mark| QueuePlan::Fifo { limit: packets(1000), mark };
    let mut plan = path(mbit(100), ms(20), queue(MarkPlan::Threshold { packets: 30 }), 30);
    plan.warmup = Span::from_secs(5);
    // The plan does not enable ECN, but DCTCP does.
    plan.flows = vec![bulk("dctcp"), bulk("dctcp")];
    let r = run(&plan);
    let threshold = 30.0 * 120e-6;
    let median = r.f("links", "sojourn_p50_s", 0);
    assert!(utilisation(&r) > 0.99, "{}", utilisation(&r));
    assert!(
        (0.5 * threshold..1.3 * threshold).contains(&median),
        "{median} s, the threshold is {threshold} s"
    );
    assert!(r.f("links", "sojourn_p95_s", 0) < 2.0 * threshold);
    assert_eq!(r.u("links", "dropped_packets", 0), 0);
}
