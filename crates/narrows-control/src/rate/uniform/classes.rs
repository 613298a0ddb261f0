//! The link between the three classes: fixed shares, as these laws do not divide it by the number of flows.
//!
//! Laws of one rate know no classes (all traffic is in y, or is background), so the shares are guarantees only: 5 % each for
//! other TCP and for UDP, the part that BRF keeps for UDP (BRF-21), the rest for those who obey. All may borrow up to
//! the link, UDP too (not as BRF-23): what is not obedient is met by the law, which gives the others less.

use crate::rate::brf::{LEAST_RATE, Params};
use crate::rate::{Action, Class};
use crate::units::Rate;

/// Class rates for a link of this capacity.
pub(super) fn set(link: Rate, actions: &mut Vec<Action>) {
    let share = link.mul_f64(Params::resolved().udp_share);
    for (class, rate) in
        [(Class::Rated, link - share - share), (Class::OtherTcp, share), (Class::Udp, share)]
    {
        let rate = rate.max(LEAST_RATE);
        actions.push(Action::SetClass { class, rate, ceil: link.max(rate) });
    }
}
