//! A token bucket that tests whether packets conform (RFC 2697 with one rate and one burst).

use crate::units::{Bytes, Rate, Time};

/// Tokens of one policed flow or class.
#[derive(Copy, Clone, Debug, Default)]
pub struct Policer {
    tokens: Bytes,
    filled_at: Option<Time>,
}

impl Policer {
    /// Returns whether a packet of `size` bytes conforms to `rate` and `burst`. If it does, consumes `size` tokens. A
    /// new bucket is full.
    pub fn admit(&mut self, now: Time, size: Bytes, rate: Rate, burst: Bytes) -> bool {
        let tokens = match self.filled_at {
            None => burst,
            Some(at) => (self.tokens + rate.bytes_in(now.since(at))).min(burst),
        };
        // The time of the last refill advances only if a whole token was added. Otherwise, with a low rate and frequent
        // calls, the bucket would never get tokens.
        if self.filled_at.is_none() || tokens != self.tokens {
            self.filled_at = Some(now);
        }
        self.tokens = tokens;
        if size > tokens {
            return false;
        }
        self.tokens = tokens - size;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Span;

    #[test]
    fn the_long_run_follows_the_rate_and_the_short_run_the_burst() {
        let (rate, burst) = (Rate::from_bytes_per_sec(1_000_000), Bytes::new(3000));
        let mut policer = Policer::default();
        let mut passed = 0;
        for i in 0..10_000u64 {
            let now = Time::from_nanos(i * 100_000);
            passed += u64::from(policer.admit(now, Bytes::new(1000), rate, burst));
        }
        // The load is ten times the rate, for one second. The policer passes the burst, and the bytes that the rate
        // permits in one second.
        assert!((1002..=1003).contains(&passed), "{passed}");
    }

    #[test]
    fn a_rate_below_a_byte_per_call_still_earns_tokens() {
        let mut policer = Policer::default();
        let (rate, burst) = (Rate::from_bytes_per_sec(100), Bytes::new(100));
        assert!(policer.admit(Time::ZERO, burst, rate, burst));
        let mut now = Time::ZERO;
        let passed = (0..2_000).filter(|_| {
            now += Span::from_millis(1);
            policer.admit(now, Bytes::new(50), rate, burst)
        });
        assert_eq!(passed.count(), 4);
    }
}
