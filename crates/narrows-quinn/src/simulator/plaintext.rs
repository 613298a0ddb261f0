//! Implements a handshake and packets with the sizes of TLS 1.3, but without TLS.
//!
//! Each handshake message consists of its length, the length of the transport parameters, the parameters, and zeros.
//! The zeros extend the message to the size that it has in TLS with one certificate. Packets are not encrypted, and
//! their authentication tag is zero.

use std::any::Any;
use std::sync::Arc;

use bytes::BytesMut;
use quinn_proto::crypto::{
    ClientConfig, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, ServerConfig,
    Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};

/// Sizes of the messages of TLS 1.3 (RFC 8446, section 4) with X25519, an ECDSA certificate of 500 bytes and SHA-256.
const CLIENT_HELLO_BYTES: usize = 280;
const SERVER_HELLO_BYTES: usize = 90;
/// Total size of EncryptedExtensions, Certificate, CertificateVerify and Finished.
const SERVER_FLIGHT_BYTES: usize = 760;
const FINISHED_BYTES: usize = 36;
/// Bytes of the two length fields of a message.
const LENGTHS_BYTES: usize = 4;
/// Bytes of the tag of AES-GCM. A sample for header protection has the same size (RFC 9001, sections 5.3 and 5.4).
const TAG_BYTES: usize = 16;

/// The configuration of both sides.
pub(super) struct Plaintext;

impl ClientConfig for Plaintext {
    fn start_session(
        self: Arc<Self>,
        _version: u32,
        _server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Box::new(PlainSession::new(Side::Client, params)))
    }
}

impl ServerConfig for Plaintext {
    fn initial_keys(&self, _version: u32, _dst_cid: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }

    fn retry_tag(&self, _version: u32, _orig_dst_cid: &ConnectionId, _packet: &[u8]) -> [u8; 16] {
        [0; TAG_BYTES]
    }

    fn start_session(self: Arc<Self>, _version: u32, params: &TransportParameters) -> Box<dyn Session> {
        Box::new(PlainSession::new(Side::Server, params))
    }
}

/// The next message that an end writes or waits for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Step {
    ClientHello,
    ServerHello,
    ServerFlight,
    Finished,
    Done,
}

impl Step {
    fn next(self) -> Step {
        match self {
            Step::ClientHello => Step::ServerHello,
            Step::ServerHello => Step::ServerFlight,
            Step::ServerFlight => Step::Finished,
            Step::Finished | Step::Done => Step::Done,
        }
    }

    fn writer(self) -> Side {
        match self {
            Step::ClientHello | Step::Finished => Side::Client,
            Step::ServerHello | Step::ServerFlight | Step::Done => Side::Server,
        }
    }

    fn bytes(self) -> usize {
        match self {
            Step::ClientHello => CLIENT_HELLO_BYTES,
            Step::ServerHello => SERVER_HELLO_BYTES,
            Step::ServerFlight => SERVER_FLIGHT_BYTES,
            Step::Finished => FINISHED_BYTES,
            Step::Done => 0,
        }
    }

    fn has_parameters(self) -> bool {
        matches!(self, Step::ClientHello | Step::ServerFlight)
    }
}

/// The handshake of one end.
struct PlainSession {
    side: Side,
    params: Vec<u8>,
    peer_params: Option<TransportParameters>,
    step: Step,
    /// Bytes of an incomplete message.
    received: Vec<u8>,
    /// Whether the client has new keys for quinn: handshake keys after ServerHello, 1-RTT keys after the server's flight.
    has_new_keys: bool,
}

impl PlainSession {
    fn new(side: Side, params: &TransportParameters) -> Self {
        let mut written = Vec::new();
        params.write(&mut written);
        PlainSession {
            side,
            params: written,
            peer_params: None,
            step: Step::ClientHello,
            received: Vec::new(),
            has_new_keys: false,
        }
    }

    fn write(&mut self, buf: &mut Vec<u8>) {
        let params = if self.step.has_parameters() { self.params.as_slice() } else { &[] };
        let length = self.step.bytes().max(LENGTHS_BYTES + params.len());
        let start = buf.len();
        buf.extend_from_slice(&(length as u16).to_be_bytes());
        buf.extend_from_slice(&(params.len() as u16).to_be_bytes());
        buf.extend_from_slice(params);
        buf.resize(start + length, 0);
    }

    /// Removes the next complete message from the received bytes, and returns it.
    fn message(&mut self) -> Option<Vec<u8>> {
        let [high, low, ..] = *self.received.as_slice() else { return None };
        let length = usize::from(u16::from_be_bytes([high, low])).max(LENGTHS_BYTES);
        (self.received.len() >= length).then(|| self.received.drain(..length).collect())
    }
}

impl Session for PlainSession {
    fn initial_keys(&self, _dst_cid: &ConnectionId, _side: Side) -> Keys {
        keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        match self.side {
            Side::Client => !matches!(self.step, Step::Finished | Step::Done),
            Side::Server => self.step != Step::Done,
        }
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.received.extend_from_slice(buf);
        let mut has_params = false;
        while let Some(message) = self.message() {
            if self.step == Step::Done || self.step.writer() == self.side {
                return Err(refused("a handshake message out of order"));
            }
            if self.step.has_parameters() {
                let length = usize::from(u16::from_be_bytes([message[2], message[3]]));
                let params = message.get(LENGTHS_BYTES..LENGTHS_BYTES + length);
                let mut params = params.ok_or_else(|| refused("a handshake message without parameters"))?;
                self.peer_params = Some(TransportParameters::read(self.side, &mut params)?);
                has_params = true;
            }
            self.has_new_keys |= self.side == Side::Client;
            self.step = self.step.next();
        }
        Ok(has_params)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer_params)
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        if self.step != Step::Done && self.step.writer() == self.side {
            self.write(buf);
            let gives_keys = self.step != Step::ClientHello;
            self.step = self.step.next();
            self.has_new_keys = false;
            return gives_keys.then(keys);
        }
        std::mem::take(&mut self.has_new_keys).then(keys)
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(keys().packet)
    }

    fn is_valid_retry(&self, _orig_dst_cid: &ConnectionId, _header: &[u8], _payload: &[u8]) -> bool {
        false
    }

    fn export_keying_material(
        &self,
        _output: &mut [u8],
        _label: &[u8],
        _context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

fn refused(reason: &str) -> TransportError {
    TransportError { code: TransportErrorCode::PROTOCOL_VIOLATION, frame: None, reason: reason.to_owned() }
}

fn keys() -> Keys {
    Keys {
        header: KeyPair { local: Box::new(PlainKey), remote: Box::new(PlainKey) },
        packet: KeyPair { local: Box::new(PlainKey), remote: Box::new(PlainKey) },
    }
}

/// A key for packets and headers that are not encrypted.
struct PlainKey;

impl HeaderKey for PlainKey {
    fn decrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    fn encrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        TAG_BYTES
    }
}

impl PacketKey for PlainKey {
    fn encrypt(&self, _packet: u64, buf: &mut [u8], _header_len: usize) {
        let tag = buf.len().saturating_sub(TAG_BYTES);
        buf[tag..].fill(0);
    }

    fn decrypt(&self, _packet: u64, _header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let length = payload.len().checked_sub(TAG_BYTES).ok_or(CryptoError)?;
        payload.truncate(length);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG_BYTES
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}
