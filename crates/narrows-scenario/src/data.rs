//! Facts in data files, and the sizes of packets.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// Payload of a full packet, in bytes.
pub(crate) const MSS: u32 = 1448;
/// L3 bytes beyond the payload: 20 of IPv4, 20 of TCP, and 12 of the timestamp option.
pub(crate) const HEADERS: u32 = 52;
/// L3 bytes of a full packet, as Linux sends it with Ethernet's MTU.
pub(crate) const FULL_PACKET: u32 = MSS + HEADERS;

/// A measured distribution of flow sizes.
#[derive(Debug, Deserialize)]
pub(crate) struct Measured {
    /// Sizes in bytes, each with the percentage of flows that are not larger. Between two points, all sizes are equally
    /// likely.
    points: Vec<(f64, f64)>,
}

impl Measured {
    fn mean(&self) -> f64 {
        let pairs = self.points.iter().zip(self.points.iter().skip(1));
        pairs.map(|((low, since), (high, until))| (low + high) / 2.0 * (until - since) / 100.0).sum()
    }

    /// Returns sizes in bytes, scaled to a mean, each with the share of flows (0 to 1) that are not larger.
    pub(crate) fn scaled(&self, mean: Option<f64>) -> Vec<(f64, f64)> {
        let factor = mean.map_or(1.0, |mean| mean / self.mean());
        self.points.iter().map(|(size, percent)| (size * factor, percent / 100.0)).collect()
    }
}

/// Returns the measured distribution with this name.
pub(crate) fn measured(name: &str) -> Option<&'static Measured> {
    static ALL: LazyLock<BTreeMap<String, Measured>> =
        LazyLock::new(|| file(include_str!("../data/sizes.json")));
    ALL.get(name)
}

/// Returns the content of one of this crate's data files. The tests read each file.
pub(crate) fn file<T: for<'de> Deserialize<'de> + Default>(text: &str) -> T {
    serde_json::from_str(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_distributions_are_complete() {
        for name in ["web-search", "data-mining", "hadoop"] {
            let points = measured(name).expect(name).scaled(None);
            assert_eq!((points[0].1, points[points.len() - 1].1), (0.0, 1.0), "{name}");
        }
    }
}
