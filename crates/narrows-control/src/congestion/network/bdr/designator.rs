//! The decisions of a BDR sender: it designates packets, computes their reports, and sets the window from the
//! answer.
//!
//! Source: Loureiro, Mascolo and Monteiro (BDR); BDR-1, BDR-25 to BDR-28 and BDR-30 to BDR-36. The
//! router's part is [`rate::bdr`](crate::rate::bdr).

use crate::rate::bdr::Report;
use crate::units::{Bytes, Rate, Span, Time};

/// Between idle time and the next echo, the window is at most this number of segments (BDR-28).
pub const RESTART_WINDOW: u32 = 10;

/// Minimum retransmission timeout, so that a packet is not declared lost before it can arrive.
const RTO_MIN: Span = Span::from_millis(1);

/// Returns the window, in segments, for the rate `recommended` on a path with this minimum RTT (BDR-25). The window is
/// at least 1. It is 1 if the RTT ([`Span::ZERO`] or [`Span::MAX`]) or the packet size is unknown.
pub fn window(recommended: Rate, srtt_min: Span, packet: Bytes) -> u32 {
    if srtt_min == Span::MAX || packet == Bytes::ZERO {
        return 1;
    }
    let segments = recommended.bytes_in(srtt_min).get() / packet.get();
    u32::try_from(segments).unwrap_or(u32::MAX).max(1)
}

/// Returns the sum of the window and a gain of the literal mode, in segments (BDR-26). The result is at least 1.
pub fn apply_gain(cwnd: u32, gain: i32) -> u32 {
    cwnd.saturating_add_signed(gain).max(1)
}

/// Returns the window between idle time and the next echo, in segments (BDR-28).
pub fn after_idle(cwnd: u32) -> u32 {
    cwnd.min(RESTART_WINDOW)
}

/// The response to loss (BDR-5, BDR-35). Until the next echo, losses halve the window at most once
/// per srtt, but not below 2 segments.
#[derive(Clone, Debug, Default)]
pub struct Backoff {
    halved_at: Option<Time>,
}

impl Backoff {
    /// Handles a loss and returns the new window.
    pub fn on_loss(&mut self, now: Time, srtt: Span, cwnd: u32) -> u32 {
        if self.halved_at.is_some_and(|at| now.since(at) < srtt) {
            return cwnd;
        }
        self.halved_at = Some(now);
        // A loss does not raise a window of 1, which follows a timeout.
        (cwnd / 2).max(2).min(cwnd.max(1))
    }

    /// Called when a recommendation was applied. After this call, the next loss halves the window again, even within
    /// the same srtt.
    pub fn on_echo(&mut self) {
        self.halved_at = None;
    }
}

/// A designated packet in flight.
#[derive(Copy, Clone, Debug)]
struct Outstanding {
    /// Sequence number of the packet; `None` for the SYN.
    seq: Option<u64>,
    sent: Time,
}

/// Chooses the designated packets of one flow and measures the time between them. The reports add up to the flow's
/// lifetime, to the nanosecond (BDR-20).
///
/// The time in the next report begins when a designated packet is *sent*, even if that packet is lost. The router that
/// drops the packet has already counted the packet's report on arrival. Later routers on the path miss this report.
#[derive(Clone, Debug, Default)]
pub struct Designator {
    /// The time at which the last designated packet was sent; `None` before the SYN.
    last_sent: Option<Time>,
    outstanding: Option<Outstanding>,
    /// Number of packets since the last designated packet, including that packet.
    packets: u32,
    /// The paper's `time_per_cwin` of the last window.
    window_time: Span,
    data_sent: bool,
    finished: bool,
}

impl Designator {
    /// Makes the report of a SYN (BDR-31). A repeated SYN carries the same report. The first data packet reports the
    /// time of the whole handshake, including repeated SYNs.
    pub fn connect(&mut self, now: Time, packet_size: Bytes) -> Report {
        let first = *self.last_sent.get_or_insert(now);
        self.outstanding = Some(Outstanding { seq: None, sent: first });
        Report { syn: true, packet_size, ..Report::default() }
    }

