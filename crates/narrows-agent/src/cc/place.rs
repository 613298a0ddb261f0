//! Where what is loaded is kept.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use nix::mount::{MsFlags, mount};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};

use super::{CcError, Variant};

const BPFFS: &str = "/sys/fs/bpf";

/// A folder of a bpffs, and how names begin there. Tests have their own: names are the whole machine's.
#[derive(Clone, Debug)]
pub struct Place {
    /// The folder; not that of agents, which `narrows-agent clean` removes.
    pub folder: PathBuf,
    /// Before each name, so that it is not taken for the kernel's own; at most 10 characters.
    pub prefix: String,
}

impl Default for Place {
    fn default() -> Self {
        Place { folder: Path::new(BPFFS).join("narrows-cc"), prefix: "narrows_".to_owned() }
    }
}

impl Place {
    /// The name under which the kernel knows it.
    pub fn registered(&self, variant: Variant) -> String {
        self.prefix.clone() + &variant.name().replace('-', "_")
    }

    pub(super) fn of(&self, variant: Variant) -> PathBuf {
        self.folder.join(self.registered(variant))
    }

    /// Nobody else loads or unloads here until it is dropped: the loser of two that load would remove what the winner pinned.
    pub(super) fn alone(&self) -> Result<Flock<File>, CcError> {
        self.mounted()?;
        fs::create_dir_all(&self.folder).map_err(CcError::file(&self.folder))?;
        let folder = File::open(&self.folder).map_err(CcError::file(&self.folder))?;
        Flock::lock(folder, FlockArg::LockExclusive)
            .map_err(|(_, errno)| CcError::file(&self.folder)(errno.into()))
    }

    /// Mounts a bpffs where there is none, as bpftool does: without one nothing can outlive this process.
    fn mounted(&self) -> Result<(), CcError> {
        let is_bpffs = |path: &Path| statfs(path).is_ok_and(|s| s.filesystem_type() == BPF_FS_MAGIC);
        if self.folder.starts_with(BPFFS) && !is_bpffs(Path::new(BPFFS)) {
            mount(Some("bpf"), BPFFS, Some("bpf"), MsFlags::empty(), Some("mode=0700")).map_err(|errno| {
                CcError::Missing {
                    what: "keeping a congestion control loaded",
                    found: format!("no bpffs at {BPFFS}, and mounting one: {}", errno.desc()),
                    remedy: "mount one (`mount -t bpf bpf /sys/fs/bpf`)",
                }
            })?;
        }
        Ok(())
    }

    /// Makes the folder of a variant that is not loaded, without what one that was killed has pinned of it.
    pub(super) fn make_anew(&self, variant: Variant) -> Result<PathBuf, CcError> {
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
