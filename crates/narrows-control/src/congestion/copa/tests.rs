use super::*;
use crate::congestion::harness::{self, Sender, ack_at, connection, periodic_loss};
use crate::congestion::{Ack, RateSample};

const RTT: u64 = 100;

/// Copa and a path whose RTT the test chooses.
struct Script {
    copa: Copa,
    window: Window,
    now: Time,
    delivered: u64,
}

impl Script {
    /// Returns a connection in congestion avoidance with this window.
    fn new(params: Params, cwnd: u32) -> Self {
        let mut script = Script::starting(params);
        script.copa.slow_start = false;
        script.copa.cwnd = u64::from(cwnd) * UNIT;
        script.window.cwnd = cwnd;
        script.copa.velocity = Velocity::new(0, script.copa.cwnd);
        script
    }

    /// Returns a new connection.
    fn starting(params: Params) -> Self {
        let mut copa = Copa::new(params);
        let mut window = Window::new(10);
        copa.on_established(&connection(Some(Span::from_millis(RTT)), None), &mut window);
        Script { copa, window, now: Time::ZERO, delivered: 0 }
    }

    /// Passes an ACK of one segment with this RTT, `gap` after the previous ACK.
    fn ack(&mut self, rtt: u64, gap: Span) {
        self.now += gap;
        self.delivered += 1;
        let in_flight = u64::from(self.window.cwnd);
        let ack = Ack {
            delivered: self.delivered,
            prior_in_flight: self.window.cwnd,
            rtt: Some(Span::from_millis(rtt)),
            srtt: Span::from_millis(rtt),
            rate: RateSample {
                prior_delivered: self.delivered.saturating_sub(in_flight),
                ..RateSample::new(1, Span::from_millis(rtt))
            },
            ..ack_at(self.now)
        };
        self.copa.on_ack(&ack, &mut self.window);
    }

    /// Passes a window of ACKs, which takes one RTT.
    fn round(&mut self, rtt: u64) {
        let acks = self.window.cwnd;
        let gap = Span::from_millis(rtt).scale(1, u64::from(acks));
        (0..acks).for_each(|_| self.ack(rtt, gap));
    }

    fn rtt(&mut self, rtt: u64) {
        let start = self.copa.velocity.clone();
        while !self.copa.velocity.has_ended(&start) {
            self.ack(rtt, Span::from_millis(rtt).scale(1, u64::from(self.window.cwnd)));
        }
    }

    fn inverse_delta(&self) -> f64 {
        self.copa.mode.inverse_delta() as f64 / UNIT as f64
    }
}

fn with_delta(delta: f64) -> Params {
    Params { delta: (delta * f64::from(1 << 16)) as u32, ..Params::default() }
}

/// Section 2.1: over one RTT the window changes by about v/delta packets.
#[test]
fn the_window_changes_by_one_over_delta_packets_per_rtt() {
    for (delta, packets) in [(0.5, 2.0), (1.0, 1.0), (0.1, 10.0)] {
        let mut script = Script::new(with_delta(delta), 200);
        script.round(RTT);
        let grown = script.copa.cwnd as f64 / UNIT as f64 - 200.0;
        assert!((grown / packets - 1.0).abs() < 0.05, "delta {delta}: {grown}");
    }
}

/// RTTmin is 90 ms, RTTstanding is 100 ms, and delta is 0.5. The target is 1/(0.5 * 10 ms) = 200 packets per second, or
/// a window of 20.
#[test]
fn the_window_grows_up_to_the_target_and_shrinks_above_it() {
    for (cwnd, grows) in [(19, true), (20, true), (21, false)] {
        let mut script = Script::new(Params::default(), cwnd);
        let mut path = Path::new(Time::ZERO, Span::from_millis(90));
        let later = Time::ZERO + Span::from_secs(1);
        path.update(later, Span::from_millis(100), Span::from_millis(100), &script.copa.params);
        script.copa.path = Some(path);
        assert_eq!(script.copa.is_below_target(&path), grows, "window {cwnd}");
        script.now = later;
        script.ack(100, Span::from_micros(1));
        assert_eq!(script.copa.cwnd > u64::from(cwnd) * UNIT, grows, "window {cwnd}");
    }
}

