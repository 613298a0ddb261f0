//! A folder with one file for each place, because programs that analyse TCP expect each packet once.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, BufWriter};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use narrows_sim::capture::{Captured, Tap};
use narrows_sim::plan::Plan;

use crate::pcapng::{Interface, Pcapng};

/// The files of a run's capture.
pub struct Folder {
    files: HashMap<Interface, Pcapng<BufWriter<File>>>,
}

impl Folder {
    /// Begins a file `NAME.pcapng` for each place that the plan captures.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn create(path: &Path, plan: &Plan) -> io::Result<Self> {
        let mut taken = BTreeSet::new();
        let mut files = HashMap::new();
        for interface in Interface::all(plan) {
            let file = File::create(path.join(file_name(interface.name(plan), "pcapng", &mut taken)))?;
            files.insert(interface, Pcapng::new(BufWriter::new(file), plan, interface)?);
        }
        Ok(Folder { files })
    }

    /// Ends all files.
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
    state: Mutex<LogState>,
}

#[derive(Debug, Default)]
struct LogState {
    taken: BTreeSet<String>,
    error: Option<io::Error>,
}

impl Logs {
    /// Creates no file yet.
    pub fn new(folder: &Path) -> Self {
        Logs { folder: folder.to_owned(), state: Mutex::default() }
    }

    /// Begins the file `FLOW.sqlog`; `None` if it cannot be written. [`finish`](Logs::finish) then returns the error.
    pub fn open(&self, flow: &str) -> Option<BufWriter<File>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let name = file_name(flow, "sqlog", &mut state.taken);
        match File::create(self.folder.join(name)) {
            Ok(file) => Some(BufWriter::new(file)),
            Err(error) => {
                state.error.get_or_insert(error);
                None
            }
        }
    }

    /// Ends the logs.
    ///
    /// # Errors
    /// A file could not be created.
    pub fn finish(self) -> io::Result<()> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.error.map_or(Ok(()), Err)
    }
}

/// Returns a file name for a place or a flow, which no other one has.
fn file_name(place: &str, extension: &str, taken: &mut BTreeSet<String>) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let plain: String = place.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    // A name such as `..` would be a folder.
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
