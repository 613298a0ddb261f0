//! Rows of the algorithms that respond to ECN marks.

use crate::catalogue::{Entry, Family, Group, Linux, Look, Needs};
use crate::congestion::linux::dctcp::{self, Dctcp};
use crate::parameter::Parameters;

/// Algorithms that respond to ECN marks.
pub(super) const MARKS: &[Entry] = &[Entry {
    name: "dctcp",
    family: Family::Marks,
    summary: "backs off in proportion to the share of marked packets; implies ECN (RFC 8257)",
    needs: Needs { marks_or_else: Some("Reno"), ..Needs::NOTHING },
    linux: Some(Linux { name: "dctcp", module: Some("tcp_dctcp") }),
    look: Some(Look::new("DCTCP", "#56789c", "#9cc0e6", "dashed", "cross")),
    parameters: &[Group::of::<dctcp::Params>("")],
    presets: &[],
    build: |v| Box::new(Dctcp::new(dctcp::Params::default().with("", v))),
}];