    /// Called when the SYN-ACK has arrived (BDR-32), with or without an echo.
    pub fn on_established(&mut self) {
        self.outstanding = None;
    }

    /// Called when packet `seq` of new data is sent. If the result is `Some`, the packet is designated (BDR-33). `rto`
    /// is the current timeout. After twice this timeout, the last designated packet counts as lost (BDR-27).
    pub fn on_send(&mut self, now: Time, seq: u64, rto: Span, packet_size: Bytes) -> Option<Report> {
        let patience = rto.max(RTO_MIN).scale(2, 1);
        let waiting = self.outstanding.is_some_and(|dp| now.since(dp.sent) < patience);
        if waiting || self.finished {
            self.packets = self.packets.saturating_add(1);
            return None;
        }
        let report = self.report(now, packet_size);
        self.outstanding = Some(Outstanding { seq: Some(seq), sent: now });
        self.packets = 1;
        Some(report)
    }

    /// Handles an ACK. `echo` states whether the ACK carries the echo of a designated packet. After the echo, the next
    /// designated packet may be sent. If the echo was lost, an ACK with `snd_una` beyond the designated packet has the
    /// same effect (BDR-34), because all packets before `snd_una` have arrived.
    ///
    /// The echo has no number, so it may belong to a packet that was declared lost. In this case, the echo counts for
    /// the current designated packet, and two designated packets can be in flight.
    pub fn on_ack(&mut self, now: Time, echo: bool, snd_una: u64) {
        let Some(dp) = self.outstanding else { return };
        if echo || dp.seq.is_some_and(|seq| seq < snd_una) {
            if dp.seq.is_some() {
                self.window_time = now.since(dp.sent);
            }
            self.outstanding = None;
        }
    }

    /// Called when packet `seq` is retransmitted. If this packet was designated, the next new packet becomes
    /// designated (BDR-27).
    pub fn on_retransmission(&mut self, seq: u64) {
        if self.outstanding.is_some_and(|dp| dp.seq == Some(seq)) {
            self.outstanding = None;
        }
    }

    /// Called when the last data packet, or a separate FIN, is sent (BDR-36). This packet is designated even
    /// if another designated packet is in flight. Returns `None` for a retransmission.
    pub fn finish(&mut self, now: Time, packet_size: Bytes) -> Option<Report> {
        if self.finished {
            return None;
        }
        let report = Report { fin: true, ..self.report(now, packet_size) };
        self.finished = true;
        self.outstanding = None;
        Some(report)
    }

    /// Returns whether a designated packet is in flight.
    pub fn is_outstanding(&self) -> bool {
        self.outstanding.is_some()
    }

