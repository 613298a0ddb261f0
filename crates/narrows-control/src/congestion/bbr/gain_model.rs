//! The pacing-gain model of BBR-A, BBR-B and BBR-C. The model computes ProbeBW's two gains from the RTT (GAIN-1,
//! GAIN-2, GAIN-10).
//!
//! Source: Yang et al., "Optimization of BBR Congestion Control Algorithm Based on Pacing Gain Model" (Sensors
//! 23(9):4431, 2023), equations 12 to 14. GAIN-2 reconstructs BBR-B's P_down.
//!
//! An eBPF program can run this arithmetic: it uses `u64`, no floats, and loops with a fixed number of iterations. The
//! unit of omega is 1/1024, and the unit of gains is 1/256. Every function rounds to the nearest unit, with halves
//! rounded up. The rounding is exact: for all 1024 omegas the result equals the formula's real value, rounded in this
//! way. `tests/vectors/bbr-gains.csv` holds these results, computed by another program.

use super::gain::Gain;

/// The number 1 in units of omega.
pub const OMEGA_ONE: u32 = 1024;

/// The pair of functions that compute P_up and P_down from omega.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Variant {
    /// P_up is an inverse proportion, and P_down is a cosine (equation 12).
    A,
    /// P_up and P_down are inverse proportions (equation 13).
    B,
    /// P_up and P_down are gamma corrections (equation 14).
    C,
}

/// Returns omega of GAIN-1, the RTT divided by the largest RTT. The unit is 1/1024, and the range is 1 to 1024. Both
/// times are in µs and capped at 71 minutes. The result is 1024 if there is no largest RTT yet.
pub fn omega(t_i_us: u64, t_max_us: u64) -> u32 {
    let t_max = t_max_us.min(u64::from(u32::MAX));
    if t_max == 0 {
        return OMEGA_ONE;
    }
    let share = nearest(t_i_us.min(t_max) * u64::from(OMEGA_ONE), t_max);
    share.clamp(1, u64::from(OMEGA_ONE)) as u32
}

/// Returns P_up, the gain of the probing entry: 1 to 2 for A, and 1 to 1.5 for B and C. Clamps omega to its range.
pub fn up(variant: Variant, omega: u32) -> Gain {
    let w = in_range(omega);
    gain(match variant {
        // 2 / (w + 1)
        Variant::A => nearest(2 * 256 * 1024, w + 1024),
        // 3 / (w + 2)
        Variant::B => nearest(3 * 256 * 1024, w + 2048),
        // 1.5 - 0.5 w^(1/4). The roots give twice 128 w^(1/4), because 256 (w / 2^10)^(1/4) = (w 2^22)^(1/4).
        Variant::C => 384 - ((root(root(w << 22)) + 1) >> 1),
    })
}

/// Returns P_down, the gain of the draining entry: 0.54 to 1 for A, and 0.5 to 1 for B and C. Clamps omega to its
/// range.
pub fn down(variant: Variant, omega: u32) -> Gain {
    let w = in_range(omega);
    gain(match variant {
        Variant::A => (cosine(w) + (1 << 21)) >> 22,
        // 3 / (w - 3) + 2 = (3 - 2 w) / (3 - w)
        Variant::B => nearest(256 * (3 * 1024 - 2 * w), 3 * 1024 - w),
        // 1 - 0.5 w^4. The code rounds halves of 128 w^4 / 2^40 down, so that the difference rounds halves up.
        Variant::C => 256 - ((w * w * w * w + (1 << 32) - 1) >> 33),
    })
}

fn in_range(omega: u32) -> u64 {
    u64::from(omega.clamp(1, OMEGA_ONE))
}

fn gain(in_256ths: u64) -> Gain {
    Gain::from_256ths(in_256ths as u32)
}

/// Returns `numerator / denominator`, rounded to the nearest integer, with halves rounded up. The numerator must be
/// below 2^63, and the denominator must not be 0.
fn nearest(numerator: u64, denominator: u64) -> u64 {
    (numerator + denominator / 2) / denominator
}

/// Returns the cosine of `w` / 1024 radians, in units of 2^-30, from the power series up to the eighth power. The
/// error is 3e-7 at 1 radian and smaller for smaller angles.
fn cosine(w: u64) -> u64 {
    const ONE: u64 = 1 << 30;
    let square = w * w;
    let series = ONE - ((square * ONE / 56) >> 20);
    let series = ONE - ((square * series / 30) >> 20);
    let series = ONE - ((square * series / 12) >> 20);
    ONE - ((square * series / 2) >> 20)
}

