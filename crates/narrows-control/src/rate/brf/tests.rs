use super::harness::*;
use super::table::List;
use super::{Brf, Params};
use crate::rate::aggregate::Aggregated;
use crate::rate::kit::classes::LEAST_RATE;
use crate::rate::{
    Action, Admission, Class, CongestionKind, Leaf, Message, PerFlowController, PortCounters, Proto,
    Queueing, RateOption, TcpFlags,
};
use crate::units::{Bytes, Rate, Span, Time};

const LINK: Rate = Rate::from_bits_per_sec(100_000_000);

fn resolved() -> Net {
    Net::new(Params::resolved(), LINK)
}

/// Returns whether `a` differs from `b` by at most `part` times `b`.
fn near(a: Rate, b: Rate, part: f64) -> bool {
    (a.as_f64() - b.as_f64()).abs() <= part * b.as_f64()
}

/// Passes the packets of TCP flow `n` to the port, from the handshake to the first full packet. Returns the rate in
/// the SYN-ACK.
fn establish(net: &mut Net, n: u32) -> Option<Rate> {
    net.offer(&packet(n, 0, SYN, RateOption::Unassigned));
    net.now += 20;
    let told = net.reverse(&packet(n, 0, SYN_ACK, RateOption::Unassigned));
    net.offer(&packet(n, 1448, ACK, RateOption::Absent));
    told
}

#[test]
fn a_newcomer_leaves_a_share_to_the_next_one_and_gets_it_after_an_rtt() {
    let mut net = resolved();
    for n in 1..=5u32 {
        net.sender(n, 20, u64::from(n - 1) * 2000);
    }
    net.run(20);
    assert_eq!(net.senders[0].told, Rate::ZERO);
    net.run(21);
    assert!(near(net.senders[0].told, mbit(98.0 / 2.0), 0.002));
    net.run(42);
    assert!(near(net.senders[0].told, mbit(98.0), 0.002));
    for n in 2..=5usize {
        let start = (n as u64 - 1) * 2000;
        net.run(start + 21);
        let (first, share) = (mbit(98.0 / (n + 1) as f64), mbit(98.0 / n as f64));
        assert!(near(net.senders[n - 1].told, first, 0.01), "flow {n}: {:?}", net.senders[n - 1].told);
        // The other flows learn their new rates within one RTT, which is the convergence time of the paper.
        net.run(start + 42);
        assert!(net.senders[..n].iter().all(|s| s.told <= share.mul_f64(1.02)), "{n} flows");
        // By now the queue from the excess during this RTT (TV-12) has drained, and all flows have the same rate.
        net.run(start + 300);
        assert!(net.senders[..n].iter().all(|s| near(s.told, share, 0.02)), "{n} flows");
    }
    net.run(12_000);
    assert!(net.senders.iter().all(|s| near(s.told, mbit(98.0 / 5.0), 0.02)));
    assert_eq!(net.logged("flow-added"), 5);
}

#[test]
fn without_urgent_decreases_there_is_at_most_one_feedback_per_rtt() {
    let mut net = Net::new(Params { urgent_decrease: false, ..Params::resolved() }, LINK);
    net.sender(1, 20, 0);
    net.sender(2, 50, 5);
    net.run(3_000);
    for s in &net.senders {
        // The interval between the first two feedbacks may be shorter. They are in the SYN-ACK and in the first ACK of
        // data.
        assert!(s.feedbacks.windows(2).skip(1).all(|w| w[1] - w[0] >= s.rtt), "{:?}", s.feedbacks);
        assert!(s.feedbacks.len() as u64 > 2_000 / s.rtt);
    }
}

#[test]
fn a_limited_flow_keeps_what_it_needs_and_others_get_the_rest() {
    let mut net = resolved();
    net.sender(1, 20, 0).limit = mbit(8.0);
    net.sender(2, 20, 0);
    net.sender(3, 20, 0);
    net.run(1_000);
    for _ in 0..200 {
        net.run(net.now + 10);
        let limited = net.allocated(1);
        assert!(limited >= mbit(8.0) && limited <= mbit(8.0 * 1.1 + 0.8), "{limited:?}");
        assert!(near(net.allocated(2), mbit((98.0 - 8.8) / 2.0), 0.02), "{:?}", net.allocated(2));
    }
}

