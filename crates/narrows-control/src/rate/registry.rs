//! The table of rate controllers. To add a controller, add a line here.

use serde::de::{Deserializer, Error};

use super::RateController::{Headers, PerFlow};
use super::domain::{DomainController, Settings};
use super::kit::parameters;
use super::uniform::{Signal, Uniform};
use super::{FlowIdentity, PortId, RateController, bdr, brf, obp, pacec, rcp, xcp};
use crate::units::{Bytes, Time};

/// Builds the domain's controller for ports with their parameters.
type BuildDomain<P, K> = fn(Vec<(PortId, P)>, &Settings, Bytes, Time) -> Box<dyn DomainController<K>>;

/// Declares [`all`], [`build`] and [`build_domain`] from lines of the form `name, summary: parameter type =>
/// constructor`. A line may end with `with domain` and the constructor of the domain's controller.
macro_rules! controllers {
    ($($name:literal, $summary:literal: $params:ty => $build:expr $(, with domain $domain:expr)?;)*) => {
        /// All controllers in the order of the table: (name, one-line summary).
        pub const fn all() -> &'static [(&'static str, &'static str)] {
            &[$(($name, $summary)),*]
        }

        /// Builds the rate controller `name` for a port, with parameters from any serde format.
        /// Errors state the parameter, what was found and what was expected.
        pub fn build<'de, K: FlowIdentity, D: Deserializer<'de>>(
            name: &str, params: D, port: PortId, mtu: Bytes,
        ) -> Result<RateController<K>, D::Error> {
            match name {
                $($name => {
                    let params: $params = parameters::read(params)?;
                    let build: fn($params, PortId, Bytes) -> Result<RateController<K>, String> = $build;
                    build(params, port, mtu).map_err(D::Error::custom)
                })*
                _ => Err(D::Error::custom(format_args!(
                    "no rate controller is called {name:?}; there are: {}",
                    all().iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
                ))),
            }
        }

        /// Builds the domain's controller for all ports of the kind `name`; `None` if the kind has
        /// none.
        #[allow(clippy::type_complexity)]
        pub fn build_domain<'de, K: FlowIdentity, D: Deserializer<'de>>(
            name: &str, ports: Vec<(PortId, D)>, settings: &Settings, mtu: Bytes, now: Time,
        ) -> Result<Option<Box<dyn DomainController<K>>>, D::Error> {
            match name {
                $($($name => {
                    let build: BuildDomain<$params, K> = $domain;
                    let ports: Result<Vec<_>, _> =
                        ports.into_iter().map(|(port, d)| Ok((port, parameters::read::<_, $params>(d)?))).collect();
                    Ok(Some(build(ports?, settings, mtu, now)))
                })?)*
                _ => Ok(None),
            }
        }
    };
}

controllers! {
    "brf", "Bottleneck routing feedback: per-flow rates written into ACKs, three-queue HTB (Sensors 2024)": brf::Params => |params, port, mtu| match params.check() {
        Ok(_) => Ok(PerFlow(Box::new(brf::Brf::new(params, port, mtu)))),
        Err(trouble) => Err(trouble.to_string()),
    }, with domain |ports, settings, mtu, now| Box::new(brf::Sdn::new(
        ports.into_iter().map(|(port, params)| (port, brf::domain::Params::of(&params, settings, mtu))), now));
    "rcp", "Rate control protocol: one rate for all flows of a port, from spare capacity and queue": rcp::Params => |params, _, _| {
        params.check()?;
        Ok(match (params.signal, params.max_flows) {
            (Signal::Header, _) => Headers(Box::new(rcp::RcpPort::new(params))),
            (Signal::Ack, flows) => PerFlow(Box::new(Uniform::new(rcp::Stamped::new(params), flows))),
        })
    };
    "xcp", "Explicit control protocol: a change of the window for each packet, by header": xcp::Params => |params, _, _| {
        params.check()?;
        Ok(Headers(Box::new(xcp::XcpPort::new(params))))
    };
    "bdr", "Per-flow bandwidth distribution: flows counted from designated packets, an equal share for each": bdr::Params => |params, _, mtu| {
        params.check()?;
        Ok(match (params.signal, params.max_flows) {
            (Signal::Header, _) => Headers(Box::new(bdr::BdrPort::new(params))),
            (Signal::Ack, flows) => PerFlow(Box::new(Uniform::new(bdr::Stamped::new(params, mtu), flows))),
        })
    };
    "obp", "Open box protocol, as far as it is known: the bandwidth left on a path, by header (an optional baseline)": obp::Params => |params, _, _| {
        params.check()?;
        Ok(Headers(Box::new(obp::ObpPort::new(params))))
    };
    "pacec", "Path associativity centralized explicit congestion control: max-min rates from one controller (IJECE 2018)": pacec::Params => |params, port, mtu| {
        params.check()?;
        Ok(PerFlow(Box::new(pacec::PacecPort::new(params, port, mtu))))
    }, with domain |ports, _, mtu, now| Box::new(pacec::Pacec::new(ports, mtu, now));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::FlowKey;
    use serde::de::value::{Error, MapDeserializer};

    fn built(name: &str, params: &[(&'static str, f64)]) -> Result<&'static str, String> {
        let params = MapDeserializer::<_, Error>::new(params.iter().copied());
        build::<FlowKey, _>(name, params, 1, Bytes::new(1500)).map(|c| c.name()).map_err(|e| e.to_string())
    }

    #[test]
    fn every_name_builds_the_controller_of_that_name() {
        for (name, _) in all() {
            assert_eq!(built(name, &[]), Ok(*name));
        }
    }

    #[test]
    fn errors_state_the_expected_values() {
        let names: Vec<&str> = all().iter().map(|(name, _)| *name).collect();
        assert_eq!(
            built("brv", &[]),
            Err(format!("no rate controller is called \"brv\"; there are: {}", names.join(", ")))
        );
        assert_eq!(built("brf", &[("eta", 2.0)]), Err("eta is 2, but must be from 0.01 to 1".into()));
        assert_eq!(built("pacec", &[("eta", 2.0)]), Err("eta is 2, but must be from 0.01 to 1".into()));
        assert!(built("brf", &[("etta", 1.0)]).unwrap_err().contains("unknown field `etta`"));
    }
}
