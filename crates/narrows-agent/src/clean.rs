//! Removes the objects of dead agents: HTB with our handle, pins, sockets.

use std::fs;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::htb::{Remains, Rtnl};
use crate::status::client::sockets_in;
use crate::{bpffs, cc};

/// Default folder of the agents' pins.
pub const PINS: &str = "/sys/fs/bpf/narrows-agent";

/// Results of a clean-up, one line each.
#[derive(Debug, Default)]
pub struct Cleaned {
    /// Removed objects.
    pub removed: Vec<String>,
    /// Objects that could not be removed, each with the reason.
    pub failed: Vec<String>,
}

/// Names of the running agents that have their sockets in `folder`.
pub fn running(folder: &Path) -> Vec<String> {
    let answers = |path: &&std::path::PathBuf| UnixStream::connect(path).is_ok();
    let name = |path: &std::path::PathBuf| path.file_stem().map(|s| s.to_string_lossy().into_owned());
    sockets_in(folder).iter().filter(answers).filter_map(name).collect()
}

/// Removes all HTBs of agents in this network namespace, the sockets in `folder` and everything below `pins`.
/// Call [`running`] first: this function does not spare the objects of a running agent.
pub fn clean(folder: &Path, pins: &Path) -> Cleaned {
    let mut cleaned = Cleaned::default();
    match qdiscs(&mut cleaned.removed) {
        Ok(()) => {}
        Err(error) => cleaned.failed.push(error.to_string()),
    }
    for path in sockets_in(folder) {
        note(&mut cleaned, &path, fs::remove_file(&path));
    }
    if pins.exists() {
        note(&mut cleaned, pins, fs::remove_dir_all(pins));
    }
    if pins.starts_with(bpffs::PATH) {
        hidden(&mut cleaned, pins);
        tidy(&mut cleaned);
    }
    cleaned
}

/// Removes pins that another mount hides.
fn hidden(cleaned: &mut Cleaned, pins: &Path) {
    if !bpffs::covered().is_ok_and(|covered| covered > 0) {
        return;
    }
    let remove = || match fs::remove_dir_all(pins) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        other => other.map(|()| true),
    };
    let shown = format!("{} below another mount", pins.display());
    match bpffs::below(remove) {
        Ok(true) => cleaned.removed.push(shown),
        Ok(false) => {}
        Err(error) => cleaned.failed.push(format!("{shown}: {error}")),
    }
}

/// Removes pins of congestion control algorithms that are not registered, and mounts that cover others.
fn tidy(cleaned: &mut Cleaned) {
    match cc::tidy(&cc::Place::default()) {
        Ok(tidied) => {
            if tidied.pins {
                cleaned.removed.push("pins of algorithms that are not registered".to_owned());
            }
            if tidied.mounts > 0 {
                cleaned.removed.push(format!("a bpffs that covered another one at {}", bpffs::PATH));
            }
        }
        Err(error) => cleaned.failed.push(error.to_string()),
    }
}

fn qdiscs(removed: &mut Vec<String>) -> Result<(), crate::htb::Error> {
    let mut rtnl = Rtnl::open()?;
    let links = rtnl.links()?;
    for remains in Remains::find(&mut rtnl)? {
        let name = links.iter().find(|l| l.index == remains.index).map_or("?", |l| l.name.as_str());
        if remains.undo(&mut rtnl)? {
            removed.push(format!("HTB of {name}"));
        }
    }
    Ok(())
}

fn note(cleaned: &mut Cleaned, path: &Path, result: io::Result<()>) {
    match result {
        Ok(()) => cleaned.removed.push(path.display().to_string()),
        Err(error) => cleaned.failed.push(format!("{}: {error}", path.display())),
    }
}
