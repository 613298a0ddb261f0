//! BBR versions 2 and 3: v1's model of the path, with bounds that follow from losses.
//!
//! Source: draft-ietf-ccwg-bbr-06 (July 2026) for the order of steps and for v3; Google's
//! `tcp_bbr2.c` where v2 differs. The versions differ only in [`params`]. [`bounds`] follow from
//! losses, [`cycle`] schedules probes and evaluates them, and this file computes rate and window,
//! with v1's `model` and `pacing`.
//!
//! Deviations from the draft:
//! * Drain follows the long-term bound, as in the draft's table but not in its pseudocode.
//! * The aggregation filter has two periods of five rounds and grants at most 100 ms, as in the
//!   module.
//! * In Startup, each ACK that reports losses counts as a lost range, as in the module.
//! * A classic ECN echo counts as one loss per round, because it does not say how many packets were
//!   marked.
//! * In Up, the flow loses its credit for a higher bound while it does not use the bound, as in both modules.
//!
//! Deviations of v2 from its module:
//! * It does not react to ECN (off by default in the module), so there is no `bw_hi`.
//! * The loss threshold is 2 %, not 5/256. A reduction keeps 70 %, and headroom is 15 %. The module counts in
//!   1/256 and gets 70.3 and 14.8 (it removes 76 and 38 of 256).
//! * The send quantum gets no allowance for short RTTs.
//! * Cruise does not lower `inflight_lo` to `inflight_hi`, because the latter limits the window
//!   anyway.
//! * Excessive loss is detected when segments are marked, not on each ACK as well.
//! * Drain and Down use the amount of data that is in flight now. The module estimates the amount
//!   at the departure of the next segment. Drain compares it with the bandwidth in use, as in the
//!   draft, not with the maximum.

pub mod bounds;
pub mod cycle;
pub mod min_rtt;
pub mod params;

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

use self::bounds::{Bounds, UNBOUNDED, crossing, is_too_high, share};
use self::cycle::{Cycle, Feedback, Step};
use self::min_rtt::MinRtt;
use self::params::{Gains, Params, UpExit};
use super::gain::Gain;
use super::memo::Memo;
use super::model;
use super::probe_rtt::ProbeRtt;
use super::recovery::SavedWindow;
use crate::congestion::filter::TwoPeriodMax;
use crate::congestion::{Ack, Congestion, Connection, Controller, Lost, Recovery, Signal, State, Window};
use crate::parameter::{Parameters, Values};
use crate::units::{Rate, Span, Time};

type Model = model::Model<TwoPeriodMax<Rate>>;

/// The current state.
#[derive(Clone, Debug)]
enum Phase {
    Startup,
    /// Since this round.
    Drain(u64),
    ProbeBw(Step),
    ProbeRtt(ProbeRtt),
}

/// The controller.
pub struct Bounded {
    params: Params,
    model: Model,
    bounds: Bounds,
    cycle: Cycle,
    min_rtt: MinRtt,
    phase: Phase,
    saved: SavedWindow,
    rng: Pcg32,
    /// ACKs of the present round of Startup that reported losses.
    startup_losses: u32,
    /// Loss recovery is active: the next loss begins no episode.
    repairing: bool,
    /// The state of BBR when the latest episode of losses began. BBR returns to this state if the
    /// losses were spurious.
    undo_state: Option<UndoState>,
    /// All segments delivered, as of the last ACK.
    delivered: u64,
    /// The sender restarted from idle and has no delivery yet.
    idle_restart: bool,
    /// The pacing rate is based on a measured RTT.
    has_rtt: bool,
    /// The send quantum of a pacing rate.
    quantum: Memo<Rate, u32>,
}

/// A state to which BBR can return.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum UndoState {
    Startup,
    Up,
}

impl Bounded {
    /// A controller with the parameters of its version and the given parameters of the catalogue.
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

