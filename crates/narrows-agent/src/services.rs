//! Services for every agent: the request to stop, clean-up after a crash, status, metrics and systemd notification.

use std::error::Error;
use std::io;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::thread;

use caps::Capability;

use crate::config::{Common, Config, Invalid, MetricsNetns, Plan};
use crate::events;
use crate::guard::{Charge, Guardian};
use crate::metrics::{self, Metrics};
use crate::privileges;
use crate::status::Board;
use crate::status::server::{self, Server, path_of};
use crate::stop::Stop;

/// Why an agent could not start or continue.
pub type Failure = Box<dyn Error + Send + Sync>;

/// A function that reads the configuration again.
pub(crate) type Source = Box<dyn Fn() -> Result<Config, Invalid>>;

/// The services of an agent. The agent loads its programs, calls [`Services::ready`] and then works.
pub struct Services {
    /// The status socket and the metrics, once [`Services::ready`] has opened them. Fields are dropped in the order of
    /// their declaration. The guardian is dropped last, when nothing is left for it to remove.
    open: Option<(Server, Option<Metrics>)>,
    /// Shows whether the agent was asked to stop.
    pub stop: Stop,
    /// Reads the configuration again. `None`: there is no configuration file.
    source: Option<Source>,
    /// Where the agent publishes its state.
    pub board: Arc<Board>,
    common: Common,
    /// The listening socket of the metrics, which is served after [`Services::ready`].
    listener: Option<TcpListener>,
    /// Removes the objects that would outlive the process. The agent registers them here.
    pub guardian: Guardian,
}

impl Services {
    /// Opens the metrics' socket, enters the agent's network namespace and starts the guardian. Call this before other
    /// threads start.
    pub(crate) fn new(common: &Common, source: Option<Source>) -> io::Result<Self> {
        // Check the name first, so that nothing changes if another agent with this name is running.
        server::claim(&path_of(&common.name))?;
        let bind = |netns| common.metrics.filter(|m| m.netns == netns).map(|m| metrics::bind(m.address));
        let mut listener = bind(MetricsNetns::Start).transpose()?;
        if let Some(netns) = &common.netns {
            netns.enter()?;
        }
        if listener.is_none() {
            listener = bind(MetricsNetns::Agent).transpose()?;
        }
        let stop = Stop::new(source.is_some())?;
        let guardian = Guardian::start()?;
        Ok(Services {
            open: None,
            stop,
            source,
            board: Board::new(),
            common: common.clone(),
            listener,
            guardian,
        })
    }

    /// Reads the configuration again after a SIGHUP, and returns the configuration in force from now on. `in_force`
    /// returns the present configuration. The log lists the keys that change and those that need a restart. Returns
    /// `None` if no SIGHUP has arrived, or if the file is invalid.
    pub fn reloaded(&self, in_force: impl FnOnce() -> Config) -> Option<Config> {
        let source = self.source.as_ref().filter(|_| self.stop.take_reload())?;
        let plan = match source() {
            Ok(new) => Plan::new(&in_force(), &new),
            Err(invalid) => {
                let error = invalid.to_string().replace('\n', "; ");
                tracing::error!(event = "reload-refused", error, "the old configuration stays in force");
                return None;
            }
        };
        events::set_level(&plan.config.common().log.level);
        tracing::info!(event = "reloaded", changed = plan.changed.join(" "));
        if !plan.restart.is_empty() {
            let keys = plan.restart.join(" ");
            tracing::warn!(
                event = "restart-needed",
                keys,
                "these keys keep their old values until the agent restarts"
            );
        }
        Some(plan.config)
    }

    /// Drops privileges, opens the status socket and metrics, and notifies systemd. Call this when everything is
    /// loaded. The calling thread keeps the capabilities in `reserve` ([`privileges::raise`]).
    ///
    /// # Errors
    /// If an agent of this name already runs.
    pub fn ready(&mut self, reserve: &[Capability]) -> io::Result<()> {
        let path = path_of(&self.common.name);
        let (listener, board) = (self.listener.take(), &self.board);
        // The threads that read requests must not have the capabilities in `reserve`. Threads inherit capabilities, so
        // this thread drops them and then starts the threads that read requests.
        let open = || -> io::Result<_> {
            privileges::drop_to(&privileges::RUNNING, &[])?;
            let server = Server::start(&path, Arc::clone(board))?;
            let metrics = listener.map(|listener| Metrics::start(listener, Arc::clone(board))).transpose()?;
            Ok((server, metrics))
        };
        let opened = thread::scope(|scope| scope.spawn(open).join());
        self.open = Some(opened.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        privileges::drop_to(&privileges::RUNNING, reserve)?;
        self.guardian.charge(&Charge::File(path))?;
        tracing::info!(event = "ready", name = self.common.name);
        notify_systemd("READY=1")
    }
}

/// Sends `state` to systemd, like sd_notify(3). Does nothing if the environment names no socket.
fn notify_systemd(state: &str) -> io::Result<()> {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else { return Ok(()) };
    let address = match path.as_encoded_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(&path)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
}
