//! Removes the objects of dead agents: HTBs with the agent's handle, filters, pins and sockets. Objects of running
//! agents stay.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::dataplane::program;
use crate::htb::{Remains, Rtnl};
use crate::netns::{self, Netns};
use crate::status::client::sockets_in;
use crate::{bpffs, cc, claim};

/// The results of a clean-up, as lines of text.
#[derive(Debug, Default)]
pub struct Cleaned {
    /// Removed objects.
    pub removed: Vec<String>,
    /// Objects that could not be removed, each with the reason.
    pub failed: Vec<String>,
}

/// Returns the names of the running agents that have their sockets in `folder`.
pub fn running(folder: &Path) -> Vec<String> {
    let name = |path: &PathBuf| path.file_stem().map(|s| s.to_string_lossy().into_owned());
    sockets_in(folder).iter().filter(|path| answers(path)).filter_map(name).collect()
}

fn answers(socket: &Path) -> bool {
    UnixStream::connect(socket).is_ok()
}

/// Returns all network namespaces that may hold objects of agents: the current namespace, all named namespaces, and the
/// namespaces of all processes. Each namespace is listed once, with a text for messages such as ` in namespace a`. For
/// the current namespace, the text is empty and there is no `Netns`.
pub fn namespaces() -> Vec<(String, Option<Netns>)> {
    let mut seen = BTreeSet::new();
    let mut is_new = |path: &Path| {
        // Skip an unreadable namespace. It belongs to a process that this process may not examine.
        fs::metadata(path).is_ok_and(|facts| seen.insert((facts.dev(), facts.ino())))
    };
    let mut found = Vec::new();
    if is_new(Path::new("/proc/thread-self/ns/net")) {
        found.push((String::new(), None));
    }
    for (name, path) in netns::named() {
        if is_new(&path) {
            found.push((format!(" in namespace {name}"), Some(Netns::at(path))));
        }
    }
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(number) = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let path = process.path().join("ns/net");
        if is_new(&path) {
            found.push((format!(" in the namespace of process {number}"), Some(Netns::at(path))));
        }
    }
    found
}

/// Removes the objects of dead agents: HTBs and filters in this network namespace, sockets in `folder`, and pins below
/// `pins`.
pub fn clean(folder: &Path, pins: &Path) -> Cleaned {
    let mut cleaned = clean_in("");
    clean_files(folder, pins, &mut cleaned);
    cleaned
}

/// Does the same as [`clean`], but removes HTBs and filters from all of these namespaces.
pub fn clean_all(namespaces: &[(String, Option<Netns>)], folder: &Path, pins: &Path) -> Cleaned {
    let mut cleaned = Cleaned::default();
    for (place, netns) in namespaces {
        let part = match netns {
            None => clean_in(place),
            Some(netns) => netns
                .run(|| clean_in(place))
                .unwrap_or_else(|error| Cleaned { failed: vec![error.to_string()], ..Cleaned::default() }),
        };
        cleaned.removed.extend(part.removed);
        cleaned.failed.extend(part.failed);
    }
    clean_files(folder, pins, &mut cleaned);
    cleaned
}

/// Removes the HTBs and filters of dead agents from the current namespace. `place` is appended to each line of the
/// result.
fn clean_in(place: &str) -> Cleaned {
    let mut cleaned = Cleaned::default();
    if let Err(error) = qdiscs(place, &mut cleaned.removed) {
        cleaned.failed.push(format!("{error}{place}"));
    }
    cleaned
}

fn clean_files(folder: &Path, pins: &Path, cleaned: &mut Cleaned) {
    let running = running(folder);
    for path in sockets_in(folder).iter().filter(|path| !answers(path)) {
        note(cleaned, path, fs::remove_file(path));
    }
    if pins.exists() {
        match unpin(pins, &running) {
            Ok(false) => {}
            Ok(true) => cleaned.removed.push(pins.display().to_string()),
            Err(error) => cleaned.failed.push(format!("{}: {error}", pins.display())),
        }
    }
    if pins.starts_with(bpffs::PATH) {
        hidden(cleaned, pins, &running);
        tidy(cleaned);
    }
}

