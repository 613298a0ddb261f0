use proptest::prelude::*;

use super::harness::Net;
use super::port::stamp;
use super::{Law, Passed, Port, Uniform};
use crate::rate::aggregate::Aggregated;
use crate::rate::kit::testing::{ACK, RST, SYN, SYN_ACK, key, mbit, ms, packet};
use crate::rate::{Action, Admission, Class, Leaf, RateController, RateOption, rcp};
use crate::units::{Bytes, Rate, Span, Time};

const MTU: Bytes = Bytes::new(1500);
const LAWS: [&str; 1] = ["rcp"];

pub(super) fn controller(kind: &str, max_flows: usize) -> Box<dyn Aggregated> {
    assert_eq!(kind, "rcp");
    Box::new(Uniform::new(rcp::Stamped::new(rcp::Params::default()), max_flows))
}

fn net(kind: &str, report_every: u64) -> Net {
    Net::new(controller(kind, 1000), mbit(100.0), report_every)
}

#[test]
fn signal_selects_the_form() {
    use crate::parameter::Value;
    use crate::rate::{FlowKey, registry};
    let build = |kind, pairs: &[(&str, Value)]| {
        let params = pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        registry::build::<FlowKey>(kind, &params, 0, MTU).map_err(|problem| problem.to_string())
    };
    let word = |word: &'static str| Value::Word(word.into());
    for kind in ["rcp", "bdr"] {
        for (signal, stamped) in [("header", false), ("ack", true)] {
            let built = build(kind, &[("signal", word(signal))]).unwrap();
            assert_eq!((built.name(), matches!(built, RateController::PerFlow(_))), (kind, stamped));
            assert!(built.requirements().configured_capacity);
            assert_eq!(built.into_aggregated().is_some(), stamped);
        }
        let wrong = build(kind, &[("signal", word("smoke"))]).err().unwrap();
        assert_eq!(wrong, "signal: found \"smoke\", expected header or ack");
    }
    let wrong = build("bdr", &[("signal", word("ack")), ("mode", word("literal"))]).err().unwrap();
    assert!(wrong.starts_with("mode: found \"literal\", expected resolved if signal is ack"), "{wrong}");
    let wrong = build("rcp", &[("max_flows", Value::Number(0.0))]).err().unwrap();
    assert_eq!(wrong, "max_flows: found 0, expected a whole number from 1 to 2147483647");
}

#[test]
fn flows_share_equally_with_packets_and_with_counts() {
    for report_every in [0, 10] {
        let mut net = net("rcp", report_every);
        (1..=4).for_each(|n| net.sender(n, 20, u64::from(n) * 10, if n == 4 { 4_000 } else { 9_000 }));
        net.run(4_000);
        net.longest = Bytes::ZERO;
        for (until, flows) in [(4_000, 4.0), (8_000, 3.0)] {
            net.run(until);
            for n in 1..=flows as u32 {
                let told = net.told(n);
                let expected = 100.0 / flows;
                assert!((told / expected - 1.0).abs() < 0.04, "{report_every}: {told} of {expected}");
            }
        }
        assert!(net.longest < Bytes::new(60_000), "{report_every}: {:?}", net.longest);
    }
}

