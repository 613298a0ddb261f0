//! Range checks of parameters. Errors state the parameter, what was found and what was expected.

use crate::units::Span;

/// Checks (name, value, minimum, maximum). NaN is out of every range.
pub(in crate::rate) fn numbers(given: &[(&str, f64, f64, f64)]) -> Result<(), String> {
    for (name, found, least, most) in given {
        if !(least..=most).contains(&found) {
            return Err(format!("{name} is {found}, but must be from {least} to {most}"));
        }
    }
    Ok(())
}

/// Checks (name, value, minimum, maximum).
pub(in crate::rate) fn spans(given: &[(&str, Span, Span, Span)]) -> Result<(), String> {
    for (name, found, least, most) in given {
        if !(least..=most).contains(&found) {
            let [found, least, most] = [found, least, most].map(|span| text(*span));
            return Err(format!("{name} is {found}, but must be from {least} to {most}"));
        }
    }
    Ok(())
}

/// Formats a span as in a scenario.
fn text(span: Span) -> String {
    let nanos = span.as_nanos();
    let (unit, name) = match nanos {
        1_000_000_000.. => (1e9, "s"),
        100_000.. => (1e6, "ms"),
        _ => (1e3, "us"),
    };
    format!("{}{name}", nanos as f64 / unit)
}
