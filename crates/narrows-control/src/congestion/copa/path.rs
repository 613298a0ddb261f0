//! Copa's delay estimates: RTTmin, RTTstanding and RTTmax (sections 2.1 and 2.2 of the paper).

use core::cmp::Reverse;

use super::Params;
use crate::congestion::filter::WindowedMax;
use crate::units::{Span, Time};

/// Extremes of the RTT over three windows.
#[derive(Copy, Clone, Debug)]
pub struct Path {
    min: WindowedMax<Reverse<Span>>,
    standing: WindowedMax<Reverse<Span>>,
    max: WindowedMax<Span>,
}

impl Path {
    /// Returns the estimates after one sample.
    pub fn new(now: Time, rtt: Span) -> Self {
        let at = now.as_nanos();
        Path {
            min: WindowedMax::new(at, Reverse(rtt)),
            standing: WindowedMax::new(at, Reverse(rtt)),
            max: WindowedMax::new(at, rtt),
        }
    }

    /// Processes an RTT sample. `srtt` sets the length of the windows of RTTstanding and RTTmax.
    pub fn update(&mut self, now: Time, rtt: Span, srtt: Span, params: &Params) {
        let at = now.as_nanos();
        self.min.update(params.min_rtt_window.as_nanos(), at, Reverse(rtt));
        // The minimum over half an RTT filters out delayed and compressed ACKs, whose RTTs are too long. A longer
        // window would hide the queue's growth.
        self.standing.update(srtt.scale(1, params.standing_divisor).as_nanos(), at, Reverse(rtt));
        self.max.update(srtt.scale(params.max_rtts, 1).as_nanos(), at, rtt);
    }

    /// Returns RTTstanding.
    pub fn standing(&self) -> Span {
        self.standing.get().0
    }

    /// Returns dq = RTTstanding - RTTmin, equation 2.
    pub fn queueing_delay(&self) -> Span {
        self.standing() - self.min.get().0
    }

    /// Returns whether the queue is nearly empty: dq < 0.1 (RTTmax - RTTmin) (section 2.2). RTTmax adapts the threshold
    /// to delay variations that no queue causes. Equality also counts as nearly empty, because both sides are 0 on a
    /// path without any queue.
    pub fn is_nearly_empty(&self, params: &Params) -> bool {
        let range = self.max.get() - self.min.get().0;
        self.queueing_delay() <= range.scale(params.empty_percent, 100)
    }
}
