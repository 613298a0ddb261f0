//! Repeats tests that measure in real time, because a disturbed machine may spoil a measurement.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::need::shout;
use crate::watch::Watch;

/// Maximum number of attempts.
const ATTEMPTS: usize = 5;
/// After this many failures on an undisturbed machine, the test fails.
const FAIR: usize = 3;

/// Runs a test that judges measurements in real time, and repeats it if it fails. Virtual machines stop when their
/// host has other work, and a rate measured during such a stop says nothing about the program. Only failures
/// on an undisturbed machine count, and after the third one the test fails. If there are fewer of them after
/// all attempts, the figures are not judged, and a message says so.
///
/// # Panics
/// With the panic of the last attempt on an undisturbed machine.
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
