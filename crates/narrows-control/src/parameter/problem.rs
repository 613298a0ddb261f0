//! The error for the first invalid name or value of given parameters.

use std::fmt;

use super::{Shape, Value, time};
use crate::units::Span;

/// The first invalid name or value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The parameter, or `None` if a name is the problem.
    pub parameter: Option<String>,
    /// The value that was found.
    pub found: String,
    /// The values that were expected.
    pub expected: String,
}

impl Problem {
    /// Reports the value `found`, which the parameter does not accept.
    pub fn of(name: &str, shape: &Shape, found: &Value) -> Self {
        Problem {
            parameter: Some(name.to_owned()),
            found: shortened(shape.quoted(found)),
            expected: shape.expected(),
        }
    }

    /// Reports a parameter that the algorithm does not have. `known` lists the parameters of the algorithm.
    pub fn unknown_parameter(name: &str, algorithm: &str, known: &[String]) -> Self {
        let expected = if known.is_empty() {
            format!("no parameters for {algorithm}")
        } else {
            format!("a parameter of {algorithm}: {}", known.join(", "))
        };
        Problem { parameter: None, found: shortened(format!("{name:?}")), expected }
    }

    /// Reports a value that conflicts with other parameters.
    pub fn relation(name: &str, found: impl ToString, expected: impl Into<String>) -> Self {
        Problem { parameter: Some(name.to_owned()), found: found.to_string(), expected: expected.into() }
    }

    /// Reports a time that is longer than the parameter `other`.
    pub fn longer(name: &str, found: Span, other: &str, most: Span) -> Self {
        Problem::relation(name, time(found), format!("a time up to {other} ({})", time(most)))
    }

    /// Reports a time that is shorter than the parameter `other`.
    pub fn shorter(name: &str, found: Span, other: &str, least: Span) -> Self {
        Problem::relation(name, time(found), format!("a time from {other} ({}) on", time(least)))
    }

    /// Reports that no congestion controller has this name.
    pub fn unknown(name: &str) -> Self {
        let expected = "the name of a congestion controller".to_owned();
        Problem { parameter: None, found: format!("{name:?}"), expected }
    }
}

/// Returns the text, cut to 60 characters. Long texts are possible, because names and words can come from other hosts.
fn shortened(text: String) -> String {
    if text.chars().count() > 60 { text.chars().take(57).chain("...".chars()).collect() } else { text }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem { parameter, found, expected } = self;
        if let Some(parameter) = parameter {
            write!(f, "{parameter}: ")?;
        }
        write!(f, "found {found}, expected {expected}")
    }
}

impl std::error::Error for Problem {}
