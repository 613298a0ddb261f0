//! BBR versions 2 and 3: v1's model of the path, and bounds that are derived from losses.
//!
//! Source: draft-ietf-ccwg-bbr-06 (July 2026) for the order of steps and for v3; Google's kernel module `tcp_bbr2.c`
//! where v2 differs. The versions differ only in [`params`]. [`bounds`] computes the bounds from losses, [`cycle`]
//! schedules and evaluates probes, and `phase` contains the phases. This file computes rate and window, with v1's
//! `model` and `pacing`.
//!
//! Deviations from the draft:
//! * The long-term bound applies in Drain. The table of the draft has this bound, but the pseudocode of the draft does
//!   not.
//! * The aggregation filter has two periods of five rounds and enlarges the window by at most 100 ms of data, as in the
//!   module.
//! * In Startup, each ACK that reports losses counts as a lost range, as in the module.
//! * Classic ECN echoes count as one loss per round, because they do not contain the number of
//!   marked packets.
//! * In Up, ACKs count towards a higher bound only while the window fills the bound. Otherwise the count restarts, as
//!   in the kernel modules of v2 and v3.
//! * After spurious losses in Up, v3 returns directly to Up. The draft (`HandleSpuriousLossDetection`) begins with
//!   Refill.
//!
//! Deviations of v2 from its module:
//! * This v2 does not react to ECN, so it has no `bw_hi`. In the module, the reaction to ECN is off by default.
//! * The loss threshold is 2 %, not 5/256. A reduction keeps 70 %, not 180/256. Headroom is 15 %, not 38/256.
//! * The send quantum does not depend on the RTT. In the module, it is larger on paths with short RTTs.
//! * Cruise does not lower `inflight_lo` to `inflight_hi`, because `inflight_hi` limits the window anyway.
//! * Excessive loss is detected only when segments are marked lost. The module also detects it on each ACK.
//! * Drain and Down use the amount of data that is in flight now. The module uses an estimate of the amount at the time
//!   when the next segment leaves.
//! * Drain computes its target from the bandwidth in use, as in the draft, and not from the maximum bandwidth.

pub mod bounds;
pub mod cycle;
pub mod min_rtt;
pub mod params;
mod phase;
mod shared;

use self::bounds::{UNBOUNDED, crossing, share};
use self::params::{Gains, Params, UpExit};
use self::phase::{Phase, Startup, Up, check_losses};
use self::shared::Shared;
use super::gain::Gain;
use crate::congestion::{Ack, Congestion, Connection, Controller, Lost, Recovery, Signal, Window};
use crate::parameter::{Parameters, Values};
use crate::units::{Rate, Span, Time};

/// The controller.
pub struct Bounded {
    shared: Shared,
    phase: Phase,
    /// Whether loss recovery is active. During recovery, a loss begins no new episode.
    repairing: bool,
    /// The state of BBR when the latest episode of losses began. BBR returns to this state if the
    /// losses were spurious.
    undo_state: Option<UndoState>,
    /// Whether the pacing rate is based on a measured RTT.
    has_rtt: bool,
}

/// A state to which BBR can return after spurious losses.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum UndoState {
    Startup,
    Up,
}

impl Bounded {
    /// Returns a controller with the parameters of its version and the given parameters of the catalogue.
    pub fn from_values(version: Params, values: &Values) -> Self {
        Bounded::new(Params {
            startup: version.startup.with("startup_", values),
            drain: version.drain.with("drain_", values),
            down: version.down.with("down_", values),
            cruise: version.cruise.with("cruise_", values),
            refill: version.refill.with("refill_", values),
            up: version.up.with("up_", values),
            probe_rtt: version.probe_rtt.with("probe_rtt_", values),
            aggregation: version.aggregation.clone().with("aggregation_", values),
            pacing: version.pacing.clone().with("pacing_", values),
            ..version.with("", values)
        })
    }

    /// Returns a controller with these parameters.
    pub fn new(params: Params) -> Self {
        Bounded {
            shared: Shared::new(params),
            phase: Phase::Startup(Startup),
            repairing: false,
            undo_state: None,
            has_rtt: false,
        }
    }

    fn gains(&self) -> Gains {
        self.phase.gains(&self.shared.params)
    }

    /// Called when the losses of a probe crossed the threshold (`HandleInflightTooHigh`; BBR2-3, BBR3-6). `inflight` is
    /// the volume in flight at which the losses crossed the threshold.
    fn on_too_high(&mut self, lost: &Lost, inflight: u32, window: &Window) {
        let shared = &mut self.shared;
        shared.cycle.on_too_high();
        if !lost.app_limited {
            shared.bounds.longterm = inflight.max(share(shared.params.beta, shared.target(window)));
        }
        self.phase.on_too_high(shared, lost.now);
    }

