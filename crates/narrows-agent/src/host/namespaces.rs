//! Applies a host's programs to network namespaces and their interfaces, which can vanish and return at any time.

use std::io;
use std::path::PathBuf;
use std::thread;

use libbpf_rs::{Iter, Link, MapCore, MapFlags, MapHandle, MapMut, ProgramMut};
use narrows_control::units::Time;

use super::interfaces::{AtInterface, Interface};
use super::load::refused;
use super::{HostError, Namespace, netns};
use crate::damping::Damping;
use crate::netns::Netns;
use crate::status::{InterfaceStatus, NamespaceStatus};
use crate::{clock, privileges, tcx};

/// The folder with the files of processes. The agent enters a namespace below this folder only at its start: without
/// privileges, it cannot open these files, and a process id may later belong to another process.
const PROCESSES: &str = "/proc";

/// The programs that apply to the namespaces.
#[derive(Debug)]
struct Programs {
    /// The map of the namespaces in which the programs for sockets apply.
    cookies: MapHandle,
    /// Iterator that takes over sockets that are older than the programs. `None`: these programs need no iterator.
    older_sockets: Option<Link>,
    at_interfaces: Vec<AtInterface>,
}

/// The namespaces of a host.
#[derive(Debug)]
pub struct Namespaces {
    all: Vec<Entered>,
    programs: Programs,
}

/// A namespace of the scope.
#[derive(Debug)]
struct Entered {
    /// `None`: the namespace of the calling thread.
    netns: Option<Netns>,
    /// Cookie of the namespace while the programs apply to it. If the namespace is created again, the cookie changes.
    cookie: Option<u64>,
    /// Why the programs do not apply to the namespace, as logged.
    trouble: Option<HostError>,
    interfaces: Vec<Interface>,
    damping: Damping,
}

impl Namespaces {
    pub(super) fn new(cookies: &MapMut<'_>) -> Result<Self, HostError> {
        let cookies = MapHandle::try_from(cookies)
            .map_err(refused("keeping the map of namespaces", "this is a bug in narrows-agent"))?;
        let programs = Programs { cookies, older_sockets: None, at_interfaces: Vec::new() };
        Ok(Namespaces { all: Vec::new(), programs })
    }

    /// Sets the iterator. It runs once in each namespace, when the programs begin to apply to the namespace.
    pub(super) fn take_over_sockets(&mut self, iterator: Link) {
        self.programs.older_sockets = Some(iterator);
    }

    /// Attaches this program to every interface at the next [`follow`](Namespaces::follow).
    pub(super) fn attach(&mut self, program: &ProgramMut<'_>, hook: tcx::Hook) -> Result<(), HostError> {
        self.programs.at_interfaces.push(AtInterface::new(program, hook)?);
        Ok(())
    }

    /// Applies the programs to each of these namespaces that exists. The programs apply to the missing ones when they
    /// appear.
    ///
    /// # Errors
    /// If no namespace or no interface exists. In this case, the configuration is probably for another machine.
    pub(super) fn start(&mut self, namespaces: &[Namespace]) -> Result<(), HostError> {
        self.set(namespaces);
        self.look(true);
        let is_used = |entered: &Entered| entered.cookie.is_some();
        if !self.all.iter().any(is_used)
            && let Some(trouble) = self.all.iter_mut().find_map(|entered| entered.trouble.take())
        {
            return Err(trouble);
        }
        let interfaces = || self.all.iter().flat_map(|entered| &entered.interfaces);
        if !interfaces().any(Interface::is_attached)
            && let Some((netns, trouble)) = self.all.iter_mut().find_map(Entered::take_trouble)
        {
            return Err(match netns {
                Some(netns) => HostError::Within { netns, source: Box::new(trouble) },
                None => trouble,
            });
        }
        Ok(())
    }

    /// Replaces the list of namespaces. The next [`follow`](Namespaces::follow) applies the programs to the new
    /// namespaces.
    pub fn set(&mut self, namespaces: &[Namespace]) {
        let wanted = |entered: &Entered| namespaces.iter().any(|new| entered.is(new));
        for mut gone in self.all.extract_if(.., |entered| !wanted(entered)) {
            gone.leave(&self.programs);
        }
        for namespace in namespaces {
            match self.all.iter_mut().find(|entered| entered.is(namespace)) {
                Some(entered) => entered.set_interfaces(&namespace.interfaces),
                None => self.all.push(Entered::new(namespace)),
            }
        }
    }

