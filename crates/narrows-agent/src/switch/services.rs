//! The ready grants of services (BRF-31). A ready grant is the rate of a new flow until the controller has seen the
//! flow. For each service in use, the predictor estimates the rate that the next flow needs.
//!
//! The program uses the smaller of the port's and the service's ready grant. A service therefore gets an entry only if
//! its next flow is expected to need less than the port's ready grant.

use std::net::IpAddr;

use narrows_control::feedback::code::RateCode;
use narrows_control::rate::FlowKey;
use narrows_control::rate::kit::service;
use rustc_hash::FxHashMap;

/// A service: the key of the program's map of services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Service {
    /// The controlled port.
    pub port: usize,
    /// Network of the data's destination: a /24 of IPv4 or a /48 of IPv6.
    pub network: IpAddr,
    /// TCP port of the service: the smaller of the flow's two ports.
    pub number: u16,
}

impl Service {
    fn of(port: usize, key: &FlowKey) -> Option<Service> {
        let (network, number) = (service::network(key), service::port(key)?);
        Some(Service { port, network, number })
    }
}

/// The services in use, each with one of its flows and its grant in the program's table.
#[derive(Debug)]
pub(super) struct Services {
    known: FxHashMap<Service, (FlowKey, Option<RateCode>)>,
    most: usize,
}

impl Services {
    /// Returns an empty record for at most `most` services, the size of the program's table.
    pub(super) fn new(most: usize) -> Self {
        Services { known: FxHashMap::default(), most }
    }

    /// Records the service of a new flow. If this record already has the largest number of services, adds none.
    pub(super) fn note(&mut self, port: usize, key: &FlowKey) {
        if let Some(service) = Service::of(port, key)
            && (self.known.len() < self.most || self.known.contains_key(&service))
        {
            self.known.entry(service).or_insert((*key, None));
        }
    }

    /// Asks for the grant of every service, and returns the services whose grants have changed. The grant `None` means
    /// that the port's ready grant applies.
    pub(super) fn changes(
        &mut self,
        mut grant: impl FnMut(usize, &FlowKey) -> Option<RateCode>,
    ) -> Vec<(Service, Option<RateCode>)> {
        let mut changes = Vec::new();
        for (service, (key, last)) in &mut self.known {
            let now = grant(service.port, key);
            if core::mem::replace(last, now) != now {
                changes.push((*service, now));
            }
        }
        // Sorted, so that the logs of two runs can be compared.
        changes.sort_by_key(|(service, _)| *service);
        changes
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use narrows_control::rate::Proto;

    fn key(last: u8, dport: u16) -> FlowKey {
        let address = |last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
        FlowKey { saddr: address(200), daddr: address(last), sport: 40_000, dport, proto: Proto::Tcp }
    }

    #[test]
    fn a_service_is_a_network_and_a_port() {
        assert_eq!(Service::of(0, &key(1, 443)), Service::of(0, &key(77, 443)));
        assert_ne!(Service::of(0, &key(1, 443)), Service::of(0, &key(1, 80)));
        assert_ne!(Service::of(0, &key(1, 443)), Service::of(1, &key(1, 443)));
        assert_eq!(Service::of(0, &key(1, 50_000)), None, "no service: both ports are clients'");
    }

    #[test]
    fn only_changed_grants_are_returned_and_memory_is_bounded() {
        let mut services = Services::new(2);
        for port in [443, 80, 22] {
            services.note(0, &key(1, port));
        }
        let code = RateCode::from_bits(12_503);
        let changed = services.changes(|_, key| (key.dport == 80).then_some(code));
        assert_eq!(changed.iter().map(|(s, c)| (s.number, *c)).collect::<Vec<_>>(), [(80, Some(code))]);
        assert!(services.changes(|_, key| (key.dport == 80).then_some(code)).is_empty());
        let changed = services.changes(|_, _| None);
        assert_eq!(changed.iter().map(|(s, c)| (s.number, *c)).collect::<Vec<_>>(), [(80, None)]);
    }
}
