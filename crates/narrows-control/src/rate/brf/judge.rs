//! Evaluates a flow's measurement window: the flow's class and demand (BRF-38, BRF-39). A held flow is a flow that
//! another switch limits.

use super::allocate::{AppClass, Found, classify, classify_held};
use super::obedience;
use super::params::Params;
use super::table::Meter;
use crate::parameter::Reading;
use crate::rate::kit::waterfill::UNBOUNDED;
use crate::units::{Bytes, Rate, Span, Time};

/// A flow is classified only if it was measured for at least 1/`LEAST_WINDOW` of the period T.
const LEAST_WINDOW: u64 = 4;
/// A flow is classified as limited only after measurements of at least this share of a period.
const LEAST_EVIDENCE: (u64, u64) = (3, 4);
/// The counts of up to this many windows are added up, which is necessary for a flow with few packets.
const EVIDENCE_WINDOWS: u8 = 16;
/// The rate of another switch limits the flow's demand until more than this many windows have ended without a rate from
/// that switch.
const HELD_WINDOWS: u8 = 3;
/// Maximum relative difference between the traffic of two consecutive windows of a held flow. In addition, a difference
/// of two packets is permitted.
const STEADY: f64 = 0.05;
/// The rate of a held flow is treated as equal to its demand if the recorded rate is lower by at most this share.
/// Changes of the rate up to this share are not recorded, so the actual rate may equal the demand.
const TOLD_CUT: f64 = 0.01;
/// Maximum headroom of a flow that two switches hold alternately, per mille.
const RELEASED_HEADROOM: u16 = 250;

/// Returns the time from which the flow's arrivals reflect its allocation. In resolved mode the sender must have known
/// the allocation for an RTT, and must have begun to send (BRF-36, BRF-37).
pub(super) fn measured_from(mode: Reading, meter: &Meter, from: Time) -> Time {
    if mode == Reading::Literal {
        return from.max(meter.joined);
    }
    // If `told_at` or `first_data` is "never", the result is also "never", because additions to times saturate.
    from.max(meter.told_at + meter.rtt).max(meter.first_data)
}

/// The port's values for the evaluation of all flows at the end of a window.
pub(super) struct Judge<'p> {
    pub(super) params: &'p Params,
    pub(super) mtu: Bytes,
    /// The minimum allocation (BRF-47).
    pub(super) floor: Rate,
    /// T.
    pub(super) period: Span,
    /// Number of the window that ends.
    pub(super) window: u32,
}