/// Section 2.1, step 4: doubling starts only after the direction has remained the same for three RTTs.
#[test]
fn the_velocity_doubles_from_the_fourth_rtt_on_and_a_reversal_ends_it() {
    let mut velocity = Velocity::new(0, 1000);
    let mut window = 1000;
    let mut rtt = |step: i64| {
        window = (window as i64 + step) as u64;
        let mut ack = ack_at(Time::ZERO);
        ack.rate = RateSample { prior_delivered: u64::MAX, ..RateSample::new(1, Span::from_millis(1)) };
        assert!(velocity.on_ack(&ack, window, 100, 3));
        velocity.get()
    };
    let up: Vec<u64> = [1; 7].into_iter().map(&mut rtt).collect();
    assert_eq!(up, [1, 1, 1, 2, 4, 8, 16]);
    assert_eq!(rtt(-1), 1);
    assert_eq!(rtt(0), 1, "a constant window has no direction");
    let up: Vec<u64> = [1; 12].into_iter().map(&mut rtt).collect();
    assert_eq!(up[8..], [64, 100, 100, 100], "the window changes by at most its own size per RTT");
}

#[test]
fn a_reversal_within_an_rtt_ends_the_velocity_at_once() {
    let mut script = Script::new(Params::default(), 20);
    (0..6).for_each(|_| script.round(RTT));
    let mut velocity = script.copa.velocity.clone();
    let fast = velocity.get();
    velocity.turn(Ordering::Greater, script.delivered, script.copa.cwnd);
    assert!(fast > 1 && velocity.get() == fast, "{fast}");
    velocity.turn(Ordering::Less, script.delivered, script.copa.cwnd);
    assert_eq!(velocity.get(), 1);
}

#[test]
fn slow_start_doubles_the_window_per_rtt_until_the_target_is_reached() {
    let mut script = Script::starting(Params::default());
    for window in [20, 40, 80] {
        script.round(RTT);
        assert_eq!((script.window.cwnd, script.copa.slow_start), (window, true));
    }
    // With a queue of 5 ms, the target is 400 packets per second, or 42 packets per RTT. RTTstanding shows the queue
    // only after half an RTT.
    script.round(RTT + 5);
    assert!(!script.copa.slow_start);
    assert!((80..130).contains(&script.window.cwnd), "{}", script.window.cwnd);
    assert_eq!(script.window.ssthresh, script.window.ssthresh.min(script.window.cwnd));
}

/// Section 2.2: Copa is in default mode if dq < 0.1 (RTTmax - RTTmin) at some time in the last five RTTs.
#[test]
fn a_queue_that_is_not_empty_for_five_rtts_starts_the_competitive_mode() {
    let mut script = Script::new(Params::default(), 20);
    script.round(RTT);
    // RTTmin is 100 ms and RTTmax becomes 200 ms, so the queue is nearly empty up to an RTT of 110 ms.
    for _ in 0..5 {
        script.round(200);
        assert!(!script.copa.mode.is_competitive());
    }
    script.round(200);
    assert!(script.copa.mode.is_competitive());
    script.round(112);
    assert!(script.copa.mode.is_competitive(), "12 ms of a range of 100 ms count as a queue");
    script.round(109);
    assert!(!script.copa.mode.is_competitive(), "9 ms of a range of 100 ms do not count as a queue");
    assert_eq!(script.inverse_delta(), 2.0);
}

/// Section 2.2: 1/delta changes by AIMD, like the window of NewReno. delta is at most 0.5.
#[test]
fn in_competitive_mode_one_over_delta_grows_by_one_per_rtt_and_halves_at_a_loss() {
    let mut script = Script::new(Params::default(), 20);
    script.round(RTT);
    (0..6).for_each(|_| script.round(200));
    let before = script.inverse_delta();
    for _ in 0..8 {
        script.rtt(200);
    }
    let grown = script.inverse_delta();
    assert_eq!(grown, before + 8.0);
    let loss = Congestion::new(Signal::Loss, script.now);
    script.copa.on_congestion(&loss, &mut script.window);
    assert_eq!(script.inverse_delta(), grown / 2.0);
    script.rtt(200);
    assert_eq!(script.inverse_delta(), grown / 2.0, "no growth in the RTT of the loss");
    for _ in 0..3 {
        script.copa.on_lost(&Lost::new(script.now, 10), &script.window);
    }
    assert_eq!(script.inverse_delta(), grown / 4.0, "all losses of an RTT halve it once");
    for _ in 0..4 {
        script.rtt(200);
        script.copa.on_lost(&Lost::new(script.now, 10), &script.window);
    }
    assert_eq!(script.inverse_delta(), 2.0);
}

#[test]
fn without_competition_delta_is_constant() {
    let mut script = Script::new(Params { compete: false, ..Params::default() }, 20);
    script.round(RTT);
    for _ in 0..20 {
        script.round(200);
        assert_eq!((script.copa.mode.is_competitive(), script.inverse_delta()), (false, 2.0));
    }
}

