use super::*;
use crate::parameter::Reading;
use crate::units::Time;

const C: f64 = 12.5e6;

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9 * b.abs().max(1.0)
}

#[test]
fn tv_9_standing_queue() {
    for (packets, g, literal, resolved) in [
        (100, 20, 0.4, 0.4),
        (100, 40, 0.7, 0.7),
        (150, 40, 0.55, 0.55),
        (200, 20, -0.2, 0.05),
        (10_000, 40, -29.0, 0.05),
    ] {
        let (queued, g) = (Bytes::new(packets * 1500), Span::from_millis(g));
        assert!(close(queue_factor_literal(C, queued, g), literal), "{packets}");
        assert!(close(queue_factor(C, C, C, queued, g, 0.05), resolved), "{packets}");
    }
    let drain = 10_000.0 * 1500.0 / (C - 0.05 * C);
    assert!((drain - 1.263).abs() < 5e-4);
}

#[test]
fn tv_10_burst() {
    let factor = burst_factor_literal(C, 0.95, 14e6);
    assert_eq!((5e6 * factor).round(), 4_241_071.0);
    assert!(burst_factor_literal(C, 0.95, 6e6) > 1.0, "as printed it raises rates");
    assert_eq!(burst_factor(C, 0.95, 6e6), 1.0);
}

#[test]
fn tv_11_netcard_rate() {
    let rate = netcard_rate(8167, Bytes::new(1500), Span::from_secs(1), Rate::from_bits_per_sec(100_000_000));
    assert!((rate - 0.98004).abs() < 1e-9 && rate > 0.98);
}

#[test]
fn nothing_divides_by_zero() {
    assert_eq!(queue_factor(0.0, 0.0, 0.0, Bytes::new(1), Span::ZERO, 0.05), 1.0);
    assert_eq!(queue_factor_literal(0.0, Bytes::new(1), Span::ZERO), 1.0);
    assert_eq!(burst_factor(C, 0.98, 0.0), 1.0);
    assert_eq!(netcard_rate(5, Bytes::new(1500), Span::ZERO, Rate::ZERO), 0.0);
    assert_eq!(queue_utilisation((5, 0)), 0.0);
}

/// Returns a report of a port of 100 Mbit/s, whose whole capacity belongs to the rated class.
fn report(ms: u64, arrived: u64, departed_packets: u64, rated: u32, other: u32) -> Report {
    Report {
        port: 1,
        at: Time::ZERO + Span::from_millis(ms),
        capacity: Rate::from_f64(C),
        rated_share: Rate::from_f64(0.98 * C),
        rated_arrived: Bytes::new(arrived),
        rated_departed: Bytes::new(arrived),
        queued: Bytes::new(u64::from(rated + other) * 1500),
        departed: Bytes::new(departed_packets * 1500),
        departed_packets,
        rated_queued: Bytes::new(u64::from(rated) * 1500),
        rated_packets: (rated, 1000),
        all_packets: (rated + other, 3000),
        period: Span::from_millis(20),
    }
}

fn kinds(mode: Reading, reports: &[Report]) -> Vec<Option<CongestionKind>> {
    let params = if mode == Reading::Literal { Params::literal() } else { Params::resolved() };
    let thresholds = Thresholds::of(&params, Bytes::new(1500));
    let mut detector = Detector::default();
    reports.iter().map(|r| detector.observe(r, &thresholds).kind).collect()
}

#[test]
fn the_steady_state_at_eta_is_congested_only_in_literal_mode() {
    // 98 % of the link was allocated, and the departures are 98.1 % of the link. The literal rules report congestion
    // although there is none (TV-11, BRF-41).
    let steady: Vec<Report> = (0..5).map(|i| report(i * 20, i * 245_250, i * 164, 1, 0)).collect();
    assert_eq!(kinds(Reading::Literal, &steady)[1..], [Some(CongestionKind::Burst); 4]);
    assert_eq!(kinds(Reading::Resolved, &steady), [None; 5]);
}

#[test]
fn cubics_standing_queue_is_not_congestion_of_the_rated_class() {
    let reports = [report(0, 0, 0, 2, 900), report(20, 100_000, 166, 2, 900)];
    assert_eq!(kinds(Reading::Literal, &reports)[1], Some(CongestionKind::Queue));
    assert_eq!(kinds(Reading::Resolved, &reports), [None, None]);
}

#[test]
fn five_milliseconds_of_queue_and_two_percent_of_excess_are_congestion() {
    // A link of 100 Mbit/s sends 41.7 packets in 5 ms.
    assert_eq!(kinds(Reading::Resolved, &[report(0, 0, 0, 41, 0)]), [None]);
    assert_eq!(kinds(Reading::Resolved, &[report(0, 0, 0, 42, 0)]), [Some(CongestionKind::Queue)]);
    let share = 0.98 * C * 0.02;
    let after = |factor: f64| [report(0, 0, 0, 0, 0), report(20, (share * factor) as u64, 160, 0, 0)];
    assert_eq!(kinds(Reading::Resolved, &after(1.01)), [None, None]);
    assert_eq!(kinds(Reading::Resolved, &after(1.03)), [None, Some(CongestionKind::Burst)]);
}

/// A slow link sends only one or two packets in 5 ms. So the packets of two senders already form a queue with a delay
/// above 5 ms.
#[test]
fn a_few_packets_are_not_a_standing_queue_on_a_slow_link() {
    let slow = |queued| {
        let capacity = Rate::from_bits_per_sec(3_000_000);
        Report { capacity, rated_share: capacity, ..report(0, 0, 0, queued, 0) }
    };
    assert_eq!(kinds(Reading::Resolved, &[slow(7)]), [None]);
    assert_eq!(kinds(Reading::Resolved, &[slow(8)]), [Some(CongestionKind::Queue)]);
}

#[test]
fn arrivals_count_over_the_last_period_however_often_it_is_polled() {
    // The port is polled every ms. A burst of 15 packets between two polls is a small part of the arrivals of 20 ms.
    let mut arrived = 0;
    let reports: Vec<Report> = (0..60)
        .map(|ms| {
            arrived += if ms == 40 { 22_500 } else { 11_000 };
            report(ms, arrived, ms * 8, 0, 0)
        })
        .collect();
    assert!(kinds(Reading::Resolved, &reports)[20..].iter().all(Option::is_none));
}

#[test]
fn a_report_out_of_order_counts_only_for_the_queue() {
    let reports = [report(100, 5_000_000, 0, 0, 0), report(50, 0, 0, 0, 0), report(50, 1 << 40, 0, 0, 0)];
    assert_eq!(kinds(Reading::Resolved, &reports), [None; 3]);
}