    /// A controller with these parameters.
    pub fn new(params: Params) -> Self {
        Bounded {
            model: new_model(Time::ZERO, None, 1500, &params),
            bounds: Bounds::default(),
            cycle: Cycle::default(),
            min_rtt: MinRtt::new(Time::ZERO, None),
            phase: Phase::Startup,
            saved: SavedWindow::default(),
            rng: Pcg32::seed_from_u64(0),
            startup_losses: 0,
            repairing: false,
            undo_state: None,
            delivered: 0,
            idle_restart: false,
            has_rtt: false,
            quantum: Memo::default(),
            params,
        }
    }

    /// The bandwidth in use (BBR2-1).
    #[inline]
    fn bw(&self) -> Rate {
        self.model.max_bw().min(self.bounds.bw_shortterm)
    }

    fn gains(&self) -> Gains {
        match &self.phase {
            Phase::Startup => self.params.startup,
            Phase::Drain(_) => self.params.drain,
            Phase::ProbeBw(Step::Down) => self.params.down,
            Phase::ProbeBw(Step::Cruise) => self.params.cruise,
            Phase::ProbeBw(Step::Refill) => self.params.refill,
            Phase::ProbeBw(Step::Up) => self.params.up,
            Phase::ProbeRtt(_) => self.params.probe_rtt,
        }
    }

    fn is_probing(&self) -> bool {
        matches!(self.phase, Phase::Startup | Phase::ProbeBw(Step::Refill | Step::Up))
    }

    /// The target for data in flight, limited by the window after congestion (`TargetInflight`).
    fn target(&self, window: &Window) -> u32 {
        self.model.bdp(self.bw(), Gain::ONE).min(window.cwnd)
    }

    /// Segments in flight plus the room for bursts of the end systems and for a probe of a small
    /// path (`QuantizationBudget`).
    fn quantise(&self, segments: u32, window: &Window) -> u32 {
        let rate = window.pacing_rate.unwrap_or(Rate::ZERO);
        let quantum = || self.params.pacing.quantum(rate, self.model.packet_bytes());
        let quantum = self.quantum.get(rate, quantum);
        let room = quantum.saturating_mul(self.params.offload_quanta);
        let up = matches!(self.phase, Phase::ProbeBw(Step::Up));
        let more = if up { self.params.up_segments } else { 0 };
        segments.max(room).max(self.params.min_cwnd).saturating_add(more)
    }

    fn inflight(&self, bw: Rate, gain: Gain, window: &Window) -> u32 {
        self.quantise(self.model.bdp(bw, gain), window)
    }

    fn start_down(&mut self, now: Time) {
        self.bounds.forget_round();
        self.cycle.start_down(now, self.rng.next_u64(), &self.params);
        self.model.start_round(self.delivered);
        self.phase = Phase::ProbeBw(Step::Down);
    }

    fn start_refill(&mut self) {
        self.bounds.forget_shortterm();
        self.cycle.start_refill();
        self.model.start_round(self.delivered);
        self.phase = Phase::ProbeBw(Step::Refill);
    }

    fn start_up(&mut self, now: Time, window: &Window, bw: Rate) {
        self.cycle.start_up(now, window.cwnd);
        self.model.start_round(self.delivered);
        self.restart_search(bw);
        self.phase = Phase::ProbeBw(Step::Up);
    }

    /// Restarts the search for a plateau above `bw`, if a plateau ends Up.
    fn restart_search(&mut self, bw: Rate) {
        if self.params.up_exit == UpExit::Plateau {
            self.model.full_pipe.restart(bw);
        }
    }

    /// Losses of a probe crossed the threshold at this volume in flight (`HandleInflightTooHigh`;
    /// BBR2-3, BBR3-6).
    fn on_too_high(&mut self, lost: &Lost, inflight: u32, window: &Window) {
        self.cycle.on_too_high();
        if !lost.app_limited {
            self.bounds.longterm = inflight.max(share(self.params.beta, self.target(window)));
        }
        if matches!(self.phase, Phase::ProbeBw(Step::Up)) {
            self.start_down(lost.now);
        }
    }

