//! OBP, the open box protocol, as far as it is known: routers tell senders what is left of a path, and senders take it.
//!
//! After what the PACEC paper (IJECE 8(6), 2018, eq. 4) quotes of it: W(t0) = a AB(t0) + b CB(t0), AB the bandwidth left on the
//! tightest link, CB the capacity of the narrowest. Neither a and b nor the rule for later ACKs stand there, and OBP's own
//! publication was not at hand: what is not in that line is our resolution (OBP-1). An optional
//! baseline, not a reproduction.
//!
//! | module | idea |
//! | --- | --- |
//! | [`params`] | every constant and its source |
//! | [`law`] | what is left of a link, and the rate that follows from it |

pub mod law;
pub mod params;
pub mod port;

pub use law::Law;
pub use params::Params;
pub use port::ObpPort;
