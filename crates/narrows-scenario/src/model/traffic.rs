//! Traffic of applications.

use super::beginning::{Beginning, check_time};
use crate::data;
use crate::units::{BitRate, Bytes, Span};
use crate::value::Value;
use crate::value::fields::{
    Duration, Field, List, Number, Period, PositiveDuration, Rate, RateOrZero, Size, Whole, ranges,
};
use crate::value::reader::{Part, Reader};
use crate::value::reference;
use crate::value::schema;
use crate::value::table::{Given, Keys, Takes, table};
use crate::value::words::words;

table! {
    /// A change of an application during the run.
    pub struct AppChange check AppChange::timed {
        /// Time of the change. With `when`, the time from the beginning of the phase to the change (default: 0).
        pub time: Option<Span> as Option<Duration> = None;
        /// The beginning of a phase of a flow, at which the change happens. Only simulations support it.
        pub when: Option<Beginning> as Option<Beginning> = None;
        /// Rate of the application from this time on; '0mbit' is a pause (default: no limit).
        pub rate: Option<BitRate> as Option<RateOrZero> = None;
    }
}

impl AppChange {
    fn timed(&self) -> Result<(), String> {
        check_time(self.time, self.when.as_ref())
    }
}

table! {
    /// An application that sends at a constant rate, only in its on periods, or at a rate that changes.
    pub struct App check App::periods {
        /// Rate of the application while it is on. Without `at`, this key is required. With `at`, the default is no
        /// limit.
        pub rate: Option<BitRate> as Option<Rate> = None;
        /// Duration of an on period (default: always on).
        pub on: Option<Span> as Option<Period> = None;
        /// Duration of an off period.
        pub off: Option<Span> as Option<PositiveDuration> = None;
        /// Changes of the rate during the run, in order of time.
        pub at: Vec<AppChange> as List<AppChange> = Vec::new();
    }
}

impl App {
    fn periods(&self) -> Result<(), String> {
        let expected = if self.on.is_some() != self.off.is_some() {
            "both on and off, or neither"
        } else if self.rate.is_none() && self.at.is_empty() {
            "a rate, or changes of the rate (at = [...])"
        } else if self.on.is_some() && !self.at.is_empty() {
            "either on and off, or changes of the rate (at = [...])"
        } else {
            return Ok(());
        };
        Err(expected.to_owned())
    }

    /// Returns an application that always sends at this rate.
    pub(crate) fn always(rate: BitRate) -> Self {
        App { rate: Some(rate), on: None, off: None, at: Vec::new(), given: Given(1) }
    }
}

words! {
    /// Kind of a distribution of sizes.
    pub enum Distribution {
        /// All sizes are equal.
        Fixed = "fixed",
        /// Exponential.
        Exponential = "exponential",
        /// Pareto (type I).
        Pareto = "pareto",
        /// Measured in a web search cluster.
        WebSearch = "web-search",
        /// Measured in a data mining cluster.
        DataMining = "data-mining",
        /// Measured in Facebook's Hadoop cluster.
        Hadoop = "hadoop",
    }
}

ranges! {
    /// Shape of a Pareto distribution.
    Shape: 1.0 false, 100.0;
    /// Flows per second.
    ArrivalRate: 0.0 false, 1e6;
}

table! {
    /// Sizes of arriving flows or requested objects, application bytes.
    pub struct SizeDistribution check SizeDistribution::has_mean {
        /// Kind of the distribution. The last three were measured in data centres: a web search cluster (DCTCP, SIGCOMM
        /// 2010), a data mining cluster (VL2, SIGCOMM 2009), and Facebook's Hadoop cluster (Roy et al., SIGCOMM 2015).
        /// The points of these distributions are those that pFabric and HPCC use.
        pub distribution: Distribution as Distribution;
        /// Mean size. For `fixed`, it is the only size. Measured distributions are scaled to this mean (default: they
        /// are not scaled).
        pub mean: Option<Bytes> as Option<Size> = None;
        /// Shape of the Pareto distribution, above 1.
        pub shape: f64 as Number<Shape> = 1.8;
    }
}

impl SizeDistribution {
    fn has_mean(&self) -> Result<(), String> {
        let word = self.distribution.word();
        if self.mean.is_none() && data::measured(word).is_none() {
            return Err(format!("a mean with distribution = '{word}'"));
        }
        Ok(())
    }
}

/// Sizes: one size, or a table with a distribution.
pub(crate) struct SizeOrDistribution;

impl Field for SizeOrDistribution {
    type Value = SizeDistribution;
    fn read<'v>(value: &'v Value, at: &mut Reader<'v>) -> Option<SizeDistribution> {
        if let Value::Text(_) = value {
            let mean = at.inside(Part::Form("mean"), |at| Size::read(value, at))?;
            return Some(SizeDistribution {
                distribution: Distribution::Fixed,
                mean: Some(mean),
                shape: 1.8,
                given: Given(0b11),
            });
        }
        SizeDistribution::read(value, at)
    }
    fn write(value: &SizeDistribution, keys: Keys) -> Option<Value> {
        SizeDistribution::write(value, keys)
    }
    fn schema() -> serde_json::Value {
        schema::any_of(vec![schema::size(), SizeDistribution::schema()])
    }
    fn words() -> String {
        reference::either(&[Size::words(), SizeDistribution::words()])
    }
    fn takes() -> Takes {
        SizeDistribution::takes()
    }
}

table! {
    /// Flows that arrive as a Poisson process.
    pub struct Arrivals {
        /// Arrival rate, flows per second.
        pub rate: f64 as Number<ArrivalRate>;
        /// Sizes of the flows: one size, or a table with a distribution.
        pub size: SizeDistribution as SizeOrDistribution;
    }
}

table! {
    /// Objects that the receiver requests on one connection, as a browser does with HTTP/3.
    ///
    /// Each object has a stream of its own. The table `requests` has the time of each object.
    pub struct Requests {
        /// Sizes of the objects: one size, or a table with a distribution.
        pub size: SizeDistribution as SizeOrDistribution;
        /// Number of requests that are open at the same time.
        pub parallel: u32 as Whole<u32, 1, 1000> = 1;
        /// Number of requests (default: until the flow stops).
        pub count: Option<u32> as Option<Whole<u32, 1, 10_000_000>> = None;
        /// Time from the last byte of an object to the next request.
        pub think: Span as Duration = Span::ZERO;
    }
}
