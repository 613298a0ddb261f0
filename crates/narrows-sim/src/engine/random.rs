//! Random numbers. Each entity has its own stream. Adding a flow therefore does not change the losses of a link.

use rand_core::Rng;
use rand_pcg::Pcg32;

/// A seeded stream of random numbers (PCG32), with the same values on every machine.
#[derive(Clone, Debug)]
pub struct Random(Pcg32);

impl Random {
    /// Creates the stream with number `stream` for a run with this `seed`.
    pub fn new(seed: u64, stream: u64) -> Self {
        Random(Pcg32::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0xda3e_39cb_94b9_5bdb, stream))
    }

    /// Draws a number from the uniform distribution on [0, 1).
    pub fn unit(&mut self) -> f64 {
        self.0.next_u32() as f64 / (1u64 << 32) as f64
    }

    /// Draws sixty-four random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns `true` with probability `p`.
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        p > 0.0 && self.unit() < p
    }

    /// Draws a number from the exponential distribution with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.unit())
    }

    /// Draws a number from the Pareto distribution (type I) with this mean and a shape above 1, by inversion.
    pub fn pareto(&mut self, mean: f64, shape: f64) -> f64 {
        let scale = mean * (shape - 1.0) / shape;
        scale / libm::pow(1.0 - self.unit(), 1.0 / shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_from_each_other_and_are_reproducible() {
        let draw = |seed, stream| {
            let mut r = Random::new(seed, stream);
            [r.bits(), r.bits()]
        };
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(1, 3));
        assert_ne!(draw(1, 2), draw(2, 2));
    }

    #[test]
    fn distributions_have_the_requested_mean() {
        let mut r = Random::new(7, 1);
        let n = 200_000;
        let exponential: f64 = (0..n).map(|_| r.exponential(3.0)).sum::<f64>() / n as f64;
        let pareto: f64 = (0..n).map(|_| r.pareto(12.5, 2.5)).sum::<f64>() / n as f64;
        assert!((exponential - 3.0).abs() < 0.05, "{exponential}");
        assert!((pareto - 12.5).abs() < 0.3, "{pareto}");
    }
}
