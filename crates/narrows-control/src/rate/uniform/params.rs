//! The parameters that both laws share.

use serde::{Deserialize, Serialize};

/// How a port's rate reaches the senders.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Signal {
    /// In headers of data packets, as published. Receivers echo these headers. Simulator only.
    #[default]
    Header,
    /// In ACKs with BRF's option, which works with stock hosts and real switches.
    Ack,
}

/// Default number of flows that a port keeps; a third of a kilobyte each.
pub(in crate::rate) const MAX_FLOWS: usize = 131_072;
/// The range of `max_flows`.
const MAX_FLOWS_RANGE: &str = "from 1 to 2^31";

/// Checks the parameter `max_flows`.
pub(in crate::rate) fn check_max_flows(found: usize) -> Result<(), String> {
    if (1..=u32::MAX as usize / 2).contains(&found) {
        return Ok(());
    }
    Err(format!("max_flows is {found}, but must be {MAX_FLOWS_RANGE}"))
}
