use proptest::prelude::*;

use super::*;

const C: Rate = Rate::from_bytes_per_sec(12_500_000);

fn ms(millis: u64) -> Span {
    Span::from_millis(millis)
}

/// Returns a port, and the time at which its clock has started. The port has a rate of 1e6 bytes/s and d = 50 ms.
fn port(params: Params) -> (Law, Time) {
    let mut law = Law::new(Params { first_share: 0.08, rtt: ms(50), ..params }, C);
    let start = Time::from_nanos(1_700_000_000_000_000_000);
    law.on_interval(start, Bytes::ZERO, C);
    (law, start)
}

/// Returns the rate after one update.
fn updated(params: Params, elapsed: Span, arrived: u64, queued: u64) -> u64 {
    let (mut law, start) = port(params);
    assert_eq!(law.next(), start + elapsed);
    law.on_bytes(Bytes::new(arrived));
    law.on_interval(start + elapsed, Bytes::new(queued), C);
    law.rate().as_bytes_per_sec()
}

#[test]
fn tv_p5_rcp() {
    assert_eq!(updated(Params::default(), ms(10), 100_000, 0), 1_016_000);
    assert_eq!(updated(Params::default(), ms(10), 130_000, 62_500), 992_280);
    let once_per_rtt = Params { interval_max: ms(50), ..Params::published() };
    assert_eq!(updated(once_per_rtt, ms(50), 500_000, 0), 1_080_000);
}

#[test]
fn arrivals_before_the_clock_started_do_not_count() {
    let mut law = Law::new(Params::default(), C);
    assert_eq!((law.rate(), law.next()), (Rate::from_bytes_per_sec(625_000), Time::ZERO));
    law.on_bytes(Bytes::MAX);
    law.on_interval(Time::from_secs_f64(1e9), Bytes::ZERO, C);
    assert_eq!(law.rate(), Rate::from_bytes_per_sec(625_000));
    law.on_interval(Time::from_secs_f64(1e9) + ms(10), Bytes::ZERO, C);
    assert_eq!(
        law.rate(),
        Rate::from_bytes_per_sec(650_000),
        "a tenth of an RTT raises the rate by the share 0.1 * 0.4"
    );
}

#[test]
fn a_router_only_lowers_the_rate_field() {
    let (law, _) = port(Params::default());
    let rate = Rate::from_bytes_per_sec;
    assert_eq!(law.stamp(Rate::MAX), rate(1_000_000));
    assert_eq!(law.stamp(rate(1_000_001)), rate(1_000_000));
    assert_eq!(law.stamp(rate(999)), rate(999));
}

/// RCP-2: three packets of 1000, 1000 and 500 bytes report 60, 80 and 150 ms. The average weighted by bytes is 86 ms.
#[test]
fn a_longer_rtt_is_adopted_within_an_rtt_and_a_shorter_one_by_the_rate() {
    let (mut law, start) = port(Params::default());
    for (size, told) in [(1000, 60), (1000, 80), (500, 150), (1500, 0)] {
        law.on_packet(Bytes::new(size), Some(ms(told)));
    }
    law.on_packet(Bytes::new(1500), None);
    law.on_interval(start + ms(10), Bytes::ZERO, C);
    assert_eq!(law.rtt(), Span::from_micros(50_000 + 36_000 / 5));

    let (mut law, start) = port(Params::default());
    law.on_rtt(ms(25), Bytes::new(1500));
    law.on_interval(start + ms(10), Bytes::ZERO, C);
    // The gain is 0.08 (rate / capacity) * 0.5 (average / d) * 0.2 (elapsed / d) = 0.008, so d falls by 0.008 * 25 ms.
    assert_eq!(law.rtt(), Span::from_micros(49_800));
}

