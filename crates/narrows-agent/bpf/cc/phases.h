/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The phases of BBR v1: Startup until the pipe is full (BBR-14), Drain, and the gain cycle of ProbeBW
 * (BBR-15, BBR-16).
 */
#ifndef NRW_PHASES_H
#define NRW_PHASES_H

/*
 * Enters the next phase of ProbeBW. Also sets the gain of this phase, which does not change until the phase
 * ends (GAIN-4).
 */
static __always_inline void nrw_advance(struct nrw_bbr *s, const struct tcp_sock *tp)
{
	s->cycle = (s->cycle + 1) & (NRW_CYCLE - 1);
	s->cycle_at = tp->delivered_mstamp;
	s->probe_is_short = nrw_variant == NRW_BBQ && s->cycle == 0 && nrw_has_standing_queue(s->queued_rounds);
	switch (s->cycle) {
	case 0:
		s->phase_gain = nrw_gain_up(nrw_variant, nrw_omega(s));
		s->probe_lost = 0;
		break;
	case 1:
		s->phase_gain = nrw_gain_down(nrw_variant, nrw_omega(s));
		if (nrw_has_gain_model() && nrw_down_needs_loss && !s->probe_lost)
			s->phase_gain = NRW_UNIT;
		break;
	default:
		s->phase_gain = NRW_UNIT;
	}
}

/*
 * Enters ProbeBW with a random phase, so that flows do not probe at the same time (BBR-15). The first
 * phase is never the draining phase.
 */
static __always_inline void nrw_enter_probe_bw(struct nrw_bbr *s, const struct tcp_sock *tp)
{
	__u64 random = bpf_get_prandom_u32();

	s->mode = NRW_PROBE_BW;
	s->cycle = NRW_CYCLE - 1 - ((random * (NRW_CYCLE - 1)) >> 32);
	nrw_advance(s, tp);
}

static __always_inline void nrw_leave_probe_rtt(struct nrw_bbr *s, const struct tcp_sock *tp)
{
	if (s->full_bw_reached)
		nrw_enter_probe_bw(s, tp);
	else
		s->mode = NRW_STARTUP;
}

/*
 * Returns whether the phase is over (BBR-16, GAIN-6). With nrw_exit_125 (GAIN-4), the probing phase ends at
 * 1.25 BDP in flight, at a loss, or after two propagation times. The time limit is needed, because the data
 * in flight never reaches 1.25 BDP if the gain is near 1.
 */
static __always_inline int nrw_phase_is_over(const struct nrw_bbr *s, const struct tcp_sock *tp,
					     const struct rate_sample *rs)
{
	int literal = nrw_has_gain_model() && nrw_exit_125 && s->cycle == 0;
	__u64 length = literal ? 2 * (__u64)s->min_rtt_us : nrw_phase_us(s->probe_is_short, s->min_rtt_us);
	int long_enough = nrw_since(tp->delivered_mstamp, s->cycle_at) > length;
	__u32 in_network, level;
	int full;

	/* a loss does not end a short probe early (BBQ-2) */
	if (s->pacing_gain == NRW_UNIT || s->probe_is_short)
		return long_enough;
	in_network = nrw_in_network(s, tp, rs->prior_in_flight);
	if (s->pacing_gain < NRW_UNIT)
		return long_enough || in_network <= nrw_inflight(s, tp, nrw_max_bw(s), NRW_UNIT);
	level = literal ? nrw_params.up.pacing : s->pacing_gain;
	/*
	 * A path with small buffers may never hold so many packets. A loss therefore also ends the probing
	 * phase.
	 */
	full = rs->losses || in_network >= nrw_inflight(s, tp, nrw_max_bw(s), level);
	return literal ? long_enough || full : long_enough && full;
}

static __always_inline void nrw_update_cycle(struct nrw_bbr *s, const struct tcp_sock *tp,
					     const struct rate_sample *rs)
{
	if (s->mode != NRW_PROBE_BW)
		return;
	if (s->cycle == 0 && rs->losses)
		s->probe_lost = 1;
	if (nrw_phase_is_over(s, tp, rs))
		nrw_advance(s, tp);
}

/* Detects that the pipe is full (BBR-14). */
static __always_inline void nrw_check_full_pipe(struct nrw_bbr *s, const struct rate_sample *rs)
{
	if (s->full_bw_reached || !s->round_start || nrw_app_limited(s, rs))
		return;
	if (nrw_max_bw(s) >= ((__u64)s->full_bw * nrw_params.full_bw_growth) >> NRW_UNIT_SHIFT) {
		s->full_bw = nrw_max_bw(s);
		s->full_bw_rounds = 0;
		return;
	}
	s->full_bw_reached = ++s->full_bw_rounds >= nrw_params.full_bw_rounds;
}

/* Moves from Startup to Drain if the pipe is full, and from Drain to ProbeBW if the queue is empty. */
static __always_inline void nrw_check_drain(struct nrw_bbr *s, struct tcp_sock *tp)
{
	__u32 fits = nrw_inflight(s, tp, nrw_max_bw(s), NRW_UNIT);

	if (s->mode == NRW_STARTUP && s->full_bw_reached) {
		s->mode = NRW_DRAIN;
		/* BBR itself does not use ssthresh. */
		tp->snd_ssthresh = fits;
	}
	if (s->mode == NRW_DRAIN && nrw_in_network(s, tp, nrw_in_flight(tp)) <= fits)
		nrw_enter_probe_bw(s, tp);
}

static __always_inline void nrw_update_gains(struct nrw_bbr *s)
{
	switch (s->mode) {
	case NRW_STARTUP:
		s->pacing_gain = nrw_params.startup.pacing;
		s->cwnd_gain = nrw_params.startup.cwnd;
		break;
	case NRW_DRAIN:
		/* The window keeps its gain, so that only pacing drains the queue. */
		s->pacing_gain = nrw_params.drain.pacing;
		s->cwnd_gain = nrw_params.drain.cwnd;
		break;
	case NRW_PROBE_BW:
		/* If a policer was detected, probes would only make it drop packets. */
		s->pacing_gain = s->lt_use_bw ? NRW_UNIT : s->phase_gain;
		s->cwnd_gain = nrw_params.cruise.cwnd;
		break;
	default:
		s->pacing_gain = nrw_params.probe_rtt.pacing;
		s->cwnd_gain = nrw_params.probe_rtt.cwnd;
	}
}

#endif