#[test]
fn the_rest_of_limited_flows_is_available_when_demand_jumps() {
    let mut net = resolved();
    net.sender(1, 20, 0).limit = mbit(10.0);
    net.sender(2, 20, 0).limit = mbit(10.0);
    net.run(1_000);
    assert!(near(net.allocated(1), mbit(49.0), 0.05), "{:?}", net.allocated(1));
    net.senders[0].limit = Rate::MAX;
    net.run(1_000 + 4 * 40);
    assert!(net.allocated(1) > mbit(80.0), "{:?}", net.allocated(1));
}

#[test]
fn loss_before_the_switch_does_not_look_like_an_application_limit() {
    for says in [true, false] {
        let mut net = resolved();
        for n in [1, 2] {
            let s = net.sender(n, 20, 0);
            (s.lose_every, s.says) = (5, says);
        }
        net.run(2_000);
        let before: Vec<u64> = net.senders.iter().map(|s| s.sent).collect();
        net.run(62_000);
        for (s, before) in net.senders.iter().zip(before) {
            let sent = Rate::of(Bytes::new(s.sent - before), Span::from_secs(60));
            assert!(sent >= mbit(0.95 * 49.0), "says: {says}, {sent:?}");
        }
    }
    // By the paper's rule, a flow with losses seems to have a lower demand. BRF-100 prevents this error, but is
    // disabled in this test.
    let mut net =
        Net::new(Params { believe_senders: false, spread_residual: false, ..Params::resolved() }, LINK);
    net.sender(1, 20, 0).lose_every = 5;
    net.sender(2, 20, 0).lose_every = 5;
    net.run(5_000);
    assert!(net.brf.table.ids(List::Rated).all(|id| net.brf.table.meter(id).unwrap().demand < 4_000_000));
}

/// With many flows the minimum rate is the equal share (BRF-47), so it must fall with the capacity.
#[test]
fn a_halved_capacity_halves_the_minimum_rates_of_a_crowd() {
    let mut net = resolved();
    for n in 1..=1000 {
        net.sender(n, 20, 2 * u64::from(n));
    }
    net.run(3_000);
    let before = net.allocated_sum();
    net.port.capacity = Some(mbit(50.0));
    net.brf.on_timer(ms(net.now), &net.port, &mut net.actions);
    let after = net.allocated_sum();
    assert!(
        before > mbit(90.0).as_bytes_per_sec() && after <= mbit(49.0).as_bytes_per_sec(),
        "{before}, {after}"
    );
}

#[test]
fn a_halved_capacity_takes_effect_at_once() {
    let mut net = resolved();
    net.sender(1, 20, 0);
    net.sender(2, 20, 0);
    net.run(1_000);
    net.port.capacity = Some(mbit(50.0));
    net.brf.on_timer(ms(net.now), &net.port, &mut net.actions);
    assert!(net.allocated_sum() <= mbit(49.0).as_bytes_per_sec());
    let rated = Action::SetClass { class: Class::Rated, rate: mbit(49.0), ceil: mbit(50.0) };
    assert!(net.actions.contains(&rated));
    net.port.capacity = Some(LINK);
    net.brf.on_timer(ms(net.now), &net.port, &mut net.actions);
    assert!(near(net.allocated(1), mbit(49.0), 0.01));
}

#[test]
fn a_flood_of_syns_does_not_affect_established_flows() {
    let mut net = Net::new(Params { max_half_open: 100, ..Params::resolved() }, LINK);
    net.sender(1, 20, 0);
    net.sender(2, 20, 0);
    net.run(500);
    for n in 1_000..50_000 {
        net.offer(&packet(n, 0, SYN, RateOption::Unassigned));
        assert!(net.brf.half_open.len() <= 100);
    }
    assert_eq!(net.brf.table.len(List::Rated), 2);
    assert!(near(net.allocated(1), mbit(49.0), 0.01));
    // Even SYNs that get SYN-ACKs evict no established flow. They create at most the permitted number of unconfirmed
    // records, which are removed within seconds.
    for n in 100_000..110_000 {
        net.offer(&packet(n, 0, SYN, RateOption::Unassigned));
        net.reverse(&packet(n, 0, SYN_ACK, RateOption::Unassigned));
    }
    assert!(net.brf.table.len(List::Rated) <= 2 + 64);
    assert!(net.brf.allocation(&key(1)).is_some());
    net.run(net.now + 4_000);
    assert_eq!(net.brf.table.len(List::Rated), 2);
    assert!(near(net.allocated(1), mbit(49.0), 0.02));
}

