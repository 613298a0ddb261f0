//! Writes the packets of a simulation as pcapng, which Wireshark and tcpdump read.
//!
//! [`Folder`] receives the packets that the plan captures ([`Tap`](narrows_sim::capture::Tap)). It writes a file for
//! each captured link and host. `docs/reference/captures.md` describes the files for their readers.
//!
//! | module | idea |
//! | --- | --- |
//! | `datagram` | the bytes of a packet: IPv4 with the congestion header, TCP or UDP |
//! | `pcapng` | the blocks of a file |
//! | `folder` | the files of a run, and the logs of its flows |

#![forbid(unsafe_code)]

mod datagram;
mod folder;
mod pcapng;

pub use datagram::datagram;
pub use folder::{Folder, Log, Logs, file_names};
