//! The two layers of rated flows: mice, which are flows with small allocations, are served before elephants (BRF-50,
//! BRF-51).

use crate::rate::Leaf;
use crate::rate::kit::policer::Policer;
use crate::units::{Bytes, Rate, Time};

/// A flow becomes a mouse if its base allocation is below this share of the fair share (BRF-50).
const ENTER: f64 = 0.5;
/// A mouse becomes an elephant if its base allocation is above this share of the fair share. The gap prevents frequent
/// changes of queues, which reorder packets.
const LEAVE: f64 = 0.75;

/// Returns whether a flow with this base allocation is a mouse. `was` tells whether the flow is a mouse at present.
/// `fair` is C_BRF / N_BRF. An unlimited flow cannot be a mouse, because it would use everything that the upper layer
/// gives it.
pub(super) fn is_mouse(was: bool, base: Rate, fair: Rate, unlimited: bool) -> bool {
    !unlimited && base <= fair.mul_f64(if was { LEAVE } else { ENTER })
}

/// The layer of one flow.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Layer {
    mouse: bool,
    policer: Policer,
}

impl Layer {
    /// Sets the flow's base allocation, see [`is_mouse`].
    pub(super) fn assign(&mut self, base: Rate, fair: Rate, unlimited: bool) {
        let mouse = is_mouse(self.mouse, base, fair, unlimited);
        if mouse != self.mouse {
            *self = Layer { mouse, policer: Policer::default() };
        }
    }

    /// Returns the queue for a packet. A mouse that sends more than `headroom` times its allocation plus two packets
    /// becomes an elephant (BRF-51). RFC 2475 would also allow drops. But the excess does no harm in the elephants'
    /// queue, and it cannot overtake the flow's earlier packets there.
    pub(super) fn leaf(
        &mut self,
        now: Time,
        size: Bytes,
        allocated: Rate,
        headroom: f64,
        mtu: Bytes,
    ) -> Leaf {
        if !self.mouse {
            return Leaf::Elephant;
        }
        // Some senders pace in bursts of two packets, and a busy link may delay the packets. So the burst includes the
        // data of one millisecond.
        let rate = allocated.mul_f64(headroom);
        let burst = mtu + mtu + rate.bytes_in(crate::units::Span::from_millis(1));
        if self.policer.admit(now, size, rate, burst) {
            return Leaf::Mouse;
        }
        self.mouse = false;
        Leaf::Elephant
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Span;

    const FAIR: Rate = Rate::from_bytes_per_sec(1_000_000);
    const MTU: Bytes = Bytes::new(1500);

    fn is_mouse(layer: &mut Layer) -> bool {
        layer.leaf(Time::ZERO, Bytes::ZERO, FAIR, 1.25, MTU) == Leaf::Mouse
    }

    #[test]
    fn hysteresis_between_half_and_three_quarters() {
        let mut layer = Layer::default();
        for (share, unlimited, mouse) in [
            (0.6, false, false),
            (0.5, false, true),
            (0.74, false, true),
            (0.76, false, false),
            (0.6, false, false),
            (0.4, false, true),
            (0.4, true, false),
        ] {
            layer.assign(FAIR.mul_f64(share), FAIR, unlimited);
            assert_eq!(is_mouse(&mut layer), mouse, "{share}");
        }
    }

    #[test]
    fn a_mouse_at_its_rate_stays_and_one_at_twice_its_rate_is_demoted() {
        for (gap_us, stays) in [(15_000, true), (7_500, false)] {
            let mut layer = Layer::default();
            layer.assign(Rate::from_bytes_per_sec(100_000), FAIR, false);
            let stayed = (0..100).all(|i| {
                let now = Time::ZERO + Span::from_micros(gap_us * i);
                layer.leaf(now, MTU, Rate::from_bytes_per_sec(100_000), 1.25, MTU) == Leaf::Mouse
            });
            assert_eq!(stayed, stays);
        }
    }
}