/// With RCP-2, d follows a shorter RTT only slowly. The flows have an RTT of 1 ms, and the port starts with d = 100 ms.
/// With 1000 flows, d is still above 90 ms after a minute. With one flow, d is below 2 ms after ten seconds.
#[test]
fn with_many_flows_a_too_long_first_rtt_persists() {
    let d_after = |seconds: u64, flows: f64| {
        let (mut law, mut now) = (Law::new(Params::default(), C), Time::ZERO);
        for _ in 0..seconds * 100 {
            law.on_interval(now, Bytes::ZERO, C);
            now += ms(10);
            law.rate = C.as_f64() / flows;
            law.on_bytes(C.bytes_in(ms(10)));
            law.on_rtt(ms(1), Bytes::new(1500));
        }
        law.rtt().as_secs_f64() * 1e3
    };
    assert!(d_after(60, 1000.0) > 90.0, "d = {:.1} ms", d_after(60, 1000.0));
    assert!(d_after(10, 1.0) < 2.0, "d = {:.1} ms", d_after(10, 1.0));
}

#[test]
fn a_call_without_elapsed_time_only_sets_the_capacity() {
    let (mut law, start) = port(Params::default());
    law.on_bytes(Bytes::new(130_000));
    law.on_interval(start, Bytes::MAX, Rate::from_bytes_per_sec(500_000));
    assert_eq!(law.rate(), Rate::from_bytes_per_sec(500_000));
    law.on_interval(start, Bytes::MAX, C);
    law.on_interval(start + ms(10), Bytes::new(62_500), C);
    assert_eq!(law.rate(), Rate::from_bytes_per_sec(496_140), "half of the result of TV-P5");
}

#[test]
fn a_port_that_had_no_capacity_restarts() {
    let (mut law, start) = port(Params::default());
    law.on_interval(start + ms(10), Bytes::new(1500), Rate::ZERO);
    assert_eq!(law.rate(), Rate::ZERO);
    law.on_interval(start + ms(20), Bytes::new(1500), Rate::ZERO);
    law.on_interval(start + ms(20), Bytes::ZERO, C);
    assert_eq!(law.rate(), Rate::from_bytes_per_sec(1_000_000));
}

#[test]
fn a_late_update_counts_for_one_rtt() {
    let (mut law, start) = port(Params::default());
    law.on_interval(start + Span::from_secs(3600), Bytes::ZERO, C);
    assert_eq!(law.rate(), Rate::from_bytes_per_sec(1_400_000));
}

#[derive(Clone, Debug)]
enum Step {
    Packet(u64, Option<u64>),
    Interval(u64, u64, u64),
}

/// Generates plausible values, or arbitrary ones.
fn number(usual: u64) -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..usual, 1 => Just(0), 1 => Just(u64::MAX), 1 => any::<u64>()]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (number(3000), proptest::option::of(number(1_000_000_000)))
            .prop_map(|(size, rtt)| Step::Packet(size, rtt)),
        2 => (number(50_000_000), number(10_000_000), number(1_000_000_000))
            .prop_map(|(after, queued, capacity)| Step::Interval(after, queued, capacity)),
    ]
}

proptest! {
    #[test]
    fn the_rate_stays_within_its_bounds_for_any_input(
        first in number(1_000_000_000),
        steps in proptest::collection::vec(step(), 1..200),
    ) {
        let mut law = Law::new(Params::default(), Rate::from_bytes_per_sec(first));
        let mut now = Time::ZERO;
        for step in steps {
            match step {
                Step::Packet(size, rtt) => law.on_packet(Bytes::new(size), rtt.map(Span::from_nanos)),
                Step::Interval(after, queued, capacity) => {
                    now += Span::from_nanos(after);
                    law.on_interval(now, Bytes::new(queued), Rate::from_bytes_per_sec(capacity));
                    prop_assert!(law.next() > now || now == Time::NEVER, "the update is due again at once");
                    // The comparison allows for a rounding error, because above 2^52 the float R + 0.5 is rounded.
                    let most = Rate::from_bytes_per_sec(capacity).as_f64() * (1.0 + f64::EPSILON);
                    prop_assert!(law.rate().as_f64() <= most);
                }
            }
            let (least, most) = law.bounds();
            prop_assert!((least..=most).contains(&law.rate), "{} not from {least} to {most}", law.rate);
            prop_assert!(most < 1.0 || least > 0.0, "a port with capacity has a minimum rate above zero");
            prop_assert!((RTT_MIN..=RTT_MAX).contains(&law.rtt()));
            law.trace(&mut |name, value| assert!(value.is_finite() && value >= 0.0, "{name} is {value}"));
        }
    }
}
