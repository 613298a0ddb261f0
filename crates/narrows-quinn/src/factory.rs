//! Builds the controllers of connections.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use narrows_control::catalogue::{Catalogue, Choice, Problem};
use narrows_control::congestion::Controller;

/// Controllers that need TCP timestamps. QUIC has no timestamps.
const NEED_TIMESTAMPS: [&str; 1] = ["lp"];

/// Builds a controller for each connection.
pub struct Factory {
    build: Box<dyn Fn() -> Box<dyn Controller> + Send + Sync>,
    seed: u64,
    /// Number of controllers that were built.
    built: AtomicU64,
}

impl Factory {
    /// Returns a factory of a controller of the catalogue, e.g. `bbr3`.
    ///
    /// # Errors
    /// If no controller has this name, or if the controller needs information that QUIC does not carry.
    pub fn named(name: &str) -> Result<Self, Problem> {
        Factory::with_parameters(name.into())
    }

    /// Returns a factory of a controller of the catalogue with parameters.
    ///
    /// # Errors
    /// If a parameter is not valid, or if [`named`](Factory::named) would return an error.
    pub fn with_parameters(choice: Choice) -> Result<Self, Problem> {
        let catalogue = Catalogue::built_in();
        catalogue.check(&choice)?;
        let unknown = Problem::unknown(&choice.name);
        let sample = catalogue.build(&choice).ok_or_else(|| unknown.clone())?;
        refuse_unsupported(&choice.name, &*sample)?;
        // The name and the parameters were checked above, so this cannot fail.
        let build = move || catalogue.build(&choice).unwrap_or_else(|| unreachable!("{unknown:?}"));
        Ok(Factory::from_fn(build))
    }

    /// Returns a factory of controllers of your own. They get no congestion headers and no exact ECN echoes.
    pub fn from_fn(build: impl Fn() -> Box<dyn Controller> + Send + Sync + 'static) -> Self {
        Factory { build: Box::new(build), seed: 0, built: AtomicU64::new(0) }
    }

    /// Builds the next controller. Returns it with its seed.
    pub(crate) fn next(&self) -> (Box<dyn Controller>, u64) {
        let seed = self.seed.wrapping_add(self.built.fetch_add(1, Ordering::Relaxed));
        ((self.build)(), seed)
    }

    /// Sets the seed of the controllers' random choices. Controllers of one factory get different seeds.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }
}

/// Refuses a controller that needs information that QUIC does not carry.
pub(crate) fn refuse_unsupported(name: &str, cc: &dyn Controller) -> Result<(), Problem> {
    let needs = if NEED_TIMESTAMPS.contains(&cc.name()) {
        "TCP timestamps"
    } else if cc.needs_exact_ce_echo() {
        "each ECN mark"
    } else if cc.wants_feedback() || cc.header_bytes() > 0 {
        "rates from the network"
    } else {
        return Ok(());
    };
    let expected = format!("a controller that QUIC can carry (this one needs {needs})");
    Err(Problem { parameter: None, found: format!("{name:?}"), expected })
}

impl fmt::Debug for Factory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Factory").field("seed", &self.seed).finish_non_exhaustive()
    }
}
