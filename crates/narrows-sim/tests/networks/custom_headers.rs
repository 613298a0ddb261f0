//! Congestion headers and rate controllers that another crate defines.

use std::sync::{Arc, Mutex};

use crate::common::*;
use narrows_control::catalogue::{Catalogue, Choice, Controllers, Problem, RateEntry};
use narrows_control::congestion::{Ack, Congestion, Controller, Departing, Recovery, Window};
use narrows_control::feedback::header::{Custom, Header, Rcp};
use narrows_control::rate::{HeaderController, PortCounters, PortId};
use narrows_control::units::{Bytes, Rate, Time};
use narrows_sim::plan::{ControllerPlan, FlowPlan, LimitPlan, LossPlan, Plan, TransportPlan};
use narrows_sim::{Results, Run};

const PROTOCOL: u8 = 77;

/// Writes two words into each header: the id of the port, and the number of packets with this header so far.
struct Stamp {
    port: PortId,
    packets: u32,
}

impl HeaderController for Stamp {
    fn name(&self) -> &'static str {
        "stamp"
    }
    fn on_start(&mut self, _now: Time, _port: &PortCounters) {}
    fn on_departure(&mut self, _now: Time, _size: Bytes, header: &mut Header, _queued: Bytes) {
        if let Header::Custom(header) = header
            && header.protocol() == PROTOCOL
        {
            self.packets += 1;
            header.push(&[self.port, self.packets]);
        }
    }
    fn on_timer(&mut self, _now: Time, _port: &PortCounters) {}
    fn next_timer(&self) -> Time {
        Time::NEVER
    }
    fn trace(&self, _trace: &mut dyn FnMut(&'static str, f64)) {}
}

/// Tries to write RCP's header into each packet, also into packets that have no header.
struct Intruder;

impl HeaderController for Intruder {
    fn name(&self) -> &'static str {
        "intruder"
    }
    fn on_start(&mut self, _now: Time, _port: &PortCounters) {}
    fn on_arrival(&mut self, _now: Time, _size: Bytes, header: &mut Header, _port: &PortCounters) {
        *header = Header::Rcp(Rcp { rate: Rate::from_bytes_per_sec(1_000), rtt: None });
    }
    fn on_timer(&mut self, _now: Time, _port: &PortCounters) {}
    fn next_timer(&self) -> Time {
        Time::NEVER
    }
    fn trace(&self, _trace: &mut dyn FnMut(&'static str, f64)) {}
}

const INTRUDER: RateEntry = RateEntry::new("intruder", "for tests", |_, _, _| Box::new(Intruder));
const STAMP: RateEntry =
    RateEntry::new("stamp", "for tests", |_, port, _| Box::new(Stamp { port, packets: 0 }));

/// A congestion controller with a constant window of 20 segments. It collects the words that ACKs return.
struct Reader {
    header: Custom,
    returned: Arc<Mutex<Vec<Vec<u32>>>>,
}

impl Controller for Reader {
    fn name(&self) -> &'static str {
        "reader"
    }
    fn header_bytes(&self) -> u16 {
        self.header.wire_bytes()
    }
    fn header(&mut self, packet: &Departing, _window: &Window) -> Header {
        if packet.syn || packet.fin { Header::None } else { Header::Custom(self.header) }
    }
    fn on_header(&mut self, _now: Time, header: &Custom) {
        assert_eq!(header.protocol(), PROTOCOL);
        self.returned.lock().unwrap().push(header.words().to_vec());
    }
    fn on_ack(&mut self, _ack: &Ack, window: &mut Window) {
        window.cwnd = 20;
    }
    fn on_congestion(&mut self, _event: &Congestion, window: &mut Window) {
        window.ssthresh = 20;
    }
    fn recovery(&self) -> Recovery {
        Recovery::Controller
    }
}

/// Returns the controllers of a run: the congestion controller `reader`, and the rate controllers `stamp` and
/// `intruder`.
struct Own {
    room: usize,
    returned: Arc<Mutex<Vec<Vec<u32>>>>,
}

impl Controllers for Own {
    fn check(&self, choice: &Choice) -> Result<(), Problem> {
        if choice.name == "reader" { Ok(()) } else { Catalogue::built_in().check(choice) }
    }
    fn build(&self, choice: &Choice) -> Option<Box<dyn Controller>> {
        if choice.name != "reader" {
            return Catalogue::built_in().build(choice);
        }
        let header = Custom::new(PROTOCOL, self.room);
        Some(Box::new(Reader { header, returned: self.returned.clone() }))
    }
    fn rate_controllers(&self) -> &[RateEntry] {
        &[STAMP, INTRUDER]
    }
}

/// Returns a plan in which data passes two links. Each of them has a rate controller `stamp`.
fn two_hops() -> Plan {
    let mut plan = path(mbit(50), ms(20), fifo(packets(100)), 5);
    plan.nodes.push("c".into());
    plan.links.push(link(1, 2, mbit(100), ms(0), fifo(LimitPlan::default())));
    plan.links.push(link(2, 1, mbit(1_000), ms(0), fifo(LimitPlan::default())));
    plan.rate_controllers.push(controller("stamp", serde_json::Value::Null));
    plan.rate_controllers.push(ControllerPlan { link: 2, ..controller("stamp", serde_json::Value::Null) });
    plan.flows.push(FlowPlan { to: 2, ..bulk("reader") });
    plan
}

/// Runs a plan, and returns its results and the words of all ACKs.
fn read(plan: &Plan, room: usize) -> (Results, Vec<Vec<u32>>) {
    let own = Own { room, returned: Arc::default() };
    let results = Run::new(plan).controllers(&own).start().expect("a valid plan");
    let words = std::mem::take(&mut *own.returned.lock().unwrap());
    (results, words)
}

#[test]
fn acks_return_the_words_of_all_routers_in_the_order_of_the_path() {
    let (results, words) = read(&two_hops(), 6);
    // The flow sends 20 segments in each RTT of 20 ms for 5 s, which are about 5,000 segments.
    assert!(words.len() > 4_000, "{}", words.len());
    for (sent, words) in (1..).zip(&words) {
        assert_eq!(*words, [0, sent, 1, sent], "each ACK has the words of its own segment");
    }
    // The header of a segment has four bytes and room for six words. The header of an ACK has four bytes and the four
    // words that the routers wrote.
    let signal = results.u("flows", "signal_bytes", 0);
    let sent = results.u("flows", "sent_packets", 0);
    let acks = words.len() as u64;
    assert!(signal >= acks * (28 + 20) && signal <= sent * 28 + (acks + 20) * 20, "{signal}, {sent}, {acks}");
}

#[test]
fn a_full_header_keeps_the_words_of_the_first_routers() {
    let (_, words) = read(&two_hops(), 3);
    assert!(words.len() > 4_000);
    assert!(words.iter().all(|words| words.len() == 2 && words[0] == 0), "only the first router had room");
}

#[test]
fn a_header_makes_segments_shorter_and_costs_goodput() {
    let mut plan = two_hops();
    plan.links[0].rate = constant(mbit(5));
    let goodput = |room| read(&plan, room).0.f("flows", "goodput_bps", 0);
    // Full packets have 1,500 bytes, whatever the size of the header is. A header with room for 12 words takes
    // 4 + 4 * 12 of the 1,448 bytes of payload.
    let ratio = goodput(12) / goodput(0);
    assert!((ratio - (1448.0 - 52.0) / (1448.0 - 4.0)).abs() < 0.002, "{ratio}");
}

#[test]
fn headers_survive_losses_duplicates_and_reordering() {
    let mut plan = two_hops();
    plan.duration = ms(20_000);
    plan.links[0].loss = vec![(Time::ZERO, LossPlan::Bernoulli { p: 0.02 })];
    plan.links[0].duplicate = 0.02;
    plan.links[1].duplicate = 0.02;
    let (_, words) = read(&plan, 12);
    assert!(words.len() > 4_000, "{}", words.len());
    let mut numbers: Vec<u32> = Vec::new();
    for words in &words {
        assert_eq!((words.len(), words[0], words[2]), (4, 0, 1));
        // The first router numbers packets before its link loses or duplicates them.
        numbers.push(words[1]);
    }
    assert!(numbers.windows(2).any(|pair| pair[1] == pair[0]), "ACKs of duplicates return the same words");
    assert!(numbers.windows(2).any(|pair| pair[1] > pair[0] + 1), "words of lost packets are missing");
}

#[test]
fn a_rate_controller_of_another_crate_is_known_only_with_its_catalogue() {
    let mut plan = two_hops();
    plan.flows = vec![bulk("cubic")];
    let error = Run::new(&plan).start().expect_err("`stamp` is unknown").to_string();
    assert!(error.starts_with("rate_controllers[0].kind: found \"stamp\""), "{error}");
    let mut plan = two_hops();
    plan.rate_controllers[0].params = values(serde_json::json!({ "depth": 3 }));
    let own = Own { room: 4, returned: Arc::default() };
    let error = Run::new(&plan).controllers(&own).start().expect_err("no parameter").to_string();
    assert!(error.starts_with("rate_controllers[0].params: found \"depth\""), "{error}");
    let mut catalogue = Catalogue::built_in().clone();
    catalogue.add_rate_controller(STAMP).expect("a new name");
    let taken = catalogue.add_rate_controller(STAMP).expect_err("the name is taken").to_string();
    assert!(taken.contains("\"stamp\""), "{taken}");
    let built_in = RateEntry { name: "xcp", ..STAMP };
    assert!(catalogue.add_rate_controller(built_in).is_err());
}

/// The two flows send in opposite directions, so the link with the rate controller carries data of one flow and ACKs of
/// the other.
#[test]
fn a_controller_cannot_write_a_header_into_packets_that_have_none() {
    let with = |kind: &str| {
        let mut plan = two_hops();
        plan.rate_controllers = vec![controller(kind, serde_json::Value::Null)];
        plan.flows = vec![bulk("cubic"), FlowPlan { from: 1, to: 0, ..sized("reno", 2_000_000) }];
        plan.links[0].loss = vec![(Time::ZERO, LossPlan::Bernoulli { p: 0.01 })];
        let (results, _) = read(&plan, 6);
        assert_eq!(results.u("signalling", "rewritten_data", 0), 0);
        (0..2).map(|flow| results.u("flows", "sent_packets", flow)).collect::<Vec<_>>()
    };
    assert_eq!(with("intruder"), with("stamp"));
}

#[test]
fn the_smallest_segments_have_room_for_data_beside_the_longest_header() {
    let with = |mss: u32| {
        let mut plan = two_hops();
        let mut flow = FlowPlan { to: 2, ..sized("reader", 2_000) };
        if let TransportPlan::Tcp { mss: own, .. } = &mut flow.transport {
            *own = mss;
        }
        plan.flows = vec![flow];
        Run::new(&plan).controllers(&Own { room: 12, returned: Arc::default() }).start()
    };
    assert_eq!(with(64).expect("a valid plan").u("flows", "delivered_bytes", 0), 2_000);
    let error = with(63).expect_err("too small").to_string();
    assert!(error.contains("mss: found 63, expected 64 to 60000 bytes"), "{error}");
}
