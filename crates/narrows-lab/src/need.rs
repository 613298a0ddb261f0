//! Requirements of tests.

use std::fs;
use std::io::Write;

use crate::says;

/// A requirement of a test. Some machines do not meet it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// The test runs as root. Namespaces, packet sockets and eBPF need root.
    Root,
    /// The kernel's type information, `/sys/kernel/btf/vmlinux`.
    Btf,
    /// A program, given as a command that succeeds if the program is installed.
    Tool(&'static str),
}

impl Need {
    fn missing(self) -> Option<String> {
        match self {
            Need::Root => (!nix::unistd::geteuid().is_root()).then(|| "root is needed".to_owned()),
            Need::Btf => {
                let there = fs::exists("/sys/kernel/btf/vmlinux").unwrap_or(false);
                (!there).then(|| "the kernel has no BTF (CONFIG_DEBUG_INFO_BTF)".to_owned())
            }
            Need::Tool(command) => {
                let program = command.split(' ').next().unwrap_or_default();
                says(command).err().map(|_| format!("{program} is not installed (make packages)"))
            }
        }
    }
}

/// Returns whether all requirements are met. If a requirement is not met, reports that the test is skipped. A test is
/// skipped only for this reason. Any other problem of the machine makes the test fail.
///
/// # Panics
/// If something is missing and NARROWS_REQUIRE_KERNEL is 1.
pub fn can_run(needs: &[Need]) -> bool {
    match needs.iter().find_map(|need| need.missing()) {
        Some(missing) => {
            skip(&missing);
            false
        }
        None => true,
    }
}

/// Reports that a test is skipped, and prints the reason.
///
/// # Panics
/// If NARROWS_REQUIRE_KERNEL is 1.
pub fn skip(reason: &str) {
    assert!(std::env::var("NARROWS_REQUIRE_KERNEL").as_deref() != Ok("1"), "{reason}");
    shout(&format!("SKIPPED, nothing was tested: {reason}"));
}

/// Prints a line to standard error. `eprintln` is not used, because its output is hidden if a test passes.
pub(crate) fn shout(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
