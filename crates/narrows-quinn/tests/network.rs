//! Tests controllers of Narrows in connections of quinn, with TLS, over UDP between two hosts in network namespaces.

#![cfg(target_os = "linux")]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use narrows_lab::{Hosts, Need, Room, can_run, skip};
use narrows_quinn::{Adapter, Factory};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use quinn::rustls::{self, RootCertStore};
use quinn::{ClientConfig, Endpoint, EndpointConfig, ServerConfig, TokioRuntime, TransportConfig};

const BYTES: usize = 12_000_000;
const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 9, 0, 2)), 4433);

/// Returns the configurations of both ends of TLS, with a certificate that is made for this test.
fn tls() -> (rustls::ServerConfig, rustls::ClientConfig) {
    let made = rcgen::generate_simple_self_signed(["receiver".to_owned()]).expect("a certificate");
    let certificate = CertificateDer::from(made.cert);
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let server = rustls::ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key.into())
        .expect("a server");
    let mut roots = RootCertStore::empty();
    roots.add(certificate).expect("a root");
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    (server, client)
}

/// Receives one stream, and returns its bytes.
async fn receive(endpoint: Endpoint) -> Vec<u8> {
    let connection = endpoint.accept().await.expect("a connection").await.expect("a handshake");
    let mut stream = connection.accept_uni().await.expect("a stream");
    let bytes = stream.read_to_end(BYTES).await.expect("all bytes");
    connection.closed().await;
    bytes
}

/// Sends the bytes on one stream, and returns the controller's state at the end.
async fn send(endpoint: Endpoint, bytes: &[u8]) -> Vec<(&'static str, f64)> {
    let connection = endpoint.connect(SERVER, "receiver").expect("a client").await.expect("a handshake");
    let mut stream = connection.open_uni().await.expect("a stream");
    stream.write_all(bytes).await.expect("the receiver reads");
    stream.finish().expect("the end");
    stream.stopped().await.expect("an acknowledgement");
    let adapter = connection.congestion_state().into_any().downcast::<Adapter>().expect("the adapter");
    let mut state = Vec::new();
    adapter.trace(&mut |name, value| state.push((name, value)));
    connection.close(0u32.into(), b"");
    endpoint.wait_idle().await;
    state
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

#[test]
fn connections_over_the_kernel_use_controllers_of_narrows() {
    if !can_run(&[Need::Root, Need::Tool("tc -V"), Need::Tool("ethtool --version")]) {
        return;
    }
    let mut hosts = Hosts::new("nwq", Room::Half);
    hosts.add("s");
    hosts.add("d");
    hosts.cable(("s", "eth0"), ("d", "eth0"));
    for (host, address) in [("s", "10.9.0.1/24"), ("d", "10.9.0.2/24")] {
        hosts.ip(host, &format!("address add {address} dev eth0"));
        hosts.no_offloads(host, "eth0");
    }
    // The queue has room for the data that the link sends in 20 ms.
    let shape = "tc qdisc add dev eth0 root tbf rate 50mbit burst 16kb latency 20ms";
    if let Err(trouble) = hosts.says("s", shape) {
        return skip(&trouble); // a kernel without sch_tbf
    }
    let bytes: Vec<u8> = (0..BYTES).map(|n| (n % 251) as u8).collect();
    for cc in ["bbr3", "cubic"] {
        let (server, client) = tls();
        let server = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(server).expect("QUIC")));
        let mut transport = TransportConfig::default();
        transport.congestion_controller_factory(Arc::new(Factory::named(cc).expect("a controller")));
        let mut client = ClientConfig::new(Arc::new(QuicClientConfig::try_from(client).expect("QUIC")));
        client.transport_config(Arc::new(transport));
        let (received, state) = std::thread::scope(|scope| {
            let (ready, is_ready) = std::sync::mpsc::channel();
            let (hosts, sent) = (&hosts, &bytes);
            let receiver = scope.spawn(move || {
                hosts.inside("d", || {
                    let socket = std::net::UdpSocket::bind(SERVER).expect("the address");
                    let runtime = runtime();
                    let _context = runtime.enter();
                    let config = EndpointConfig::default();
                    let endpoint = Endpoint::new(config, Some(server), socket, Arc::new(TokioRuntime))
                        .expect("a server");
                    ready.send(()).expect("the test waits");
                    runtime.block_on(receive(endpoint))
                })
            });
            is_ready.recv().expect("a server");
            let state = hosts.inside("s", || {
                let socket = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a socket");
                let runtime = runtime();
                let _context = runtime.enter();
                let config = EndpointConfig::default();
                let mut endpoint =
                    Endpoint::new(config, None, socket, Arc::new(TokioRuntime)).expect("a client");
                endpoint.set_default_client_config(client);
                runtime.block_on(send(endpoint, sent))
            });
            (receiver.join().expect("the receiver"), state)
        });
        assert!(received == bytes, "{cc}: {} bytes", received.len());
        println!("{cc}: {state:?}");
        if cc == "bbr3" {
            // After the first rounds of Startup, the controller has an estimate of the bandwidth. Its value depends on
            // the load of the machine, so only `simulated.rs` tests it.
            let value = |key| state.iter().find(|(name, _)| *name == key).expect("a variable").1;
            assert!(value("bw") > 0.0 && value("round") > 5.0 && value("min_rtt") > 0.0, "{state:?}");
        }
    }
}
