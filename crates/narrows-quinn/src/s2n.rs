//! Adapts congestion controllers of Narrows to the corresponding interface of s2n-quic. This interface is unstable. The
//! feature `unstable-congestion-controller` of s2n-quic makes it public.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use narrows_control::congestion::{Controller, State};
use narrows_control::units::{Bytes, Rate, Span, Time};
use s2n_quic::provider::congestion_controller::{
    CongestionController, Endpoint, PathInfo, Publisher, RandomGenerator, RttEstimator, Timestamp,
};

use crate::core::{Core, INITIAL_SEGMENTS, UDP_HEADER_BYTES, locked};
use crate::factory::Factory;

/// Largest burst of the pacer. RFC 9002, section 7.7, limits bursts to the initial window.
const BURST_DATAGRAMS: u64 = INITIAL_SEGMENTS as u64;

impl Endpoint for Factory {
    type CongestionController = S2nAdapter;

    fn new_congestion_controller(&mut self, path: PathInfo<'_>) -> S2nAdapter {
        let (cc, seed) = self.next();
        S2nAdapter::new(cc, path.max_datagram_size, seed)
    }
}

/// A congestion controller of Narrows that implements s2n-quic's interface. Clones share the controller.
#[derive(Clone)]
pub struct S2nAdapter {
    connection: Arc<Mutex<Connection>>,
}

impl fmt::Debug for S2nAdapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let connection = locked(&self.connection);
        f.debug_struct("S2nAdapter")
            .field("controller", &connection.core.cc.name())
            .field("window_bytes", &connection.core.window_bytes())
            .field("in_flight_bytes", &connection.core.in_flight)
            .finish()
    }
}

impl S2nAdapter {
    fn new(cc: Box<dyn Controller>, datagram_bytes: u16, seed: u64) -> Self {
        let core = Core::new(cc, datagram_bytes.into(), seed);
        let connection =
            Connection { core, base: None, departure: Time::ZERO, app_limited: false, may_exceed: false };
        S2nAdapter { connection: Arc::new(Mutex::new(connection)) }
    }
}

/// The information that s2n-quic stores for each packet.
#[derive(Copy, Clone, Debug)]
pub struct PacketInfo {
    sent_at: Time,
}

struct Connection {
    core: Core,
    /// The time at which the controller's clock is zero. This is the time of the first packet.
    base: Option<Timestamp>,
    /// The time at which the next packet may leave.
    departure: Time,
    /// Whether the application limited the sender at the last packet.
    app_limited: bool,
    /// Whether a single packet may exceed the window. This is the case when a recovery begins (RFC 9002, section 7.3.2).
    may_exceed: bool,
}

impl Connection {
    fn time(&mut self, at: Timestamp) -> Time {
        let base = *self.base.get_or_insert(at);
        Time::from_nanos(at.saturating_duration_since(base).as_nanos() as u64)
    }

    /// Returns the L3 bytes of data in full datagrams.
    fn l3_bytes(&self, bytes: u64) -> Bytes {
        let headers = bytes.div_ceil(self.core.datagram_bytes) * u64::from(UDP_HEADER_BYTES);
        Bytes::new(bytes + headers)
    }

    /// Returns the rate at which packets are sent, L3 bytes/s. `None`: packets are not paced, because no RTT is known.
    ///
    /// The rate is at least a datagram per second. The time of the next departure is computed when a packet is sent. At
    /// rate zero, no further packet could leave, and no ACK could raise the rate.
    fn pacing_rate(&self) -> Option<Rate> {
        let Core { window, srtt, .. } = &self.core;
        let rate = match window.pacing_rate {
            Some(rate) => rate,
            None if *srtt == Span::ZERO => return None,
            None => {
                // RFC 9002, section 7.7, recommends 1.25 windows per smoothed RTT. In slow start, the factor is 2, as
                // in Linux. But Linux changes to its smaller factor as soon as the window reaches half of ssthresh.
                let percent = if window.cwnd < window.ssthresh { 200 } else { 125 };
                let bytes = self.l3_bytes(self.core.window_bytes()).get() * percent / 100;
                Rate::of(Bytes::new(bytes), *srtt)
            }
        };
        Some(rate.max(Rate::of(self.l3_bytes(self.core.datagram_bytes), Span::from_secs(1))))
    }

