//! Implements a transport of the simulator by a connection with both ends. The client sends the flow's data on one
//! stream, or objects that the server requests on streams of their own.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes as Contents;
use narrows_control::units::{Bytes, Rate, Span, Time};
use narrows_sim::model::Random;
use narrows_sim::transport::{App, Chunk, Datagram, End, FlowSetup, Output, Transport, TransportState};
use quinn_proto::congestion::ControllerFactory;
use quinn_proto::{
    ClientConfig, Connection, ConnectionId, Dir, Event, QlogConfig, ReadError, ServerConfig, StreamEvent,
    StreamId, TransportConfig, ValidationTokenConfig, VarInt,
};

use super::Congestion;
use super::end::FlowEnd;
use super::objects::{Requester, Responder, stream_limit};
use super::observer::{ObserverFactory, SharedObservations};
use super::plaintext::Plaintext;
use super::seeded::{Key, endpoint_config, fill};
use crate::controller::Adapter;

/// Bytes per write of an application with a rate.
const PACKET_BYTES: u16 = 1448;
/// Bytes per write of all other applications.
const WRITE_BYTES: u16 = 32 << 10;
pub(super) static ZEROS: [u8; WRITE_BYTES as usize] = [0; WRITE_BYTES as usize];
/// The application stops writing when it is ahead of the delivered data by this number of windows plus
/// [`BUFFER_EXTRA_BYTES`]. The stack sends accepted data even after the application has stopped. So the limit is only
/// high enough to keep the stack busy while it repairs losses.
const BUFFER_WINDOWS: u64 = 4;
const BUFFER_EXTRA_BYTES: u64 = 64 << 10;
/// Size of a datagram before MTU discovery, in bytes. This is quinn's default (RFC 9000, section 14).
const INITIAL_DATAGRAM_BYTES: u16 = 1200;
/// Windows per smoothed RTT at which quinn's pacer sends (`connection/pacing.rs` in quinn-proto).
const PACED_WINDOWS_PER_RTT: f64 = 1.25;
/// Length of the random destination connection ID of the client's first packet (quinn's default).
const FIRST_CONNECTION_ID_BYTES: usize = 20;

/// A flow.
pub(super) struct Flow {
    client: FlowEnd,
    server: FlowEnd,
    /// The adapter of the controller, if the controller is from Narrows.
    adapter: Option<Adapter>,
    observed: SharedObservations,
    /// The same moment as a simulated time and as an `Instant`. quinn-proto only compares and subtracts `Instant`s, so
    /// the absolute value does not matter.
    base: (Time, Instant),
    sender: Sending,
    receiver: Receiving,
    /// Both ends of the requests, if the flow has requests.
    objects: Option<(Responder, Requester)>,
    /// The timers of the client and of the server.
    timers: [Time; 2],
    /// The time at which the server sends its next request. This time is later than the last call of `drive`.
    requests_at: Time,
    latest_rtt: Option<Span>,
    /// The time and the reason of the connection's end, if the application did not end the connection.
    failure: Option<(Time, String)>,
}

/// The application of the client.
struct Sending {
    app: App,
    stream: Option<StreamId>,
    /// Number of bytes taken from the application but not yet written, and whether they are its last bytes.
    pending: (usize, bool),
    written: u64,
    /// Whether the end of the stream was written.
    is_finished: bool,
    /// The time at which the application has data again or stops.
    wake: Time,
    acked_at: Option<Time>,
    is_closed: bool,
}

/// The application of the server.
#[derive(Default)]
struct Receiving {
    stream: Option<StreamId>,
    delivered: u64,
    received_at: Option<Time>,
    is_closed: bool,
}

