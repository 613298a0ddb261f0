//! Tests known laws of congestion control: the goodput with random loss, the end of slow start, the effect of the
//! receive buffer, and the shares and queues of Copa.

use crate::common::*;
use narrows_control::catalogue::Choice;
use narrows_control::parameter::Value;
use narrows_control::units::{Bytes, Span, Time};
use narrows_sim::plan::{LossPlan, Plan, TransportPlan};

/// Returns a plan with one flow over a fast link that loses packets at random.
fn lossy(cc: &str, p: f64, rtt: u64) -> Plan {
    let mut plan = path(mbit(1_000), ms(rtt), fifo(packets(100_000)), 200);
    plan.warmup = Span::from_secs(10);
    plan.links[0].loss = vec![(Time::ZERO, LossPlan::Bernoulli { p })];
    plan.flows = vec![bulk(cc)];
    plan.probes.interval = Span::ZERO;
    plan
}

fn mbits(window: f64, rtt: u64) -> f64 {
    window * 1448.0 * 8.0 / (rtt as f64 * 1_000.0)
}

/// Mathis et al. 1997: the mean window is sqrt(3/(2p)) segments. The paper's factor for delayed ACKs does not apply,
/// because Linux counts acknowledged segments, not ACKs.
fn square_root_law(p: f64) -> f64 {
    (1.5 / p).sqrt()
}

/// RFC 9438 section 5.1 equation 6 with C = 0.4 and beta = 0.7. CUBIC is at least as fast as Reno (section 4.3).
fn cubic_law(p: f64, rtt: u64) -> f64 {
    let rtt = rtt as f64 / 1e3;
    (1.054 * libm::pow(rtt / p, 0.75)).max(square_root_law(p))
}

fn assert_law(cc: &str, p: f64, rtt: u64, window: f64, low: f64, high: f64) {
    let r = run(&lossy(cc, p, rtt));
    let ratio = r.goodput(0) / mbits(window, rtt);
    assert!((low..high).contains(&ratio), "{cc}, p {p}, {rtt} ms: {ratio:.2} of the law");
    assert!(r.u("flows", "timeouts", 0) <= 1, "{} timeouts", r.u("flows", "timeouts", 0));
    assert_eq!(r.u("flows", "spurious", 0), 0);
}

#[test]
fn reno_follows_the_square_root_law() {
    for p in [0.001, 0.005, 0.01, 0.02] {
        for rtt in [20, 40, 100] {
            assert_law("reno", p, rtt, square_root_law(p), 0.85, 1.12);
        }
    }
}

#[test]
fn cubic_follows_its_response_function() {
    for (p, rtt) in [(0.0001, 100), (0.001, 20), (0.001, 100), (0.005, 40), (0.01, 40)] {
        assert_law("cubic", p, rtt, cubic_law(p, rtt), 0.8, 1.2);
    }
}

/// At windows of eight segments, CUBIC loses a fifth of its goodput by integer arithmetic, as in Linux. The reduced
/// window 0.7 x 8 is rounded down to 5. In addition, the window is one round trip behind the Reno estimate, which matters
/// in a cycle of only six round trips.
#[test]
fn integer_arithmetic_costs_cubic_a_fifth_at_small_windows() {
    for rtt in [20, 40] {
        assert_law("cubic", 0.02, rtt, square_root_law(0.02), 0.7, 0.95);
    }
}

#[test]
fn bbr_keeps_its_goodput_with_random_loss() {
    let mut plan = lossy("bbr", 0.02, 40);
    plan.links[0] = link(0, 1, mbit(50), Span::ZERO, fifo(packets(500)));
    plan.links[0].loss = vec![(Time::ZERO, LossPlan::Bernoulli { p: 0.02 })];
    let r = run(&plan);
    assert!(r.goodput(0) > 0.9 * 50.0 * 0.98 * 1448.0 / 1500.0, "{}", r.goodput(0));
}