    /// Starts to use namespaces and interfaces that have appeared, and stops using those that have vanished. If the
    /// kernel refuses a namespace or an interface, the reason is logged once, and the next call tries again. Call this
    /// periodically, in the namespace in which the agent was started.
    pub fn follow(&mut self) {
        self.look(false);
    }

    fn look(&mut self, at_start: bool) {
        let programs = &self.programs;
        let (here, others): (Vec<_>, Vec<_>) =
            self.all.iter_mut().partition(|entered| entered.netns.is_none());
        here.into_iter().for_each(|entered| entered.look(programs));
        if others.is_empty() {
            return;
        }
        // Each thread has its own namespace (setns(2)), and its own privilege to enter other namespaces. No file of a
        // namespace stays open, because an open file would keep a deleted namespace alive.
        let visit = || {
            let raised = privileges::raise(privileges::ENTERING);
            for entered in others {
                match &raised {
                    Ok(()) => entered.visit(programs, at_start),
                    Err(error) => entered
                        .wait(programs, HostError::Netns(io::Error::new(error.kind(), error.to_string()))),
                }
            }
        };
        thread::scope(|scope| {
            match thread::Builder::new().name("namespaces".into()).spawn_scoped(scope, visit) {
                Ok(visitor) => visitor.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                Err(error) => tracing::warn!(event = "namespaces-unseen", %error),
            }
        });
    }

    /// Returns the state of each namespace that has a path.
    pub fn status(&self) -> Vec<NamespaceStatus> {
        let named = self.all.iter().filter_map(|entered| Some((entered, entered.path()?)));
        let status = |(entered, path): (&Entered, PathBuf)| NamespaceStatus {
            path: path.display().to_string(),
            present: entered.cookie.is_some(),
            refusal: refusal(entered.trouble.as_ref()),
        };
        named.map(status).collect()
    }

    /// Returns the state of each interface. Without programs for interfaces, the list is empty.
    pub fn interfaces(&self) -> Vec<InterfaceStatus> {
        let mut all = Vec::new();
        if self.programs.at_interfaces.is_empty() {
            return all;
        }
        for entered in &self.all {
            let netns = entered.path().map(|path| path.display().to_string());
            all.extend(entered.interfaces.iter().map(|interface| InterfaceStatus {
                name: interface.name().to_owned(),
                netns: netns.clone(),
                controlled: false,
                present: interface.is_attached(),
                refusal: refusal(interface.trouble()),
            }));
        }
        all
    }
}

/// Returns why an existing namespace or interface is not used. If the namespace or interface is missing or in use, the
/// text is empty.
fn refusal(trouble: Option<&HostError>) -> String {
    trouble.filter(|trouble| !trouble.is_missing()).map_or_else(String::new, ToString::to_string)
}

impl Entered {
    fn new(namespace: &Namespace) -> Entered {
        let mut entered = Entered {
            netns: namespace.path.clone().map(Netns::at),
            cookie: None,
            trouble: None,
            interfaces: Vec::new(),
            damping: Damping::default(),
        };
        entered.set_interfaces(&namespace.interfaces);
        entered
    }

    fn is(&self, namespace: &Namespace) -> bool {
        self.netns.as_ref().map(Netns::path) == namespace.path.as_deref()
    }

    fn path(&self) -> Option<PathBuf> {
        self.netns.as_ref().map(|netns| netns.path().to_owned())
    }

    fn set_interfaces(&mut self, names: &[String]) {
        self.interfaces.retain(|interface| names.iter().any(|name| name == interface.name()));
        for name in names {
            if !self.interfaces.iter().any(|interface| interface.name() == name) {
                self.interfaces.push(Interface::new(name, self.path()));
            }
        }
    }

    /// Enters the namespace until the thread ends, and applies the programs to it.
    fn visit(&mut self, programs: &Programs, at_start: bool) {
        let Some(netns) = &self.netns else { return };
        if netns.path().starts_with(PROCESSES) && !at_start {
            return self.look_from_outside(programs);
        }
        match netns.enter() {
            Ok(()) => self.look(programs),
            Err(error) => self.wait(programs, HostError::Netns(error)),
        }
    }