impl Flow {
    /// Creates a flow. Returns `None` if quinn refuses the connection.
    #[expect(
        clippy::disallowed_methods,
        reason = "an `Instant` can only be made from the clock; only differences count"
    )]
    pub(super) fn new(
        setup: FlowSetup<'_>,
        congestion: Congestion,
        log: Option<Box<dyn Write + Send + Sync>>,
    ) -> Option<Self> {
        let base = Instant::now();
        let mut random = Random::scattered(setup.seed, 0);
        let observed = SharedObservations::default();
        let (adapter, inner) = match congestion {
            Congestion::Own(factory) => (None, factory),
            Congestion::Catalogue(cc) => {
                let adapter = Adapter::new(cc, base, INITIAL_DATAGRAM_BYTES, setup.seed);
                (Some(adapter.clone()), Arc::new(adapter) as Arc<dyn ControllerFactory + Send + Sync>)
            }
        };
        let factory = ObserverFactory { inner, shared: observed.clone() };
        let mut sending = TransportConfig::default();
        sending.initial_mtu(INITIAL_DATAGRAM_BYTES);
        sending.congestion_controller_factory(Arc::new(factory));
        if let Some(requests) = &setup.requests {
            sending.max_concurrent_bidi_streams(stream_limit(requests));
        }
        if let Some(log) = log {
            let mut qlog = QlogConfig::default();
            qlog.writer(log).title(Some(setup.name.to_owned())).start_time(base);
            sending.qlog_stream(qlog.into_stream());
        }
        let mut client = ClientConfig::new(Arc::new(Plaintext));
        client.transport_config(Arc::new(sending));
        let mut id = [0; FIRST_CONNECTION_ID_BYTES];
        fill(&mut random, &mut id);
        client.initial_dst_cid_provider(Arc::new(move || ConnectionId::new(&id)));
        let mut receiving = TransportConfig::default();
        if let Some(window) = setup.stack.receive_window {
            let window = VarInt::from_u64(window.get()).unwrap_or(VarInt::MAX);
            receiving.stream_receive_window(window).receive_window(window);
        }
        let mut server = ServerConfig::new(Arc::new(Plaintext), Arc::new(Key(random.bits())));
        let mut tokens = ValidationTokenConfig::default();
        server.transport_config(Arc::new(receiving)).validation_token_config(tokens.sent(0).clone());
        let client = FlowEnd::client(endpoint_config(&mut random), client, base).ok()?;
        Some(Flow {
            client,
            server: FlowEnd::server(endpoint_config(&mut random), server),
            adapter,
            observed,
            base: (Time::ZERO, base),
            sender: Sending {
                app: setup.app,
                stream: None,
                pending: (0, false),
                written: 0,
                is_finished: false,
                wake: Time::NEVER,
                acked_at: None,
                is_closed: false,
            },
            receiver: Receiving::default(),
            objects: setup.requests.map(|requests| (Responder::default(), Requester::new(requests))),
            timers: [Time::NEVER; 2],
            requests_at: Time::NEVER,
            latest_rtt: None,
            failure: None,
        })
    }

    /// Converts a time of the simulator to quinn's type.
    fn instant(&self, time: Time) -> Instant {
        self.base.1 + Duration::from_nanos(time.since(self.base.0).as_nanos())
    }

    fn peer(&mut self, end: End) -> &mut FlowEnd {
        match end {
            End::Sender => &mut self.client,
            End::Receiver => &mut self.server,
        }
    }

    /// Lets one end handle its events and send all packets that it may send now.
    fn drive(&mut self, end: End, output: &mut Output<'_>) {
        let now = output.now();
        let instant = self.instant(now);
        let mut is_first = true;
        loop {
            let mut has_events = self.peer(end).exchange();
            while let Some(event) = self.peer(end).poll() {
                has_events = true;
                self.on_event(end, now, event);
            }
            if !std::mem::take(&mut is_first) && !has_events {
                break;
            }
            match end {
                _ if self.objects.is_some() => self.serve(end, output),
                End::Sender => self.write(now),
                End::Receiver => self.read(now),
            }
            while let Some(datagram) = self.peer(end).transmit(instant) {
                output.send(end, datagram);
            }
        }
        self.timers[end as usize] = self.timer(end, now);
        // A request that is due waits for a stream. The event of a new stream drives this end again.
        let next = self.request_at();
        self.requests_at = if next > now { next } else { Time::NEVER };
        let mut observed = self.observed.lock();
        for rtt in observed.rtts.drain(..) {
            let rtt = Span::from_nanos(rtt.as_nanos() as u64);
            self.latest_rtt = Some(rtt);
            output.report_rtt(rtt);
        }
    }

    /// Returns the time of the next timer of an end. This time is after `now`.
    fn timer(&mut self, end: End, now: Time) -> Time {
        let base = self.base;
        let Some(at) = self.peer(end).connection().and_then(|connection| connection.poll_timeout()) else {
            return Time::NEVER;
        };
        let after = Span::from_nanos(at.saturating_duration_since(base.1).as_nanos() as u64);
        (base.0 + after).max(now + Span::from_nanos(1))
    }

    fn on_event(&mut self, end: End, now: Time, event: Event) {
        match (end, event) {
            (End::Sender, Event::Connected) if self.objects.is_none() => {
                if let Some(connection) = self.client.connection() {
                    self.sender.stream = connection.streams().open(Dir::Uni);
                }
            }
            (End::Sender, Event::Stream(StreamEvent::Finished { .. })) if self.objects.is_none() => {
                self.sender.acked_at = Some(now);
                self.sender.is_closed = true;
                let instant = self.instant(now);
                if let Some(connection) = self.client.connection() {
                    connection.close(instant, VarInt::from_u32(0), Contents::new());
                }
            }
            (End::Receiver, Event::Connected) => {
                if let Some((_, requester)) = &mut self.objects {
                    requester.begin(now);
                }
            }
            (End::Sender, Event::ConnectionLost { reason }) => {
                self.sender.is_closed = true;
                // After the last object, the receiver closes the connection.
                if !self.objects.as_ref().is_some_and(|(_, requester)| requester.is_done()) {
                    self.failure = Some((now, reason.to_string()));
                }
            }
            (End::Receiver, Event::ConnectionLost { .. }) => self.receiver.is_closed = true,
            (End::Receiver, Event::Stream(StreamEvent::Opened { dir: Dir::Uni })) => {
                if let Some(connection) = self.server.connection() {
                    self.receiver.stream = connection.streams().accept(Dir::Uni).or(self.receiver.stream);
                }
            }
            _ => {}
        }
    }

    /// Lets one end of the requests read and write. After the last object, the receiver closes the connection.
    fn serve(&mut self, end: End, output: &mut Output<'_>) {
        let instant = self.instant(output.now());
        let Some((responder, requester)) = &mut self.objects else { return };
        match end {
            End::Sender => {
                let Some(connection) = self.client.connection() else { return };
                responder.drive(connection, most_written(connection, requester.delivered));
            }
            End::Receiver if !self.receiver.is_closed => {
                let Some(connection) = self.server.connection() else { return };
                requester.drive(connection, output);
                self.receiver.delivered = requester.delivered;
                if requester.is_done() {
                    self.receiver.is_closed = true;
                    self.receiver.received_at = requester.received_at;
                    self.sender.acked_at = requester.received_at;
                    connection.close(instant, VarInt::from_u32(0), Contents::new());
                }
            }
            End::Receiver => {}
        }
    }

    /// Returns the time at which the receiver sends its next request.
    fn request_at(&self) -> Time {
        let open = self.objects.as_ref().filter(|_| !self.receiver.is_closed);
        open.map_or(Time::NEVER, |(_, requester)| requester.wake())
    }

    /// Writes as much data of the application as the stack accepts.
    fn write(&mut self, now: Time) {
        let sender = &mut self.sender;
        sender.wake = Time::NEVER;
        let (Some(stream), Some(connection)) = (sender.stream, self.client.connection()) else { return };
        if sender.is_finished || sender.is_closed {
            return;
        }
        if sender.app.stop() > now {
            sender.wake = sender.app.stop();
        }
        let most = most_written(connection, self.receiver.delivered);
        let write_bytes = if sender.app.has_rate() { PACKET_BYTES } else { WRITE_BYTES };
        loop {
            if sender.pending == (0, false) {
                match sender.app.take(now, write_bytes) {
                    Chunk::Data { len, last } => sender.pending = (len.into(), last),
                    Chunk::Wait(at) => {
                        sender.wake = sender.wake.min(at);
                        break;
                    }
                    Chunk::Finished => sender.pending = (0, true),
                }
            }
            let (bytes, is_last) = sender.pending;
            if bytes > 0 {
                if sender.written >= most {
                    break;
                }
                let mut chunk = [Contents::from_static(&ZEROS[..bytes])];
                let Ok(written) = connection.send_stream(stream).write_chunks(&mut chunk) else { break };
                sender.written += written.bytes as u64;
                sender.pending.0 -= written.bytes;
            }
            if sender.pending.0 == 0 && is_last {
                // This fails only if the receiver has stopped the stream, which the receiver in this module never does.
                let _ = connection.send_stream(stream).finish();
                sender.is_finished = true;
                sender.wake = Time::NEVER;
                break;
            }
        }
    }

    /// Reads the data that has arrived in order.
    fn read(&mut self, now: Time) {
        let receiver = &mut self.receiver;
        let (Some(stream), Some(connection)) = (receiver.stream, self.server.connection()) else { return };
        let mut received = connection.recv_stream(stream);
        let Ok(mut chunks) = received.read(true) else { return };
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => receiver.delivered += chunk.bytes.len() as u64,
                Ok(None) => {
                    receiver.received_at = receiver.received_at.or(Some(now));
                    receiver.stream = None;
                    break;
                }
                Err(ReadError::Blocked | ReadError::Reset(_)) => break,
            }
        }
        // `finalize` returns whether quinn has packets to send. The result is not needed, because `drive` always asks
        // for packets.
        let _ = chunks.finalize();
    }
}

