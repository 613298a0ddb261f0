//! Loaded programs, held by links that end with the process, or pinned.

#![allow(unsafe_code, reason = "system calls that no library of ours wraps")]

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use libbpf_rs::{Link, ProgramMut};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};

use super::{HostError, Namespace, netns};

/// Links. Dropping this value detaches all of the programs.
#[derive(Debug, Default)]
pub(super) struct Links {
    pins: Option<Pins>,
    // Never read: they exist for their drop.
    raw: Vec<OwnedFd>,
    links: Vec<Link>,
}

#[derive(Debug)]
struct Pins {
    folder: PathBuf,
    role: &'static str,
}

impl Links {
    /// Removes the pins of an earlier start from the folder.
    pub(super) fn new(role: &'static str, pin: Option<&Path>) -> Result<Self, HostError> {
        let Some(folder) = pin else { return Ok(Links::default()) };
        fs::create_dir_all(folder).map_err(HostError::file(folder))?;
        if !statfs(folder).is_ok_and(|s| s.filesystem_type() == BPF_FS_MAGIC) {
            return Err(HostError::Setting {
                key: "pin",
                found: format!("{} is not in a bpffs", folder.display()),
                remedy: "name a folder below the mount of bpffs, e.g. /sys/fs/bpf/narrows",
            });
        }
        unpin(folder, role)?;
        Ok(Links { pins: Some(Pins { folder: folder.to_owned(), role }), ..Links::default() })
    }

    /// Keeps a link, and pins it if a folder is set.
    pub(super) fn hold(&mut self, name: &str, mut link: Link) -> Result<(), HostError> {
        if let Some(pins) = &self.pins {
            let path = pins.path(name);
            link.pin(&path).map_err(|error| HostError::file(path)(io::Error::other(error)))?;
        }
        self.links.push(link);
        Ok(())
    }

    /// Attaches a traffic control program to an interface of the namespace (tcx, 6.6).
    pub(super) fn attach_tcx(
        &mut self,
        name: &str,
        program: &ProgramMut<'_>,
        at: libbpf_sys::bpf_attach_type,
        namespace: &Namespace,
        interface: &str,
    ) -> Result<(), HostError> {
        let fd = program.as_fd_raw();
        let link = netns::within(namespace, || {
            let index = netns::interface(interface)?.cast_signed();
            // SAFETY: a plain system call; without options the last pointer may be null.
            let link = unsafe { libbpf_sys::bpf_link_create(fd, index, at, std::ptr::null()) };
            if link < 0 {
                return Err(HostError::Missing {
                    what: "attaching to an interface (tcx)",
                    found: io::Error::from_raw_os_error(-link).to_string(),
                    remedy: "Linux 6.6 or later with CONFIG_NET_XGRESS is needed, or configure no interfaces"
                        .into(),
                });
            }
            // SAFETY: the kernel has just opened it for us alone.
            Ok(unsafe { OwnedFd::from_raw_fd(link) })
        })?;
        if let Some(pins) = &self.pins {
            // Interfaces of several namespaces may have the same name.
            let path = pins.path(&format!("{name}_{}_{interface}", self.raw.len()));
            let path_c = CString::new(path.as_os_str().as_bytes())
                .map_err(|error| HostError::file(&path)(io::Error::other(error)))?;
            // SAFETY: the path is a string with its end, which outlives the call.
            let ret = unsafe { libbpf_sys::bpf_obj_pin(link.as_raw_fd(), path_c.as_ptr()) };
            if ret < 0 {
                return Err(HostError::file(path)(io::Error::from_raw_os_error(-ret)));
            }
        }
        self.raw.push(link);
        Ok(())
    }

    /// Whether the links outlive the process.
    pub(super) fn is_pinned(&self) -> bool {
        self.pins.is_some()
    }
}

impl Pins {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{}_{}", self.role, name.replace('.', "_")))
    }
}

/// Removes the pins of a role from the folder. A missing folder is no error.
pub(super) fn unpin(folder: &Path, role: &str) -> Result<(), HostError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(HostError::file(folder)(error)),
    };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(&format!("{role}_")) {
            fs::remove_file(entry.path()).map_err(HostError::file(entry.path()))?;
        }
    }
    Ok(())
}

/// The descriptor for system calls.
trait AsFdRaw {
    fn as_fd_raw(&self) -> i32;
}

impl AsFdRaw for ProgramMut<'_> {
    fn as_fd_raw(&self) -> i32 {
        std::os::fd::AsFd::as_fd(self).as_raw_fd()
    }
}