#[test]
fn hystart_leaves_slow_start_before_the_buffer_overflows() {
    // The BDP is 100 Mbit/s x 100 ms = 833 packets, and the buffer has the same size.
    let dropped = |cc| {
        let mut plan = path(mbit(100), ms(100), fifo(packets(833)), 2);
        plan.flows = vec![bulk(cc)];
        let r = run(&plan);
        (r.u("links", "dropped_packets", 0), r.goodput(0))
    };
    let (cubic, rate) = dropped("cubic");
    assert_eq!(cubic, 0);
    assert!(rate > 30.0, "slow start ends too early: {rate} Mbit/s in the first 2 s");
    assert!(dropped("reno").0 > 100, "without HyStart, slow start overshoots by a window");
}

/// With `receive_memory`, a flow can send at most half of the size of the receive buffer in an RTT. Without
/// `receive_memory`, only the link limits the flow.
#[test]
fn a_receive_buffer_carries_half_of_itself_per_rtt() {
    let mut plan = path(mbit(100), ms(100), fifo(packets(100_000)), 20);
    (plan.receive_buffer, plan.warmup) = (Some(Bytes::new(300_000)), Span::from_secs(5));
    plan.flows = vec![bulk("reno")];
    let free = run(&plan).goodput(0);
    assert!(free > 96.0, "{free}");
    plan.receive_memory = true;
    let law = mbits((150_000_u32 / 1448).into(), 100);
    let held = run(&plan).goodput(0);
    assert!((0.98..=1.0).contains(&(held / law)), "{held} Mbit/s, the law says {law}");
}

#[test]
fn memory_for_out_of_order_segments_slows_bbr_down() {
    let goodput = |buffer: u64| {
        let mut plan = lossy("bbr", 0.02, 100);
        plan.links[0].rate = constant(mbit(100));
        (plan.receive_buffer, plan.receive_memory, plan.duration) =
            (Some(Bytes::new(buffer)), true, Span::from_secs(30));
        run(&plan).goodput(0)
    };
    // The receive window is half of the buffer of 3 MiB. It is larger than the BDP of 1.25 MB, so it would suffice
    // without loss. With loss, segments that wait for a lost segment take a part of the buffer.
    let (wide, narrow) = (goodput(64 << 20), goodput(3 << 20));
    assert!(wide > 90.0 && narrow < 0.8 * wide, "{wide} {narrow}");
}

/// Arun and Balakrishnan 2018, section 3: the queue of n flows oscillates between 0 and 2.5 n/delta packets, and the
/// flows have equal rates.
#[test]
fn flows_of_copa_share_a_link_with_one_over_delta_packets_each_in_the_queue() {
    for n in [2, 4] {
        let mut plan = path(mbit(48), ms(80), fifo(packets(1_000)), 60);
        plan.warmup = Span::from_secs(20);
        plan.flows = vec![group("copa", n, 1_000)];
        let r = run(&plan);
        let shares: Vec<f64> = (0..n as usize).map(|i| r.goodput(i)).collect();
        // The transmission of a packet takes 0.25 ms.
        let queue = r.f("links", "sojourn_mean_s", 0) / 0.25e-3;
        println!("{shares:.2?} Mbit/s, {queue:.1} packets queued");
        assert!(jain(&shares) > 0.97, "{shares:.2?}");
        assert!(shares.iter().sum::<f64>() > 0.97 * 48.0 * 1448.0 / 1500.0, "{shares:.2?}");
        assert!((0.5..2.5).contains(&(queue * 0.5 / f64::from(n))), "{queue:.1} packets queued");
    }
}

/// Arun and Balakrishnan 2018, section 2.2: CUBIC fills the buffer. Without the competitive mode, Copa leaves most of
/// the link to CUBIC.
#[test]
fn copa_keeps_a_share_beside_cubic_only_in_competitive_mode() {
    let share = |compete: bool| {
        let mut plan = path(mbit(48), ms(50), fifo(packets(200)), 60);
        plan.warmup = Span::from_secs(10);
        plan.flows = vec![bulk("copa"), bulk("cubic")];
        if let TransportPlan::Tcp { cc, .. } = &mut plan.flows[0].transport {
            *cc = Choice::from("copa").with("compete", Value::Flag(compete));
        }
        let r = run(&plan);
        r.goodput(0) / (r.goodput(0) + r.goodput(1))
    };
    let (competing, alone) = (share(true), share(false));
    println!("{competing:.3} {alone:.3}");
    assert!(competing > 0.25 && alone < 0.1, "{competing:.3} and {alone:.3} of the link");
}
