//! Identifiers of records in a flow table.

use crate::rate::aggregate::FlowHandle;

/// Identifies a record. When a slot is reused, its generation changes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::rate) struct FlowId {
    pub(in crate::rate) slot: u32,
    pub(in crate::rate) generation: u32,
}

impl From<FlowId> for FlowHandle {
    fn from(id: FlowId) -> Self {
        FlowHandle(u64::from(id.generation) << 32 | u64::from(id.slot))
    }
}

impl From<FlowHandle> for FlowId {
    fn from(handle: FlowHandle) -> Self {
        FlowId { slot: handle.0 as u32, generation: (handle.0 >> 32) as u32 }
    }
}
