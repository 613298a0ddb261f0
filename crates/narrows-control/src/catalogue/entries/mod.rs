//! The rows of the catalogue. To add an algorithm, add a row to the file of its family. Figures show the algorithms
//! in the order of the rows.

mod delay;
mod loss;
mod marks;
mod model;
mod network;

use super::Entry;

/// All rows, by family.
pub(super) const FAMILIES: &[&[Entry]] =
    &[loss::LOSS, delay::DELAY, model::MODEL, marks::MARKS, network::NETWORK];
