//! The phase margin of RCP's and XCP's loop in linear theory (RCP-6, XCP-6).
//!
//! The model has N flows of equal RTT d on one link with a queue that is never empty. With x = omega * d, the
//! open-loop transfer function is L = exp(-jx) * (alpha * jx + beta) / (jx)^2. This function does not depend on d, N
//! or the capacity.

use core::f64::consts::{FRAC_PI_2, PI, SQRT_2};

/// Returns the phase margin in radians for continuous updates (T -> 0). With a negative margin, small disturbances
/// grow.
pub(super) fn margin(alpha: f64, beta: f64) -> f64 {
    let square = alpha * alpha;
    let crossover = ((square + (square * square + 4.0 * beta * beta).sqrt()) / 2.0).sqrt();
    libm::atan2(alpha * crossover, beta) - crossover
}

/// Returns the beta at which the margin is zero.
pub(super) fn beta_max(alpha: f64) -> f64 {
    let (mut stable, mut unstable) = (0.0, 2.0);
    for _ in 0..60 {
        let middle = (stable + unstable) / 2.0;
        if margin(alpha, middle) > 0.0 { stable = middle } else { unstable = middle }
    }
    stable
}

/// Returns whether a disturbance decays with one update per RTT (T = d; ours).
///
/// Let y(k) be the rate in interval k, divided by C, and let q(k) be the queue at the end of interval k, divided by C *
/// d. Both are deviations from the equilibrium. The update is F(k) = -alpha * y(k) - beta * q(k), with q(k) = q(k-1) +
/// y(k). A change of the rate reaches the arrivals two intervals later: y(k) = y(k-1) + F(k-2). These equations
/// describe RCP if d is below T_max. XCP distributes F over the next interval. So half of F takes effect one interval
/// later than in RCP: y(k) = y(k-1) + (F(k-2) + F(k-3)) / 2. `later` is the share of F that takes effect later: 0 for
/// RCP, 1/2 for XCP.
fn dies_out(alpha: f64, beta: f64, later: f64) -> bool {
    let (mut input, mut queue, mut updates) = (1.0f64, 0.0f64, [0.0f64; 2]);
    let energy = |input: f64, queue: f64, updates: [f64; 2]| {
        input * input + queue * queue + updates[0] * updates[0] + updates[1] * updates[1]
    };
    for _ in 0..20_000 {
        queue += input;
        let update = -alpha * input - beta * queue;
        input += (1.0 - later) * updates[0] + later * updates[1];
        updates = [update, updates[0]];
        let left = energy(input, queue, updates);
        if !(1e-6..=1e12).contains(&left) {
            return left < 1.0;
        }
    }
    false
}

/// Returns the largest beta at which disturbances decay.
fn beta_max_by_recursion(alpha: f64, later: f64) -> f64 {
    let (mut stable, mut unstable) = (0.0, 2.0);
    for _ in 0..16 {
        let middle = (stable + unstable) / 2.0;
        if dies_out(alpha, middle, later) { stable = middle } else { unstable = middle }
    }
    stable
}

/// For RCP with T = d, returns the largest beta at which disturbances decay. By Jury's criterion the roots of z^3 - 2
/// z^2 + (1 + alpha + beta) z - alpha lie within the unit circle while beta < alpha * (1 - alpha).
pub(super) fn beta_max_once_per_rtt(alpha: f64) -> f64 {
    alpha * (1.0 - alpha)
}

/// For XCP, returns the largest beta at which disturbances decay, found with the recursion of `dies_out`.
pub(super) fn beta_max_dealt_out(alpha: f64) -> f64 {
    beta_max_by_recursion(alpha, 0.5)
}

#[test]
fn rcp_6_table_of_the_greatest_beta() {
    let table = [
        (0.1, 0.0966),
        (0.2, 0.1860),
        (0.3, 0.2677),
        (0.4, 0.3409),
        (0.5, 0.4050),
        // The exact value is 0.458949.
        (0.6, 0.4589),
        (0.8, 0.5319),
        (1.0, 0.5474),
    ];
    for (alpha, expected) in table {
        let found = beta_max(alpha);
        assert!((found - expected).abs() < 0.000_05, "alpha {alpha}: {found:.5}, not {expected}");
    }
}

#[test]
fn rcp_6_margins_of_the_constants() {
    let degrees = |alpha, beta| margin(alpha, beta) * 180.0 / PI;
    assert!((degrees(0.4, 0.226) - 12.6).abs() < 0.05, "{}", degrees(0.4, 0.226));
    assert!((degrees(0.4, 0.4) + 5.1).abs() < 0.05, "{}", degrees(0.4, 0.4));
    assert!(margin(FRAC_PI_2 - 0.001, 0.0) > 0.0 && margin(FRAC_PI_2 + 0.001, 0.0) < 0.0);
}

/// XCP-6: Katabi's bound is alpha < pi / (4 sqrt 2), with beta = alpha^2 sqrt 2. With alpha at this bound, the margin
/// is zero.
#[test]
fn xcp_6_is_the_same_loop() {
    let alpha = PI / (4.0 * SQRT_2);
    assert!(margin(alpha, alpha * alpha * SQRT_2).abs() < 1e-12);
}

#[test]
fn once_per_rtt_the_criterion_agrees_with_the_recursion() {
    for alpha in [0.1, 0.2, 0.3, 0.4, 0.5] {
        let (found, expected) = (beta_max_by_recursion(alpha, 0.0), beta_max_once_per_rtt(alpha));
        assert!((found - expected).abs() < 0.001, "alpha {alpha}: {found}, not {expected}");
    }
}

/// RCP's default constants are stable by both criteria. Its published constants are stable by neither criterion. XCP's
/// constants are stable by Katabi's bound for the continuous loop, but not with the discrete control interval.
#[test]
fn stability_of_the_constants_by_both_criteria() {
    assert!(beta_max_once_per_rtt(0.4) > 0.226 && beta_max(0.4) > 0.226);
    assert!(beta_max_once_per_rtt(0.4) < 0.4 && beta_max(0.4) < 0.4);
    let dealt_out = beta_max_dealt_out(0.4);
    assert!((dealt_out - 0.144).abs() < 0.001, "{dealt_out}");
}