/// Returns the square root of `n`, rounded down, for `n` up to 2^32. The root is computed bit by bit.
fn root(n: u64) -> u64 {
    let mut root = 0;
    for bit in (0..=16).rev() {
        let larger = root | 1 << bit;
        if larger * larger <= n {
            root = larger;
        }
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    const VARIANTS: [Variant; 3] = [Variant::A, Variant::B, Variant::C];

    /// Reads the rows of the test vectors. The first column is omega in 1/1024. The other columns are the gains `a_up`,
    /// `a_down`, `b_up`, `b_down`, `c_up` and `c_down` in 1/256.
    fn vectors() -> Vec<[u32; 7]> {
        include_str!("../../../../../tests/vectors/bbr-gains.csv")
            .lines()
            .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()))
            .map(|line| {
                let fields: Vec<u32> = line.split(',').filter_map(|field| field.parse().ok()).collect();
                fields.try_into().expect(line)
            })
            .collect()
    }

    #[test]
    fn every_gain_is_the_real_valued_one_rounded() {
        let vectors = vectors();
        let omegas: Vec<u32> = vectors.iter().map(|row| row[0]).collect();
        assert_eq!(omegas, (1..=1024).collect::<Vec<u32>>());
        for row in &vectors {
            let [omega, expected @ ..] = *row;
            let gains = VARIANTS.map(|v| [up(v, omega), down(v, omega)]).concat();
            assert_eq!(gains, expected.map(Gain::from_256ths), "omega {omega}");
        }
    }

    /// Largest rounding error: half a unit of the gain, plus half a unit of omega times the steepest slope (1.5).
    const ROUNDING: f64 = 0.5 / 256.0 + 1.5 * 0.5 / 1024.0;

    fn assert_gains(omega: f64, expected: [f64; 6]) {
        let w = (omega * 1024.0).round() as u32;
        let gains = VARIANTS.map(|v| [up(v, w).as_f64(), down(v, w).as_f64()]).concat();
        for (gain, expected) in gains.iter().zip(expected) {
            assert!((gain - expected).abs() <= ROUNDING + 5e-5, "omega {omega}: {gain} for {expected}");
        }
    }

    /// Checks test vector TV-G1.
    #[test]
    fn the_gains_match_the_table() {
        assert_gains(0.05, [1.9048, 0.9988, 1.4634, 0.9831, 1.2636, 1.0000]);
        assert_gains(0.10, [1.8182, 0.9950, 1.4286, 0.9655, 1.2188, 1.0000]);
        assert_gains(0.25, [1.6000, 0.9689, 1.3333, 0.9091, 1.1464, 0.9980]);
        assert_gains(0.40, [1.4286, 0.9211, 1.2500, 0.8462, 1.1024, 0.9872]);
        assert_gains(0.50, [1.3333, 0.8776, 1.2000, 0.8000, 1.0796, 0.9688]);
        assert_gains(0.60, [1.2500, 0.8253, 1.1538, 0.7500, 1.0599, 0.9352]);
        assert_gains(0.75, [1.1429, 0.7317, 1.0909, 0.6667, 1.0347, 0.8418]);
        assert_gains(0.90, [1.0526, 0.6216, 1.0345, 0.5714, 1.0130, 0.6720]);
        assert_gains(1.00, [1.0000, 0.5403, 1.0000, 0.5000, 1.0000, 0.5000]);
    }

    /// Checks test vector TV-G2.
    #[test]
    fn the_gains_equal_bbrs_at_the_listed_omega() {
        let close =
            |gain: Gain, expected: f64| assert!((gain.as_f64() - expected).abs() <= ROUNDING, "{gain:?}");
        let at = |omega: f64| (omega * 1024.0).round() as u32;
        close(up(Variant::A, at(0.6)), 1.25);
        close(up(Variant::B, at(0.4)), 1.25);
        close(up(Variant::C, at(0.0625)), 1.25);
        close(down(Variant::A, at(0.7227)), 0.75);
        close(down(Variant::B, at(0.6)), 0.75);
        close(down(Variant::C, at(0.8409)), 0.75);
    }

    /// TV-G3: the propagation times are 10 and 50 ms. The present queueing delay is 20 ms, and its maximum is 50 ms.
    #[test]
    fn the_longer_path_gets_the_smaller_gains() {
        assert_eq!(omega(30_000, 60_000), 512);
        assert_eq!(omega(70_000, 100_000), 717);
        assert_gains(0.5, [1.3333, 0.8776, 1.2, 0.8, 1.0796, 0.9688]);
        assert_gains(0.7, [1.1765, 0.7648, 1.1111, 0.6957, 1.0427, 0.8800]);
    }

    #[test]
    fn the_gains_fall_as_omega_grows_and_stay_in_their_ranges() {
        for (variant, most, least) in
            [(Variant::A, 2.0, 0.5403), (Variant::B, 1.5, 0.5), (Variant::C, 1.5, 0.5)]
        {
            for omega in 1..=1024 {
                let (up_now, down_now) = (up(variant, omega), down(variant, omega));
                assert!((1.0..=most).contains(&up_now.as_f64()), "{variant:?} {omega}");
                assert!((least - 1.0 / 256.0..=1.0).contains(&down_now.as_f64()), "{variant:?} {omega}");
                assert!(up(variant, omega + 1) <= up_now && down(variant, omega + 1) <= down_now);
            }
            // GAIN-6.
            assert_eq!(up(variant, 1024), Gain::ONE);
        }
        for out in [0, 1025, u32::MAX] {
            assert_eq!(up(Variant::A, out), up(Variant::A, out.clamp(1, 1024)));
            assert_eq!(down(Variant::C, out), down(Variant::C, out.clamp(1, 1024)));
        }
    }

    #[test]
    fn omega_is_a_share_from_1_to_1024_whatever_the_rtts() {
        assert_eq!(omega(0, 0), 1024);
        assert_eq!(omega(5, 0), 1024);
        assert_eq!(omega(0, 1), 1);
        assert_eq!(omega(1, u64::MAX), 1);
        assert_eq!(omega(u64::MAX, u64::MAX), 1024);
        assert_eq!(omega(u64::MAX, 10), 1024);
        // The exact values are 1.5 and 1.499...
        assert_eq!(omega(3, 2048), 2);
        assert_eq!(omega(2999, 2_048_000), 1);
    }

    /// GAIN-7: at this omega, the mean of the cycle's gains is 1.
    #[test]
    fn the_cycle_is_neutral_at_the_listed_omega() {
        for (variant, neutral) in [(Variant::A, 0.6561), (Variant::B, 0.5), (Variant::C, 0.592)] {
            let sum = |omega: f64| {
                let w = (omega * 1024.0) as u32;
                up(variant, w).as_f64() + down(variant, w).as_f64()
            };
            assert!(sum(neutral - 0.02) > 2.0 && sum(neutral + 0.02) < 2.0, "{variant:?}");
        }
    }
}
