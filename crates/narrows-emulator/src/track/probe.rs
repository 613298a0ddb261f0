//! The sources of a flow's figures: the emulator's own sockets, a connection of iperf3, or programs of the user.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use narrows_control::units::Time;
use narrows_sim::plan::{ProgramPlan, Protocol};

use crate::clock::Clock;
use crate::endpoint::FlowBoard;
use crate::error::Error;
use crate::sample::{BbrInfo, Diag, Tap, TapCounts, TcpInfo, Wanted};
use crate::spec::FlowSpec;

/// The source of a flow's figures.
pub(crate) enum Probe {
    /// A flow of the emulator.
    Own(Arc<FlowBoard>),
    /// A connection of iperf3, sampled by sock_diag at both ends.
    External(Box<External>),
    /// Programs of the user, measured by their packets and, for TCP, by sock_diag.
    Program(Box<Program>),
}

/// A connection of iperf3.
pub(crate) struct External {
    port: u16,
    sending: Sending,
    to: PathBuf,
    received: u64,
}

impl External {
    pub(crate) fn new(spec: &FlowSpec, from: &Path, to: &Path) -> Self {
        let ports = (spec.source_port.unwrap_or(0), spec.port);
        External { port: spec.port, sending: Sending::new(from, ports), to: to.to_owned(), received: 0 }
    }

    /// Samples the connection to the port that has sent the most data. iperf3's control connection uses the same port.
    pub(crate) fn sample(&mut self, diags: &mut BTreeMap<PathBuf, Diag>) {
        // The figures of an ended connection stay until another connection has sent at least as much data.
        let most = self.sending.info.bytes_sent;
        self.sending.sample(diags, |found| found.bytes_sent >= most);
        let Some((source, destination)) = self.sending.ports_found else { return };
        let there = diags.get_mut(&self.to).and_then(|d| d.connections(destination, source).ok());
        if let Some(c) = there.unwrap_or_default().first() {
            self.received = self.received.max(c.info.bytes_received);
        }
    }

    /// Returns the kernel's figures about the sending socket.
    pub(crate) fn info(&self) -> Option<TcpInfo> {
        self.sending.info()
    }

    /// Returns the state of Linux's BBR v1 at the last sample, if the sampled connection uses it.
    pub(crate) fn bbr(&self) -> Option<BbrInfo> {
        self.sending.bbr
    }

    /// Returns the number of application bytes that have arrived at the receiver.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    pub(crate) fn failure(&self) -> Option<String> {
        self.sending.ports_found.is_none().then(|| format!("found no connection to port {}", self.port))
    }
}

/// Programs of the user.
pub(crate) struct Program {
    plan: ProgramPlan,
    tap: Tap,
    pub(crate) counts: TapCounts,
    /// The sending socket, for TCP.
    sending: Option<Sending>,
    missed: u64,
}

impl Program {
    /// # Errors
    /// The errors of [`Tap::open`].
    pub(crate) fn open(spec: &FlowSpec, plan: &ProgramPlan, from: &Path, to: &Path) -> Result<Self, Error> {
        let ports = plan.server_at().of(((plan.port, 0), (0, plan.port)));
        Ok(Program {
            tap: Tap::open(Wanted::new(spec, plan), from, to)?,
            counts: TapCounts::default(),
            sending: (plan.protocol == Protocol::Tcp).then(|| Sending::new(from, ports)),
            missed: 0,
            plan: plan.clone(),
        })
    }

    /// Counts the packets since the last call, and samples the open connection that has sent the most data. Returns
    /// whether the sampled connection has changed.
    pub(crate) fn sample(&mut self, clock: Clock, diags: &mut BTreeMap<PathBuf, Diag>) -> bool {
        self.counts = self.tap.update(clock);
        self.missed = self.tap.missed();
        let Some(sending) = &mut self.sending else { return false };
        let before = sending.ports_found;
        sending.sample(diags, |_| true);
        before.is_some() && before != sending.ports_found
    }

    /// Returns the kernel's figures about the sending socket, if this socket was found.
    pub(crate) fn info(&self) -> Option<TcpInfo> {
        self.sending.as_ref().and_then(Sending::info)
    }

    /// Returns the state of Linux's BBR v1 at the last sample, if the sampled connection uses it.
    pub(crate) fn bbr(&self) -> Option<BbrInfo> {
        self.sending.as_ref().and_then(|sending| sending.bbr)
    }

    /// Returns the time of the first packet.
    pub(crate) fn started(&self) -> Option<Time> {
        self.tap.started
    }

    /// Returns the result of [`Tap::done`].
    pub(crate) fn done(&self) -> Option<(Time, Time)> {
        self.tap.done()
    }

    pub(crate) fn failure(&self) -> Option<String> {
        if self.missed > 0 {
            return Some(format!("{} packets were not counted, because the sampler was late", self.missed));
        }
        let name = match self.plan.protocol {
            Protocol::Tcp => "TCP",
            Protocol::Udp => "UDP",
        };
        let is_silent = self.counts.sent_packets == 0;
        is_silent.then(|| {
            format!(
                "its programs sent no {name} data from the flow's sender, port {} of the server",
                self.plan.port
            )
        })
    }

    /// Returns a note if most data flows from the receiver to the sender, and a note if datagrams were fragmented.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let TapCounts { delivered, reverse_payload, fragmented, .. } = self.counts;
        if delivered < reverse_payload {
            let other = self.plan.client_at.other().of(("from", "to"));
            notes.push(format!(
                "the receiver of the flow sent {reverse_payload} bytes and received {delivered}; for the goodput of \
                 the larger direction, exchange from and to, and set client_at = \"{other}\""
            ));
        }
        if fragmented > 0 {
            notes.push(format!(
                "{fragmented} datagrams were fragmented; each counts as one packet, and as delivered when its first \
                 fragment arrives"
            ));
        }
        notes
    }
}

/// The sending end of a connection, sampled by sock_diag(7).
struct Sending {
    netns: PathBuf,
    /// Ports of the sender and the receiver; 0: any.
    ports: (u16, u16),
    info: TcpInfo,
    /// The state of Linux's BBR v1 at the last sample, if the connection was open.
    bbr: Option<BbrInfo>,
    /// The ports of the sampled connection.
    ports_found: Option<(u16, u16)>,
}

impl Sending {
    fn new(netns: &Path, ports: (u16, u16)) -> Self {
        Sending { netns: netns.to_owned(), ports, info: TcpInfo::default(), bbr: None, ports_found: None }
    }

    /// Returns the kernel's figures about the socket, if it was found.
    fn info(&self) -> Option<TcpInfo> {
        self.ports_found.map(|_| self.info)
    }

    /// Samples the connection that has sent the most data, if `accepts` returns true for its figures. Keeps the last
    /// figures of a connection that has ended.
    fn sample(&mut self, diags: &mut BTreeMap<PathBuf, Diag>, accepts: impl Fn(&TcpInfo) -> bool) {
        let (here, there) = self.ports;
        let list = diags.get_mut(&self.netns).and_then(|d| d.connections(here, there).ok());
        let most = list.unwrap_or_default().into_iter().max_by_key(|c| c.info.bytes_sent);
        let sampled = most.filter(|c| accepts(&c.info));
        self.bbr = sampled.and_then(|c| c.bbr);
        if let Some(c) = sampled {
            (self.info, self.ports_found) = (c.info, Some((c.source_port, c.destination_port)));
        }
    }
}
