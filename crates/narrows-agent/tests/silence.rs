//! Tests the sender's rate during a long time without feedback, with the C header of the eBPF program. The test needs
//! no special kernel and no root.
#![allow(missing_docs, reason = "a test program")]

use std::path::Path;
use std::process::Command;

/// Two segments of 1500 bytes per RTT of 100 ms, in bytes/s.
const FLOOR: u64 = 30_000;

/// Compiles and runs `native/silence.c`. Returns the rate after each RTT.
fn rates() -> Vec<u64> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("silence");
    let compiled = Command::new("clang")
        .args(["-O2", "-Wall", "-Werror", "-o"])
        .arg(&program)
        .arg(format!("-I{}", here.join("bpf/sender").display()))
        .arg(format!("-I{}", here.join("bpf/include").display()))
        .arg(here.join("tests/native/silence.c"))
        .output()
        .expect("clang, which also compiles the eBPF programs");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let ran = Command::new(program).output().expect("the program runs");
    let printed = String::from_utf8(ran.stdout).expect("numbers");
    printed.lines().map(|line| line.parse().expect("a rate")).collect()
}

#[test]
fn silence_never_raises_the_rate_however_long_it_lasts() {
    let rates = rates();
    assert_eq!((rates.len(), rates[0]), (600, 12_500_000_000));
    for (n, pair) in rates.windows(2).enumerate() {
        assert!(pair[1] <= pair[0], "after {} RTTs: {} -> {}", n + 2, pair[0], pair[1]);
    }
    assert_eq!(rates.last(), Some(&FLOOR));
}
