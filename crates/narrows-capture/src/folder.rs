//! Writes one file for each captured link and host. Links and hosts do not share a file, because programs that analyse
//! TCP expect each packet only once per file.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use narrows_sim::capture::{Captured, Tap};
use narrows_sim::plan::Plan;
use rustc_hash::FxHashMap;

use crate::pcapng::{Interface, Pcapng};

/// The files of a run's capture.
pub struct Folder {
    files: FxHashMap<Interface, Pcapng<File>>,
}

impl Folder {
    /// Creates a file `NAME.pcapng` for each captured link and host.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn create(path: &Path, plan: &Plan) -> io::Result<Self> {
        let mut taken = BTreeSet::new();
        let mut files = FxHashMap::default();
        for interface in Interface::all(plan) {
            let file = File::create(path.join(file_name(interface.name(plan), "pcapng", &mut taken)))?;
            files.insert(interface, Pcapng::new(file, plan, interface)?);
        }
        Ok(Folder { files })
    }

    /// Writes all remaining packets, and closes the files.
    ///
    /// # Errors
    /// A packet could not be written.
    pub fn finish(self) -> io::Result<()> {
        self.files.into_values().try_for_each(Pcapng::finish)
    }
}

impl Tap for Folder {
    fn on_packet(&mut self, packet: &Captured<'_>) -> ControlFlow<()> {
        match self.files.get_mut(&Interface::of(packet.place)) {
            Some(file) => file.on_packet(packet),
            None => ControlFlow::Continue(()),
        }
    }
}

/// The logs that the stacks of flows write, in a folder.
#[derive(Debug)]
pub struct Logs {
    folder: PathBuf,
    state: Arc<Mutex<LogState>>,
}

#[derive(Debug, Default)]
struct LogState {
    taken: BTreeSet<String>,
    error: Option<io::Error>,
}

impl Logs {
    /// Returns the logs of a folder. Files are created only by [`open`](Logs::open).
    pub fn new(folder: &Path) -> Self {
        Logs { folder: folder.to_owned(), state: Arc::default() }
    }

    /// Creates the file `FLOW.sqlog`. If this fails, the function returns `None`, and [`finish`](Logs::finish) returns
    /// the error.
    pub fn open(&self, flow: &str) -> Option<Log> {
        let mut state = lock(&self.state);
        let name = file_name(flow, "sqlog", &mut state.taken);
        match File::create(self.folder.join(name)) {
            Ok(file) => Some(Log { file: BufWriter::new(file), state: self.state.clone() }),
            Err(error) => {
                state.error.get_or_insert(error);
                None
            }
        }
    }

    /// Returns the first error that occurred in any log. Drop all logs before this call.
    ///
    /// # Errors
    /// A file could not be created or written.
    pub fn finish(self) -> io::Result<()> {
        lock(&self.state).error.take().map_or(Ok(()), Err)
    }
}

fn lock(state: &Mutex<LogState>) -> MutexGuard<'_, LogState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The log of a flow. A stack ignores write errors, so the log stores them for [`Logs::finish`].
#[derive(Debug)]
pub struct Log {
    file: BufWriter<File>,
    state: Arc<Mutex<LogState>>,
}

impl Log {
    fn keep<T>(&self, outcome: io::Result<T>) -> io::Result<T> {
        outcome.map_err(|error| {
            let kind = error.kind();
            lock(&self.state).error.get_or_insert(error);
            kind.into()
        })
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let outcome = self.file.write(bytes);
        self.keep(outcome)
    }

    fn flush(&mut self) -> io::Result<()> {
        let outcome = self.file.flush();
        self.keep(outcome)
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

/// Returns the names of the files of these links or hosts, for another program that writes the files.
pub fn file_names<S: AsRef<str>>(places: &[S], extension: &str) -> Vec<String> {
    let mut taken = BTreeSet::new();
    places.iter().map(|place| file_name(place.as_ref(), extension, &mut taken)).collect()
}

/// Returns a unique file name for a captured link, a captured host or a flow.
fn file_name(place: &str, extension: &str, taken: &mut BTreeSet<String>) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let plain: String = place.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    // A name such as `..` would refer to a folder.
    let base = if plain.starts_with('.') { format!("_{plain}") } else { plain };
    let number = |n: u32| if n == 1 { String::new() } else { format!("-{n}") };
    let numbered = |n: u32| format!("{base}{}.{extension}", number(n));
    (1..).map(numbered).find(|name| taken.insert(name.clone())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_plain_and_unique() {
        let mut taken = BTreeSet::new();
        let mut name = |place| file_name(place, "pcapng", &mut taken);
        assert_eq!(name("s1"), "s1.pcapng");
        assert_eq!(name("r1->r2"), "r1-_r2.pcapng");
        assert_eq!(name("r1-/r2"), "r1-_r2-2.pcapng");
        assert_eq!(name("../../etc"), "_.._.._etc.pcapng");
        assert_eq!(name(""), ".pcapng");
    }
}
