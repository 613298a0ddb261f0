//! The rows of the catalogue. A new algorithm is a row in the file of its family; the order is that of figures.

mod bbr;
mod linux;
mod network;

use super::Entry;

/// All rows, by family.
pub(super) const FAMILIES: &[&[Entry]] =
    &[linux::LOSS, linux::DELAY, bbr::MODEL, linux::MARKS, network::NETWORK];
