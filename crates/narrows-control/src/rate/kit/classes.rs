//! The link's division into three classes. The shares are fixed, because the laws of RCP, BDR and PACEC do not divide
//! the link by numbers of flows.
//!
//! The shares are guarantees. Other TCP and UDP get 5 % each, which is UDP's share in BRF-21. Rated flows get the rest.
//! All classes may borrow up to the rate of the link. Unlike in BRF-23, this includes UDP.
//!
//! Other flows may borrow bandwidth beyond their guarantee. When rated flows need this bandwidth, they get it back. So
//! the law must not count borrowed traffic. Otherwise a queue of CUBIC flows would make the law reduce the rates of
//! rated flows to almost nothing.

use crate::rate::{Action, Class, FlowIdentity};
use crate::units::{Bytes, Rate, Span};

/// Minimum rate of a class: one packet per second, because HTB rejects a rate of zero. A class without flows has this
/// rate. When its first flow begins, the class borrows until it gets a higher rate.
pub(in crate::rate) const LEAST_RATE: Rate = Rate::from_bytes_per_sec(1500);

/// A class can save the unused part of its guarantee, up to the bytes that the guarantee allows in this time. So a
/// short burst does not exceed the guarantee if the average traffic does not.
const SAVED: Span = Span::from_millis(100);

/// UDP's share of a link (BRF-21).
pub(in crate::rate) const UDP_SHARE: f64 = 0.05;

/// Returns the guarantee of other TCP, which is also the guarantee of UDP.
fn share(link: Rate) -> Rate {
    link.mul_f64(UDP_SHARE)
}

/// Adds the actions that set the class rates for a link of this capacity.
pub(in crate::rate) fn set<K: FlowIdentity>(link: Rate, actions: &mut Vec<Action<K>>) {
    let share = share(link);
    for (class, rate) in [(Class::Rated, link - share - share), (Class::OtherTcp, share), (Class::Udp, share)]
    {
        let rate = rate.max(LEAST_RATE);
        actions.push(Action::SetClass { class, rate, ceil: link.max(rate) });
    }
}

/// Separates a class's traffic within its guarantee from borrowed traffic.
#[derive(Clone, Debug, Default)]
pub(in crate::rate) struct Guarantee {
    unused: Bytes,
}

impl Guarantee {
    /// Returns how many of the `passed` bytes are within the guarantee. They passed in the time `elapsed`.
    pub(in crate::rate) fn within(&mut self, link: Rate, elapsed: Span, passed: Bytes) -> Bytes {
        let share = share(link);
        let saved = self.unused.min(share.bytes_in(SAVED));
        let due = saved + share.bytes_in(elapsed);
        let within = passed.min(due);
        self.unused = due - within;
        within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: Rate = Rate::from_bytes_per_sec(20_000_000);

    fn within(of: &mut Guarantee, millis: u64, passed: u64) -> u64 {
        of.within(LINK, Span::from_millis(millis), Bytes::new(passed)).get()
    }

    #[test]
    fn borrowed_traffic_does_not_count() {
        let mut of = Guarantee::default();
        assert_eq!(within(&mut of, 10, 4_000), 4_000, "10,000 are guaranteed");
        assert_eq!(
            within(&mut of, 10, 15_000),
            15_000,
            "10,000 are guaranteed, and 5,000 of the saved 6,000 are used"
        );
        assert_eq!(within(&mut of, 10, 200_000), 11_000);
        assert_eq!(within(&mut of, 10, 200_000), 10_000);
        within(&mut of, 60_000, 0);
        assert_eq!(within(&mut of, 0, 1_000_000), 100_000, "at most the guarantee of 100 ms is saved");
    }

    #[test]
    fn the_guarantees_add_up_to_the_link_and_all_may_borrow() {
        let mut actions = Vec::<Action>::new();
        set(LINK, &mut actions);
        let classes: Vec<_> = actions
            .iter()
            .map(|a| match a {
                Action::SetClass { class, rate, ceil } => (*class, rate.as_bytes_per_sec(), *ceil),
                other => panic!("{other:?}"),
            })
            .collect();
        let expected = [(Class::Rated, 18_000_000), (Class::OtherTcp, 1_000_000), (Class::Udp, 1_000_000)];
        assert_eq!(classes, expected.map(|(class, rate)| (class, rate, LINK)));
    }
}
