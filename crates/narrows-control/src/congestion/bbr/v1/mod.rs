//! BBR version 1: paces at the measured bottleneck bandwidth and keeps two bandwidth-delay products in flight.
//!
//! Source: Cardwell et al., "BBR: Congestion-Based Congestion Control" (ACM Queue 14(5), 2016);
//! draft-cardwell-iccrg-bbr-congestion-control-00. The order of steps and the constants are those
//! of Linux `tcp_bbr.c`. [`phase`] and [`probe_bw`] contain the phases, and this file computes rate
//! and window.
//!
//! Deviations from Linux: Bandwidth and pacing count L3 bytes. Linux counts payload. This transport paces every packet,
//! so it needs no estimate of the earliest departure time (see `probe_bw`). In this file, only gains are fixed-point
//! numbers.

pub mod params;
pub mod phase;
pub mod policer;
pub mod probe_bw;
pub mod view;

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

use self::params::Params;
use self::phase::Phase;
use self::policer::{Observation, Policer};
use self::probe_bw::{ConstantGains, GainCycle, ProbeBw};
use self::view::{View, is_drained, quantise};
use super::gain::Gain;
use super::memo::Memo;
use super::model::Model;
use super::probe_rtt::ProbeRtt;
use super::recovery::SavedWindow;
use crate::congestion::{
    Ack, Congestion, Connection, Controller, INFINITE_SSTHRESH, Recovery, Signal, Window,
};
use crate::parameter::{Parameters, Values};
use crate::units::{Rate, Span, Time};

/// The BBR controller.
pub struct Bbr {
    params: Params,
    cycle: Box<dyn GainCycle>,
    model: Model,
    policer: Policer,
    phase: Phase,
    saved: SavedWindow,
    rng: Pcg32,
    /// The policer detector's view of the last ACK.
    seen: Observation,
    /// Whether the sender has restarted from idle and no delivery has been reported since then.
    idle_restart: bool,
    /// Whether the pacing rate is based on a measured RTT.
    has_rtt: bool,
    /// Cache of the send quantum for a pacing rate.
    quantum: Memo<Rate, u32>,
}

impl Default for Bbr {
    fn default() -> Self {
        Bbr::with_cycle(ConstantGains::default())
    }
}

impl Bbr {
    /// Returns BBR v1 with another cycle of ProbeBW gains.
    pub fn with_cycle(cycle: impl GainCycle + 'static) -> Self {
        Bbr::new(Params::default(), Box::new(cycle))
    }

    /// Returns BBR with the given parameters of the catalogue and this cycle of gains.
    pub fn from_values(values: &Values, cycle: impl GainCycle + 'static) -> Self {
        let defaults = Params::default();
        let params = Params {
            aggregation: defaults.aggregation.clone().with("aggregation_", values),
            pacing: defaults.pacing.clone().with("pacing_", values),
            policer: defaults.policer.clone().with("policer_", values),
            ..defaults.with("", values)
        };
        Bbr::new(params, Box::new(cycle))
    }

    /// Returns BBR with these parameters and this cycle of gains.
    pub fn new(params: Params, cycle: Box<dyn GainCycle>) -> Self {
        Bbr {
            model: Model::new(Time::ZERO, None, 1500, params.initial_cwnd),
            policer: Policer::new(params.policer.clone(), 1500),
            cycle,
            phase: Phase::Startup,
            saved: SavedWindow::default(),
            rng: Pcg32::seed_from_u64(0),
            seen: Observation::default(),
            idle_restart: false,
            has_rtt: false,
            quantum: Memo::default(),
            params,
        }
    }

    /// Returns the bandwidth in use: the policed rate, or the measured maximum if no policed rate is in use.
    fn bw(&self) -> Rate {
        self.policer.policed_rate().unwrap_or(self.model.max_bw())
    }

    fn is_policed(&self) -> bool {
        self.policer.policed_rate().is_some()
    }

    fn pacing_rate(&self, bw: Rate, gain: Gain) -> Rate {
        self.params.pacing.rate(bw, gain, self.model.packet_bytes())
    }

    /// Returns the first pacing rate: Startup's gain times one window per RTT (BBR-18).
    fn initial_pacing_rate(&self, cwnd: u32, rtt: Option<Span>) -> Rate {
        let bytes = self.model.packet_bytes();
        self.params.pacing.initial_rate(cwnd, rtt, self.params.high_gain, bytes)
    }

