//! The command line of `narrows-agent`.

mod args;
mod cc;
mod generate;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

pub use args::Args;
use args::{Command, Configured};

use crate::cc::CcError;
use crate::channel::keys;
use crate::config::{self, Config};
use crate::netns::Netns;
use crate::services::{Failure, Services, Source};
use crate::status::client::{Client, sockets_in};
use crate::status::server::{FOLDER, Request, path_of};
use crate::status::text;
use crate::{bpffs, clean, events, guard, privileges, top};

/// Exit code for a wrong configuration or command line.
const WRONG_INPUT: u8 = 2;

const NO_AGENT: &str = "no agent runs on this host";

/// The agents of the three roles. They run until [`Services::stop`] asks them to stop.
pub trait Agents {
    /// Runs an agent that controls ports.
    fn switch(&self, config: &config::Switch, services: &mut Services) -> Result<(), Failure>;
    /// Runs an agent that paces this host's connections.
    fn sender(&self, config: &config::Sender, services: &mut Services) -> Result<(), Failure>;
    /// Runs an agent that reserves space for rates in this host's ACKs.
    fn receiver(&self, config: &config::Receiver, services: &mut Services) -> Result<(), Failure>;
}

/// Runs the command that the command line names, and returns the exit code.
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
        Command::Switch(args) => start(args, "switch", agents),
        Command::Sender(args) => start(args, "sender", agents),
        Command::Receiver(args) => start(args, "receiver", agents),
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
        Command::Key { name, folder } => make_key(&name, &folder),
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

/// Returns a warning if a configured file cannot be opened on this machine. A missing file is no error, because it may
/// be created later, or the configuration may be for another machine.
fn missing(file: &Path, config: &Config) -> Option<String> {
    let Config::Switch(switch) = config else { return None };
    let keys = switch.controller.as_ref()?.keys.as_ref()?;
    let named = [("key", &keys.key), ("certificate", &keys.certificate), ("trusted", &keys.trusted)];
    named.into_iter().find_map(|(name, path)| {
        let trouble = std::fs::File::open(path).err()?;
        let (file, path) = (file.display(), path.display());
        Some(format!("{file}: warning: controller.{name}: {path}: {trouble}; the switch needs it to start"))
    })
}

/// Makes a key of the channel between agents and controller.
fn make_key(name: &str, folder: &Path) -> Result<u8, Failure> {
    let (key, certificate) = keys::create(name, folder)?;
    println!("{}: private key; keep it on this machine", key.display());
    println!("{}: certificate; add it to the file 'trusted' of the other side", certificate.display());
    Ok(0)
}

fn start(args: impl Configured + 'static, role: &'static str, agents: &dyn Agents) -> Result<u8, Failure> {
    let config = args.config(role)?;
    let source = args.file().is_some().then(|| -> Source { Box::new(move || args.config(role)) });
    let common = config.common().clone();
    events::start(&common.log);
    privileges::check()?;
    let mut services = Services::new(&common, source)?;
    match &config {
        Config::Switch(config) => agents.switch(config, &mut services),
        Config::Sender(config) => agents.sender(config, &mut services),
        Config::Receiver(config) => agents.receiver(config, &mut services),
    }?;
    tracing::info!(event = "stopped", role = config.role(), name = common.name);
    Ok(0)
}

/// Returns the socket of the agent with this name. Without a name, there must be only one agent.
fn socket(name: Option<&str>) -> Result<std::path::PathBuf, Failure> {
    if let Some(name) = name {
        return Ok(path_of(name));
    }
    let found = sockets_in(Path::new(FOLDER));
    match &found[..] {
        [only] => Ok(only.clone()),
        [] => Err(NO_AGENT.into()),
        _ => {
            let stem = |p: &std::path::PathBuf| p.file_stem().map(|s| s.to_string_lossy().into_owned());
            let names: Vec<_> = found.iter().filter_map(stem).collect();
            Err(format!(
                "found several agents on this host, expected --name with one of: {}",
                names.join(", ")
            )
            .into())
        }
    }
}

/// Connects to the agent with this name. Without a name, there must be only one agent.
fn connect(name: Option<&str>, request: &Request) -> Result<Client, Failure> {
    Client::connect(&socket(name)?, request).map_err(|error| match (error.kind(), name) {
        (io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused, Some(name)) => {
            not_running(name, &clean::running(Path::new(FOLDER))).into()
        }
        (io::ErrorKind::ConnectionRefused, None) => NO_AGENT.into(),
        _ => error.into(),
    })
}

fn not_running(name: &str, running: &[String]) -> String {
    let others =
        if running.is_empty() { String::new() } else { format!("; running: {}", running.join(", ")) };
    format!("no agent {name:?} runs on this host{others}")
}

/// Prints the state of the agent with this name, or of all agents on this host.
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
    // `| head` closes the pipe early, which is no error.
    let _ = io::stdout().write_all(text.as_bytes());
    Ok(0)
}

fn clean_up(netns: Option<&str>) -> Result<u8, Failure> {
    let namespaces = match netns {
        Some(name) => {
            let netns = Netns::named(name);
            netns.run(|| ())?;
            vec![(format!(" in namespace {name}"), Some(netns))]
        }
        None => clean::namespaces(),
    };
    let running = clean::running(Path::new(FOLDER));
    if !running.is_empty() {
        println!("left alone, because they run: {}", running.join(", "));
    }
    let cleaned = clean::clean_all(&namespaces, Path::new(FOLDER), Path::new(bpffs::AGENTS));
    cleaned.removed.iter().for_each(|what| println!("removed {what}"));
    cleaned.failed.iter().for_each(|what| eprintln!("narrows-agent: {what}"));
    Ok(u8::from(!cleaned.failed.is_empty()))
}

/// Returns a file's name for error messages.
fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_for_an_unknown_name_lists_the_running_agents() {
        assert_eq!(not_running("x", &[]), "no agent \"x\" runs on this host");
        let running = ["switch", "sender"].map(String::from);
        assert_eq!(not_running("x", &running), "no agent \"x\" runs on this host; running: switch, sender");
    }
}
