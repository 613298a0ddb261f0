use proptest::prelude::*;

use super::*;

const C: Rate = Rate::from_bytes_per_sec(12_500_000);
const START: Time = Time::from_nanos(1_700_000_000_000_000_000);

fn ms(millis: u64) -> Span {
    Span::from_millis(millis)
}

fn figure(law: &Law, name: &str) -> f64 {
    let mut found = f64::NAN;
    law.trace(&mut |n, value| {
        if n == name {
            found = value;
        }
    });
    found
}

/// Returns a port after 50 ms of traffic: 500 packets of `size` bytes from two flows with an RTT of 50 ms, and a
/// queue of at least 30,000 bytes.
fn port(size: u64) -> Law {
    let mut law = Law::new(Params::default(), C, START);
    for n in 0..500 {
        let now = START + Span::from_micros(100 * n);
        let mut header = Header { rtt: 50_000, x: 200_000, delta: 1_000_000 };
        law.on_arrival(Bytes::new(size), &header);
        law.on_departure(&mut header, Bytes::new(size), Bytes::new(30_000 + n % 10 * 1500), now);
        assert_eq!(header.delta, 0, "nothing is granted before the first interval is over");
    }
    assert!(law.next() <= START + ms(50));
    law.on_interval(START + ms(50), C);
    law
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs(), "{found}, not {expected}");
}

#[test]
fn tv_p6_xcp() {
    for (size, input, figures) in [
        (1000, 10e6, [864_400.0, 135_600.0, 1_000_000.0, 135_600.0]),
        (1240, 12.4e6, [-95_600.0, 1_144_400.0, 1_144_400.0, 1_240_000.0]),
    ] {
        let law = port(size);
        close(figure(&law, "input"), input);
        close(figure(&law, "rtt"), 0.05);
        close(figure(&law, "queue_min"), 30_000.0);
        for (name, expected) in ["feedback", "shuffle", "res_pos", "res_neg"].iter().zip(figures) {
            close(figure(&law, name), expected);
        }
    }
    let law = port(1240);
    close(figure(&law, "c_pos"), 11_444_000.0);
    close(figure(&law, "c_neg"), 2.0);
}

/// XCP-4 computed by hand for the port of TV-P6: a packet gains 2288.8 bytes/s for its X of 200 us, and loses
/// 2480 bytes/s for its 1240 bytes.
#[test]
fn a_packet_gets_its_share_and_at_most_another_routers_grant() {
    let after = |delta| {
        let mut law = port(1240);
        let mut header = Header { rtt: 50_000, x: 200_000, delta };
        law.on_departure(&mut header, Bytes::new(1240), Bytes::ZERO, START + ms(51));
        let (positive, negative) = law.residues();
        (header.delta, 1_144_400.0 - positive, 1_240_000.0 - negative)
    };
    let (granted, positive, negative) = after(i64::MAX);
    assert_eq!(granted, -191);
    assert!((positive - 2288.8).abs() < 1e-6 && (negative - 2480.0).abs() < 1e-6, "{positive} {negative}");
    // Another router lowered the packet's rate by 1000 bytes/s. This router would lower it by 191.2. So res_neg shrinks
    // by 808.8 more than without the other router.
    let (granted, positive, negative) = after(-1000);
    assert_eq!(granted, -1000);
    assert!((positive - 2288.8).abs() < 1e-6 && (negative - 3288.8).abs() < 1e-6, "{positive} {negative}");
    // Another router lowered the rate by more than res_neg of this router, so res_neg becomes zero.
    let (granted, positive, negative) = after(i64::MIN);
    assert_eq!((granted, negative), (i64::MIN, 1_240_000.0));
    assert!(positive.abs() < 1e-6, "{positive}");
}

#[test]
fn a_sender_without_an_rtt_is_granted_nothing_and_counts_as_traffic_only() {
    let mut law = port(1000);
    let before = law.residues();
    let mut header = Header { rtt: 0, x: u32::MAX, delta: 77 };
    law.on_arrival(Bytes::new(5000), &header);
    law.on_departure(&mut header, Bytes::new(5000), Bytes::ZERO, START + ms(51));
    assert_eq!((header.delta, law.residues()), (0, before));
    law.on_interval(START + ms(100), C);
    close(figure(&law, "input"), 100_000.0);
    close(figure(&law, "rtt"), 0.05);
    assert_eq!(figure(&law, "c_pos"), 0.0, "without packets there is no share");
}

