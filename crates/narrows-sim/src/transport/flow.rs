//! A flow of an external transport. This module converts the transport's datagrams to packets of the simulator.

use narrows_control::units::{Bytes, Time};

use super::{Datagram, Ecn, End, Object, Output, Transport, TransportState};
use crate::flow::Delays;
use crate::packet::{Packet, Template, UDP_HEADER_BYTES, flag};
use crate::tcp::{Io, RttStats};

/// A flow of an external transport, with both ends.
pub(crate) struct StackFlow {
    transport: Box<dyn Transport>,
    pub(crate) forward: Template,
    pub(crate) reverse: Template,
    pub(crate) rtts: RttStats,
    pub(crate) delays: Delays,
    /// Number of datagrams that the sender has sent, and their L3 bytes.
    pub(crate) sent: u64,
    pub(crate) sent_bytes: u64,
    outgoing: Vec<(End, Datagram)>,
    pub(crate) objects: Vec<Object>,
}

impl StackFlow {
    pub(crate) fn new(
        transport: Option<Box<dyn Transport>>,
        forward: Template,
        reverse: Template,
        rtts: RttStats,
    ) -> Self {
        StackFlow {
            transport: transport.unwrap_or_else(|| Box::new(NullTransport)),
            forward,
            reverse,
            rtts,
            delays: Delays::default(),
            sent: 0,
            sent_bytes: 0,
            outgoing: Vec::new(),
            objects: Vec::new(),
        }
    }

    pub(crate) fn transport(&self) -> &dyn Transport {
        &*self.transport
    }

    // The event loop calls the methods below. They are marked as cold, so that the compiler keeps the code for TCP
    // fast.

    #[cold]
    pub(crate) fn next_timer(&self) -> Time {
        self.transport.next_timer()
    }

    #[cold]
    pub(crate) fn is_finished(&self) -> bool {
        self.transport.is_finished()
    }

    #[cold]
    pub(crate) fn start(&mut self, io: &mut Io<'_>) {
        self.drive(io, |transport, output| transport.start(output));
    }

    /// Passes a datagram to the end that the datagram has reached.
    #[cold]
    pub(crate) fn on_datagram(&mut self, io: &mut Io<'_>, p: &Packet, contents: Vec<u8>) {
        let ecn = match (p.is(flag::CE), p.is(flag::ECT)) {
            (true, _) => Ecn::Experienced,
            (false, true) => Ecn::Capable,
            (false, false) => Ecn::NotCapable,
        };
        let at = if p.is(flag::REVERSE) { End::Sender } else { End::Receiver };
        if at == End::Receiver && self.rtts.has_begun(io.now) {
            self.delays.add(io.now.since(sent_at(p)));
        }
        self.drive(io, |transport, output| transport.on_datagram(at, Datagram { contents, ecn }, output));
    }

    #[cold]
    pub(crate) fn on_timer(&mut self, io: &mut Io<'_>) {
        if self.transport.next_timer() <= io.now {
            self.drive(io, |transport, output| transport.on_timer(output));
        }
    }

    /// Calls `act` with the transport. Then converts the datagrams that the transport has sent to packets of the
    /// simulator.
    fn drive(&mut self, io: &mut Io<'_>, act: impl FnOnce(&mut dyn Transport, &mut Output<'_>)) {
        let mut output = Output {
            now: io.now,
            sent: &mut self.outgoing,
            rtts: &mut self.rtts,
            objects: &mut self.objects,
        };
        act(&mut *self.transport, &mut output);
        for (from, datagram) in self.outgoing.drain(..) {
            let length = datagram.contents.len() as u16; // `Output::send` limits the length
            let template = if from == End::Sender { &self.forward } else { &self.reverse };
            let mut packet = template.packet(length + UDP_HEADER_BYTES as u16);
            packet.payload = length;
            packet.flags |= match datagram.ecn {
                Ecn::NotCapable => 0,
                Ecn::Capable => flag::ECT,
                Ecn::Experienced => flag::ECT | flag::CE,
            };
            packet.seq = self.sent as u32;
            set_sent_at(&mut packet, io.now);
            if from == End::Sender {
                self.sent += 1;
                self.sent_bytes += u64::from(packet.size);
            }
            let id = io.packets.insert_datagram(packet, datagram.contents);
            io.out.push(id);
        }
    }
}

/// Stores the time of sending in packet fields that a datagram does not use.
fn set_sent_at(packet: &mut Packet, now: Time) {
    let nanos = now.as_nanos();
    packet.ts = nanos as u32;
    packet.ts_echo = (nanos >> 32) as u32;
}

fn sent_at(packet: &Packet) -> Time {
    Time::from_nanos(u64::from(packet.ts_echo) << 32 | u64::from(packet.ts))
}

/// A transport that sends nothing.
struct NullTransport;

impl Transport for NullTransport {
    fn start(&mut self, _output: &mut Output<'_>) {}

    fn on_datagram(&mut self, _at: End, _datagram: Datagram, _output: &mut Output<'_>) {}

    fn next_timer(&self) -> Time {
        Time::NEVER
    }

    fn on_timer(&mut self, _output: &mut Output<'_>) {}

    fn is_finished(&self) -> bool {
        true
    }

    fn delivered(&self) -> Bytes {
        Bytes::ZERO
    }

    fn state(&self) -> TransportState {
        TransportState::default()
    }
}
