//! Flows and packets for the tests of rate controllers.

use core::net::{IpAddr, Ipv4Addr};

use crate::feedback::header::Header;
use crate::rate::{FlowKey, PacketInfo, Proto, RateOption, TcpFlags};
use crate::units::{Bytes, Rate, Span, Time};

pub(in crate::rate) const MTU: u64 = 1500;

pub(in crate::rate) fn key(n: u32) -> FlowKey {
    let daddr = IpAddr::V4(Ipv4Addr::new(10, 9, 0, 1));
    FlowKey { saddr: IpAddr::V4(Ipv4Addr::from_bits(n)), daddr, sport: 40_000, dport: 443, proto: Proto::Tcp }
}

pub(in crate::rate) fn ms(n: u64) -> Time {
    Time::ZERO + Span::from_millis(n)
}

pub(in crate::rate) fn mbit(n: f64) -> Rate {
    Rate::from_f64(n * 1e6 / 8.0)
}

pub(in crate::rate) fn packet(n: u32, payload: u64, flags: TcpFlags, option: RateOption) -> PacketInfo {
    PacketInfo {
        key: key(n),
        size: Bytes::new(payload + 52),
        payload: Bytes::new(payload),
        flags,
        option,
        unlimited: None,
        seq: 0,
        timestamps: None,
        header: Header::None,
        vlan: 0,
        mark: 0,
    }
}

pub(in crate::rate) const SYN: TcpFlags = TcpFlags { syn: true, ack: false, fin: false, rst: false };
pub(in crate::rate) const SYN_ACK: TcpFlags = TcpFlags { syn: true, ack: true, fin: false, rst: false };
pub(in crate::rate) const ACK: TcpFlags = TcpFlags { syn: false, ack: true, fin: false, rst: false };
pub(in crate::rate) const FIN: TcpFlags = TcpFlags { syn: false, ack: true, fin: true, rst: false };
pub(in crate::rate) const RST: TcpFlags = TcpFlags { syn: false, ack: false, fin: false, rst: true };
