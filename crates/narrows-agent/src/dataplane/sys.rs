//! Wrappers of system calls that libbpf-rs lacks.
#![allow(unsafe_code, reason = "thin wrappers of libbpf's C functions")]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use super::Error;

/// Returns the descriptor in a result of libbpf, which is a negative errno on failure.
fn owned(what: &'static str, fd: RawFd) -> Result<OwnedFd, Error> {
    checked(what, fd)?;
    // SAFETY: libbpf has just opened the descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn checked(what: &'static str, code: i32) -> Result<(), Error> {
    if code < 0 {
        return Err(Error::System { what, source: io::Error::from_raw_os_error(-code) });
    }
    Ok(())
}

fn c_path(path: &Path) -> Result<CString, Error> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Error::System { what: "path", source: io::ErrorKind::InvalidInput.into() })
}

/// Pins a program, map or link in bpffs.
pub(super) fn pin(fd: impl AsFd, path: &Path) -> Result<(), Error> {
    let path = c_path(path)?;
    // SAFETY: the descriptor is valid, and the path ends with NUL.
    checked("pin", unsafe { libbpf_sys::bpf_obj_pin(fd.as_fd().as_raw_fd(), path.as_ptr()) })
}

/// Opens a pinned object.
pub(super) fn open_pinned(path: &Path) -> Result<OwnedFd, Error> {
    let path = c_path(path)?;
    // SAFETY: the path ends with NUL.
    owned("open a pinned object", unsafe { libbpf_sys::bpf_obj_get(path.as_ptr()) })
}

/// Makes the kernel measure the run time of all programs until the descriptor is closed.
pub(super) fn enable_stats() -> Result<OwnedFd, Error> {
    // SAFETY: the call takes no pointers.
    owned("enable BPF statistics", unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) })
}

/// Returns the next id of a loaded program after `id`, or `None` after the last program.
pub(super) fn program_after(id: u32) -> Option<u32> {
    let mut next = 0;
    // SAFETY: `next` is written and outlives the call.
    let code = unsafe { libbpf_sys::bpf_prog_get_next_id(id, &raw mut next) };
    (code == 0).then_some(next)
}

/// Opens a loaded program by its id.
pub(super) fn open_program(id: u32) -> Result<OwnedFd, Error> {
    // SAFETY: the call takes no pointers.
    owned("open a program by its id", unsafe { libbpf_sys::bpf_prog_get_fd_by_id(id) })
}

/// Returns the kernel's information about a program.
pub(super) fn program_info(program: BorrowedFd<'_>) -> Result<libbpf_sys::bpf_prog_info, Error> {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut len = size_of_val(&info) as u32;
    // SAFETY: the descriptor is valid. `len` is the length of the structure, and all its pointers are null.
    let code = unsafe {
        libbpf_sys::bpf_obj_get_info_by_fd(program.as_raw_fd(), ptr::from_mut(&mut info).cast(), &raw mut len)
    };
    checked("read a program's statistics", code)?;
    Ok(info)
}

/// `struct __sk_buff` of <linux/bpf.h> as words: the input and the output of a test run.
pub(super) type Context = [u32; 48];
/// Index of `mark` in [`Context`].
pub(super) const MARK: usize = 2;
/// Index of `priority` in [`Context`].
pub(super) const PRIORITY: usize = 8;
/// Index of `ingress_ifindex` in [`Context`].
pub(super) const INGRESS_IFINDEX: usize = 9;
/// Index of `ifindex` in [`Context`].
pub(super) const IFINDEX: usize = 10;
/// Index of `gso_size` in [`Context`].
pub(super) const GSO_SIZE: usize = 44;

/// Runs the program once on a packet (BPF_PROG_TEST_RUN). Returns the program's verdict, and the length of the packet
/// in `out`.
pub(super) fn test_run(
    program: BorrowedFd<'_>,
    context: &mut Context,
    packet: &[u8],
    out: &mut [u8],
) -> Result<(i32, usize), Error> {
    let mut opts = libbpf_sys::bpf_test_run_opts {
        sz: size_of::<libbpf_sys::bpf_test_run_opts>() as _,
        data_in: packet.as_ptr().cast(),
        data_size_in: packet.len() as u32,
        data_out: out.as_mut_ptr().cast(),
        data_size_out: out.len() as u32,
        ctx_in: ptr::from_mut(context).cast(),
        ctx_size_in: size_of::<Context>() as u32,
        ctx_out: ptr::from_mut(context).cast(),
        ctx_size_out: size_of::<Context>() as u32,
        ..Default::default()
    };
    // SAFETY: each buffer has the given length and outlives the call.
    let code = unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), &raw mut opts) };
    checked("run the program on a packet", code)?;
    Ok((opts.retval as i32, opts.data_size_out as usize))
}
