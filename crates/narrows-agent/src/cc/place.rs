//! Where loaded congestion control algorithms are pinned.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use libbpf_rs::{MapCore, MapHandle};

use super::{CcError, Variant};
use crate::bpffs;

/// Name of the pin of the link that holds a congestion control algorithm.
pub(super) const LINK: &str = "link";
/// Name of the pin of the struct_ops map, where the kernel has no links for it.
pub(super) const ELEMENT: &str = "element";
/// Name of the pin of the map with the counters.
pub(super) const FACTS: &str = "facts";
const PINS: [&str; 2] = [LINK, ELEMENT];

/// A folder in bpffs, and a prefix of names. Tests use their own, because the names are shared by the whole
/// machine.
#[derive(Clone, Debug)]
pub struct Place {
    /// The folder. It differs from the agents' folder, which `narrows-agent clean` removes.
    pub folder: PathBuf,
    /// Prefix of each name, which distinguishes it from the kernel's own; at most 10 characters.
    pub prefix: String,
}

impl Default for Place {
    fn default() -> Self {
        Place { folder: Path::new(bpffs::PATH).join("narrows-cc"), prefix: "narrows_".to_owned() }
    }
}

impl Place {
    /// The variant's name in the kernel.
    pub fn registered(&self, variant: Variant) -> String {
        self.prefix.clone() + &variant.name().replace('-', "_")
    }

    pub(super) fn of(&self, variant: Variant) -> PathBuf {
        self.folder.join(self.registered(variant))
    }

    /// Mounts bpffs if the folder needs it and none is mounted. Hold the lock of [`bpffs`].
    pub(super) fn mount(&self) -> Result<(), CcError> {
        if !self.folder.starts_with(bpffs::PATH) {
            return Ok(());
        }
        // New pins must not cover older ones.
        bpffs::uncover();
        Ok(bpffs::mount_once()?)
    }

    /// Whether the variant is pinned in the folder that is visible now.
    pub(super) fn is_pinned(&self, variant: Variant) -> Result<bool, CcError> {
        let folder = self.of(variant);
        for pin in PINS.map(|name| folder.join(name)) {
            if pin.try_exists().map_err(CcError::file(&pin))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Removes the pins of a variant from the folder that is visible now, which unloads it. Returns whether
    /// there were any.
    pub(super) fn unpin(&self, variant: Variant) -> Result<bool, CcError> {
        if !self.is_pinned(variant)? {
            return Ok(false);
        }
        let folder = self.of(variant);
        let element = folder.join(ELEMENT);
        if element.try_exists().map_err(CcError::file(&element))? {
            let unregister = || MapHandle::from_pinned_path(&element)?.delete(&0u32.to_ne_bytes());
            unregister().map_err(|error| CcError::file(&element)(io::Error::other(error)))?;
        }
        fs::remove_dir_all(&folder).map_err(CcError::file(folder))?;
        // The last variant's unpin removes the folder.
        let _ = fs::remove_dir(&self.folder);
        Ok(true)
    }

    /// Makes the folder of a variant that is not loaded, without the pins that a killed process left there.
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
