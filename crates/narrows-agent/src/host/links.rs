//! Loaded programs, held by links that end with the process, or pinned.

#![allow(unsafe_code, reason = "system calls that no library of ours wraps")]

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use libbpf_rs::{Link, ProgramMut};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};

use super::{HostError, Namespace, netns};

/// Links. Dropping this value detaches all of the programs.
#[derive(Debug, Default)]
pub(super) struct Links {
    pins: Option<Pins>,
    interfaces: Vec<AtInterface>,
    // Never read: they exist for their drop.
    links: Vec<Link>,
}

/// A traffic control program at an interface, which can vanish and come back.
#[derive(Debug)]
struct AtInterface {
    name: String,
    /// Whether the interface is in the agent's own network namespace. An agent that has dropped its privileges cannot
    /// enter other namespaces.
    is_here: bool,
    program: OwnedFd,
    at: libbpf_sys::bpf_attach_type,
    link: OwnedFd,
    /// Where the link is pinned.
    pin: Option<PathBuf>,
    is_missing: bool,
    /// The last reason why the kernel refused to attach, which is logged once.
    refusal: String,
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
        let attached = program.as_fd().try_clone_to_owned();
        let program = attached.map_err(HostError::file("a descriptor of a program"))?;
        let link = netns::within(namespace, || create(&program, netns::interface(interface)?, at))?;
        // Interfaces of several namespaces may have the same name.
        let file = format!("{name}_{}_{interface}", self.interfaces.len());
        let interface = AtInterface {
            name: interface.to_owned(),
            is_here: namespace.path.is_none(),
            program,
            at,
            link,
            pin: self.pins.as_ref().map(|pins| pins.path(&file)),
            is_missing: false,
            refusal: String::new(),
        };
        interface.pin(&interface.link)?;
        self.interfaces.push(interface);
        Ok(())
    }

    /// Attaches programs again to interfaces that have vanished and come back. If the kernel refuses, the next call tries
    /// again.
    pub(super) fn follow_interfaces(&mut self) {
        self.interfaces.iter_mut().filter(|interface| interface.is_here).for_each(AtInterface::follow);
    }

    /// Whether the links outlive the process.
    pub(super) fn is_pinned(&self) -> bool {
        self.pins.is_some()
    }
}

impl AtInterface {
    fn follow(&mut self) {
        let Ok(index) = netns::interface(&self.name) else {
            if !self.is_missing {
                tracing::warn!(event = "interface-gone", interface = self.name, "its packets are not marked");
            }
            self.is_missing = true;
            self.refusal.clear();
            return;
        };
        // The link of a deleted interface has no index, even if a new interface has the old one's index.
        if index_of(&self.link).is_none_or(|held| held == index) {
            return;
        }
        if let Err(error) = self.attach_again(index) {
            let text = error.to_string();
            if text != self.refusal {
                tracing::warn!(event = "interface-refused", interface = self.name, error = text);
                self.refusal = text;
            }
            return;
        }
        self.is_missing = false;
        self.refusal.clear();
        tracing::info!(event = "interface-back", interface = self.name, index);
    }

    fn attach_again(&mut self, index: u32) -> Result<(), HostError> {
        let link = create(&self.program, index, self.at)?;
        self.pin(&link)?;
        self.link = link;
        Ok(())
    }

    /// Pins a link, and replaces an earlier pin.
    fn pin(&self, link: &OwnedFd) -> Result<(), HostError> {
        let Some(path) = &self.pin else { return Ok(()) };
        let _ = fs::remove_file(path);
        let path_c = CString::new(path.as_os_str().as_bytes())
            .map_err(|error| HostError::file(path)(io::Error::other(error)))?;
        // SAFETY: the path is NUL-terminated and outlives the call.
        let ret = unsafe { libbpf_sys::bpf_obj_pin(link.as_raw_fd(), path_c.as_ptr()) };
        if ret < 0 { Err(HostError::file(path)(io::Error::from_raw_os_error(-ret))) } else { Ok(()) }
    }
}

/// Attaches a program to an interface of the current namespace.
fn create(program: &OwnedFd, index: u32, at: libbpf_sys::bpf_attach_type) -> Result<OwnedFd, HostError> {
    // SAFETY: a plain system call; without options the last pointer may be null.
    let link = unsafe {
        libbpf_sys::bpf_link_create(program.as_raw_fd(), index.cast_signed(), at, std::ptr::null())
    };
    if link < 0 {
        return Err(HostError::Missing {
            what: "attaching to an interface (tcx)",
            found: io::Error::from_raw_os_error(-link).to_string(),
            remedy: "Linux 6.6 or later with CONFIG_NET_XGRESS is needed, or configure no interfaces".into(),
        });
    }
    // SAFETY: the kernel has just opened this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(link) })
}

/// Index of a link's interface: 0 if it was deleted, `None` if the kernel does not report it.
fn index_of(link: &OwnedFd) -> Option<u32> {
    let mut info = libbpf_sys::bpf_link_info::default();
    let mut len = u32::try_from(size_of_val(&info)).ok()?;
    // SAFETY: pointer and length are those of a plain structure that outlives the call.
    let ret = unsafe { libbpf_sys::bpf_link_get_info_by_fd(link.as_raw_fd(), &raw mut info, &raw mut len) };
    // SAFETY: this member of the union is valid for links of this type, and any bytes are valid numbers.
    (ret == 0).then_some(unsafe { info.__bindgen_anon_1.tcx.ifindex })
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
