//! Attacks on the connection, in memory. The tests change the bytes between the two ends.

use std::net::Ipv4Addr;
use std::path::Path;

use proptest::prelude::*;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};

use super::super::keys::{self, KeyFiles};
use super::*;

const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The configurations of an agent `a` and of a controller `c` that trust each other.
struct Ends {
    agent: Arc<ClientConfig>,
    controller: Arc<ServerConfig>,
}

fn controller(own: &Path, own_key: &Path, trusted: &Path) -> Arc<ServerConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let certificate = |path: &Path| CertificateDer::from_pem_file(path).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate(trusted)).unwrap();
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.unwrap())
        .with_single_cert(vec![certificate(own)], PrivateKeyDer::from_pem_file(own_key).unwrap())
        .unwrap();
    config.send_tls13_tickets = 0;
    Arc::new(config)
}

fn ends() -> Ends {
    let folder = tempfile::tempdir().unwrap();
    let (agent_key, agent) = keys::create("a", folder.path()).unwrap();
    let (key, certificate) = keys::create("c", folder.path()).unwrap();
    let files = KeyFiles { key: agent_key, certificate: agent.clone(), trusted: certificate.clone() };
    Ends { agent: files.read().unwrap(), controller: controller(&certificate, &key, &agent) }
}

/// A connection after its handshake.
struct Connected {
    agent: Transport,
    controller: ServerConnection,
}

impl Ends {
    fn connect(&self) -> Result<Connected, TlsRefusal> {
        let mut agent = Transport::new(Some(&self.agent), ADDRESS)?;
        let mut controller = ServerConnection::new(self.controller.clone()).unwrap();
        for _ in 0..4 {
            let mut wire = Vec::new();
            agent.take(&mut wire);
            let mut rest = &wire[..];
            while !rest.is_empty() {
                controller.read_tls(&mut rest).unwrap();
            }
            let refused = controller.process_new_packets().is_err();
            agent.receive(&of_controller(&mut controller), &mut Vec::new())?;
            assert!(!refused, "the controller refuses without an alert");
        }
        assert!(!controller.is_handshaking());
        Ok(Connected { agent, controller })
    }
}

fn of_controller(controller: &mut ServerConnection) -> Vec<u8> {
    let mut wire = Vec::new();
    while controller.wants_write() {
        controller.write_tls(&mut wire).unwrap();
    }
    wire
}

impl Connected {
    /// Returns the TLS record in which the controller sends this line.
    fn record(&mut self, line: &str) -> Vec<u8> {
        self.controller.writer().write_all(line.as_bytes()).unwrap();
        of_controller(&mut self.controller)
    }

    fn receive(&mut self, wire: &[u8]) -> Result<String, TlsRefusal> {
        let mut lines = Vec::new();
        self.agent.receive(wire, &mut lines)?;
        Ok(String::from_utf8(lines).unwrap())
    }
}

#[test]
fn lines_arrive_for_any_division_of_the_bytes() {
    let ends = ends();
    for cut in [1, 2, 7, 100, 100_000] {
        let mut both = ends.connect().unwrap();
        let long = "x".repeat(40_000);
        let wire = both.record(&long);
        let arrived: String = wire.chunks(cut).map(|piece| both.receive(piece).unwrap()).collect();
        assert_eq!(arrived, long);
        both.agent.send(b"of the agent");
        let mut wire = Vec::new();
        both.agent.take(&mut wire);
        assert!(!wire.windows(5).any(|bytes| bytes == b"agent"), "it is not encrypted");
        both.controller.read_tls(&mut &wire[..]).unwrap();
        both.controller.process_new_packets().unwrap();
        let mut read = [0; 100];
        let n = both.controller.reader().read(&mut read).unwrap();
        assert_eq!(&read[..n], b"of the agent");
    }
}

#[test]
fn a_repeated_record_is_refused() {
    let mut both = ends().connect().unwrap();
    let record = both.record("poll\n");
    assert_eq!(both.receive(&record).unwrap(), "poll\n");
    both.receive(&record).unwrap_err();
}

#[test]
fn a_missing_record_is_noticed() {
    let mut both = ends().connect().unwrap();
    let _lost = both.record("one\n");
    let second = both.record("two\n");
    both.receive(&second).unwrap_err();
}

#[test]
fn records_in_another_order_are_refused() {
    let mut both = ends().connect().unwrap();
    let (first, second) = (both.record("one\n"), both.record("two\n"));
    both.receive(&[second, first].concat()).unwrap_err();
}

