//! `[sender]` and `[receiver]`.

use std::path::PathBuf;

use narrows_control::feedback::option::Format;
use narrows_control::units::Rate;

use super::reader::{Reader, one_of, text, unit, yes_no};
use super::{Common, common, interfaces, path, units};
use crate::host::{Choice, Namespace};

/// Whose connections are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All of the network namespace that the agent works in.
    Netns,
    /// Those of the processes in this cgroup (version 2).
    Cgroup(PathBuf),
    /// All of these network namespaces, each with its interfaces: many emulated hosts on one kernel.
    Namespaces(Vec<Namespace>),
}

/// How a sender obeys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The rate is the congestion control, CUBIC where no switch speaks.
    #[default]
    Brf,
    /// The kernel's own congestion control, paced to no more than the rate.
    Cap,
}

/// A host that sends.
#[derive(Clone, Debug, PartialEq)]
pub struct Sender {
    /// What all agents have.
    pub common: Common,
    /// Whose connections obey.
    pub scope: Scope,
    /// Interfaces on which data says whether the application limits it (BRF-100).
    pub interfaces: Vec<String>,
    /// How they obey.
    pub mode: Mode,
    /// No switch's rate is believed above this; `None`: all are (BRF-104).
    pub max_rate: Option<Rate>,
    /// Whose connections get `brf`.
    pub choice: Choice,
    /// How the switches on the way write the rate.
    pub format: Format,
    /// Also make `brf` the default congestion control of the namespace.
    pub set_default: bool,
    /// Name of the congestion control, unique on the host: several senders need several.
    pub algorithm: String,
}

/// A host that receives.
#[derive(Clone, Debug, PartialEq)]
pub struct Receiver {
    /// What all agents have.
    pub common: Common,
    /// Whose connections reserve room for the option.
    pub scope: Scope,
    /// Ask for feedback in this host's SYNs too, for servers that it downloads from.
    pub ask: bool,
}

fn scope(root: &Reader<'_>, own: &Reader<'_>) -> Scope {
    let cgroup = own.get("cgroup", path);
    let tables = root.tables("namespaces");
    if tables.is_empty() {
        return cgroup.map_or(Scope::Netns, Scope::Cgroup);
    }
    if cgroup.is_some() {
        own.problem("cgroup", "found it beside [[namespaces]], expected one of them");
    }
    let namespaces = tables.into_iter().filter_map(|table| {
        let path = table.need("path", path, "\"/run/netns/h1\"");
        let interfaces = table.get("interfaces", interfaces).unwrap_or_default();
        table.done();
        Some(Namespace { path: Some(path?), interfaces })
    });
    Scope::Namespaces(namespaces.collect())
}

pub(super) fn read_sender(root: &Reader<'_>) -> Option<Sender> {
    let own = root.table("sender")?;
    let common = common(root, &own, "sender", 9472);
    let scope = scope(root, &own);
    let interfaces = own.get("interfaces", interfaces).unwrap_or_default();
    let mode = own.get("mode", one_of(&[("brf", Mode::Brf), ("cap", Mode::Cap)])).unwrap_or_default();
    let max_rate = own.get("max_rate", unit(units::rate));
    let choices = [("unchosen", Choice::Unchosen), ("chosen", Choice::Chosen), ("all", Choice::All)];
    let choice = own.get("choice", one_of(&choices)).unwrap_or_default();
    let formats = [("option", Format::Experimental), ("padding", Format::Padding)];
    let format = own.get("format", one_of(&formats)).unwrap_or(Format::Experimental);
    let set_default = own.get("set_default", yes_no).unwrap_or(false);
    if set_default && matches!(scope, Scope::Namespaces(_)) {
        // To put it back at the end it would have to enter them again, with a privilege that it has given up by then.
        own.problem(
            "set_default",
            "found true beside [[namespaces]], where programs choose `brf` or get it by `choice`",
        );
    }
    if set_default && mode == Mode::Cap {
        own.problem(
            "set_default",
            "found true beside mode = \"cap\", which leaves the kernel's default alone",
        );
    }
    let algorithm = own.get("algorithm", |v| text(v).and_then(algorithm)).unwrap_or_else(|| "brf".to_owned());
    own.done();
    Some(Sender { common, scope, interfaces, mode, choice, format, max_rate, set_default, algorithm })
}

/// A name that Linux has room for (TCP_CA_NAME_MAX with its zero, include/net/tcp.h).
fn algorithm(name: String) -> Result<String, String> {
    if (1..16).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_graphic()) {
        Ok(name)
    } else {
        Err("1 to 15 printable ASCII characters without spaces".to_owned())
    }
}

pub(super) fn read_receiver(root: &Reader<'_>) -> Option<Receiver> {
    let own = root.table("receiver")?;
    let common = common(root, &own, "receiver", 9473);
    let scope = scope(root, &own);
    let ask = own.get("ask", yes_no).unwrap_or(false);
    own.done();
    Some(Receiver { common, scope, ask })
}
