//! An empty fuzzer that is declared as a test. It makes Cargo build dependencies with the features that `cargo test`
//! needs. Fuzzers that are built together with this one can then use the dependencies of the tests.

#![no_main]

libfuzzer_sys::fuzz_target!(|_input: &[u8]| {});
