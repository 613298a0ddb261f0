//! What the packets of a measurement window say about a flow: its class, and what it will ask for (BRF-38, BRF-39).

use super::allocate::{AppClass, Found, classify, classify_held};
use super::obedience;
use super::params::{Mode, Params};
use super::table::Meter;
use crate::rate::waterfill::UNBOUNDED;
use crate::units::{Bytes, Rate, Span, Time};

/// A flow that is to be classified was measured for at least this part of the window.
const LEAST_WINDOW: u64 = 4;
/// Part of a period that a flow must have been measured for before its need is known.
const LEAST_EVIDENCE: (u64, u64) = (3, 4);
/// Windows that are added up for a flow of few packets before it starts over.
const EVIDENCE_WINDOWS: u8 = 16;
/// Windows without a smaller value from another switch after which the flow is its own again.
const HELD_WINDOWS: u8 = 3;
/// Two windows of a held flow differ by no more than this part.
const STEADY: f64 = 0.05;
/// A held flow has what it was to have, but for this part: smaller changes of what it was told are not noted.
const TOLD_CUT: f64 = 0.01;
/// Most headroom of a flow that switches hold for each other, per mille.
const RELEASED_HEADROOM: u16 = 250;

/// From when the flow's arrivals say something about its allocation: in resolved mode its sender has known it
/// for an RTT, and has begun to send (BRF-36, BRF-37).
pub(super) fn measured_from(mode: Mode, meter: &Meter, from: Time) -> Time {
    if mode == Mode::Literal {
        return from.max(meter.joined);
    }
    // "Never" stays never, as times saturate.
    from.max(meter.told_at + meter.rtt).max(meter.first_data)
}

/// What all flows of a port are judged by at the end of a window.
pub(super) struct Judge<'p> {
    pub(super) params: &'p Params,
    pub(super) mtu: Bytes,
    /// BRF-47.
    pub(super) floor: Rate,
    /// T.
    pub(super) period: Span,
    /// Number of the window.
    pub(super) window: u32,
    /// What each flow is told on top of its share, bytes/s (BRF-42).
    pub(super) spread: u64,
}

impl Judge<'_> {
    /// The window that began at `from` is over.
    pub(super) fn end_window(&self, meter: &mut Meter, from: Time, now: Time) {
        let mode = self.params.mode;
        let span = now.since(measured_from(mode, meter, from));
        if span < self.period.scale(1, LEAST_WINDOW) || (mode == Mode::Literal && meter.joined > from) {
            return;
        }
        meter.enter(self.window);
        self.judge(meter, span);
    }

    /// Decides a flow's class and demand if what was counted decides them.
    fn judge(&self, meter: &mut Meter, span: Span) {
        let p = self.params;
        meter.measured += meter.bytes;
        meter.measured_span += span;
        let last = core::mem::replace(&mut meter.real, Rate::of(meter.bytes, span));
        if p.mode == Mode::Literal {
            let allocated = Rate::from_bytes_per_sec(meter.demand);
            let class = classify(meter.bytes, allocated, span, p.a_cls, Bytes::ZERO);
            meter.app_class = class.unwrap_or(meter.app_class);
            // Eq 14 sets the demand.
            return;
        }
        let may = meter.told.as_bytes_per_sec().saturating_add(self.spread);
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

    /// BRF-38 and BRF-40.
    fn judge_by_use(&self, meter: &mut Meter, evidence: &Evidence) {
        let p = self.params;
        let class = classify(evidence.sent, meter.told, evidence.span, p.a_cls, self.mtu);
        // What is left over is spread, so that a flow may send more than its base; one whose base was counted too low
        // in half a window would seem to want everything in the next.
        if class == Some(AppClass::Limited)
            && evidence.span < self.period.scale(LEAST_EVIDENCE.0, LEAST_EVIDENCE.1)
        {
            return;
        }
        let was_limited = meter.app_class == AppClass::Limited;
        let class = match class {
            Some(class) => class,
            // Its base was counted too low, perhaps, and with more evidence it would seem to fill it.
            None if was_limited && evidence.windows > 1 => AppClass::Limited,
            None => return,
        };
        meter.app_class = class;
        let wanted = match class {
            AppClass::Limited => {
                let sent = Rate::of(evidence.sent, evidence.span);
                let wanted = sent.mul_f64(p.b_head).max(self.floor).as_bytes_per_sec();
                // A packet more or less in the window is no change of what the flow needs, but a new allocation would
                // make the next measurement a shorter one and the count even coarser.
                let coarse = Rate::of(self.mtu, evidence.span).mul_f64(p.b_head).as_bytes_per_sec();
                let same = was_limited && evidence.windows == 1 && wanted.abs_diff(meter.demand) <= coarse;
                if same { meter.demand.max(self.floor.as_bytes_per_sec()) } else { wanted }
            }
            _ => UNBOUNDED,
        };
        meter.demand = wanted.min(meter.held);
        meter.drop_evidence();
    }

    /// A flow whose sender has more to send (BRF-100): if it fills less than it may, another switch holds it (BRF-102).
    fn judge_greedy(&self, meter: &mut Meter, last: Rate, evidence: &Evidence) {
        let was_held = meter.app_class == AppClass::Held;
        let tolerance = evidence.uncertainty(self.mtu);
        // Where the level is less than the headroom would allow, it is the level that the flow does not fill.
        let has_it = was_held && meter.told.mul_f64(1.0 + TOLD_CUT).as_bytes_per_sec() >= meter.demand;
        let headroom = has_it.then_some(meter.headroom);
        let found = classify_held(evidence.sent, meter.told, evidence.span, tolerance, headroom);
        // A sender that doubles per RTT towards a new rate falls short of it, too, but not evenly. One that was not heard
        // at all waits in a queue upstream.
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
            // In doubt it is believed.
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

/// The headroom of a flow that is found held, `before` being what it had when it filled that and was let go.
///
/// Two switches can hold a flow for each other, in turn: while one lets it go, the other measures what the first had
/// allowed. Each turn is worth one headroom, a few per cent, so from turn to turn it doubles.
fn after_release(before: u16, wanted: u16) -> u16 {
    wanted.max(before.saturating_mul(2).min(RELEASED_HEADROOM))
}

/// What a flow was seen to send.
struct Evidence {
    /// L3 bytes, those that were lost on the way here included.
    sent: Bytes,
    lost: Bytes,
    span: Span,
    windows: u8,
}

impl Evidence {
    /// By how much it may be wrong: at the ends of a window a paced flow's count is off by a packet at most, by 0.4 in
    /// the root mean square; and three standard deviations of the number that got lost (Poisson).
    fn uncertainty(&self, mtu: Bytes) -> Bytes {
        let ends = (0.4 * libm::sqrt(f64::from(self.windows))).max(1.0);
        let lost = self.lost.as_f64() / mtu.as_f64().max(1.0);
        Bytes::new(((ends + 3.0 * libm::sqrt(lost)) * mtu.as_f64()) as u64)
    }
}

/// Bytes that were sent for `bytes` that arrived here, but lost on the way (BRF-100). The gaps show lost packets that
/// were new; of the retransmissions, which show no gap, as large a part is lost. No more than as much again is believed.
fn lost_upstream(bytes: Bytes, missing: Bytes) -> Bytes {
    let p = (missing.as_f64() / bytes.as_f64().max(1.0)).min(0.5);
    Bytes::new((bytes.as_f64() * p / (1.0 - p)) as u64)
}
