//! A fuzzer of nothing. It is declared as a test, and where a test is built, dependencies have the features that
//! `cargo test` needs. The fuzzers that are built with it then use the builds of the tests.

#![no_main]

libfuzzer_sys::fuzz_target!(|_input: &[u8]| {});
