//! Removes all of the agent's objects when the agent ends, even by `kill -9`.
//!
//! eBPF links end with the process that holds them. Qdiscs and sysctls belong to the network namespace and
//! stay. A second, small process of the same program therefore waits for the end of a pipe from the agent,
//! and then removes the objects that the agent has registered. It ignores the signals that end an agent, and has a process
//! group of its own, so that Ctrl-C at a terminal does not reach it. (It is a new process, not a
//! `fork`: after a fork a program with threads must not take locks.)

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

/// Something to remove when the agent has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Charge {
    /// An interface's HTB.
    Htb(Remains),
    /// Nothing at the interface of this number, because it no longer exists.
    Vanished(u32),
    /// A file, e.g. a socket.
    File(PathBuf),
    /// The default congestion control of the guardian's network namespace.
    Default(DefaultBefore),
}

/// The agent's end of the pipe. When it is dropped or the agent dies, the guardian does its work.
#[derive(Debug)]
pub struct Guardian {
    child: Child,
    /// `None` once closed.
    charges: Option<ChildStdin>,
}

impl Guardian {
    /// Starts a guardian in the network namespace of the calling thread: call it after
    /// [`crate::netns::Netns::enter`] and before privileges are dropped.
    ///
    /// # Errors
    /// If the program cannot be started again.
    pub fn start() -> io::Result<Self> {
        Guardian::start_program(Path::new("/proc/self/exe"))
    }

    /// Like [`Guardian::start`], for programs that are not agents. `program` is the path of `narrows-agent`.
    pub fn start_program(program: &Path) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.arg(SUBCOMMAND).stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
        let mut child = command.arg0("narrows-guardian").spawn()?;
        let charges = child.stdin.take();
        Ok(Guardian { child, charges })
    }

    /// Asks the guardian to remove this object. Call this *before* you create the object. The
    /// guardian skips objects that do not exist.
    ///
    /// # Errors
    /// If the guardian has ended.
    pub fn charge(&mut self, charge: &Charge) -> io::Result<()> {
        let line = serde_json::to_string(charge)?;
        let pipe = self.charges.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        writeln!(pipe, "{line}")
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        drop(self.charges.take());
        // The guardian ends once the pipe is closed. Waiting makes sure that nothing is left when the agent
        // has ended.
        let _ = self.child.wait();
    }
}

/// The guardian's work: reads objects until the end of standard input, then removes them.
pub fn watch_over_stdin() -> io::Result<()> {
    for ignored in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGPIPE] {
        // SAFETY: ignoring a signal installs no handler that could be unsafe.
        #[allow(unsafe_code)]
        unsafe { signal(ignored, SigHandler::SigIgn) }?;
    }
    // Not a lack of privileges: an agent needs root as well.
    let _ = privileges::drop_to(&[Capability::CAP_NET_ADMIN]);
    let mut charges = Vec::new();
    for line in io::stdin().lock().lines() {
        // A line cut off by the agent's death is not JSON, and the agent had not acted on it yet.
        match serde_json::from_str(&line?) {
            // So that the list does not grow while an interface comes and goes.
            Ok(Charge::Vanished(index)) => {
                charges.retain(|charge| !matches!(charge, Charge::Htb(remains) if remains.index == index));
            }
            Ok(charge) => charges.push(charge),
            Err(_) => {}
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
