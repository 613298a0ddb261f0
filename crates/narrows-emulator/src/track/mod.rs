//! Converts samples of flows and links into rows of the result tables.

mod flow;
mod link;
mod probe;

pub(crate) use flow::{FlowTrack, Rows};
pub(crate) use link::LinkTrack;
pub(crate) use probe::{External, Probe, Program};
