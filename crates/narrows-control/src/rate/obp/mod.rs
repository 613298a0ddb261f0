//! OBP, the open box protocol, as far as it is known. Routers report the bandwidth left on a path to the senders, and
//! the senders use this bandwidth.
//!
//! The source is a quotation in the PACEC paper (IJECE 8(6), 2018, equation 4): W(t0) = a AB(t0) + b CB(t0). AB is the
//! bandwidth left on the tightest link, and CB is the capacity of the narrowest link. The quotation gives neither the
//! values of a and b nor the rule for later ACKs, and OBP's own publication was not available. All details beyond the
//! quotation are ours (OBP-1). This OBP is an optional baseline, not a reproduction.
//!
//! | module | idea |
//! | --- | --- |
//! | [`params`] | the constants with their sources |
//! | [`law`] | the bandwidth left on a link, and the resulting rate |

pub mod law;
pub mod params;
pub mod port;

pub use law::Law;
pub use params::Params;
pub use port::ObpPort;
