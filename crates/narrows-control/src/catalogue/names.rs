//! Built-in congestion controllers by name: algorithms and presets.

use super::{Catalogue, Choice, Entry, Preset};
use crate::congestion::Controller;

/// A name that a scenario can use.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// The name in scenarios and results.
    pub name: &'static str,
    /// One line of description.
    pub summary: &'static str,
    /// The algorithm.
    pub entry: &'static Entry,
    /// The preset, if this is the name of a preset.
    pub preset: Option<&'static Preset>,
}

impl Named {
    /// Returns a new controller for one connection.
    pub fn build(&self) -> Box<dyn Controller> {
        let values = self.preset.map(Preset::params).unwrap_or_default();
        (self.entry.build)(&values)
    }
}

/// Returns all names of built-in controllers, in alphabetical order.
pub fn all() -> Vec<Named> {
    Catalogue::built_in().names()
}

impl Catalogue {
    /// Returns all names, in alphabetical order.
    pub fn names(&'static self) -> Vec<Named> {
        let mut names: Vec<Named> = self.entries().iter().flat_map(names_of).collect();
        names.sort_unstable_by_key(|named| named.name);
        names
    }
}

fn names_of(entry: &'static Entry) -> impl Iterator<Item = Named> {
    let own = Named { name: entry.name, summary: entry.summary, entry, preset: None };
    let presets = entry.presets.iter().map(move |preset| Named {
        name: preset.name,
        summary: preset.summary,
        entry,
        preset: Some(preset),
    });
    std::iter::once(own).chain(presets)
}

/// Returns a new instance of the controller with this name, or `None` if no controller has this name.
pub fn build(name: &str) -> Option<Box<dyn Controller>> {
    Catalogue::built_in().build(&Choice::from(name))
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