#[test]
fn a_restarted_switch_finds_its_flows_again() {
    let mut net = resolved();
    net.sender(1, 20, 0).says = true;
    net.sender(2, 20, 0).says = true;
    net.run(500);
    net.brf = Brf::new(Params::resolved(), 1, Bytes::new(MTU));
    net.brf.on_start(ms(net.now), &net.port, &mut net.actions);
    net.run(1_000);
    assert!(net.senders.iter().all(|s| near(s.told, mbit(49.0), 0.02) && s.feedbacks.last() > Some(&970)));
}

#[test]
fn a_foreign_flow_is_other_tcp_and_shares_the_link_by_number_of_flows() {
    let mut net = resolved();
    net.sender(1, 20, 0);
    net.run(300);
    net.offer(&packet(50, 0, SYN, RateOption::Absent));
    assert_eq!(net.reverse(&packet(50, 0, SYN_ACK, RateOption::Absent)), None);
    let leaf = net.offer(&packet(50, 1448, ACK, RateOption::Absent));
    assert_eq!(leaf, Admission::Queue(Leaf::OtherTcp));
    assert_eq!(net.reverse(&packet(50, 0, ACK, RateOption::Absent)), None);
    net.offer(&packet(50, 1448, ACK, RateOption::Absent));
    assert!(near(net.allocated(1), mbit(49.0), 0.01), "the first flow of a class gets its share at once");
    let rated = Action::SetClass { class: Class::Rated, rate: mbit(49.0), ceil: LINK };
    assert!(net.actions.contains(&rated));
    net.run(net.now + 500);
    assert!(near(net.allocated(1), mbit(98.0), 0.01), "the other flow is idle");
}

#[test]
fn udp_is_policed_to_its_share() {
    let mut net = resolved();
    let mut passed = 0;
    for i in 0..2_000 {
        net.now = i;
        let mut datagram = packet(7, 1448, TcpFlags::default(), RateOption::Absent);
        datagram.key.proto = Proto::Udp;
        passed += u64::from(net.offer(&datagram) == Admission::Queue(Leaf::Udp));
    }
    // UDP offers 12 Mbit/s for two seconds. The policer admits 5 Mbit/s, and in addition a burst of two packets.
    assert!((830..=838).contains(&passed), "{passed}");
    let class = Action::SetClass { class: Class::Udp, rate: mbit(5.0), ceil: mbit(5.0) };
    assert!(net.actions.contains(&class));
}

#[test]
fn udp_borrows_what_tcp_leaves_idle() {
    let mut net = Net::new(Params { udp_ceiling: 0.95, ..Params::resolved() }, LINK);
    assert_eq!(net.brf.requirements().queueing, Queueing::Classes { queues_udp: true });
    let mut datagram = packet(7, 1448, TcpFlags::default(), RateOption::Absent);
    datagram.key.proto = Proto::Udp;
    for _ in 0..100 {
        assert_eq!(net.offer(&datagram), Admission::Queue(Leaf::Udp), "UDP that may borrow is not policed");
    }
    let udp_rates = |net: &Net| {
        let classes = net.actions.iter().rev().filter_map(|action| match action {
            Action::SetClass { class: Class::Udp, rate, ceil } => Some((*rate, *ceil)),
            _ => None,
        });
        classes.into_iter().next().unwrap()
    };
    assert_eq!(udp_rates(&net), (mbit(5.0), mbit(95.0)));
    net.sender(1, 20, 0).limit = Rate::MAX;
    for _ in 0..500 {
        net.run(net.now + 1);
        net.offer(&datagram);
    }
    assert_eq!(udp_rates(&net), (mbit(5.0), mbit(5.0)));
    net.senders.clear();
    net.run(net.now + 500);
    assert_eq!(udp_rates(&net), (LEAST_RATE, mbit(95.0)), "nothing is reserved for UDP without traffic");

    let mut measured = Brf::new(Params { udp_ceiling: 0.95, ..Params::resolved() }, 1, Bytes::new(MTU));
    let (port, mut actions) = (PortCounters::default(), Vec::new());
    measured.on_start(Time::ZERO, &port, &mut actions);
    measured.on_data(Time::ZERO, &datagram, &port, &mut actions);
    let classes = actions.iter().filter(|a| matches!(a, Action::SetClass { class: Class::Udp, .. }));
    assert!(classes.into_iter().all(|a| matches!(a, Action::SetClass { rate, ceil, .. } if rate == ceil)));
}

