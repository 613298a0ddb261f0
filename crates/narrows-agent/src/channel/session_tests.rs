use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use narrows_control::rate::CongestionKind;
use proptest::prelude::*;
use serde_json::Value;

use super::super::{Channel, ChannelConfig, ChannelState, ToController};
use super::*;

const SECRET: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const OURS: [u8; SIZE] = [1; SIZE];
const THEIRS: [u8; SIZE] = [2; SIZE];

fn secret() -> Secret {
    Secret::parse(SECRET).unwrap()
}

fn greeting(nonce: &[u8; SIZE]) -> String {
    format!(
        "{{\"narrows\":1,\"role\":\"controller\",\"name\":\"c\",\"nonce\":\"{}\"}}\n",
        auth::to_hex(nonce)
    )
}

/// A line from the controller.
fn line(secret: &Secret, seq: u64, body: &str) -> String {
    let (controller, agent) = (End { name: "c", nonce: &THEIRS }, End { name: "a", nonce: &OURS });
    let mac = Key::derive(secret, controller, agent).mac(Role::Controller, seq, body);
    line_of(&Line { seq, body: body.into(), mac })
}

fn opened() -> Session {
    let mut session = Session::new(secret(), "a", OURS);
    session.receive(greeting(&THEIRS).as_bytes(), &mut Vec::new()).unwrap();
    session
}

const POLL: &str = r#"{"type":"poll"}"#;
const QUEUE: &str = r#"{"type":"congestion","port":3,"kind":"queue"}"#;

#[test]
fn macs_are_those_of_the_python_side() {
    let vectors: Value =
        serde_json::from_str(include_str!("../../../../tests/vectors/channel.json")).unwrap();
    let mut lines = 0;
    for case in vectors["cases"].as_array().unwrap() {
        let text = case["secret"].as_str().unwrap();
        let secret = if text.is_empty() { Secret::default() } else { Secret::parse(text).unwrap() };
        let text = |name: &str| case[name].as_str().unwrap();
        let nonces = ["controller_nonce", "agent_nonce"].map(|name| auth::nonce(text(name)).unwrap());
        let controller = End { name: text("controller_name"), nonce: &nonces[0] };
        let key = Key::derive(&secret, controller, End { name: text("agent_name"), nonce: &nonces[1] });
        for line in case["lines"].as_array().unwrap() {
            let role = if line["role"] == "agent" { Role::Agent } else { Role::Controller };
            let (seq, body) = (line["seq"].as_u64().unwrap(), line["body"].as_str().unwrap());
            let mac = line["mac"].as_str().unwrap();
            assert_eq!(key.mac(role, seq, body), mac);
            assert!(key.verify(role, seq, body, mac));
            lines += 1;
        }
    }
    assert_eq!(lines, 24);
}

#[test]
fn messages_arrive_for_any_division_of_the_bytes() {
    let text = [greeting(&THEIRS), line(&secret(), 0, POLL), line(&secret(), 1, QUEUE)].concat();
    for cut in 1..text.len() {
        let (mut session, mut out) = (Session::new(secret(), "a", OURS), Vec::new());
        for piece in text.as_bytes().chunks(cut) {
            session.receive(piece, &mut out).unwrap();
        }
        assert_eq!(out, [Message::Poll, Message::Congestion { kind: Some(CongestionKind::Queue), port: 3 }]);
        assert!(session.is_authenticated());
    }
}

#[test]
fn a_repeated_line_is_refused() {
    let (mut session, mut out) = (opened(), Vec::new());
    let first = line(&secret(), 0, POLL);
    session.receive(first.as_bytes(), &mut out).unwrap();
    let again = session.receive(first.as_bytes(), &mut out);
    assert_eq!(again, Err(Refusal::OutOfOrder { expected: 1, found: 0 }));
    assert_eq!(out.len(), 1);
}

#[test]
fn a_missing_line_is_noticed() {
    let gap = opened().receive(line(&secret(), 1, POLL).as_bytes(), &mut Vec::new());
    assert_eq!(gap, Err(Refusal::OutOfOrder { expected: 0, found: 1 }));
}

#[test]
fn another_secret_is_refused() {
    let other = Secret::parse(&"ff".repeat(32)).unwrap();
    for secret in [other, Secret::default()] {
        let wrong = opened().receive(line(&secret, 0, POLL).as_bytes(), &mut Vec::new());
        assert_eq!(wrong, Err(Refusal::WrongMac(0)));
    }
}

#[test]
fn a_modified_name_is_refused() {
    // A man in the middle changes this agent's name for the controller, or the controller's name for this
    // agent.
    for (agent, controller) in [("b", "c"), ("a", "d"), ("ac", ""), ("", "a\0c")] {
        let mut session = Session::new(secret(), agent, OURS);
        let hello =
            greeting(&THEIRS).replace("\"name\":\"c\"", &format!("\"name\":{}", Value::from(controller)));
        session.receive(hello.as_bytes(), &mut Vec::new()).unwrap();
        let wrong = session.receive(line(&secret(), 0, POLL).as_bytes(), &mut Vec::new());
        assert_eq!(wrong, Err(Refusal::WrongMac(0)), "{agent} {controller}");
    }
}

