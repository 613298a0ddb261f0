//! Determines how an application that always has data passes its data to the kernel. The emulator chooses two values:
//! the amount of data that is kept unsent in the socket (TCP_NOTSENT_LOWAT), and the speed of writing.
//!
//! Too little unsent data is harmful. A socket without unsent data counts as application-limited
//! (tcp_rate_check_app_limited, net/ipv4/tcp_rate.c). BBR ignores samples of such a socket, and may then stay in
//! Startup for seconds. When a loss recovery ends, a whole window may become free at once. The kernel then sends all
//! unsent data before it wakes the application, which writes more. Therefore, the flows of a host together keep as much
//! data unsent as the bottleneck transmits in an RTT.
//!
//! Too much unsent data is also harmful. Data that is unsent when the application stops is still sent later. On a slow
//! processor, large writes delay the forwarding of packets.

use narrows_control::units::{Bytes, Rate, Span, Time};
use narrows_sim::model::EmptyPath;

/// Minimum amount of unsent data, given as the time that the bottleneck needs to transmit it. With less data, the
/// sender would be woken for every packet.
const LEAST: Span = Span::from_millis(10);
/// Maximum amount of unsent data. This is the size to which Linux grows a send buffer (the default of tcp_wmem).
const MOST_BYTES: u64 = 4 << 20;

/// Speed of writing as a multiple of the bottleneck's rate. Slow start and BBR's Startup need less than this
/// speed.
const WRITE_SPEEDUP: u64 = 4;
/// The amount that is written without a pause is [`WRITE_SPEEDUP`] times the data that the bottleneck
/// transmits in this time.
const TURN: Span = Span::from_millis(1);

/// Assumed number of flows that share the bottleneck. Shortly before its application stops, a flow keeps little data
/// unsent: about as much as an equal share of the bottleneck's rate transmits until the stop.
const SHARERS: u64 = 8;

/// The amount of unsent data and the speed of writing, for one connection.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Unsent {
    bottleneck: Rate,
    /// Target amount of unsent data, given as the time that the bottleneck needs to transmit it.
    worth: Span,
    /// Time at which the application stops; [`Time::NEVER`] if it sends until the end of the run.
    stop: Time,
}

impl Unsent {
    /// Returns the values for one of `flows` connections that share this path.
    pub(crate) fn new(path: &EmptyPath, flows: usize, stop: Time) -> Self {
        let bottleneck = path.bottleneck.min(Rate::from_bytes_per_sec(1 << 40));
        Unsent { bottleneck, worth: path.rtt.scale(1, flows.max(1) as u64).max(LEAST), stop }
    }

    /// Returns the limit of unsent data. The limit decreases as the time at which the application stops comes closer.
    pub(crate) fn limit(&self, now: Time) -> u32 {
        let until_stop = self.stop.since(now).scale(1, SHARERS);
        let least = self.bottleneck.bytes_in(LEAST).get().clamp(16 << 10, 1 << 20);
        self.bottleneck.bytes_in(self.worth.min(until_stop)).get().clamp(least, MOST_BYTES) as u32
    }

    /// Returns the maximum number of bytes that are written without a pause.
    pub(crate) fn turn(&self) -> u64 {
        self.bottleneck.bytes_in(TURN).get().saturating_mul(WRITE_SPEEDUP).clamp(64 << 10, MOST_BYTES)
    }

    /// Returns the length of the pause after `written` bytes have been written.
    pub(crate) fn pause(&self, written: u64) -> Span {
        self.bottleneck.time_for(Bytes::new(written / WRITE_SPEEDUP))
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
    fn the_data_of_an_rtt_is_kept_unsent() {
        let [near, far, fast, tiny] = [(100, 1), (100, 100), (10_000, 100), (1, 1)]
            .map(|(mbit, rtt)| of(mbit, rtt, Time::NEVER).limit(seconds(1)));
        assert_eq!([near, far, fast, tiny], [125_000, 1_250_000, 4 << 20, 16 << 10]);
        let shared = [2, 5, 1000].map(|flows| one_of(flows, 100, 100, Time::NEVER).limit(seconds(1)));
        assert_eq!(shared, [625_000, 250_000, 125_000]);
    }

    #[test]
    fn little_data_is_unsent_at_the_stop() {
        let unsent = of(20, 500, seconds(10));
        let at = [1, 6, 8, 10, 11].map(|second| unsent.limit(seconds(second)));
        assert_eq!(at, [1_250_000, 1_250_000, 625_000, 25_000, 25_000]);
    }

    #[test]
    fn data_is_written_in_turns_with_pauses() {
        let turns = [20, 100, 1000, 1_000_000].map(|mbit| {
            let unsent = of(mbit, 20, Time::NEVER);
            (unsent.turn(), unsent.pause(unsent.turn()).as_micros())
        });
        assert_eq!(turns, [(65_536, 6553), (65_536, 1310), (500_000, 1000), (4 << 20, 8)]);
    }

    proptest! {
        #[test]
        fn one_of_eight_flows_can_send_its_data_before_the_stop(mbit in 1u64..10_000, rtt in 0u64..2000, left in 0u64..100) {
            let limit = u64::from(of(mbit, rtt, seconds(left)).limit(Time::ZERO));
            prop_assert!(limit <= (mbit * MB / 8 / SHARERS * left).max(1 << 20));
        }
    }
}
