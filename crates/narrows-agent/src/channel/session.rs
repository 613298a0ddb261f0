//! A state machine for one connection, without I/O. It converts received bytes into messages, and message bodies into
//! lines to send.

use std::str;

use narrows_channel::{ALIVE, GREETING_MAX, LINE_MAX, VERSION};
use narrows_control::rate::Message;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a connection was closed.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Refusal {
    /// A received line is longer than allowed.
    #[error("a line of more than {0} bytes")]
    TooLong(usize),
    /// A received line is not JSON or not part of the protocol.
    #[error("a malformed line ({0}), expected a message of the protocol")]
    Malformed(String),
    /// The answer to the greeting has an unsupported version, or is not from a controller.
    #[error("an answer of version {version} from {role:?}, expected version {VERSION} from a controller")]
    NotAController {
        /// The version in the answer.
        version: u32,
        /// The role in the answer.
        role: String,
    },
    /// The controller refuses this agent. The text is its reason.
    #[error("the controller refuses this agent: {0}")]
    Refused(String),
}

#[derive(Serialize)]
struct Greeting<'a> {
    narrows: u32,
    role: &'static str,
    name: &'a str,
}

#[derive(Deserialize)]
struct Answer {
    narrows: u32,
    #[serde(default)]
    role: String,
    #[serde(default)]
    name: String,
    refused: Option<String>,
}

/// The agent's end of one connection.
#[derive(Debug)]
pub struct Session {
    name: String,
    /// The controller's name, after it has accepted the agent.
    controller: Option<String>,
    /// Bytes received since the end of the last line.
    partial: Vec<u8>,
}

impl Session {
    /// Creates the session of a new connection. `name` is the agent's name.
    pub fn new(name: &str) -> Self {
        Session { name: name.to_owned(), controller: None, partial: Vec::new() }
    }

    /// Returns the first line to send.
    pub fn greeting(&self) -> String {
        line_of(&Greeting { narrows: VERSION, role: "agent", name: &self.name })
    }

    /// Returns whether the controller has accepted the agent. Before this, the agent may send only the greeting.
    pub fn is_open(&self) -> bool {
        self.controller.is_some()
    }

    /// Returns the controller's name, or an empty string until the controller has accepted the agent.
    pub fn controller(&self) -> &str {
        self.controller.as_deref().unwrap_or_default()
    }

    /// Returns `body` as one line of JSON, or `None` if the controller has not accepted this agent yet.
    pub fn line<T: Serialize>(&self, body: &T) -> Option<String> {
        self.is_open().then(|| line_of(body))
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
        let most = if self.is_open() { LINE_MAX } else { GREETING_MAX };
        if self.partial.len() + bytes.len() >= most {
            return Err(Refusal::TooLong(most));
        }
        self.partial.extend_from_slice(bytes);
        Ok(())
    }

    fn on_line(&mut self, line: &[u8], out: &mut Vec<Message>) -> Result<(), Refusal> {
        let malformed = |e: &dyn std::fmt::Display| Refusal::Malformed(e.to_string());
        let text = str::from_utf8(line).map_err(|e| malformed(&e))?;
        if self.controller.is_none() {
            let answer = serde_json::from_str(text).map_err(|e| malformed(&e))?;
            self.controller = Some(accepted(answer)?);
            return Ok(());
        }
        match serde_json::from_str(text) {
            Ok(message) => out.push(message),
            // The controller is authentic. If it is newer than this agent, it may send bodies that this agent does not
            // know, so ignore them.
            Err(_) if text == ALIVE => {}
            Err(error) => {
                serde_json::from_str::<IgnoredAny>(text).map_err(|e| malformed(&e))?;
                tracing::debug!(%error, "unknown body from the controller");
            }
        }
        Ok(())
    }
}

fn accepted(answer: Answer) -> Result<String, Refusal> {
    match answer.refused {
        Some(reason) => Err(Refusal::Refused(reason.chars().filter(|c| !c.is_control()).take(200).collect())),
        None if answer.narrows == VERSION && answer.role == "controller" => Ok(answer.name),
        None => Err(Refusal::NotAController { version: answer.narrows, role: answer.role }),
    }
}

fn line_of<T: Serialize>(value: &T) -> String {
    // Strings and numbers always have a JSON form.
    let mut text = serde_json::to_string(value).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
