//! Links and queues: how fast a link serves, what it loses, and what waits in front of it.

mod impair;
mod port;
mod queue;
mod route;
mod service;

pub(crate) use port::{Enqueue, Port, PortTotals};
pub(crate) use route::{HOST, Paths};