    fn report(&mut self, now: Time, packet_size: Bytes) -> Report {
        let t_rep = self.last_sent.map_or(Span::ZERO, |last| now.since(last));
        self.last_sent = Some(self.last_sent.map_or(now, |last| last.max(now)));
        let first_data = !core::mem::replace(&mut self.data_sent, true);
        let (size_cwin, time_per_cwin) = (self.packets, self.window_time);
        Report { syn: false, fin: false, first_data, t_rep, size_cwin, time_per_cwin, packet_size }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PACKET: Bytes = Bytes::new(1000);
    const RTO: Span = Span::from_millis(300);

    fn ms(n: u64) -> Time {
        Time::ZERO + Span::from_millis(n)
    }

    /// Returns the reports of a flow with SYN at 0, data at 100 and 200 ms and FIN at 300 ms.
    fn flow() -> [Report; 4] {
        let mut d = Designator::default();
        let syn = d.connect(ms(0), PACKET);
        d.on_established();
        let first = d.on_send(ms(100), 0, RTO, PACKET).unwrap();
        d.on_ack(ms(200), true, 1);
        let second = d.on_send(ms(200), 1, RTO, PACKET).unwrap();
        [syn, first, second, d.finish(ms(300), PACKET).unwrap()]
    }

    #[test]
    fn tv_d8_reports_add_up_to_the_life_time() {
        let reports = flow();
        let said = reports.map(|r| r.t_rep.as_nanos() / 1_000_000);
        assert_eq!(said, [0, 100, 100, 100]);
        assert_eq!(reports.map(|r| r.first_data), [false, true, false, false]);
        assert_eq!(
            reports.map(|r| (r.syn, r.fin)),
            [(true, false), (false, false), (false, false), (false, true)]
        );
    }

    /// BDR-D4: the paper's reports. The designated packet of a window carries the time of the previous window. SYN and
    /// FIN report nothing.
    #[test]
    fn tv_d8_literal_reports_miss_the_handshake_and_the_last_window() {
        let [_, first, second, _] = flow();
        assert_eq!((first.time_per_cwin, second.time_per_cwin), (Span::ZERO, Span::from_millis(100)));
        assert_eq!((first.size_cwin, second.size_cwin), (0, 1));
    }

    #[test]
    fn one_packet_per_window_is_designated_and_reports_the_windows_size() {
        let mut d = Designator::default();
        d.connect(ms(0), PACKET);
        assert!(d.is_outstanding() && d.on_send(ms(1), 0, RTO, PACKET).is_none(), "before the SYN-ACK");
        d.on_established();
        for window in 0..5u64 {
            let first = window * 20;
            for n in 0..20 {
                let report = d.on_send(ms(100 + window * 100), first + n, RTO, PACKET);
                assert_eq!(report.is_some(), n == 0);
                if let (Some(report), true) = (report, window > 0) {
                    assert_eq!((report.size_cwin, report.time_per_cwin), (20, Span::from_millis(100)));
                }
            }
            d.on_ack(ms(200 + window * 100), true, first);
            d.on_ack(ms(200 + window * 100), false, first + 20);
        }
    }

    #[test]
    fn a_lost_packet_has_a_successor_after_two_timeouts_or_when_it_is_sent_again() {
        let mut d = Designator::default();
        d.connect(ms(0), PACKET);
        d.on_established();
        assert!(d.on_send(ms(100), 0, RTO, PACKET).is_some());
        assert!(d.on_send(ms(699), 1, RTO, PACKET).is_none());
        let next = d.on_send(ms(700), 2, RTO, PACKET).unwrap();
        assert_eq!((next.t_rep, next.size_cwin), (Span::from_millis(600), 2));
        d.on_retransmission(0);
        assert!(d.on_send(ms(701), 3, RTO, PACKET).is_none(), "packet 0 is no longer the designated packet");
        d.on_retransmission(2);
        let next = d.on_send(ms(710), 4, RTO, PACKET).unwrap();
        assert_eq!(next.t_rep, Span::from_millis(10));
    }

    #[test]
    fn a_timeout_of_zero_does_not_designate_every_packet() {
        let mut d = Designator::default();
        d.connect(ms(0), PACKET);
        d.on_established();
        assert!(d.on_send(ms(100), 0, Span::ZERO, PACKET).is_some());
        assert!(d.on_send(ms(101), 1, Span::ZERO, PACKET).is_none());
    }

    #[test]
    fn an_acknowledged_packet_frees_the_next_though_its_echo_is_lost() {
        let mut d = Designator::default();
        d.connect(ms(0), PACKET);
        d.on_established();
        assert!(d.on_send(ms(100), 7, RTO, PACKET).is_some());
        d.on_ack(ms(200), false, 7);
        assert!(d.is_outstanding(), "the receiver still expects packet 7");
        d.on_ack(ms(200), false, 8);
        assert!(!d.is_outstanding());
    }

    #[test]
    fn the_end_is_reported_once_even_with_a_packet_outstanding() {
        let mut d = Designator::default();
        d.connect(ms(0), PACKET);
        d.connect(ms(1000), PACKET);
        d.on_established();
        assert!(d.on_send(ms(1100), 0, RTO, PACKET).is_some_and(|r| r.t_rep == Span::from_millis(1100)));
        assert!(d.finish(ms(1150), PACKET).is_some_and(|r| r.fin && r.t_rep == Span::from_millis(50)));
        assert_eq!(d.finish(ms(1200), PACKET), None);
        assert_eq!(d.on_send(ms(9000), 1, RTO, PACKET), None);
    }

    #[test]
    fn a_flow_of_one_packet_reports_its_handshake_with_it() {
        let mut d = Designator::default();
        d.connect(ms(0), PACKET);
        d.on_established();
        let only = d.finish(ms(100), PACKET).unwrap();
        assert!(only.first_data && only.fin && only.t_rep == Span::from_millis(100));
    }

    #[test]
    fn windows_are_whole_at_least_one_and_bounded() {
        let (rate, rtt) = (Rate::from_bits_per_sec(2_450_000), Span::from_millis(100));
        assert_eq!(window(rate, rtt, PACKET), 30);
        assert_eq!(window(Rate::ZERO, rtt, PACKET), 1);
        assert_eq!(window(Rate::MAX, Span::from_secs(3600), Bytes::new(1)), u32::MAX);
        for (rtt, packet) in [(Span::MAX, PACKET), (Span::ZERO, PACKET), (rtt, Bytes::ZERO)] {
            assert_eq!(window(Rate::MAX, rtt, packet), 1);
        }
        assert_eq!((apply_gain(1, i32::MIN), apply_gain(u32::MAX, i32::MAX)), (1, u32::MAX));
        assert_eq!((after_idle(3), after_idle(500)), (3, 10));
    }

    #[test]
    fn loss_halves_once_per_srtt_until_an_echo() {
        let (mut backoff, srtt) = (Backoff::default(), Span::from_millis(100));
        assert_eq!(backoff.on_loss(ms(0), srtt, 40), 20);
        assert_eq!(backoff.on_loss(ms(99), srtt, 20), 20);
        assert_eq!(backoff.on_loss(ms(100), srtt, 20), 10);
        backoff.on_echo();
        assert_eq!(backoff.on_loss(ms(101), srtt, 40), 20);
        backoff.on_echo();
        assert_eq!(backoff.on_loss(ms(102), srtt, 3), 2);
        backoff.on_echo();
        assert_eq!(backoff.on_loss(ms(103), srtt, 1), 1);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Send,
        Ack(bool),
        Repeat,
        Connect,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => Just(Step::Send),
            4 => any::<bool>().prop_map(Step::Ack),
            1 => Just(Step::Repeat),
            1 => Just(Step::Connect),
        ]
    }

