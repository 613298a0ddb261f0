//! Converts the parameters of the simulator's implementations into parameters of the eBPF programs.

use narrows_control::congestion::bbr::bounded::params::{Gains, Params as Bounded, UpExit};
use narrows_control::congestion::bbr::gain::Gain;
use narrows_control::congestion::bbr::v1::params::Params as V1;
use narrows_control::congestion::bbr::v1::probe_bw::ConstantGains;
use narrows_control::congestion::bbr::{aggregation, bbq, pacing, v2, v3};
use narrows_control::units::Span;

use super::Variant;
use super::load::skeleton::types::{nrw_gain_pair, nrw_params};

/// Returns the parameters of a variant: the defaults of the simulator's implementation.
pub fn params(variant: Variant) -> nrw_params {
    match variant {
        Variant::V2 => bounded(&v2::params()),
        Variant::V3 => bounded(&v3::params()),
        _ => v1(&V1::default(), ConstantGains::default(), &bbq::Params::default()),
    }
}

/// Returns the parameters of BBR v1 and of its variants. Sets the parameters that exist only in v2 and v3 to zero.
fn v1(params: &V1, gains: ConstantGains, bbq: &bbq::Params) -> nrw_params {
    let V1 { high_gain, drain_gain, cwnd_gain, policer, .. } = params;
    let pair = |pacing: Gain, cwnd: Gain| nrw_gain_pair { pacing: units(pacing), cwnd: units(cwnd) };
    let (growth, rounds) = (params.full_bw_growth, params.full_bw_rounds);
    nrw_params {
        startup: pair(*high_gain, *high_gain),
        drain: pair(*drain_gain, *high_gain),
        up: pair(gains.up_gain, *cwnd_gain),
        down: pair(gains.down_gain, *cwnd_gain),
        cruise: pair(Gain::ONE, *cwnd_gain),
        probe_rtt: pair(Gain::ONE, Gain::ONE),
        min_rtt_window_us: micros(params.min_rtt_window),
        probe_rtt_us: micros(params.probe_rtt),
        min_cwnd: params.min_cwnd,
        initial_cwnd: params.initial_cwnd,
        probe_segments: params.probe_segments,
        full_bw_growth: units(growth),
        full_bw_rounds: rounds,
        bw_rounds: narrow(params.bw_rounds),
        policer_rounds: policer.min_rounds,
        policer_loss: units(policer.loss_threshold),
        policer_ratio: units(policer.ratio),
        policer_difference: narrow(policer.difference.as_bytes_per_sec()),
        policer_use_rounds: policer.max_rounds,
        bbq_longest_probe_us: narrow(micros(bbq.longest_probe)),
        bbq_queue_us: narrow(micros(bbq.queue)),
        bbq_queue_share: narrow(bbq.queue_share),
        bbq_rounds: bbq.rounds,
        ..common(&params.aggregation, &params.aggregation, &params.pacing)
    }
}

/// Returns the parameters of BBR v2 or v3. Sets the parameters that exist only in v1 and its variants to zero.
fn bounded(params: &Bounded) -> nrw_params {
    let pair = |gains: Gains| nrw_gain_pair { pacing: units(gains.pacing), cwnd: units(gains.cwnd) };
    nrw_params {
        startup: pair(params.startup),
        drain: pair(params.drain),
        up: pair(params.up),
        down: pair(params.down),
        cruise: pair(params.cruise),
        refill: pair(params.refill),
        probe_rtt: pair(params.probe_rtt),
        min_rtt_window_us: micros(params.min_rtt_window),
        probe_rtt_us: micros(params.probe_rtt_stay),
        min_cwnd: params.min_cwnd,
        initial_cwnd: params.initial_cwnd,
        probe_segments: params.up_segments,
        full_bw_growth: units(params.full_bw_growth),
        full_bw_rounds: params.full_bw_rounds,
        probe_rtt_interval_us: micros(params.probe_rtt_interval),
        probe_wait_us: micros(params.probe_wait),
        probe_wait_random_us: micros(params.probe_wait_random),
        probe_rounds: params.probe_rounds,
        probe_rounds_random: params.probe_rounds_random,
        drain_rounds: params.drain_rounds.map_or(0, narrow),
        loss_percent: params.loss_threshold.0,
        beta_percent: params.beta.0,
        headroom_percent: params.headroom.0,
        startup_losses: params.startup_losses,
        offload_quanta: params.offload_quanta,
        up_queue: match params.up_exit {
            UpExit::Queue(gain) => units(gain),
            UpExit::Plateau => 0,
        },
        startup_bound_delivered: u32::from(params.startup_bound_delivered),
        undo_returns: u32::from(params.undo_returns),
        ce_is_loss: u32::from(params.ce_is_loss),
        equal_rtt_renews: u32::from(params.equal_rtt_renews),
        ..common(&params.aggregation, &params.startup_aggregation, &params.pacing)
    }
}

/// Returns the parameters that all algorithms share. The kernel determines the size of bursts.
fn common(
    aggregation: &aggregation::Params,
    in_startup: &aggregation::Params,
    pacing: &pacing::Params,
) -> nrw_params {
    nrw_params {
        extra_us: micros(aggregation.max),
        extra_rounds: aggregation.rounds,
        extra_rounds_startup: in_startup.rounds,
        extra_epoch_packets: narrow(aggregation.epoch_limit),
        margin_percent: pacing.margin_percent,
        nominal_rtt_us: narrow(micros(pacing.nominal_rtt)),
        ..nrw_params::default()
    }
}

fn micros(span: Span) -> u64 {
    span.as_nanos() / 1000
}

/// Converts a gain to units of 1/256.
fn units(gain: Gain) -> u32 {
    (gain.as_f64() * 256.0) as u32
}

fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
