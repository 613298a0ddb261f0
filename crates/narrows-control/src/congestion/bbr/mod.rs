//! The BBR family: congestion controllers that use a model of the path.
//!
//! All versions share the [`model`] of the path, [`pacing`], the filter of ACK [`aggregation`], the [`full_pipe`]
//! detector and [`probe_rtt`]. [`v1`] takes the cycle of gains as a parameter. [`bbq`], BBR-A, BBR-B and BBR-C
//! ([`gain_cycle`]) are [`v1`] with other cycles. [`v2`] and [`v3`] are [`bounded`] with different parameters.

pub mod aggregation;
pub mod bbq;
pub mod bounded;
pub mod full_pipe;
pub mod gain;
pub mod gain_cycle;
pub mod gain_model;
pub mod memo;
pub mod model;
pub mod pacing;
pub mod probe_rtt;
pub mod recovery;
pub mod round_rtt;
pub mod v1;
pub mod v2;
pub mod v3;