#[test]
fn the_control_interval_is_the_average_rtt_within_its_bounds() {
    for (rtt, expected) in [(1, ms(1)), (700, ms(1)), (20_000, ms(20)), (u32::MAX, ms(1000))] {
        let mut law = Law::new(Params::default(), C, START);
        law.on_arrival(Bytes::new(1500), &Header { rtt, x: 120_000, delta: 0 });
        law.on_interval(START + ms(50), C);
        assert_eq!(law.interval, expected);
    }
    // XCP-1 weights each RTT by X, so that flows count equally. Here one flow has an RTT of 10 ms and sends a packet
    // every 1 ms. The other flow has an RTT of 30 ms and sends a packet every 0.1 ms.
    let mut law = Law::new(Params::default(), C, START);
    for n in 0..110 {
        let header = if n % 11 == 0 { (10_000, 1_000_000) } else { (30_000, 100_000) };
        law.on_arrival(Bytes::new(1500), &Header { rtt: header.0, x: header.1, delta: 0 });
    }
    law.on_interval(START + ms(50), C);
    assert_eq!(law.rtt(), ms(20));
}

#[test]
fn an_early_call_only_sets_the_capacity() {
    let mut law = port(1240);
    let before = law.residues();
    law.on_interval(START + ms(51), Rate::ZERO);
    assert_eq!(law.residues(), before);
    law.on_interval(START + ms(100), Rate::ZERO);
    assert_eq!(law.residues().0, 0.0);
    close(law.residues().1, 135_600.0);
}

#[derive(Clone, Debug)]
enum Step {
    Arrival(u64, Header),
    Departure(u64, Header, u64),
    Wait(u64),
    Interval(u64),
}

/// Generates plausible values, or arbitrary ones.
fn number(usual: u64) -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..usual, 1 => Just(0), 1 => Just(u64::MAX), 1 => any::<u64>()]
}

fn header() -> impl Strategy<Value = Header> {
    let delta =
        prop_oneof![2 => Just(i64::MAX), 2 => -20_000i64..20_000, 1 => any::<i64>(), 1 => Just(i64::MIN)];
    let rtt = prop_oneof![4 => 1_000u32..200_000, 1 => any::<u32>(), 1 => Just(0)];
    let x = prop_oneof![4 => 10_000u32..10_000_000, 1 => any::<u32>(), 1 => Just(0)];
    (rtt, x, delta).prop_map(|(rtt, x, delta)| Header { rtt, x, delta })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (number(3000), header()).prop_map(|(size, header)| Step::Arrival(size, header)),
        8 => (number(3000), header(), number(200_000))
            .prop_map(|(size, header, queued)| Step::Departure(size, header, queued)),
        2 => number(5_000_000).prop_map(|n| Step::Wait(n >> 8)),
        2 => Just(Step::Wait(50_000_000)),
        3 => number(1_000_000_000).prop_map(Step::Interval),
    ]
}

proptest! {
    /// Within an interval, the packets' total increase is at most the initial res_pos. Their total decrease is at most
    /// the initial res_neg. Packets with a negative Delta are not counted, because another router wrote that Delta.
    #[test]
    fn at_most_the_computed_change_is_distributed(steps in proptest::collection::vec(step(), 1..200)) {
        let mut law = Law::new(Params::default(), C, Time::ZERO);
        let (mut now, mut most, mut given, mut taken) = (Time::ZERO, law.residues(), 0.0, 0.0);
        for step in steps {
            match step {
                Step::Arrival(size, header) => law.on_arrival(Bytes::new(size), &header),
                Step::Departure(size, mut header, queued) => {
                    let asked = header.delta;
                    law.on_departure(&mut header, Bytes::new(size), Bytes::new(queued), now);
                    prop_assert!(header.delta <= asked.max(0), "raised what another router granted");
                    given += header.delta.max(0) as f64;
                    if asked >= 0 {
                        taken -= header.delta.min(0) as f64;
                    }
                }
                Step::Wait(nanos) => now += Span::from_nanos(nanos),
                Step::Interval(capacity) => {
                    let started = law.started;
                    law.on_interval(now, Rate::from_bytes_per_sec(capacity));
                    prop_assert!(law.next() > now || now == Time::NEVER, "the interval is due again at once");
                    if law.started != started {
                        (most, given, taken) = (law.residues(), 0.0, 0.0);
                    }
                }
            }
            // Floats have an error of one part in 10^9 for sums of up to 10^19.
            prop_assert!(given <= most.0 * (1.0 + 1e-9), "gave {given} of {}", most.0);
            prop_assert!(taken <= most.1 * (1.0 + 1e-9), "took {taken} of {}", most.1);
            let (positive, negative) = law.residues();
            prop_assert!(positive >= 0.0 && positive <= most.0 && negative >= 0.0 && negative <= most.1);
            prop_assert!(law.rtt() <= ms(1000) && law.interval >= ms(1) && law.interval <= ms(1000));
            law.trace(&mut |name, value| assert!(value.is_finite(), "{name} is {value}"));
        }
    }
}
