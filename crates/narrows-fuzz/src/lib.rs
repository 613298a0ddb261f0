//! Limits the memory that one input may take, for all fuzzers of this crate.
//!
//! libFuzzer finds panics (the code is built with overflow checks) and inputs that take too long. However, it checks
//! the memory of the whole process only once per second. So it could miss a single large allocation.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, which also counts the bytes in use.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn add(bytes: usize) {
    PEAK.fetch_max(IN_USE.fetch_add(bytes, Relaxed) + bytes, Relaxed);
}

// SAFETY: every call is passed to the system's allocator unchanged.
#[allow(unsafe_code, reason = "an allocator is an unsafe trait")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller meets the requirements of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the memory is from `alloc` above.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Runs `work` on one input.
///
/// # Panics
/// If `work` takes more than `bytes` of memory at a time, or if memory is still in use after `work`.
pub fn bounded(bytes: usize, work: impl FnOnce()) {
    let before = IN_USE.load(Relaxed);
    PEAK.store(before, Relaxed);
    work();
    let peak = PEAK.load(Relaxed).saturating_sub(before);
    assert!(peak <= bytes, "{peak} bytes of memory for one input, expected at most {bytes}");
    let left = IN_USE.load(Relaxed).saturating_sub(before);
    assert!(left == 0, "{left} bytes of memory are still in use after the input");
}
