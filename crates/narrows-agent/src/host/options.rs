//! The options of a host, which say where and how the programs apply.

use std::path::PathBuf;

use narrows_control::feedback::option::Format;
use narrows_control::units::Rate;

/// A network namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Namespace {
    /// The file of the namespace, e.g. `/run/netns/NAME` or `/proc/PID/ns/net`; `None` stands for the current
    /// namespace.
    pub path: Option<PathBuf>,
    /// Interfaces by which data leaves and ACKs arrive. At these interfaces the sender marks data packets to state
    /// whether the application limits the flow (BRF-100), and restores the padding of ACKs in the paper's format.
    pub interfaces: Vec<String>,
}

/// The sockets that the programs apply to: all sockets of a cgroup, or only those in certain network namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// A folder of the cgroup2 hierarchy; `None` stands for the root of the hierarchy, which contains every process of
    /// the host.
    pub cgroup: Option<PathBuf>,
    /// The network namespaces to which the programs apply. If the list is empty, the programs apply to all
    /// namespaces, but packets are not marked at any interface.
    pub namespaces: Vec<Namespace>,
}

/// The connections that use the congestion control.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// Connections of programs that do not choose an algorithm (socket option TCP_CONGESTION) before they connect.
    ///
    /// If a program chooses another congestion control after it has connected, as `iperf3 -C` does, its
    /// connection no longer uses `brf`. The SYN of this connection has asked for feedback, but the connection
    /// does not apply the feedback.
    #[default]
    Unchosen,
    /// Connections of programs that choose `brf` by name before they connect.
    Chosen,
    /// All connections. If a program chooses another algorithm, the choice is ignored without an error.
    All,
}

/// The mechanism that applies the rate.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The congestion control `brf`.
    #[default]
    Brf,
    /// The kernel's own congestion control, whose pacing rate is capped at the rate (SO_MAX_PACING_RATE).
    Cap,
}

/// Options of [`Sender::load`](super::Sender::load).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SenderOptions {
    /// The sockets that the programs apply to.
    pub scope: Scope,
    /// The mechanism that applies the rate.
    pub mode: Mode,
    /// The connections that use `brf`. With [`Mode::Cap`], every connection of the scope is capped.
    pub choice: Choice,
    /// Makes `brf` the default of the scope's namespaces (sysctl `net.ipv4.tcp_congestion_control`), and restores the
    /// previous default at the end. Connections of the cgroup use `brf` even without this default.
    pub default_in_namespaces: bool,
    /// How the switches write rates into ACKs. [`Format::Padding`] needs the interfaces by which ACKs arrive.
    pub format: Format,
    /// Maximum L3 rate that the sender applies, which is the rate of this host's link (BRF-104).
    pub max_rate: Option<Rate>,
    /// Whether connections designate packets, for switches with BDR (BDR-1). Designated packets are marked at the
    /// interfaces of the namespaces.
    pub designate: bool,
    /// Name of the congestion control. The name has at most 15 bytes, and must be unique on the host.
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
            name: "brf".to_owned(),
        }
    }
}

/// Options of [`Receiver::load`](super::Receiver::load).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceiverOptions {
    /// The sockets that the program applies to.
    pub scope: Scope,
    /// Also asks for feedback in the SYNs of this host, so that servers that run the sender apply rates to downloads.
    /// Switches then expect that this host also sends its own data at the rates that it gets. Use this option only if
    /// the host sends little data, or if it runs the sender, which asks for feedback anyway.
    pub ask: bool,
}
