//! Result tables and histograms.

mod acks;
#[cfg(feature = "arrow")]
mod arrow;
mod histogram;
mod recorder;
mod table;

pub(crate) use acks::{AckLog, AckRecorder, AckRow};
pub use histogram::Histogram;
pub use recorder::Recorder;
pub(crate) use table::row;
pub use table::{Cell, Column, Table};
