//! Averages by prefix and service: the paper's "average bandwidth of streams with that quintuple" (BRF-31). The most
//! specific key that has enough samples gives the prediction.

use rustc_hash::FxHashMap;

use super::Predictor;
use crate::rate::kit::service;
use crate::rate::{FlowIdentity, Host, Proto};
use crate::units::Rate;

/// The four kinds of keys, from specific to general. The predictor tries the kinds in this order.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
enum Kin<H> {
    Network(H, u32, Proto),
    Service(u32, Proto),
    Protocol(Proto),
    Any,
}

impl<H: Host> Kin<H> {
    fn of<K: FlowIdentity<Host = H>>(key: &K) -> [Self; 4] {
        let (service, proto) = (key.service(), key.proto());
        [
            Kin::Network(service::network(key), service, proto),
            Kin::Service(service, proto),
            Kin::Protocol(proto),
            Kin::Any,
        ]
    }
}

#[derive(Copy, Clone, Debug)]
struct Average {
    rate: f64,
    samples: u32,
}

/// Averages of the mean rates of finished flows.
#[derive(Debug)]
pub(in crate::rate::brf) struct Averages<H> {
    averages: FxHashMap<Kin<H>, Average>,
    weight: f64,
    samples: u32,
    entries: usize,
}

impl<H: Host> Averages<H> {
    pub(super) fn new(weight: f64, samples: u32, entries: usize) -> Self {
        Averages { averages: FxHashMap::default(), weight, samples, entries }
    }

    fn first_known(&self, kin: &[Kin<H>]) -> Option<Rate> {
        kin.iter()
            .filter_map(|kin| self.averages.get(kin))
            .find(|average| average.samples >= self.samples)
            .map(|average| Rate::from_f64(average.rate))
    }
}

impl<K: FlowIdentity> Predictor<K> for Averages<K::Host> {
    fn learn(&mut self, key: &K, used: Rate) {
        for kin in Kin::of(key) {
            if let Some(average) = self.averages.get_mut(&kin) {
                average.rate += self.weight * (used.as_f64() - average.rate);
                average.samples = average.samples.saturating_add(1);
            } else if self.averages.len() < self.entries {
                // A full table accepts no new keys. The first keys usually belong to busy services, and an address
                // scan must not displace them.
                self.averages.insert(kin, Average { rate: used.as_f64(), samples: 1 });
            }
        }
    }

    fn predict(&self, key: &K) -> Option<Rate> {
        self.first_known(&Kin::of(key))
    }

    fn predict_any(&self) -> Option<Rate> {
        self.first_known(&[Kin::Protocol(Proto::Tcp), Kin::Any])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{IpAddr, Ipv4Addr};

    use crate::rate::FlowKey;

    fn key(host: [u8; 4], dport: u16) -> FlowKey {
        let saddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
        FlowKey { saddr, daddr: IpAddr::V4(host.into()), sport: 40_000, dport, proto: Proto::Tcp }
    }

    #[test]
    fn tv_14_average_with_weight_a_quarter() {
        let mut predictor = Averages::new(0.25, 1, 100);
        let k = key([10, 0, 0, 1], 443);
        for (sample, average) in [(100_000, 100_000), (140_000, 110_000), (60_000, 97_500), (100_000, 98_125)]
        {
            predictor.learn(&k, Rate::from_bytes_per_sec(sample));
            assert_eq!(predictor.predict(&k), Some(Rate::from_bytes_per_sec(average)));
        }
    }

    #[test]
    fn the_most_specific_key_with_enough_samples_decides() {
        let mut predictor = Averages::new(0.25, 3, 100);
        let rate = Rate::from_bytes_per_sec;
        for _ in 0..3 {
            predictor.learn(&key([10, 0, 0, 1], 443), rate(1000));
        }
        for _ in 0..2 {
            predictor.learn(&key([10, 0, 9, 1], 22), rate(10));
        }
        assert_eq!(predictor.predict(&key([10, 0, 0, 77], 443)), Some(rate(1000)), "same /24, same service");
        assert_eq!(predictor.predict(&key([10, 5, 5, 5], 443)), Some(rate(1000)), "same service");
        // The flow's service has only two samples. The protocol has five samples, so its average gives the prediction.
        let ssh = predictor.predict(&key([10, 0, 9, 1], 22)).unwrap();
        assert!(ssh > rate(10) && ssh < rate(1000));
        let untaught = Averages::<IpAddr>::new(0.25, 3, 100);
        assert_eq!(untaught.predict(&key([10, 0, 0, 1], 443)), None);
    }

    #[test]
    fn memory_is_bounded() {
        let mut predictor = Averages::new(0.25, 1, 50);
        for i in 0..1000u32 {
            let [_, a, b, c] = i.to_be_bytes();
            predictor.learn(&key([a, b, c, 1], i as u16), Rate::from_bytes_per_sec(1));
        }
        assert_eq!(predictor.averages.len(), 50);
    }
}
