//! Removes all of the agent's objects when the agent ends, even by `kill -9`.
//!
//! The kernel removes eBPF links when the process ends. Qdiscs and sysctls stay, because they belong to the network
//! namespace. The agent therefore starts a second, small process of the same program, the guardian. When the agent's
//! end of their pipe closes, the guardian removes the objects that the agent has registered.
//!
//! The guardian ignores the signals that end an agent. It has its own process group, so that Ctrl-C at a terminal does
//! not reach it. It executes the program again instead of only forking, because a forked child of a process with
//! threads must not take locks.

use std::fs;
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use caps::Capability;
use nix::sys::signal::{SigHandler, Signal, signal};
use serde::{Deserialize, Serialize};

use crate::host::DefaultBefore;
use crate::htb::{Remains, Rtnl};
use crate::privileges;

/// The hidden subcommand that runs [`watch_over_stdin`].
pub const SUBCOMMAND: &str = "guardian";

/// An object that the guardian removes or restores after the agent has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Charge {
    /// The HTB of an interface.
    Htb(Remains),
    /// The interface with this ifindex is gone, and its HTB with it.
    Vanished(u32),
    /// A file, e.g. a socket.
    File(PathBuf),
    /// The default congestion control of the guardian's network namespace. The guardian restores the earlier default.
    Default(DefaultBefore),
}

/// Adds a charge to the list. [`Charge::Vanished`] instead removes the charge for the interface's HTB.
fn add(charges: &mut Vec<Charge>, charge: Charge) {
    match charge {
        // Remove the charge. Otherwise, the list would grow each time an interface vanishes and returns.
        Charge::Vanished(index) => {
            charges.retain(|charge| !matches!(charge, Charge::Htb(remains) if remains.index == index));
        }
        charge => charges.push(charge),
    }
}

/// The agent's end of the pipe. When it is dropped or the agent dies, the guardian removes the objects.
#[derive(Debug)]
pub struct Guardian {
    program: PathBuf,
    child: Child,
    /// `None` if the pipe is closed.
    pipe: Option<ChildStdin>,
    /// The objects to remove. A new guardian needs this list if the present one is killed.
    charges: Vec<Charge>,
}

impl Guardian {
    /// Starts a guardian in the calling thread's network namespace. Call this after [`crate::netns::Netns::enter`] and
    /// before privileges are dropped.
    ///
    /// # Errors
    /// If the program cannot be started again.
    pub fn start() -> io::Result<Self> {
        Guardian::start_program(Path::new("/proc/self/exe"))
    }

    /// Like [`Guardian::start`], for callers that are not `narrows-agent` itself. `program` is the path of
    /// `narrows-agent`.
    pub fn start_program(program: &Path) -> io::Result<Self> {
        let (child, pipe) = spawn(program)?;
        Ok(Guardian { program: program.to_owned(), child, pipe, charges: Vec::new() })
    }

    /// Asks the guardian to remove an object. Call this *before* you create the object. The guardian ignores objects
    /// that do not exist.
    ///
    /// # Errors
    /// If the guardian was killed and cannot be started again.
    pub fn charge(&mut self, charge: &Charge) -> io::Result<()> {
        add(&mut self.charges, charge.clone());
        match self.tell(charge) {
            Ok(()) => Ok(()),
            Err(_) => self.restart(),
        }
    }

    /// Starts the guardian again if it was killed. Call this from time to time.
    pub fn keep_alive(&mut self) {
        if self.pipe.is_some()
            && !matches!(self.child.try_wait(), Ok(None))
            && let Err(error) = self.restart()
        {
            tracing::warn!(event = "guardian-failed", %error, "if this agent is killed, its objects are not removed");
            // Do not try again.
            self.pipe = None;
        }
    }

    fn tell(&mut self, charge: &Charge) -> io::Result<()> {
        let line = serde_json::to_string(charge)?;
        let pipe = self.pipe.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        writeln!(pipe, "{line}")
    }

    fn restart(&mut self) -> io::Result<()> {
        let _ = self.child.wait();
        (self.child, self.pipe) = spawn(&self.program)?;
        tracing::warn!(event = "guardian-restarted", "the guardian was killed");
        let charges = self.charges.clone();
        charges.iter().try_for_each(|charge| self.tell(charge))
    }
}

fn spawn(program: &Path) -> io::Result<(Child, Option<ChildStdin>)> {
    let mut command = Command::new(program);
    command.arg(SUBCOMMAND).stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
    let mut child = command.arg0("narrows-guardian").spawn()?;
    let pipe = child.stdin.take();
    Ok((child, pipe))
}

impl Drop for Guardian {
    fn drop(&mut self) {
        drop(self.pipe.take());
        // The guardian ends after the pipe is closed. Wait for it, so that no objects are left when the agent has
        // ended.
        let _ = self.child.wait();
    }
}

/// Runs the guardian: reads charges until standard input ends, then removes or restores their objects.
pub fn watch_over_stdin() -> io::Result<()> {
    for ignored in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGPIPE] {
        // SAFETY: the signal is ignored, so no handler runs.
        #[allow(unsafe_code)]
        unsafe { signal(ignored, SigHandler::SigIgn) }?;
    }
    // If this fails, the guardian keeps the privileges that it was started with.
    let _ = privileges::drop_to(&[Capability::CAP_NET_ADMIN], &[]);
    let mut charges = Vec::new();
    for line in io::stdin().lock().lines() {
        // If the agent dies in the middle of a line, the line is not valid JSON. The agent has not created the object
        // of this line yet, so ignore the line.
        if let Ok(charge) = serde_json::from_str(&line?) {
            add(&mut charges, charge);
        }
    }
    for charge in charges.iter().rev() {
        undo(charge);
    }
    Ok(())
}

fn undo(charge: &Charge) {
    match charge {
        Charge::Htb(remains) => match Rtnl::open().and_then(|mut rtnl| remains.undo(&mut rtnl)) {
            Ok(false) => {}
            Ok(true) => {
                tracing::warn!(event = "guardian-removed-htb", interface = remains.index, "the agent died")
            }
            Err(error) => tracing::error!(event = "guardian-failed", interface = remains.index, %error),
        },
        Charge::Vanished(_) => {}
        Charge::File(path) => match fs::remove_file(path) {
            Ok(()) => {
                tracing::warn!(event = "guardian-removed-file", path = %path.display(), "the agent died")
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::error!(event = "guardian-failed", path = %path.display(), %error),
        },
        Charge::Default(before) => match before.restore() {
            Ok(false) => {}
            Ok(true) => tracing::warn!(event = "guardian-put-back-default", "the agent died"),
            Err(error) => tracing::error!(event = "guardian-failed", %error),
        },
    }
}
