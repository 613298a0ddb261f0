//! The catalogue of rate controllers. To add a controller, add a row to `controllers!`.

use super::RateController::{Headers, PerFlow};
use super::domain::{DomainController, Settings};
use super::uniform::{Signal, Uniform};
use super::{FlowIdentity, FlowKey, PortId, PortParameters, RateController, bdr, brf, obp, pacec, rcp, xcp};
use crate::parameter::{Parameter, Problem, Takes, Value, Values};
use crate::units::{Bytes, Time};

/// A rate controller of the catalogue.
#[derive(Copy, Clone, Debug)]
pub struct Entry {
    /// The name in scenarios and results.
    pub name: &'static str,
    /// A description of one line.
    pub summary: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    defaults: fn(&Values) -> Vec<Value>,
}

impl Entry {
    const fn new<P: PortParameters>(name: &'static str, summary: &'static str) -> Self {
        Entry { name, summary, parameters: P::TABLE, defaults: |given| P::defaults(given).values() }
    }

    /// Returns the definition of a parameter.
    pub fn parameter(&self, name: &str) -> Option<&'static Parameter> {
        self.parameters.iter().find(|parameter| parameter.name == name)
    }

    /// Returns the definition and default of each parameter. A given value of another parameter, such as `mode`, can
    /// change a default.
    pub fn defaults(&self, given: &Values) -> impl Iterator<Item = (&'static Parameter, Value)> + use<> {
        self.parameters.iter().zip((self.defaults)(given))
    }

    /// Returns the alternatives with which the rate controller works on real switches. Each alternative is one value of
    /// `signal`. If the controller has no `signal`, the only alternative has no parameters. The first alternative is
    /// the default on real switches. The list is empty if the controller cannot work on real switches.
    pub fn on_switches(&self) -> Vec<Values> {
        let signals = match self.parameter("signal").map(|parameter| parameter.shape.takes) {
            Some(Takes::Word(words)) => words,
            _ => &[],
        };
        let with = |word: &&'static str| Values::from([("signal".to_owned(), Value::Word((*word).into()))]);
        // One candidate for each value of `signal`, or a candidate without parameters if there is no `signal`.
        let candidates = signals.iter().map(with).chain(signals.is_empty().then(Values::new));
        let works = |given: &Values| {
            let built = build::<FlowKey>(self.name, given, 0, Bytes::new(1500));
            built.is_ok_and(|controller| controller.into_aggregated().is_some())
        };
        candidates.filter(works).collect()
    }
}

/// Returns the rate controller with this name.
pub fn find(name: &str) -> Option<&'static Entry> {
    all().iter().find(|entry| entry.name == name)
}

/// A function that builds the domain's controller from the domain's ports and the parameters of each port.
type BuildDomain<P, K> = fn(Vec<(PortId, P)>, &Settings, Bytes, Time) -> Box<dyn DomainController<K>>;

fn unknown(name: &str) -> Problem {
    let known: Vec<&str> = all().iter().map(|entry| entry.name).collect();
    let expected = format!("a rate controller: {}", known.join(", "));
    Problem { parameter: None, found: format!("{name:?}"), expected }
}

/// Declares [`all`], [`build`] and [`build_domain`] from rows of the form `name, summary: parameter type =>
/// constructor`. A row may end with `with domain` and the constructor of the domain's controller.
macro_rules! controllers {
    ($($name:literal, $summary:literal: $params:ty => $build:expr $(, with domain $domain:expr)?;)*) => {
        /// Returns all rate controllers, in the order of the rows.
        pub fn all() -> &'static [Entry] {
            static ALL: &[Entry] = &[$(Entry::new::<$params>($name, $summary),)*];
            ALL
        }

        /// Builds the rate controller `name` for a port. Parameters are in base units. A parameter that is not given
        /// has its default.
        ///
        /// # Errors
        /// Returns an error if no rate controller has this name, or if a parameter is unknown or invalid. The error
        /// names the first such parameter.
        pub fn build<K: FlowIdentity>(
            name: &str, params: &Values, port: PortId, mtu: Bytes,
        ) -> Result<RateController<K>, Problem> {
            match name {
                $($name => {
                    let build: fn($params, PortId, Bytes) -> RateController<K> = $build;
                    Ok(build(<$params>::read($name, params)?, port, mtu))
                })*
                _ => Err(unknown(name)),
            }
        }

        /// Builds the domain's controller for all ports of the kind `name`; `None` if this kind needs no domain's
        /// controller.
        ///
        /// # Errors
        /// Returns the first unknown or invalid parameter.
        #[allow(clippy::type_complexity)]
        pub fn build_domain<K: FlowIdentity>(
            name: &str, ports: &[(PortId, Values)], settings: &Settings, mtu: Bytes, now: Time,
        ) -> Result<Option<Box<dyn DomainController<K>>>, Problem> {
            match name {
                $($($name => {
                    let build: BuildDomain<$params, K> = $domain;
                    let ports: Result<Vec<_>, _> =
                        ports.iter().map(|(port, given)| Ok((*port, <$params>::read($name, given)?))).collect();
                    Ok(Some(build(ports?, settings, mtu, now)))
                })?)*
                _ => Ok(None),
            }
        }
    };
}