    fn set_pacing_rate(&mut self, ack: &Ack, window: &mut Window) {
        if !self.has_rtt && ack.srtt > Span::ZERO {
            self.has_rtt = true;
            window.pacing_rate = Some(self.initial_pacing_rate(window.cwnd, Some(ack.srtt)));
        }
        let rate = self.pacing_rate(self.bw(), self.phase.pacing_gain(&self.params, self.is_policed()));
        // Before the pipe is full, a low estimate only shows that too little data was sent.
        if self.model.full_pipe.has_been_full() || window.pacing_rate.is_none_or(|current| rate > current) {
            window.pacing_rate = Some(rate);
        }
    }

    /// Returns the number of segments in one send quantum.
    fn quantum(&self, window: &Window) -> u32 {
        let rate = window.pacing_rate.unwrap_or(Rate::ZERO);
        self.quantum.get(rate, || self.params.pacing.quantum(rate, self.model.packet_bytes()))
    }

    fn enter_probe_bw(&mut self, now: Time) {
        self.phase = Phase::ProbeBw(ProbeBw::enter(now, self.cycle.as_mut(), self.rng.next_u32()));
    }

    fn leave_probe_rtt(&mut self, now: Time, window: &mut Window) {
        self.model.min_rtt_at = now;
        window.cwnd = window.cwnd.max(self.saved.cwnd());
        if self.model.full_pipe.has_been_full() {
            self.enter_probe_bw(now);
        } else {
            self.phase = Phase::Startup;
        }
    }

    fn observation(&self, ack: &Ack) -> Observation {
        Observation {
            now: ack.now,
            delivered: ack.delivered,
            total_lost: ack.total_lost,
            losses: ack.lost > 0,
            app_limited: self.model.is_app_limited(ack),
            round_start: self.model.round_start,
            probing_bw: matches!(self.phase, Phase::ProbeBw(_)),
        }
    }

    /// Updates bandwidth, rounds, policer, aggregation and full pipe (Linux `bbr_update_bw` to
    /// `bbr_check_full_bw_reached`).
    fn update_model(&mut self, ack: &Ack, window: &Window) {
        if !self.model.on_sample(ack) {
            return;
        }
        if self.model.round_start {
            self.saved.on_round_start();
        }
        self.seen = self.observation(ack);
        if self.policer.on_ack(&self.seen) {
            self.enter_probe_bw(ack.now);
        }
        self.model.update_bw(ack, self.params.bw_rounds);
        let (bw, bytes) = (self.bw(), self.model.packet_bytes());
        let round_start = self.model.round_start;
        self.model.aggregation.on_ack(ack, round_start, bw, window.cwnd, bytes, &self.params.aggregation);
        if self.model.round_start && !self.model.is_app_limited(ack) {
            let max_bw = self.model.max_bw();
            self.model.full_pipe.on_round(max_bw, self.params.full_bw_growth, self.params.full_bw_rounds);
        }
    }

    /// Changes the phase if necessary, in the order of Linux's `bbr_update_model`.
    fn update_phase(&mut self, ack: &Ack, window: &mut Window) {
        let view = View {
            ack,
            model: &self.model,
            params: &self.params,
            quantum: self.quantum(window),
            policed: self.is_policed(),
        };
        if let Phase::ProbeBw(probe) = &mut self.phase {
            probe.on_ack(&view, self.cycle.as_mut());
        }
        if matches!(self.phase, Phase::Startup) && self.model.full_pipe.has_been_full() {
            self.phase = Phase::Drain;
            window.ssthresh = view.inflight(self.model.max_bw(), Gain::ONE, false);
        }
        if matches!(self.phase, Phase::Drain) && is_drained(&view) {
            self.enter_probe_bw(ack.now);
        }
        self.update_min_rtt(ack, window);
    }

    /// Updates the propagation time, and enters and leaves ProbeRTT (BBR-11, BBR-17).
    fn update_min_rtt(&mut self, ack: &Ack, window: &mut Window) {
        let expired = self.model.update_min_rtt(ack, self.params.min_rtt_window);
        let probing = matches!(self.phase, Phase::ProbeRtt(_));
        if expired && !self.idle_restart && !probing {
            // In Linux, the mode changes before the window is saved. For the same result, `true` keeps the larger of
            // the saved window and the present window. The target limits the restored window.
            self.saved.save(window.cwnd, true);
            self.phase = Phase::ProbeRtt(ProbeRtt::default());
        }
        if let Phase::ProbeRtt(probe) = &mut self.phase
            && probe.on_ack(ack, &mut self.model, self.params.min_cwnd, self.params.probe_rtt)
        {
            self.leave_probe_rtt(ack.now, window);
        }
        if ack.rate.delivered > 0 {
            self.idle_restart = false;
        }
    }

