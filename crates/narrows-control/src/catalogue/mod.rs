//! The catalogue of congestion controllers: one row per algorithm. A row defines the algorithm's name in scenarios,
//! its parameters, its look in figures, and its kernel module.
//!
//! A program can add its own rows ([`Catalogue::add`]) and run them by name.
//!
//! | module | idea |
//! | --- | --- |
//! | `entry` | a row, and its parts |
//! | `rate` | a row for a rate controller of another crate |
//! | `entries` | the rows of this crate |
//! | `choice` | an algorithm and its parameters, in the form that plans use |
//! | `names` | the names of algorithms and presets |

mod choice;
mod entries;
mod entry;
mod names;
mod rate;

use std::sync::LazyLock;

pub use self::choice::Choice;
use self::entry::check_definitions;
pub use self::entry::{Constant, Entry, Family, Feedback, Group, Linux, Look, Needs, Preset, Service};
pub use self::names::{Named, all, build};
pub use self::rate::RateEntry;
use crate::congestion::Controller;
pub use crate::parameter::Problem;
use crate::parameter::number;
use crate::rate::registry;

/// A set of algorithms by name.
#[derive(Clone, Debug)]
pub struct Catalogue {
    entries: Vec<Entry>,
    rate_controllers: Vec<RateEntry>,
}

static BUILT_IN: LazyLock<Catalogue> =
    LazyLock::new(|| Catalogue { entries: entries::FAMILIES.concat(), rate_controllers: Vec::new() });

impl Catalogue {
    /// Returns the algorithms of this crate, sorted by family.
    pub fn built_in() -> &'static Catalogue {
        &BUILT_IN
    }

    /// Adds an algorithm.
    ///
    /// # Errors
    /// Returns an error if the name of the algorithm or of a preset is already in use, if a parameter occurs twice, or
    /// if a default or preset is out of range.
    pub fn add(&mut self, entry: Entry) -> Result<(), Problem> {
        let names = std::iter::once(entry.name).chain(entry.presets.iter().map(|p| p.name));
        for name in names {
            if name.is_empty() || self.find(name).is_some() {
                let expected = "a name that no other algorithm has".to_owned();
                return Err(Problem { parameter: None, found: format!("{name:?}"), expected });
            }
        }
        check_definitions(entry.parameters)?;
        entry.presets.iter().try_for_each(|preset| entry.check(&preset.params()))?;
        self.entries.push(entry);
        Ok(())
    }

    /// Adds a rate controller that reads and writes congestion headers.
    ///
    /// # Errors
    /// Returns an error if the name is already in use, if a parameter occurs twice, or if a default is out of range.
    pub fn add_rate_controller(&mut self, entry: RateEntry) -> Result<(), Problem> {
        let is_added = self.rate_controllers.iter().any(|other| other.name == entry.name);
        if entry.name.is_empty() || is_added || registry::find(entry.name).is_some() {
            let expected = "a name that no other rate controller has".to_owned();
            return Err(Problem { parameter: None, found: format!("{:?}", entry.name), expected });
        }
        check_definitions(entry.parameters)?;
        self.rate_controllers.push(entry);
        Ok(())
    }

    /// Returns the rate controllers that were added to the catalogue. [`registry::all`] returns the built-in rate
    /// controllers.
    pub fn rate_controllers(&self) -> &[RateEntry] {
        &self.rate_controllers
    }

    /// Returns all algorithms.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the algorithm with this name. If the name is that of a preset, returns the preset and its algorithm.
    pub fn find(&self, name: &str) -> Option<(&Entry, Option<&'static Preset>)> {
        let by_name = || self.entries.iter().find(|entry| entry.name == name).map(|entry| (entry, None));
        by_name().or_else(|| {
            self.entries.iter().find_map(|entry| {
                entry.presets.iter().find(|preset| preset.name == name).map(|preset| (entry, Some(preset)))
            })
        })
    }

    /// Checks a name and its parameters.
    ///
    /// # Errors
    /// Returns an error for the first unknown name or invalid value.
    pub fn check(&self, choice: &Choice) -> Result<(), Problem> {
        let Some((entry, _)) = self.find(&choice.name) else {
            return Err(Problem::unknown(&choice.name));
        };
        entry.check(&choice.params)
    }

    /// Returns a new controller, or `None` if no algorithm or preset has this name. Ignores invalid parameters.
    pub fn build(&self, choice: &Choice) -> Option<Box<dyn Controller>> {
        let (entry, preset) = self.find(&choice.name)?;
        let Some(preset) = preset else { return Some((entry.build)(&choice.params)) };
        let mut values = preset.params();
        values.extend(choice.params.iter().map(|(name, value)| (name.clone(), value.clone())));
        Some((entry.build)(&values))
    }

    /// Returns the label of the choice in results: the name, and the given parameters in parentheses.
    pub fn label(&self, choice: &Choice) -> String {
        if choice.params.is_empty() {
            return choice.name.clone();
        }
        let entry = self.find(&choice.name).map(|(entry, _)| entry);
        let given = choice.params.iter().map(|(name, value)| {
            let shape = entry.and_then(|entry| entry.parameter(name)).map_or(number(0.0, 0.0), |p| p.shape);
            format!("{name}={}", shape.text(value))
        });
        format!("{}({})", choice.name, given.collect::<Vec<_>>().join(", "))
    }
}

