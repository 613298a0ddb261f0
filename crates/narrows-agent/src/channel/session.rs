//! One connection as a pure state machine: bytes in, messages out; bodies in, lines out.

use std::str;

use narrows_control::rate::Message;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::auth::{self, End, Key, Role, SIZE, Secret};

/// The longest line, including its end.
pub const LINE_MAX: usize = 1 << 20;
/// The version of the protocol.
const VERSION: u32 = 1;

/// Why a connection was closed.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Refusal {
    /// A line that is longer than allowed.
    #[error("a line of more than {LINE_MAX} bytes")]
    TooLong,
    /// Not JSON, or not a line of the protocol.
    #[error("a line that is not of the protocol: {0}")]
    Malformed(String),
    /// The first line has another version or comes from an agent.
    #[error("a greeting of version {version} from {role:?}, expected version {VERSION} from a controller")]
    NotAController {
        /// Version found.
        version: u32,
        /// Role found.
        role: String,
    },
    /// The controller sent our own nonce back.
    #[error("a greeting with our own nonce")]
    Reflected,
    /// A line is missing or repeated.
    #[error("found line {found}, expected line {expected}")]
    OutOfOrder {
        /// Expected number.
        expected: u64,
        /// Number found.
        found: u64,
    },
    /// The MAC is wrong: another secret, or a modified line or greeting.
    #[error("a wrong MAC on line {0}: the secrets differ, or the line was modified on the way")]
    WrongMac(u64),
}

#[derive(Serialize, Deserialize)]
struct Greeting {
    narrows: u32,
    role: String,
    name: String,
    nonce: String,
}

#[derive(Serialize, Deserialize)]
struct Line {
    seq: u64,
    body: String,
    mac: String,
}

/// The agent's end of one connection.
#[derive(Debug)]
pub struct Session {
    secret: Secret,
    name: String,
    nonce: [u8; SIZE],
    /// Set when the controller's greeting has arrived.
    open: Option<Open>,
    /// Bytes received since the end of the last line.
    partial: Vec<u8>,
}

struct Open {
    key: Key,
    controller: String,
    sent: u64,
    received: u64,
}

impl std::fmt::Debug for Open {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Open({:?}, sent {}, received {})", self.controller, self.sent, self.received)
    }
}

impl Session {
    /// Starts a connection of the agent of this name; `nonce` must be fresh randomness.
    pub fn new(secret: Secret, name: &str, nonce: [u8; SIZE]) -> Self {
        Session { secret, name: name.to_owned(), nonce, open: None, partial: Vec::new() }
    }

    /// The first line to send.
    pub fn greeting(&self) -> String {
        let greeting = Greeting {
            narrows: VERSION,
            role: Role::Agent.word().into(),
            name: self.name.clone(),
            nonce: auth::to_hex(&self.nonce),
        };
        line_of(&greeting)
    }

    /// Whether lines may be sent.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Lines received since the greeting. The first of these lines proves that the controller has
    /// the secret.
    pub fn is_authenticated(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.received > 0)
    }

    /// The controller's name; empty before its greeting.
    pub fn controller(&self) -> &str {
        self.open.as_ref().map_or("", |open| &open.controller)
    }

    /// The next line to send; `None` before the controller's greeting.
    pub fn seal<T: Serialize>(&mut self, body: &T) -> Option<String> {
        let open = self.open.as_mut()?;
        let body = serde_json::to_string(body).ok()?;
        let seq = open.sent;
        open.sent += 1;
        let mac = open.key.mac(Role::Agent, seq, &body);
        Some(line_of(&Line { seq, body, mac }))
    }

    /// Takes received bytes and appends their messages to `out`.
    ///
    /// # Errors
    /// If the connection must be closed.
    pub fn receive(&mut self, mut bytes: &[u8], out: &mut Vec<Message>) -> Result<(), Refusal> {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = bytes.split_at(end);
            self.hold(line)?;
            let line = std::mem::take(&mut self.partial);
            self.on_line(&line, out)?;
            bytes = rest.get(1..).unwrap_or_default();
        }
        self.hold(bytes)
    }

    fn hold(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        if self.partial.len() + bytes.len() >= LINE_MAX {
            return Err(Refusal::TooLong);
        }
        self.partial.extend_from_slice(bytes);
        Ok(())
    }

    fn on_line(&mut self, line: &[u8], out: &mut Vec<Message>) -> Result<(), Refusal> {
        let malformed = |e: &dyn std::fmt::Display| Refusal::Malformed(e.to_string());
        let text = str::from_utf8(line).map_err(|e| malformed(&e))?;
        let Some(open) = &mut self.open else {
            let greeting: Greeting = serde_json::from_str(text).map_err(|e| malformed(&e))?;
            self.open = Some(self.on_greeting(greeting)?);
            return Ok(());
        };
        let line: Line = serde_json::from_str(text).map_err(|e| malformed(&e))?;
        if line.seq != open.received {
            return Err(Refusal::OutOfOrder { expected: open.received, found: line.seq });
        }
        if !open.key.verify(Role::Controller, line.seq, &line.body, &line.mac) {
            return Err(Refusal::WrongMac(line.seq));
        }
        open.received += 1;
        // The line is authentic: a newer controller's body that this agent does not know is no reason to
        // disconnect.
        match serde_json::from_str(&line.body) {
            Ok(message) => out.push(message),
            Err(error) => tracing::debug!(%error, "unknown body from the controller"),
        }
        Ok(())
    }

    fn on_greeting(&self, greeting: Greeting) -> Result<Open, Refusal> {
        if greeting.narrows != VERSION || greeting.role != Role::Controller.word() {
            return Err(Refusal::NotAController { version: greeting.narrows, role: greeting.role });
        }
        let Some(theirs) = auth::nonce(&greeting.nonce) else {
            return Err(Refusal::Malformed(format!("nonce: expected {} hexadecimal digits", 2 * SIZE)));
        };
        if theirs == self.nonce {
            return Err(Refusal::Reflected);
        }
        let controller = End { name: &greeting.name, nonce: &theirs };
        let key = Key::derive(&self.secret, controller, End { name: &self.name, nonce: &self.nonce });
        Ok(Open { key, controller: greeting.name, sent: 0, received: 0 })
    }
}

fn line_of<T: Serialize>(value: &T) -> String {
    // Structures of strings and numbers always have a JSON form.
    let mut text = serde_json::to_string(value).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