/// Removes the pins of agents that do not run. Each agent has a folder with its name. Returns whether anything was
/// removed.
fn unpin(pins: &Path, running: &[String]) -> io::Result<bool> {
    let is_used = |name: &OsStr| running.iter().any(|agent| name == agent.as_str());
    let mut any = false;
    let mut kept = false;
    for entry in fs::read_dir(pins)? {
        let entry = entry?;
        if is_used(&entry.file_name()) {
            kept = true;
            continue;
        }
        any = true;
        let is_folder = entry.file_type()?.is_dir();
        if is_folder { fs::remove_dir_all(entry.path()) } else { fs::remove_file(entry.path()) }?;
    }
    if !kept {
        fs::remove_dir(pins)?;
    }
    Ok(any || !kept)
}

/// Removes the pins of agents that do not run from each hidden bpffs.
fn hidden(cleaned: &mut Cleaned, pins: &Path, running: &[String]) {
    if !bpffs::covered().is_ok_and(|covered| covered > 0) {
        return;
    }
    let removed = AtomicBool::new(false);
    let remove = || {
        match unpin(pins, running) {
            Ok(any) => _ = removed.fetch_or(any, Ordering::Relaxed),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        // Other hidden bpffs mounts may also have pins, so continue the search.
        Ok(false)
    };
    let shown = format!("{} below another mount", pins.display());
    if let Err(error) = bpffs::below(remove) {
        cleaned.failed.push(format!("{shown}: {error}"));
    }
    if removed.into_inner() {
        cleaned.removed.push(shown);
    }
}

/// Removes pins of congestion control algorithms that are not registered. Also unmounts each bpffs that hides another
/// bpffs and has no pins.
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

/// Removes the HTBs of unclaimed ports. If no switch runs in this namespace, also removes the filters of the switch's
/// program.
fn qdiscs(place: &str, removed: &mut Vec<String>) -> Result<(), crate::htb::Error> {
    let mut rtnl = Rtnl::open()?;
    let links = rtnl.links()?;
    let name = |index| links.iter().find(|l| l.index == index).map_or("?", |l| l.name.as_str());
    let claimed = claim::held();
    for remains in Remains::find(&mut rtnl)? {
        if !claimed.contains(&remains.index) && remains.undo(&mut rtnl)? {
            removed.push(format!("HTB of {}{place}", name(remains.index)));
        }
    }
    // On kernels with tcx, the program's links end with the agent's process. On older kernels, the program is a filter
    // of clsact, which stays and must be removed here.
    if claimed.is_empty() {
        for index in Remains::find_clsact(&mut rtnl)? {
            if program::remove_filter(index) {
                removed.push(format!("filter of {}{place}", name(index)));
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_of_running_agents_stay() {
        let folder = tempfile::tempdir().unwrap();
        let pins = folder.path().join("pins");
        for agent in ["dead", "live"] {
            fs::create_dir_all(pins.join(agent)).unwrap();
            fs::write(pins.join(agent).join("program"), "").unwrap();
        }
        let running = ["live".to_owned()];
        assert!(unpin(&pins, &running).unwrap());
        assert!(pins.join("live/program").exists() && !pins.join("dead").exists());
        assert!(!unpin(&pins, &running).unwrap(), "nothing is left to remove");
        assert!(unpin(&pins, &[]).unwrap());
        assert!(!pins.exists());
    }

    #[test]
    fn each_namespace_is_listed_once() {
        let found = namespaces();
        assert_eq!(found.iter().filter(|(_, netns)| netns.is_none()).count(), 1);
        let mine = fs::metadata("/proc/thread-self/ns/net").unwrap().ino();
        let others = found.iter().filter_map(|(_, netns)| netns.as_ref());
        for other in others {
            assert_ne!(fs::metadata(other.path()).map(|facts| facts.ino()).ok(), Some(mine));
        }
    }
}
