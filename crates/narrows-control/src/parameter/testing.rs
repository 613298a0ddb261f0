//! Random valid parameters, for tests of controllers.

use super::{Parameter, Shape, Takes, Value, Values};

/// Returns a function that draws random numbers from 0 to 1. A number is a position within a range.
pub(crate) fn positions(seed: u64) -> impl FnMut() -> f64 {
    let mut random = seed;
    move || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as f64 / f64::from(1u32 << 31)
    }
}

/// Returns random valid values for about half of these parameters. About half of these values are at an end of the
/// range, where most errors occur.
pub(crate) fn random_values<'p>(
    parameters: impl Iterator<Item = (String, &'p Parameter)>,
    next: &mut impl FnMut() -> f64,
) -> Values {
    let mut values = Values::new();
    for (name, parameter) in parameters {
        let at = match (next() * 4.0) as u32 {
            0 => 0.0,
            1 => 1.0,
            _ => next(),
        };
        if next() < 0.5 {
            values.insert(name, within(&parameter.shape, at));
        }
    }
    values
}

/// Returns the valid value at the position `at` of the parameter's range.
fn within(shape: &Shape, at: f64) -> Value {
    // Most ranges span several powers of ten, so positions are on a logarithmic scale.
    let between = |min: f64, max: f64| {
        if at <= 0.0 {
            min
        } else {
            (min.max(max * 1e-9) * libm::pow(max / min.max(max * 1e-9), at)).clamp(min, max)
        }
    };
    match shape.takes {
        Takes::Flag => Value::Flag(at < 0.5),
        Takes::Word(words) | Takes::Contents { words, .. } => {
            Value::Word(words[((at * words.len() as f64) as usize).min(words.len() - 1)].into())
        }
        Takes::Text(_) => {
            Value::Word(["flow", "sender-address", "receiver-prefix/24", "mark"][(at * 3.0) as usize].into())
        }
        Takes::Whole { min, max } => Value::Number(between(min as f64, max as f64).floor().max(min as f64)),
        Takes::Number { min, max, .. } => Value::Number(between(min, max)),
        Takes::Time { min, max } => Value::Number(between(min.as_nanos() as f64, max.as_nanos() as f64)),
        Takes::Rate { min, max } => Value::Number(between(min.as_f64(), max.as_f64())),
    }
}
