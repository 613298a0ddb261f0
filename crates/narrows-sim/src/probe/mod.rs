//! What a run leaves behind: tables of columns.

mod histogram;
mod recorder;
mod table;

pub(crate) use histogram::Histogram;
pub(crate) use recorder::Recorder;
pub(crate) use table::{Cell, row};
pub use table::{Column, Table};
