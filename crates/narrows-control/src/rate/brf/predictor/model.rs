//! A trained model. The prediction is a sum of values of regression trees (Friedman, "Greedy function approximation:
//! a gradient boosting machine", 2001).
//!
//! The sum is the natural logarithm of a rate in bit/s, because rates of flows span several powers of ten. A prediction
//! takes at most [`TREES_MAX`] times [`DEPTH_MAX`] comparisons and allocates no memory. `libm` gives the same result on
//! every machine.

use std::sync::Arc;

use super::read;
use crate::parameter::Problem;
use crate::rate::kit::features::Features;
use crate::units::Rate;

/// Maximum length of a model's file in bytes.
pub(in crate::rate::brf) const LENGTH_MAX: usize = 256 << 10;
/// Maximum number of trees.
pub(super) const TREES_MAX: usize = 128;
/// Maximum number of comparisons from the root of a tree to a leaf.
pub(super) const DEPTH_MAX: usize = 8;
/// Maximum absolute value of the base and of a leaf.
pub(super) const VALUE_MAX: f64 = 64.0;
/// The natural logarithm of the highest rate, 1 Pbit/s (1e15 bit/s).
const HIGHEST: f64 = 34.538_776_394_910_684;

/// A node of a tree.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) enum Node {
    /// The value to add.
    Leaf(f64),
    /// A comparison. The flow goes to the node `low` if the feature is at most the threshold, else to `high`.
    Split { feature: u8, threshold: f64, low: u16, high: u16 },
}

/// The parts of a model's file. In each tree the root is first, and the children of a node follow the node.
#[derive(Debug, PartialEq)]
pub(super) struct Parts {
    pub(super) base: f64,
    /// A prediction of at least this rate, in bit/s, does not limit the flow.
    pub(super) unlimited: f64,
    pub(super) trees: Vec<Vec<Node>>,
}

/// A trained model. Clones share the trees.
#[derive(Clone, Debug)]
pub struct Model {
    parts: Arc<Parts>,
    text: Arc<str>,
}

impl PartialEq for Model {
    fn eq(&self, other: &Self) -> bool {
        self.parts == other.parts
    }
}

impl Model {
    /// Reads the contents of a model's file.
    ///
    /// # Errors
    /// Returns the first invalid key.
    pub fn read(text: &str) -> Result<Self, Problem> {
        Ok(Model { parts: Arc::new(read::parts(text)?), text: text.into() })
    }

    /// Returns the contents of the model's file.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the predicted use of a flow, or `None` if the flow is expected to use all it gets.
    pub fn predict(&self, features: &Features) -> Option<Rate> {
        let sum: f64 = self.parts.trees.iter().map(|tree| value(tree, features)).sum();
        let bits = libm::exp((self.parts.base + sum).clamp(0.0, HIGHEST));
        (bits < self.parts.unlimited).then(|| Rate::from_f64(bits / 8.0).max(Rate::from_bytes_per_sec(1)))
    }
}

/// Returns the value of the leaf that the flow reaches. The loop ends, because children are later in the tree than
/// their parents.
fn value(tree: &[Node], features: &Features) -> f64 {
    let mut at = 0;
    loop {
        match tree.get(at) {
            Some(Node::Leaf(value)) => return *value,
            Some(&Node::Split { feature, threshold, low, high }) => {
                let is_low = features.get(feature.into()) <= threshold;
                at = usize::from(if is_low { low } else { high });
            }
            None => return 0.0,
        }
    }
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
