//! The options of a host: where and how the programs apply.

use std::path::PathBuf;

use narrows_control::feedback::option::Format;
use narrows_control::units::Rate;

/// A network namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Namespace {
    /// The namespace's file, e.g. `/run/netns/NAME` or `/proc/PID/ns/net`. `None`: the current namespace.
    pub path: Option<PathBuf>,
    /// Interfaces by which data leaves and ACKs arrive. At these interfaces, the sender marks data packets to state
    /// whether the application limits the flow (BRF-100). In the paper's format, it also restores the padding of ACKs
    /// at these interfaces. With [`SenderOptions::messages`], it also takes messages with rates from these interfaces.
    pub interfaces: Vec<String>,
}

/// The sockets to which the programs apply: all sockets of a cgroup, or only those in certain network namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// A folder of the cgroup2 hierarchy. `None`: its root, which contains every process of the host.
    pub cgroup: Option<PathBuf>,
    /// The network namespaces to which the programs apply. If the list is empty, they apply to all namespaces, but mark
    /// no packets.
    pub namespaces: Vec<Namespace>,
}

/// Which connections use the congestion control `brf`.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// Connections of programs that do not choose an algorithm (socket option TCP_CONGESTION) before they connect.
    ///
    /// A program may choose another algorithm after it has connected, as `iperf3 -C` does. In this case, the
    /// connection's SYN has asked for feedback, but the connection does not apply it.
    #[default]
    Unchosen,
    /// Connections of programs that choose `brf` by name before they connect.
    Chosen,
    /// All connections. If a program chooses another algorithm, its choice is ignored without an error.
    All,
}

/// The mechanism that applies the rate.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The congestion control `brf`.
    #[default]
    Brf,
    /// The kernel's own congestion control, with the rate as a cap on its pacing rate (SO_MAX_PACING_RATE).
    Cap,
}

/// Options of [`Sender::load`](super::Sender::load).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SenderOptions {
    /// The sockets that the programs apply to.
    pub scope: Scope,
    /// The mechanism that applies the rate.
    pub mode: Mode,
    /// Which connections use `brf`. With [`Mode::Cap`], every connection of the scope is capped.
    pub choice: Choice,
    /// Makes `brf` the default of the scope's namespaces (sysctl `net.ipv4.tcp_congestion_control`), and restores the
    /// previous default at the end. Connections of the cgroup use `brf` anyway.
    pub default_in_namespaces: bool,
    /// How the switches write rates into ACKs. [`Format::Padding`] needs the interfaces at which ACKs arrive.
    pub format: Format,
    /// Largest L3 rate that the sender applies: the rate of this host's link (BRF-104).
    pub max_rate: Option<Rate>,
    /// Whether connections designate packets, for switches with BDR (BDR-1). The packets are marked at the namespaces'
    /// interfaces.
    pub designate: bool,
    /// Whether rates after the handshake arrive in messages (PAC-3b) at the namespaces' interfaces.
    pub messages: bool,
    /// Name of the congestion control, at most 15 bytes and unique on the host.
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
            designate: false,
            messages: false,
            name: "brf".to_owned(),
        }
    }
}

/// Options of [`Receiver::load`](super::Receiver::load).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceiverOptions {
    /// The sockets that the program applies to.
    pub scope: Scope,
    /// Also asks for feedback in this host's SYNs, so that servers with a sender apply rates to downloads. After this
    /// request, switches expect that this host also applies rates to the data that it sends. Use this option only if
    /// the host sends little data, or runs the sender, which asks for feedback in any case.
    pub ask: bool,
}
