//! The utilisation of a link from its samples, and the rate of a path from its links (PAC-10 to
//! PAC-18).
//!
//! Amounts are in bytes and rates in bytes/s. The paper uses bits and packets.

use crate::units::{Bytes, Rate, Span};

/// One sample of a link.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Y: bytes that left the port, all traffic.
    pub passed: Bytes,
    /// The part of Y that comes from traffic that does not follow rates.
    pub background: Bytes,
    /// Q: bytes that are queued at the end of the sample.
    pub queued: Bytes,
    /// Length of the sample: Ts, or more if reports were lost.
    pub span: Span,
}

/// The sums of one control period.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Samples {
    passed: f64,
    background: f64,
    queued: f64,
    /// Total length of the samples, seconds.
    span: f64,
    count: f64,
}

impl Samples {
    /// Adds a sample. A sample of zero length is ignored.
    pub fn add(&mut self, sample: Sample) {
        if sample.span == Span::ZERO {
            return;
        }
        self.passed += sample.passed.as_f64();
        self.background += sample.background.as_f64();
        self.queued += sample.queued.as_f64();
        self.span += sample.span.as_secs_f64();
        self.count += 1.0;
    }

    /// Returns whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.count == 0.0
    }

    /// Returns I_i(s) of equation 6 in the units of PAC-15, for samples of `ts` each and the weight w_q of the queue.
    /// The utilisation exceeds 1 if the link is overloaded. Each sample is weighted by its length. For a link without
    /// capacity, the result is 1.
    pub fn utilisation(&self, capacity: Rate, queue_weight: f64, ts: Span) -> f64 {
        if capacity == Rate::ZERO || ts == Span::ZERO {
            return 1.0;
        }
        if self.is_empty() {
            return 0.0;
        }
        let queue = queue_weight * self.queued / self.count / ts.as_secs_f64();
        (self.passed / self.span + queue) / capacity.as_f64()
    }

    /// Returns A_i(s) of PAC-18: the capacity for rated flows if the link drains the share `drain` of the mean queue
    /// per `tc`.
    pub fn available(&self, capacity: Rate, eta: f64, drain: f64, tc: Span) -> Rate {
        let mut left = eta * capacity.as_f64();
        if !self.is_empty() {
            left -= self.background / self.span + drain * self.queued / self.count / tc.as_secs_f64();
        }
        // A negative value becomes zero.
        Rate::from_f64(left)
    }
}

/// Returns the residual capacity of a link, to the nearest byte/s: C_i * (1 - I_i), at least 0 (PAC-10, PAC-16).
pub fn residual(capacity: Rate, utilisation: f64) -> Rate {
    Rate::from_f64(capacity.as_f64() * (1.0 - utilisation) + 0.5)
}

/// Returns R_p of equations 5 and 7 from the capacity and utilisation of the path's links, or `None` if there are no
/// links.
pub fn path_rate(links: impl IntoIterator<Item = (Rate, f64)>) -> Option<Rate> {
    links.into_iter().map(|(capacity, utilisation)| residual(capacity, utilisation)).min()
}

/// Returns r_max of equation 9: the rate of each of the `flows` flows on a path.
pub fn flow_rate(path: Rate, flows: u64) -> Rate {
    Rate::from_bytes_per_sec(path.as_bytes_per_sec() / flows.max(1))
}

/// The utilisation matrix (PAC-17): I_i(s) of every link for the last periods.
#[derive(Clone, Debug)]
pub struct Matrix {
    periods: usize,
    /// The values I_i(s), by link, then by period modulo `periods`.
    cells: Vec<f64>,
    /// Number of periods so far.
    ended: usize,
}

impl Matrix {
    /// Returns a matrix for this many links and periods, in which all links are idle.
    pub fn new(links: usize, periods: usize) -> Self {
        let periods = periods.max(1);
        Matrix { periods, cells: vec![0.0; links.saturating_mul(periods)], ended: 0 }
    }

    /// Adds the values of one period, one value for each link.
    pub fn push(&mut self, figures: impl IntoIterator<Item = f64>) {
        let column = self.ended % self.periods;
        for (row, figure) in self.cells.chunks_exact_mut(self.periods).zip(figures) {
            if let Some(cell) = row.get_mut(column) {
                *cell = figure;
            }
        }
        self.ended += 1;
    }

