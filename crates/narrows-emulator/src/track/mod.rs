//! Figures of flows and links over a run: samples are turned into rows of the result tables.

mod flow;
mod link;

pub(crate) use flow::{External, FlowTrack, Probe};
pub(crate) use link::LinkTrack;
