//! A QUIC client that sends data for some seconds, and its server. They are ordinary programs without code for Narrows'
//! networks. A scenario can run them on Linux's network stack (docs/how-to/programs.md, `transfer.toml`).
//!
//! ```sh
//! transfer server 4433                      # serves one connection, then prints the number of received bytes
//! transfer client 127.0.0.1 4433 10 bbr3    # sends for ten seconds, with BBR v3 of Narrows (default: quinn's CUBIC)
//! ```
//!
//! The certificate is made at the start, and the client does not check it.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use narrows_quinn::Factory;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use quinn::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use quinn::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use quinn::rustls::{self, DigitallySignedStruct, SignatureScheme, version};
use quinn::{ClientConfig, Endpoint, EndpointConfig, ServerConfig, TokioRuntime, TransportConfig};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const USAGE: &str = "usage: transfer server PORT | transfer client ADDRESS PORT SECONDS [CONTROLLER]";
const NAME: &str = "transfer";

/// Accepts every certificate.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Serves one connection. Returns the number of bytes received.
async fn serve(port: u16) -> Result<u64> {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let tls = rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![CertificateDer::from(made.cert)], key.into())?;
    let config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port))?;
    let endpoint = Endpoint::new(EndpointConfig::default(), Some(config), socket, Arc::new(TokioRuntime))?;
    let connection = endpoint.accept().await.ok_or("no connection")?.await?;
    let mut stream = connection.accept_uni().await?;
    let mut received = 0;
    while let Some(part) = stream.read_chunk(usize::MAX, true).await? {
        received += part.bytes.len() as u64;
    }
    connection.closed().await;
    Ok(received)
}

/// Sends data for some time. Returns the number of bytes sent.
#[expect(clippy::disallowed_methods, reason = "a real program uses the machine's clock")]
async fn send(server: SocketAddr, time: Duration, controller: Option<&str>) -> Result<u64> {
    let provider = Arc::new(ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anyone(provider)))
        .with_no_client_auth();
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    if let Some(name) = controller {
        let factory = Factory::named(name)
            .map_err(|problem| format!("found {}, expected {}", problem.found, problem.expected))?;
        let mut transport = TransportConfig::default();
        transport.congestion_controller_factory(Arc::new(factory));
        config.transport_config(Arc::new(transport));
    }
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let mut endpoint = Endpoint::new(EndpointConfig::default(), None, socket, Arc::new(TokioRuntime))?;
    endpoint.set_default_client_config(config);
    let begin = Instant::now();
    let connection = endpoint.connect(server, NAME)?.await?;
    let mut stream = connection.open_uni().await?;
    let (data, mut sent) = ([0; 16_384], 0);
    while begin.elapsed() < time {
        stream.write_all(&data).await?;
        sent += data.len() as u64;
    }
    stream.finish()?;
    stream.stopped().await?;
    connection.close(0u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(sent)
}

fn run(arguments: &[&str]) -> Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match arguments {
        ["server", port] => {
            let received = runtime.block_on(serve(port.parse()?))?;
            Ok(format!("received {received} bytes"))
        }
        ["client", address, port, seconds, controller @ ..] if controller.len() < 2 => {
            let server = SocketAddr::new(address.parse::<IpAddr>()?, port.parse()?);
            let time = Duration::try_from_secs_f64(seconds.parse()?)?;
            let sent = runtime.block_on(send(server, time, controller.first().copied()))?;
            Ok(format!("sent {sent} bytes"))
        }
        _ => Err(USAGE.into()),
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("transfer: {error}");
            ExitCode::from(2)
        }
    }
}
