//! Authentication of the channel: a shared secret, a key for each connection, a MAC on each line.
//!
//! K = HMAC-SHA256(secret, "narrows-1" || controller's nonce || agent's nonce || controller's name || 0 ||
//! agent's name), nonces as their 32 bytes. A line's MAC is HMAC-SHA256(K, role || 0 || decimal sequence
//! number || 0 || body). The role makes a line invalid if it is sent back to its author. The nonces give each
//! connection another key. The names tie the key to both ends' greetings. An agent's name contains no 0. The sequence
//! numbers protect the order of the lines. tests/vectors/channel.json has examples for this and for the Python side.

use std::fmt;
use std::fs;
use std::path::Path;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Bytes of a nonce and of a MAC.
pub const SIZE: usize = 32;
/// Shortest secret: as long as the MAC (RFC 2104 section 3).
pub const SECRET_MIN: usize = 32;

/// The shared secret. With an empty secret nothing is authenticated, which is allowed on loopback only.
#[derive(Clone, Default)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Reads a file of at least 64 hexadecimal digits. White space around the digits is allowed.
    ///
    /// # Errors
    /// One line: the file, what was found, what was expected.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        Secret::parse(&text).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// Reads the secret from text.
    ///
    /// # Errors
    /// The text found and the text expected; never the secret itself.
    pub fn parse(text: &str) -> Result<Self, String> {
        let would_do = "expected at least 64 hexadecimal digits, e.g. of 'openssl rand -hex 32'";
        let Some(bytes) = from_hex(text.trim()) else {
            return Err(format!("found something that is not hexadecimal, {would_do}"));
        };
        if bytes.len() < SECRET_MIN {
            return Err(format!("found {} digits, {would_do}", bytes.len() * 2));
        }
        Ok(Secret(bytes))
    }

    /// Whether there is no secret.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "Secret(none)" } else { "Secret(...)" })
    }
}

/// An end of the channel.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// The switch's agent, which connects.
    Agent,
    /// The controller, which listens.
    Controller,
}

impl Role {
    /// The role's name on the wire.
    pub const fn word(self) -> &'static str {
        match self {
            Role::Agent => "agent",
            Role::Controller => "controller",
        }
    }
}

/// One end's greeting.
#[derive(Copy, Clone, Debug)]
pub struct End<'a> {
    /// Its name.
    pub name: &'a str,
    /// A fresh random nonce.
    pub nonce: &'a [u8; SIZE],
}

/// The key of one connection.
#[derive(Clone)]
pub struct Key(Hmac<Sha256>);

impl Key {
    /// Derives the key from the secret and both greetings.
    pub fn derive(secret: &Secret, controller: End<'_>, agent: End<'_>) -> Self {
        let mut mac = keyed(&secret.0);
        mac.update(b"narrows-1");
        mac.update(controller.nonce);
        mac.update(agent.nonce);
        mac.update(controller.name.as_bytes());
        mac.update(&[0]);
        mac.update(agent.name.as_bytes());
        Key(keyed(&mac.finalize().into_bytes()))
    }

    fn over(&self, role: Role, seq: u64, body: &str) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        mac.update(role.word().as_bytes());
        mac.update(&[0]);
        mac.update(seq.to_string().as_bytes());
        mac.update(&[0]);
        mac.update(body.as_bytes());
        mac
    }

    /// The MAC of a line, in hexadecimal.
    pub fn mac(&self, role: Role, seq: u64, body: &str) -> String {
        to_hex(&self.over(role, seq, body).finalize().into_bytes())
    }

    /// Whether `mac` is the MAC of this line, in constant time.
    pub fn verify(&self, role: Role, seq: u64, body: &str, mac: &str) -> bool {
        from_hex(mac).is_some_and(|mac| self.over(role, seq, body).verify_slice(&mac).is_ok())
    }
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    // HMAC takes a key of any length. The error is for other constructions.
    #[allow(clippy::expect_used, reason = "cannot fail, see above")]
    Hmac::new_from_slice(key).expect("HMAC takes any key")
}

/// Lower-case hexadecimal.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes of a hexadecimal string of even length.
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    let nibble = |c: &u8| char::from(*c).to_digit(16);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| u8::try_from(nibble(high)? << 4 | nibble(low)?).ok()).collect()
}

/// A nonce in hexadecimal, as in a line.
pub fn nonce(text: &str) -> Option<[u8; SIZE]> {
    from_hex(text)?.try_into().ok()
}
