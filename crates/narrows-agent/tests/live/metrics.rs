//! Tests a switch's metrics: at the first scrape, in both namespaces, and under attack.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use narrows_agent::clock;
use narrows_control::units::Span;

use super::agent::{Agent, since};
use super::net::{Forwarding, Net};

/// Starts a switch with metrics, in the namespace `r`. The line `netns` is added to the table `[metrics]`.
fn launch(net: &Net, address: SocketAddr, netns: &str) -> Agent {
    let config = format!(
        "[switch]\nnetns = \"{}\"\ninterfaces = {:?}\n[[ports]]\ninterface = \"c\"\nrate = \"100mbit\"\n\
         [metrics]\naddress = \"{address}\"\n{netns}\n",
        net.name("r"),
        net.senders()
    );
    Agent::launch("switch", &config)
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port")
}

/// Returns the page with the metrics. Waits until the agent has started.
fn scrape(address: SocketAddr) -> String {
    let begun = clock::now();
    let mut stream = loop {
        match TcpStream::connect(address) {
            Ok(stream) => break stream,
            Err(error) => assert!(since(begun) < Span::from_secs(60), "{address}: {error}"),
        }
        thread::sleep(Duration::from_millis(10));
    };
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("a request");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("an answer");
    page
}

fn value(page: &str, series: &str) -> f64 {
    let line =
        page.lines().find(|line| line.starts_with(series)).unwrap_or_else(|| panic!("{series}: {page}"));
    line.rsplit_once(' ').and_then(|(_, value)| value.parse().ok()).expect("a number")
}

#[test]
fn the_first_scrape_is_right_and_the_endpoint_is_in_the_namespace_of_choice() {
    let Some(net) = Net::star(Forwarding::Router, 1) else { return };
    for netns in ["", "netns = \"start\"", "netns = \"agent\""] {
        let here = !netns.contains("agent");
        let address = free_address();
        let mut agent = launch(&net, address, netns);
        let inside = |there: bool| {
            let reach = || TcpStream::connect(address).map(drop);
            if there { net.inside("r", reach) } else { reach() }
        };
        let page = || if here { scrape(address) } else { net.inside("r", || scrape(address)) };
        let first = page();
        let info = format!("narrows_agent_info{{role=\"switch\",name=\"{}\"}} 1\n", agent.name);
        assert!(first.contains(&info), "{first}");
        assert!(value(&first, "narrows_port_capacity_bytes_per_second{port=\"c\"}") > 12e6, "{first}");
        // If two requests follow shortly after each other, the endpoint answers both with the same page. Therefore
        // wait.
        thread::sleep(Duration::from_millis(500));
        let asked = clock::now();
        let uptime = value(&page(), "narrows_agent_uptime_seconds");
        let at = agent.fresh().started + Span::from_secs_f64(uptime);
        assert!(asked.since(at) < Span::from_secs(1), "the page is of {at:?}, asked at {asked:?}");
        let elsewhere = inside(here).map_err(|error| error.kind());
        assert_eq!(elsewhere, Err(ErrorKind::ConnectionRefused), "{netns}");
        assert!(agent.runs());
    }
}

#[test]
fn a_local_user_cannot_end_the_switch_by_its_metrics() {
    let Some(net) = Net::star(Forwarding::Router, 1) else { return };
    let address = free_address();
    let mut agent = launch(&net, address, "");
    agent.wait_until_ready();
    let attack = |length: u64, count: u32| {
        let port = address.port();
        let script = format!(
            "for i in $(seq {count}); do exec {{fd}}<>/dev/tcp/127.0.0.1/{port}; \
             printf 'POST /x HTTP/1.1\\r\\nContent-Length: {length}\\r\\n\\r\\n' >&$fd; done; exec sleep 1000"
        );
        let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups", "bash", "-c", &script];
        Attacker(Command::new("setpriv").args(nobody).spawn().expect("setpriv and bash"))
    };
    let mut attackers = [attack(99_999_999_999, 1), attack(1_000_000_000, 50)];
    for _ in 0..20 {
        let before = agent.fresh().at;
        assert!(scrape(address).starts_with("HTTP/1.1 200"));
        assert!(agent.runs() && agent.fresh().at > before);
        thread::sleep(Duration::from_millis(100));
    }
    assert!(net.says("r", "tc qdisc show dev c").contains("htb 4e57: root"));
    for Attacker(process) in &mut attackers {
        assert!(matches!(process.try_wait(), Ok(None)), "the attack goes on until now");
    }
}

/// A process that holds connections open. Dropping it ends the process.
struct Attacker(Child);

impl Drop for Attacker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
