//! Random numbers. Each link, flow and flow plan has its own random streams. If a plan gets an additional flow, the
//! losses on its links therefore stay the same.

use rand_core::Rng;
use rand_pcg::Pcg32;

/// The uses of random streams. Each link, flow and flow plan has a separate stream for each use. For impairments, a
/// link has several streams.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Stream {
    /// Losses, jitter and duplicates of a link.
    Impairments = 1,
    /// Marks and drops of a RED queue.
    Red,
    /// Arrivals of a Poisson source.
    Arrivals,
    /// Seeds for a flow's congestion controller or external transport, and for the flow's requests.
    Flow,
    /// Start times of flows, if the flow plan has start jitter.
    Starts,
    /// The choice among equal paths (ECMP) for the flows of a flow plan.
    Paths,
}

impl Stream {
    /// Returns the stream number for an entity. The number of the entity must be below 2^40.
    pub(crate) const fn of(self, entity: u64) -> u64 {
        (self as u64) << 40 | entity
    }
}

/// A seeded stream of random numbers (PCG32). The numbers are the same on every machine.
#[derive(Clone, Debug)]
pub struct Random(Pcg32);

impl Random {
    /// Creates stream number `stream` of a run with this `seed`.
    pub fn new(seed: u64, stream: u64) -> Self {
        Random(Pcg32::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0xda3e_39cb_94b9_5bdb, stream))
    }

    /// Creates a stream. Use this function instead of `new` if a run has many streams with successive numbers and uses
    /// only the first values of each stream.
    ///
    /// Unlike random values, the first values of such PCG32 streams are almost evenly spaced. This function therefore
    /// also hashes the stream number into the state (SplitMix64; Steele, Lea and Flood, OOPSLA 2014, figure 16).
    pub fn scattered(seed: u64, stream: u64) -> Self {
        let mut z = (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ stream).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        Random(Pcg32::new(z ^ z >> 31, stream))
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

    /// Takes the first value of many streams, and returns chi-squared divided by the degrees of freedom. For random
    /// values, the result is about 1. If the result is far below 1, the values are too evenly distributed.
    fn evenness(streams: impl Fn(u64, u64) -> Random, choices: u64) -> f64 {
        let (seeds, each) = (60, 5_000);
        let of_seed = |seed| {
            let mut counts = vec![0.0; choices as usize];
            (0..each)
                .for_each(|n| counts[(streams(seed, Stream::Paths.of(n)).bits() % choices) as usize] += 1.0);
            let mean = each as f64 / choices as f64;
            counts.iter().map(|count| (count - mean) * (count - mean) / mean).sum::<f64>()
                / (choices - 1) as f64
        };
        (0..seeds).map(of_seed).sum::<f64>() / seeds as f64
    }

    #[test]
    fn first_numbers_of_scattered_streams_are_as_uneven_as_random_ones() {
        for choices in [2, 3, 4, 8] {
            // The evenness is a mean over 60 seeds. For two choices, it has a standard deviation of 0.18. For more
            // choices, the standard deviation is smaller.
            let scattered = evenness(Random::scattered, choices);
            assert!((0.45..1.6).contains(&scattered), "{choices}: {scattered}");
        }
        assert!(evenness(Random::new, 4) < 0.45, "plain streams are too even");
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
