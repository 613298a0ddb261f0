//! Reads the keys of tables. All problems of a scenario are collected, because an unknown key is reported before other
//! problems: a misspelled key is probably why another key is missing.

use super::fields::Field;
use super::problem::{Kind, Problem};
use super::table::Checked;
use super::{Table, Value};

/// A step of the way from the whole scenario to a value.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum Part<'v> {
    /// The key of a table.
    Key(&'v str),
    /// The number of an entry of a list.
    Index(usize),
    /// The choice between several forms of a value, e.g. the kind of a queue. It is no part of the key in messages.
    Form(&'static str),
}

/// The present place in a scenario, and the problems found so far.
#[derive(Debug, Default)]
pub(crate) struct Reader<'v> {
    way: Vec<Part<'v>>,
    problems: Vec<Problem<'v>>,
}

impl<'v> Reader<'v> {
    /// Runs a function one step further.
    pub(crate) fn inside<T>(&mut self, part: Part<'v>, read: impl FnOnce(&mut Self) -> T) -> T {
        self.way.push(part);
        let result = read(self);
        self.way.pop();
        result
    }

    /// Records a problem with the value at the present place.
    pub(crate) fn report(&mut self, kind: Kind, value: &'v Value) {
        self.problems.push(Problem { way: self.way.clone(), kind, value: Some(value) });
    }

    /// Records a problem with a table as a whole.
    fn report_table(&mut self, kind: Kind) {
        self.problems.push(Problem { way: self.way.clone(), kind, value: None });
    }

    /// Returns the value, or records the problem that something else was expected.
    pub(crate) fn accept<T>(&mut self, read: Result<T, String>, value: &'v Value) -> Option<T> {
        read.map_err(|expected| self.report(Kind::Refused(expected), value)).ok()
    }

    /// Returns the number of problems so far.
    pub(crate) fn count(&self) -> usize {
        self.problems.len()
    }

    /// Returns all problems.
    pub(crate) fn into_problems(self) -> Vec<Problem<'v>> {
        self.problems
    }

    /// Reads a key. Returns its value, and whether the table has the key.
    pub(crate) fn key<F: Field>(
        &mut self,
        table: &'v Table,
        (key, also): (&'static str, Option<&'static str>),
        default: Option<F::Value>,
    ) -> Option<(F::Value, bool)> {
        match table.get(key).or_else(|| also.and_then(|name| table.get(name))) {
            Some(value) => self.inside(Part::Key(key), |at| F::read(value, at)).map(|value| (value, true)),
            None => match default {
                Some(value) => Some((value, false)),
                None => {
                    self.inside(Part::Key(key), |at| at.report_table(Kind::Missing));
                    None
                }
            },
        }
    }

    /// Reads a table. Unknown keys are problems. If all keys are valid, the table is checked as a whole.
    pub(crate) fn table<T: Checked>(&mut self, value: &'v Value) -> Option<T> {
        let Value::Table(table) = value else {
            self.report(Kind::Type("a table"), value);
            return None;
        };
        let before = self.count();
        let read = T::read_keys(table, self);
        for (key, value) in table.iter().filter(|(key, _)| !T::about().knows(key)) {
            self.inside(Part::Key(key), |at| at.report(Kind::Unknown, value));
        }
        if self.count() > before {
            return None;
        }
        let read = read?;
        match read.check() {
            Ok(()) => Some(read),
            Err(expected) => {
                self.report_table(Kind::Inconsistent(expected));
                None
            }
        }
    }
}
