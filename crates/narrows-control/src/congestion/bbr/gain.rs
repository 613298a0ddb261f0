//! Fixed-point gains, as in Linux's `tcp_bbr.c`.

use crate::parameter::{Field, Shape, Value};

/// A gain in 1/256, Linux's unit (`BBR_UNIT`).
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gain(u32);

impl Gain {
    /// The gain 1.
    pub const ONE: Gain = Gain(256);

    /// Returns `numerator / denominator`, rounded down to 1/256.
    pub const fn ratio(numerator: u32, denominator: u32) -> Gain {
        Gain(256 * numerator / denominator)
    }
    /// Returns a gain of `n` / 256.
    pub const fn from_256ths(n: u32) -> Gain {
        Gain(n)
    }
    /// Returns the nearest gain in 1/256. A negative number or NaN gives zero.
    pub fn from_f64(gain: f64) -> Gain {
        Gain((gain * 256.0 + 0.5) as u32)
    }
    /// Returns the gain as a float.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / 256.0
    }
    /// Returns `gain * amount`, rounded down, or `None` if the product overflows. Uses 64 bits, because 128-bit
    /// divisions are several times slower.
    #[inline]
    pub fn of_u64(self, amount: u64) -> Option<u64> {
        amount.checked_mul(u64::from(self.0)).map(|product| product >> 8)
    }
    /// Returns `gain * amount`, rounded down.
    #[inline]
    pub fn of(self, amount: u128) -> u128 {
        amount.saturating_mul(u128::from(self.0)) >> 8
    }
}

impl Field for Gain {
    fn read(value: &Value, shape: &Shape) -> Option<Self> {
        u32::read(value, shape).map(Gain)
    }
    fn value(&self, shape: &Shape) -> Value {
        self.0.value(shape)
    }
}
