//! BPF maps with an entry for each socket (bpf(2)).

#![allow(unsafe_code)]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// Commands of bpf(2) (linux/bpf.h).
const BPF_MAP_LOOKUP_ELEM: libc::c_long = 1;
const BPF_MAP_GET_FD_BY_ID: libc::c_long = 14;
const BPF_OBJ_GET_INFO_BY_FD: libc::c_long = 15;
/// The type of a map with an entry for each socket.
const BPF_MAP_TYPE_SK_STORAGE: u32 = 24;

/// The attributes of the three commands: the part of `union bpf_attr` that the kernel reads for each of them.
#[repr(C)]
#[derive(Default)]
struct BpfAttribute {
    first: u32,
    second: u32,
    pointer: u64,
    value: u64,
    flags: u64,
}

/// The first fields of `struct bpf_map_info`.
#[repr(C)]
#[derive(Default)]
struct BpfMapInfo {
    kind: u32,
    id: u32,
    key_size: u32,
    value_size: u32,
}

/// # Safety
/// The pointers in `attribute` must be valid for the command.
unsafe fn bpf(command: libc::c_long, attribute: &BpfAttribute) -> io::Result<i32> {
    // SAFETY: `attribute` outlives the call. The caller guarantees that its pointers are valid.
    let n =
        unsafe { libc::syscall(libc::SYS_bpf, command, &raw const *attribute, size_of::<BpfAttribute>()) };
    if n >= 0 { Ok(n as i32) } else { Err(io::Error::last_os_error()) }
}

/// A BPF map with an entry for each socket.
#[derive(Debug)]
pub(crate) struct SocketMap {
    fd: OwnedFd,
    value_bytes: usize,
}

impl SocketMap {
    /// Opens the map with this id.
    pub(crate) fn open(id: u32) -> io::Result<Self> {
        // SAFETY: this command takes no pointers.
        let fd =
            unsafe { bpf(BPF_MAP_GET_FD_BY_ID, &BpfAttribute { first: id, ..BpfAttribute::default() }) }?;
        // SAFETY: the kernel has just opened the descriptor, and nothing else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let mut info = BpfMapInfo::default();
        let attribute = BpfAttribute {
            first: fd.as_raw_fd() as u32,
            second: size_of::<BpfMapInfo>() as u32,
            pointer: &raw mut info as u64,
            ..BpfAttribute::default()
        };
        // SAFETY: the kernel writes at most `second` bytes to `info`.
        unsafe { bpf(BPF_OBJ_GET_INFO_BY_FD, &attribute) }?;
        if info.kind != BPF_MAP_TYPE_SK_STORAGE {
            return Err(io::Error::other(format!(
                "found a map of type {}, expected socket storage",
                info.kind
            )));
        }
        Ok(SocketMap { fd, value_bytes: info.value_size as usize })
    }

    /// Returns the entry of a socket of this process. Fails with ENOENT if the socket has none.
    pub(crate) fn of(&self, socket: impl AsFd) -> io::Result<Vec<u8>> {
        let key = socket.as_fd().as_raw_fd();
        let mut value = vec![0u8; self.value_bytes];
        let attribute = BpfAttribute {
            first: self.fd.as_raw_fd() as u32,
            pointer: &raw const key as u64,
            value: value.as_mut_ptr() as u64,
            ..BpfAttribute::default()
        };
        // SAFETY: the key is an `int`, as in all maps of this type. The kernel writes a value, whose size it has
        // reported for this map, to `value`.
        unsafe { bpf(BPF_MAP_LOOKUP_ELEM, &attribute) }?;
        Ok(value)
    }
}
