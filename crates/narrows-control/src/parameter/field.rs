//! The types of fields that parameters can set.

use std::borrow::Cow;

use super::{NONE, Shape, Value};
use crate::units::{Rate, Span};

/// A type of a field that a parameter can set.
pub trait Field: Sized {
    /// Converts a value to the field. Returns `None` if the value is of another kind.
    fn read(value: &Value, shape: &Shape) -> Option<Self>;
    /// Converts the field to a value with as few digits as possible.
    fn value(&self, shape: &Shape) -> Value;
}

impl Field for bool {
    fn read(value: &Value, _shape: &Shape) -> Option<Self> {
        if let Value::Flag(flag) = value { Some(*flag) } else { None }
    }
    fn value(&self, _shape: &Shape) -> Value {
        Value::Flag(*self)
    }
}

impl Field for u64 {
    fn read(value: &Value, shape: &Shape) -> Option<Self> {
        // Rounds to the nearest fixed-point number. A negative number or NaN gives zero.
        if let Value::Number(n) = value { Some((n * shape.per_unit() + 0.5) as u64) } else { None }
    }
    /// Returns the shortest decimal number that is read as this fixed-point number.
    fn value(&self, shape: &Shape) -> Value {
        let exact = *self as f64 / shape.per_unit();
        let shorter = (0..9).filter_map(|digits| format!("{exact:.digits$}").parse().ok());
        let same = |n: &f64| Self::read(&Value::Number(*n), shape) == Some(*self);
        Value::Number(shorter.into_iter().find(same).unwrap_or(exact))
    }
}

impl Field for u32 {
    fn read(value: &Value, shape: &Shape) -> Option<Self> {
        u64::read(value, shape).map(|n| u32::try_from(n).unwrap_or(u32::MAX))
    }
    fn value(&self, shape: &Shape) -> Value {
        u64::from(*self).value(shape)
    }
}

impl Field for usize {
    fn read(value: &Value, shape: &Shape) -> Option<Self> {
        u64::read(value, shape).map(|n| usize::try_from(n).unwrap_or(usize::MAX))
    }
    fn value(&self, shape: &Shape) -> Value {
        (*self as u64).value(shape)
    }
}

impl Field for f64 {
    fn read(value: &Value, _shape: &Shape) -> Option<Self> {
        if let Value::Number(n) = value { Some(*n) } else { None }
    }
    fn value(&self, _shape: &Shape) -> Value {
        Value::Number(*self)
    }
}

impl Field for Span {
    fn read(value: &Value, shape: &Shape) -> Option<Self> {
        u64::read(value, shape).map(Span::from_nanos)
    }
    fn value(&self, _shape: &Shape) -> Value {
        Value::Number(self.as_nanos() as f64)
    }
}

impl Field for Rate {
    fn read(value: &Value, shape: &Shape) -> Option<Self> {
        u64::read(value, shape).map(Rate::from_bytes_per_sec)
    }
    fn value(&self, _shape: &Shape) -> Value {
        Value::Number(self.as_f64())
    }
}

impl<T: Field> Field for Option<T> {
    fn read(value: &Value, shape: &Shape) -> Option<Self> {
        if matches!(value, Value::Word(word) if word == NONE) {
            return Some(None);
        }
        T::read(value, shape).map(Some)
    }
    fn value(&self, shape: &Shape) -> Value {
        self.as_ref().map_or(Value::Word(Cow::Borrowed(NONE)), |inner| inner.value(shape))
    }
}