    fn on_sent(&mut self, now: Time, bytes: u64, app_limited: Option<bool>) {
        self.core.on_sent(now, bytes);
        if let Some(app_limited) = app_limited {
            self.app_limited = app_limited;
        }
        if self.app_limited {
            self.core.sampler.mark_app_limited(self.core.in_flight);
        }
        self.may_exceed = false;
        if let Some(rate) = self.pacing_rate() {
            // A sender that is late, e.g. because a timer is coarse, may catch up by a burst of limited size.
            let burst = rate.time_for(self.l3_bytes(BURST_DATAGRAMS * self.core.datagram_bytes));
            let earliest = Time::from_nanos(now.as_nanos().saturating_sub(burst.as_nanos()));
            self.departure = self.departure.max(earliest) + rate.time_for(self.l3_bytes(bytes));
        }
    }

    fn on_ack(&mut self, now: Time, sent_at: Time, bytes: u64) {
        self.core.sampler.deliver(sent_at, bytes);
        self.core.acked += bytes;
        let in_flight = self.core.in_flight.saturating_sub(bytes);
        self.core.on_end_acks(now, in_flight, self.app_limited);
        self.core.run_timer(now);
    }

    fn on_lost(&mut self, now: Time, sent_at: Time, bytes: u64, is_persistent: bool) {
        let before = self.core.state;
        self.core.on_congestion(now, sent_at, is_persistent, bytes);
        self.may_exceed |= before == State::Open && self.core.state != State::Open;
    }
}

impl CongestionController for S2nAdapter {
    type PacketInfo = PacketInfo;

    fn congestion_window(&self) -> u32 {
        u32::try_from(locked(&self.connection).core.window_bytes()).unwrap_or(u32::MAX)
    }

    fn bytes_in_flight(&self) -> u32 {
        u32::try_from(locked(&self.connection).core.in_flight).unwrap_or(u32::MAX)
    }

    fn is_congestion_limited(&self) -> bool {
        let core = &locked(&self.connection).core;
        core.in_flight + core.datagram_bytes > core.window_bytes()
    }

    fn requires_fast_retransmission(&self) -> bool {
        locked(&self.connection).may_exceed
    }

    fn on_packet_sent<P: Publisher>(
        &mut self,
        time_sent: Timestamp,
        sent_bytes: usize,
        app_limited: Option<bool>,
        _rtt: &RttEstimator,
        _publisher: &mut P,
    ) -> PacketInfo {
        let mut connection = locked(&self.connection);
        let now = connection.time(time_sent);
        // A packet that contains only ACKs has no bytes here, and is not congestion controlled.
        if sent_bytes > 0 {
            connection.on_sent(now, sent_bytes as u64, app_limited);
        }
        PacketInfo { sent_at: now }
    }

    /// Does nothing, because the adapter computes the RTT in `on_ack`.
    fn on_rtt_update<P: Publisher>(
        &mut self,
        _time_sent: Timestamp,
        _now: Timestamp,
        _rtt: &RttEstimator,
        _publisher: &mut P,
    ) {
    }

    fn on_ack<P: Publisher>(
        &mut self,
        _newest_time_sent: Timestamp,
        bytes: usize,
        newest: PacketInfo,
        _rtt: &RttEstimator,
        _random: &mut dyn RandomGenerator,
        received: Timestamp,
        _publisher: &mut P,
    ) {
        let mut connection = locked(&self.connection);
        let now = connection.time(received);
        if bytes > 0 {
            connection.on_ack(now, newest.sent_at, bytes as u64);
        }
    }

    fn on_packet_lost<P: Publisher>(
        &mut self,
        bytes: u32,
        packet: PacketInfo,
        is_persistent: bool,
        _new_loss_burst: bool,
        _random: &mut dyn RandomGenerator,
        timestamp: Timestamp,
        _publisher: &mut P,
    ) {
        let mut connection = locked(&self.connection);
        let now = connection.time(timestamp);
        if bytes > 0 {
            connection.on_lost(now, packet.sent_at, bytes.into(), is_persistent);
        }
    }

