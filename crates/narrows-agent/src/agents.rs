//! Runs the agents of the three roles (switch, sender and receiver) until they stop.

use caps::Capability;
use narrows_control::units::Span;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use std::os::fd::AsFd;

use crate::cli::Agents;
use crate::clock;
use crate::config::{self, Config};
use crate::guard::Charge;
use crate::host;
use crate::privileges;
use crate::services::{Failure, Services};
use crate::status::Snapshot;
use crate::switch::Runner;

/// Time between two updates of a sender or receiver. An update publishes the agent's state and checks its namespaces.
const SHOW_EVERY: Span = Span::from_millis(200);

/// The agents that this program can run.
pub struct Built;

impl Agents for Built {
    fn switch(&self, config: &config::Switch, services: &mut Services) -> Result<(), Failure> {
        let mut runner = Runner::start(config, services)?;
        services.ready(&[])?;
        runner.run(services)
    }

    fn sender(&self, config: &config::Sender, services: &mut Services) -> Result<(), Failure> {
        let options = host::SenderOptions {
            scope: scope(&config.scope, &config.interfaces),
            mode: match config.mode {
                config::Mode::Brf => host::Mode::Brf,
                config::Mode::Cap => host::Mode::Cap,
            },
            choice: config.choice,
            default_in_namespaces: config.set_default,
            format: config.format,
            max_rate: config.max_rate,
            designate: config.designate,
            name: config.algorithm.clone(),
        };
        if config.set_default {
            services.guardian.charge(&Charge::Default(host::DefaultBefore::read(&config.algorithm)?))?;
        }
        let sender = host::Sender::load(&options)?;
        services.ready(reserve(&config.scope))?;
        wait(services, Config::Sender(config.clone()), sender)
    }

    fn receiver(&self, config: &config::Receiver, services: &mut Services) -> Result<(), Failure> {
        let options = host::ReceiverOptions { scope: scope(&config.scope, &[]), ask: config.ask };
        let receiver = host::Receiver::load(&options)?;
        services.ready(reserve(&config.scope))?;
        wait(services, Config::Receiver(config.clone()), receiver)
    }
}

/// The loaded eBPF programs of a sender or receiver.
trait Host {
    fn namespaces(&mut self) -> &mut host::Namespaces;
    fn counters(&self) -> Vec<(&'static str, u64)>;
}

impl Host for host::Sender {
    fn namespaces(&mut self) -> &mut host::Namespaces {
        &mut self.namespaces
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let counted = self.counters();
        vec![
            ("asked", counted.asked),
            ("rated", counted.rated),
            ("awaiting", counted.awaiting),
            ("unrated", counted.unrated),
            ("orphaned", counted.orphaned),
            ("adopted", counted.adopted),
            ("taken_over", counted.taken_over),
            ("marked", counted.marked),
            ("held", counted.held),
            ("designated", counted.designated),
            ("restored", counted.restored),
        ]
    }
}

impl Host for host::Receiver {
    fn namespaces(&mut self) -> &mut host::Namespaces {
        &mut self.namespaces
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let counted = self.counters();
        vec![("asked", counted.asked), ("reserving", counted.reserving)]
    }
}

/// Returns the capabilities to keep in reserve. An agent with `[[namespaces]]` needs a capability to enter namespaces
/// that appear after its start.
fn reserve(scope: &config::Scope) -> &'static [Capability] {
    if matches!(scope, config::Scope::Namespaces(_)) { &[privileges::ENTERING] } else { &[] }
}

fn scope(scope: &config::Scope, interfaces: &[String]) -> host::Scope {
    let here = host::Namespace { path: None, interfaces: interfaces.to_vec() };
    match scope {
        config::Scope::Netns => host::Scope { namespaces: vec![here], ..host::Scope::default() },
        config::Scope::Cgroup(cgroup) => {
            let namespaces = if interfaces.is_empty() { Vec::new() } else { vec![here] };
            host::Scope { cgroup: Some(cgroup.clone()), namespaces }
        }
        config::Scope::Namespaces(namespaces) => {
            host::Scope { namespaces: namespaces.clone(), ..host::Scope::default() }
        }
    }
}

/// Publishes the state of a sender or receiver every [`SHOW_EVERY`], until the agent is asked to stop. Each time, also
/// checks which namespaces and interfaces have vanished or appeared.
fn wait(services: &mut Services, mut config: Config, mut host: impl Host) -> Result<(), Failure> {
    let (started, role, name) = (clock::now(), config.role(), config.common().name.clone());
    while !services.stop.requested() {
        services.guardian.keep_alive();
        if let Some(new) = services.reloaded(|| config.clone()) {
            if let Some(config::Scope::Namespaces(namespaces)) = new.scope() {
                host.namespaces().set(namespaces);
            }
            config = new;
        }
        host.namespaces().follow();
        services.board.publish(Snapshot {
            role: role.to_owned(),
            name: name.clone(),
            at: clock::now(),
            started,
            interfaces: host.namespaces().interfaces(),
            namespaces: host.namespaces().status(),
            counters: host.counters().into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            ..Snapshot::default()
        });
        let mut fds = [PollFd::new(services.stop.as_fd(), PollFlags::POLLIN)];
        let ms = u16::try_from(SHOW_EVERY.as_nanos() / 1_000_000).unwrap_or(u16::MAX);
        match poll(&mut fds, PollTimeout::from(ms)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
