//! The agent's end of the status socket. Requests and snapshots are lines of JSON.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use std::{fs, thread};

use narrows_control::units::Rate;
use serde::{Deserialize, Serialize};

use super::Board;
use crate::clock;

/// Folder of the agents' sockets.
pub const FOLDER: &str = "/run/narrows-agent";

/// A client is disconnected if it does not send its request, or does not read an answer, for this time.
const PATIENCE: Duration = Duration::from_secs(5);
/// Largest number of clients at a time.
const CLIENTS: usize = 8;
/// Longest request line, in bytes.
const REQUEST_MAX: u64 = 1024;

/// A client's request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Largest number of flows to list.
    pub flows: usize,
    /// Milliseconds between snapshots. `None`: a single snapshot.
    pub every_ms: Option<u64>,
    /// New link rates by interface, in bytes/s. A rate here means the same as a port's rate in the configuration.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub rates: BTreeMap<String, Rate>,
}

/// Returns the path of the socket of the agent `name`.
pub fn path_of(name: &str) -> PathBuf {
    Path::new(FOLDER).join(format!("{name}.sock"))
}

/// Checks that no running agent uses the socket.
///
/// # Errors
/// If an agent answers on the socket.
pub fn claim(path: &Path) -> io::Result<()> {
    if UnixStream::connect(path).is_ok() {
        let text = format!("{}: an agent of this name is running", path.display());
        return Err(io::Error::new(io::ErrorKind::AddrInUse, text));
    }
    Ok(())
}

/// The socket of a running agent. Dropping this value removes the socket.
#[derive(Debug)]
pub struct Server {
    path: PathBuf,
}

impl Server {
    /// Serves the board's snapshots at the socket `path`. Only the owner (root) can connect. Replaces a socket on which
    /// no agent listens any more.
    ///
    /// # Errors
    /// If an agent already serves this socket, or if the folder cannot be written.
    pub fn start(path: &Path, board: Arc<Board>) -> io::Result<Server> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        claim(path)?;
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        let serve = move || accept(&listener, &board);
        thread::Builder::new().name("status".into()).spawn(serve)?;
        Ok(Server { path: path.to_owned() })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server's thread ends with the process. Only the socket's name must become free here.
        let _ = fs::remove_file(&self.path);
    }
}

fn accept(listener: &UnixListener, board: &Arc<Board>) {
    let clients = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming().flatten() {
        if clients.fetch_add(1, Ordering::Relaxed) >= CLIENTS {
            clients.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (board, mine) = (Arc::clone(board), Arc::clone(&clients));
        let serve = move || {
            // The client may have closed the connection, which is no error.
            let _ = answer(stream, &board);
            mine.fetch_sub(1, Ordering::Relaxed);
        };
        if thread::Builder::new().name("status-client".into()).spawn(serve).is_err() {
            clients.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn answer(mut stream: UnixStream, board: &Board) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let request = match read_request(BufReader::new(&stream))? {
        Ok(request) => request,
        Err(error) => return refuse(&mut stream, &error),
    };
    if !request.rates.is_empty()
        && let Err(error) = board.request_rates(request.rates, PATIENCE)
    {
        return refuse(&mut stream, &error);
    }
    // The snapshot on the board may be old, so this first call only asks the control loop for new snapshots.
    board.look(clock::now(), request.flows > 0);
    thread::sleep(Duration::from_millis(30));
    loop {
        let snapshot = board.look(clock::now(), request.flows > 0);
        let mut shown = super::Snapshot::clone(&snapshot);
        shown.flows.truncate(request.flows);
        serde_json::to_writer(&stream, &shown)?;
        stream.write_all(b"\n")?;
        match request.every_ms {
            Some(ms) => thread::sleep(Duration::from_millis(ms.clamp(50, 60_000))),
            None => return Ok(()),
        }
    }
}

/// Reads a client's line. Returns the request, or why it is refused.
///
/// # Errors
/// If the client sends no line in time, or a line that is not UTF-8.
pub fn read_request(stream: impl BufRead) -> io::Result<Result<Request, String>> {
    let mut line = String::new();
    stream.take(REQUEST_MAX).read_line(&mut line)?;
    Ok(serde_json::from_str(&line).map_err(|error| error.to_string()))
}

fn refuse(stream: &mut UnixStream, error: &str) -> io::Result<()> {
    writeln!(stream, "{}", serde_json::json!({ "error": error }))
}