    proptest! {
        /// BDR-20: the reports add up to the flow's lifetime for any choice of designated packets. A packet is
        /// designated only after the previous designated packet was acknowledged, retransmitted or declared lost.
        #[test]
        fn reports_add_up_to_any_life_time(
            start in 0..1_000_000_000_000u64,
            steps in proptest::collection::vec((step(), 0..500_000_000u64), 0..100), end in 0..5_000_000_000u64,
        ) {
            let mut d = Designator::default();
            let mut now = Time::from_nanos(start);
            let began = now;
            let mut sum = d.connect(now, PACKET).t_rep;
            d.on_established();
            let (mut next, mut designated, mut free) = (0, None::<(u64, Time)>, true);
            for (step, wait) in steps {
                now += Span::from_nanos(wait);
                match step {
                    Step::Send => {
                        let report = d.on_send(now, next, RTO, PACKET);
                        let given_up = designated.is_some_and(|(_, at)| now.since(at) >= RTO.scale(2, 1));
                        prop_assert_eq!(report.is_some(), free || given_up);
                        if let Some(report) = report {
                            sum += report.t_rep;
                            (designated, free) = (Some((next, now)), false);
                        }
                        next += 1;
                    }
                    Step::Ack(echo) => {
                        d.on_ack(now, echo, next);
                        free = true;
                    }
                    Step::Repeat => {
                        if let Some((seq, _)) = designated {
                            d.on_retransmission(seq);
                            free = true;
                        }
                    }
                    // The SYN is retransmitted because the SYN-ACK was lost.
                    Step::Connect => {
                        prop_assert_eq!(d.connect(now, PACKET).t_rep, Span::ZERO);
                        d.on_established();
                        free = true;
                    }
                }
            }
            now += Span::from_nanos(end);
            sum += d.finish(now, PACKET).map_or(Span::ZERO, |r| r.t_rep);
            prop_assert_eq!(sum, now.since(began));
        }
    }
}
