//! How a rate travels: sixteen bits of a TCP option (BRF-5 to BRF-11).
//!
//! * [`code`]: the sixteen bits, mantissa and decimal exponent.
//! * [`option`]: where they sit in a real TCP header, in the two formats of BRF-9.
//! * [`checksum`]: keeping the TCP checksum right after a rewrite (RFC 1624).

pub mod checksum;
pub mod code;
pub mod option;
