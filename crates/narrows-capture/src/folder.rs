//! A folder with one file for each place, because programs that analyse TCP expect each packet once.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, BufWriter};
use std::ops::ControlFlow;
use std::path::Path;

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
            let file = File::create(path.join(file_name(interface.name(plan), &mut taken)))?;
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

/// Returns a file name for a place, which no other place has.
fn file_name(place: &str, taken: &mut BTreeSet<String>) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let plain: String = place.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    // A name such as `..` would be a folder.
    let base = if plain.starts_with('.') { format!("_{plain}") } else { plain };
    let numbered = |n: u32| if n == 1 { format!("{base}.pcapng") } else { format!("{base}-{n}.pcapng") };
    (1..).map(numbered).find(|name| taken.insert(name.clone())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_plain_and_unique() {
        let mut taken = BTreeSet::new();
        let mut name = |place| file_name(place, &mut taken);
        assert_eq!(name("s1"), "s1.pcapng");
        assert_eq!(name("r1->r2"), "r1-_r2.pcapng");
        assert_eq!(name("r1-/r2"), "r1-_r2-2.pcapng");
        assert_eq!(name("../../etc"), "_.._.._etc.pcapng");
        assert_eq!(name(""), ".pcapng");
    }
}
