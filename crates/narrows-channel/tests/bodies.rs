//! Tests that bodies are read as they were written, that invalid bodies are refused with a one-line error,
//! and that long grants are split.

use core::net::IpAddr;

use narrows_channel::{
    FLOWS_MAX, FlowChange, FlowChanges, FlowInfo, Flows, LINE_MAX, PORTS_MAX, PortInfo, Ports, ToController,
    to_agent,
};
use narrows_control::rate::brf::{self, congestion::Thresholds};
use narrows_control::rate::{Class, CongestionKind, FlowKey, Leaf, Message, Proto, Report};
use narrows_control::units::{Bytes, Rate, Span, Time};
use proptest::prelude::*;
use serde_json::{Value, json};

const LONGEST: IpAddr = IpAddr::V6(core::net::Ipv6Addr::from_bits(u128::MAX));

fn key(saddr: IpAddr, sport: u16) -> FlowKey {
    FlowKey { saddr, daddr: LONGEST, sport, dport: u16::MAX, proto: Proto::Tcp }
}

fn port(port: u32) -> PortInfo {
    PortInfo {
        port,
        interface: format!("eth{port}"),
        ifindex: 7,
        mac: "02:00:00:00:00:01".into(),
        mtu: 1500,
        capacity: Rate::from_bytes_per_sec(12_500_000),
        rate_controller: "brf".into(),
        params: [("eta".into(), narrows_control::parameter::Value::Number(0.98))].into(),
        thresholds: Some(Thresholds::of(&brf::Params::resolved(), Bytes::new(1500))),
    }
}

fn flow(rate: u64) -> FlowInfo {
    FlowInfo {
        key: key(LONGEST, 1),
        class: Class::OtherTcp,
        leaf: Leaf::OtherTcp,
        allocation: None,
        rate: Rate::from_bytes_per_sec(rate),
        rtt: Some(Span::from_millis(20)),
    }
}

fn flows(count: usize) -> ToController {
    ToController::Flows(Flows { port: 1, flows: vec![flow((1 << 63) - 1); count] })
}

fn text(body: &ToController) -> String {
    serde_json::to_string(body).unwrap()
}

fn refusal(body: &Value) -> String {
    let error = ToController::parse(&body.to_string()).unwrap_err();
    assert!(!error.contains('\n') && error.len() < 400, "{error}");
    error
}

fn report() -> impl Strategy<Value = Message> {
    (any::<[u64; 9]>(), any::<[u32; 5]>()).prop_map(|(n, m)| {
        Message::Report(Report {
            port: m[0],
            at: Time::from_nanos(n[0]),
            capacity: Rate::from_bytes_per_sec(n[1]),
            rated_share: Rate::from_bytes_per_sec(n[2]),
            rated_arrived: Bytes::new(n[3]),
            rated_departed: Bytes::new(n[4]),
            departed: Bytes::new(n[5]),
            queued: Bytes::new(n[6]),
            departed_packets: n[7],
            rated_queued: Bytes::new(n[8]),
            rated_packets: (m[1], m[2]),
            all_packets: (m[3], m[4]),
            period: Span::from_nanos(n[0]),
        })
    })
}

fn body() -> impl Strategy<Value = ToController> {
    let key = (any::<IpAddr>(), any::<u16>()).prop_map(|(saddr, sport)| key(saddr, sport));
    let change = (key.clone(), any::<bool>(), any::<Option<u64>>()).prop_map(|(key, begun, demand)| {
        FlowChange { key, begun, demand: demand.map(Rate::from_bytes_per_sec) }
    });
    let advertisement = (key, any::<[u64; 3]>(), any::<u32>()).prop_map(|(key, [rate, seq, valid], port)| {
        let (rate, valid_for) = (Rate::from_bytes_per_sec(rate), Span::from_nanos(valid));
        Message::FlowAdvertisement { key, rate, port, seq, valid_for }
    });
    let changes = (any::<u32>(), prop::collection::vec(change, 0..5))
        .prop_map(|(port, changes)| ToController::FlowChanges(FlowChanges { port, changes }));
    prop_oneof![
        report().prop_map(ToController::Message),
        advertisement.prop_map(ToController::Message),
        changes,
        (0..4_usize).prop_map(flows),
        (0..4_u32).prop_map(|ports| ToController::Ports(Ports { ports: (0..ports).map(port).collect() })),
    ]
}

