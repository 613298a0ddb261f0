//! Tests of the JSON messages between ports and the SDN controller. Arbitrary bytes parse to a
//! message or an error, and no message causes a panic in a receiver.
#![allow(missing_docs)]

use core::net::IpAddr;

use proptest::collection::vec;
use proptest::prelude::*;

use narrows_control::parameter::Values;
use narrows_control::rate::domain::{Settings, Topology};
use narrows_control::rate::{
    CongestionKind, FlowKey, Message, PortCounters, PortId, Proto, Report, registry,
};
use narrows_control::units::{Bytes, Rate, Span, Time};

const MTU: Bytes = Bytes::new(1500);

/// Generates plausible or arbitrary numbers.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..1_000_000u64, 1 => Just(0), 1 => Just(u64::MAX), 1 => any::<u64>()]
}

fn rate() -> impl Strategy<Value = Rate> {
    number().prop_map(Rate::from_bytes_per_sec)
}

fn key() -> impl Strategy<Value = FlowKey> {
    (any::<IpAddr>(), any::<IpAddr>(), any::<u16>(), any::<u16>(), any::<bool>()).prop_map(
        |(saddr, daddr, sport, dport, tcp)| FlowKey {
            saddr,
            daddr,
            sport,
            dport,
            proto: if tcp { Proto::Tcp } else { Proto::Udp },
        },
    )
}

fn report() -> impl Strategy<Value = Report> {
    let pair = any::<(u32, u32)>;
    (0..4u32, proptest::array::uniform10(number()), pair(), pair()).prop_map(
        |(port, n, rated_packets, all_packets)| Report {
            port,
            at: Time::from_nanos(n[0]),
            capacity: Rate::from_bytes_per_sec(n[1]),
            rated_share: Rate::from_bytes_per_sec(n[2]),
            rated_arrived: Bytes::new(n[3]),
            rated_departed: Bytes::new(n[4]),
            departed: Bytes::new(n[5]),
            queued: Bytes::new(n[6]),
            departed_packets: n[7],
            rated_queued: Bytes::new(n[8]),
            rated_packets,
            all_packets,
            period: Span::from_nanos(n[9]),
        },
    )
}

fn message() -> impl Strategy<Value = Message> {
    let kind = prop_oneof![Just(None), Just(Some(CongestionKind::Queue)), Just(Some(CongestionKind::Burst))];
    prop_oneof![
        Just(Message::Poll),
        report().prop_map(Message::Report),
        (kind, any::<PortId>()).prop_map(|(kind, port)| Message::Congestion { kind, port }),
        (key(), rate(), any::<PortId>(), any::<u64>(), number()).prop_map(|(key, rate, port, seq, span)| {
            Message::FlowAdvertisement { key, rate, port, seq, valid_for: Span::from_nanos(span) }
        }),
        (0..4u32, key(), any::<bool>(), proptest::option::of(rate()))
            .prop_map(|(port, key, begun, demand)| Message::Flow { port, key, begun, demand }),
        (0..4u32, vec((key(), rate()), 0..4), vec((any::<IpAddr>(), rate()), 0..4))
            .prop_map(|(port, flows, newcomers)| Message::Grants { port, flows, newcomers }),
    ]
}

/// A topology in which every flow passes two ports that exist and one port that does not exist.
struct Anywhere;

impl Topology for Anywhere {
    fn path(&self, _flow: &FlowKey) -> Vec<PortId> {
        vec![1, 9, 2]
    }
}

/// Passes the messages to every receiver.
fn deliver(messages: &[Message]) {
    let capacity = Some(Rate::from_bits_per_sec(100_000_000));
    let port = PortCounters { capacity, ..PortCounters::default() };
    for kind in registry::all().iter().map(|entry| entry.name) {
        let (mut now, mut actions, mut out) = (Time::from_nanos(1), Vec::new(), Vec::new());
        let mut at_port = registry::build::<FlowKey>(kind, &Values::new(), 1, MTU).unwrap();
        at_port.on_start(now, &port, &mut actions);
        let ports = [1, 2].map(|port| (port, Values::new()));
        let mut domain =
            registry::build_domain::<FlowKey>(kind, &ports, &Settings::default(), MTU, now).unwrap();
        for message in messages {
            now += Span::from_millis(7);
            at_port.on_message(now, message, &port, &mut actions);
            at_port.on_timer(now, &port, &mut actions);
            if let Some(domain) = &mut domain {
                domain.on_message(now, 1, message, &Anywhere, &mut out);
                domain.on_timer(now, &Anywhere, &mut out);
            }
        }
        assert!(out.iter().all(|(port, _)| [1, 2].contains(port)), "{kind} speaks to {out:?}");
    }
}

/// Texts that replace a number.
const INSTEAD: [&str; 8] = ["-1", "1e999", "NaN", "18446744073709551616", "null", "\"\"", "1.5", "[]"];

/// Replaces the `nth` number of a text with `instead`.
fn with_number(text: &str, nth: usize, instead: &str) -> String {
    let starts: Vec<usize> = text
        .char_indices()
        .filter(|&(at, c)| {
            c.is_ascii_digit() && matches!(text[..at].chars().next_back(), Some(':' | ',' | '['))
        })
        .map(|(at, _)| at)
        .collect();
    let Some(&start) = starts.get(nth % starts.len().max(1)) else { return text.to_owned() };
    let end = start + text[start..].find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
    format!("{}{instead}{}", &text[..start], &text[end..])
}

#[test]
fn an_invalid_number_is_rejected() {
    let text = serde_json::to_string(&Message::<FlowKey>::Congestion { kind: None, port: 7 }).unwrap();
    for instead in INSTEAD {
        let broken = with_number(&text, 0, instead);
        assert_eq!(broken, text.replace('7', instead));
        assert!(serde_json::from_str::<Message>(&broken).is_err(), "{broken}");
    }
}

proptest! {
    #[test]
    fn a_message_arrives_as_it_was_sent(message in message()) {
        let text = serde_json::to_string(&message).unwrap();
        prop_assert_eq!(serde_json::from_str::<Message>(&text).unwrap(), message);
    }

    #[test]
    fn no_message_panics_a_receiver(messages in vec(message(), 1..30)) {
        deliver(&messages);
    }

    #[test]
    fn arbitrary_bytes_parse_to_a_message_or_an_error(
        noise in vec(any::<u8>(), 0..200),
        message in message(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        number in proptest::option::of((any::<prop::sample::Index>(), prop::sample::select(INSTEAD.to_vec()))),
    ) {
        let mut text = serde_json::to_string(&message).unwrap();
        if let Some((nth, instead)) = number {
            text = with_number(&text, nth.index(40), instead);
        }
        let mut bytes = text.into_bytes();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        for bytes in [noise, bytes] {
            if let Ok(message) = serde_json::from_slice::<Message>(&bytes) {
                deliver(&[message]);
            }
        }
    }
}
