//! The prediction of a trained model.

use super::{Model, Predictor};
use crate::rate::FlowIdentity;
use crate::rate::kit::features::Features;
use crate::units::Rate;

/// A trained model, with the time of day that it needs. The model does not learn during a run.
#[derive(Debug)]
pub(super) struct Learned {
    model: Model,
    second_of_day: u32,
}

impl Learned {
    pub(super) fn new(model: Model) -> Self {
        Learned { model, second_of_day: 0 }
    }
}

impl<K: FlowIdentity> Predictor<K> for Learned {
    fn predict(&self, key: &K) -> Option<Rate> {
        self.model.predict(&Features::of(key, self.second_of_day))
    }

    fn set_second_of_day(&mut self, second: u32) {
        self.second_of_day = second;
    }
}