#[test]
fn own_records_sent_back_are_refused() {
    let mut both = ends().connect().unwrap();
    both.agent.send(b"report\n");
    let mut own = Vec::new();
    both.agent.take(&mut own);
    both.receive(&own).unwrap_err();
    // The agent must also refuse its own ClientHello.
    let mut fresh = Transport::new(Some(&ends().agent), ADDRESS).unwrap();
    let mut hello = Vec::new();
    fresh.take(&mut hello);
    fresh.receive(&hello, &mut Vec::new()).unwrap_err();
}

#[test]
fn records_of_another_connection_are_refused() {
    let ends = ends();
    let (mut one, mut other) = (ends.connect().unwrap(), ends.connect().unwrap());
    let record = other.record("poll\n");
    one.receive(&record).unwrap_err();
}

#[test]
fn an_unknown_controller_is_refused() {
    let (one, other) = (ends(), ends());
    let mixed = Ends { agent: one.agent.clone(), controller: other.controller.clone() };
    let refused = mixed.connect().err().unwrap();
    assert!(matches!(refused, TlsRefusal::Stranger), "{refused:?}");
}

/// The controller's certificate is public, so anyone can present it.
#[test]
fn the_right_certificate_with_another_key_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (key, certificate) = keys::create("a", folder.path()).unwrap();
    let (_, trusted) = keys::create("c", folder.path()).unwrap();
    let (other_key, _) = keys::create("d", folder.path()).unwrap();
    let files = KeyFiles { key, certificate: certificate.clone(), trusted: trusted.clone() };
    // rustls refuses to build such a server from files, so pass the key as a signer.
    let provider = rustls::crypto::ring::default_provider();
    let signer =
        provider.key_provider.load_private_key(PrivateKeyDer::from_pem_file(other_key).unwrap()).unwrap();
    let chain = vec![CertificateDer::from_pem_file(trusted).unwrap()];
    let stolen = rustls::sign::CertifiedKey::new(chain, signer);
    let config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(stolen)));
    let refused =
        Ends { agent: files.read().unwrap(), controller: Arc::new(config) }.connect().err().unwrap();
    assert!(matches!(refused, TlsRefusal::Stranger), "{refused:?}");
}

#[test]
fn an_agent_that_the_controller_does_not_know_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (key, certificate) = keys::create("c", folder.path()).unwrap();
    let (agent_key, agent) = keys::create("a", folder.path()).unwrap();
    let (_, stranger) = keys::create("b", folder.path()).unwrap();
    let files = KeyFiles { key: agent_key, certificate: agent, trusted: certificate.clone() };
    let mixed = Ends { agent: files.read().unwrap(), controller: controller(&certificate, &key, &stranger) };
    let refused = mixed.connect().err().unwrap();
    assert!(matches!(refused, TlsRefusal::NotTrusted), "{refused:?}");
}

#[test]
fn a_controller_without_tls_is_refused() {
    let ends = ends();
    let mut with = Transport::new(Some(&ends.agent), ADDRESS).unwrap();
    let answer = b"{\"narrows\":2,\"role\":\"controller\",\"name\":\"c\"}\n";
    let refused = with.receive(answer, &mut Vec::new()).unwrap_err();
    assert!(matches!(refused, TlsRefusal::Plain), "{refused:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// A record begins with three bytes for a type and a version. These bytes have no effect, because the real type is
    /// encrypted with the content (RFC 8446, 5.1 and 5.2). rustls authenticates the values that the bytes must have,
    /// not the received values. A change of these bytes may pass unnoticed, but does no harm.
    #[test]
    fn a_changed_bit_is_noticed(at in 0usize..10_000, bit in 0u8..8) {
        let mut both = ends().connect().unwrap();
        let mut record = both.record("congestion at port 3\n");
        let at = at % record.len();
        record[at] ^= 1 << bit;
        record.append(&mut both.record("poll\n"));
        // If the length has become larger, the agent waits for more bytes. It must not accept any line.
        let arrived = both.receive(&record).unwrap_or_default();
        let unchanged = at < 3 && arrived == "congestion at port 3\npoll\n";
        prop_assert!(arrived.is_empty() || unchanged, "{at}: {arrived:?}");
    }

    #[test]
    fn random_bytes_never_yield_a_line(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let ends = ends();
        let mut lines = Vec::new();
        let _ = Transport::new(Some(&ends.agent), ADDRESS).unwrap().receive(&bytes, &mut lines);
        let _ = ends.connect().unwrap().agent.receive(&bytes, &mut lines);
        prop_assert!(lines.is_empty());
    }
}