/// The numbers of a flow in a run. A controller can use these numbers to distinguish flows.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowNumber {
    /// Number of the flow in the results. Flows are numbered in the order in which they start.
    pub id: u32,
    /// Index of the flow's entry in the plan.
    pub entry: u32,
    /// Number of the flow within its entry, if the entry describes several flows.
    pub member: u32,
}

/// A source of congestion controllers for a run. [`Catalogue`] and functions that take a [`Choice`] implement
/// this trait.
pub trait Controllers {
    /// Checks a name and its parameters.
    ///
    /// # Errors
    /// Returns an error for the first unknown name or invalid value.
    fn check(&self, choice: &Choice) -> Result<(), Problem>;

    /// Returns a new controller, or `None` if no algorithm has this name.
    fn build(&self, choice: &Choice) -> Option<Box<dyn Controller>>;

    /// Like [`build`](Controllers::build), for controllers that depend on their flow.
    fn build_for(&self, choice: &Choice, _flow: FlowNumber) -> Option<Box<dyn Controller>> {
        self.build(choice)
    }

    /// Returns the label of the choice in results.
    fn label(&self, choice: &Choice) -> String {
        Catalogue::built_in().label(choice)
    }

    /// Returns the rate controllers that are not in [`registry`].
    fn rate_controllers(&self) -> &[RateEntry] {
        &[]
    }

    /// Builds a controller only to find out what it needs. Returns `None` for a controller that must not be built for
    /// this purpose, such as a user's Python class, whose constructor can have side effects.
    fn probe(&self, choice: &Choice) -> Option<Box<dyn Controller>> {
        self.build(choice)
    }
}

impl Controllers for Catalogue {
    fn check(&self, choice: &Choice) -> Result<(), Problem> {
        Catalogue::check(self, choice)
    }
    fn build(&self, choice: &Choice) -> Option<Box<dyn Controller>> {
        Catalogue::build(self, choice)
    }
    fn label(&self, choice: &Choice) -> String {
        Catalogue::label(self, choice)
    }
    fn rate_controllers(&self) -> &[RateEntry] {
        Catalogue::rate_controllers(self)
    }
}

impl<F: Fn(&Choice) -> Option<Box<dyn Controller>>> Controllers for F {
    fn check(&self, choice: &Choice) -> Result<(), Problem> {
        self(choice).map(|_| ()).ok_or_else(|| Problem::unknown(&choice.name))
    }
    fn build(&self, choice: &Choice) -> Option<Box<dyn Controller>> {
        self(choice)
    }
}

#[cfg(test)]
mod tests;
