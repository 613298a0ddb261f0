//! Opens the cgroup2 folder with the processes to which the programs apply.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::statfs::{CGROUP2_SUPER_MAGIC, fstatfs};

use super::HostError;

/// Opens the folder `path`, or the root of the hierarchy if `path` is `None`.
pub(super) fn open(path: Option<&Path>) -> Result<File, HostError> {
    let Some(path) = path else {
        return match mount_point()? {
            Some(root) => File::open(&root).map_err(HostError::file(root)),
            None => open_unmounted(),
        };
    };
    let folder = File::open(path).map_err(HostError::file(path))?;
    let is_cgroup2 = fstatfs(folder.as_fd()).is_ok_and(|s| s.filesystem_type() == CGROUP2_SUPER_MAGIC);
    if !is_cgroup2 {
        return Err(HostError::Setting {
            key: "cgroup",
            found: format!("{} is not a folder of a cgroup2 hierarchy", path.display()),
            remedy: "name a folder below the mount of cgroup2 (`mount -t cgroup2`)",
        });
    }
    Ok(folder)
}

/// Returns the mount point of the hierarchy, from `/proc/self/mounts` (proc(5)).
fn mount_point() -> Result<Option<PathBuf>, HostError> {
    let table = "/proc/self/mounts";
    let text = fs::read_to_string(table).map_err(HostError::file(table))?;
    Ok(text.lines().find_map(|line| {
        let mut fields = line.split(' ');
        let (_, at, kind) = (fields.next()?, fields.next()?, fields.next()?);
        (kind == "cgroup2").then(|| PathBuf::from(at))
    }))
}

/// Mounts the hierarchy, opens its root, and unmounts it. The open folder keeps the hierarchy usable.
fn open_unmounted() -> Result<File, HostError> {
    let at = std::env::temp_dir().join(format!("narrows-cgroup2-{}", std::process::id()));
    fs::create_dir(&at).map_err(HostError::file(&at))?;
    let opened = mount(Some("none"), &at, Some("cgroup2"), MsFlags::empty(), None::<&str>)
        .map_err(|errno| HostError::Missing {
            what: "mounting cgroup2",
            found: errno.desc().to_owned(),
            remedy: "run as root on a kernel with CONFIG_CGROUPS, or name a cgroup".to_owned(),
        })
        .and_then(|()| {
            let folder = File::open(&at).map_err(HostError::file(&at));
            // If this fails, only an entry in the folder for temporary files remains.
            let _ = umount2(&at, MntFlags::MNT_DETACH);
            folder
        });
    let _ = fs::remove_dir(&at);
    opened
}
