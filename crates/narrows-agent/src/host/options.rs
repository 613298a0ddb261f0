//! What the user says about a host: where the programs apply and how far they go.

use std::path::PathBuf;

use narrows_control::feedback::option::Format;
use narrows_control::units::Rate;

/// A network namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Namespace {
    /// Its file, as `/run/netns/NAME` or `/proc/PID/ns/net`; `None` is the present one.
    pub path: Option<PathBuf>,
    /// Interfaces by which data leaves and ACKs come: on these the sender says whether it is limited by its
    /// application (BRF-100), and puts the paper's padding right.
    pub interfaces: Vec<String>,
}

/// Which sockets the programs see: those of a cgroup, and of these the ones in certain network namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// A folder of the cgroup2 hierarchy; `None` is its root, so every process of the host.
    pub cgroup: Option<PathBuf>,
    /// Only these network namespaces; empty means all, but then there is no interface to mark on.
    pub namespaces: Vec<Namespace>,
    /// A folder on a bpffs. What is loaded stays there when the agent ends, until the next start or
    /// [`clean`](super::clean). `None`: what is loaded goes with the process, `kill -9` included.
    pub pin: Option<PathBuf>,
}

/// Whose connections get the congestion control.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// Those of programs that have not chosen one before they connect (TCP_CONGESTION).
    ///
    /// A program that chooses after it has connected, as `iperf3 -C` does, leaves; its SYN has asked for feedback by
    /// then, which it will not obey.
    #[default]
    Unchosen,
    /// Those of programs that choose it by name before they connect.
    Chosen,
    /// All; what the programs choose is ignored without an error.
    All,
}

/// What obeys the rate.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The congestion control `brf`.
    #[default]
    Obey,
    /// The kernel's own congestion control under a cap of its pacing rate (SO_MAX_PACING_RATE): the least of both.
    Cap,
}

/// Options of [`Sender::load`](super::Sender::load).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SenderOptions {
    /// Where it applies.
    pub scope: Scope,
    /// What obeys.
    pub mode: Mode,
    /// Whose connections; with [`Mode::Cap`] every connection of the scope is capped.
    pub choice: Choice,
    /// Makes `brf` the default of the scope's namespaces (sysctl `net.ipv4.tcp_congestion_control`) and puts back what
    /// was there at the end. Not needed for the connections of the cgroup.
    pub default_in_namespaces: bool,
    /// How the switches write the rate. [`Format::Padding`] wants the interfaces by which ACKs come.
    pub format: Format,
    /// Most that this host's link carries, L3 (BRF-104).
    pub max_rate: Option<Rate>,
    /// Name under which the congestion control is registered; of at most 15 bytes, unique on the host.
    pub name: String,
}

impl Default for SenderOptions {
    fn default() -> Self {
        SenderOptions {
            scope: Scope::default(),
            mode: Mode::default(),
            choice: Choice::default(),
            default_in_namespaces: false,
            format: Format::Experimental,
            max_rate: None,
            name: "brf".to_owned(),
        }
    }
}

/// Options of [`Receiver::load`](super::Receiver::load).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceiverOptions {
    /// Where it applies.
    pub scope: Scope,
    /// Asks for feedback in the SYNs of this host too, on behalf of senders that it connects to (a download from a
    /// server that runs the sender). What this host sends on such a connection will be taken for a flow that
    /// obeys; use it where the host sends little, or runs the sender, which asks by itself.
    pub ask: bool,
}