#[test]
fn flows_end_by_reset_by_both_fins_and_by_silence() {
    let mut net = resolved();
    for n in [1, 2, 3] {
        assert!(establish(&mut net, n).is_some());
    }
    net.offer(&packet(1, 0, RST, RateOption::Absent));
    assert_eq!(net.brf.table.find(&key(1)), None);

    net.offer(&packet(2, 100, FIN, RateOption::Absent));
    assert_eq!(net.brf.allocation(&key(2)), None, "the sender has no more data");
    net.offer(&packet(2, 100, ACK, RateOption::Absent));
    assert_eq!(net.brf.allocation(&key(2)), None, "a retransmission");
    net.reverse(&packet(2, 0, FIN, RateOption::Unassigned));
    net.offer(&packet(2, 100, FIN, RateOption::Absent));
    assert!(net.brf.table.find(&key(2)).is_some(), "a retransmitted FIN creates no new record");
    assert_eq!(net.brf.table.len(List::Rated), 1);
    net.run(net.now + 250);
    assert_eq!(net.brf.table.find(&key(2)), None);

    assert_eq!((net.brf.table.len(List::Rated), net.brf.table.len(List::Idle)), (0, 1));
    net.offer(&packet(3, 1448, ACK, RateOption::Absent));
    assert_eq!(net.allocated(3), mbit(98.0), "the flow is a newcomer again");
    assert!(net.reverse(&packet(3, 0, ACK, RateOption::Unassigned)).is_some());
    net.run(net.now + 61_000);
    assert_eq!(net.brf.table.find(&key(3)), None);
}

#[test]
fn a_greedy_flow_teaches_the_predictor_the_capacity_and_a_limited_flow_its_rate() {
    for (limit, expected) in [(Rate::MAX, 98.0), (mbit(8.0), 8.0)] {
        let mut net = Net::new(Params { predictor_samples: 1, ..Params::resolved() }, LINK);
        net.sender(1, 20, 0).limit = limit;
        net.sender(2, 20, 0);
        net.run(2_000);
        net.offer(&packet(1, 0, RST, RateOption::Absent));
        let predicted = net.brf.predictor.predict(&key(1)).unwrap();
        assert!(near(predicted, mbit(expected), 0.05), "{limit:?}: {predicted:?}");
    }
}

/// The switch is near the receiver. So the known RTT is only 1 ms until the sender has answered the SYN-ACK.
#[test]
fn a_commitment_lasts_for_an_rtt_of_the_data() {
    let mut net = resolved();
    net.offer(&packet(1, 0, SYN, RateOption::Unassigned));
    net.now += 1;
    assert!(net.reverse(&packet(1, 0, SYN_ACK, RateOption::Unassigned)).is_some());
    let committed_at = |net: &mut Net, at: u64| {
        net.now = at;
        net.brf.on_timer(ms(at), &net.port, &mut net.actions);
        net.brf.shares.committed() > Rate::ZERO
    };
    assert!(committed_at(&mut net, 30), "no data was sent yet");
    net.now = 40;
    net.offer(&packet(1, 1448, ACK, RateOption::Absent));
    assert!(committed_at(&mut net, 60), "the sender's half of the RTT is 39 ms");
    assert!(!committed_at(&mut net, 81), "the commitment ends an RTT after the data");
    assert_eq!(net.allocated(1), mbit(98.0));
}

#[test]
fn a_finished_flow_repairs_its_losses_at_its_last_rate() {
    let mut net = resolved();
    let told = establish(&mut net, 1);
    net.now += 20;
    net.offer(&packet(1, 1448, FIN, RateOption::Absent));
    assert_eq!((net.brf.allocation(&key(1)), net.brf.shares.committed()), (None, Rate::ZERO));
    assert_eq!(net.reverse(&packet(1, 0, ACK, RateOption::Unassigned)), told);
    assert!(told.is_some());
    net.offer(&packet(1, 0, SYN, RateOption::Unassigned));
    assert_eq!(net.brf.table.find(&key(1)), None, "a new flow has the same ports");
}

