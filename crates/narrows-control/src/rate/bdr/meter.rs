//! The traffic of the port: the byte counters of BDR-42 and the rates that the timer computes from
//! them (BDR-43).

use crate::units::Bytes;

/// Weight of a new sample of the background traffic (EWMA 1/8 for rates).
const WEIGHT: f64 = 1.0 / 8.0;

/// Counters and averages. Rates are in bytes/s.
#[derive(Clone, Debug, Default)]
pub(super) struct Meter {
    own: Bytes,
    other: Bytes,
    /// y_bg, the rate of flows without BDR.
    background: f64,
    /// All traffic, averaged over the mean time between reports: u times C (BDR-40).
    load: f64,
    /// The last two samples, each as bytes and seconds.
    last: [(f64, f64); 2],
}

impl Meter {
    /// Counts bytes that the port has sent: `own` of BDR flows, and `other` of all other flows.
    pub(super) fn count(&mut self, own: Bytes, other: Bytes) {
        self.own += own;
        self.other += other;
    }

    /// Ends a sample that lasted `elapsed` seconds. The mean time between reports is `mean` seconds.
    pub(super) fn sample(&mut self, elapsed: f64, mean: f64) {
        if elapsed <= 0.0 {
            return;
        }
        let (own, other) = (self.own.as_f64(), self.other.as_f64());
        (self.own, self.other) = (Bytes::ZERO, Bytes::ZERO);
        let all = own + other;
        self.background += WEIGHT * (other / elapsed - self.background);
        self.load += (1.0 - libm::exp(-elapsed / mean)) * (all / elapsed - self.load);
        let [_, previous] = self.last;
        self.last = [previous, (all, elapsed)];
    }

    /// Returns y_bg, the rate of flows without BDR.
    pub(super) fn background(&self) -> f64 {
        self.background
    }

    /// Returns the average load of the port.
    pub(super) fn load(&self) -> f64 {
        self.load
    }

    /// Returns the mean load over the last two samples: "used bandwidth" of equation (3) (BDR-26).
    pub(super) fn used(&self) -> f64 {
        let [(bytes, secs), (more, longer)] = self.last;
        let secs = secs + longer;
        if secs > 0.0 { (bytes + more) / secs } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_mix_is_measured_exactly() {
        let mut meter = Meter::default();
        for _ in 0..200 {
            meter.count(Bytes::new(3_000), Bytes::new(1_000));
            meter.sample(0.05, 0.1);
        }
        assert!((meter.background() - 20_000.0).abs() < 1.0);
        assert!((meter.load() - 80_000.0).abs() < 1.0);
        assert!((meter.used() - 80_000.0).abs() < 1e-6);
    }

    /// After one mean time between reports, the average load has changed by 1 - exp(-1) of a step of the load. Each
    /// sample moves the background by 1/8 of the difference between the sample and the background. The used bandwidth
    /// is the mean of the last two samples.
    #[test]
    fn each_average_has_its_own_time_constant() {
        let mut meter = Meter::default();
        for _ in 0..2 {
            meter.count(Bytes::ZERO, Bytes::new(5_000));
            meter.sample(0.05, 0.1);
        }
        assert!((meter.load() - 63_212.0).abs() < 1.0, "{}", meter.load());
        assert!((meter.background() - 100_000.0 * (1.0 - 49.0 / 64.0)).abs() < 1.0);
        meter.sample(0.05, 0.1);
        assert!((meter.used() - 50_000.0).abs() < 1e-6);
        meter.sample(0.0, 0.1);
        assert!((meter.used() - 50_000.0).abs() < 1e-6, "a sample of zero length is ignored");
    }
}
