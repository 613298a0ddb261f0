//! Attaches traffic control programs to interfaces by links of tcx (since Linux 6.6).

#![allow(unsafe_code, reason = "thin wrappers of libbpf's C functions")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

pub(crate) use libbpf_sys::{BPF_TCX_EGRESS as EGRESS, BPF_TCX_INGRESS as INGRESS};

/// One of the two hooks of an interface, [`EGRESS`] or [`INGRESS`].
pub(crate) type Hook = libbpf_sys::bpf_attach_type;

/// Largest number of programs at a hook (BPF_MPROG_MAX of include/linux/bpf_mprog.h).
const MOST: usize = 64;

/// Attaches a program to an interface of the current namespace. Unless the link is pinned, the kernel removes it when
/// its last descriptor is closed.
pub(crate) fn attach(program: BorrowedFd<'_>, ifindex: u32, hook: Hook) -> io::Result<OwnedFd> {
    let opts = libbpf_sys::bpf_link_create_opts {
        sz: size_of::<libbpf_sys::bpf_link_create_opts>() as _,
        ..Default::default()
    };
    // SAFETY: the descriptor is valid, and the structure is initialised and has the stated size.
    let link =
        unsafe { libbpf_sys::bpf_link_create(program.as_raw_fd(), ifindex as i32, hook, &raw const opts) };
    checked(link)?;
    // SAFETY: the kernel has just opened the descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(link) })
}

/// Returns whether `link` attaches its program to interface `ifindex` of the current namespace. Returns false if the
/// link's interface was deleted or moved, even if another interface now has its ifindex.
pub(crate) fn is_attached(link: BorrowedFd<'_>, ifindex: u32, hook: Hook) -> io::Result<bool> {
    let info = info(link)?;
    let (mut programs, mut links) = ([0u32; MOST], [0u32; MOST]);
    let mut opts = libbpf_sys::bpf_prog_query_opts {
        sz: size_of::<libbpf_sys::bpf_prog_query_opts>() as _,
        // The kernel returns links only if the caller also provides an array for programs.
        prog_ids: programs.as_mut_ptr(),
        link_ids: links.as_mut_ptr(),
        ..Default::default()
    };
    opts.__bindgen_anon_1.count = MOST as u32;
    // SAFETY: the structure is initialised and has the stated size. Both arrays have `count` elements and outlive the
    // call.
    checked(unsafe { libbpf_sys::bpf_prog_query_opts(ifindex as i32, hook, &raw mut opts) })?;
    // Unused elements are 0, which is not a link's id.
    Ok(links.contains(&info.id))
}

/// Returns whether the interface of this link still exists, in any namespace.
pub(crate) fn has_interface(link: BorrowedFd<'_>) -> io::Result<bool> {
    let info = info(link)?;
    // SAFETY: links of this type have this member of the union, and any bytes are valid numbers.
    Ok(unsafe { info.__bindgen_anon_1.tcx.ifindex } != 0)
}

fn info(link: BorrowedFd<'_>) -> io::Result<libbpf_sys::bpf_link_info> {
    let mut info = libbpf_sys::bpf_link_info::default();
    let mut len = size_of_val(&info) as u32;
    // SAFETY: the descriptor is valid. `len` is the length of the structure, and all its pointers are null.
    let code = unsafe {
        libbpf_sys::bpf_obj_get_info_by_fd(link.as_raw_fd(), ptr::from_mut(&mut info).cast(), &raw mut len)
    };
    checked(code).map(|()| info)
}

/// Converts libbpf's result, which is a negative errno on failure.
fn checked(code: i32) -> io::Result<()> {
    if code < 0 { Err(io::Error::from_raw_os_error(-code)) } else { Ok(()) }
}
