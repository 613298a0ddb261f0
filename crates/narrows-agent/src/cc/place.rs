//! Makes, finds and removes the pins of loaded congestion control algorithms.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use libbpf_rs::query::LinkTypeInfo;
use libbpf_rs::{Link, MapCore, MapHandle};

use super::registered::{is_in_use, is_registered};
use super::{CcError, Variant};
use crate::bpffs;

/// Name of the pin of the link that keeps a congestion control algorithm registered.
pub(super) const LINK: &str = "link";
/// Name of the pin of the struct_ops map, on kernels without struct_ops links.
pub(super) const ELEMENT: &str = "element";
/// Name of the pin of the map with the counters.
pub(super) const FACTS: &str = "facts";

/// The folder for the pins, and the prefix of the algorithms' names. Tests use their own folder and prefix, because
/// names are unique in the machine.
#[derive(Clone, Debug)]
pub struct Place {
    /// The folder in bpffs for the pins. It is not the agents' folder, because `narrows-agent clean` removes that
    /// folder.
    pub folder: PathBuf,
    /// Prefix of each name, at most 10 characters. It separates the algorithms of Narrows from the kernel's own.
    pub prefix: String,
}

impl Default for Place {
    fn default() -> Self {
        Place { folder: Path::new(bpffs::PATH).join("narrows-cc"), prefix: "narrows_".to_owned() }
    }
}

impl Place {
    /// Returns the variant's name in the kernel.
    pub fn registered(&self, variant: Variant) -> String {
        self.prefix.clone() + &variant.name().replace('-', "_")
    }

    pub(super) fn of(&self, variant: Variant) -> PathBuf {
        self.folder.join(self.registered(variant))
    }

    /// Mounts bpffs if the folder is below [`bpffs::PATH`] and no bpffs is mounted there. The caller must hold the lock
    /// of [`bpffs`].
    pub(super) fn mount(&self) -> Result<(), CcError> {
        if !self.folder.starts_with(bpffs::PATH) {
            return Ok(());
        }
        // Remove leftovers first, because a mount with pins stays mounted. Then unmount covering mounts, so that new
        // pins are not put into a mount that hides older pins.
        self.remove_leftovers()?;
        bpffs::uncover();
        Ok(bpffs::mount_once()?)
    }

    /// Returns the id of the registered map behind the variant's pin in the visible folder. Returns `None` if there is
    /// no pin, or if the pin is stale. A pin is stale if the algorithm was unregistered, e.g. by a process in another
    /// mount namespace.
    pub(super) fn pinned_map(&self, variant: Variant) -> Result<Option<u32>, CcError> {
        let folder = self.of(variant);
        let unusable = |path: PathBuf| move |error| CcError::file(path)(io::Error::other(error));
        let link = folder.join(LINK);
        if exists(&link)? {
            let found = Link::open(&link).and_then(|link| link.info()).map_err(unusable(link))?;
            // The map id of a detached link is 0.
            let registers = |info| match info {
                LinkTypeInfo::StructOps(ops) => Some(ops.map_id).filter(|id| *id != 0),
                _ => None,
            };
            return Ok(registers(found.info));
        }
        let element = folder.join(ELEMENT);
        if !exists(&element)? {
            return Ok(None);
        }
        let map = MapHandle::from_pinned_path(&element).map_err(unusable(element.clone()))?;
        let id = map.info().map_err(unusable(element))?.info.id;
        Ok(is_in_use(&map).then_some(id))
    }

    /// Removes the pins of a variant from the visible folder, including stale pins. Returns whether they kept the
    /// algorithm registered. In that case, the kernel now unregisters it.
    pub(super) fn unpin(&self, variant: Variant) -> Result<bool, CcError> {
        let folder = self.of(variant);
        if !exists(&folder)? {
            return Ok(false);
        }
        let is_held = self.pinned_map(variant)?.is_some();
        let element = folder.join(ELEMENT);
        if is_held && exists(&element)? {
            let unregister = || MapHandle::from_pinned_path(&element)?.delete(&0u32.to_ne_bytes());
            unregister().map_err(|error| CcError::file(&element)(io::Error::other(error)))?;
        }
        fs::remove_dir_all(&folder).map_err(CcError::file(folder))?;
        // This fails while folders of other variants remain.
        let _ = fs::remove_dir(&self.folder);
        Ok(is_held)
    }

    /// Returns the visible folders of unregistered algorithms. They hold stale pins, or pins of a loader that was
    /// killed half-way.
    pub(super) fn leftovers(&self) -> Result<Vec<PathBuf>, CcError> {
        let failed = || CcError::file(&self.folder);
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed())?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed())?;
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder && !is_registered(&entry.file_name().to_string_lossy())? {
                found.push(entry.path());
            }
        }
        Ok(found)
    }

    /// Removes the folders of unregistered algorithms. Returns whether there were such folders. The caller must hold
    /// the lock of [`bpffs`].
    pub(super) fn remove_leftovers(&self) -> Result<bool, CcError> {
        let found = self.leftovers()?;
        for folder in &found {
            fs::remove_dir_all(folder).map_err(CcError::file(folder))?;
        }
        if !found.is_empty() {
            let _ = fs::remove_dir(&self.folder);
        }
        Ok(!found.is_empty())
    }

    /// Makes an empty folder for a variant that is not loaded. Removes pins that a killed process has left in the
    /// folder.
    pub(super) fn make_empty(&self, variant: Variant) -> Result<PathBuf, CcError> {
        let folder = self.of(variant);
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(CcError::file(&folder)(error));
            }
            _ => {}
        }
        fs::create_dir_all(&folder).map_err(CcError::file(&folder))?;
        Ok(folder)
    }
}

fn exists(path: &Path) -> Result<bool, CcError> {
    path.try_exists().map_err(CcError::file(path))
}