    /// Performs `UpdateCongestionSignals` and the steps that precede it in the draft. Also updates the aggregation
    /// filter and the full-pipe detector. Returns the delivery rate, or `None` if the ACK has no valid sample.
    fn update_model(&mut self, ack: &Ack, window: &Window) -> Option<Rate> {
        let is_probing = self.phase.is_probing();
        let Shared { params, model, bounds, cycle, .. } = &mut self.shared;
        if !model.on_sample(ack) || ack.acked == 0 {
            bounds.on_nothing();
            return None;
        }
        if model.round_start {
            cycle.on_round();
        }
        let bw = model.delivery_rate(ack);
        let app_limited = model.is_app_limited(ack);
        bounds.on_sample(ack, bw);
        model.update_bw(bw, app_limited);
        bounds.on_round(is_probing, model.max_bw(), window.cwnd, params.beta);
        let in_use = model.max_bw().min(bounds.bw_shortterm);
        let (bytes, full) = (model.packet_bytes(), model.full_pipe.has_been_full());
        let filter = if full { &params.aggregation } else { &params.startup_aggregation };
        model.aggregation.on_ack(ack, model.round_start, in_use, window.cwnd, bytes, filter);
        if model.round_start && !app_limited {
            let seen = match params.up_exit {
                UpExit::Plateau => bw,
                UpExit::Queue(_) => model.max_bw(),
            };
            model.full_pipe.on_round(seen, params.full_bw_growth, params.full_bw_rounds);
        }
        Some(bw)
    }

    /// Changes the phase if necessary. `bw` is the ACK's delivery rate, or `None` if the ACK has no valid sample.
    fn update_phase(&mut self, ack: &Ack, window: &mut Window, bw: Option<Rate>) {
        let shared = &mut self.shared;
        if !shared.has_been_full() {
            check_losses(shared, ack, window);
        }
        self.phase.on_model(shared, ack, window);
        if shared.has_been_full()
            && let Some(bw) = bw
        {
            self.phase.on_sample(shared, ack, window, bw);
        }
        let expired = shared.min_rtt.update(ack, &mut shared.model, &shared.params);
        self.phase.on_rtt(shared, ack, window, expired);
        if ack.rate.delivered > 0 {
            shared.idle_restart = false;
        }
    }

    fn set_pacing_rate(&mut self, ack: &Ack, window: &mut Window) {
        let shared = &self.shared;
        let bytes = shared.model.packet_bytes();
        if !self.has_rtt && ack.srtt > Span::ZERO {
            self.has_rtt = true;
            let (rtt, gain) = (Some(ack.srtt), shared.params.startup.pacing);
            window.pacing_rate = Some(shared.params.pacing.initial_rate(window.cwnd, rtt, gain, bytes));
        }
        let rate = shared.params.pacing.rate(shared.bw(), self.gains().pacing, bytes);
        if shared.has_been_full() || window.pacing_rate.is_none_or(|current| rate > current) {
            window.pacing_rate = Some(rate);
        }
    }

    /// Sets the window (BBR3-8, `SetCwnd`).
    fn set_cwnd(&mut self, ack: &Ack, window: &mut Window) {
        let shared = &self.shared;
        let bw = shared.bw();
        if ack.acked > 0 {
            let bytes = shared.model.packet_bytes();
            let extra = shared.model.aggregation.cwnd(bw, bytes, &shared.params.aggregation);
            let most = shared.model.bdp(bw, self.gains().cwnd).saturating_add(extra);
            let most = self.phase.with_probe(shared.quantise(most, window), &shared.params);
            let grown = window.cwnd.saturating_add(ack.acked);
            if shared.has_been_full() {
                window.cwnd = grown.min(most);
            } else if window.cwnd < most || ack.delivered < u64::from(shared.params.initial_cwnd) {
                window.cwnd = grown;
            }
            window.cwnd = window.cwnd.max(shared.params.min_cwnd);
        }
        if matches!(self.phase, Phase::ProbeRtt(_)) {
            window.cwnd = window.cwnd.min(shared.probe_rtt_cwnd());
        }
        window.cwnd = window.cwnd.min(self.cap()).max(1);
    }

    /// Returns the volume cap of the current phase (see the table of states above BBR3-1).
    fn cap(&self) -> u32 {
        let longterm = self.phase.longterm(&self.shared);
        longterm.min(self.shared.bounds.shortterm).max(self.shared.params.min_cwnd)
    }
}

