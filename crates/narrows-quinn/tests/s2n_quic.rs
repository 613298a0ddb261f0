//! Tests controllers of Narrows in connections of s2n-quic, with TLS, over UDP sockets on loopback.
//!
//! A relay between client and server drops some packets, so the tests also cover losses.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use narrows_control::catalogue::Catalogue;
use narrows_control::congestion::{Ack, Congestion, Connection, Controller, Lost, Recovery, Window};
use narrows_control::units::{Rate, Span};
use narrows_quinn::Factory;
use s2n_quic::client::Connect;
use s2n_quic::{Client, Server};

const BYTES: usize = 3_000_000;
/// The relay drops each packet from the client whose number is a multiple of this constant. The handshake has fewer
/// packets than this.
const DROPPED_PACKET: u64 = 97;

/// Passes datagrams between a client and the server, until it is dropped.
struct Relay {
    address: SocketAddr,
    dropped: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Relay {
    fn start(server: SocketAddr) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        socket.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout");
        let address = socket.local_addr().expect("an address");
        let (dropped, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (drops, stop) = (Arc::clone(&dropped), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            let (mut client, mut packets, mut bytes) = (None, 0u64, [0; 65_536]);
            while !stop.load(Ordering::Relaxed) {
                let Ok((length, from)) = socket.recv_from(&mut bytes) else { continue };
                let to = if from == server {
                    client
                } else {
                    client = Some(from);
                    packets += 1;
                    Some(server)
                };
                if from != server && packets.is_multiple_of(DROPPED_PACKET) {
                    drops.fetch_add(1, Ordering::Relaxed);
                } else if let Some(to) = to {
                    // If the socket's buffer is full, this is one more loss.
                    let _ = socket.send_to(&bytes[..length], to);
                }
            }
        });
        Relay { address, dropped, is_over, thread: Some(thread) }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Sends data from a client with this controller to a server. Returns the received data and the number of dropped
/// packets.
fn transfer(factory: Factory, sent: &[u8]) -> (Vec<u8>, u64) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let mut server = Server::builder()
            .with_tls((certificate.as_str(), key.as_str()))
            .expect("TLS")
            .with_io("127.0.0.1:0")
            .expect("a socket")
            .start()
            .expect("a server");
        let relay = Relay::start(server.local_addr().expect("an address"));
        let receiver = tokio::spawn(async move {
            let mut connection = server.accept().await.expect("a connection");
            let mut stream =
                connection.accept_receive_stream().await.expect("a handshake").expect("a stream");
            let mut received = Vec::new();
            while let Some(part) = stream.receive().await.expect("data") {
                received.extend_from_slice(&part);
            }
            // The connection ends when this value is dropped.
            (received, connection)
        });
        let client = Client::builder()
            .with_tls(certificate.as_str())
            .expect("TLS")
            .with_io("127.0.0.1:0")
            .expect("a socket")
            .with_congestion_controller(factory)
            .expect("a controller")
            .start()
            .expect("a client");
        let connect = Connect::new(relay.address).with_server_name("localhost");
        let mut connection = client.connect(connect).await.expect("a connection");
        let mut stream = connection.open_send_stream().await.expect("a stream");
        stream.send(Bytes::copy_from_slice(sent)).await.expect("the server reads");
        stream.close().await.expect("an acknowledgement");
        let (received, _connection) = receiver.await.expect("the server");
        (received, relay.dropped.load(Ordering::Relaxed))
    })
}

/// The reports that a controller got.
#[derive(Debug, Default)]
struct Seen {
    established: u32,
    acked: u64,
    lost: u64,
    reductions: u32,
    recoveries: u32,
    largest_in_flight: u32,
    largest_rate: f64,
}

/// Passes all calls to another controller, and records them.
struct Observed {
    inner: Box<dyn Controller>,
    seen: Arc<Mutex<Seen>>,
}

impl Observed {
    fn see(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.seen.lock().expect("no panic"));
    }
}

