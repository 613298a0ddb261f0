use proptest::prelude::*;

use super::*;

const C: Rate = Rate::from_bytes_per_sec(12_500_000);
const MS: Span = Span::from_millis(1);

fn rate(bytes_per_sec: u64) -> Rate {
    Rate::from_bytes_per_sec(bytes_per_sec)
}

fn asking(own: Option<Rate>) -> Obp {
    Obp { own, available: Rate::MAX, capacity: Rate::MAX, rate: Rate::MAX }
}

/// Returns a port of this capacity that carried `carried` bytes in the last 10 ms.
fn port(capacity: Rate, carried: u64, queued: u64) -> Law {
    let mut law = Law::new(Params::default());
    let start = Time::from_nanos(1_700_000_000_000_000_000);
    law.on_interval(start, Bytes::new(7), Bytes::ZERO, capacity);
    law.on_interval(
        start + MS.scale(10, 1),
        Bytes::new(carried.saturating_add(7)),
        Bytes::new(queued),
        capacity,
    );
    law
}

fn answer(law: &Law, own: Option<Rate>) -> Rate {
    let mut header = asking(own);
    law.stamp(&mut header);
    header.rate
}

/// A link of 100 Mbit/s can send 125,000 bytes in 10 ms. This link has sent 100,000 bytes, so a fifth of its capacity
/// is left.
#[test]
fn obp_1_by_hand() {
    let law = port(C, 100_000, 0);
    assert_eq!(law.available(), rate(2_500_000));
    assert_eq!(answer(&law, None), rate(3_750_000), "AB + CB / 10");
    assert_eq!(answer(&law, Some(rate(1_500_000))), rate(3_600_000), "0.9 of 4,000,000");
    assert_eq!(answer(&law, Some(rate(0))), rate(2_250_000));
    // For an empty link, AB + CB / 10 is 1.1 times the capacity. So the rate is limited to the capacity.
    assert_eq!(answer(&port(C, 0, 0), None), C);
}

#[test]
fn the_queue_is_subtracted_from_the_bandwidth_left() {
    assert_eq!(port(C, 100_000, 15_000).available(), rate(1_000_000));
    assert_eq!(port(C, 124_000, 1_500).available(), Rate::ZERO);
    let full = port(C, 125_000, 500_000);
    assert_eq!(answer(&full, None), rate(1_250_000), "a newcomer still takes a tenth");
    assert_eq!(answer(&full, Some(rate(1_000_000))), rate(900_000));
}

/// The link with the least bandwidth left need not be the link with the lowest capacity.
#[test]
fn the_minimum_over_ports_counts_for_each_field() {
    let (wide, narrow) = (port(C, 120_000, 0), port(rate(5_000_000), 10_000, 0));
    assert_eq!((wide.available(), narrow.available()), (rate(500_000), rate(4_000_000)));
    for path in [[&wide, &narrow], [&narrow, &wide]] {
        let mut header = asking(None);
        path.iter().for_each(|law| law.stamp(&mut header));
        assert_eq!(header.rate, rate(1_000_000), "500,000 + 5,000,000 / 10");
        let mut header = asking(Some(rate(2_000_000)));
        path.iter().for_each(|law| law.stamp(&mut header));
        assert_eq!(header.rate, rate(2_250_000), "0.9 of 500,000 + 2,000,000");
    }
}

#[test]
fn a_change_of_capacity_counts_at_once_and_a_measurement_takes_its_time() {
    let mut law = port(C, 0, 0);
    let now = law.next();
    law.on_interval(now - MS, Bytes::MAX, Bytes::MAX, rate(1_000_000));
    assert_eq!(law.available(), rate(1_000_000), "a call without elapsed time measures nothing");
    assert_eq!(answer(&law, Some(C)), rate(1_000_000));
    law.on_interval(now - MS, Bytes::MAX, Bytes::ZERO, Rate::ZERO);
    assert_eq!((answer(&law, None), answer(&law, Some(C))), (Rate::ZERO, Rate::ZERO));
}

/// Generates plausible values, or arbitrary ones.
fn number(usual: u64) -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..usual, 1 => Just(0), 1 => Just(u64::MAX), 1 => any::<u64>()]
}

proptest! {
    /// The rate never exceeds any link's capacity or any port's grant. An additional router never raises the rate.
    #[test]
    fn the_rate_is_the_minimum_of_the_path(
        ports in proptest::collection::vec((number(1_000_000_000), number(10_000_000), number(1_000_000)), 1..6),
        own in proptest::option::of(number(1_000_000_000)),
    ) {
        let own = own.map(rate);
        let mut header = asking(own);
        for (capacity, carried, queued) in ports {
            let law = port(rate(capacity), carried, queued);
            prop_assert!(law.available() <= rate(capacity));
            let before = header.rate;
            law.stamp(&mut header);
            prop_assert!(header.rate <= before);
            prop_assert!(header.rate <= answer(&law, own));
            prop_assert!(header.rate <= rate(capacity));
        }
        let stamped = header;
        prop_assert!(stamped.rate <= stamped.capacity && stamped.available <= stamped.capacity);
    }

    #[test]
    fn the_bandwidth_left_is_within_the_capacity_for_any_input(
        steps in proptest::collection::vec(
            (number(50_000_000), number(10_000_000), number(10_000_000), number(1_000_000_000)), 1..100),
    ) {
        let (mut law, mut now) = (Law::new(Params::default()), Time::ZERO);
        for (after, departed, queued, capacity) in steps {
            now += Span::from_nanos(after);
            law.on_interval(now, Bytes::new(departed), Bytes::new(queued), rate(capacity));
            prop_assert!(law.available() <= rate(capacity));
            prop_assert!(law.next() > now || now == Time::NEVER, "the update is due again at once");
        }
    }
}
