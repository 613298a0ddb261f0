//! A fuzzer of nothing. It is declared as a test, and where a test is built, dependencies have the features that
//! `cargo test` needs. The fuzzers built beside it then use the tests' builds of them.

#![no_main]

libfuzzer_sys::fuzz_target!(|_input: &[u8]| {});
