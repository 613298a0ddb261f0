//! A rate controller of another crate, as a row of the catalogue.

use super::entry::{Group, check_values, list_parameters};
use crate::parameter::{Parameter, Problem, Value, Values};
use crate::rate::{HeaderController, PortId};
use crate::units::Bytes;

/// A rate controller of another crate that reads and changes congestion headers. Senders create these headers
/// ([`Header::Custom`](crate::feedback::header::Header::Custom)).
#[derive(Copy, Clone, Debug)]
pub struct RateEntry {
    /// The name in scenarios and results.
    pub name: &'static str,
    /// One line of description.
    pub summary: &'static str,
    /// Its parameters.
    pub parameters: &'static [Group],
    /// Builds the rate controller of a port. The values must be valid. The last argument is the size of a full packet.
    pub build: fn(&Values, PortId, Bytes) -> Box<dyn HeaderController>,
}

impl RateEntry {
    /// Returns a rate controller without parameters.
    pub const fn new(
        name: &'static str,
        summary: &'static str,
        build: fn(&Values, PortId, Bytes) -> Box<dyn HeaderController>,
    ) -> Self {
        RateEntry { name, summary, parameters: &[], build }
    }

    /// Returns the full name, the definition and the default of each parameter.
    pub fn parameters(&self) -> impl Iterator<Item = (String, &'static Parameter, Value)> + use<> {
        list_parameters(self.parameters)
    }

    /// Checks parameters.
    ///
    /// # Errors
    /// Returns an error for the first parameter that is unknown or out of range.
    pub fn check(&self, values: &Values) -> Result<(), Problem> {
        check_values(self.name, self.parameters, values)
    }
}
