//! Fuzzes the agent's end of its connection to the controller: TLS, the greeting and the lines.
//!
//! The input is a list of actions of the controller. The controller can send lines, bytes that are not a TLS record,
//! changed records, and pieces of records. The first byte selects whether TLS is used, and whether the handshake is
//! completed before the first action.
#![no_main]

use std::cell::OnceCell;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;
use std::{env, fs, process};

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use narrows_agent::channel::keys::{self, KeyFiles};
use narrows_agent::channel::session::Session;
use narrows_agent::channel::transport::Transport;
use narrows_control::rate::Message;
use narrows_fuzz::bounded;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig, ServerConnection};

const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const STEPS_MAX: usize = 64;
const REPEAT_MAX_LOG2: u8 = 13;
/// Memory limit for one input. The buffer for a line doubles when it grows, so the buffer takes up to twice the longest
/// line. The sent text takes as much memory again, and the rest of the limit is for TLS.
const MEMORY_MAX: usize = 8 << 20;

thread_local! {
    static KEYS: OnceCell<(Arc<ClientConfig>, Arc<ServerConfig>)> = const { OnceCell::new() };
}

/// The configurations of an agent and of a controller that trust each other.
fn configurations() -> (Arc<ClientConfig>, Arc<ServerConfig>) {
    let folder = env::temp_dir().join(format!("narrows-fuzz-{}", process::id()));
    fs::create_dir(&folder).expect("a folder");
    let (agent_key, agent) = keys::create("a", &folder).expect("a key");
    let (key, certificate) = keys::create("c", &folder).expect("a key");
    let files = KeyFiles { key: agent_key, certificate: agent.clone(), trusted: certificate.clone() };
    let both = (files.read().expect("keys"), controller(&certificate, &key, &agent));
    fs::remove_dir_all(&folder).expect("the folder is removed");
    both
}

fn controller(own: &Path, own_key: &Path, trusted: &Path) -> Arc<ServerConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let certificate = |path: &Path| CertificateDer::from_pem_file(path).expect("a certificate");
    let mut roots = RootCertStore::empty();
    roots.add(certificate(trusted)).expect("a root");
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
    let key = PrivateKeyDer::from_pem_file(own_key).expect("a key");
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_client_cert_verifier(verifier.expect("a verifier"))
        .with_single_cert(vec![certificate(own)], key)
        .expect("a key that fits");
    config.send_tls13_tickets = 0;
    Arc::new(config)
}

/// The agent's end, and the controller at the other end.
struct Ends {
    agent: Transport,
    session: Session,
    controller: Option<ServerConnection>,
    messages: Vec<Message>,
    /// The text that the controller sent in records.
    sent: Vec<u8>,
    /// Number of bytes of `sent` that the agent has read.
    read: usize,
}

impl Ends {
    /// Passes bytes to the agent's end in the same way as the agent's worker. Returns `Err` if the agent closes the
    /// connection.
    fn receive(&mut self, wire: &[u8]) -> std::result::Result<(), ()> {
        let mut lines = Vec::new();
        let received = self.agent.receive(wire, &mut lines);
        if self.controller.is_some() {
            // Even if the input changes records, the agent must read only text that the controller sent.
            assert!(self.sent[self.read..].starts_with(&lines), "the agent reads {lines:?}");
            self.read += lines.len();
        }
        let shown = received.map_err(|refusal| refusal.to_string());
        let shown = shown.and_then(|()| {
            self.session.receive(&lines, &mut self.messages).map_err(|refusal| refusal.to_string())
        });
        assert!(self.session.is_open() || self.messages.is_empty(), "a message before the answer");
        shown.map_err(|text| assert!(text.len() < 8192, "a refusal of {} bytes", text.len()))
    }

    /// Lets the two ends finish their handshake.
    fn shake_hands(&mut self) {
        for _ in 0..4 {
            let mut wire = Vec::new();
            self.agent.take(&mut wire);
            let Some(controller) = &mut self.controller else { return };
            let mut rest = &wire[..];
            while !rest.is_empty() {
                controller.read_tls(&mut rest).expect("room");
                controller.process_new_packets().expect("an agent that the controller trusts");
            }
            let wire = written(controller);
            self.receive(&wire).expect("a controller that the agent trusts");
        }
    }

    /// Returns the bytes that the controller sends for this text.
    fn record(&mut self, text: &[u8]) -> Vec<u8> {
        use std::io::Write;
        match &mut self.controller {
            Some(controller) if !controller.is_handshaking() => {
                controller.writer().write_all(text).expect("a buffer without a limit");
                self.sent.extend_from_slice(text);
                written(controller)
            }
            Some(_) => Vec::new(),
            None => text.to_vec(),
        }
    }
}

fn written(controller: &mut ServerConnection) -> Vec<u8> {
    let mut wire = Vec::new();
    while controller.wants_write() {
        controller.write_tls(&mut wire).expect("memory");
    }
    wire
}

fn run(input: &mut Unstructured<'_>, agent: &Arc<ClientConfig>, server: &Arc<ServerConfig>) -> Result<()> {
    let setting: u8 = input.arbitrary()?;
    let with_tls = setting & 1 != 0;
    let controller = with_tls.then(|| ServerConnection::new(server.clone()).expect("a connection"));
    let mut ends = Ends {
        agent: Transport::new(with_tls.then_some(agent), ADDRESS).expect("randomness"),
        session: Session::new("a"),
        controller,
        messages: Vec::new(),
        sent: Vec::new(),
        read: 0,
    };
    ends.agent.send(ends.session.greeting().as_bytes());
    if setting & 2 != 0 {
        ends.shake_hands();
    }
    if setting & 4 != 0 {
        let answer = ends.record(b"{\"narrows\":2,\"role\":\"controller\",\"name\":\"c\"}\n");
        if ends.receive(&answer).is_err() {
            return Ok(());
        }
    }
    for _ in 0..STEPS_MAX {
        let kind: u8 = input.arbitrary()?;
        let length = usize::from(input.arbitrary::<u8>()?);
        let text = input.bytes(length.min(input.len()))?.to_vec();
        // Many repetitions make the text longer than the maximum length of a line.
        let times = if kind & 3 == 2 { 1 << (kind >> 4).min(REPEAT_MAX_LOG2) } else { 1 };
        for _ in 0..times {
            let mut wire = match kind & 3 {
                0 => ends.record(&[&text, &b"\n"[..]].concat()),
                1 | 2 => ends.record(&text),
                _ => text.clone(),
            };
            if kind & 4 != 0 && !wire.is_empty() {
                let at = usize::from(input.arbitrary::<u16>()?) % wire.len();
                wire[at] ^= 1 << (kind >> 5);
            }
            let piece = if kind & 8 != 0 { 7 } else { wire.len().max(1) };
            for part in wire.chunks(piece) {
                if ends.receive(part).is_err() {
                    return Ok(());
                }
            }
        }
        ends.session.line(&serde_json::Value::Null);
    }
    Ok(())
}

fuzz_target!(|input: &[u8]| {
    KEYS.with(|keys| {
        let (agent, controller) = keys.get_or_init(configurations);
        bounded(MEMORY_MAX, || {
            // An input may end in the middle of a step. This is not an error.
            let _ = run(&mut Unstructured::new(input), agent, controller);
        });
    });
});
