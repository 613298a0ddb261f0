use super::super::Params;
use super::super::harness::{MTU, Net};
use super::*;
use crate::rate::{CongestionKind, Message, PerFlowController};
use crate::units::{Bytes, Rate, Span, Time};

const LINK: Rate = Rate::from_bits_per_sec(100_000_000);

/// Returns the states since the last call, with the current time in ms.
fn states(net: &mut Net) -> Vec<(u64, &'static str)> {
    let now = net.now;
    let named = |action| match action {
        Action::State { state, .. } => Some((now, state)),
        _ => None,
    };
    core::mem::take(&mut net.actions).into_iter().filter_map(named).collect()
}

/// Runs until this time in ms, and returns the states with their times.
fn walk(net: &mut Net, until: u64) -> Vec<(u64, &'static str)> {
    let mut walked = states(net);
    while net.now < until {
        let now = net.now;
        net.run(now + 1);
        walked.extend(states(net).into_iter().map(|(_, state)| (now, state)));
    }
    walked
}

fn say(net: &mut Net, kind: Option<CongestionKind>) {
    let message = Message::Congestion { kind, port: 1 };
    let now = Time::ZERO + Span::from_millis(net.now);
    net.brf.on_message(now, &message, &net.port, &mut net.actions);
}

/// Walks through Figure 5 with flows whose RTT is 20 ms. T is 100 ms in the first cycle, because no RTT is known, and
/// 20 ms in the other cycles.
#[test]
fn every_change_of_state_is_an_event() {
    let mut net = Net::new(Params::resolved(), LINK);
    net.sender(1, 20, 0);
    net.sender(2, 20, 250);
    let expected = [
        (0, "state-init"),
        (0, "state-settle"),
        // The SYN-ACK of the first flow does not restart the phase (BRF-35).
        (20, "state-bw-init"),
        (20, "state-settle"),
        (100, "state-measure"),
        (200, "state-alloc"),
        (200, "state-settle"),
        (220, "state-measure"),
        (240, "state-alloc"),
        (240, "state-settle"),
        (260, "state-measure"),
        // The SYN-ACK of the second flow.
        (270, "state-bw-init"),
        (270, "state-measure"),
        (280, "state-alloc"),
        (280, "state-settle"),
    ];
    assert_eq!(walk(&mut net, 290), expected);

    // The queue has 100 packets. The link sends them in 12 ms.
    net.port.queued[1] = Bytes::new(100 * MTU);
    say(&mut net, Some(CongestionKind::Queue));
    assert_eq!(states(&mut net), [(290, "state-congestion")]);
    say(&mut net, Some(CongestionKind::Queue));
    assert_eq!(states(&mut net), [], "the state is the same");
    // Congestion lasts for at least T, because the reduction does not take effect earlier.
    assert_eq!(walk(&mut net, 315), []);
    say(&mut net, None);
    assert_eq!(states(&mut net), [(315, "state-alloc"), (315, "state-settle")]);
    assert_eq!(walk(&mut net, 336), [(335, "state-measure")]);
}

#[test]
fn as_printed_the_port_measures_at_once() {
    let mut net = Net::new(Params::literal(), LINK);
    let expected = [
        (0, "state-init"),
        (0, "state-measure"),
        (100, "state-alloc"),
        (100, "state-measure"),
        (200, "state-alloc"),
        (200, "state-measure"),
    ];
    assert_eq!(walk(&mut net, 201), expected);
}

#[test]
fn the_last_event_is_the_phase() {
    let mut net = Net::new(Params::resolved(), LINK);
    for n in 1..=20 {
        net.sender(n, 5 + u64::from(n), 7 * u64::from(n));
    }
    let mut last = None;
    let mut seen = std::collections::BTreeSet::new();
    for now in 1..2_000 {
        last = walk(&mut net, now).last().map(|(_, state)| *state).or(last);
        assert_eq!(last, Some(State::of(net.brf.cycle.phase()).event()), "{now} ms");
        seen.extend(last);
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["state-congestion", "state-measure", "state-settle"]);
}
