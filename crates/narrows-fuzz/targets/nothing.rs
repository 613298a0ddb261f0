//! An empty fuzzer, declared as a test. If a test is among the targets, Cargo builds dependencies with the features
//! that `cargo test` needs. The fuzzers that are built together with this one therefore reuse the dependencies that
//! the tests have built.

#![no_main]

libfuzzer_sys::fuzz_target!(|_input: &[u8]| {});
