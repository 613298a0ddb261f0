//! The agent's connection to the SDN controller, in a thread of its own that never blocks the control loop.
//!
//! The protocol is lines of JSON ([`session`]) over TLS 1.3 ([`transport`]), with a key at each end ([`keys`]). The
//! agent connects to the first controller that accepts it, and reconnects with increasing pauses. While it is not
//! connected, message bodies wait in a queue, which drops the oldest bodies when it is full. Without a controller, the
//! agent uses its own detector of congestion (BRF-105).

pub mod keys;
pub mod session;
pub mod transport;
mod worker;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::{io, thread};

use narrows_channel::{PortInfo, Ports, ToController};
use narrows_control::rate::Message;
use nix::sys::eventfd::{EfdFlags, EventFd};
use thiserror::Error;

pub use keys::KeyFiles;

/// Largest number of message bodies that wait to be sent.
const WAITING_MAX: usize = 1024;
/// Largest number of received messages that wait for the control loop.
const ARRIVED_MAX: usize = 4096;

/// Addresses of the controllers, and the keys for the connection.
#[derive(Clone, Debug)]
pub struct ChannelConfig {
    /// The controllers. The agent uses the first one that accepts it. When a connection ends, the agent tries the next
    /// one.
    pub controllers: Vec<SocketAddr>,
    /// This agent's name, unique in the domain, e.g. the host's name.
    pub name: String,
    /// Files of the keys. With `None`, all controllers must be on this host.
    pub keys: Option<KeyFiles>,
}

/// Why a channel cannot be started.
#[derive(Debug, Error)]
pub enum ChannelError {
    /// A file of the keys is missing or invalid. One line: the file, what was found, what was expected.
    #[error("{0}")]
    Keys(String),
    /// A controller is on another host, but no keys are configured. Without keys, anyone on the path could read and
    /// send messages.
    #[error(
        "controller {0}: not on this host; give both ends a key (narrows-agent key), or use a loopback address"
    )]
    NoKeys(SocketAddr),
    /// The kernel did not create a thread or an event descriptor.
    #[error("channel: {0}")]
    Io(#[from] io::Error),
}

/// The state of the channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ChannelState {
    /// Not connected. No attempt has failed yet.
    #[default]
    Connecting,
    /// Not connected. The text says why a controller could not be reached, or why its connection was closed.
    Failed(String),
    /// Connected to the controller of this name.
    Connected(String),
}

/// The channel. Dropping this value closes the connection and ends the thread.
#[derive(Debug)]
pub struct Channel {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Data that the control loop and the channel's thread share. The lock is held only for a push or pop, not for I/O.
#[derive(Debug)]
struct Shared {
    queues: Mutex<Queues>,
    /// Wakes the channel's thread.
    wake: EventFd,
}

#[derive(Debug, Default)]
struct Queues {
    ports: Vec<PortInfo>,
    /// Whether the ports have changed since they were last sent.
    ports_due: bool,
    waiting: VecDeque<ToController>,
    arrived: VecDeque<Message>,
    /// Number of bodies that were dropped to make room for newer ones.
    dropped: u64,
    state: ChannelState,
    stop: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queues> {
        // No panic can happen in the middle of a push or pop, so the queues are valid even after a panic.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Channel {
    /// Starts the channel's thread, which connects to a controller and sends the list of ports.
    ///
    /// # Errors
    /// If the keys cannot be read, or if no keys are configured and a controller is on another host.
    pub fn start(config: ChannelConfig, ports: Vec<PortInfo>) -> Result<Self, ChannelError> {
        let elsewhere = config.controllers.iter().find(|controller| !controller.ip().is_loopback());
        let tls = match (&config.keys, elsewhere) {
            (Some(files), _) => Some(files.read().map_err(ChannelError::Keys)?),
            (None, Some(elsewhere)) => return Err(ChannelError::NoKeys(*elsewhere)),
            (None, None) => {
                tracing::warn!(
                    "controller.key is not set: any program on this host can act as the controller"
                );
                None
            }
        };
        let wake =
            EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC).map_err(io::Error::from)?;
        let shared = Arc::new(Shared { queues: Mutex::new(Queues { ports, ..Queues::default() }), wake });
        let worker = worker::Worker::new(config, tls, shared.clone());
        let thread = thread::Builder::new().name("channel".into()).spawn(move || worker.run())?;
        Ok(Channel { shared, thread: Some(thread) })
    }

    /// Queues a body. If the queue is full, drops the oldest body. A list of ports replaces the previous one. Never
    /// blocks.
    pub fn send(&self, body: ToController) {
        let mut queues = self.shared.lock();
        match body {
            ToController::Ports(Ports { ports }) => {
                queues.ports = ports;
                queues.ports_due = true;
            }
            body => {
                if queues.waiting.len() >= WAITING_MAX {
                    queues.waiting.pop_front();
                    queues.dropped += 1;
                }
                queues.waiting.push_back(body);
            }
        }
        drop(queues);
        // The write fails only if the counter is full. In this case, the thread is already awake.
        let _ = self.shared.wake.write(1);
    }

    /// Returns the next message from the controller, or `None` if no message waits. A [`Message::Poll`] applies to
    /// all ports.
    pub fn try_recv(&self) -> Option<Message> {
        self.shared.lock().arrived.pop_front()
    }

    /// Returns the state of the channel.
    pub fn state(&self) -> ChannelState {
        self.shared.lock().state.clone()
    }

    /// Returns the number of bodies that were dropped so far, because the queue was full.
    pub fn dropped(&self) -> u64 {
        self.shared.lock().dropped
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        let _ = self.shared.wake.write(1);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
