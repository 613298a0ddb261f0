//! An mmapable array as a slice.
#![allow(unsafe_code, reason = "the one place where maps become memory")]

use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::ptr::NonNull;

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

use super::Error;
use super::layout::{RawPort, RawSlot};

/// Types that may be in shared memory.
///
/// # Safety
/// Any bytes must be a valid value, and all fields must be atomics: the kernel writes at any time.
pub(super) unsafe trait Shared {}
// SAFETY: atomic integers only.
unsafe impl Shared for RawSlot {}
// SAFETY: atomic integers only.
unsafe impl Shared for RawPort {}

/// The values of an mmapable array map.
pub(super) struct Memory<T: Shared> {
    at: NonNull<T>,
    len: usize,
    mapped: usize,
}

// SAFETY: only atomics are accessed through it, and the mapping belongs to the process.
unsafe impl<T: Shared> Send for Memory<T> {}
// SAFETY: as above.
unsafe impl<T: Shared> Sync for Memory<T> {}

impl<T: Shared> Memory<T> {
    /// Maps the array with this many values of `T`.
    pub(super) fn new(map: impl AsFd, len: usize) -> Result<Self, Error> {
        let failed = |source: std::io::Error| Error::System { what: "mmap of a BPF array", source };
        let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok().flatten().unwrap_or(4096);
        let page = usize::try_from(page).unwrap_or(4096);
        let mapped = (len * size_of::<T>()).next_multiple_of(page);
        let length =
            NonZeroUsize::new(mapped).ok_or_else(|| failed(std::io::ErrorKind::InvalidInput.into()))?;
        // SAFETY: a new mapping at an address of the kernel's choice. It fails if the map is smaller.
        let at = unsafe {
            mmap(None, length, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_SHARED, map, 0)
        }
        .map_err(|errno| failed(errno.into()))?;
        Ok(Memory { at: at.cast(), len, mapped })
    }

    /// The values.
    pub(super) fn as_slice(&self) -> &[T] {
        // SAFETY: the mapping has this length and lives as long as self. The alignment of a page suffices for any T.
        // `Shared` guarantees that any bytes are valid and that other writers are allowed.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.len) }
    }
}

impl<T: Shared> Drop for Memory<T> {
    fn drop(&mut self) {
        // SAFETY: mapped in `new` with this length, and no reference outlives self. It cannot fail on a whole mapping.
        let _ = unsafe { munmap(self.at.cast(), self.mapped) };
    }
}