#[test]
fn a_passive_opener_that_sends_gets_its_rate_in_the_third_packet() {
    let mut net = resolved();
    assert_eq!(net.reverse(&packet(1, 0, SYN, RateOption::Unassigned)), None);
    net.now += 5;
    net.offer(&packet(1, 0, SYN_ACK, RateOption::Unassigned));
    net.now += 15;
    assert_eq!(net.reverse(&packet(1, 0, ACK, RateOption::Unassigned)), Some(mbit(98.0 / 2.0)));
    let id = net.brf.table.find(&key(1)).unwrap();
    assert_eq!(net.brf.table.get(id).unwrap().life.rtt.get(), Some(Span::from_millis(20)));
    assert!(net.brf.table.get(id).unwrap().life.awaited.is_none());
}

#[test]
fn a_write_that_did_not_fit_is_repeated_in_the_next_ack() {
    let mut net = resolved();
    establish(&mut net, 1);
    net.now += 200;
    let ack = packet(1, 0, ACK, RateOption::Unassigned);
    let id = net.brf.table.find(&key(1)).unwrap();
    let told = |net: &Net| net.brf.table.meter(id).map(|meter| (meter.told, meter.told_at)).unwrap();
    let before = told(&net);
    assert!(net.reverse(&ack).is_some());
    assert_ne!(told(&net), before);
    net.brf.on_write_failed(&key(1));
    assert_eq!(told(&net), before, "the flow is judged by the rate that it knows");
    assert!(net.reverse(&ack).is_some());
    assert!(net.reverse(&ack).is_none());
}

#[test]
fn a_flow_whose_acks_take_another_path_is_advertised_and_told_there() {
    let (mut here, mut there) = (resolved(), resolved());
    here.offer(&packet(1, 0, SYN, RateOption::Unassigned));
    for t in 20..1_600 {
        here.run(t);
        here.offer(&packet(1, 1448, ACK, RateOption::Unassigned));
    }
    let adverts: Vec<Message> = here
        .actions
        .iter()
        .filter_map(|a| match a {
            Action::ToController(m @ Message::FlowAdvertisement { .. }) => Some(m.clone()),
            _ => None,
        })
        .collect();
    assert!(adverts.len() >= 4, "every T of 100 ms: {}", adverts.len());
    let Message::FlowAdvertisement { rate, valid_for, .. } = adverts[0] else { unreachable!() };
    assert_eq!((rate, valid_for), (mbit(98.0), Span::from_millis(300)));

    // The other switch needs another port id. A switch ignores advertisements with its own id.
    there.brf = Brf::new(Params::resolved(), 2, Bytes::new(MTU));
    there.brf.on_start(Time::ZERO, &there.port, &mut there.actions);
    let ack = packet(1, 0, ACK, RateOption::Unassigned);
    assert_eq!(there.reverse(&ack), None);
    there.brf.on_message(ms(0), &adverts[0], &there.port, &mut there.actions);
    assert_eq!(there.reverse(&ack), Some(mbit(98.0)));
    assert_eq!(there.reverse(&ack), None, "gated");
    let lower = packet(1, 0, ACK, RateOption::Assigned(mbit(1.0)));
    assert_eq!(there.reverse(&lower), None, "the smaller value stands");
    there.now = 301;
    assert_eq!(there.reverse(&ack), None, "expired");
}

#[test]
fn congestion_reduces_once_a_period_and_ends_with_the_queue() {
    let mut net = resolved();
    net.sender(1, 20, 0);
    net.sender(2, 20, 0);
    net.run(500);
    net.actions.clear();
    let before = net.allocated(1);
    let say = |net: &mut Net, kind| {
        let message = Message::Congestion { kind, port: 1 };
        net.brf.on_message(ms(net.now), &message, &net.port, &mut net.actions);
    };
    net.brf.on_message(ms(net.now), &Message::Poll, &net.port, &mut net.actions);
    assert!(matches!(net.actions.last(), Some(Action::ToController(Message::Report(r))) if r.port == 1));
    // BRF-80: the queue of 100 packets must drain within 2 T = 40 ms. The share of the rated class is 12.25 MB/s.
    net.port.queued[1] = Bytes::new(150_000);
    net.port.queued_packets[1] = 100;
    say(&mut net, Some(CongestionKind::Queue));
    let factor = (12.25 - 3.75) / 12.25;
    assert!(near(net.allocated(1), before.mul_f64(factor), 0.01), "{:?}", net.allocated(1));
    say(&mut net, Some(CongestionKind::Queue));
    assert!(near(net.allocated(1), before.mul_f64(factor), 0.01), "at most one reduction per period");
    net.run(net.now + 100);
    assert_eq!((net.logged("congestion-queue"), net.logged("congestion-end")), (1, 1));
    assert!(near(net.allocated(1), before, 0.01));
    // This message is for another port.
    net.brf.on_message(
        ms(net.now),
        &Message::Congestion { kind: Some(CongestionKind::Burst), port: 9 },
        &net.port,
        &mut net.actions,
    );
    assert!(near(net.allocated(1), before, 0.01));
}