    /// Performs `UpdateCongestionSignals` and the steps before it, and updates aggregation and full pipe.
    /// Returns the delivery rate of a valid sample.
    fn update_model(&mut self, ack: &Ack, window: &Window) -> Option<Rate> {
        if !self.model.on_sample(ack) || ack.acked == 0 {
            self.bounds.on_nothing();
            return None;
        }
        if self.model.round_start {
            self.cycle.on_round();
        }
        let bw = self.model.delivery_rate(ack);
        let app_limited = self.model.is_app_limited(ack);
        self.bounds.on_sample(ack, bw);
        self.model.update_bw(bw, app_limited);
        self.bounds.on_round(self.is_probing(), self.model.max_bw(), window.cwnd, self.params.beta);
        let (in_use, bytes, full) =
            (self.bw(), self.model.packet_bytes(), self.model.full_pipe.has_been_full());
        let filter = if full { &self.params.aggregation } else { &self.params.startup_aggregation };
        self.model.aggregation.on_ack(ack, self.model.round_start, in_use, window.cwnd, bytes, filter);
        if self.model.round_start && !app_limited {
            let seen = match self.params.up_exit {
                UpExit::Plateau => bw,
                UpExit::Queue(_) => self.model.max_bw(),
            };
            let (growth, rounds) = (self.params.full_bw_growth, self.params.full_bw_rounds);
            self.model.full_pipe.on_round(seen, growth, rounds);
        }
        Some(bw)
    }

    /// Also ends Startup after a round of recovery with excessive losses in many places
    /// (`CheckStartupHighLoss`; BBR3-3).
    fn check_startup_losses(&mut self, ack: &Ack, window: &Window) {
        self.startup_losses = self.startup_losses.saturating_add(u32::from(ack.lost > 0));
        if !self.bounds.loss_round_start {
            return;
        }
        let enough = core::mem::take(&mut self.startup_losses) >= self.params.startup_losses;
        let high = is_too_high(ack.rate.lost, ack.rate.tx_in_flight, self.params.loss_threshold);
        if enough && high && ack.state == State::Recovery {
            let fits = self.inflight(self.model.max_bw(), Gain::ONE, window);
            self.bounds.on_full_startup(fits, self.params.startup_bound_delivered);
            self.model.full_pipe.reach();
        }
    }

    fn update_phase(&mut self, ack: &Ack, window: &mut Window, bw: Option<Rate>) {
        if !self.model.full_pipe.has_been_full() {
            self.check_startup_losses(ack, window);
        }
        if matches!(self.phase, Phase::Startup) && self.model.full_pipe.has_been_full() {
            self.phase = Phase::Drain(self.model.round);
            self.bounds.forget_round();
            // A low threshold keeps the transport from applying its slow-start rule to "limited by
            // the window".
            window.ssthresh = self.params.min_cwnd;
        }
        if let Phase::Drain(since) = self.phase {
            let long = self.params.drain_rounds.is_some_and(|most| self.model.round > since + most);
            if long || ack.in_flight <= self.inflight(self.bw(), Gain::ONE, window) {
                self.start_down(ack.now);
            }
        }
        if self.model.full_pipe.has_been_full()
            && let Some(bw) = bw
        {
            self.update_cycle(ack, window, bw);
        }
        self.update_min_rtt(ack, window);
    }

    /// `UpdateProbeBWCyclePhase`.
    fn update_cycle(&mut self, ack: &Ack, window: &Window, bw: Rate) {
        if self.follow_probe(ack, window) {
            return;
        }
        let Phase::ProbeBw(step) = self.phase else { return };
        match step {
            Step::Down | Step::Cruise => {
                if self.cycle.is_due(ack.now, || self.target(window), &self.params) {
                    self.start_refill();
                } else if step == Step::Down && self.has_drained(ack, window) {
                    self.phase = Phase::ProbeBw(Step::Cruise);
                }
            }
            Step::Refill => {
                if self.model.round_start {
                    self.start_up(ack.now, window, bw);
                }
            }
            Step::Up => {
                if self.is_time_to_go_down(ack, window, bw) {
                    // No loss yet.
                    self.cycle.too_high = false;
                    self.start_down(ack.now);
                }
            }
        }
    }