proptest! {
    #[test]
    fn a_body_is_read_as_it_was_written(body in body()) {
        prop_assert_eq!(ToController::parse(&text(&body)), Ok(body));
    }

    #[test]
    fn a_spoilt_body_is_refused_or_written_as_it_was_read(body in body(), at in any::<prop::sample::Index>(), c: char) {
        let mut spoilt: Vec<char> = text(&body).chars().collect();
        let at = at.index(spoilt.len());
        spoilt[at] = c;
        if let Ok(read) = ToController::parse(&spoilt.iter().collect::<String>()) {
            prop_assert_eq!(ToController::parse(&text(&read)), Ok(read));
        }
    }
}

/// Version 2 of the protocol prescribes this form.
#[test]
fn bodies_have_this_form_on_the_wire() {
    let key = r#"{"saddr":"10.0.0.1","daddr":"fd00::1","sport":1,"dport":2,"proto":"tcp"}"#;
    let port = concat!(
        r#"{"port":1,"interface":"eth1","ifindex":7,"mac":"02:00:00:00:00:01","mtu":1500,"capacity":12500000,"#,
        r#""rate_controller":"brf","params":{"eta":0.98},"thresholds":{"mode":"resolved","u_th":0.98,"q_th":0.1,"#,
        r#""q_delay_max":5000000,"q_packets_min":5,"burst_threshold":1.02,"packet":1500}}"#
    );
    let pacec = r#"{"port":2,"interface":"eth2","ifindex":1,"mac":"","mtu":0,"capacity":0,"rate_controller":"pacec","params":{}}"#;
    let flow = format!(
        r#"{{"key":{key},"class":"other-tcp","leaf":"other-tcp","allocation":null,"rate":9,"rtt":20000000}}"#
    );
    let report = concat!(
        r#"{"type":"report","port":1,"at":2,"capacity":3,"rated_share":4,"rated_arrived":5,"rated_departed":6,"#,
        r#""departed":7,"queued":8,"departed_packets":9,"rated_queued":10,"rated_packets":[11,12],"#,
        r#""all_packets":[13,14],"period":15}"#
    );
    for text in [
        format!(r#"{{"type":"ports","ports":[{port},{pacec}]}}"#),
        format!(r#"{{"type":"flows","port":1,"flows":[{flow}]}}"#),
        format!(
            r#"{{"type":"flow-changes","port":1,"changes":[{{"key":{key},"begun":true,"demand":null}}]}}"#
        ),
        format!(r#"{{"type":"flow-advertisement","key":{key},"rate":1,"port":2,"seq":3,"valid_for":4}}"#),
        report.to_owned(),
    ] {
        let body = ToController::parse(&text).unwrap();
        assert_eq!(serde_json::to_string(&body).unwrap(), text);
    }
}

#[test]
fn the_longest_body_fits_into_a_line() {
    assert!(text(&flows(FLOWS_MAX)).len() < LINE_MAX);
    let change = FlowChange { key: key(LONGEST, 1), begun: true, demand: Some(Rate::MAX) };
    let changes = FlowChanges { port: u32::MAX, changes: vec![change; FLOWS_MAX] };
    assert!(text(&ToController::FlowChanges(changes)).len() < LINE_MAX);
}

#[test]
fn keys_of_newer_agents_are_ignored_and_those_of_earlier_ones_are_read() {
    let mut old =
        json!({"port": 1, "interface": "eth1", "ifindex": 1, "mac": "", "mtu": 1500, "capacity": 1});
    let rate_controller = |port: &Value| {
        let body = json!({"ports": [port], "later": {"a": []}, "type": "ports"});
        match ToController::parse(&body.to_string()) {
            Ok(ToController::Ports(Ports { ports })) => ports[0].rate_controller.clone(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(rate_controller(&old), "brf");
    old["controller"] = "pacec".into();
    old["later"] = Value::Null;
    assert_eq!(rate_controller(&old), "pacec");
}

#[test]
fn counts_and_numbers_beyond_their_bounds_are_refused() {
    let of = |body: &ToController| serde_json::to_value(body).unwrap();
    assert_eq!(refusal(&of(&flows(FLOWS_MAX + 1))), "flows: flows: found 1001, expected at most 1000");
    let many = Ports { ports: (0..=PORTS_MAX as u32).map(port).collect() };
    assert_eq!(refusal(&of(&ToController::Ports(many))), "ports: ports: found 1025, expected at most 1024");
    let large = Flows { port: 1, flows: vec![flow(1 << 63)] };
    assert!(refusal(&of(&ToController::Flows(large))).ends_with("expected less than 2^63"));
    let twice = Ports { ports: vec![port(1), port(1)] };
    assert_eq!(refusal(&of(&ToController::Ports(twice))), "ports: found a port twice");
}

#[test]
fn words_that_the_page_cannot_show_are_refused() {
    for (key, words) in [
        ("interface", ["", "a/b", "a b"]),
        ("mac", ["\u{1b}", "\n", "é"]),
        ("rate_controller", ["\t", "é", "\0"]),
    ] {
        for word in words.into_iter().chain([&*"x".repeat(65)]) {
            let mut body = serde_json::to_value(ToController::Ports(Ports { ports: vec![port(1)] })).unwrap();
            body["ports"][0][key] = word.into();
            assert!(refusal(&body).starts_with(&format!("ports: {key}: found ")), "{key} {word:?}");
        }
    }
}

#[test]
fn other_values_are_refused_with_the_type_of_the_body() {
    assert!(
        refusal(&Value::Null).starts_with(
            "found a line that is not a body: invalid type: null, expected an object with a type"
        )
    );
    assert_eq!(refusal(&json!({"type": "poll"})), "poll: found an unknown type of body");
    assert!(refusal(&json!({"type": "report", "port": 1})).starts_with("report: missing field `at`"));
    let changes = json!({"type": "flow-changes", "port": 1, "changes": [{"key": 1}]});
    assert!(
        refusal(&changes).starts_with("flow-changes: invalid type: integer `1`, expected struct FlowKey")
    );
    let nested = "[".repeat(100_000);
    assert!(ToController::parse(&nested).unwrap_err().starts_with("found a line that is not a body: "));
}

#[test]
fn grants_for_many_flows_are_split_and_newcomers_sent_once() {
    let rate = Rate::from_bytes_per_sec(1);
    let flows: Vec<_> = (0..2500).map(|sport| (key(LONGEST, sport), rate)).collect();
    let grants = Message::Grants { port: 9, flows: flows.clone(), newcomers: vec![(LONGEST, rate)] };
    let (mut told, mut sizes) = (Vec::new(), Vec::new());
    for body in to_agent(&grants, 3) {
        assert!(body.len() < LINE_MAX);
        let Ok(Message::<FlowKey>::Grants { port: 3, flows, newcomers }) = serde_json::from_str(&body) else {
            panic!("{body}")
        };
        sizes.push((flows.len(), newcomers.len()));
        told.extend(flows);
    }
    assert_eq!((told, sizes), (flows, vec![(1000, 1), (1000, 0), (500, 0)]));
}

#[test]
fn a_message_has_the_agents_number_of_its_port() {
    let kind = Some(CongestionKind::Queue);
    assert_eq!(
        to_agent(&Message::Congestion { kind, port: 70_000 }, 2),
        [r#"{"type":"congestion","kind":"queue","port":2}"#]
    );
    assert_eq!(to_agent(&Message::Poll, 2), [r#"{"type":"poll"}"#]);
    let empty = Message::Grants { port: 1, flows: Vec::new(), newcomers: Vec::new() };
    assert_eq!(to_agent(&empty, 2), [r#"{"type":"grants","port":2,"flows":[],"newcomers":[]}"#]);
}
