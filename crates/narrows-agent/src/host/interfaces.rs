//! Attaches the host's programs to an interface. The interface may vanish and return with another ifindex.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use libbpf_rs::ProgramMut;
use narrows_control::units::Time;

use super::{HostError, netns};
use crate::damping::Damping;
use crate::{htb, tcx};

/// A traffic control program for interfaces.
#[derive(Debug)]
pub(super) struct AtInterface {
    program: OwnedFd,
    hook: tcx::Hook,
}

impl AtInterface {
    pub(super) fn new(program: &ProgramMut<'_>, hook: tcx::Hook) -> Result<Self, HostError> {
        let program =
            program.as_fd().try_clone_to_owned().map_err(HostError::file("a descriptor of a program"))?;
        Ok(AtInterface { program, hook })
    }

    fn attach(&self, name: &str, index: u32) -> Result<OwnedFd, HostError> {
        tcx::attach(self.program.as_fd(), index, self.hook).map_err(|error| {
            let remedy = match error.raw_os_error() {
                // The interface was deleted after the lookup of its name.
                Some(libc::ENODEV) => return htb::Error::NoInterface(name.to_owned()).into(),
                Some(libc::EINVAL) => "Linux 6.6 or later with CONFIG_NET_XGRESS is needed",
                Some(libc::ERANGE) => "an interface can have at most 63 programs; `bpftool net` lists them",
                Some(libc::EPERM) => "run as root, or with CAP_NET_ADMIN and CAP_BPF",
                _ => "`ip -d link` describes the interface",
            };
            HostError::Missing {
                what: "attaching to an interface (tcx)",
                remedy: remedy.to_owned(),
                found: error.to_string(),
            }
        })
    }
}

/// An interface of the configuration.
#[derive(Debug)]
pub(super) struct Interface {
    name: String,
    /// The interface's namespace, for the log.
    netns: Option<PathBuf>,
    /// Links of the programs; empty while the interface is not used.
    links: Vec<OwnedFd>,
    /// Why the interface is not used, as logged.
    trouble: Option<HostError>,
    damping: Damping,
}

impl Interface {
    pub(super) fn new(name: &str, netns: Option<PathBuf>) -> Interface {
        Interface {
            name: name.to_owned(),
            netns,
            links: Vec::new(),
            trouble: None,
            damping: Damping::default(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn is_attached(&self) -> bool {
        !self.links.is_empty()
    }

    pub(super) fn trouble(&self) -> Option<&HostError> {
        self.trouble.as_ref()
    }

    pub(super) fn take_trouble(&mut self) -> Option<HostError> {
        self.trouble.take()
    }

    /// Attaches the programs to the interface with this name in the calling thread's namespace, unless they are
    /// attached already.
    pub(super) fn look(&mut self, programs: &[AtInterface], now: Time) {
        if programs.is_empty() {
            return;
        }
        let index = match netns::interface(&self.name) {
            Ok(index) => index,
            Err(missing) => {
                self.damping.missing();
                let was_attached = self.lose(now);
                return self.wait(missing.into(), was_attached, now);
            }
        };
        let is_there = |(link, at): (&OwnedFd, &AtInterface)| tcx::is_attached(link.as_fd(), index, at.hook);
        let are_there = self.links.iter().zip(programs).all(|pair| is_there(pair).unwrap_or(false));
        if self.links.len() == programs.len() && are_there {
            return;
        }
        // The programs are not attached to the interface that has this name now. An earlier interface of this name may
        // have been renamed, moved or deleted.
        let is_new = !self.is_attached() && self.trouble.is_none();
        let was_attached = self.lose(now);
        if let Err(flaps) = self.damping.admit(now, index.into()) {
            return self.wait(flaps.into(), was_attached, now);
        }
        match programs.iter().map(|program| program.attach(&self.name, index)).collect() {
            Ok(links) => {
                (self.links, self.trouble) = (links, None);
                if !is_new {
                    let netns = self.netns_for_log();
                    tracing::info!(event = "interface-back", interface = self.name, netns, index);
                }
            }
            Err(refused) => self.wait(refused, was_attached, now),
        }
    }

    /// Stops using the interface if it no longer exists. Call this if the namespace cannot be entered.
    pub(super) fn look_from_outside(&mut self, now: Time) {
        if self.links.iter().any(|link| !tcx::has_interface(link.as_fd()).unwrap_or(true)) {
            let was_attached = self.lose(now);
            self.wait(htb::Error::NoInterface(self.name.clone()).into(), was_attached, now);
        }
    }

    /// Stops using the interface. Returns whether programs were attached to it.
    fn lose(&mut self, now: Time) -> bool {
        let was_attached = self.is_attached();
        if was_attached {
            self.damping.lost(now);
            self.detach();
        }
        was_attached
    }

    /// Detaches the programs, even if the interface was renamed or moved.
    pub(super) fn detach(&mut self) {
        self.links.clear();
    }

    fn netns_for_log(&self) -> Option<tracing::field::DisplayValue<std::path::Display<'_>>> {
        self.netns.as_ref().map(|path| tracing::field::display(path.display()))
    }

    /// Logs why the interface is not used, unless the same reason is already logged. `was_attached` says whether the
    /// interface was in use until now.
    fn wait(&mut self, trouble: HostError, was_attached: bool, now: Time) {
        let error = trouble.to_string();
        let is_known = self.trouble.as_ref().is_some_and(|known| known.to_string() == error);
        if is_known || (!was_attached && trouble.is_missing() && self.damping.flaps(now)) {
            return;
        }
        let netns = self.netns_for_log();
        if !trouble.is_missing() {
            tracing::warn!(event = "interface-refused", interface = self.name, netns, error);
        } else if was_attached {
            tracing::warn!(
                event = "interface-gone",
                interface = self.name,
                netns,
                "its packets are not marked"
            );
        } else {
            let what = "the agent takes it when it appears";
            tracing::warn!(event = "interface-missing", interface = self.name, netns, "{what}");
        }
        self.trouble = Some(trouble);
    }
}