    /// `AdaptLongTermModel`. Returns true if it has changed the phase.
    fn follow_probe(&mut self, ack: &Ack, window: &Window) -> bool {
        let in_probe_bw = matches!(self.phase, Phase::ProbeBw(_));
        let feedback = self.cycle.follow(self.model.round_start);
        if in_probe_bw && feedback != Feedback::None {
            if !self.model.is_app_limited(ack) {
                self.model.advance_bw();
            }
            if feedback == Feedback::Safe {
                self.start_refill();
                return true;
            }
        }
        let too_high = is_too_high(ack.rate.lost, ack.rate.tx_in_flight, self.params.loss_threshold);
        if !too_high && self.bounds.longterm != UNBOUNDED {
            // This volume in flight was safe, whatever the state in which it was sent.
            self.bounds.longterm = self.bounds.longterm.max(ack.rate.tx_in_flight);
            if matches!(self.phase, Phase::ProbeBw(Step::Up)) {
                self.cycle.grow(ack, self.model.round_start, window.cwnd, &mut self.bounds);
            }
        }
        false
    }

    /// Whether Down is over: the queue is empty and there is headroom (`IsTimeToCruise`).
    fn has_drained(&self, ack: &Ack, window: &Window) -> bool {
        let room = self.bounds.with_headroom(self.params.headroom, self.params.min_cwnd);
        ack.in_flight <= room && ack.in_flight <= self.inflight(self.model.max_bw(), Gain::ONE, window)
    }

    /// Whether Up is over without loss (`IsTimeToGoDown`).
    fn is_time_to_go_down(&mut self, ack: &Ack, window: &Window, bw: Rate) -> bool {
        if self.cycle.detect_risk(ack.in_flight, &self.bounds) {
            return true;
        }
        match self.params.up_exit {
            UpExit::Queue(gain) => {
                // Includes the segment that is about to leave, as in v1.
                let in_flight = ack.prior_in_flight.saturating_add(1);
                self.cycle.has_lasted(ack.now, self.model.min_rtt)
                    && in_flight >= self.inflight(self.model.max_bw(), gain, window)
            }
            UpExit::Plateau => {
                if ack.cwnd_limited && window.cwnd >= self.bounds.longterm {
                    // The bound limits the bandwidth, so this is no plateau.
                    self.model.full_pipe.restart(bw);
                    return false;
                }
                self.model.full_pipe.is_full_now()
            }
        }
    }

    /// `UpdateMinRTT` and `CheckProbeRTT`.
    fn update_min_rtt(&mut self, ack: &Ack, window: &mut Window) {
        let expired = self.min_rtt.update(ack, &mut self.model, &self.params);
        let probing = matches!(self.phase, Phase::ProbeRtt(_));
        if expired && !self.idle_restart && !probing {
            // `true`: the state changes first, so the largest window stays saved.
            self.saved.save(window.cwnd, true);
            self.cycle.interrupt();
            self.model.start_round(ack.delivered);
            self.phase = Phase::ProbeRtt(ProbeRtt::default());
        }
        let few = if matches!(self.phase, Phase::ProbeRtt(_)) { self.probe_rtt_cwnd() } else { 0 };
        if let Phase::ProbeRtt(probe) = &mut self.phase
            && probe.on_ack(ack, &mut self.model, few, self.params.probe_rtt_stay)
        {
            self.leave_probe_rtt(ack.now, window);
        }
        if ack.rate.delivered > 0 {
            self.idle_restart = false;
        }
    }

    fn probe_rtt_cwnd(&self) -> u32 {
        self.model.bdp(self.bw(), self.params.probe_rtt.cwnd).max(self.params.min_cwnd)
    }

    fn leave_probe_rtt(&mut self, now: Time, window: &mut Window) {
        self.min_rtt.at = now;
        window.cwnd = window.cwnd.max(self.saved.cwnd());
        self.bounds.forget_shortterm();
        if self.model.full_pipe.has_been_full() {
            self.start_down(now);
            // The data in flight is already below the bandwidth-delay product.
            self.phase = Phase::ProbeBw(Step::Cruise);
        } else {
            self.phase = Phase::Startup;
        }
    }

