//! Predicts a new flow's use of the link (BRF-31).
//!
//! The paper says "machine learning model" in one place and "average bandwidth of streams with that quintuple" in
//! another, and discloses no model. The parameter `predictor` selects one of three methods: no prediction, averages, or
//! a model that `narrows train` has made from flow records.

mod average;
mod learned;
mod model;
mod read;

use core::fmt::Debug;

pub(super) use self::average::Averages;
use self::learned::Learned;
pub(super) use self::model::LENGTH_MAX;
pub use self::model::Model;
use super::Params;
use crate::parameter::{Field, Problem, Shape, Value};
use crate::rate::FlowIdentity;
use crate::units::Rate;

/// Predicts the rate that a new flow can use. A prediction limits the flow's first rate.
pub(super) trait Predictor<K: FlowIdentity>: Debug + Send {
    /// Returns the predicted use of a flow with this key, or `None` if the flow needs no limit.
    fn predict(&self, key: &K) -> Option<Rate>;

    /// Returns the predicted use of a TCP flow whose key is not known.
    fn predict_any(&self) -> Option<Rate> {
        None
    }

    /// Learns from a flow that has ended. `used` is the rate that the flow could use: its mean rate over its
    /// measurement windows, or the capacity if the flow filled its share.
    fn learn(&mut self, _key: &K, _used: Rate) {}

    /// Sets the time of day, in seconds.
    fn set_second_of_day(&mut self, _second: u32) {}
}

/// No prediction: each new flow can use the whole link.
#[derive(Debug)]
struct Off;

impl<K: FlowIdentity> Predictor<K> for Off {
    fn predict(&self, _key: &K) -> Option<Rate> {
        None
    }
}

/// The predictor that the parameters of a port select.
#[derive(Clone, Debug, PartialEq)]
pub enum Prediction {
    /// No prediction.
    Off,
    /// Averages by prefix and service.
    Average,
    /// A trained model.
    Trained(Model),
}

impl Prediction {
    pub(super) const WORDS: &'static [&'static str] = &["off", "average"];

    /// Reads a word, or the contents of a model's file.
    ///
    /// # Errors
    /// Returns the first invalid key of the model.
    pub(super) fn parse(text: &str) -> Result<Self, Problem> {
        match text {
            "off" => Ok(Prediction::Off),
            "average" => Ok(Prediction::Average),
            _ => Model::read(text).map(Prediction::Trained),
        }
    }

    pub(super) fn build<K: FlowIdentity>(params: &Params) -> Box<dyn Predictor<K>> {
        let Params { predictor_weight, predictor_samples, predictor_entries, .. } = *params;
        match &params.predictor {
            Prediction::Off => Box::new(Off),
            Prediction::Average => {
                Box::new(Averages::<K::Host>::new(predictor_weight, predictor_samples, predictor_entries))
            }
            Prediction::Trained(model) => Box::new(Learned::new(model.clone())),
        }
    }
}

impl Field for Prediction {
    fn read(value: &Value, _shape: &Shape) -> Option<Self> {
        if let Value::Word(word) = value { Prediction::parse(word).ok() } else { None }
    }

    fn value(&self, _shape: &Shape) -> Value {
        match self {
            Prediction::Off => Value::Word("off".into()),
            Prediction::Average => Value::Word("average".into()),
            Prediction::Trained(model) => Value::Word(model.text().to_owned().into()),
        }
    }
}
