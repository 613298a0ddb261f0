//! Mmapable array maps as slices, and the generated types as bytes.
#![allow(unsafe_code, reason = "the one place where maps become memory")]

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ops::Deref;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::ptr::NonNull;

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

use super::Error;
use super::skeleton::types;

/// Types of keys and values of maps.
///
/// # Safety
/// The type must consist of integers, or of arrays and structures of integers, without padding. Any bytes are then a
/// valid value, and all bytes are initialized.
pub(super) unsafe trait Plain: Copy {}
// SAFETY: the type consists of integers. `maps.h` does not compile if a structure has padding.
unsafe impl Plain for types::nrw_slot {}
// SAFETY: as for `nrw_slot`.
unsafe impl Plain for types::nrw_port {}
// SAFETY: as for `nrw_slot`.
unsafe impl Plain for types::nrw_bucket {}
// SAFETY: as for `nrw_slot`.
unsafe impl Plain for types::nrw_key {}
// SAFETY: as for `nrw_slot`.
unsafe impl Plain for types::nrw_service {}
// SAFETY: as for `nrw_slot`.
unsafe impl Plain for types::nrw_advert {}
// SAFETY: as for `nrw_slot`.
unsafe impl Plain for types::nrw_way {}

/// Returns the bytes of a map's key or value.
pub(super) fn bytes<T: Plain>(value: &T) -> &[u8] {
    // SAFETY: `Plain` guarantees that all bytes are initialized.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// A value in shared memory. The program may change it at any time, so [`field!`] gives access to integers as atomics.
///
/// Loads and stores are relaxed, because the fields are independent. There is one exception: a reader that sees a
/// slot's flag `layout::LIVE` must also see the slot's other fields, which are written before it.
#[repr(transparent)]
pub(super) struct Shared<T>(UnsafeCell<T>);

// SAFETY: a `Shared` gives access only to atomics.
unsafe impl<T> Sync for Shared<T> {}

/// Gives access to a field of a value in shared memory, e.g. `field!(port, priority[1])`.
macro_rules! field {
    ($shared:expr, $($field:tt)+) => {{
        #[allow(unsafe_code, reason = "a place inside a value")]
        // SAFETY: the closure only computes the address of a field of the value.
        let field = unsafe { $shared.part(|all| &raw mut (*all).$($field)+) };
        field
    }};
}
pub(super) use field;

impl<T> Shared<T> {
    /// Returns a field of the value.
    ///
    /// # Safety
    /// `place` must return the address of a field of its argument.
    pub(super) unsafe fn part<F>(&self, place: impl FnOnce(*mut T) -> *mut F) -> &Shared<F> {
        // SAFETY: the field lives as long as the value, and Shared has the layout of its content.
        unsafe { &*place(self.0.get()).cast::<Shared<F>>() }
    }
}

impl<T: Plain> Shared<T> {
    /// Returns the whole value as words.
    pub(super) fn words(&self) -> &[AtomicU64] {
        const { assert!(size_of::<T>().is_multiple_of(8) && align_of::<T>() == 8) };
        // SAFETY: the words cover the value and are aligned.
        unsafe { std::slice::from_raw_parts(self.0.get().cast(), size_of::<T>() / 8) }
    }

    /// Returns a copy of the value, which is read byte by byte.
    pub(super) fn read(&self) -> T {
        let mut copy = MaybeUninit::<T>::uninit();
        let from: *const AtomicU8 = self.0.get().cast();
        let to: *mut u8 = copy.as_mut_ptr().cast();
        for at in 0..size_of::<T>() {
            // SAFETY: the offset is inside both values, and a byte may be read as an atomic.
            unsafe { to.add(at).write((*from.add(at)).load(Relaxed)) };
        }
        // SAFETY: all bytes are written, and any bytes are valid.
        unsafe { copy.assume_init() }
    }

    /// Sets all bytes to zero.
    pub(super) fn clear(&self) {
        self.words().iter().for_each(|word| word.store(0, Relaxed));
    }
}

macro_rules! atomic {
    ($($integer:ty: $atomic:ty),*) => {
        $(impl Deref for Shared<$integer> {
            type Target = $atomic;
            fn deref(&self) -> &$atomic {
                // SAFETY: an atomic has the size of its integer. This crate supports only 64-bit processors, where the
                // alignment is also the same.
                unsafe { &*self.0.get().cast() }
            }
        })*
    };
}
atomic!(u8: AtomicU8, u16: AtomicU16, u32: AtomicU32, u64: AtomicU64);

/// The values of an mmapable array map.
pub(super) struct Memory<T: Plain> {
    at: NonNull<T>,
    len: usize,
    mapped: usize,
}

// SAFETY: a `Memory` gives access only to atomics, and the mapping belongs to the process.
unsafe impl<T: Plain> Send for Memory<T> {}
// SAFETY: as for `Send`.
unsafe impl<T: Plain> Sync for Memory<T> {}

impl<T: Plain> Memory<T> {
    /// Maps the array with this many values of `T`.
    pub(super) fn new(map: impl AsFd, len: usize) -> Result<Self, Error> {
        let failed = |source: std::io::Error| Error::System { what: "mmap of a BPF array", source };
        let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok().flatten().unwrap_or(4096);
        let page = usize::try_from(page).unwrap_or(4096);
        let mapped = (len * size_of::<T>()).next_multiple_of(page);
        let length =
            NonZeroUsize::new(mapped).ok_or_else(|| failed(std::io::ErrorKind::InvalidInput.into()))?;
        // SAFETY: the kernel chooses the address of the new mapping. The call fails if the map is too small.
        let at = unsafe {
            mmap(None, length, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_SHARED, map, 0)
        }
        .map_err(|errno| failed(errno.into()))?;
        Ok(Memory { at: at.cast(), len, mapped })
    }

    /// Returns the values.
    pub(super) fn as_slice(&self) -> &[Shared<T>] {
        // SAFETY: the mapping has this length, the alignment of a page, and lives as long as self. Any bytes are valid
        // (`Plain`), and `Shared` allows other writers.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr().cast(), self.len) }
    }
}

impl<T: Plain> Drop for Memory<T> {
    fn drop(&mut self) {
        // SAFETY: `new` made the mapping with this length, and no reference outlives self. Unmapping a whole mapping
        // cannot fail.
        let _ = unsafe { munmap(self.at.cast(), self.mapped) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_those_of_the_value_and_a_cleared_value_is_empty_in_every_byte() {
        let slot = types::nrw_slot { code: 7, pad2: [1, 2, u32::MAX], ..Default::default() };
        let shared = Shared(UnsafeCell::new(slot));
        field!(shared, flags.0).store(5, Relaxed);
        field!(shared, pad2[1]).store(9, Relaxed);
        let copy = shared.read();
        assert_eq!((copy.flags.0, copy.code, copy.pad2), (5, 7, [1, 9, u32::MAX]));
        shared.clear();
        assert_eq!(bytes(&shared.read()), [0; size_of::<types::nrw_slot>()]);
    }
}