    /// Sets the window (BBR-19, BBR-21).
    fn set_cwnd(&mut self, ack: &Ack, window: &mut Window) {
        if ack.acked > 0 {
            window.cwnd = self.cwnd_after(ack, window);
        }
        if matches!(self.phase, Phase::ProbeRtt(_)) {
            window.cwnd = window.cwnd.min(self.params.min_cwnd);
        }
        window.cwnd = window.cwnd.max(1);
    }

    fn cwnd_after(&mut self, ack: &Ack, window: &Window) -> u32 {
        let mut new_round = false;
        let (cwnd, decided) = self.saved.on_ack(ack, window.cwnd, &mut new_round);
        if new_round {
            self.model.start_round(ack.delivered);
        }
        if decided {
            return cwnd;
        }
        let full = self.model.full_pipe.has_been_full();
        let (bw, bytes) = (self.bw(), self.model.packet_bytes());
        let mut target = self.model.bdp(bw, self.phase.cwnd_gain(&self.params));
        if full {
            target = target.saturating_add(self.model.aggregation.cwnd(bw, bytes, &self.params.aggregation));
        }
        let target = quantise(target, self.quantum(window), self.phase.is_probing_up(), &self.params);
        let grown = cwnd.saturating_add(ack.acked);
        let cwnd = if full {
            grown.min(target)
        } else if cwnd < target || ack.delivered < u64::from(self.params.initial_cwnd) {
            grown
        } else {
            cwnd
        };
        cwnd.max(self.params.min_cwnd)
    }
}

impl Controller for Bbr {
    fn name(&self) -> &'static str {
        self.cycle.name()
    }

    fn on_established(&mut self, connection: &Connection, window: &mut Window) {
        let bytes = connection.packet_bytes.max(1);
        self.model = Model::new(connection.now, connection.rtt, bytes, self.params.initial_cwnd);
        self.policer = Policer::new(self.params.policer.clone(), bytes);
        self.rng = Pcg32::seed_from_u64(connection.seed);
        self.has_rtt = connection.rtt.is_some();
        self.quantum = Memo::default();
        window.ssthresh = INFINITE_SSTHRESH;
        window.pacing_rate = Some(self.initial_pacing_rate(window.cwnd, connection.rtt));
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) {
        self.update_model(ack, window);
        self.cycle.on_ack(ack, &self.model);
        self.update_phase(ack, window);
        self.set_pacing_rate(ack, window);
        self.set_cwnd(ack, window);
    }

    fn on_congestion(&mut self, event: &Congestion, window: &mut Window) {
        self.saved.save(window.cwnd, matches!(self.phase, Phase::ProbeRtt(_)));
        if event.signal == Signal::Timeout {
            self.saved.on_timeout();
            self.model.full_pipe.on_timeout();
            // For the policer detector, a timeout ends a round with a loss. The detector gets the number of losses with
            // the next ACK. Linux knows the number already at the timeout.
            let seen =
                Observation { losses: true, app_limited: false, round_start: true, ..self.seen.clone() };
            if self.policer.on_ack(&seen) {
                self.enter_probe_bw(event.now);
            }
        }
    }

    fn on_undo(&mut self, _now: Time, _window: &mut Window) {
        self.model.full_pipe.on_undo();
        self.policer.reset();
    }

    fn on_restart(&mut self, now: Time, _idle: Span, app_limited: bool, window: &mut Window) {
        let in_probe_rtt = matches!(self.phase, Phase::ProbeRtt(_));
        if !app_limited && !in_probe_rtt {
            return;
        }
        self.idle_restart = true;
        self.model.aggregation.restart(now);
        match &self.phase {
            // BBR-23: the gain is 1, because a probe is useless while the pipe is empty.
            Phase::ProbeBw(_) => window.pacing_rate = Some(self.pacing_rate(self.bw(), Gain::ONE)),
            Phase::ProbeRtt(probe) if probe.is_over(now) => self.leave_probe_rtt(now, window),
            _ => {}
        }
    }

    fn recovery(&self) -> Recovery {
        Recovery::Controller
    }

    fn trace(&self, trace: &mut dyn FnMut(&'static str, f64)) {
        trace("bw", self.bw().as_f64());
        let min_rtt = self.model.min_rtt;
        trace("min_rtt", if min_rtt == Span::MAX { f64::NAN } else { min_rtt.as_secs_f64() });
        trace("pacing_gain", self.phase.pacing_gain(&self.params, self.is_policed()).as_f64());
        trace("cwnd_gain", self.phase.cwnd_gain(&self.params).as_f64());
        trace("phase", f64::from(self.phase.number()));
        trace("round", self.model.round as f64);
        trace("policed", f64::from(u8::from(self.is_policed())));
        self.cycle.trace(trace);
    }
}

#[cfg(test)]
pub(super) mod tests;
