//! Types for quantities with units: points in time, time spans, rates and amounts of data.
//!
//! All arithmetic saturates. Input comes from the network or from scenario files. So an extreme
//! value must give a bounded result, and never a panic or a wrapped number.

use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Sub, SubAssign};

use serde::{Deserialize, Serialize};

/// Nanoseconds in a second.
pub const NANOS_PER_SEC: u64 = 1_000_000_000;

/// A point in time: nanoseconds since an epoch that the caller chooses. In the simulator the epoch is the start of
/// the run.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Time(u64);

/// A time span in nanoseconds.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Span(u64);

/// A rate in bytes per second. These are L3 bytes (whole IP datagrams, BRF-4) unless a comment says otherwise.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Rate(u64);

/// An amount of data in bytes.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Bytes(u64);

impl Time {
    /// The epoch.
    pub const ZERO: Time = Time(0);
    /// The latest time. A deadline at this time never passes.
    pub const NEVER: Time = Time(u64::MAX);

    /// Returns the point in time `nanos` nanoseconds after the epoch.
    pub const fn from_nanos(nanos: u64) -> Self {
        Time(nanos)
    }
    /// Returns the point in time `secs` seconds after the epoch. A negative number or NaN gives the epoch.
    pub fn from_secs_f64(secs: f64) -> Self {
        Time(Span::from_secs_f64(secs).0)
    }
    /// Returns the nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Returns the seconds since the epoch.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SEC as f64
    }
    /// Returns the span since `earlier`, or zero if `earlier` is the later time.
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// A span of zero.
    pub const ZERO: Span = Span(0);
    /// The longest span. A minimum over no samples has this value.
    pub const MAX: Span = Span(u64::MAX);

    /// Returns a span of `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Span(nanos)
    }
    /// Returns a span of `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Span(micros.saturating_mul(1_000))
    }
    /// Returns a span of `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Span(millis.saturating_mul(1_000_000))
    }
    /// Returns a span of `secs` seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Span(secs.saturating_mul(NANOS_PER_SEC))
    }
    /// Returns `secs` seconds, rounded to the nearest nanosecond. A negative number or NaN gives zero.
    pub fn from_secs_f64(secs: f64) -> Self {
        Span((secs * NANOS_PER_SEC as f64 + 0.5) as u64)
    }
    /// Returns the span in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Returns the span in whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }
    /// Returns the span in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SEC as f64
    }
    /// Returns `factor` times this span. A negative factor gives zero.
    pub fn mul_f64(self, factor: f64) -> Self {
        Span((self.0 as f64 * factor) as u64)
    }
    /// Returns `numerator / denominator` of this span, computed exactly in integers and rounded down.
    pub const fn scale(self, numerator: u64, denominator: u64) -> Self {
        let d = if denominator == 0 { 1 } else { denominator };
        if let Some(n) = self.0.checked_mul(numerator) {
            return Span(n / d);
        }
        let v = self.0 as u128 * numerator as u128 / d as u128;
        Span(if v > u64::MAX as u128 { u64::MAX } else { v as u64 })
    }
}

impl Rate {
    /// A rate of zero.
    pub const ZERO: Rate = Rate(0);
    /// The largest rate. It means "no limit".
    pub const MAX: Rate = Rate(u64::MAX);