    fn set_pacing_rate(&mut self, ack: &Ack, window: &mut Window) {
        let bytes = self.model.packet_bytes();
        if !self.has_rtt && ack.srtt > Span::ZERO {
            self.has_rtt = true;
            let (rtt, gain) = (Some(ack.srtt), self.params.startup.pacing);
            window.pacing_rate = Some(self.params.pacing.initial_rate(window.cwnd, rtt, gain, bytes));
        }
        let rate = self.params.pacing.rate(self.bw(), self.gains().pacing, bytes);
        if self.model.full_pipe.has_been_full() || window.pacing_rate.is_none_or(|current| rate > current) {
            window.pacing_rate = Some(rate);
        }
    }

    /// BBR3-8 (`SetCwnd`).
    fn set_cwnd(&mut self, ack: &Ack, window: &mut Window) {
        let bw = self.bw();
        if ack.acked > 0 {
            let bytes = self.model.packet_bytes();
            let extra = self.model.aggregation.cwnd(bw, bytes, &self.params.aggregation);
            let most = self.model.bdp(bw, self.gains().cwnd).saturating_add(extra);
            let most = self.quantise(most, window);
            let grown = window.cwnd.saturating_add(ack.acked);
            if self.model.full_pipe.has_been_full() {
                window.cwnd = grown.min(most);
            } else if window.cwnd < most || ack.delivered < u64::from(self.params.initial_cwnd) {
                window.cwnd = grown;
            }
            window.cwnd = window.cwnd.max(self.params.min_cwnd);
        }
        if matches!(self.phase, Phase::ProbeRtt(_)) {
            window.cwnd = window.cwnd.min(self.probe_rtt_cwnd());
        }
        window.cwnd = window.cwnd.min(self.cap()).max(1);
    }

    /// The volume cap of the state (see the table of states above BBR3-1).
    fn cap(&self) -> u32 {
        let longterm = match &self.phase {
            Phase::Startup => UNBOUNDED,
            Phase::ProbeRtt(_) | Phase::ProbeBw(Step::Cruise) => {
                self.bounds.with_headroom(self.params.headroom, self.params.min_cwnd)
            }
            Phase::Drain(_) | Phase::ProbeBw(_) => self.bounds.longterm,
        };
        longterm.min(self.bounds.shortterm).max(self.params.min_cwnd)
    }
}

fn new_model(now: Time, rtt: Option<Span>, packet_bytes: u32, params: &Params) -> Model {
    Model::with_filter(TwoPeriodMax::default(), now, rtt, packet_bytes, params.initial_cwnd)
}

