//! What a run leaves behind: tables of columns.

mod histogram;
mod recorder;
mod table;

pub use histogram::Histogram;
pub use recorder::Recorder;
pub(crate) use table::row;
pub use table::{Cell, Column, Table};
