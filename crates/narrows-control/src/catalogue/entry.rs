//! A row of the catalogue, and its parts.

use std::collections::BTreeSet;
use std::fmt;

use crate::congestion::Controller;
use crate::parameter::{Parameter, Parameters, Problem, Value, Values};

/// The signal that an algorithm mainly responds to. Figures and tables are sorted by family.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Losses.
    Loss,
    /// Delay, or losses and delay.
    Delay,
    /// A model of the path: bandwidth and propagation time.
    Model,
    /// ECN marks.
    Marks,
    /// Rates or windows from the network.
    Network,
}

impl Family {
    /// Returns the name of the family.
    pub fn name(self) -> &'static str {
        match self {
            Family::Loss => "loss",
            Family::Delay => "delay",
            Family::Model => "model",
            Family::Marks => "marks",
            Family::Network => "network",
        }
    }
}

/// The way in which an answer of the network reaches the sender.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Feedback {
    /// The answer is in a TCP option of ACKs.
    Option,
    /// The answer is in a congestion header of data packets, which the receiver echoes.
    Header,
    /// The answer is in a separate message.
    Message,
}

impl Feedback {
    /// Returns the name of the kind of feedback.
    pub fn name(self) -> &'static str {
        match self {
            Feedback::Option => "option",
            Feedback::Header => "header",
            Feedback::Message => "message",
        }
    }
}

/// The rate controller that an algorithm needs at the ports of the network.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Kind of the rate controller.
    pub kind: &'static str,
    /// The rate controller's parameter `mode`, if the algorithm needs a particular mode.
    pub mode: Option<&'static str>,
    /// Whether the algorithm also needs an SDN controller.
    pub domain: bool,
    /// The way in which the rate controller's answers reach the sender.
    pub feedback: Feedback,
}

/// Requirements on the network.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Without ECN marks, the algorithm behaves like the algorithm with this name. `None` if the algorithm does not
    /// respond to marks.
    pub marks_or_else: Option<&'static str>,
    /// The rate controller that the algorithm depends on.
    pub service: Option<Service>,
}

impl Needs {
    /// No requirements.
    pub const NOTHING: Needs = Needs { marks_or_else: None, service: None };
}

/// The implementation of an algorithm in Linux.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Linux {
    /// The kernel's name of the algorithm (`TCP_CONGESTION`).
    pub name: &'static str,
    /// The kernel module, or `None` if the code is a part of TCP itself.
    pub module: Option<&'static str>,
}

/// How figures draw an algorithm.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// The name in legends.
    pub label: &'static str,
    /// Colour on a white page.
    pub light: &'static str,
    /// Colour on a dark page.
    pub dark: &'static str,
    /// `solid`, `dashed`, `dotted` or `dash-dot`.
    pub dash: &'static str,
    /// Shape of points.
    pub marker: &'static str,
}

impl Look {
    /// Creates a look.
    pub const fn new(
        label: &'static str,
        light: &'static str,
        dark: &'static str,
        dash: &'static str,
        marker: &'static str,
    ) -> Self {
        Look { label, light, dark, dash, marker }
    }
}

/// The value of a parameter in a preset.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Constant {
    /// `true` or `false`.
    Flag(bool),
    /// A number in base units.
    Number(f64),
    /// A word.
    Word(&'static str),
}

impl From<Constant> for Value {
    fn from(constant: Constant) -> Self {
        match constant {
            Constant::Flag(flag) => Value::Flag(flag),
            Constant::Number(n) => Value::Number(n),
            Constant::Word(word) => Value::Word(word.into()),
        }
    }
}

/// A name for an algorithm with certain values for some of its parameters.
#[derive(Copy, Clone, Debug)]
pub struct Preset {
    /// The name in scenarios and results.
    pub name: &'static str,
    /// One line of description.
    pub summary: &'static str,
    /// Its parameters.
    pub values: &'static [(&'static str, Constant)],
    /// Its look.
    pub look: Look,
    /// The rate controller's parameter `mode`, if the preset needs another mode than its algorithm.
    pub mode: Option<&'static str>,
}

impl Preset {
    /// Returns the parameters by name.
    pub fn params(&self) -> Values {
        self.values.iter().map(|&(name, value)| (name.to_owned(), value.into())).collect()
    }
}

