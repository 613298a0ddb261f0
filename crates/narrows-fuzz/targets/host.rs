//! Fuzzes the programs of senders and receivers on one connection, with any headers, packets and states of
//! TCP. BPF_PROG_TEST_RUN does not support sock_ops programs, so the programs are compiled as normal code
//! (`native/host.c`).
#![no_main]

use libfuzzer_sys::fuzz_target;
use narrows_fuzz::bounded;

#[allow(unsafe_code, reason = "C code")]
unsafe extern "C" {
    fn nrw_fuzz_host(data: *const u8, len: usize) -> i32;
}

fuzz_target!(|input: &[u8]| {
    bounded(1 << 12, || {
        #[allow(unsafe_code, reason = "C code")]
        // SAFETY: the function reads `len` bytes, keeps no pointer, and is called by one thread.
        let done = unsafe { nrw_fuzz_host(input.as_ptr(), input.len()) };
        assert_eq!(done, 0);
    });
});
