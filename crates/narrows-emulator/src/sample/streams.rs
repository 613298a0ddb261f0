//! The TCP streams of a program, reconstructed from the headers of their packets.

use std::collections::BTreeMap;

use narrows_control::units::Time;

use super::headers::{Segment, Tcp};

/// All connections of a flow, and the payload of its UDP packets.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    open: BTreeMap<(u16, u16), Stream>,
    /// Application bytes that the receivers of all connections have acknowledged, and payload bytes of UDP that have
    /// arrived.
    delivered: u64,
}

/// The sending direction of a connection. Offsets are bytes from the first byte of data.
#[derive(Debug)]
struct Stream {
    /// Sequence number of the first byte.
    start: u32,
    /// Offset of the end of the data that has been sent.
    sent: u64,
    /// Offset up to which the receiver has acknowledged the stream. The FIN counts as one byte.
    delivered: u64,
    /// Offset of the FIN, which is the length of the stream; `None` before the FIN is sent.
    length: Option<u64>,
    /// Times at which the sender and the receiver finished.
    sender_done: Option<Time>,
    receiver_done: Option<Time>,
}

impl Stream {
    fn new(start: u32) -> Self {
        Stream { start, sent: 0, delivered: 0, length: None, sender_done: None, receiver_done: None }
    }

    /// Returns the offset of a sequence number. Several offsets match, because sequence numbers wrap. The result is the
    /// offset that is closest to the end of the sent data.
    fn offset(&self, sequence: u32) -> u64 {
        let newest = self.start.wrapping_add(self.sent as u32);
        let distance = sequence.wrapping_sub(newest) as i32;
        self.sent.saturating_add_signed(i64::from(distance))
    }

    /// Returns whether an acknowledgement up to this offset covers the whole stream and its FIN.
    fn is_whole(&self, acknowledged: u64) -> bool {
        self.length.is_some_and(|length| acknowledged > length)
    }

    /// Returns the number of bytes that the receiver has acknowledged, without the FIN.
    fn data(&self) -> u64 {
        self.length.map_or(self.delivered, |length| self.delivered.min(length))
    }
}

impl Streams {
    /// Records a packet that leaves the sending host. Returns whether all data of the packet had been sent before.
    pub(crate) fn on_sent(&mut self, segment: &Segment) -> bool {
        let Some(tcp) = segment.tcp else { return false };
        if tcp.is_syn {
            self.begin(segment.ports, tcp.sequence.wrapping_add(1));
            return false;
        }
        // If the connection's SYN was not seen, the connection began before the packet sockets were opened.
        let stream = self.open.entry(segment.ports).or_insert_with(|| Stream::new(tcp.sequence));
        let end = stream.offset(tcp.sequence).saturating_add(u64::from(segment.payload));
        let is_repeated = segment.payload > 0 && end <= stream.sent;
        stream.sent = stream.sent.max(end);
        if tcp.is_fin {
            stream.length = Some(end);
        }
        is_repeated
    }

    /// Records a packet of the sender that reaches the receiving host.
    pub(crate) fn on_arrived(&mut self, segment: &Segment, at: Time) {
        match segment.tcp {
            None => self.delivered += u64::from(segment.payload),
            Some(tcp) => self.on_reset(segment.ports, tcp, at),
        }
    }

    /// Records an acknowledgement that leaves the receiving host.
    pub(crate) fn on_delivered(&mut self, segment: &Segment, at: Time) {
        let Some((stream, tcp)) = self.stream(segment) else { return };
        if let Some(number) = tcp.acknowledgement {
            let before = stream.data();
            // An acknowledgement of unsent data belongs to an earlier connection with the same ports.
            let acknowledged = stream.offset(number);
            if acknowledged <= stream.sent + 1 {
                stream.delivered = stream.delivered.max(acknowledged);
            }
            if stream.is_whole(stream.delivered) {
                stream.receiver_done.get_or_insert(at);
            }
            let arrived = stream.data() - before;
            self.delivered += arrived;
        }
        self.on_reset(segment.ports, tcp, at);
    }

    /// Records an acknowledgement that reaches the sending host.
    pub(crate) fn on_acknowledged(&mut self, segment: &Segment, at: Time) {
        let Some((stream, tcp)) = self.stream(segment) else { return };
        if tcp.acknowledgement.is_some_and(|number| stream.is_whole(stream.offset(number))) {
            stream.sender_done.get_or_insert(at);
        }
    }

    /// Returns the number of application bytes that have arrived, see [`TapCounts`](super::tap::TapCounts).
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Returns the times at which the last sender and the last receiver of all connections finished. Returns `None`
    /// while a connection is open, or if there was no connection.
    pub(crate) fn done(&self) -> Option<(Time, Time)> {
        let times = self.open.values().map(|s| Some((s.sender_done?, s.receiver_done?)));
        let all = times.collect::<Option<Vec<_>>>()?;
        all.into_iter().reduce(|a, b| (a.0.max(b.0), a.1.max(b.1)))
    }

