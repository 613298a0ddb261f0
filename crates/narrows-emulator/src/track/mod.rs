//! Figures of flows and links over a run, from samples to rows of the result tables.

mod flow;
mod link;

pub(crate) use flow::{External, FlowTrack, Probe};
pub(crate) use link::LinkTrack;
