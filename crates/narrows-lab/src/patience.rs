//! Figures that are taken in real time are those of the machine, too.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::need::shout;
use crate::watch::Watch;

/// Attempts in all.
const ATTEMPTS: usize = 5;
/// So many failures while nothing disturbed the machine are the program's.
const FAIR: usize = 3;

/// Runs a test that judges figures taken in real time, again if it fails: virtual machines stand still when their host has
/// other work, and a rate measured meanwhile says nothing of the program. Failures on an undisturbed machine count, and the
/// third is final. Where the machine was never left alone the figures are not judged, which is said loudly.
///
/// # Panics
/// As the test does in the end.
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
