//! The encoding of feedback in packets: sixteen bits in a TCP option (BRF-5 to BRF-11), or a
//! congestion header.
//!
//! * [`code`]: the sixteen bits, with mantissa and decimal exponent.
//! * [`option`]: the place of the sixteen bits in a TCP header, in the two formats of BRF-9.
//! * [`report`]: the report of a designated packet (BDR) in a TCP option.
//! * [`message`]: the message that carries a rate outside of the flow's packets.
//! * [`header`]: the headers of XCP, RCP, BDR and OBP between IP and TCP, and their echo in ACKs.
//! * [`custom`]: headers that other crates define.
//! * [`checksum`]: the TCP checksum after a rewrite (RFC 1624).

pub mod checksum;
pub mod code;
pub mod custom;
pub mod header;
pub mod message;
pub mod option;
pub mod report;
