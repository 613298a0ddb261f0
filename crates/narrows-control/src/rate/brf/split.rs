//! The link's division into three classes (BRF-20 to BRF-24).

use crate::rate::kit::classes::LEAST_RATE;
use crate::rate::{Action, Class, FlowIdentity};
use crate::units::{Bytes, Rate, Span, Time};

/// Maximum share of the link for ACKs, even if the measured rate of ACKs is higher.
const ACKS_MOST: f64 = 0.5;

/// Shares of the three classes.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Split {
    pub(super) rated: Rate,
    pub(super) other: Rate,
    pub(super) udp: Rate,
}

/// Divides the link (BRF-20, BRF-21). UDP's share and the share for the reverse direction's ACKs are subtracted first.
/// The rest is divided by the numbers of active flows. If there is no TCP flow, the rated class gets the whole rest, so
/// that the next flow can use it.
pub(super) fn split(link: Rate, eta: f64, udp_share: f64, acks: Rate, rated: u64, other: u64) -> Split {
    let acks = acks.min(link.mul_f64(ACKS_MOST));
    let shared = link.mul_f64(eta * (1.0 - udp_share)) - acks;
    let flows = rated.saturating_add(other);
    let rated = match flows {
        0 => shared,
        _ => {
            let part = u128::from(shared.as_bytes_per_sec()) * u128::from(rated) / u128::from(flows);
            // The result is at most `shared`, because rated flows are a part of all flows.
            Rate::from_bytes_per_sec(part as u64)
        }
    };
    Split { rated, other: shared - rated + acks, udp: link.mul_f64(udp_share) }
}

/// Returns the burst of a class or policer: two packets or the data of a millisecond, whichever is more (BRF-22).
pub fn burst(rate: Rate, mtu: Bytes) -> Bytes {
    (mtu + mtu).max(rate.bytes_in(Span::from_millis(1)))
}

/// The inputs of a split. If an input changes, the split is outdated.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Basis {
    /// C_link, the capacity of the link.
    pub(super) link: Rate,
    /// N_BRF, the number of active rated flows, or the sum of subscribers' weights.
    pub(super) rated: u64,
    /// N_CUBIC, the same for other TCP.
    pub(super) other: u64,
    /// Number of times that UDP's share is halved; `None` without UDP.
    pub(super) udp: Option<u8>,
    /// Rate of the ACKs for data of the reverse direction (ours; the paper's bottleneck has one-way traffic). Without a
    /// share for them, two-way traffic would leave too little capacity for ACKs and the feedback in them.
    pub(super) acks: Rate,
}

impl Basis {
    /// Returns whether UDP needs a larger part of its share than in `old`.
    fn grows(self, old: Basis) -> bool {
        self.udp.zip(old.udp).is_some_and(|(halvings, before)| halvings < before)
    }

    /// Returns which classes have flows.
    fn occupied(self) -> (bool, bool, bool) {
        (self.rated > 0, self.other > 0, self.udp.is_some())
    }
}

/// Stores the split, and determines when the HTB must change.
#[derive(Debug)]
pub(super) struct Splitter {
    eta: f64,
    udp_share: f64,
    current: Split,
    basis: Option<Basis>,
    computed_at: Time,
    announced: Option<(Split, Rate, Option<Rate>)>,
}

impl Splitter {
    pub(super) fn new(eta: f64, udp_share: f64) -> Self {
        let (current, computed_at) = (Split::default(), Time::ZERO);
        Splitter { eta, udp_share, current, basis: None, computed_at, announced: None }
    }

    pub(super) fn current(&self) -> Split {
        self.current
    }

    /// Returns the share that the rated class would have with the weight `rated`.
    pub(super) fn rated_share_with(&self, rated: u64) -> Rate {
        let Some(basis) = self.basis else { return Rate::ZERO };
        self.split(Basis { rated, ..basis }).rated
    }

    fn split(&self, basis: Basis) -> Split {
        let udp_share = basis.udp.map_or(0.0, |halvings| self.udp_share / f64::from(1u32 << halvings));
        split(basis.link, self.eta, udp_share, basis.acks, basis.rated, basis.other)
    }

    /// Updates the split and returns whether it changed.
    ///
    /// The split changes at most once per `period` (BRF-24). In three cases it changes at once (ours): the link gets a
    /// new rate, a class gets its first flow or loses its last flow, or UDP needs a larger share. If these changes had
    /// to wait, a class would have too little, or an unused share would stay reserved.
    pub(super) fn update(&mut self, now: Time, period: Span, basis: Basis) -> bool {
        let urgent = self.basis.is_none_or(|old| {
            old.link != basis.link || old.occupied() != basis.occupied() || basis.grows(old)
        });
        if self.basis == Some(basis) || !(urgent || now.since(self.computed_at) >= period) {
            return false;
        }
        self.basis = Some(basis);
        self.computed_at = now;
        let new = self.split(basis);
        core::mem::replace(&mut self.current, new) != new
    }

