//! Measures the cost of each congestion controller per ACK.
//!
//! The path carries 100 Mbit/s at an RTT of at least 20 ms. The receiver acknowledges every second segment. The queue
//! fills and empties. One in 5000 segments is lost, and its repair takes one round trip. All controllers get the same
//! ACKs, regardless of the windows that they set. The benchmark measures the time that a decision takes, not the
//! quality of the decision.
//!
//! Run all controllers with `cargo bench -p narrows-control --bench ack`. Add the name of a controller to run only this
//! controller, for example under callgrind. The benchmark prints medians over batches. A batch takes a few
//! microseconds, so even on a busy machine, most batches are undisturbed. The benchmark asserts nothing about times.

use std::time::Instant;

use narrows_control::catalogue;
use narrows_control::congestion::{
    Ack, Congestion, Connection, Controller, Lost, RateSample, Recovery, Signal, State, Timestamps, Window,
};
use narrows_control::units::{Rate, Span, Time};

const ACKS: u64 = 200_000;
/// Number of ACKs in a batch. The ACKs are created outside of the measured time.
const BATCH: u64 = 250;
/// Number of segments per ACK.
const SEGMENTS: u32 = 2;
/// Time between two ACKs.
const GAP: Span = Span::from_micros(240);
const RTT: Span = Span::from_millis(20);
/// Number of ACKs per round trip.
const ROUND: u64 = 84;
/// Number of ACKs between two losses.
const EPISODE: u64 = 2_500;
/// Number of ACKs in one rise and fall of the queue.
const SWING: u64 = 500;

#[expect(clippy::disallowed_methods, reason = "a benchmark measures with the machine's clock")]
fn now() -> Instant {
    Instant::now()
}

/// Returns the `n`-th ACK.
fn ack(n: u64) -> Ack {
    let queued = n % SWING;
    let queue = Span::from_micros(20 * queued.min(SWING - queued));
    let delivered = u64::from(SEGMENTS) * n;
    let in_flight = SEGMENTS * ROUND as u32 + (queue.as_micros() / 120) as u32;
    let recovering = n > EPISODE && n % EPISODE < ROUND;
    let now = Time::ZERO + RTT + GAP.scale(n, 1);
    let mut ack = Ack::new(now, SEGMENTS);
    ack.lost = u32::from(n > 0 && n.is_multiple_of(EPISODE));
    ack.delivered = delivered;
    ack.total_lost = n / EPISODE;
    ack.snd_una = delivered;
    ack.snd_nxt = delivered + u64::from(in_flight);
    ack.prior_in_flight = in_flight + SEGMENTS;
    ack.in_flight = in_flight;
    ack.rtt = Some(RTT + queue);
    ack.srtt = RTT + queue;
    ack.min_rtt = RTT;
    ack.rate = RateSample::new(SEGMENTS * ROUND as u32, GAP.scale(ROUND, 1));
    ack.rate.prior_delivered = delivered.saturating_sub(u64::from(in_flight));
    ack.rate.tx_in_flight = in_flight;
    ack.state = if recovering { State::Recovery } else { State::Open };
    ack.feedback = Some(Rate::from_bits_per_sec(100_000_000));
    ack.timestamps = Some(Timestamps {
        value: Timestamps::clock(now - RTT.scale(1, 2)),
        echo: Timestamps::clock(now - (RTT + queue)),
    });
    ack
}

/// Reports the events before an ACK to the controller: a loss, or the end of loss recovery.
fn before(cc: &mut dyn Controller, ack: &Ack, n: u64, window: &mut Window) {
    if ack.lost > 0 {
        let mut lost = Lost::new(ack.now, ack.in_flight);
        lost.delivered = ack.delivered;
        cc.on_lost(&lost, window);
        let mut event = Congestion::new(Signal::Loss, ack.now);
        event.in_flight = ack.in_flight;
        event.srtt = ack.srtt;
        cc.on_congestion(&event, window);
    } else if n > EPISODE && n % EPISODE == ROUND {
        cc.on_recovered(ack.now, window);
    }
}

/// Returns the time per ACK for each batch, in nanoseconds, and the sum of the windows. The returned sum prevents the
/// compiler from removing the work.
fn run(cc: &mut dyn Controller) -> (Vec<f64>, u64) {
    let mut window = Window::new(10);
    let mut connection = Connection::new(Time::ZERO + RTT, 1500, Some(RTT));
    connection.feedback_possible = true;
    connection.seed = 1;
    cc.on_established(&connection, &mut window);
    let (mut sum, mut taken) = (0, Vec::new());
    for first in (0..ACKS).step_by(BATCH as usize) {
        let acks: Vec<Ack> = (first..first + BATCH).map(ack).collect();
        let start = now();
        for (n, ack) in (first..).zip(&acks) {
            if n % EPISODE == 0 || n % EPISODE == ROUND {
                before(cc, ack, n, &mut window);
            }
            cc.on_sample(ack);
            if ack.state == State::Open || cc.recovery() == Recovery::Controller {
                cc.on_ack(ack, &mut window);
            }
            sum += u64::from(window.cwnd);
        }
        taken.push(start.elapsed().as_nanos() as f64 / BATCH as f64);
    }
    (taken, sum)
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    for entry in catalogue::all() {
        if !wanted.is_empty() && !wanted.iter().any(|name| name == entry.name) {
            continue;
        }
        let (mut times, sum) = run(&mut *entry.build());
        assert!(sum > 0, "the work was done");
        times.sort_by(f64::total_cmp);
        let share = |part: f64| times[((times.len() - 1) as f64 * part) as usize];
        println!("{:<15} median {:>7.1} ns  99 % {:>7.1} ns", entry.name, share(0.5), share(0.99));
    }
}
