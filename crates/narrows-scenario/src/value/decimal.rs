//! Exact decimal numbers, as scenarios and traces write them.

use std::cmp::Ordering;

/// A decimal number without rounding: digits times a power of ten.
#[derive(Clone, Debug)]
pub(crate) struct Decimal {
    negative: bool,
    /// Digits 0 to 9, the most significant first.
    digits: Vec<u8>,
    /// The number is 0.DIGITS times ten to this power.
    point: i64,
}

/// Maximum number of digits before the point, after the point, and in the exponent.
const MOST_DIGITS: usize = 25;
const MOST_EXPONENT_DIGITS: usize = 2;

impl Decimal {
    /// Parses a number at the start of the text, such as `2.5e3`. Returns the number and the rest of the text.
    pub(crate) fn parse_start(text: &str) -> Option<(Self, &str)> {
        let bytes = text.as_bytes();
        let run = |from: usize, most: usize| {
            bytes.iter().skip(from).take(most).take_while(|byte| byte.is_ascii_digit()).count()
        };
        let mut at = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
        let negative = bytes.first() == Some(&b'-');
        let before = run(at, MOST_DIGITS);
        let mut digits: Vec<u8> = bytes[at..at + before].iter().map(|byte| byte - b'0').collect();
        at += before;
        if bytes.get(at) == Some(&b'.') {
            let after = run(at + 1, MOST_DIGITS);
            if before == 0 && after == 0 {
                return None;
            }
            digits.extend(bytes[at + 1..at + 1 + after].iter().map(|byte| byte - b'0'));
            at += 1 + after;
        } else if before == 0 {
            return None;
        }
        let mut exponent = 0;
        if matches!(bytes.get(at), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
            let length = run(at + 1 + sign, MOST_EXPONENT_DIGITS);
            if length > 0 {
                exponent = text[at + 1..at + 1 + sign + length].parse().unwrap_or(0);
                at += 1 + sign + length;
            }
        }
        let number = Decimal { negative, digits, point: before as i64 + exponent };
        Some((number.trimmed(), &text[at..]))
    }

