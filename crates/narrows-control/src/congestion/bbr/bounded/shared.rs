//! The state that outlives a phase: the model of the path, the bounds, the history of probing and
//! the saved window. Phases read and change it.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

use super::bounds::{Bounds, UNBOUNDED, is_too_high};
use super::cycle::Cycle;
use super::min_rtt::MinRtt;
use super::params::{Params, UpExit};
use crate::congestion::bbr::gain::Gain;
use crate::congestion::bbr::memo::Memo;
use crate::congestion::bbr::model;
use crate::congestion::bbr::recovery::SavedWindow;
use crate::congestion::filter::TwoPeriodMax;
use crate::congestion::{Ack, Connection, Window};
use crate::units::{Rate, Time};

type Model = model::Model<TwoPeriodMax<Rate>>;

/// The state that all phases share.
pub(super) struct Shared {
    pub(super) params: Params,
    pub(super) model: Model,
    pub(super) bounds: Bounds,
    pub(super) cycle: Cycle,
    pub(super) min_rtt: MinRtt,
    pub(super) saved: SavedWindow,
    rng: Pcg32,
    /// Number of ACKs that reported losses in the present round of Startup. The count continues if ProbeRTT interrupts
    /// Startup.
    pub(super) startup_losses: u32,
    /// Number of segments that had been delivered on the connection at the last ACK.
    pub(super) delivered: u64,
    /// Whether the sender has restarted from idle and no delivery has been reported since then.
    pub(super) idle_restart: bool,
    /// Cache of the send quantum for a pacing rate.
    quantum: Memo<Rate, u32>,
}

impl Shared {
    /// Returns the state before the handshake.
    pub(super) fn new(params: Params) -> Self {
        Shared {
            model: Model::with_filter(TwoPeriodMax::default(), Time::ZERO, None, 1500, params.initial_cwnd),
            bounds: Bounds::default(),
            cycle: Cycle::default(),
            min_rtt: MinRtt::new(Time::ZERO, None),
            saved: SavedWindow::default(),
            rng: Pcg32::seed_from_u64(0),
            startup_losses: 0,
            delivered: 0,
            idle_restart: false,
            quantum: Memo::default(),
            params,
        }
    }

    /// Called when the handshake is complete.
    pub(super) fn on_established(&mut self, connection: &Connection) {
        let bytes = connection.packet_bytes.max(1);
        let initial_cwnd = self.params.initial_cwnd;
        let (now, rtt) = (connection.now, connection.rtt);
        self.model = Model::with_filter(TwoPeriodMax::default(), now, rtt, bytes, initial_cwnd);
        self.min_rtt = MinRtt::new(now, rtt);
        self.rng = Pcg32::seed_from_u64(connection.seed);
        self.quantum = Memo::default();
    }

    /// Returns the bandwidth in use (BBR2-1).
    #[inline]
    pub(super) fn bw(&self) -> Rate {
        self.model.max_bw().min(self.bounds.bw_shortterm)
    }

    /// Returns whether Startup has found the bandwidth.
    #[inline]
    pub(super) fn has_been_full(&self) -> bool {
        self.model.full_pipe.has_been_full()
    }

    /// Returns the target for data in flight (`TargetInflight`): one bandwidth-delay product, but at most the window.
    pub(super) fn target(&self, window: &Window) -> u32 {
        self.model.bdp(self.bw(), Gain::ONE).min(window.cwnd)
    }

    /// Returns the given number of segments, but at least `min_cwnd` and at least the room for bursts of the end
    /// systems (`QuantizationBudget`).
    pub(super) fn quantise(&self, segments: u32, window: &Window) -> u32 {
        let rate = window.pacing_rate.unwrap_or(Rate::ZERO);
        let quantum = || self.params.pacing.quantum(rate, self.model.packet_bytes());
        let quantum = self.quantum.get(rate, quantum);
        let room = quantum.saturating_mul(self.params.offload_quanta);
        segments.max(room).max(self.params.min_cwnd)
    }

    /// Returns `gain` bandwidth-delay products of this bandwidth in segments, but at least `min_cwnd` and at least the
    /// room for bursts.
    pub(super) fn inflight(&self, bw: Rate, gain: Gain, window: &Window) -> u32 {
        self.quantise(self.model.bdp(bw, gain), window)
    }

    /// Returns the window of ProbeRTT.
    pub(super) fn probe_rtt_cwnd(&self) -> u32 {
        self.model.bdp(self.bw(), self.params.probe_rtt.cwnd).max(self.params.min_cwnd)
    }

    /// Returns the long-term bound minus the share that is left to other flows.
    pub(super) fn with_headroom(&self) -> u32 {
        self.bounds.with_headroom(self.params.headroom, self.params.min_cwnd)
    }

    /// Begins a cycle of ProbeBW. The time from the start of the cycle to its probe is random.
    pub(super) fn start_cycle(&mut self, now: Time) {
        self.bounds.forget_round();
        self.cycle.start_down(now, self.rng.next_u64(), &self.params);
        self.model.start_round(self.delivered);
    }

    /// Restarts the search for a plateau above `bw`. Does nothing unless `up_exit` is [`UpExit::Plateau`].
    pub(super) fn restart_search(&mut self, bw: Rate) {
        if self.params.up_exit == UpExit::Plateau {
            self.model.full_pipe.restart(bw);
        }
    }

    /// Called in every phase after Startup. Raises the long-term bound to a volume in flight that was safe (second half
    /// of `AdaptLongTermModel`). Returns true if the long-term bound exists and the sample shows no excessive loss.
    #[inline]
    pub(super) fn raise_longterm(&mut self, ack: &Ack) -> bool {
        let too_high = is_too_high(ack.rate.lost, ack.rate.tx_in_flight, self.params.loss_threshold);
        let is_safe = !too_high && self.bounds.longterm != UNBOUNDED;
        if is_safe {
            self.bounds.longterm = self.bounds.longterm.max(ack.rate.tx_in_flight);
        }
        is_safe
    }
}