    /// Adds the actions that set the class rates of the HTB, if the rates have changed. `ceil` is the link's rate, so
    /// that classes borrow unused shares (BRF-22). `udp_ceil` is UDP's ceiling. If `udp_ceil` is `None`, UDP may not
    /// borrow (BRF-23).
    pub(super) fn push<K: FlowIdentity>(
        &mut self,
        ceil: Rate,
        udp_ceil: Option<Rate>,
        actions: &mut Vec<Action<K>>,
    ) {
        if self.announced == Some((self.current, ceil, udp_ceil)) {
            return;
        }
        self.announced = Some((self.current, ceil, udp_ceil));
        let Split { rated, other, udp } = self.current;
        let udp_ceil = udp_ceil.unwrap_or(udp);
        for (class, rate, ceil) in
            [(Class::Rated, rated, ceil), (Class::OtherTcp, other, ceil), (Class::Udp, udp, udp_ceil)]
        {
            let rate = rate.max(LEAST_RATE);
            actions.push(Action::SetClass { class, rate, ceil: ceil.max(rate) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: Rate = Rate::from_bytes_per_sec(100);

    fn shares(rated: u64, other: u64) -> (u64, u64) {
        let s = split(LINK, 1.0, 0.0, Rate::ZERO, rated, other);
        (s.rated.as_bytes_per_sec(), s.other.as_bytes_per_sec())
    }

    #[test]
    fn tv_3_split_by_number_of_flows() {
        assert_eq!([shares(1, 1), shares(3, 1), shares(5, 0)], [(50, 50), (75, 25), (100, 0)]);
        assert_eq!(shares(0, 2), (0, 100));
        assert_eq!(shares(0, 0), (100, 0));
        assert_eq!(shares(u64::MAX, u64::MAX).0, 100);
    }

    #[test]
    fn udps_share_comes_first() {
        let s = split(Rate::from_bytes_per_sec(100_000), 0.98, 0.05, Rate::ZERO, 1, 1);
        let expected = [46_550, 46_550, 5_000].map(Rate::from_bytes_per_sec);
        assert_eq!([s.rated, s.other, s.udp], expected);
    }

    #[test]
    fn acks_get_what_they_need_but_never_all() {
        let acks = |acks| {
            let link = Rate::from_bytes_per_sec(100_000);
            let s = split(link, 0.98, 0.0, Rate::from_bytes_per_sec(acks), 1, 0);
            [s.rated, s.other].map(Rate::as_bytes_per_sec)
        };
        assert_eq!(acks(3_000), [95_000, 3_000]);
        assert_eq!(acks(90_000), [48_000, 50_000]);
    }

    #[test]
    fn changes_wait_for_a_period_unless_a_class_wakes() {
        let mut s = Splitter::new(1.0, 0.05);
        let mut update = |at: u64, link, rated, other| {
            let (now, period) = (Time::ZERO + Span::from_millis(at), Span::from_millis(20));
            let changed = s.update(now, period, Basis { link, rated, other, udp: None, acks: Rate::ZERO });
            (changed, s.current().rated.as_bytes_per_sec())
        };
        assert_eq!(update(0, LINK, 1, 0), (true, 100));
        assert_eq!(update(1, LINK, 1, 1), (true, 50), "the first flow of a class changes the split at once");
        assert_eq!(update(2, LINK, 3, 1), (false, 50), "more flows change nothing before the period ends");
        assert_eq!(update(21, LINK, 3, 1), (true, 75));
        assert_eq!(
            update(22, Rate::from_bytes_per_sec(50), 3, 1),
            (true, 37),
            "half of the link's capacity at once"
        );
    }

    #[test]
    fn htb_gets_only_changes_and_never_zero() {
        let (mut s, mut actions) = (Splitter::new(1.0, 0.05), Vec::<Action>::new());
        let link = Rate::from_bytes_per_sec(1_000_000);
        s.update(Time::ZERO, Span::ZERO, Basis { link, rated: 1, other: 0, udp: None, acks: Rate::ZERO });
        s.push(link, None, &mut actions);
        assert_eq!(actions.len(), 3);
        assert!(actions.iter().all(
            |a| matches!(a, Action::SetClass { rate, ceil, .. } if rate <= ceil && *rate >= LEAST_RATE)
        ));
        s.push(link, None, &mut actions);
        assert_eq!(actions.len(), 3);
        let ceil = link.mul_f64(0.95);
        s.push(link, Some(ceil), &mut actions);
        assert_eq!(actions[5..], [Action::SetClass { class: Class::Udp, rate: LEAST_RATE, ceil }]);
    }
}