    /// Parses a whole text as a number.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::parse_start(text).filter(|(_, rest)| rest.is_empty()).map(|(number, _)| number)
    }

    fn trimmed(mut self) -> Self {
        let zeros = self.digits.iter().take_while(|digit| **digit == 0).count();
        self.digits.drain(..zeros);
        self.point -= zeros as i64;
        while self.digits.last() == Some(&0) {
            self.digits.pop();
        }
        if self.digits.is_empty() {
            self.point = 0;
        }
        self
    }

    /// Returns the number times a factor, exactly.
    pub(crate) fn times(&self, factor: u64) -> Self {
        let mut digits = Vec::with_capacity(self.digits.len() + 20);
        let mut carry: u128 = 0;
        for digit in self.digits.iter().rev() {
            let sum = u128::from(*digit) * u128::from(factor) + carry;
            digits.push((sum % 10) as u8);
            carry = sum / 10;
        }
        while carry > 0 {
            digits.push((carry % 10) as u8);
            carry /= 10;
        }
        digits.reverse();
        let point = self.point + (digits.len() - self.digits.len()) as i64;
        Decimal { negative: self.negative, digits, point }.trimmed()
    }

    fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    pub(crate) fn is_negative(&self) -> bool {
        self.negative && !self.is_zero()
    }

    pub(crate) fn is_positive(&self) -> bool {
        !self.negative && !self.is_zero()
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.point >= self.digits.len() as i64
    }

    /// Returns the absolute value without the digits after the point, or `None` if it needs more than 64 bits.
    fn magnitude(&self) -> Option<u64> {
        if self.point > 20 {
            return None;
        }
        let places = usize::try_from(self.point).unwrap_or(0);
        let digits = self.digits.iter().copied().chain(std::iter::repeat(0)).take(places);
        digits.into_iter().try_fold(0u64, |sum, digit| sum.checked_mul(10)?.checked_add(u64::from(digit)))
    }

    /// Compares the digits after the point with one half.
    fn fraction_to_half(&self) -> Ordering {
        let rest = match usize::try_from(self.point) {
            Ok(point) => self.digits.get(point..).unwrap_or(&[]),
            // There are zeros between the point and the digits, so the fraction is below 0.1.
            Err(_) => return Ordering::Less,
        };
        match rest {
            [] => Ordering::Less,
            [5] => Ordering::Equal,
            [first, ..] => {
                if *first >= 5 {
                    Ordering::Greater
                } else {
                    Ordering::Less
                }
            }
        }
    }

    /// Returns the nearest whole number, halves up, of a number that is not negative.
    pub(crate) fn rounded(&self) -> Option<u64> {
        let up = self.fraction_to_half() != Ordering::Less;
        self.magnitude()?.checked_add(u64::from(up))
    }

    /// Returns the nearest whole number, with halves to the even number.
    pub(crate) fn rounded_to_even(&self) -> Option<i64> {
        let whole = self.magnitude()?;
        let up = match self.fraction_to_half() {
            Ordering::Less => 0,
            Ordering::Equal => whole % 2,
            Ordering::Greater => 1,
        };
        let whole = i64::try_from(whole.checked_add(up)?).ok()?;
        Some(if self.negative { -whole } else { whole })
    }

    /// Returns the whole number towards zero.
    pub(crate) fn truncated(&self) -> Option<i64> {
        let whole = i64::try_from(self.magnitude()?).ok()?;
        Some(if self.negative { -whole } else { whole })
    }

    pub(crate) fn exceeds(&self, most: u64) -> bool {
        let fraction = !self.is_whole();
        !self.negative && self.magnitude().is_none_or(|whole| whole > most || (whole == most && fraction))
    }

    /// Returns the nearest floating-point number of this number times ten to the power `shift`.
    pub(crate) fn to_f64(&self, shift: i64) -> f64 {
        let digits: String = self.digits.iter().map(|digit| char::from(b'0' + digit)).collect();
        let sign = if self.negative { "-" } else { "" };
        format!("{sign}0.{digits}e{}", self.point + shift).parse().unwrap_or(0.0)
    }

    /// Returns the number as a fraction in lowest terms, such as `-1/2`.
    pub(crate) fn as_fraction(&self) -> String {
        let sign = if self.is_negative() { "-" } else { "" };
        let digits = self
            .digits
            .iter()
            .fold(0u128, |sum, digit| sum.saturating_mul(10).saturating_add((*digit).into()));
        let places = self.digits.len() as i64 - self.point;
        if places <= 0 {
            let zeros = "0".repeat(usize::try_from(-places).unwrap_or(0));
            return format!("{sign}{digits}{zeros}");
        }
        let Some(below) = u32::try_from(places).ok().and_then(|places| 10u128.checked_pow(places)) else {
            return format!("{sign}{}", self.to_f64(0).abs());
        };
        let (mut a, mut b) = (digits, below);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        format!("{sign}{}/{}", digits / a, below / a)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Decimal {
        Decimal::parse(text).expect(text)
    }

    #[test]
    fn products_are_exact() {
        assert_eq!(number("0.1").times(30).rounded(), Some(3));
        assert_eq!(number("9999999999999999999.5").times(1).rounded(), Some(10_000_000_000_000_000_000));
        assert_eq!(number("1e99").rounded(), None);
        assert_eq!(number("1e-99").rounded(), Some(0));
        assert_eq!(number("0.5").rounded(), Some(1));
        assert_eq!(number("0.05").rounded(), Some(0));
        assert_eq!(number("0").times(7).rounded(), Some(0));
    }

    #[test]
    fn halves_go_to_the_even_number() {
        let even = |text| number(text).rounded_to_even();
        assert_eq!(
            (even("0.5"), even("1.5"), even("2.5"), even("-2.5"), even("-3.5")),
            (Some(0), Some(2), Some(2), Some(-2), Some(-4))
        );
    }

    #[test]
    fn fractions_are_in_lowest_terms() {
        assert_eq!(number("-0.50").as_fraction(), "-1/2");
        assert_eq!(number("-1200").as_fraction(), "-1200");
        assert_eq!(number("-1.25e1").as_fraction(), "-25/2");
    }

    #[test]
    fn a_number_ends_where_a_unit_begins() {
        let (_, rest) = Decimal::parse_start("5e").expect("a number");
        assert_eq!(rest, "e");
        assert!(Decimal::parse_start(".").is_none());
        assert!(Decimal::parse_start("x").is_none());
    }
}