    /// Returns I of this link, `ago` periods before the last period, or `None` if it is out of range.
    pub fn get(&self, link: usize, ago: usize) -> Option<f64> {
        if ago >= self.periods {
            return None;
        }
        let column = self.ended.checked_sub(ago + 1)? % self.periods;
        self.cells.get(link.checked_mul(self.periods)? + column).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TS: Span = Span::from_millis(10);

    fn mbit(rate: f64) -> Rate {
        Rate::from_f64(rate * 125_000.0)
    }

    /// Returns samples from pairs of bits passed and bits queued.
    fn samples(figures: &[(u64, u64)]) -> Samples {
        let mut samples = Samples::default();
        for (passed, queued) in figures {
            let (passed, queued) = (Bytes::new(passed / 8), Bytes::new(queued / 8));
            samples.add(Sample { passed, background: Bytes::ZERO, queued, span: TS });
        }
        samples
    }

    #[test]
    fn tv_p1_utilisation_of_a_link() {
        let samples = samples(&[(800_000, 0), (600_000, 120_000), (700_000, 60_000), (900_000, 0)]);
        let utilisation = samples.utilisation(mbit(100.0), 1.0, TS);
        assert!((utilisation - 0.795).abs() < 1e-12, "{utilisation}");
        assert_eq!(residual(mbit(100.0), utilisation), mbit(20.5));
    }

    #[test]
    fn tv_p2_rate_of_a_path() {
        let links = [(mbit(100.0), 0.795), (mbit(100.0), 0.5), (mbit(40.0), 0.3)];
        assert_eq!(links.map(|(c, i)| residual(c, i)), [mbit(20.5), mbit(50.0), mbit(28.0)]);
        let rate = path_rate(links).unwrap();
        assert_eq!((rate, flow_rate(rate, 4)), (mbit(20.5), mbit(5.125)));
        assert_eq!(path_rate([]), None);
    }

    #[test]
    fn pac_15_the_default_weight_drains_a_standing_queue_in_one_tc() {
        // The link is full, with a queue of 100 kbyte in all samples. Draining 100 kbyte in 50 ms takes 16 % of 100
        // Mbit/s.
        let standing = samples(&[(1_000_000, 800_000); 5]);
        let above = |weight| standing.utilisation(mbit(100.0), weight, TS) - 1.0;
        assert!((above(0.2) - 0.16).abs() < 1e-9);
        assert!((above(1.0) - 0.8).abs() < 1e-9, "m-fold");
    }

    #[test]
    fn pac_18_own_traffic_does_not_count() {
        let mut samples = Samples::default();
        for _ in 0..5 {
            let (passed, background) = (Bytes::new(100_000), Bytes::new(25_000));
            samples.add(Sample { passed, background, queued: Bytes::new(12_500), span: TS });
        }
        // In Mbit/s: 98 (the link) - 20 (background) - 2 (queue).
        let tc = Span::from_millis(50);
        assert_eq!(samples.available(mbit(100.0), 0.98, 1.0, tc), mbit(76.0));
        assert_eq!(samples.available(mbit(20.0), 0.98, 1.0, tc), Rate::ZERO);
    }

    #[test]
    fn a_sample_of_twice_the_length_counts_twice() {
        let mut lost = Samples::default();
        lost.add(Sample { passed: Bytes::new(50_000), span: TS, ..Sample::default() });
        lost.add(Sample { passed: Bytes::new(200_000), span: TS + TS, ..Sample::default() });
        lost.add(Sample { passed: Bytes::MAX, ..Sample::default() });
        assert!((lost.utilisation(mbit(100.0), 1.0, TS) - 250.0 / 375.0).abs() < 1e-12);
    }

    #[test]
    fn a_link_without_capacity_is_full_and_one_without_samples_idle() {
        let busy = samples(&[(0, 0)]);
        assert_eq!(busy.utilisation(Rate::ZERO, 1.0, TS), 1.0);
        assert_eq!(Samples::default().utilisation(mbit(1.0), 1.0, TS), 0.0);
        assert_eq!(Samples::default().available(mbit(1.0), 0.5, 1.0, TS), mbit(0.5));
        assert_eq!(residual(mbit(1.0), 1.5), Rate::ZERO);
    }

    #[test]
    fn pac_17_the_matrix_holds_as_many_periods_as_it_is_wide() {
        let mut matrix = Matrix::new(2, 3);
        assert_eq!(matrix.get(0, 0), None);
        for s in 0..5 {
            matrix.push([f64::from(s), 10.0 * f64::from(s)]);
        }
        assert_eq!([0, 1, 2, 3].map(|ago| matrix.get(1, ago)), [Some(40.0), Some(30.0), Some(20.0), None]);
        assert_eq!((matrix.get(0, 1), matrix.get(2, 0), matrix.get(usize::MAX, 0)), (Some(3.0), None, None));
    }
}