    /// s2n-quic does not say which packets were marked. An ECN mark that is reported during a recovery is therefore
    /// counted as part of this recovery.
    fn on_explicit_congestion<P: Publisher>(
        &mut self,
        _ce_count: u64,
        event_time: Timestamp,
        _publisher: &mut P,
    ) {
        let mut connection = locked(&self.connection);
        let now = connection.time(event_time);
        if connection.core.state == State::Open {
            connection.core.on_congestion(now, now, false, 0);
        }
    }

    /// Changes the size of a datagram. A segment keeps its size during a connection.
    fn on_mtu_update<P: Publisher>(&mut self, max_data_size: u16, _publisher: &mut P) {
        locked(&self.connection).core.datagram_bytes = max_data_size.into();
    }

    fn on_packet_discarded<P: Publisher>(&mut self, bytes_sent: usize, _publisher: &mut P) {
        let core = &mut locked(&self.connection).core;
        core.in_flight = core.in_flight.saturating_sub(bytes_sent as u64);
    }

    fn earliest_departure_time(&self) -> Option<Timestamp> {
        let connection = locked(&self.connection);
        let since = Duration::from_nanos(connection.departure.as_nanos());
        connection.base.and_then(|base| base.checked_add(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT_BYTES: u64 = 1200;
    const RTT: Span = Span::from_millis(40);

    /// Returns a connection with this controller. The first datagram of the connection was acknowledged after `RTT`.
    fn connection(name: &str) -> Connection {
        let (cc, seed) = Factory::named(name).expect("a controller").next();
        let adapter = S2nAdapter::new(cc, SEGMENT_BYTES as u16, seed);
        let mut connection =
            Arc::into_inner(adapter.connection).expect("one owner").into_inner().expect("no panic");
        connection.on_sent(Time::ZERO, SEGMENT_BYTES, Some(false));
        connection.on_ack(Time::ZERO + RTT, Time::ZERO, SEGMENT_BYTES);
        connection
    }

    /// Sends datagrams at `now`, and returns the time from the first departure to the last.
    fn spread(connection: &mut Connection, now: Time, datagrams: u64) -> Span {
        connection.on_sent(now, SEGMENT_BYTES, Some(false));
        let first = connection.departure;
        for _ in 0..datagrams {
            connection.on_sent(now, SEGMENT_BYTES, Some(false));
        }
        connection.departure.since(first)
    }

    #[test]
    fn packets_with_their_headers_leave_at_the_pacing_rate() {
        let mut connection = connection("bbr");
        let rate = Rate::from_bits_per_sec(20_000_000);
        connection.core.window.pacing_rate = Some(rate);
        let took = spread(&mut connection, Time::ZERO + RTT, 100);
        assert_eq!(took, rate.time_for(Bytes::new(1228)).scale(100, 1));
    }

    #[test]
    fn a_controller_without_a_rate_paces_by_its_window() {
        for (ssthresh, windows_per_rtt) in [(u32::MAX, 2.0), (100, 1.25)] {
            let mut connection = connection("reno");
            connection.core.window.cwnd = 100;
            connection.core.window.ssthresh = ssthresh;
            let took = spread(&mut connection, Time::ZERO + RTT, 100).as_secs_f64();
            let expected = RTT.as_secs_f64() / windows_per_rtt;
            assert!((took / expected - 1.0).abs() < 1e-3, "found {took} s, expected {expected} s");
        }
    }

    #[test]
    fn a_rate_of_zero_does_not_stop_the_connection() {
        let mut connection = connection("bbr");
        connection.core.window.pacing_rate = Some(Rate::ZERO);
        let took = spread(&mut connection, Time::ZERO + RTT, 2).as_secs_f64();
        assert!((took - 2.0).abs() < 1e-3, "found {took} s, expected 2 s");
    }

    #[test]
    fn a_late_sender_catches_up_by_one_burst() {
        let mut connection = connection("bbr");
        let rate = Rate::from_bits_per_sec(20_000_000);
        connection.core.window.pacing_rate = Some(rate);
        let late = Time::ZERO + Span::from_secs(1);
        let burst = BURST_DATAGRAMS - 1;
        spread(&mut connection, late, burst);
        assert!(connection.departure <= late, "{:?}", connection.departure);
        connection.on_sent(late, SEGMENT_BYTES, Some(false));
        assert!(connection.departure > late, "{:?}", connection.departure);
    }
}
