use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use narrows_channel::{Flows, ToController};
use narrows_control::rate::{CongestionKind, FlowKey};
use proptest::prelude::*;
use serde_json::Value;

use super::super::{Channel, ChannelConfig, ChannelState, keys};
use super::*;

const ANSWER: &str = "{\"narrows\":2,\"role\":\"controller\",\"name\":\"c\"}\n";
const POLL: &str = "{\"type\":\"poll\"}\n";
const QUEUE: &str = "{\"type\":\"congestion\",\"port\":3,\"kind\":\"queue\"}\n";

fn opened() -> Session {
    let mut session = Session::new("a");
    session.receive(ANSWER.as_bytes(), &mut Vec::new()).unwrap();
    session
}

#[test]
fn messages_arrive_for_any_division_of_the_bytes() {
    let text = [ANSWER, POLL, QUEUE].concat();
    for cut in 1..text.len() {
        let (mut session, mut out) = (Session::new("a"), Vec::new());
        for piece in text.as_bytes().chunks(cut) {
            session.receive(piece, &mut out).unwrap();
        }
        assert_eq!(out, [Message::Poll, Message::Congestion { kind: Some(CongestionKind::Queue), port: 3 }]);
        assert_eq!(session.controller(), "c");
    }
}

#[test]
fn only_a_controller_of_this_version_is_accepted() {
    let refused = |answer: &str| Session::new("a").receive(answer.as_bytes(), &mut Vec::new()).unwrap_err();
    let other = |version, role: &str| Refusal::NotAController { version, role: role.into() };
    assert_eq!(refused(&ANSWER.replace('2', "1")), other(1, "controller"));
    // The agent's own greeting comes back.
    assert_eq!(refused(&Session::new("a").greeting()), other(2, "agent"));
    assert_eq!(
        refused("{\"narrows\":2,\"refused\":\"its name\\n is b\"}\n").to_string(),
        "the controller refuses this agent: its name is b"
    );
    assert!(matches!(refused(POLL), Refusal::Malformed(_)));
}

#[test]
fn endless_lines_are_refused() {
    for (mut session, most) in [(Session::new("a"), GREETING_MAX), (opened(), LINE_MAX)] {
        let piece = vec![b' '; 1 << 10];
        let mut taken = 0;
        let refused = loop {
            match session.receive(&piece, &mut Vec::new()) {
                Ok(()) => taken += piece.len(),
                Err(refused) => break refused,
            }
        };
        assert_eq!(refused, Refusal::TooLong(most));
        assert!(taken < most);
    }
}

#[test]
fn garbage_of_a_controller_is_refused_and_a_newer_body_ignored() {
    let mut out = Vec::new();
    opened().receive(b"{\"type\":\"of a later version\"}\n", &mut out).unwrap();
    for garbage in [&b"nothing\n"[..], b"\xff\n", b"\n"] {
        let refused = opened().receive(garbage, &mut out).unwrap_err();
        assert!(matches!(refused, Refusal::Malformed(_)), "{refused}");
    }
    assert!(out.is_empty());
}

#[test]
fn nothing_is_sent_before_the_answer() {
    assert_eq!(Session::new("a").line(&Message::<FlowKey>::Poll), None);
    assert_eq!(opened().line(&Message::<FlowKey>::Poll).unwrap(), POLL);
}

proptest! {
    #[test]
    fn random_bytes_never_yield_a_message(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut out = Vec::new();
        let _ = Session::new("a").receive(&bytes, &mut out);
        let _ = opened().receive(&bytes, &mut out);
        prop_assert!(out.is_empty());
    }
}

fn config(listener: &TcpListener) -> ChannelConfig {
    ChannelConfig { controllers: vec![listener.local_addr().unwrap()], name: "a".into(), keys: None }
}

