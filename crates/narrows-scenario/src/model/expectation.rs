//! Sweeps, and conditions that the results of a scenario must meet.

use std::collections::HashSet;

use indexmap::IndexMap;

use super::MAX_SEEDS;
use crate::value::fields::{Data, Field, List, Map, Name, Number, Quantity, Text, Whole, ranges};
use crate::value::problem::Kind;
use crate::value::reader::Reader;
use crate::value::table::{Checked, Keys, table};
use crate::value::words::words;
use crate::value::{Table, Value};

table! {
    /// A named variation of the scenario.
    pub struct Case {
        /// Name of the case in results.
        pub name: String as Name;
        /// Dotted keys that the case sets, and their values.
        pub set: IndexMap<String, Value> as Map<Data>;
    }
}

table! {
    /// The runs of a scenario: each case, with each combination of the values in `vary`, with each seed.
    pub struct Sweep check Sweep::distinct {
        /// Number of seeds per point: `seed`, `seed` + 1, ...
        pub seeds: u64 as Whole<u64, 1, MAX_SEEDS> = 1;
        /// Dotted keys of the scenario, each with a list of values. All combinations of the values run.
        pub vary: IndexMap<String, Vec<Value>> as Map<List<Data, 1>> = IndexMap::new();
        /// Variations that change several keys at once.
        pub case: Vec<Case> as List<Case> = Vec::new();
    }
}

impl Sweep {
    fn distinct(&self) -> Result<(), String> {
        let names: HashSet<&str> = self.case.iter().map(|case| case.name.as_str()).collect();
        if names.len() == self.case.len() { Ok(()) } else { Err("cases with different names".to_owned()) }
    }
}

table! {
    /// One side of a comparison.
    pub struct Selection {
        /// The selected points of the sweep: for each named factor, a value or a list of values (default: all points).
        pub place["where"]: IndexMap<String, Value> as Map<Data> = IndexMap::new();
        /// Arguments of the measure.
        pub args: IndexMap<String, Value> as Map<Data> = IndexMap::new();
    }
}

words! {
    /// How two sides become one number.
    pub enum Compare {
        /// First minus second.
        Difference = "difference",
        /// First divided by second.
        Ratio = "ratio",
        /// By how many percent the first is larger.
        Gain = "gain",
    }
}

ranges! {
    /// Level of a confidence interval.
    Confidence: 0.5 true, 0.9999;
}

/// A value of a measure, which has to be finite.
pub(crate) struct Bound;

impl Field for Bound {
    type Value = Value;
    fn read<'v>(value: &'v Value, at: &mut Reader<'v>) -> Option<Value> {
        let read = Quantity::read(value, at)?;
        if read.as_number().is_some_and(|number| !number.is_finite()) {
            at.report(Kind::Type("a finite number"), value);
            return None;
        }
        Some(read)
    }
    fn write(value: &Value, keys: Keys) -> Option<Value> {
        Quantity::write(value, keys)
    }
    fn schema() -> serde_json::Value {
        Quantity::schema()
    }
    fn words() -> String {
        Quantity::words()
    }
}

table! {
    /// A condition that the results must meet. There is a separate verdict for each point of the sweep.
    pub struct Expectation check Expectation::complete {
        /// The expectation in words, for reports (default: the measure and its limit).
        pub says: String as Text = String::new();
        /// Name of the measure (`narrows list measures`).
        pub measure: String as Text;
        /// Arguments of the measure, e.g. `{ flows = "a*" }`.
        pub args: IndexMap<String, Value> as Map<Data> = IndexMap::new();
        /// The points of the sweep to which the condition applies: for some factors, a value or a list of values, e.g.
        /// `{ "topology.rate" = "50mbit" }` (default: all points).
        pub place["where"]: IndexMap<String, Value> as Map<Data> = IndexMap::new();
        /// The second side of a comparison. From the first side, it inherits the keys of `where` and `args` that it
        /// does not set.
        pub than: Option<Selection> as Option<Selection> = None;
        /// How the two sides become one number for each seed: the difference (first minus second), the ratio (first
        /// divided by second), or the gain (by how many percent the first is larger).
        pub compare: Option<Compare> as Option<Compare> = None;
        /// The smallest value that a run may have.
        pub at_least: Option<Value> as Option<Bound> = None;
        /// The largest value that a run may have.
        pub at_most: Option<Value> as Option<Bound> = None;
        /// The confidence interval of the mean over seeds must lie above this value.
        pub above: Option<Value> as Option<Bound> = None;
        /// The confidence interval of the mean over seeds must lie below this value.
        pub below: Option<Value> as Option<Bound> = None;
        /// The confidence interval of the mean over seeds must lie between `about` - `within` and `about` + `within`.
        pub about: Option<Value> as Option<Bound> = None;
        /// The largest permitted deviation from `about`.
        pub within: Option<Value> as Option<Bound> = None;
        /// Level of the confidence interval (default: 0.95).
        pub confidence: Option<f64> as Option<Number<Confidence>> = None;
    }
}

impl Expectation {
    /// Returns all keys that have a value, including default values.
    pub fn full(&self) -> Table {
        let mut table = Table::new();
        self.write_keys(&mut table, Keys::All);
        table
    }

    fn complete(&self) -> Result<(), String> {
        let limits = [&self.at_least, &self.at_most, &self.above, &self.below, &self.about];
        if limits.into_iter().flatten().count() != 1 {
            return Err("exactly one of at_least, at_most, above, below, about".to_owned());
        }
        if self.about.is_some() != self.within.is_some() {
            return Err("about and within together".to_owned());
        }
        if self.than.is_some() != self.compare.is_some() {
            return Err("than and compare together".to_owned());
        }
        Ok(())
    }
}