#[test]
fn own_lines_sent_back_are_refused() {
    let mut session = opened();
    let own = session.seal(&Message::Poll).unwrap();
    assert_eq!(session.receive(own.as_bytes(), &mut Vec::new()), Err(Refusal::WrongMac(0)));
    let mirrored = Session::new(secret(), "a", OURS).receive(greeting(&OURS).as_bytes(), &mut Vec::new());
    assert_eq!(mirrored, Err(Refusal::Reflected));
}

#[test]
fn lines_of_another_connection_are_refused() {
    let mut session = Session::new(secret(), "a", [9; SIZE]);
    session.receive(greeting(&THEIRS).as_bytes(), &mut Vec::new()).unwrap();
    let old = session.receive(line(&secret(), 0, POLL).as_bytes(), &mut Vec::new());
    assert_eq!(old, Err(Refusal::WrongMac(0)));
}

#[test]
fn an_endless_line_is_given_up() {
    let mut session = opened();
    let piece = vec![b' '; 1 << 16];
    let mut taken = 0;
    let refused = loop {
        match session.receive(&piece, &mut Vec::new()) {
            Ok(()) => taken += piece.len(),
            Err(refused) => break refused,
        }
    };
    assert_eq!(refused, Refusal::TooLong);
    assert!(taken < LINE_MAX);
}

#[test]
fn nothing_is_sent_before_the_greeting() {
    assert_eq!(Session::new(secret(), "a", OURS).seal(&Message::Poll), None);
}

#[test]
fn secrets_are_checked_and_never_shown() {
    assert!(Secret::parse("abc").unwrap_err().contains("hexadecimal"));
    assert_eq!(
        Secret::parse("ab").unwrap_err(),
        "found 2 digits, expected at least 64 hexadecimal digits, e.g. of 'openssl rand -hex 32'"
    );
    assert_eq!(format!("{:?}", secret()), "Secret(...)");
}

proptest! {
    #[test]
    fn random_bytes_never_yield_a_message(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut out = Vec::new();
        let _ = Session::new(secret(), "a", OURS).receive(&bytes, &mut out);
        let _ = opened().receive(&bytes, &mut out);
        prop_assert!(out.is_empty());
    }

    #[test]
    fn a_changed_bit_is_noticed(at in 0usize..10_000, bit in 0u8..8) {
        let mut bytes = line(&secret(), 0, QUEUE).into_bytes();
        let n = bytes.len() - 1;
        bytes[at % n] ^= 1 << bit;
        let mut out = Vec::new();
        // Hexadecimal digits may change their case, and a bit may become a line's end; no other change may
        // pass.
        let unchanged = str::from_utf8(&bytes).is_ok_and(|t| t.to_lowercase() == line(&secret(), 0, QUEUE).to_lowercase());
        let refused = opened().receive(&bytes, &mut out).is_err();
        prop_assert!(refused || unchanged, "{:?}", String::from_utf8_lossy(&bytes));
    }
}

/// The whole channel with a real listener: the channel greets, sends its ports, queues bodies and reconnects.
#[test]
fn the_channel_connects_and_reconnects() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = ChannelConfig { controller: listener.local_addr().unwrap(), name: "a".into(), secret: None };
    let channel = Channel::start(config, Vec::new()).unwrap();
    for _ in 0..2 {
        let (stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        let hello: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!((&hello["role"], &hello["name"]), (&"agent".into(), &"a".into()));
        let nonce = auth::nonce(hello["nonce"].as_str().unwrap()).unwrap();
        let controller = End { name: "c", nonce: &THEIRS };
        let key = Key::derive(&Secret::default(), controller, End { name: "a", nonce: &nonce });
        let mac = key.mac(Role::Controller, 0, POLL);
        let poll = line_of(&Line { seq: 0, body: POLL.into(), mac });
        (&stream).write_all((greeting(&THEIRS) + &poll).as_bytes()).unwrap();

        let ports: Line = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(ports.body, r#"{"type":"ports","ports":[]}"#);
        assert!(key.verify(Role::Agent, 0, &ports.body, &ports.mac));
        let message = loop {
            match channel.try_recv() {
                Some(message) => break message,
                None => thread::sleep(Duration::from_millis(5)),
            }
        };
        assert_eq!(message, Message::Poll);
        assert_eq!(channel.state(), ChannelState::Connected("c".into()));
        channel.send(ToController::Flows { port: 1, flows: Vec::new() });
        let flows: Line = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(flows.body, r#"{"type":"flows","port":1,"flows":[]}"#);
    }
    drop(listener);
}

#[test]
fn a_full_queue_drops_the_oldest_bodies() {
    // Nothing listens on port 1 of this address.
    let config = ChannelConfig { controller: "127.0.0.1:1".parse().unwrap(), name: "a".into(), secret: None };
    let channel = Channel::start(config, Vec::new()).unwrap();
    for port in 0..2000 {
        channel.send(ToController::Flows { port, flows: Vec::new() });
    }
    assert_eq!(channel.dropped(), 2000 - super::super::WAITING_MAX as u64);
}

#[test]
fn a_controller_on_another_host_requires_a_secret() {
    let config =
        ChannelConfig { controller: "192.0.2.1:6690".parse().unwrap(), name: "a".into(), secret: None };
    let refused = Channel::start(config, Vec::new()).unwrap_err().to_string();
    assert!(refused.contains("not on this host"), "{refused}");
}
