//! How a flow table names its records.

use super::aggregate::FlowHandle;

/// Names a record while it lives. A slot is used again, its generation is not.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FlowId {
    pub(super) slot: u32,
    pub(super) generation: u32,
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
