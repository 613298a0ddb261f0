//! Repeats tests that measure in real time, because measurements on a disturbed machine may be wrong.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::need::shout;
use crate::watch::Watch;

/// Maximum number of attempts.
const ATTEMPTS: usize = 5;
/// Number of failures on an undisturbed machine after which the test fails.
const FAIR: usize = 3;

/// Runs a test that checks measurements in real time, and repeats the test if it fails. A virtual machine may stop for
/// a moment when its host has other work. A rate that was measured during such a stop says nothing about the program
/// under test. The test therefore fails only after three failures on an undisturbed machine. If all attempts fail, but
/// fewer than three of them were on an undisturbed machine, the test passes. In this case, a message says that the
/// result was not judged.
///
/// # Panics
/// If the test fails. This function passes on the panic of the last failure on an undisturbed machine.
pub fn patiently(test: impl Fn()) {
    let mut fair = 0;
    let mut last = String::new();
    for attempt in 1..=ATTEMPTS {
        let watch = Watch::start();
        let outcome = catch_unwind(AssertUnwindSafe(&test));
        let disturbance = watch.end();
        let Err(panic) = outcome else { return };
        if !disturbance.is_serious() {
            fair += 1;
            if fair == FAIR {
                resume_unwind(panic);
            }
        }
        last = disturbance.to_string();
        let reason = panic.downcast_ref::<String>().map_or("", String::as_str).lines().next().unwrap_or("");
        shout(&format!("attempt {attempt} failed ({reason}); {last}: once more"));
    }
    shout(&format!("NOT JUDGED after {ATTEMPTS} attempts: {last}"));
}
