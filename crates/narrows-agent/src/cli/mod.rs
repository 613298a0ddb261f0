//! The command line.

mod args;
mod cc;
mod generate;
mod services;

use std::error::Error;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

pub use args::Args;
use args::{Command, Configured};
pub use services::Services;

use crate::cc::CcError;
use crate::config::{self, Config};
use crate::netns::Netns;
use crate::status::client::{Client, sockets_in};
use crate::status::server::{FOLDER, Request, path_of};
use crate::status::text;
use crate::{clean, events, guard, privileges, top};

/// Why an agent could not start or go on.
pub type Failure = Box<dyn Error + Send + Sync>;

/// Wrong input: configuration or command line.
const WRONG_INPUT: u8 = 2;

/// The agents themselves. Each runs until [`Services::stop`] says so.
pub trait Agents {
    /// Controls ports.
    fn switch(&self, config: &config::Switch, services: &mut Services) -> Result<(), Failure>;
    /// Makes this host's connections obey.
    fn sender(&self, config: &config::Sender, services: &mut Services) -> Result<(), Failure>;
    /// Makes this host's connections reserve room for rates.
    fn receiver(&self, config: &config::Receiver, services: &mut Services) -> Result<(), Failure>;
}

/// Runs what the command line says.
pub fn run(agents: &dyn Agents) -> ExitCode {
    let code = match execute(Args::parse().command, agents) {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("narrows-agent: {failure}");
            if failure.is::<config::Invalid>() || failure.is::<CcError>() { WRONG_INPUT } else { 1 }
        }
    };
    ExitCode::from(code)
}

fn execute(command: Command, agents: &dyn Agents) -> Result<u8, Failure> {
    match command {
        Command::Switch(args) => start(args.config("switch")?, agents),
        Command::Sender(args) => start(args.config("sender")?, agents),
        Command::Receiver(args) => start(args.config("receiver")?, agents),
        Command::Check { files } => {
            let (good, bad): (Vec<_>, Vec<_>) =
                files.iter().map(|file| (file, Config::load(file))).partition(|(_, config)| config.is_ok());
            bad.iter()
                .filter_map(|(_, config)| config.as_ref().err())
                .for_each(|invalid| eprintln!("{invalid}"));
            good.iter()
                .filter_map(|(file, config)| missing(file, config.as_ref().ok()?))
                .for_each(|what| eprintln!("{what}"));
            Ok(if bad.is_empty() { 0 } else { WRONG_INPUT })
        }
        Command::Status { name, json, flows } => status(name.as_deref(), json, flows),
        Command::Top { name } => {
            let request = Request { flows: 10_000, every_ms: Some(500), ..Request::default() };
            top::run(connect(name.as_deref(), &request)?)?;
            Ok(0)
        }
        Command::Cc(command) => cc::execute(&command),
        Command::Clean { netns } => clean_up(netns.as_deref()),
        Command::Generate { folder } => {
            generate::write_into(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
            Ok(0)
        }
        Command::Guardian => {
            events::start(&config::Log { json: false, level: "info".into() });
            guard::watch_over_stdin()?;
            Ok(0)
        }
    }
}

/// What a good configuration names and this machine does not have: it may come before the agent starts, and may be elsewhere
/// than where the file is checked.
fn missing(file: &Path, config: &Config) -> Option<String> {
    let Config::Switch(switch) = config else { return None };
    let secret = switch.controller.as_ref()?.secret_file.as_ref()?;
    let trouble = std::fs::File::open(secret).err()?;
    let (file, secret) = (file.display(), secret.display());
    Some(format!("{file}: warning: controller.secret_file: {secret}: {trouble}; the switch will need it"))
}

fn start(config: Config, agents: &dyn Agents) -> Result<u8, Failure> {
    let common = config.common().clone();
    events::start(&common.log);
    privileges::check()?;
    if let Some(netns) = &common.netns {
        netns.enter()?;
    }
    let mut services = Services::new(&common)?;
    match &config {
        Config::Switch(config) => agents.switch(config, &mut services),
        Config::Sender(config) => agents.sender(config, &mut services),
        Config::Receiver(config) => agents.receiver(config, &mut services),
    }?;
    tracing::info!(event = "stopped", role = config.role(), name = common.name);
    Ok(0)
}

/// The socket of the agent called so, or of the only one there is.
fn socket(name: Option<&str>) -> Result<std::path::PathBuf, Failure> {
    if let Some(name) = name {
        return Ok(path_of(name));
    }
    let found = sockets_in(Path::new(FOLDER));
    match &found[..] {
        [only] => Ok(only.clone()),
        [] => Err("no agent runs here".into()),
        _ => {
            let stem = |p: &std::path::PathBuf| p.file_stem().map(|s| s.to_string_lossy().into_owned());
            let names: Vec<_> = found.iter().filter_map(stem).collect();
            Err(format!("several agents run here; name one of them: --name {}", names.join(" | ")).into())
        }
    }
}

/// To the agent called so, or the only one there is.
fn connect(name: Option<&str>, request: &Request) -> Result<Client, Failure> {
    Client::connect(&socket(name)?, request).map_err(|error| match (error.kind(), name) {
        (io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused, Some(name)) => {
            nobody(name, &clean::running(Path::new(FOLDER))).into()
        }
        (io::ErrorKind::ConnectionRefused, None) => "no agent runs here".into(),
        _ => error.into(),
    })
}

fn nobody(name: &str, running: &[String]) -> String {
    let others =
        if running.is_empty() { String::new() } else { format!("; running: {}", running.join(", ")) };
    format!("no agent called {name:?} runs here{others}")
}

/// Of the agent called so, or of all that run here.
fn status(name: Option<&str>, json: bool, flows: usize) -> Result<u8, Failure> {
    let running = clean::running(Path::new(FOLDER));
    if name.is_some() || running.len() < 2 {
        return status_of(name, json, flows);
    }
    for (number, name) in running.iter().enumerate() {
        if number > 0 && !json {
            println!();
        }
        status_of(Some(name), json, flows)?;
    }
    Ok(0)
}

fn status_of(name: Option<&str>, json: bool, flows: usize) -> Result<u8, Failure> {
    let mut client = connect(name, &Request { flows, ..Request::default() })?;
    let snapshot = client.next().ok_or("the agent ended")??;
    let text = if json {
        serde_json::to_string_pretty(&snapshot)? + "\n"
    } else {
        text::render(&snapshot) + &text::flows(&snapshot)
    };
    // `| head` closes the pipe early: no error.
    let _ = io::stdout().write_all(text.as_bytes());
    Ok(0)
}

fn clean_up(netns: Option<&str>) -> Result<u8, Failure> {
    if let Some(netns) = netns {
        Netns::named(netns).enter()?;
    }
    let running = clean::running(Path::new(FOLDER));
    if !running.is_empty() {
        let names = running.join(", ");
        return Err(format!("nothing was removed, as an agent runs: {names}; stop it first").into());
    }
    let cleaned = clean::clean(Path::new(FOLDER), Path::new(clean::PINS));
    cleaned.removed.iter().for_each(|what| println!("removed {what}"));
    cleaned.failed.iter().for_each(|what| eprintln!("narrows-agent: {what}"));
    Ok(u8::from(!cleaned.failed.is_empty()))
}

/// For `args`: a file's name in errors.
fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_nobody_is_told_who_is_there() {
        assert_eq!(nobody("x", &[]), "no agent called \"x\" runs here");
        let running = ["switch", "sender"].map(String::from);
        assert_eq!(nobody("x", &running), "no agent called \"x\" runs here; running: switch, sender");
    }
}
