//! How an application that always has data keeps the kernel supplied: how much is unsent (TCP_NOTSENT_LOWAT), and how fast it is written.
//!
//! A socket that runs dry for a moment is taken for limited by its application (tcp_rate_check_app_limited, net/ipv4/tcp_rate.c),
//! and BBR, which does not count what such a moment shows, then stays in Startup for seconds: recovery may open a whole window at
//! once, sooner than the sender is woken. So an RTT's worth is kept, by all flows of a host together. But what is left when the application stops is sent all the
//! same, and who writes much at a time keeps a slow processor from forwarding.

use narrows_control::units::{Bytes, Rate, Span, Time};
use narrows_sim::model::EmptyPath;

/// Least, of the bottleneck's rate: the sender need not be woken for every packet.
const LEAST: Span = Span::from_millis(10);
/// Most bytes: what Linux lets a send buffer grow to by itself (tcp_wmem's default).
const MOST: u64 = 4 << 20;

/// Writing is so many times as fast as the bottleneck, more than slow start and BBR's Startup ask for.
const HASTE: u64 = 4;
/// It stops so often for others.
const TURN: Span = Span::from_millis(1);

/// Flows that can share the bottleneck without one that has much left when it stops.
const SHARERS: u64 = 8;

/// Of one connection.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Unsent {
    bottleneck: Rate,
    /// How long the bottleneck would take for what is unsent.
    worth: Span,
    /// Of the application; never, if it outlives the run.
    stop: Time,
}

impl Unsent {
    /// Of one of `flows` connections over a path that is empty so far.
    pub(crate) fn new(path: &EmptyPath, flows: usize, stop: Time) -> Self {
        let bottleneck = path.bottleneck.min(Rate::from_bytes_per_sec(1 << 40));
        Unsent { bottleneck, worth: path.rtt.scale(1, flows.max(1) as u64).max(LEAST), stop }
    }

    /// The most that may be unsent: less and less before the end.
    pub(crate) fn limit(&self, now: Time) -> u32 {
        let until_stop = self.stop.since(now).scale(1, SHARERS);
        let least = self.bottleneck.bytes_in(LEAST).get().clamp(16 << 10, 1 << 20);
        self.bottleneck.bytes_in(self.worth.min(until_stop)).get().clamp(least, MOST) as u32
    }

    /// The most that is written without a pause.
    pub(crate) fn turn(&self) -> u64 {
        self.bottleneck.bytes_in(TURN).get().saturating_mul(HASTE).clamp(64 << 10, MOST)
    }

    /// The pause after so many bytes.
    pub(crate) fn pause(&self, written: u64) -> Span {
        self.bottleneck.time_for(Bytes::new(written / HASTE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MB: u64 = 1_000_000;

    fn seconds(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }

    fn one_of(flows: usize, mbit: u64, rtt_ms: u64, stop: Time) -> Unsent {
        let (bottleneck, rtt) = (Rate::from_bytes_per_sec(mbit * MB / 8), Span::from_millis(rtt_ms));
        Unsent::new(&EmptyPath { rtt, propagation: rtt, bottleneck }, flows, stop)
    }

    fn of(mbit: u64, rtt_ms: u64, stop: Time) -> Unsent {
        one_of(1, mbit, rtt_ms, stop)
    }

    #[test]
    fn an_rtt_is_kept() {
        let [near, far, fast, tiny] = [(100, 1), (100, 100), (10_000, 100), (1, 1)]
            .map(|(mbit, rtt)| of(mbit, rtt, Time::NEVER).limit(seconds(1)));
        assert_eq!([near, far, fast, tiny], [125_000, 1_250_000, 4 << 20, 16 << 10]);
        let shared = [2, 5, 1000].map(|flows| one_of(flows, 100, 100, Time::NEVER).limit(seconds(1)));
        assert_eq!(shared, [625_000, 250_000, 125_000]);
    }

    #[test]
    fn little_is_left_at_the_stop() {
        let unsent = of(20, 500, seconds(10));
        let at = [1, 6, 8, 10, 11].map(|second| unsent.limit(seconds(second)));
        assert_eq!(at, [1_250_000, 1_250_000, 625_000, 25_000, 25_000]);
    }

    #[test]
    fn written_in_turns() {
        let turns = [20, 100, 1000, 1_000_000].map(|mbit| {
            let unsent = of(mbit, 20, Time::NEVER);
            (unsent.turn(), unsent.pause(unsent.turn()).as_micros())
        });
        assert_eq!(turns, [(65_536, 6553), (65_536, 1310), (500_000, 1000), (4 << 20, 8)]);
    }

    proptest! {
        #[test]
        fn one_of_eight_sends_it_before_the_stop(mbit in 1u64..10_000, rtt in 0u64..2000, left in 0u64..100) {
            let limit = u64::from(of(mbit, rtt, seconds(left)).limit(Time::ZERO));
            prop_assert!(limit <= (mbit * MB / 8 / SHARERS * left).max(1 << 20));
        }
    }
}