/// Returns the limit of the total number of bytes that the application writes, if the receiver has `delivered` bytes.
fn most_written(connection: &Connection, delivered: u64) -> u64 {
    let window = connection.congestion_state().window();
    delivered + window.saturating_mul(BUFFER_WINDOWS) + BUFFER_EXTRA_BYTES
}

impl Transport for Flow {
    fn start(&mut self, output: &mut Output<'_>) {
        self.base.0 = output.now();
        self.drive(End::Sender, output);
    }

    fn on_datagram(&mut self, at: End, datagram: Datagram, output: &mut Output<'_>) {
        let instant = self.instant(output.now());
        if let Some(response) = self.peer(at).receive(instant, datagram) {
            output.send(at, response);
        }
        self.drive(at, output);
    }

    fn next_timer(&self) -> Time {
        self.timers[0].min(self.timers[1]).min(self.sender.wake).min(self.requests_at)
    }

    fn on_timer(&mut self, output: &mut Output<'_>) {
        let now = output.now();
        let instant = self.instant(now);
        for end in [End::Sender, End::Receiver] {
            let is_due = self.timers[end as usize] <= now;
            if is_due && let Some(connection) = self.peer(end).connection() {
                connection.handle_timeout(instant);
            }
            let has_work = match end {
                End::Sender => self.sender.wake <= now,
                End::Receiver => self.requests_at <= now,
            };
            if is_due || has_work {
                self.drive(end, output);
            }
        }
    }