    /// Returns a rate of `rate` bytes per second.
    pub const fn from_bytes_per_sec(rate: u64) -> Self {
        Rate(rate)
    }
    /// Returns a rate of `rate` bits per second, rounded down to whole bytes.
    pub const fn from_bits_per_sec(rate: u64) -> Self {
        Rate(rate / 8)
    }
    /// Returns `rate` bytes per second, rounded down. A negative number or NaN gives zero.
    pub fn from_f64(rate: f64) -> Self {
        Rate(rate as u64)
    }
    /// Returns the rate of `bytes` in `span`. A span of zero gives a rate of zero.
    pub fn of(bytes: Bytes, span: Span) -> Self {
        if span.0 == 0 {
            return Rate::ZERO;
        }
        // A 64-bit division is several times faster than a 128-bit division, and is almost always sufficient.
        if let Some(n) = bytes.0.checked_mul(NANOS_PER_SEC) {
            return Rate(n / span.0);
        }
        let v = bytes.0 as u128 * NANOS_PER_SEC as u128 / span.0 as u128;
        Rate(u64::try_from(v).unwrap_or(u64::MAX))
    }
    /// Returns the rate in bytes per second.
    pub const fn as_bytes_per_sec(self) -> u64 {
        self.0
    }
    /// Returns the rate in bits per second.
    pub fn as_bits_per_sec(self) -> f64 {
        self.0 as f64 * 8.0
    }
    /// Returns the rate in bytes per second, as a float.
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }
    /// Returns `factor` times this rate. A negative factor gives zero.
    pub fn mul_f64(self, factor: f64) -> Self {
        Rate((self.0 as f64 * factor) as u64)
    }
    /// Returns the time that `bytes` take at this rate, rounded to the nearest nanosecond. A rate of zero gives
    /// [`Span::MAX`].
    #[inline]
    pub fn time_for(self, bytes: Bytes) -> Span {
        if self.0 == 0 {
            return Span::MAX;
        }
        match bytes.0.checked_mul(NANOS_PER_SEC) {
            Some(n) => Span(n.saturating_add(self.0 / 2) / self.0),
            None => {
                let v = bytes.0 as u128 * NANOS_PER_SEC as u128 / self.0 as u128;
                Span(u64::try_from(v).unwrap_or(u64::MAX))
            }
        }
    }
    /// Returns the number of bytes that are sent in `span`, rounded down.
    pub fn bytes_in(self, span: Span) -> Bytes {
        if let Some(n) = self.0.checked_mul(span.0) {
            return Bytes(n / NANOS_PER_SEC);
        }
        let v = self.0 as u128 * span.0 as u128 / NANOS_PER_SEC as u128;
        Bytes(u64::try_from(v).unwrap_or(u64::MAX))
    }
}

impl Bytes {
    /// No bytes.
    pub const ZERO: Bytes = Bytes(0);
    /// The largest amount.
    pub const MAX: Bytes = Bytes(u64::MAX);

    /// Returns an amount of `n` bytes.
    pub const fn new(n: u64) -> Self {
        Bytes(n)
    }
    /// Returns the number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }
    /// Returns the number of bytes, as a float.
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}
impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}
impl Sub<Span> for Time {
    type Output = Time;
    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

/// Implements saturating `+`, `-`, `+=`, `-=` and `Sum` for a type with one field.
macro_rules! amount {
    ($($unit:ident),*) => {$(
        impl Add for $unit {
            type Output = $unit;
            fn add(self, o: $unit) -> $unit { $unit(self.0.saturating_add(o.0)) }
        }
        impl Sub for $unit {
            type Output = $unit;
            fn sub(self, o: $unit) -> $unit { $unit(self.0.saturating_sub(o.0)) }
        }
        impl AddAssign for $unit {
            fn add_assign(&mut self, o: $unit) { *self = *self + o; }
        }
        impl SubAssign for $unit {
            fn sub_assign(&mut self, o: $unit) { *self = *self - o; }
        }
        impl Sum for $unit {
            fn sum<I: Iterator<Item = $unit>>(items: I) -> $unit { items.fold($unit(0), |a, b| a + b) }
        }
    )*};
}
amount!(Span, Rate, Bytes);

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Time::NEVER { f.write_str("never") } else { write!(f, "{:.9}s", self.as_secs_f64()) }
    }
}
impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6}ms", self.0 as f64 / 1e6)
    }
}
impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6}Mbit/s", self.as_bits_per_sec() / 1e6)
    }
}
impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}B", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_packet_at_100_mbit_takes_120_microseconds() {
        let rate = Rate::from_bits_per_sec(100_000_000);
        assert_eq!(rate.time_for(Bytes::new(1500)), Span::from_micros(120));
        assert_eq!(rate.bytes_in(Span::from_micros(120)), Bytes::new(1500));
        assert_eq!(Rate::of(Bytes::new(1500), Span::from_micros(120)), rate);
    }

    #[test]
    fn absurd_figures_saturate() {
        assert_eq!(Rate::ZERO.time_for(Bytes::new(1)), Span::MAX);
        assert_eq!(Rate::from_bytes_per_sec(1).time_for(Bytes::MAX), Span::MAX);
        assert_eq!(Time::NEVER + Span::from_secs(1), Time::NEVER);
        assert_eq!(Span::from_secs_f64(f64::NAN), Span::ZERO);
        assert_eq!(Span::from_secs_f64(-1.0), Span::ZERO);
        assert_eq!(Rate::MAX.bytes_in(Span::MAX), Bytes::MAX);
    }
}
