use proptest::prelude::*;

use super::*;
use crate::congestion::INFINITE_SSTHRESH;
use crate::congestion::harness::{Path, Sender, ack_at, congestion, window};
use crate::units::Rate;

fn seconds(s: f64) -> Span {
    Span::from_secs_f64(s)
}

/// TV-S1. C is 410/1024 and windows are whole segments, so each value may be one segment low.
#[test]
fn the_curve_passes_through_the_points_of_the_test_vector() {
    let c = Params::default().c;
    let epoch = Epoch::new(Time::ZERO, 70, Some(100), c);
    let k = epoch.k as f64 / 1024.0;
    assert!((k - 4.2172).abs() < 0.003, "K = {k}");
    for (at, expected) in
        [(0.0, 70.0), (1.0, 86.68), (2.0, 95.64), (k, 100.0), (k + 1.0, 100.4), (8.0, 121.65)]
    {
        let got = f64::from(epoch.window_at(seconds(at), c));
        assert!((got - expected).abs() <= 1.0, "W({at}) = {got}, not {expected}");
    }
    let epoch = Epoch::new(Time::ZERO, 700, Some(1000), c);
    assert!((epoch.k as f64 / 1024.0 - 9.0856).abs() < 0.005);
    assert!(epoch.window_at(Span::ZERO, c).abs_diff(700) <= 1);
    assert!(epoch.window_at(seconds(1.0), c).abs_diff(788) <= 1);
}

#[test]
fn a_curve_of_centuries_saturates() {
    let epoch = Epoch::new(Time::ZERO, 70, Some(u32::MAX), 410);
    assert_eq!(epoch.window_at(Span::MAX, 410), u32::MAX);
}

#[test]
fn congestion_keeps_seven_tenths_and_fast_convergence_lowers_the_maximum() {
    let mut cubic = Cubic::default();
    let mut w = window(100);
    cubic.on_congestion(&congestion(Signal::Loss), &mut w);
    assert_eq!((w.ssthresh, cubic.w_max), (70, Some(100)));
    w.cwnd = 80;
    cubic.on_congestion(&congestion(Signal::Ecn), &mut w);
    assert_eq!((w.ssthresh, cubic.w_max), (56, Some(68)));
    w.cwnd = 1;
    cubic.on_congestion(&congestion(Signal::Loss), &mut w);
    assert_eq!(w.ssthresh, 2);
}

#[test]
fn a_timeout_discards_the_path() {
    let mut cubic = Cubic::default();
    cubic.on_congestion(&congestion(Signal::Timeout), &mut window(100));
    assert_eq!((cubic.w_max, cubic.delay_min), (None, None));
    assert!(cubic.epoch.is_none());
}

#[test]
fn before_the_first_loss_twenty_acks_add_a_segment() {
    let mut cubic = Cubic::default();
    let mut w = Window { ssthresh: 100, ..window(100) };
    for n in 0..400 {
        cubic.on_ack(&ack_at(Time::from_secs_f64(1.0 + f64::from(n) * 1e-4)), &mut w);
    }
    assert!((118..=120).contains(&w.cwnd), "window {}", w.cwnd);
}

#[test]
fn delays_right_after_congestion_are_ignored() {
    let mut cubic = Cubic::default();
    let mut w = window(100);
    let ack = |s, ms| Ack { rtt: Some(Span::from_millis(ms)), ..ack_at(Time::from_secs_f64(s)) };
    cubic.on_ack(&ack(1.0, 50), &mut w);
    cubic.on_ack(&ack(1.5, 10), &mut w);
    assert_eq!(cubic.delay_min, Some(Span::from_millis(50)));
    cubic.on_ack(&ack(2.1, 40), &mut w);
    assert_eq!(cubic.delay_min, Some(Span::from_millis(40)));
}

#[test]
fn the_cube_root_is_exact() {
    for root in [0u64, 1, 2, 1023, 1024, 2_642_245] {
        assert_eq!(cube_root(root * root * root), root);
        if root > 1 {
            assert_eq!(cube_root(root * root * root - 1), root - 1);
        }
    }
    assert_eq!(cube_root(u64::MAX), 2_642_245);
}

/// Real-valued CUBIC (RFC 9438 section 4), the reference for the integer arithmetic.
struct Reference {
    cwnd: f64,
    w_max: f64,
    k: f64,
    w_est: f64,
}

impl Reference {
    const C: f64 = 410.0 / 1024.0;
    const BETA: f64 = 717.0 / 1024.0;

    fn after_loss_at(w_max: f64) -> Self {
        let cwnd = w_max * Self::BETA;
        Reference { cwnd, w_max, k: libm::cbrt((w_max - cwnd) / Self::C), w_est: cwnd }
    }

    /// Passes the ACK of one segment, `t` seconds after the start of the epoch.
    fn on_ack(&mut self, t: f64, rtt: f64) {
        let offset = t + rtt - self.k;
        let cubic = self.w_max + Self::C * offset * offset * offset;
        let target = cubic.clamp(self.cwnd, 1.5 * self.cwnd);
        // The estimate of the Reno-friendly region uses the alpha of Linux's integers.
        self.w_est += 8.0 / 15.0 / self.cwnd;
        self.cwnd += ((target - self.cwnd) / self.cwnd).max((self.w_est - self.cwnd) / self.cwnd).max(0.0);
    }
}

