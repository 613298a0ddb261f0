//! The rows of the catalogue. A new algorithm is a row in the file of its family; the order is that of figures.

mod delay;
mod loss;
mod marks;
mod model;
mod network;

use super::Entry;

/// All rows, by family.
pub(super) const FAMILIES: &[&[Entry]] =
    &[loss::LOSS, delay::DELAY, model::MODEL, marks::MARKS, network::NETWORK];
