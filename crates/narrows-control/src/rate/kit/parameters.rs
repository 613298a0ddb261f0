//! Reads and checks the parameters of a rate controller at a port.

use crate::parameter::{Parameters, Problem, Values};

/// Maximum number of entries that a table of flows may have.
pub(in crate::rate) const ENTRIES: u64 = u32::MAX as u64 / 2;

/// Parameters of a rate controller at a port.
pub trait PortParameters: Parameters + Default {
    /// Returns the defaults of all parameters. They can depend on given parameters, such as `mode`.
    fn defaults(_given: &Values) -> Self {
        Self::default()
    }

    /// Checks the parameters against each other.
    ///
    /// # Errors
    /// Returns the first parameter that conflicts with another one.
    fn check_relations(&self) -> Result<(), Problem> {
        Ok(())
    }

    /// Checks those given values that are contents of files.
    ///
    /// # Errors
    /// Returns the first problem.
    fn check_contents(_given: &Values) -> Result<(), Problem> {
        Ok(())
    }

    /// Checks all parameters.
    ///
    /// # Errors
    /// Returns the first invalid parameter.
    fn check(&self) -> Result<(), Problem> {
        for (parameter, value) in Self::TABLE.iter().zip(self.values()) {
            parameter.check(&value)?;
        }
        self.check_relations()
    }

    /// Returns the parameters with the given values, in base units.
    ///
    /// # Errors
    /// Returns the first unknown or invalid parameter.
    fn read(controller: &str, given: &Values) -> Result<Self, Problem> {
        Self::check_contents(given)?;
        let mut params = Self::defaults(given);
        for (name, value) in given {
            let Some(parameter) = Self::TABLE.iter().find(|parameter| parameter.name == name) else {
                let known: Vec<_> = Self::TABLE.iter().map(|parameter| parameter.name.to_owned()).collect();
                return Err(Problem::unknown_parameter(name, controller, &known));
            };
            parameter.check(value)?;
            if !params.set(name, value) {
                return Err(Problem::of(name, &parameter.shape, value));
            }
        }
        params.check_relations()?;
        Ok(params)
    }
}