impl Controller for Observed {
    fn name(&self) -> &'static str {
        self.inner.name()
    }
    fn on_established(&mut self, connection: &Connection, window: &mut Window) {
        self.see(|seen| seen.established += 1);
        self.inner.on_established(connection, window);
    }
    fn on_ack(&mut self, ack: &Ack, window: &mut Window) {
        self.inner.on_ack(ack, window);
    }
    fn on_sample(&mut self, ack: &Ack) {
        self.see(|seen| {
            seen.acked += u64::from(ack.acked);
            seen.largest_in_flight = seen.largest_in_flight.max(ack.prior_in_flight);
            if ack.rate.interval > Span::ZERO {
                let rate = f64::from(ack.rate.delivered) / ack.rate.interval.as_secs_f64();
                seen.largest_rate = seen.largest_rate.max(rate);
            }
        });
        self.inner.on_sample(ack);
    }
    fn on_lost(&mut self, lost: &Lost, window: &Window) {
        self.see(|seen| seen.lost += 1);
        self.inner.on_lost(lost, window);
    }
    fn on_congestion(&mut self, event: &Congestion, window: &mut Window) {
        self.see(|seen| seen.reductions += 1);
        self.inner.on_congestion(event, window);
    }
    fn on_recovered(&mut self, now: narrows_control::units::Time, window: &mut Window) {
        self.see(|seen| seen.recoveries += 1);
        self.inner.on_recovered(now, window);
    }
    fn recovery(&self) -> Recovery {
        self.inner.recovery()
    }
}

/// Returns a factory of controllers that record their calls, and the records.
fn observed(build: impl Fn() -> Box<dyn Controller> + Send + Sync + 'static) -> (Factory, Arc<Mutex<Seen>>) {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let records = Arc::clone(&seen);
    let build =
        move || Box::new(Observed { inner: build(), seen: Arc::clone(&records) }) as Box<dyn Controller>;
    (Factory::from_fn(build), seen)
}

fn data() -> Vec<u8> {
    (0..BYTES).map(|n| (n % 251) as u8).collect()
}

#[test]
fn connections_use_controllers_of_the_catalogue() {
    let sent = data();
    for name in ["cubic", "bbr3", "copa"] {
        let build = move || Catalogue::built_in().build(&name.into()).expect("a controller");
        let (factory, seen) = observed(build);
        let (received, dropped) = transfer(factory, &sent);
        assert!(received == sent, "{name}: {} bytes", received.len());
        let seen = seen.lock().expect("no panic");
        println!("{name}: {dropped} packets dropped, {seen:?}");
        assert_eq!(seen.established, 1, "{name}");
        // A segment has 1200 bytes, including the packet's headers and the tag of its encryption.
        assert!(seen.acked >= BYTES as u64 / 1200, "{name}: {seen:?}");
        assert!(dropped > 10 && seen.lost >= dropped, "{name}: {dropped} dropped, {seen:?}");
        assert!(seen.reductions > 0 && seen.recoveries > 0, "{name}: {seen:?}");
        assert!(seen.largest_rate > 0.0, "{name}: {seen:?}");
    }
}

/// A controller with a constant window and rate.
struct Constant {
    segments: u32,
    rate: Option<Rate>,
}

impl Controller for Constant {
    fn name(&self) -> &'static str {
        "constant"
    }
    fn on_established(&mut self, _connection: &Connection, window: &mut Window) {
        window.cwnd = self.segments;
        window.pacing_rate = self.rate;
    }
    fn on_ack(&mut self, _ack: &Ack, _window: &mut Window) {}
    fn on_congestion(&mut self, _event: &Congestion, _window: &mut Window) {}
    fn recovery(&self) -> Recovery {
        Recovery::Controller
    }
}

#[test]
fn the_window_limits_the_data_in_flight() {
    let sent = &data()[..600_000];
    let (factory, seen) = observed(|| Box::new(Constant { segments: 4, rate: None }));
    let (received, _) = transfer(factory, sent);
    assert!(received == sent);
    let seen = seen.lock().expect("no panic");
    // The first flight has the initial window of ten segments. Discovery of the MTU may add one packet to a window.
    assert!(seen.largest_in_flight <= 11, "{seen:?}");
}

#[test]
fn the_pacing_rate_limits_the_delivery_rate() {
    let sent = &data()[..1_000_000];
    let rate = Rate::from_bits_per_sec(20_000_000);
    let (factory, seen) = observed(move || Box::new(Constant { segments: 1000, rate: Some(rate) }));
    let (received, _) = transfer(factory, sent);
    assert!(received == sent);
    let seen = seen.lock().expect("no panic");
    assert!(seen.acked > 800 && seen.largest_in_flight < 500, "{seen:?}");
}
