//! Tests that every rate controller and every domain's controller keeps working with any valid parameters. Many of the
//! random values are at the ends of their ranges. In these tests, header-based controllers get timers but no packets.

use proptest::prelude::*;

use super::domain::{Settings, Topology};
use super::kit::testing::{ACK, FIN, MTU, SYN, SYN_ACK, key, mbit, packet};
use super::{Action, Admission, FlowKey, LEAVES, PortCounters, PortId, RateController, RateOption, registry};
use crate::parameter::Values;
use crate::parameter::testing::{positions, random_values};
use crate::units::{Bytes, Rate, Span, Time};

struct Line;

impl Topology for Line {
    fn path(&self, _flow: &FlowKey) -> Vec<PortId> {
        vec![1]
    }
}

/// Runs three flows that send at 1 Gbit/s through a port of 100 Mbit/s, until they end. Returns the rates in the flows'
/// ACKs and the flows' allocations.
fn behaviour(name: &str, params: &Values) -> Vec<Rate> {
    let mtu = Bytes::new(MTU);
    let mut controller = registry::build::<FlowKey>(name, params, 1, mtu).expect("checked parameters");
    let ports = [(1, params.clone())];
    let mut domain = registry::build_domain::<FlowKey>(name, &ports, &Settings::default(), mtu, Time::ZERO)
        .expect("likewise");
    let mut port =
        PortCounters { capacity: Some(mbit(100.0)), limit_packets: [100; LEAVES], ..PortCounters::default() };
    let (mut now, mut actions, mut out, mut rates) = (Time::ZERO, Vec::new(), Vec::new(), Vec::new());
    controller.on_start(now, &port, &mut actions);
    for step in 0..600u32 {
        now += Span::from_micros(if step % 100 == 99 { 300_000 } else { 12 });
        if now >= controller.next_timer() {
            controller.on_timer(now, &port, &mut actions);
            assert!(controller.next_timer() > now, "a timer does not stop");
        }
        if let Some(domain) = &mut domain {
            while now >= domain.next_timer() {
                domain.on_timer(now, &Line, &mut out);
                assert!(domain.next_timer() > now, "the domain's timer does not stop");
            }
            for action in actions.drain(..) {
                if let Action::ToController(message) = action {
                    domain.on_message(now, 1, &message, &Line, &mut out);
                }
            }
            for (_, message) in out.drain(..) {
                controller.on_message(now, &message, &port, &mut actions);
            }
        }
        let RateController::PerFlow(controller) = &mut controller else { continue };
        let flow = step % 3;
        let (data, reverse) = match step {
            0..3 => (
                packet(flow, 0, SYN, RateOption::Unassigned),
                packet(flow, 0, SYN_ACK, RateOption::Unassigned),
            ),
            597.. => {
                (packet(flow, 0, FIN, RateOption::Unassigned), packet(flow, 0, FIN, RateOption::Unassigned))
            }
            _ => (
                packet(flow, 1448, ACK, RateOption::Unassigned),
                packet(flow, 0, ACK, RateOption::Unassigned),
            ),
        };
        let admission = controller.on_data(now, &data, &port, &mut actions);
        if let Admission::Queue(leaf) = admission {
            port.departed[leaf as usize] += data.size;
        }
        rates.extend(controller.on_reverse(now, &reverse, &mut actions));
        rates.extend(controller.allocation(&key(flow)));
    }
    rates
}

#[test]
fn flows_get_rates() {
    for name in ["brf", "pacec"] {
        assert!(!behaviour(name, &Values::new()).is_empty(), "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn no_valid_parameters_stop_a_controller(seed: u64) {
        let mut next = positions(seed);
        for entry in registry::all() {
            let known = entry.parameters.iter().map(|parameter| (parameter.name.to_owned(), parameter));
            let values = random_values(known, &mut next);
            match registry::build::<FlowKey>(entry.name, &values, 1, Bytes::new(MTU)).map(|_| ()) {
                Ok(()) => drop(behaviour(entry.name, &values)),
                // Each value is valid by itself, so the reported value must conflict with another value.
                Err(problem) => {
                    let name = problem.parameter.clone().unwrap_or_default();
                    let parameter = entry.parameter(&name);
                    prop_assert!(parameter.is_some(), "{problem}");
                    let default = entry.defaults(&values).find(|(p, _)| p.name == name).map(|(_, value)| value);
                    let value = values.get(&name).or(default.as_ref());
                    prop_assert!(value.is_some_and(|v| parameter.is_some_and(|p| p.check(v).is_ok())), "{problem}");
                }
            }
        }
    }
}