/// The parameters of one structure. Their names in scenarios have a common prefix.
#[derive(Copy, Clone)]
pub struct Group {
    /// Prefix of the names in scenarios.
    pub prefix: &'static str,
    /// The parameters.
    pub table: &'static [Parameter],
    /// The defaults of these parameters, in the order of the table.
    pub defaults: fn() -> Vec<Value>,
}

impl Group {
    /// Returns the parameters of a structure with its defaults.
    pub const fn of<P: Parameters + Default>(prefix: &'static str) -> Self {
        Group { prefix, table: P::TABLE, defaults: || P::default().values() }
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group")
            .field("prefix", &self.prefix)
            .field("table", &self.table)
            .finish_non_exhaustive()
    }
}

/// A congestion control algorithm.
#[derive(Copy, Clone, Debug)]
pub struct Entry {
    /// The name in scenarios and results.
    pub name: &'static str,
    /// Its family.
    pub family: Family,
    /// One line of description.
    pub summary: &'static str,
    /// Its requirements on the network.
    pub needs: Needs,
    /// The implementation of the algorithm in Linux, if there is one.
    pub linux: Option<Linux>,
    /// Its look in figures. If `None`, each figure chooses an unused look.
    pub look: Option<Look>,
    /// Its parameters.
    pub parameters: &'static [Group],
    /// Presets of the algorithm.
    pub presets: &'static [Preset],
    /// Builds the controller for one connection. The values must be valid. If a parameter has no value, its default
    /// applies.
    pub build: fn(&Values) -> Box<dyn Controller>,
}

impl Entry {
    /// Returns an algorithm that has no parameters and needs nothing from the network.
    pub const fn new(
        name: &'static str,
        family: Family,
        summary: &'static str,
        build: fn(&Values) -> Box<dyn Controller>,
    ) -> Self {
        Entry {
            name,
            family,
            summary,
            needs: Needs::NOTHING,
            linux: None,
            look: None,
            parameters: &[],
            presets: &[],
            build,
        }
    }

    /// Returns the full name, the definition and the default of each parameter.
    pub fn parameters(&self) -> impl Iterator<Item = (String, &'static Parameter, Value)> + use<> {
        list_parameters(self.parameters)
    }

    /// Returns the definition of a parameter.
    pub fn parameter(&self, name: &str) -> Option<&'static Parameter> {
        find_parameter(self.parameters, name)
    }

    pub(super) fn check(&self, values: &Values) -> Result<(), Problem> {
        check_values(self.name, self.parameters, values)
    }
}

/// Returns the full name, the definition and the default of each parameter in these groups.
pub(super) fn list_parameters(
    groups: &'static [Group],
) -> impl Iterator<Item = (String, &'static Parameter, Value)> {
    groups.iter().flat_map(|group| {
        let defaults = (group.defaults)();
        group.table.iter().zip(defaults).map(|(p, value)| (format!("{}{}", group.prefix, p.name), p, value))
    })
}

/// Returns the definition of a parameter.
pub(super) fn find_parameter(groups: &'static [Group], name: &str) -> Option<&'static Parameter> {
    groups.iter().find_map(|group| {
        let rest = name.strip_prefix(group.prefix)?;
        group.table.iter().find(|p| p.name == rest)
    })
}

/// Checks the parameters of `owner`. Returns an error for the first parameter that is unknown or out of range.
pub(super) fn check_values(owner: &str, groups: &'static [Group], values: &Values) -> Result<(), Problem> {
    for (name, value) in values {
        let Some(parameter) = find_parameter(groups, name) else {
            let known: Vec<String> = list_parameters(groups).map(|(name, ..)| name).collect();
            return Err(Problem::unknown_parameter(name, owner, &known));
        };
        if !parameter.shape.accepts(value) {
            return Err(Problem::of(name, &parameter.shape, value));
        }
    }
    Ok(())
}

/// Checks that each parameter has a valid default, and a name that no other parameter has.
pub(super) fn check_definitions(groups: &'static [Group]) -> Result<(), Problem> {
    let mut known = BTreeSet::new();
    for (name, parameter, default) in list_parameters(groups) {
        let expected = parameter.shape.expected();
        if !parameter.shape.accepts(&default) {
            let found = format!("the default {}", parameter.shape.text(&default));
            return Err(Problem { parameter: Some(name), found, expected });
        }
        if !known.insert(name.clone()) || name == "name" {
            let expected = "a name that no other parameter has".to_owned();
            return Err(Problem { parameter: None, found: format!("{name:?}"), expected });
        }
    }
    Ok(())
}