    /// Checks a namespace below [`PROCESSES`] without entering it, because it can be entered only at the agent's start.
    fn look_from_outside(&mut self, programs: &Programs) {
        if self.cookie.is_some() {
            let now = clock::now();
            self.interfaces.iter_mut().for_each(|interface| interface.look_from_outside(now));
        } else if let Some(path) = self.path() {
            let found = format!("{} belongs to a process", path.display());
            let remedy = "name the namespace by `ip netns attach NAME PID`, or restart the agent";
            self.wait(programs, HostError::Setting { key: "namespaces", found, remedy });
        }
    }

    /// Applies the programs to the namespace and its interfaces. The calling thread must be in the namespace.
    fn look(&mut self, programs: &Programs) {
        let now = clock::now();
        if let Err(error) = self.apply(programs, now) {
            return self.wait(programs, error);
        }
        for interface in &mut self.interfaces {
            interface.look(&programs.at_interfaces, now);
        }
    }

    /// Makes the programs for sockets apply to the namespace, unless they already do.
    fn apply(&mut self, programs: &Programs, now: Time) -> Result<(), HostError> {
        let cookie = netns::cookie()?;
        if self.cookie == Some(cookie) {
            return Ok(());
        }
        let is_new = self.cookie.is_none() && self.trouble.is_none();
        self.leave(programs);
        self.damping.admit(now, cookie)?;
        programs
            .cookies
            .update(&cookie.to_ne_bytes(), &[1], MapFlags::ANY)
            .map_err(refused("applying to a namespace", "at most 1024 namespaces are supported"))?;
        if let Some(iterator) = &programs.older_sockets
            && let Err(error) = take_over(iterator)
        {
            let _ = programs.cookies.delete(&cookie.to_ne_bytes());
            return Err(error);
        }
        (self.cookie, self.trouble) = (Some(cookie), None);
        if let Some(path) = self.path().filter(|_| !is_new) {
            tracing::info!(event = "namespace-back", netns = %path.display());
        }
        Ok(())
    }

    /// Stops using the namespace until it can be used again, and logs the reason.
    fn wait(&mut self, programs: &Programs, trouble: HostError) {
        let was_used = self.cookie.is_some();
        self.leave(programs);
        if trouble.is_missing() {
            self.damping.missing();
        }
        let error = trouble.to_string();
        let is_known = self.trouble.as_ref().is_some_and(|known| known.to_string() == error);
        if is_known || (!was_used && trouble.is_missing() && self.damping.flaps(clock::now())) {
            return;
        }
        let netns = self.path().unwrap_or_default();
        let netns = netns.display();
        if !trouble.is_missing() {
            tracing::warn!(event = "namespace-refused", %netns, error);
        } else if was_used {
            tracing::warn!(event = "namespace-gone", %netns, "the other namespaces stay in use");
        } else {
            tracing::warn!(event = "namespace-missing", %netns, "the agent takes it when it appears");
        }
        self.trouble = Some(trouble);
    }

    /// Stops using the namespace and its interfaces.
    fn leave(&mut self, programs: &Programs) {
        if let Some(cookie) = self.cookie.take() {
            self.damping.lost(clock::now());
            // If this fails, the map has no such entry, so there is nothing to remove.
            let _ = programs.cookies.delete(&cookie.to_ne_bytes());
        }
        self.interfaces.iter_mut().for_each(Interface::detach);
    }

    /// Takes the first error of an interface, and returns it with the path of the namespace.
    fn take_trouble(&mut self) -> Option<(Option<PathBuf>, HostError)> {
        let trouble = self.interfaces.iter_mut().find_map(Interface::take_trouble)?;
        Some((self.path(), trouble))
    }
}

/// Makes older listeners answer SYNs that ask for feedback. Also takes over the connections of an earlier sender whose
/// congestion control had the same name. This affects only the calling thread's network namespace.
///
/// The iterator also visits sockets outside of the cgroup, which does no harm. Outside of the cgroup, a listener saves
/// SYNs, but no program answers them. Connections there never used an earlier sender, so they are not taken over.
pub(super) fn take_over(iterator: &Link) -> Result<(), HostError> {
    let what = "visiting the open sockets";
    // The iterator belongs to the network namespace in which it was created. To run the iterator, read from it. It
    // returns no text.
    let mut sockets = Iter::new(iterator).map_err(refused(what, "Linux 6.12 or later is needed"))?;
    io::copy(&mut sockets, &mut io::sink()).map_err(HostError::file(what))?;
    Ok(())
}