/// Runs both versions of CUBIC for one sawtooth on the same ACK clock, with one window of ACKs per
/// RTT. Returns the mean and the largest difference of their windows, in segments.
fn differences(w_max: u32, rtt: f64) -> (f64, f64) {
    let mut cubic = Cubic::new(Params { hystart: None, ..Params::default() });
    let mut w = window(w_max);
    cubic.delay_min = Some(seconds(rtt));
    cubic.on_congestion(&congestion(Signal::Loss), &mut w);
    w.cwnd = w.ssthresh;
    let mut reference = Reference::after_loss_at(f64::from(w_max));
    reference.cwnd = f64::from(w.cwnd);
    reference.w_est = reference.cwnd;
    let start = 1.0;
    let (mut t, mut worst, mut sum) = (0.0, 0.0f64, 0.0);
    while reference.cwnd < 1.1 * f64::from(w_max) {
        cubic.on_ack(&Ack { acked: 1, cwnd_limited: true, ..ack_at(Time::from_secs_f64(start + t)) }, &mut w);
        reference.on_ack(t, rtt);
        let difference = (f64::from(w.cwnd) - reference.cwnd).abs();
        let step = rtt / reference.cwnd;
        worst = worst.max(difference);
        sum += difference * step;
        t += step;
    }
    (sum / t, worst)
}

/// The curve and the window are both rounded down, so the difference is sometimes two segments.
#[test]
fn integers_stay_within_a_segment_of_the_real_valued_cubic_over_a_sawtooth() {
    for (w_max, rtt) in [(20, 0.02), (50, 0.1), (100, 0.1), (200, 0.05), (500, 0.05)] {
        let (mean, worst) = differences(w_max, rtt);
        assert!(
            mean <= 1.0 && worst <= 2.0,
            "W_max {w_max}, RTT {rtt} s: {mean:.2} apart, at most {worst:.2}"
        );
    }
}

#[test]
fn an_idle_time_does_not_move_the_window_up_the_curve() {
    let mut cubic = Cubic::default();
    let mut w = window(100);
    cubic.on_congestion(&congestion(Signal::Loss), &mut w);
    w.cwnd = w.ssthresh;
    let at = |s| Time::from_secs_f64(s);
    let ack = |s| Ack { acked: 1, cwnd_limited: true, ..ack_at(at(s)) };
    cubic.on_ack(&ack(1.0), &mut w);
    cubic.on_restart(at(61.0), Span::from_secs(60), true, &mut w);
    cubic.on_ack(&ack(61.0), &mut w);
    let target = cubic.epoch.as_ref().map(|e| e.window_at(at(61.0).since(e.start), 410));
    assert!(target.is_some_and(|t| t <= 71), "target {target:?}");
}

#[test]
fn hystart_leaves_slow_start_before_a_deep_queue_overflows() {
    let path = Path { queue: 2000, ..Path::new(Rate::from_bits_per_sec(100_000_000), 40) };
    let mut sender = Sender::new(Box::new(Cubic::default()), path);
    sender.run_for(Span::from_secs(3));
    assert_eq!(sender.lost(), 0);
    assert!(sender.window().ssthresh < 1000, "ssthresh {}", sender.window().ssthresh);
    let path = Path { queue: 2000, ..Path::new(Rate::from_bits_per_sec(100_000_000), 40) };
    let mut plain = Sender::new(Box::new(Cubic::new(Params { hystart: None, ..Params::default() })), path);
    plain.run_for(Span::from_secs(3));
    assert!(plain.lost() > 500, "plain slow start lost {}", plain.lost());
}

#[test]
fn a_long_flow_fills_the_link_by_sawteeth() {
    let path = Path { queue: 333, ..Path::new(Rate::from_bits_per_sec(100_000_000), 40) };
    let mut sender = Sender::new(Box::new(Cubic::default()), path);
    sender.run_for(Span::from_secs(60));
    let share = sender.delivered() as f64 * 1500.0 * 8.0 / 60.0 / 1e8;
    assert!(share > 0.95, "utilisation {share:.3}");
    assert!(sender.lost() > 0);
    let w = sender.window();
    assert!(w.ssthresh < INFINITE_SSTHRESH && w.cwnd < 750);
}

proptest! {
    #[test]
    fn no_window_grows_by_more_than_half_per_window_of_acks(w_max in 4u32..5000, later in 0.0f64..200.0) {
        let mut cubic = Cubic::default();
        let mut w = window(w_max);
        cubic.on_congestion(&congestion(Signal::Loss), &mut w);
        w.cwnd = w.ssthresh;
        let ack = |s| Ack { acked: 1, cwnd_limited: true, ..ack_at(Time::from_secs_f64(s)) };
        cubic.on_ack(&ack(1.0), &mut w);
        let before = w.cwnd;
        for _ in 0..before {
            cubic.on_ack(&ack(1.0 + later), &mut w);
        }
        prop_assert!(w.cwnd <= before + before / 2 + 2, "{before} to {}", w.cwnd);
    }
}
