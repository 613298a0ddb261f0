//! A request to the status socket sets new link rates. An invalid request changes nothing.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use narrows_agent::status::server::path_of;

use super::agent::Agent;
use super::net::{Forwarding, Net};

fn answer(agent: &Agent, request: &str) -> String {
    let mut stream = UnixStream::connect(path_of(&agent.name)).expect("the agent's socket");
    writeln!(stream, "{request}").expect("a request");
    let mut said = String::new();
    stream.read_to_string(&mut said).expect("an answer");
    said
}

fn rate(net: &Net) -> String {
    let class = net.says("r", "tc class show dev c classid 4e57:1");
    class.split_once(" rate ").and_then(|(_, rest)| rest.split(' ').next()).expect(&class).to_owned()
}

#[test]
fn a_rate_that_cannot_be_set_is_refused_in_one_line_and_control_goes_on() {
    let Some(net) = Net::star(Forwarding::Router, 1) else { return };
    let mut agent = Agent::switch(&net, "100mbit");
    assert_eq!(rate(&net), "100Mbit");
    for (rates, expected) in [
        (r#"{"c":0}"#, "rates.c: found 0, expected from 1500 to 125000000000 bytes/s"),
        (r#"{"c":1}"#, "rates.c: found 1, expected from 1500 to 125000000000 bytes/s"),
        (r#"{"c":1499}"#, "rates.c: found 1499, expected"),
        (r#"{"c":125000000001}"#, "rates.c: found 125000000001, expected"),
        (r#"{"c":18446744073709551615}"#, "rates.c: found 18446744073709551615, expected"),
        (r#"{"c":18446744073709551616}"#, ""),
        (r#"{"c":-1}"#, ""),
        (r#"{"c":"fast"}"#, ""),
        (r#"{"s1":5000000}"#, "rates: found \\\"s1\\\", expected a controlled port: c"),
        (r#"{"c":5000000,"nosuch":5000000}"#, "rates: found \\\"nosuch\\\", expected a controlled port: c"),
    ] {
        let said = answer(&agent, &format!("{{\"rates\":{rates}}}"));
        assert!(said.starts_with(&format!("{{\"error\":\"{expected}")), "{rates}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        let before = agent.fresh().at;
        assert!(agent.fresh().at > before && agent.runs(), "{rates}");
        assert_eq!(rate(&net), "100Mbit", "after {rates}");
    }
    for (bytes, expected) in
        [(1_500, "12Kbit"), (125_000_000_000_u64, "1Tbit"), (5_000_000, "40Mbit"), (12_500_000, "100Mbit")]
    {
        let said = answer(&agent, &format!("{{\"rates\":{{\"c\":{bytes}}}}}"));
        assert!(said.starts_with("{\"role\":\"switch\""), "{said}");
        assert_eq!(rate(&net), expected);
        let before = agent.fresh().at;
        assert!(agent.fresh().at > before && agent.runs(), "{bytes}");
    }
}

#[test]
fn an_agent_without_ports_refuses_rates() {
    let Some(net) = Net::star(Forwarding::Router, 1) else { return };
    let agent = Agent::sender(&net, "all", &[("s1", "r")]);
    let said = answer(&agent, r#"{"rates":{"c":5000000}}"#);
    assert!(said.starts_with("{\"error\":\"rates: found an agent that controls no port"), "{said}");
}
