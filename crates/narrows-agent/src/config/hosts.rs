//! The tables `[sender]` and `[receiver]` of a configuration.

use std::path::PathBuf;

use narrows_control::feedback::option::Format;
use narrows_control::units::Rate;

use super::reader::{Reader, one_of, text, unit, yes_no};
use super::{Common, common, interfaces, path, units};
use crate::host::{Choice, Namespace};

/// The connections that the agent applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All connections of the agent's network namespace.
    Netns,
    /// The connections of the processes in this cgroup (version 2).
    Cgroup(PathBuf),
    /// All connections of these network namespaces, each with its interfaces. With this scope, one agent can serve many
    /// emulated hosts on one kernel.
    Namespaces(Vec<Namespace>),
}

/// How a sender applies rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The congestion control is `brf`, which applies the network's rate. Without a rate from the network, `brf` runs
    /// CUBIC.
    #[default]
    Brf,
    /// The connection keeps its congestion control. The network's rate is the upper limit of its pacing rate.
    Cap,
}

/// A sending host.
#[derive(Clone, Debug, PartialEq)]
pub struct Sender {
    /// Settings of every agent.
    pub common: Common,
    /// Connections that apply the rates from switches.
    pub scope: Scope,
    /// Interfaces at which data packets state whether the application limits the flow (BRF-100).
    pub interfaces: Vec<String>,
    /// How the connections in `scope` apply rates.
    pub mode: Mode,
    /// Upper bound of the rates from switches; `None`: no bound (BRF-104).
    pub max_rate: Option<Rate>,
    /// Selects the connections in `scope` that use `brf`.
    pub choice: Choice,
    /// How the switches on the path write the rate.
    pub format: Format,
    /// Whether `brf` also becomes the default congestion control of the namespace.
    pub set_default: bool,
    /// Whether connections designate packets, for switches with BDR.
    pub designate: bool,
    /// Whether rates after the handshake arrive in messages, from switches with PACEC out of band.
    pub messages: bool,
    /// Name of the congestion control. Several senders on one host need different names.
    pub algorithm: String,
}

/// A receiving host.
#[derive(Clone, Debug, PartialEq)]
pub struct Receiver {
    /// Settings of every agent.
    pub common: Common,
    /// Connections that reserve room for the option with the rate.
    pub scope: Scope,
    /// Whether this host's SYNs also ask for feedback, so that downloads get rates.
    pub ask: bool,
}

fn scope(root: &Reader<'_>, own: &Reader<'_>) -> Scope {
    let cgroup = own.get("cgroup", path);
    let tables = root.tables("namespaces");
    if tables.is_empty() {
        return cgroup.map_or(Scope::Netns, Scope::Cgroup);
    }
    if cgroup.is_some() {
        own.problem("cgroup", "found cgroup and [[namespaces]], expected only one of them");
    }
    let mut namespaces: Vec<Namespace> = Vec::new();
    for table in tables {
        let path = table.need("path", path, "\"/run/netns/h1\"");
        let interfaces = table.get("interfaces", interfaces).unwrap_or_default();
        if path.is_some() && namespaces.iter().any(|known| known.path == path) {
            table.problem("path", "found the path of an earlier table, expected another one");
        } else if path.is_some() {
            namespaces.push(Namespace { path, interfaces });
        }
        table.done();
    }
    Scope::Namespaces(namespaces)
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
        // If the agent is killed, the guardian must restore the default. It cannot do so in other namespaces, because
        // it has dropped the privilege to enter them.
        own.problem(
            "set_default",
            "found true, expected false with [[namespaces]]: there, `choice` selects the connections",
        );
    }
    if set_default && mode == Mode::Cap {
        own.problem(
            "set_default",
            "found true together with mode = \"cap\", which does not change the kernel's default",
        );
    }
    let designate = own.get("designate", yes_no).unwrap_or(false);
    let messages = own.get("messages", yes_no).unwrap_or(false);
    for (key, is_set, ways, why) in [
        ("designate", designate, "data leaves", "only `brf` marks packets"),
        ("messages", messages, "messages arrive", "only `brf` reads messages"),
    ] {
        if is_set && let Some(place) = without_interfaces(&scope, &interfaces) {
            let text =
                format!("found true without interfaces{place}, expected the interfaces by which {ways}");
            own.problem(key, text);
        }
        if is_set && mode == Mode::Cap {
            own.problem(key, format!("found true together with mode = \"cap\", expected false: {why}"));
        }
    }
    let algorithm = own.get("algorithm", |v| text(v).and_then(algorithm)).unwrap_or_else(|| "brf".to_owned());
    own.done();
    Some(Sender {
        common,
        scope,
        interfaces,
        mode,
        choice,
        format,
        max_rate,
        set_default,
        designate,
        messages,
        algorithm,
    })
}

/// Returns where interfaces are missing, as a part of an error message. The text names the first namespace without
/// interfaces, or is empty for the agent's own namespace. A sender marks data at the interfaces of all its namespaces.
fn without_interfaces(scope: &Scope, own: &[String]) -> Option<String> {
    match scope {
        Scope::Namespaces(all) => {
            let one = all.iter().find(|one| one.interfaces.is_empty())?;
            let path = one.path.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
            Some(format!(" in the namespace {path:?}"))
        }
        Scope::Netns | Scope::Cgroup(_) => own.is_empty().then(String::new),
    }
}

/// Checks that a name fits into TCP_CA_NAME_MAX bytes, including a zero at the end (include/net/tcp.h).
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
