//! What every agent needs beside its work: when to stop, who cleans up, who is told.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;

use crate::config::Common;
use crate::guard::{Charge, Guardian};
use crate::metrics::Metrics;
use crate::privileges;
use crate::status::Board;
use crate::status::server::{self, Server, path_of};
use crate::stop::Stop;

/// Given to an agent when it starts. It loads its programs, calls [`Services::ready`] and goes to work.
pub struct Services {
    /// Fields are dropped in this order: the guardian comes last, to find nothing left.
    open: Option<(Server, Option<Metrics>)>,
    /// When to stop.
    pub stop: Stop,
    /// Where to show what goes on.
    pub board: Arc<Board>,
    common: Common,
    /// To be charged with all that does not vanish by itself.
    pub guardian: Guardian,
}

impl Services {
    /// In the network namespace of the calling thread, before any other is started.
    pub(super) fn new(common: &Common) -> io::Result<Self> {
        // Before anything of a running agent's is touched.
        server::claim(&path_of(&common.name))?;
        let stop = Stop::new()?;
        let guardian = Guardian::start()?;
        Ok(Services { open: None, stop, board: Board::new(), common: common.clone(), guardian })
    }

    /// Everything is loaded: gives up privileges, opens the status socket and metrics, tells systemd.
    ///
    /// # Errors
    /// When an agent of this name runs already, or the metrics' address is taken.
    pub fn ready(&mut self) -> io::Result<()> {
        // Before the first thread: capabilities are per thread.
        privileges::drop_to(&privileges::RUNNING)?;
        let path = path_of(&self.common.name);
        let server = Server::start(&path, Arc::clone(&self.board))?;
        self.guardian.charge(&Charge::File(path))?;
        let metrics = match self.common.metrics {
            Some(address) => Some(Metrics::start(address, Arc::clone(&self.board))?),
            None => None,
        };
        self.open = Some((server, metrics));
        tracing::info!(event = "ready", name = self.common.name);
        tell_systemd("READY=1")
    }
}

/// sd_notify(3): a datagram to the socket that the environment names; without one there is nobody to tell.
fn tell_systemd(state: &str) -> io::Result<()> {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else { return Ok(()) };
    let address = match path.as_encoded_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(&path)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
}
