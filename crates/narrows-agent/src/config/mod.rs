//! The configuration of an agent: one TOML file. Values have the same units as in scenarios. All errors of a file are
//! reported together.
//!
//! A file has exactly one of the tables `[switch]`, `[sender]` and `[receiver]`. This table determines the agent's
//! role.

mod hosts;
mod params;
mod reader;
mod reload;
pub(crate) mod retired;
mod switch;
pub mod units;

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use toml::Table;

pub use hosts::{Mode, Receiver, Scope, Sender};
pub use reader::Problem;
pub use reload::Plan;
pub use switch::{Capacity, Controller, Feedback, Format, Pin, Port, Switch, Vlans};

use crate::netns::Netns;
use reader::{Problems, Reader, hint, one_of, text, yes_no};

/// Names of the agents' roles.
const ROLES: [&str; 3] = ["switch", "sender", "receiver"];

/// A checked configuration.
#[derive(Clone, Debug)]
pub enum Config {
    /// The configuration of a switch, from `[switch]`.
    Switch(Switch),
    /// The configuration of a sender, from `[sender]`.
    Sender(Sender),
    /// The configuration of a receiver, from `[receiver]`.
    Receiver(Receiver),
}

/// Settings of every agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Common {
    /// Name of the agent's socket, pins and metrics. Agents on one host need different names.
    pub name: String,
    /// The agent's network namespace. `None`: the namespace in which it is started.
    pub netns: Option<Netns>,
    /// The metrics for Prometheus; `None`: no metrics.
    pub metrics: Option<Metrics>,
    /// The log on standard error.
    pub log: Log,
}

/// The table `[metrics]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// Address of the endpoint.
    pub address: SocketAddr,
    /// The network namespace in which the agent listens.
    pub netns: MetricsNetns,
}

/// The network namespace of the metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetricsNetns {
    /// The namespace in which the agent is started, where Prometheus usually runs.
    #[default]
    Start,
    /// The namespace in which the agent works ([`Common::netns`]).
    Agent,
}

/// The table `[log]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// Whether the log has lines of JSON instead of text.
    pub json: bool,
    /// Level of the log: `error`, `warn`, `info`, `debug`, or a filter such as `info,narrows_agent::htb=debug`.
    pub level: String,
}

/// An invalid configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// Name of the file, or "command line".
    pub source: String,
    /// All errors.
    pub problems: Vec<Problem>,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, problem) in self.problems.iter().enumerate() {
            let end = if n == 0 { "" } else { "\n" };
            write!(f, "{end}{}: {problem}", self.source)?;
        }
        Ok(())
    }
}

impl std::error::Error for Invalid {}

impl Config {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// All errors of the file.
    pub fn load(path: &Path) -> Result<Config, Invalid> {
        Config::load_with(path, |_| ())
    }

    /// Reads a file, applies `change`, and checks the result. Reports old names of keys on standard error.
    ///
    /// # Errors
    /// All errors of the file.
    pub fn load_with(path: &Path, change: impl FnOnce(&mut Table)) -> Result<Config, Invalid> {
        let source = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(content) => {
                let mut table = Config::table(&content, &source)?;
                for (old, new) in retired::rename(&mut table) {
                    retired::report(&source, &old, new);
                }
                change(&mut table);
                Config::read(&table, &source)
            }
            Err(error) => Err(whole_file(&source, format!("cannot be read: {error}"))),
        }
    }

    /// Parses and checks the text of a file. Errors name `source` as the file.
    pub fn parse(content: &str, source: &str) -> Result<Config, Invalid> {
        let mut table = Config::table(content, source)?;
        retired::rename(&mut table);
        Config::read(&table, source)
    }

    fn table(content: &str, source: &str) -> Result<Table, Invalid> {
        content.parse::<Table>().map_err(|error| {
            let before = content.get(..error.span().map_or(0, |s| s.start)).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            whole_file(source, format!("line {line} is not TOML: {}", error.message().replace('\n', "; ")))
        })
    }

    /// Checks a table. Errors name `source` as the origin of the text.
    pub fn read(table: &Table, source: &str) -> Result<Config, Invalid> {
        let problems = Problems::default();
        let root = Reader::new(table, "", &problems);
        let roles: Vec<_> = ROLES.into_iter().filter(|role| table.contains_key(*role)).collect();
        let config = match roles[..] {
            ["switch"] => switch::read(&root).map(Config::Switch),
            ["sender"] => hosts::read_sender(&root).map(Config::Sender),
            ["receiver"] => hosts::read_receiver(&root).map(Config::Receiver),
            _ => {
                let found = if roles.is_empty() { "none".into() } else { roles.join(", ") };
                let known = ROLES.into_iter().chain(["ports", "namespaces", "controller", "metrics", "log"]);
                let odd = table.keys().find(|k| known.clone().all(|name| name != k.as_str()));
                let hint = odd.map(|k| format!(" ([{k}] is unknown{})", hint(k, ROLES.into_iter())));
                let hint = hint.unwrap_or_default();
                let text = format!("found {found}{hint}, expected one of [switch], [sender], [receiver]");
                return Err(whole_file(source, text));
            }
        };
        root.done();
        match (config, problems.into_inner()) {
            (Some(config), problems) if problems.is_empty() => Ok(config),
            (_, problems) => Err(Invalid { source: source.to_owned(), problems }),
        }
    }

    /// Returns the settings that all roles have in common.
    pub fn common(&self) -> &Common {
        match self {
            Config::Switch(c) => &c.common,
            Config::Sender(c) => &c.common,
            Config::Receiver(c) => &c.common,
        }
    }

    /// Returns the connections of a sender or receiver. Returns `None` for a switch.
    pub fn scope(&self) -> Option<&Scope> {
        match self {
            Config::Switch(_) => None,
            Config::Sender(c) => Some(&c.scope),
            Config::Receiver(c) => Some(&c.scope),
        }
    }

    /// Returns the role: `switch`, `sender` or `receiver`.
    pub fn role(&self) -> &'static str {
        match self {
            Config::Switch(_) => ROLES[0],
            Config::Sender(_) => ROLES[1],
            Config::Receiver(_) => ROLES[2],
        }
    }
}

