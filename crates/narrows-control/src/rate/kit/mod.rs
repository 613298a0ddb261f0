//! Parts that several rate controllers share.
//!
//! | module | idea |
//! | --- | --- |
//! | `slots`, `flow_id` | records in reusable slots |
//! | `half_open` | handshakes of flows without a record |
//! | [`lifecycle`] | the packets that begin, confirm and end a flow |
//! | `rtt` | the RTT of a flow, as the sum of two halves |
//! | `classes` | a link's division into three classes with fixed shares |
//! | [`policer`] | a token bucket |
//! | [`waterfill`], [`demand_index`], [`demand_list`] | max-min fair shares of a link: the function, an index for many flows, a list for few |
//! | [`service`], [`subscriber`] | groups of flows |
//! | [`features`] | a flow in numbers, for trained models |
//! | `parameters` | reads and checks parameters |

pub(super) mod classes;
pub mod demand_index;
pub mod demand_list;
pub mod features;
pub(super) mod flow_id;
pub(super) mod half_open;
pub mod lifecycle;
pub(super) mod parameters;
pub mod policer;
pub(super) mod rtt;
pub mod service;
pub(super) mod slots;
pub mod subscriber;
#[cfg(test)]
pub(super) mod testing;
pub mod waterfill;
