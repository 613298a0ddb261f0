//! Parameters that are out of their range: which one, what was found, what would do.

use crate::units::Span;

/// Checks (name, found, least, most); NaN is in no range.
pub(super) fn numbers(given: &[(&str, f64, f64, f64)]) -> Result<(), String> {
    for (name, found, least, most) in given {
        if !(least..=most).contains(&found) {
            return Err(format!("{name} is {found}, but must be from {least} to {most}"));
        }
    }
    Ok(())
}

/// Checks (name, found, least, most).
pub(super) fn spans(given: &[(&str, Span, Span, Span)]) -> Result<(), String> {
    for (name, found, least, most) in given {
        if !(least..=most).contains(&found) {
            let [found, least, most] = [found, least, most].map(|span| text(*span));
            return Err(format!("{name} is {found}, but must be from {least} to {most}"));
        }
    }
    Ok(())
}

/// As one would write it in a scenario.
fn text(span: Span) -> String {
    let nanos = span.as_nanos();
    let (unit, name) = match nanos {
        1_000_000_000.. => (1e9, "s"),
        100_000.. => (1e6, "ms"),
        _ => (1e3, "us"),
    };
    format!("{}{name}", nanos as f64 / unit)
}