#[test]
fn losses_leave_the_window_and_a_timeout_begins_again_with_slow_start() {
    let mut script = Script::new(Params::default(), 40);
    script.round(RTT);
    let window = script.window.clone();
    script.copa.on_congestion(&Congestion::new(Signal::Loss, script.now), &mut script.window);
    assert_eq!(script.window, window);
    script.copa.on_congestion(&Congestion::new(Signal::Timeout, script.now), &mut script.window);
    assert_eq!((script.window.cwnd, script.window.ssthresh), (2, INFINITE_SSTHRESH));
    script.round(RTT);
    assert_eq!(script.window.cwnd, 4);
    script.copa.on_undo(script.now, &mut script.window);
    assert_eq!(script.window.cwnd, window.cwnd, "the timeout was spurious");
}

/// Returns a Copa sender alone on a link of 12 Mbit/s, which transmits a packet in a millisecond.
fn alone(params: Params, rtt: u64) -> Sender {
    let path = harness::Path::new(Rate::from_bits_per_sec(12_000_000), rtt);
    Sender::new(Box::new(Copa::new(params)), path)
}

/// Section 3: the queue oscillates between 0 and 2.5/delta packets every five RTTs. The velocity stays 1.
#[test]
fn alone_it_fills_the_link_with_about_one_over_delta_packets_in_the_queue() {
    for delta in [0.5, 0.2, 0.1] {
        let mut sender = alone(with_delta(delta), 100);
        sender.run_for(Span::from_secs(20));
        let (delivered, queued) = (sender.delivered(), sender.queue_seconds());
        let mut reversals = 0;
        let mut competitive = 0;
        for _ in 0..400 {
            sender.run_for(Span::from_millis(100));
            reversals += u32::from(sender.figure("velocity") > 1.0);
            competitive += u32::from(sender.figure("competitive") > 0.0);
        }
        let share = (sender.delivered() - delivered) as f64 / 40_000.0;
        let mean = (sender.queue_seconds() - queued) / 40.0 * 1000.0;
        println!("delta {delta}: {share:.3}, {mean:.2} queued, {reversals} fast, {competitive} competitive");
        assert!(share > 0.97, "delta {delta}: {share:.3} of the link");
        // The queue oscillates between 0 and 2.5/delta. The mean of the queue includes the packet in transmission.
        assert!((0.8..2.0).contains(&(mean * delta)), "delta {delta}: {mean:.2} packets");
        assert!(reversals < 20, "delta {delta}: {reversals} RTTs with a velocity above 1");
        // The queue empties every five RTTs, which is just often enough for the default mode.
        assert!(competitive < 60, "delta {delta}: {competitive} of 400 RTTs in competitive mode");
    }
}

#[test]
fn it_fills_a_lossy_link() {
    let path = harness::Path {
        loss: periodic_loss(50),
        ..harness::Path::new(Rate::from_bits_per_sec(12_000_000), 50)
    };
    let mut sender = Sender::new(Box::new(Copa::default()), path);
    sender.run_for(Span::from_secs(10));
    let before = sender.delivered();
    sender.run_for(Span::from_secs(20));
    let share = (sender.delivered() - before) as f64 / 20_000.0;
    assert!(share > 0.95, "{share:.3} of the link carries data, 2 % is lost");
}

/// The rate of the path is halved, and later restored. The test disables competitive mode. Otherwise, the flow would
/// assume after the first change that another flow fills the queue.
#[test]
fn in_default_mode_it_follows_a_change_of_the_rate_within_some_rtts() {
    let mut sender = alone(Params { compete: false, ..Params::default() }, 50);
    sender.run_for(Span::from_secs(10));
    sender.path().rate = Rate::from_bits_per_sec(6_000_000);
    sender.run_for(Span::from_secs(3));
    let (delivered, queued) = (sender.delivered(), sender.queue_seconds());
    sender.run_for(Span::from_secs(5));
    let mean = (sender.queue_seconds() - queued) / 5.0 * 500.0;
    println!("{mean:.2} packets queued");
    assert!(mean < 6.0, "{mean:.2} packets queued");
    assert!((sender.delivered() - delivered) as f64 > 0.95 * 2_500.0);
    sender.path().rate = Rate::from_bits_per_sec(12_000_000);
    sender.run_for(Span::from_secs(3));
    let before = sender.delivered();
    sender.run_for(Span::from_secs(5));
    let share = (sender.delivered() - before) as f64 / 5_000.0;
    assert!(share > 0.97, "{share:.3} of the link");
}