/// BDR-20: a flow's reports add up to its lifetime, from the SYN until the ACK of its last data.
#[test]
fn reports_add_up_to_life_times() {
    #[derive(Default)]
    struct Ear {
        lived: Span,
        begun: u32,
        firsts: u32,
        lasts: u32,
        weight: f64,
    }
    impl Law for Ear {
        const NAME: &'static str = "ear";
        fn start(&mut self, _now: Time, _port: &Port) {}
        fn on_begin(&mut self, _now: Time, _port: &Port) {
            self.begun += 1;
        }
        fn on_data(&mut self, bytes: Bytes, rtt: Option<Span>) {
            assert!(rtt.is_some_and(|rtt| rtt >= Span::from_millis(20)), "{rtt:?}");
            self.weight += bytes.as_f64();
        }
        fn on_report(&mut self, _now: Time, lived: Span, first: bool, last: bool, _port: &Port) {
            self.lived += lived;
            self.firsts += u32::from(first);
            self.lasts += u32::from(last);
        }
        fn on_timer(&mut self, _now: Time, _port: &Port, _passed: Passed) {}
        fn next(&self) -> Time {
            ms(0)
        }
        fn rate(&self, _now: Time) -> Rate {
            mbit(6.0)
        }
        fn grant(&self, _now: Time, _newcomers: u64) -> Rate {
            mbit(6.0)
        }
        fn trace(&self, _now: Time, trace: &mut dyn FnMut(&'static str, f64)) {
            trace("lived", self.lived.as_secs_f64());
            trace("begun", self.begun.into());
            trace("firsts", self.firsts.into());
            trace("lasts", self.lasts.into());
            trace("weight", self.weight);
        }
    }
    for report_every in [0, 10] {
        let mut net = Net::new(Box::new(Uniform::new(Ear::default(), 10)), mbit(100.0), report_every);
        net.sender(1, 20, 100, 400);
        net.sender(2, 50, 200, 1_000);
        net.run(3_000);
        let [lived, begun, firsts, lasts] = ["lived", "begun", "firsts", "lasts"].map(|key| net.traced(key));
        // The flows send FIN after 300 and 800 ms. The RTT after their last data is added: 20 and 50 ms.
        assert!((lived - 1.17).abs() < 0.02, "{report_every}: {lived}");
        assert_eq!((begun, firsts, lasts), (2.0, 2.0, 2.0), "{report_every}");
        let sent = net.port.departed[Leaf::Elephant as usize].as_f64() - net.traced("weight");
        assert!(
            (0.0..10_000.0).contains(&sent),
            "all bytes except the handshakes and the bytes counted since the last report"
        );
    }
}

/// BRF-61: the smallest rate on the path applies. Rates are compared with the precision of the rate code.
#[test]
fn the_smallest_rate_on_the_path_stands() {
    let rate = Rate::from_bytes_per_sec;
    assert_eq!(stamp(rate(6559), RateOption::Assigned(rate(6550))), Some(rate(6559)));
    assert_eq!(stamp(rate(6560), RateOption::Assigned(rate(6550))), None);
    assert_eq!(stamp(rate(6560), RateOption::Unassigned), Some(rate(6560)));
    assert_eq!(stamp(rate(6560), RateOption::Absent), Some(rate(6560)));
}

fn handshake(net: &mut Net, n: u32, option: RateOption) -> Option<Rate> {
    net.offer(&packet(n, 0, SYN, option));
    let granted = net.reverse(&packet(n, 0, SYN_ACK, option));
    net.offer(&packet(n, 0, ACK, option));
    granted
}

/// A flow that asks for rates gets them even if it has no record, because the table is full.
#[test]
fn every_ack_of_a_flow_that_asks_has_a_rate() {
    for kind in LAWS {
        let mut net = Net::new(controller(kind, 2), mbit(100.0), 0);
        assert!(handshake(&mut net, 1, RateOption::Unassigned).is_some());
        assert_eq!(handshake(&mut net, 2, RateOption::Absent), None);
        let ack = |n, option| packet(n, 0, ACK, option);
        for _ in 0..3 {
            assert!(net.reverse(&ack(1, RateOption::Unassigned)).is_some());
            assert_eq!(net.reverse(&ack(2, RateOption::Absent)), None);
        }
        assert!(handshake(&mut net, 3, RateOption::Unassigned).is_some());
        assert_eq!(net.controller.handle(&key(3)), None, "the table has no room for the flow");
        assert!(net.reverse(&ack(3, RateOption::Unassigned)).is_some());
        assert_eq!(net.reverse(&ack(3, RateOption::Absent)), None);
    }
}

/// BRF-104: forged SYNs and data create few records, and the table soon removes these records.
#[test]
fn forged_packets_have_a_small_and_short_effect() {
    let mut net = net("rcp", 0);
    net.sender(1, 20, 10, 60_000);
    net.run(1_000);
    for n in 1_000..3_000 {
        net.offer(&packet(n, 1448, ACK, RateOption::Unassigned));
        net.offer(&packet(n + 5_000, 0, SYN, RateOption::Unassigned));
    }
    assert!(net.traced("flows_known") <= 65.0, "{}", net.traced("flows_known"));
    net.run(5_500);
    assert_eq!((net.traced("flows_known"), net.traced("half_open")), (1.0, 0.0));
}

#[test]
fn a_reset_ends_a_flow_and_its_handle() {
    for kind in LAWS {
        let mut net = net(kind, 0);
        handshake(&mut net, 1, RateOption::Unassigned);
        let handle = net.controller.handle(&key(1)).unwrap();
        net.offer(&packet(1, 0, RST, RateOption::Absent));
        assert_eq!(net.controller.decide(ms(1), handle), None);
        // Another flow uses the slot now.
        handshake(&mut net, 2, RateOption::Unassigned);
        assert_eq!(net.controller.decide(ms(2), handle), None);
        assert!(net.controller.handle(&key(2)).is_some());
    }
}

/// The grant for one newcomer equals the rate in the next SYN-ACK. The grant for a second newcomer is not higher.
#[test]
fn newcomers_get_the_grants() {
    for kind in LAWS {
        let mut net = net(kind, 10);
        for n in 1..=4 {
            let start = net.now + 1;
            net.sender(n, 20, start, 60_000);
            net.run(start + 20);
            let [first, second] = [1, 2].map(|n| net.controller.grant(None, n).unwrap());
            assert!(second <= first, "{kind}");
            net.run(start + 21);
            let got = net.told(n) * 1e6 / 8.0;
            assert!((got / first.as_f64() - 1.0).abs() < 0.05, "{kind}, {n}: {first:?}, {got}");
            net.run(start + 400);
        }
    }
}

#[test]
fn classes_follow_the_link() {
    for kind in LAWS {
        let mut net = net(kind, 0);
        net.run(50);
        net.port.capacity = Some(mbit(40.0));
        net.run(100);
        let rated: Vec<_> = net
            .actions
            .iter()
            .filter_map(|a| match a {
                Action::SetClass { class: Class::Rated, rate, ceil } => Some((*rate, *ceil)),
                _ => None,
            })
            .collect();
        assert_eq!(rated, [(mbit(90.0), mbit(100.0)), (mbit(36.0), mbit(40.0))], "{kind}");
    }
}

#[test]
fn a_flow_without_acks_here_is_other_tcp() {
    for kind in LAWS {
        let mut net = net(kind, 0);
        let data = packet(1, 1448, ACK, RateOption::Unassigned);
        let mut leaf = || net.controller.on_data(ms(1), &data, &net.port, &mut Vec::new());
        assert_eq!(leaf(), Admission::Queue(Leaf::OtherTcp));
        assert_eq!(leaf(), Admission::Queue(Leaf::OtherTcp));
        net.reverse(&packet(1, 0, ACK, RateOption::Unassigned));
        let admitted = net.controller.on_data(ms(2), &data, &net.port, &mut Vec::new());
        assert_eq!(admitted, Admission::Queue(Leaf::Elephant));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn counts_decide_as_packets_do(
        // RTTs are at least 20 ms, because the packets of each 1 ms step are sent at once and form a queue.
        flows in prop::collection::vec((20..80u64, 0..1000u64, prop::option::of(1500..2500u64)), 2..7),
    ) {
        let mean_told = |report_every| {
            let mut net = net("rcp", report_every);
            for (n, (rtt, start, end)) in (1..).zip(&flows) {
                net.sender(n, *rtt, *start, end.unwrap_or(60_000));
            }
            // The last flow stays, so that the test can read its rate.
            if let Some(last) = net.senders.last_mut() {
                last.end = 60_000;
            }
            let last = net.senders.len() as u32;
            net.run(6_000);
            let told: Vec<f64> = (0..200).map(|_| { net.run(net.now + 10); net.told(last) }).collect();
            told.iter().sum::<f64>() / told.len() as f64
        };
        let (packets, counts) = (mean_told(0), mean_told(10));
        prop_assert!((counts / packets - 1.0).abs() < 0.05, "{packets} and {counts}");
    }
}
