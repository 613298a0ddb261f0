//! The rate controllers by name. A new one is one line in the table below.

use serde::Deserialize;
use serde::de::{Deserializer, Error};

use super::{PortId, RateController, brf};
use crate::units::Bytes;

/// Declares [`all`] and [`build`] from lines of `name, summary: type of parameters => how to build`.
macro_rules! controllers {
    ($($name:literal, $summary:literal: $params:ty => $build:expr;)*) => {
        /// All controllers in the order of the table: (name, what it is in a line).
        pub const fn all() -> &'static [(&'static str, &'static str)] {
            &[$(($name, $summary)),*]
        }

        /// The rate controller called `name` for a port, with parameters from any serde format. Errors name the
        /// parameter, what was found and what would do.
        pub fn build<'de, D: Deserializer<'de>>(
            name: &str, params: D, port: PortId, mtu: Bytes,
        ) -> Result<Box<dyn RateController>, D::Error> {
            match name {
                $($name => {
                    let params = <$params>::deserialize(params)?;
                    let build: fn($params, PortId, Bytes) -> Result<Box<dyn RateController>, String> = $build;
                    build(params, port, mtu).map_err(D::Error::custom)
                })*
                _ => Err(D::Error::custom(format_args!(
                    "no rate controller is called {name:?}; there are: {}",
                    all().iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
                ))),
            }
        }
    };
}

controllers! {
    "brf", "Bottleneck routing feedback: per-flow rates written into ACKs, three-queue HTB (Sensors 2024)": brf::Params => |params, port, mtu| match params.check() {
        Ok(_) => Ok(Box::new(brf::Brf::new(params, port, mtu))),
        Err(trouble) => Err(trouble.to_string()),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::value::{Error, MapDeserializer};

    fn built(name: &str, params: &[(&'static str, f64)]) -> Result<&'static str, String> {
        let params = MapDeserializer::<_, Error>::new(params.iter().copied());
        build(name, params, 1, Bytes::new(1500)).map(|c| c.name()).map_err(|e| e.to_string())
    }

    #[test]
    fn every_name_builds_the_controller_of_that_name() {
        for (name, _) in all() {
            assert_eq!(built(name, &[]), Ok(*name));
        }
    }

    #[test]
    fn errors_say_what_would_do() {
        assert_eq!(built("brv", &[]), Err("no rate controller is called \"brv\"; there are: brf".into()));
        assert_eq!(built("brf", &[("eta", 2.0)]), Err("eta is 2, but must be from 0.01 to 1".into()));
        assert!(built("brf", &[("etta", 1.0)]).unwrap_err().contains("unknown field `etta`"));
    }
}
