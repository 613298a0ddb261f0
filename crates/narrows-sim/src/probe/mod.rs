//! Result tables and histograms.

mod histogram;
mod recorder;
mod table;

pub use histogram::Histogram;
pub use recorder::Recorder;
pub(crate) use table::row;
pub use table::{Cell, Column, Table};
