//! The client's end of the status socket.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::Snapshot;
use super::server::Request;

/// The agent's answer to a request that it refuses.
#[derive(Deserialize)]
struct Refusal {
    error: String,
}

/// An iterator over the snapshots of an agent.
#[derive(Debug)]
pub struct Client {
    lines: io::Lines<BufReader<UnixStream>>,
}

impl Client {
    /// Connects to the agent's socket at `path` and sends the request.
    pub fn connect(path: &Path, request: &Request) -> io::Result<Client> {
        let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()));
        let mut stream = UnixStream::connect(path).map_err(named)?;
        writeln!(stream, "{}", serde_json::to_string(request)?)?;
        Ok(Client { lines: BufReader::new(stream).lines() })
    }
}

impl Iterator for Client {
    type Item = io::Result<Snapshot>;

    /// Returns the next snapshot. Returns `None` after the agent has ended, or after the only snapshot of a single
    /// request.
    fn next(&mut self) -> Option<Self::Item> {
        let line = self.lines.next()?;
        Some(line.and_then(|line| match serde_json::from_str::<Refusal>(&line) {
            Ok(Refusal { error }) => Err(io::Error::other(error)),
            Err(_) => Ok(serde_json::from_str(&line)?),
        }))
    }
}

/// Returns the sockets of agents in `folder`, including those of dead agents.
pub fn sockets_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_socket = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "sock");
    let mut found: Vec<_> = entries.map(|entry| entry.path()).filter(is_socket).collect();
    found.sort();
    found
}
