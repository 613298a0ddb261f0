//! Detection of congestion and of its kind, and the factor of the reduction (BRF-70 to BRF-82).
//!
//! The detector runs at the SDN controller. While the controller is silent, the detector runs at the switch, with the
//! same code and the same [`Report`].

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::params::Params;
use crate::parameter::Reading;
use crate::rate::{CongestionKind, Report};
use crate::units::{Bytes, Rate, Span};

/// Maximum number of reports that are kept per port, even with a short poll period.
const HISTORY: usize = 64;

/// The thresholds of the detector.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Thresholds {
    /// The mode of the rules.
    pub mode: Reading,
    /// U_TH, see [`Params::u_th`].
    pub u_th: f64,
    /// Q_TH, see [`Params::q_th`].
    pub q_th: f64,
    /// See [`Params::q_delay_max`].
    pub q_delay_max: Span,
    /// See [`Params::q_packets_min`].
    pub q_packets_min: u32,
    /// See [`Params::burst_threshold`].
    pub burst_threshold: f64,
    /// The paper's packet size (its MSS).
    pub packet: Bytes,
}

impl Thresholds {
    /// Returns the detector's part of BRF's parameters.
    pub fn of(params: &Params, mtu: Bytes) -> Self {
        Thresholds {
            mode: params.mode,
            u_th: params.u_th,
            q_th: params.q_th,
            q_delay_max: params.q_delay_max,
            q_packets_min: params.q_packets_min,
            burst_threshold: params.burst_threshold,
            packet: mtu,
        }
    }
}

/// The detector's result.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// The kind of congestion, if there is any.
    pub kind: Option<CongestionKind>,
    /// The paper's equation 5: departures divided by the capacity. In resolved mode this value is only logged (BRF-72).
    pub netcard_rate: f64,
    /// The paper's equation 6: queued packets divided by the queue limits.
    pub queue_utilisation: f64,
    /// The arrival rate of the rated class, divided by the rate of this class's share (BRF-72).
    pub arrivals: f64,
}

/// Returns the utilisation of the paper's equation 5: departed packets divided by the number of packets that the link
/// can send in `dt`.
pub fn netcard_rate(packets: u64, packet: Bytes, dt: Span, capacity: Rate) -> f64 {
    let possible = capacity.as_f64() * dt.as_secs_f64();
    if possible > 0.0 { packets as f64 * packet.as_f64() / possible } else { 0.0 }
}

/// Returns the utilisation of the paper's equation 6: queued packets divided by the limits of the queues, or 0 if there
/// is no limit.
pub fn queue_utilisation((queued, limit): (u32, u32)) -> f64 {
    if limit > 0 { f64::from(queued) / f64::from(limit) } else { 0.0 }
}

/// The detector of one port.
#[derive(Clone, Debug, Default)]
pub struct Detector {
    /// The reports of the last period T, and the last report before them.
    history: VecDeque<Report>,
}

impl Detector {
    /// Evaluates the port from this report and the reports of the last period T.
    pub fn observe(&mut self, report: &Report, thresholds: &Thresholds) -> Verdict {
        if self.history.back().is_some_and(|last| last.at >= report.at) {
            // The reports are out of order, so no rates can be computed from them.
            self.history.clear();
        }
        let (mut netcard, mut arrivals) = (0.0, 0.0);
        if let Some(last) = self.history.back() {
            let packets = report.departed_packets.saturating_sub(last.departed_packets);
            netcard = netcard_rate(packets, thresholds.packet, report.at.since(last.at), report.capacity);
        }
        if let Some(first) = self.history.front() {
            let rate = Rate::of(report.rated_arrived - first.rated_arrived, report.at.since(first.at));
            if report.rated_share > Rate::ZERO {
                arrivals = rate.as_f64() / report.rated_share.as_f64();
            }
        }
        self.history.push_back(report.clone());
        while self.history.len() > HISTORY
            || self.history.get(1).is_some_and(|next| report.at.since(next.at) >= report.period)
        {
            self.history.pop_front();
        }
        judge(report, netcard, arrivals, thresholds)
    }
}

fn judge(report: &Report, netcard_rate: f64, arrivals: f64, t: &Thresholds) -> Verdict {
    let (queue_utilisation, standing, burst) = match t.mode {
        Reading::Literal => {
            let utilisation = queue_utilisation(report.all_packets);
            (utilisation, utilisation > t.q_th, netcard_rate > t.u_th)
        }
        Reading::Resolved => {
            let utilisation = queue_utilisation(report.rated_packets);
            let delay = report.rated_queued > report.capacity.bytes_in(t.q_delay_max);
            let delay = delay && report.rated_packets.0 >= t.q_packets_min;
            let standing = utilisation > t.q_th || (t.q_delay_max > Span::ZERO && delay);
            (utilisation, standing, arrivals > t.burst_threshold)
        }
    };
    let kind = match (standing, burst) {
        (true, _) => Some(CongestionKind::Queue),
        (false, true) => Some(CongestionKind::Burst),
        (false, false) => None,
    };
    Verdict { kind, netcard_rate, queue_utilisation, arrivals }
}

/// Returns the factor theta1 of equations 15 to 17. The printed equations lack a minus sign and a plus sign, which are
/// added here. The factor is (S - D) / S, where S is the sum of rates and D is the rate that drains the queue in `g`.
/// The result is negative for a long queue (TV-9).
pub(super) fn queue_factor_literal(sum_allocated: f64, queued: Bytes, g: Span) -> f64 {
    if sum_allocated <= 0.0 {
        return 1.0;
    }
    (sum_allocated - queued.as_f64() / g.as_secs_f64().max(1e-9)) / sum_allocated
}

/// Returns the factor theta1 of resolved mode (BRF-80). The queue drains at the capacity minus arrivals, so the
/// target of the reduction is the capacity minus the rate that drains the queue in `g`.
pub(super) fn queue_factor(
    capacity: f64,
    sum_allocated: f64,
    sum_real: f64,
    queued: Bytes,
    g: Span,
    f_floor: f64,
) -> f64 {
    let target = (capacity - queued.as_f64() / g.as_secs_f64().max(1e-9)).max(f_floor * capacity);
    let sum = sum_allocated.max(sum_real);
    if sum > 0.0 { (target / sum).min(1.0) } else { 1.0 }
}

/// Returns the factor theta2 of equation 18, which scales arrivals to the share `a_max` of the capacity. The factor as
/// printed may exceed 1.
pub(super) fn burst_factor_literal(capacity: f64, a_max: f64, sum_real: f64) -> f64 {
    if sum_real > 0.0 { a_max * capacity / sum_real } else { 1.0 }
}

/// Returns the factor theta2 of resolved mode (BRF-81): as printed, but at most 1.
pub(super) fn burst_factor(capacity: f64, a_max: f64, sum_real: f64) -> f64 {
    burst_factor_literal(capacity, a_max, sum_real).min(1.0)
}

#[cfg(test)]
#[path = "congestion_tests.rs"]
mod tests;
