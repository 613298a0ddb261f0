//! How feedback travels: a rate in sixteen bits of a TCP option (BRF-5 to BRF-11), or in a header of its own.
//!
//! * [`code`]: the sixteen bits, mantissa and decimal exponent.
//! * [`option`]: where they sit in a real TCP header, in the two formats of BRF-9.
//! * [`header`]: what XCP, RCP and BDR put between IP and TCP, and its echo in ACKs.
//! * [`checksum`]: keeping the TCP checksum right after a rewrite (RFC 1624).

pub mod checksum;
pub mod code;
pub mod header;
pub mod option;
