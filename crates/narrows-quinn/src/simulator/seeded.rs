//! SeededConnectionIds and keys from a seed, so that runs are reproducible to the byte.

use std::sync::Arc;
use std::time::Duration;

use quinn_proto::crypto::{AeadKey, CryptoError, HandshakeTokenKey, HmacKey};
use quinn_proto::{ConnectionId, ConnectionIdGenerator, EndpointConfig};

/// Bytes of a connection ID, quinn's default.
const CONNECTION_ID_BYTES: usize = 8;

/// A stream of random values (SplitMix64; Steele, Lea and Flood, OOPSLA 2014, figure 16).
#[derive(Copy, Clone, Debug)]
pub(super) struct Seeded(u64);

impl Seeded {
    pub(super) fn new(seed: u64) -> Self {
        Seeded(seed)
    }

    pub(super) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub(super) fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let random = self.bits().to_le_bytes();
            chunk.copy_from_slice(&random[..chunk.len()]);
        }
    }
}

/// Returns the configuration of an endpoint whose random values come from `seeded`.
pub(super) fn endpoint_config(seeded: &mut Seeded) -> EndpointConfig {
    let mut seed = [0; 32];
    seeded.fill(&mut seed);
    let mut config = EndpointConfig::new(Arc::new(Key(seeded.bits())));
    config.rng_seed(Some(seed));
    let ids = Seeded(seeded.bits());
    config.cid_generator(move || Box::new(SeededConnectionIds(ids)));
    config
}

struct SeededConnectionIds(Seeded);

impl ConnectionIdGenerator for SeededConnectionIds {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut bytes = [0; CONNECTION_ID_BYTES];
        self.0.fill(&mut bytes);
        ConnectionId::new(&bytes)
    }

    fn cid_len(&self) -> usize {
        CONNECTION_ID_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// A key for tokens. A simulated connection has no attackers, so a hash is sufficient.
pub(super) struct Key(pub(super) u64);

impl HmacKey for Key {
    fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
        let hash = data.iter().fold(self.0, |hash, &byte| Seeded(hash ^ u64::from(byte)).bits());
        Seeded(hash).fill(signature_out);
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut expected = vec![0; signature.len()];
        self.sign(data, &mut expected);
        if expected == signature { Ok(()) } else { Err(CryptoError) }
    }
}

impl HandshakeTokenKey for Key {
    fn aead_from_hkdf(&self, _random_bytes: &[u8]) -> Box<dyn AeadKey> {
        Box::new(NoTokens)
    }
}

/// Refuses to seal a token. The servers do not use Retry and send no NEW_TOKEN frames (`Flow::new`).
struct NoTokens;

impl AeadKey for NoTokens {
    fn seal(&self, _data: &mut Vec<u8>, _additional_data: &[u8]) -> Result<(), CryptoError> {
        Err(CryptoError)
    }

    fn open<'a>(&self, _data: &'a mut [u8], _additional_data: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        Err(CryptoError)
    }
}