    /// Records a new connection. Ignores a repeated SYN.
    fn begin(&mut self, ports: (u16, u16), start: u32) {
        if self.open.get(&ports).is_none_or(|stream| stream.start != start) {
            self.open.insert(ports, Stream::new(start));
        }
    }

    fn stream(&mut self, segment: &Segment) -> Option<(&mut Stream, Tcp)> {
        Some((self.open.get_mut(&segment.ports)?, segment.tcp?))
    }

    /// Handles the packet if it is a reset. If the receiver acknowledged all data before the reset, the transfer is
    /// complete.
    fn on_reset(&mut self, ports: (u16, u16), tcp: Tcp, at: Time) {
        let Some(stream) = self.open.get_mut(&ports).filter(|_| tcp.is_reset) else { return };
        if stream.delivered >= stream.sent {
            stream.sender_done.get_or_insert(at);
            stream.receiver_done.get_or_insert(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PORTS: (u16, u16) = (5_000, 80);

    fn segment(payload: u32, tcp: Tcp) -> Segment {
        Segment { ports: PORTS, l3_bytes: payload + 52, payload, tcp: Some(tcp), is_fragmented: false }
    }

    fn data(sequence: u32, payload: u32) -> Segment {
        segment(payload, Tcp { sequence, ..Tcp::default() })
    }

    fn syn(sequence: u32) -> Segment {
        segment(0, Tcp { sequence, is_syn: true, ..Tcp::default() })
    }

    fn ack(number: u32) -> Segment {
        segment(0, Tcp { acknowledgement: Some(number), ..Tcp::default() })
    }

    fn secs(t: u64) -> Time {
        Time::from_nanos(t * 1_000_000_000)
    }

    #[test]
    fn a_transfer_with_a_retransmission_is_counted_once_and_ends_with_its_fin() {
        let mut streams = Streams::default();
        assert!(!streams.on_sent(&syn(99)));
        assert!(!streams.on_sent(&data(100, 10)));
        assert!(!streams.on_sent(&segment(5, Tcp { sequence: 110, is_fin: true, ..Tcp::default() })));
        streams.on_delivered(&ack(100), secs(1));
        assert!(streams.on_sent(&data(100, 10)), "the first segment was lost");
        assert_eq!((streams.delivered(), streams.done()), (0, None));
        streams.on_delivered(&ack(116), secs(2));
        assert_eq!(streams.delivered(), 15);
        assert_eq!(streams.done(), None, "the acknowledgement has not reached the sender");
        streams.on_acknowledged(&ack(116), secs(3));
        assert_eq!(streams.done(), Some((secs(3), secs(2))));
    }

    #[test]
    fn a_connection_from_the_same_port_is_another_one() {
        let mut streams = Streams::default();
        for start in [1_000, 77] {
            streams.on_sent(&syn(start - 1));
            streams.on_sent(&syn(start - 1)); // repeated
            streams.on_sent(&data(start, 30));
            streams.on_delivered(&ack(start + 30), secs(1));
        }
        assert_eq!(streams.delivered(), 60);
        assert_eq!(streams.done(), None);
    }

    #[test]
    fn a_reset_completes_a_transfer_only_if_all_data_arrived() {
        for (acknowledged, done) in [(110, Some((secs(2), secs(2)))), (105, None)] {
            let mut streams = Streams::default();
            streams.on_sent(&syn(99));
            streams.on_sent(&data(100, 10));
            streams.on_delivered(&ack(acknowledged), secs(1));
            streams.on_arrived(&segment(0, Tcp { is_reset: true, ..Tcp::default() }), secs(2));
            assert_eq!(streams.done(), done);
        }
    }

    proptest! {
        /// Each byte of a stream counts once, for any length and any first sequence number, even if the sequence
        /// numbers wrap.
        #[test]
        fn delivered_bytes_are_those_of_the_stream(
            start: u32,
            sizes in prop::collection::vec((1u32..60_000, any::<bool>()), 1..200),
        ) {
            let mut streams = Streams::default();
            streams.on_sent(&syn(start.wrapping_sub(1)));
            let (mut next, mut total, mut again) = (start, 0u64, 0u64);
            for (size, is_lost) in sizes {
                streams.on_sent(&data(next, size));
                again += u64::from(is_lost && streams.on_sent(&data(next, size)));
                prop_assert!(!is_lost || again > 0);
                next = next.wrapping_add(size);
                total += u64::from(size);
                streams.on_delivered(&ack(next), secs(1));
                prop_assert_eq!(streams.delivered(), total);
            }
        }
    }
}