impl Controller for Bounded {
    fn name(&self) -> &'static str {
        self.shared.params.name
    }

    fn on_established(&mut self, connection: &Connection, window: &mut Window) {
        self.shared.on_established(connection);
        self.has_rtt = connection.rtt.is_some();
        let Shared { params, model, .. } = &self.shared;
        let (gain, bytes) = (params.startup.pacing, model.packet_bytes());
        window.pacing_rate = Some(params.pacing.initial_rate(window.cwnd, connection.rtt, gain, bytes));
    }

    fn on_lost(&mut self, lost: &Lost, window: &Window) {
        // `lost.delivered` already includes the ACK that reports the loss. So a round that begins in this call ends
        // when data that is sent after this call is delivered.
        self.shared.delivered = lost.delivered;
        let fresh = !core::mem::replace(&mut self.repairing, true);
        self.shared.bounds.on_loss(lost.delivered, fresh);
        if fresh {
            self.undo_state = match &self.phase {
                Phase::Startup(_) => Some(UndoState::Startup),
                Phase::Up(_) => Some(UndoState::Up),
                _ => None,
            };
        }
        if self.shared.cycle.sampling
            && let Some(inflight) = crossing(lost, self.shared.params.loss_threshold)
        {
            self.on_too_high(lost, inflight, window);
        }
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) {
        self.shared.delivered = ack.delivered;
        let bw = self.update_model(ack, window);
        self.update_phase(ack, window, bw);
        if let Some(bw) = bw {
            self.shared.bounds.on_sample_done(ack, bw);
        }
        self.shared.saved.see(ack.state);
        self.repairing = self.shared.saved.is_recovering();
        self.set_pacing_rate(ack, window);
        self.set_cwnd(ack, window);
    }

    fn on_congestion(&mut self, event: &Congestion, window: &mut Window) {
        let shared = &mut self.shared;
        shared.saved.save(window.cwnd, matches!(self.phase, Phase::ProbeRtt(_)));
        match event.signal {
            Signal::Ecn => {
                // The reduction for an echo cannot be undone, and neither can earlier reductions.
                shared.bounds.forget_before();
                self.undo_state = None;
                if shared.params.ce_is_loss {
                    shared.bounds.on_loss(shared.delivered, false);
                }
            }
            Signal::Timeout => {
                shared.saved.on_timeout();
                shared.model.full_pipe.restart(Rate::ZERO);
                if !self.phase.is_probing() {
                    // The transport cuts the window after this call. So the short-term bound is set to the saved
                    // window, not to the cut window.
                    shared.bounds.bound_shortterm(shared.saved.cwnd());
                }
            }
            _ => {}
        }
    }

    fn on_recovered(&mut self, _now: Time, window: &mut Window) {
        self.repairing = false;
        window.cwnd = window.cwnd.max(self.shared.saved.cwnd());
    }

    fn on_undo(&mut self, now: Time, window: &mut Window) {
        let shared = &mut self.shared;
        window.cwnd = window.cwnd.max(shared.saved.cwnd());
        self.repairing = false;
        shared.bounds.undo();
        shared.model.full_pipe.restart(Rate::ZERO);
        let Some(state) = self.undo_state.take().filter(|_| shared.params.undo_returns) else { return };
        let in_probe_rtt = matches!(self.phase, Phase::ProbeRtt(_));
        match state {
            UndoState::Startup if !matches!(self.phase, Phase::Startup(_)) => {
                shared.model.full_pipe.unreach();
                if !in_probe_rtt {
                    self.phase = Phase::Startup(Startup);
                }
            }
            UndoState::Up if !in_probe_rtt && !matches!(self.phase, Phase::Up(_)) => {
                // No sample is available as a reference. So the search for a plateau begins with the next sample.
                self.phase = Up::enter(shared, now, window, Rate::ZERO);
            }
            _ => {}
        }
    }

    fn on_restart(&mut self, now: Time, _idle: Span, app_limited: bool, window: &mut Window) {
        let in_probe_rtt = matches!(self.phase, Phase::ProbeRtt(_));
        if !app_limited && !in_probe_rtt {
            return;
        }
        let shared = &mut self.shared;
        shared.idle_restart = true;
        shared.model.aggregation.restart(now);
        if self.phase.is_probe_bw() {
            let bytes = shared.model.packet_bytes();
            window.pacing_rate = Some(shared.params.pacing.rate(shared.bw(), Gain::ONE, bytes));
        }
        if let Phase::ProbeRtt(probe) = &self.phase
            && let Some(next) = probe.on_restart(shared, now, window)
        {
            self.phase = next;
        }
    }

    fn recovery(&self) -> Recovery {
        Recovery::Controller
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        let bound = |segments| if segments == UNBOUNDED { f64::NAN } else { f64::from(segments) };
        let (phase, step) = self.phase.numbers();
        let Shared { model, bounds, .. } = &self.shared;
        let min_rtt = model.min_rtt;
        trace("bw", self.shared.bw().as_f64());
        trace("max_bw", model.max_bw().as_f64());
        trace("min_rtt", if min_rtt == Span::MAX { f64::NAN } else { min_rtt.as_secs_f64() });
        trace("pacing_gain", self.gains().pacing.as_f64());
        trace("cwnd_gain", self.gains().cwnd.as_f64());
        trace("phase", f64::from(phase));
        trace("step", step.map_or(f64::NAN, f64::from));
        trace("round", model.round as f64);
        trace("inflight_longterm", bound(bounds.longterm));
        trace("inflight_shortterm", bound(bounds.shortterm));
    }
}

#[cfg(test)]
mod tests;
