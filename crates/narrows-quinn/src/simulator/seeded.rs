//! Generates connection IDs and keys from a seed, so that packets are bit-for-bit reproducible.

use std::sync::Arc;
use std::time::Duration;

use narrows_sim::model::Random;
use quinn_proto::crypto::{AeadKey, CryptoError, HandshakeTokenKey, HmacKey};
use quinn_proto::{ConnectionId, ConnectionIdGenerator, EndpointConfig};

/// Bytes of a connection ID. This is quinn's default.
const CONNECTION_ID_BYTES: usize = 8;

/// Fills `bytes` with random values.
pub(super) fn fill(random: &mut Random, bytes: &mut [u8]) {
    for chunk in bytes.chunks_mut(8) {
        let bits = random.bits().to_le_bytes();
        chunk.copy_from_slice(&bits[..chunk.len()]);
    }
}

/// Returns the configuration of an endpoint whose random values come from `random`.
pub(super) fn endpoint_config(random: &mut Random) -> EndpointConfig {
    let mut seed = [0; 32];
    fill(random, &mut seed);
    let mut config = EndpointConfig::new(Arc::new(Key(random.bits())));
    config.rng_seed(Some(seed));
    let ids = Random::scattered(random.bits(), 0);
    config.cid_generator(move || Box::new(SeededConnectionIds(ids.clone())));
    config
}

struct SeededConnectionIds(Random);

impl ConnectionIdGenerator for SeededConnectionIds {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut bytes = [0; CONNECTION_ID_BYTES];
        fill(&mut self.0, &mut bytes);
        ConnectionId::new(&bytes)
    }

    fn cid_len(&self) -> usize {
        CONNECTION_ID_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// A key for tokens. No attacker exists in a simulation, so a hash is sufficient.
pub(super) struct Key(pub(super) u64);

impl HmacKey for Key {
    fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
        let hash = data.iter().fold(self.0, |hash, &byte| Random::scattered(hash, byte.into()).bits());
        fill(&mut Random::scattered(hash, 0), signature_out);
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