    fn is_finished(&self) -> bool {
        let is_drained = || self.client.view().is_none_or(|connection| connection.is_drained());
        self.sender.is_closed && (self.receiver.is_closed || is_drained())
    }

    fn delivered(&self) -> Bytes {
        Bytes::new(self.receiver.delivered)
    }

    fn state(&self) -> TransportState {
        let mut state = TransportState::default();
        let observed = self.observed.lock();
        if let Some(connection) = self.client.view() {
            let (path, metrics) = (connection.stats().path, connection.congestion_state().metrics());
            let span = |duration: Duration| Span::from_nanos(duration.as_nanos() as u64);
            state.datagram = Bytes::new(path.current_mtu.into());
            state.window = Some(Bytes::new(path.cwnd));
            // Before its first loss, quinn's CUBIC reports the largest `u64` as its threshold.
            state.ssthresh = metrics.ssthresh.filter(|&bytes| bytes < u64::MAX).map(Bytes::new);
            // This is the rate of quinn's pacer, because quinn does not use the controller's pacing rate.
            let srtt = span(path.rtt);
            state.pacing_rate = Some(Rate::of(Bytes::new(path.cwnd), srtt).mul_f64(PACED_WINDOWS_PER_RTT));
            // Before the first RTT sample, quinn reports its initial RTT.
            state.srtt = self.latest_rtt.map(|_| srtt);
            state.min_rtt = self.latest_rtt.map(|_| span(path.min_rtt));
            state.lost_packets = path.lost_packets;
        }
        state.in_flight = Bytes::new(observed.in_flight);
        state.latest_rtt = self.latest_rtt;
        state.timeouts = observed.persistent_congestions;
        state.acked_at = self.sender.acked_at;
        state.received_at = self.receiver.received_at;
        state.failure = self.failure.clone();
        state
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        if let Some(adapter) = &self.adapter {
            adapter.trace(trace);
        }
    }
}