impl Judge<'_> {
    /// Ends the window that began at `from`. `spread` is the amount that the flow gets in addition to its
    /// share, bytes/s (BRF-42).
    pub(super) fn end_window(&self, meter: &mut Meter, spread: u64, from: Time, now: Time) {
        let mode = self.params.mode;
        let span = now.since(measured_from(mode, meter, from));
        if span < self.period.scale(1, LEAST_WINDOW) || (mode == Reading::Literal && meter.joined > from) {
            return;
        }
        meter.enter(self.window);
        self.judge(meter, spread, span);
    }

    /// Determines a flow's class and demand if the counts are conclusive.
    fn judge(&self, meter: &mut Meter, spread: u64, span: Span) {
        let p = self.params;
        meter.measured += meter.bytes;
        meter.measured_span += span;
        let last = core::mem::replace(&mut meter.real, Rate::of(meter.bytes, span));
        if p.mode == Reading::Literal {
            let allocated = Rate::from_bytes_per_sec(meter.demand);
            let class = classify(meter.bytes, allocated, span, p.a_cls, Bytes::ZERO);
            meter.app_class = class.unwrap_or(meter.app_class);
            // In literal mode, equation 14 of the paper sets the demand in the ALLOC phase.
            return;
        }
        let may = meter.told.as_bytes_per_sec().saturating_add(spread);
        obedience::watch(meter, span, may, self.mtu);
        meter.held_age = meter.held_age.saturating_add(1);
        if meter.held_age > HELD_WINDOWS {
            meter.held = UNBOUNDED;
        }
        if meter.evidence_windows >= EVIDENCE_WINDOWS {
            meter.fade_evidence();
        }
        meter.evidence += meter.bytes;
        meter.evidence_span += span;
        meter.evidence_windows += 1;
        let lost = if p.believe_senders { lost_upstream(meter.evidence, meter.missing) } else { Bytes::ZERO };
        let evidence = Evidence {
            sent: meter.evidence + lost,
            lost,
            span: meter.evidence_span,
            windows: meter.evidence_windows,
        };
        if p.believe_senders && meter.unlimited && !meter.limited {
            self.judge_greedy(meter, last, &evidence);
        } else {
            self.judge_by_use(meter, &evidence);
        }
        (meter.unlimited, meter.limited) = (false, false);
    }

    /// Determines the class and the demand from the flow's use of its rate (BRF-38, BRF-40).
    fn judge_by_use(&self, meter: &mut Meter, evidence: &Evidence) {
        let p = self.params;
        let class = classify(evidence.sent, meter.told, evidence.span, p.a_cls, self.mtu);
        // After a short window, a flow is not classified as limited, because its base allocation could be too low. A
        // flow may send more than its base, because the flow also gets a part of the remainder. So with a base that is
        // too low, the flow would seem unlimited in the next window.
        if class == Some(AppClass::Limited)
            && evidence.span < self.period.scale(LEAST_EVIDENCE.0, LEAST_EVIDENCE.1)
        {
            return;
        }
        let was_limited = meter.app_class == AppClass::Limited;
        let class = match class {
            Some(class) => class,
            // The base may be too low. With the counts of further windows, the flow would seem to fill this base. So
            // the flow stays limited, and gets a new base now.
            None if was_limited && evidence.windows > 1 => AppClass::Limited,
            None => return,
        };
        meter.app_class = class;
        let wanted = match class {
            AppClass::Limited => {
                let sent = Rate::of(evidence.sent, evidence.span);
                let wanted = sent.mul_f64(p.b_head).max(self.floor).as_bytes_per_sec();
                // A difference of one packet does not show a different need. A new allocation would shorten the next
                // measurement, and so make the count less exact.
                let coarse = Rate::of(self.mtu, evidence.span).mul_f64(p.b_head).as_bytes_per_sec();
                let same = was_limited && evidence.windows == 1 && wanted.abs_diff(meter.demand) <= coarse;
                if same { meter.demand.max(self.floor.as_bytes_per_sec()) } else { wanted }
            }
            _ => UNBOUNDED,
        };
        meter.demand = wanted.min(meter.held);
        meter.drop_evidence();
    }

    /// Evaluates a flow whose sender has more to send (BRF-100). If the flow uses less than its rate, another
    /// switch holds it (BRF-102).
    fn judge_greedy(&self, meter: &mut Meter, last: Rate, evidence: &Evidence) {
        let was_held = meter.app_class == AppClass::Held;
        let tolerance = evidence.uncertainty(self.mtu);
        // The flow has its full headroom only if its rate at this port equals its demand. The rate is lower if the
        // level of this port is below the demand.
        let has_it = was_held && meter.told.mul_f64(1.0 + TOLD_CUT).as_bytes_per_sec() >= meter.demand;
        let headroom = has_it.then_some(meter.headroom);
        let found = classify_held(evidence.sent, meter.told, evidence.span, tolerance, headroom);
        // A sender that still doubles its rate per RTT, to reach a new rate, also sends less than this rate. But its
        // traffic is not steady: it differs from window to window. The traffic is not steady either if no data arrived
        // in the previous window, because a queue upstream may have delayed the data.
        let (before, after) =
            (last.bytes_in(self.period).as_f64(), meter.real.bytes_in(self.period).as_f64());
        let steady = before > 0.0 && (after - before).abs() <= STEADY * before + 2.0 * self.mtu.as_f64();
        match found {
            Some(Found::Held { rate, headroom }) if steady || was_held => {
                let headroom = if was_held { headroom } else { after_release(meter.headroom, headroom) };
                (meter.app_class, meter.headroom) = (AppClass::Held, headroom);
                let with = rate.mul_f64(1.0 + f64::from(headroom) / 1000.0).max(self.floor);
                meter.demand = with.as_bytes_per_sec().min(meter.held);
            }
            None if was_held => {}
            // If the measurement is inconclusive, the sender's report decides: the flow is unlimited.
            _ => {
                if !was_held {
                    meter.headroom /= 2;
                }
                meter.app_class = AppClass::Unlimited;
                meter.demand = meter.held;
                if found.is_some() {
                    meter.drop_evidence();
                }
            }
        }
    }
}

/// Returns the headroom of a flow that is held again. `before` is its last headroom, halved in each window since then.
///
/// Two switches on a path can hold a flow alternately: when the first switch releases the flow, the second switch still
/// measures the limit of the first. With each release the flow's rate grows by one headroom, a few per cent. To speed
/// up this growth, the headroom doubles with each release.
fn after_release(before: u16, wanted: u16) -> u16 {
    wanted.max(before.saturating_mul(2).min(RELEASED_HEADROOM))
}

/// The measured traffic of a flow.
struct Evidence {
    /// L3 bytes, including the estimated bytes that were lost on the way to this switch.
    sent: Bytes,
    lost: Bytes,
    span: Span,
    windows: u8,
}

impl Evidence {
    /// Returns the uncertainty of the count. In each window, the count of a paced flow is wrong by at most one packet,
    /// and by 0.4 packets in the root mean square. Losses add three standard deviations of the number of lost packets
    /// (Poisson).
    fn uncertainty(&self, mtu: Bytes) -> Bytes {
        let ends = (0.4 * libm::sqrt(f64::from(self.windows))).max(1.0);
        let lost = self.lost.as_f64() / mtu.as_f64().max(1.0);
        Bytes::new(((ends + 3.0 * libm::sqrt(lost)) * mtu.as_f64()) as u64)
    }
}

/// Returns the number of bytes that were lost on the way to this switch, estimated from the `bytes` that arrived and
/// the bytes that are missing (BRF-100). Gaps in the sequence numbers show lost new packets, but lost retransmissions
/// leave no gap. So retransmissions are assumed to be lost as often as new packets. The estimate is at most the number
/// of bytes that arrived.
fn lost_upstream(bytes: Bytes, missing: Bytes) -> Bytes {
    let p = (missing.as_f64() / bytes.as_f64().max(1.0)).min(0.5);
    Bytes::new((bytes.as_f64() * p / (1.0 - p)) as u64)
}