impl Controller for Bounded {
    fn name(&self) -> &'static str {
        self.params.name
    }

    fn on_established(&mut self, connection: &Connection, window: &mut Window) {
        let bytes = connection.packet_bytes.max(1);
        self.model = new_model(connection.now, connection.rtt, bytes, &self.params);
        self.min_rtt = MinRtt::new(connection.now, connection.rtt);
        self.rng = Pcg32::seed_from_u64(connection.seed);
        self.has_rtt = connection.rtt.is_some();
        self.quantum = Memo::default();
        let gain = self.params.startup.pacing;
        let rate = self.params.pacing.initial_rate(window.cwnd, connection.rtt, gain, bytes);
        window.pacing_rate = Some(rate);
    }

    fn on_lost(&mut self, lost: &Lost, window: &Window) {
        // This round ends with data sent from now on, because the ACK that reports the loss is
        // counted before it.
        self.delivered = lost.delivered;
        let fresh = !core::mem::replace(&mut self.repairing, true);
        self.bounds.on_loss(lost.delivered, fresh);
        if fresh {
            self.undo_state = match &self.phase {
                Phase::Startup => Some(UndoState::Startup),
                Phase::ProbeBw(Step::Up) => Some(UndoState::Up),
                _ => None,
            };
        }
        if self.cycle.sampling
            && let Some(inflight) = crossing(lost, self.params.loss_threshold)
        {
            self.on_too_high(lost, inflight, window);
        }
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) {
        self.delivered = ack.delivered;
        let bw = self.update_model(ack, window);
        self.update_phase(ack, window, bw);
        if let Some(bw) = bw {
            self.bounds.on_sample_done(ack, bw);
        }
        self.saved.see(ack.state);
        self.repairing = self.saved.is_recovering();
        self.set_pacing_rate(ack, window);
        self.set_cwnd(ack, window);
    }

    fn on_congestion(&mut self, event: &Congestion, window: &mut Window) {
        self.saved.save(window.cwnd, matches!(self.phase, Phase::ProbeRtt(_)));
        match event.signal {
            Signal::Ecn => {
                // Neither an echo nor the reductions before it can be undone.
                self.bounds.forget_before();
                self.undo_state = None;
                if self.params.ce_is_loss {
                    self.bounds.on_loss(self.delivered, false);
                }
            }
            Signal::Timeout => {
                self.saved.on_timeout();
                self.model.full_pipe.restart(Rate::ZERO);
                if !self.is_probing() {
                    // The window is about to be cut to almost nothing, so bound the volume first.
                    self.bounds.bound_shortterm(self.saved.cwnd());
                }
            }
            _ => {}
        }
    }

    fn on_recovered(&mut self, _now: Time, window: &mut Window) {
        self.repairing = false;
        window.cwnd = window.cwnd.max(self.saved.cwnd());
    }

    fn on_undo(&mut self, now: Time, window: &mut Window) {
        window.cwnd = window.cwnd.max(self.saved.cwnd());
        self.repairing = false;
        self.bounds.undo();
        self.model.full_pipe.restart(Rate::ZERO);
        let Some(state) = self.undo_state.take().filter(|_| self.params.undo_returns) else { return };
        let in_probe_rtt = matches!(self.phase, Phase::ProbeRtt(_));
        match state {
            UndoState::Startup if !matches!(self.phase, Phase::Startup) => {
                self.model.full_pipe.unreach();
                if !in_probe_rtt {
                    self.phase = Phase::Startup;
                }
            }
            UndoState::Up if !in_probe_rtt && !matches!(self.phase, Phase::ProbeBw(Step::Up)) => {
                // There is no sample as a reference. The next one begins the search.
                self.start_up(now, window, Rate::ZERO);
            }
            _ => {}
        }
    }

    fn on_restart(&mut self, now: Time, _idle: Span, app_limited: bool, window: &mut Window) {
        let in_probe_rtt = matches!(self.phase, Phase::ProbeRtt(_));
        if !app_limited && !in_probe_rtt {
            return;
        }
        self.idle_restart = true;
        self.model.aggregation.restart(now);
        match &self.phase {
            Phase::ProbeBw(_) => {
                let bytes = self.model.packet_bytes();
                window.pacing_rate = Some(self.params.pacing.rate(self.bw(), Gain::ONE, bytes));
            }
            Phase::ProbeRtt(probe) if probe.is_over(now) => self.leave_probe_rtt(now, window),
            _ => {}
        }
    }

    fn recovery(&self) -> Recovery {
        Recovery::Controller
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        let bound = |segments| if segments == UNBOUNDED { f64::NAN } else { f64::from(segments) };
        let (phase, step) = match &self.phase {
            Phase::Startup => (0, f64::NAN),
            Phase::Drain(_) => (1, f64::NAN),
            Phase::ProbeBw(step) => (2, f64::from(*step as u8)),
            Phase::ProbeRtt(_) => (3, f64::NAN),
        };
        let min_rtt = self.model.min_rtt;
        trace("bw", self.bw().as_f64());
        trace("max_bw", self.model.max_bw().as_f64());
        trace("min_rtt", if min_rtt == Span::MAX { f64::NAN } else { min_rtt.as_secs_f64() });
        trace("pacing_gain", self.gains().pacing.as_f64());
        trace("cwnd_gain", self.gains().cwnd.as_f64());
        trace("phase", f64::from(phase));
        trace("step", step);
        trace("round", self.model.round as f64);
        trace("inflight_longterm", bound(self.bounds.longterm));
        trace("inflight_shortterm", bound(self.bounds.shortterm));
    }
}

#[cfg(test)]
mod tests;
