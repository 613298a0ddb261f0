//! An empty fuzzer that is declared as a test. If one of the targets is a test, Cargo builds dependencies with the
//! features that `cargo test` needs. If the other fuzzers are built together with this fuzzer, they therefore reuse
//! dependencies that were built for tests.

#![no_main]

libfuzzer_sys::fuzz_target!(|_input: &[u8]| {});