fn accept(listener: &TcpListener) -> TcpStream {
    let (stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

fn failure(channel: &Channel) -> String {
    loop {
        match channel.state() {
            ChannelState::Failed(line) => return line,
            _ => thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// Tests the whole channel with a real listener: greeting, ports, queued bodies and reconnection.
#[test]
fn the_channel_connects_and_reconnects() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let channel = Channel::start(config(&listener), Vec::new()).unwrap();
    for _ in 0..2 {
        let stream = accept(&listener);
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        let mut next = || lines.next().unwrap().unwrap();
        let hello: Value = serde_json::from_str(&next()).unwrap();
        assert_eq!((&hello["role"], &hello["name"]), (&"agent".into(), &"a".into()));
        (&stream).write_all([ANSWER, POLL].concat().as_bytes()).unwrap();
        assert_eq!(next(), r#"{"type":"ports","ports":[]}"#);
        let message = loop {
            match channel.try_recv() {
                Some(message) => break message,
                None => thread::sleep(Duration::from_millis(5)),
            }
        };
        assert_eq!(message, Message::Poll);
        assert_eq!(channel.state(), ChannelState::Connected("c".into()));
        channel.send(ToController::Flows(Flows { port: 1, flows: Vec::new() }));
        assert_eq!(next(), r#"{"type":"flows","port":1,"flows":[]}"#);
    }
    drop(listener);
}

#[test]
fn a_controller_that_stays_silent_is_left() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let channel = Channel::start(config(&listener), Vec::new()).unwrap();
    let mut silent = accept(&listener);
    let line = failure(&channel);
    assert!(line.ends_with("no answer within 5 s"), "{line}");
    silent.read_to_end(&mut Vec::new()).unwrap();
    accept(&listener);
}

/// Accepts the next connection, and then accepts the agent like a controller.
fn answer(listener: &TcpListener) -> TcpStream {
    let stream = accept(listener);
    BufReader::new(stream.try_clone().unwrap()).read_line(&mut String::new()).unwrap();
    (&stream).write_all(ANSWER.as_bytes()).unwrap();
    stream
}

#[test]
fn the_agent_uses_the_first_controller_that_accepts_it() {
    let both = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let controllers = both.iter().map(|listener| listener.local_addr().unwrap()).collect();
    let config = ChannelConfig { controllers, name: "a".into(), keys: None };
    let channel = Channel::start(config, Vec::new()).unwrap();
    let [first, second] = both;
    accept(&first).write_all(b"{\"narrows\":2,\"refused\":\"it is the standby of d\"}\n").unwrap();
    let active = answer(&second);
    wait_for_connection(&channel);
    // The active controller dies. The first controller takes over: it now accepts the agent.
    drop((active, second));
    let _active = answer(&first);
    wait_for_connection(&channel);
}

fn wait_for_connection(channel: &Channel) {
    while channel.state() != ChannelState::Connected("c".into()) {
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_controller_that_hangs_is_left_for_the_next() {
    let both = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let controllers = both.iter().map(|listener| listener.local_addr().unwrap()).collect();
    let config = ChannelConfig { controllers, name: "a".into(), keys: None };
    let channel = Channel::start(config, Vec::new()).unwrap();
    let mut hangs = answer(&both[0]);
    let _next = answer(&both[1]);
    hangs.read_to_end(&mut Vec::new()).unwrap();
    wait_for_connection(&channel);
}

#[test]
fn a_controller_without_the_right_key_gets_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (key, certificate) = keys::create("a", folder.path()).unwrap();
    let (_, trusted) = keys::create("c", folder.path()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let keys = Some(keys::KeyFiles { key, certificate, trusted });
    let channel = Channel::start(ChannelConfig { keys, ..config(&listener) }, Vec::new()).unwrap();
    let mut stream = accept(&listener);
    stream.write_all([ANSWER, POLL].concat().as_bytes()).unwrap();
    let line = failure(&channel);
    assert!(
        line.ends_with("refused: the controller does not use TLS 1.3; expected a controller with agents.key"),
        "{line}"
    );
    assert_eq!(channel.try_recv(), None);
    let mut sent = Vec::new();
    stream.read_to_end(&mut sent).unwrap();
    assert!(!String::from_utf8_lossy(&sent).contains("narrows"), "the greeting is not encrypted");
}

#[test]
fn a_full_queue_drops_the_oldest_bodies() {
    // No controller listens on port 1.
    let config =
        ChannelConfig { controllers: vec!["127.0.0.1:1".parse().unwrap()], name: "a".into(), keys: None };
    let channel = Channel::start(config, Vec::new()).unwrap();
    for port in 0..2000 {
        channel.send(ToController::Flows(Flows { port, flows: Vec::new() }));
    }
    assert_eq!(channel.dropped(), 2000 - super::super::WAITING_MAX as u64);
}

#[test]
fn a_controller_on_another_host_requires_keys() {
    let config =
        ChannelConfig { controllers: vec!["192.0.2.1:6690".parse().unwrap()], name: "a".into(), keys: None };
    let refused = Channel::start(config, Vec::new()).unwrap_err().to_string();
    assert!(refused.contains("not on this host"), "{refused}");
}
