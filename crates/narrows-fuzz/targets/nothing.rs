//! An empty fuzzer that is declared as a test. It makes Cargo build dependencies with the features that `cargo test`
//! needs. If other fuzzers are built together with this one, they can use the dependencies that were built for the
//! tests.

#![no_main]

libfuzzer_sys::fuzz_target!(|_input: &[u8]| {});
