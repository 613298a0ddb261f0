//! Handshakes of flows without a record, in a separate bounded table (BRF-104).

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::rate::{FlowIdentity, Side};
use crate::units::{Span, Time};

/// A handshake whose SYN has passed this switch.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(in crate::rate) struct HalfOpen {
    pub(in crate::rate) syn_at: Time,
    /// The side that sent the SYN.
    pub(in crate::rate) opener: Side,
    /// The SYN carried the rate option (BRF-10).
    pub(in crate::rate) permitted: bool,
    /// The SYN was retransmitted, so the time until its answer is not an RTT sample (Karn's algorithm).
    pub(in crate::rate) repeated: bool,
    /// The time at which the SYN-ACK passed, if it did not create a record.
    pub(in crate::rate) answered: Option<Time>,
}

/// Handshakes of flows without a record, oldest first. A full table discards the oldest. So a flood of SYNs evicts only
/// handshakes that take longer than the flood needs to fill the table. A flood evicts no flow that has a record.
#[derive(Debug)]
pub(in crate::rate) struct HalfOpenTable<K> {
    by_key: FxHashMap<K, HalfOpen>,
    /// Times and flows of the SYNs, earliest SYN first. Entries that have been removed from `by_key` may remain in this
    /// list. They are ignored.
    order: VecDeque<(Time, K)>,
    max: usize,
    timeout: Span,
}

impl<K: FlowIdentity> HalfOpenTable<K> {
    pub(in crate::rate) fn new(max: usize, timeout: Span) -> Self {
        HalfOpenTable { by_key: FxHashMap::default(), order: VecDeque::new(), max, timeout }
    }

    pub(in crate::rate) fn insert(&mut self, now: Time, key: K, opener: Side, permitted: bool) {
        self.expire(now);
        if let Some(known) = self.by_key.get_mut(&key) {
            // A repeated SYN does not change `syn_at`, so it does not postpone the expiry of the handshake.
            known.repeated = true;
            known.permitted = permitted;
            return;
        }
        // Completed handshakes stay in `order` for a while, so `order` has a limit of its own.
        while self.by_key.len() >= self.max || self.order.len() >= 2 * self.max {
            let Some((at, oldest)) = self.order.pop_front() else { break };
            self.forget(at, &oldest);
        }
        self.order.push_back((now, key));
        self.by_key.insert(key, HalfOpen { syn_at: now, opener, permitted, repeated: false, answered: None });
    }

    pub(in crate::rate) fn get(&self, key: &K) -> Option<&HalfOpen> {
        self.by_key.get(key)
    }

    pub(in crate::rate) fn get_mut(&mut self, key: &K) -> Option<&mut HalfOpen> {
        self.by_key.get_mut(key)
    }

    pub(in crate::rate) fn remove(&mut self, key: &K) -> Option<HalfOpen> {
        self.by_key.remove(key)
    }

    /// Removes entries older than the timeout. Amortised O(1).
    pub(in crate::rate) fn expire(&mut self, now: Time) {
        while let Some((at, key)) = self.order.front().copied()
            && at + self.timeout <= now
        {
            self.order.pop_front();
            self.forget(at, &key);
        }
    }

    fn forget(&mut self, at: Time, key: &K) {
        if self.by_key.get(key).is_some_and(|half| half.syn_at == at) {
            self.by_key.remove(key);
        }
    }

    pub(in crate::rate) fn len(&self) -> usize {
        self.by_key.len()
    }
}

#[cfg(test)]
mod tests {
    use core::net::{IpAddr, Ipv4Addr};

    use super::*;
    use crate::rate::{FlowKey, Proto};

    fn key(n: u32) -> FlowKey {
        let daddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
        FlowKey {
            saddr: IpAddr::V4(Ipv4Addr::from_bits(n)),
            daddr,
            sport: 40_000,
            dport: 443,
            proto: Proto::Tcp,
        }
    }

    #[test]
    fn half_open_flows_are_bounded_and_the_oldest_is_discarded() {
        let mut table = HalfOpenTable::new(10, Span::from_secs(3));
        for n in 0..1000 {
            table.insert(Time::from_nanos(u64::from(n)), key(n), Side::Sender, true);
            assert!(table.len() <= 10);
        }
        assert!(table.get_mut(&key(989)).is_none() && table.get_mut(&key(990)).is_some());
        table.expire(Time::from_nanos(995) + Span::from_secs(3));
        assert_eq!(table.len(), 4);
    }

    #[test]
    fn completed_handshakes_do_not_accumulate() {
        let mut table = HalfOpenTable::new(10, Span::from_secs(3));
        for n in 0..1000 {
            table.insert(Time::from_nanos(u64::from(n)), key(n), Side::Sender, true);
            assert!(table.remove(&key(n)).is_some());
        }
        assert!(table.order.len() <= 20);
    }
}