controllers! {
    "brf", "Bottleneck routing feedback: per-flow rates written into ACKs, three-queue HTB (Sensors 2024)": brf::Params
        => |params, port, mtu| PerFlow(Box::new(brf::Brf::new(params, port, mtu))),
        with domain |ports, settings, mtu, now| Box::new(brf::Sdn::new(
        ports.into_iter().map(|(port, params)| (port, brf::domain::Params::of(&params, settings, mtu))), now));
    "rcp", "Rate control protocol: one rate for all flows of a port, from spare capacity and queue": rcp::Params
        => |params, _, _| match (params.signal, params.max_flows) {
            (Signal::Header, _) => Headers(Box::new(rcp::RcpPort::new(params))),
            (Signal::Ack, flows) => PerFlow(Box::new(Uniform::new(rcp::Stamped::new(params), flows))),
        };
    "xcp", "Explicit control protocol: a change of the window for each packet, by header": xcp::Params
        => |params, _, _| Headers(Box::new(xcp::XcpPort::new(params)));
    "bdr", "Per-flow bandwidth distribution: flows counted from designated packets, an equal share for each": bdr::Params
        => |params, _, _| match params.signal {
            Signal::Header => Headers(Box::new(bdr::BdrPort::new(params))),
            Signal::Ack => PerFlow(Box::new(bdr::Stateless::new(params))),
        };
    "obp", "Open box protocol, as far as it is known: the bandwidth left on a path, by header (an optional baseline)": obp::Params
        => |params, _, _| Headers(Box::new(obp::ObpPort::new(params)));
    "pacec", "Path associativity centralized explicit congestion control: max-min rates from one controller (IJECE 2018)": pacec::Params
        => |params, port, mtu| PerFlow(Box::new(pacec::PacecPort::new(params, port, mtu))),
        with domain |ports, _, mtu, now| Box::new(pacec::Pacec::new(ports, mtu, now));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(name: &str, params: &[(&str, f64)]) -> Result<&'static str, String> {
        let params = params.iter().map(|&(name, value)| (name.to_owned(), Value::Number(value))).collect();
        build::<FlowKey>(name, &params, 1, Bytes::new(1500)).map(|c| c.name()).map_err(|e| e.to_string())
    }

    #[test]
    fn every_name_builds_the_controller_of_that_name() {
        for entry in all() {
            assert_eq!(built(entry.name, &[]), Ok(entry.name));
        }
    }

    #[test]
    fn real_switches_write_no_headers() {
        let needed: Vec<_> = all().iter().map(|entry| (entry.name, entry.on_switches())).collect();
        let signal = |word: &'static str| Values::from([("signal".to_owned(), Value::Word(word.into()))]);
        let expected = [
            ("brf", vec![Values::new()]),
            ("rcp", vec![signal("ack")]),
            ("xcp", vec![]),
            ("bdr", vec![signal("ack")]),
            ("obp", vec![]),
            ("pacec", vec![signal("in-band"), signal("out-of-band")]),
        ];
        assert_eq!(needed, expected);
    }

    #[test]
    fn every_default_is_valid_in_each_mode() {
        for entry in all() {
            for mode in [None, Some("literal"), Some("resolved")] {
                let mode = mode.filter(|_| entry.parameter("mode").is_some());
                let given: Values =
                    mode.iter().map(|&word| ("mode".to_owned(), Value::Word(word.into()))).collect();
                let all: Values =
                    entry.defaults(&given).map(|(p, value)| (p.name.to_owned(), value)).collect();
                let built = build::<FlowKey>(entry.name, &all, 1, Bytes::new(1500));
                assert_eq!(built.err(), None, "{} {mode:?}", entry.name);
            }
        }
    }

    #[test]
    fn every_parameter_has_a_source() {
        let lacks = |entry: &Entry| {
            let without = entry.parameters.iter().filter(|parameter| parameter.shape.source.is_empty());
            without.map(|parameter| (entry.name, parameter.name)).collect::<Vec<_>>()
        };
        assert_eq!(all().iter().flat_map(lacks).collect::<Vec<_>>(), []);
    }

    #[test]
    fn errors_state_the_expected_values() {
        let said = |name: &str, pair: (&str, f64)| built(name, &[pair]).unwrap_err();
        let kinds = "a rate controller: brf, rcp, xcp, bdr, obp, pacec";
        assert_eq!(built("brv", &[]), Err(format!("found \"brv\", expected {kinds}")));
        for name in ["brf", "pacec"] {
            assert_eq!(said(name, ("eta", 2.0)), "eta: found 2, expected a number from 0.01 to 1");
        }
        let known = said("obp", ("etta", 1.0));
        assert_eq!(known, "found \"etta\", expected a parameter of obp: a, b, a_later, interval");
    }
}