#[test]
fn the_switch_runs_its_own_detector_only_without_a_controller() {
    for (polled, congested) in [(false, true), (true, false)] {
        let mut net = resolved();
        net.sender(1, 20, 0);
        for _ in 0..100 {
            net.run(net.now + 10);
            if polled {
                net.brf.on_message(ms(net.now), &Message::Poll, &net.port, &mut net.actions);
            }
            if net.now == 500 {
                net.port.queued[1] = Bytes::new(600_000);
            }
        }
        assert_eq!(net.logged("congestion-queue") > 0, congested, "polled: {polled}");
        assert_eq!(net.logged("congestion-end") > 0, congested);
        assert!(near(net.allocated(1), mbit(98.0), 0.01));
    }
}

#[test]
fn literal_alternates_in_its_corner_of_the_parameters() {
    for (b_head, flips) in [(1.05, true), (1.10, false)] {
        let mut net = Net::new(Params { b_head, ..Params::literal() }, LINK);
        // In windows of 200 ms, a difference of one packet does not change the class.
        net.sender(1, 200, 0).limit = mbit(10.0);
        net.run(3_000);
        let mut seen = Vec::new();
        for _ in 0..2_000 {
            net.run(net.now + 1);
            let now = net.allocated(1).as_bits_per_sec() / 1e6;
            if seen.last() != Some(&now) {
                seen.push(now);
            }
        }
        let (low, high) = seen.iter().fold((f64::MAX, 0.0f64), |(l, h), v| (l.min(*v), h.max(*v)));
        assert_eq!(high > 99.0, flips, "{b_head}: {seen:?}");
        assert!(low < 13.0);
    }
}

#[test]
fn an_unknown_capacity_is_found() {
    let mut net = resolved();
    net.port.capacity = None;
    net.brf = Brf::new(Params::resolved(), 1, Bytes::new(MTU));
    net.actions.clear();
    net.brf.on_start(Time::ZERO, &net.port, &mut net.actions);
    let rated = Action::SetClass { class: Class::Rated, rate: mbit(9.8), ceil: Rate::MAX };
    assert_eq!(net.actions[0], rated, "the port is not shaped to an estimate");
}

#[test]
fn tv_12_and_13_formulas() {
    // TV-12: a newcomer sends 50 Mbit/s for 40 ms before the other flows get lower rates.
    let queue = mbit(50.0).bytes_in(Span::from_millis(40));
    assert_eq!((queue, queue.get().div_ceil(MTU)), (Bytes::new(250_000), 167));
    // TV-13: Jain's index (sum x)^2 / (n sum x^2) of two flows.
    let (a, b) = (7.873, 1.0);
    let jain = (a + b) * (a + b) / (2.0 * (a * a + b * b));
    assert!((jain - 0.625f64).abs() < 1e-4 && (a / (a + b) - 0.887f64).abs() < 5e-4);
}

/// BRF-101: with a very low rate, a sender would still wait for its next departure after the outage. So the port writes
/// no rate.
#[test]
fn a_port_without_capacity_writes_no_rate() {
    let mut net = resolved();
    net.sender(1, 20, 0);
    net.run(500);
    let ack = packet(1, 0, ACK, RateOption::Unassigned);
    for (capacity, writes) in [(Rate::ZERO, false), (mbit(10.0), true)] {
        net.port.capacity = Some(capacity);
        net.now += 100;
        net.brf.on_timer(ms(net.now), &net.port, &mut net.actions);
        assert_eq!(net.reverse(&ack).is_some(), writes, "{capacity:?}");
        assert_eq!(net.brf.grant(None, 1).is_some(), writes, "{capacity:?}");
    }
}
