//! The agent's end of the status socket: a request line in JSON, snapshots as JSON lines out.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
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

/// Where agents have their sockets.
pub const FOLDER: &str = "/run/narrows-agent";

/// A client that does not read is given up after this.
const PATIENCE: Duration = Duration::from_secs(5);
/// Clients at a time.
const CLIENTS: usize = 8;
/// Longest request line.
const REQUEST_MAX: u64 = 1024;

/// What a client asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// List at most this many flows.
    pub flows: usize,
    /// Milliseconds from one snapshot to the next; `None`: one will do.
    pub every_ms: Option<u64>,
    /// Links of ports, by interface, that have this rate from now on (as the configuration counts it, bytes/s).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub rates: BTreeMap<String, Rate>,
}

/// Socket of the agent called `name`.
pub fn path_of(name: &str) -> PathBuf {
    Path::new(FOLDER).join(format!("{name}.sock"))
}

/// The name is free.
///
/// # Errors
/// When an agent serves the socket.
pub fn claim(path: &Path) -> io::Result<()> {
    if UnixStream::connect(path).is_ok() {
        let text = format!("{}: an agent of this name is running", path.display());
        return Err(io::Error::new(io::ErrorKind::AddrInUse, text));
    }
    Ok(())
}

/// The socket of a running agent; dropping it removes it.
#[derive(Debug)]
pub struct Server {
    path: PathBuf,
}

impl Server {
    /// Serves the board at `path`. Only the owner (root) may connect. A socket that nobody listens on is replaced.
    ///
    /// # Errors
    /// When an agent serves it already, or the folder cannot be written.
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
        // The thread ends with the process; what matters is that the name is free.
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
            // A client that goes away is no event.
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
    let mut line = String::new();
    BufReader::new(&stream).take(REQUEST_MAX).read_line(&mut line)?;
    let request: Request = match serde_json::from_str(&line) {
        Ok(request) => request,
        Err(error) => return writeln!(stream, "{}", serde_json::json!({ "error": error.to_string() })),
    };
    if !request.rates.is_empty() {
        board.ask_rates(request.rates);
    }
    // The first look wakes the loop's interest; what is on the board by then may be old.
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