fn whole_file(source: &str, text: String) -> Invalid {
    Invalid { source: source.to_owned(), problems: vec![Problem { key: String::new(), text }] }
}

/// Reads `name` and `netns` of the agent's table, `[metrics]` and `[log]`.
fn common(root: &Reader<'_>, own: &Reader<'_>, role: &'static str, metrics_port: u16) -> Common {
    let name = own.get("name", |v| text(v).and_then(plain_name)).unwrap_or_else(|| role.to_owned());
    let netns = own.get("netns", text).map(|name| Netns::named(&name));
    let address = SocketAddr::from(([127, 0, 0, 1], metrics_port));
    let mut metrics = Some(Metrics { address, netns: MetricsNetns::default() });
    if let Some(table) = root.table("metrics") {
        let expected = "an address and port such as \"127.0.0.1:9471\"";
        let address = |v: &toml::Value| text(v)?.parse().map_err(|_| expected.to_owned());
        let address = table.get("address", address);
        let places = [("start", MetricsNetns::Start), ("agent", MetricsNetns::Agent)];
        let netns = table.get("netns", one_of(&places));
        if let Some(metrics) = &mut metrics {
            metrics.address = address.unwrap_or(metrics.address);
            metrics.netns = netns.unwrap_or_default();
        }
        if table.get("enabled", yes_no) == Some(false) {
            metrics = None;
        }
        table.done();
    }
    let mut log = Log { json: false, level: "info".into() };
    if let Some(table) = root.table("log") {
        log.json = table.get("format", one_of(&[("text", false), ("json", true)])).unwrap_or(false);
        let level = |v: &toml::Value| {
            let level = text(v)?;
            let known = level.parse::<tracing_subscriber::EnvFilter>().is_ok();
            if known { Ok(level) } else { Err("a level such as \"info\" or \"debug\"".to_owned()) }
        };
        log.level = table.get("level", level).unwrap_or(log.level);
        table.done();
    }
    Common { name, netns, metrics, log }
}

/// Checks that a name is valid in a file name. The error says what is expected.
pub(crate) fn plain_name(name: String) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if (1..=32).contains(&name.len()) && name.chars().all(plain) {
        Ok(name)
    } else {
        Err("a name of up to 32 letters, digits, - and _".to_owned())
    }
}

/// Checks that a name is valid for a Linux interface (dev_valid_name). The error says what is expected.
fn interface(name: String) -> Result<String, String> {
    let odd = |c: char| c == '/' || c == ':' || c.is_whitespace() || c.is_control();
    if name.len() < 16 && name != "." && name != ".." && !name.contains(odd) {
        Ok(name)
    } else {
        Err("the name of an interface, at most 15 bytes without / : and spaces".to_owned())
    }
}

fn interfaces(value: &toml::Value) -> Result<Vec<String>, String> {
    reader::texts(value)?.into_iter().map(interface).collect()
}

fn path(value: &toml::Value) -> Result<PathBuf, String> {
    let path = PathBuf::from(text(value)?);
    if path.is_absolute() { Ok(path) } else { Err("an absolute path".to_owned()) }
}

#[cfg(test)]
mod tests;
