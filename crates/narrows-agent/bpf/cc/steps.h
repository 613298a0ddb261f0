/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state machine of BBR v2 and v3: Startup, Drain, ProbeBW (Down, Cruise, Refill and Up) and ProbeRTT
 * (BBR3-3 to BBR3-6, BBR3-9).
 */
#ifndef NRW_STEPS_H
#define NRW_STEPS_H

/* The data about one ACK that the state machine needs. */
struct nrw_view {
	__u32 bw;		/* delivery rate of the sample */
	__u32 tx_in_flight;	/* packets in flight just after the sampled packet was sent */
	__u32 lost;		/* packets lost since the sampled packet was sent */
	int app_limited;
};

static __always_inline void nrw_enter_step(struct nrw_bbr *s, __u8 step)
{
	s->mode = NRW_PROBE_BW;
	s->cycle = step;
}

static __always_inline void nrw_enter_down(struct nrw_bbr *s, struct nrw_bounded *b, const struct tcp_sock *tp)
{
	nrw_start_cycle(s, b, tp);
	nrw_enter_step(s, NRW_STEP_DOWN);
}

static __always_inline void nrw_enter_refill(struct nrw_bbr *s, struct nrw_bounded *b, const struct tcp_sock *tp)
{
	nrw_forget_lo(s, b);
	b->acks = NRW_ACKS_REFILLING;
	b->up_rounds = 0;
	b->up_acked = 0;
	b->was_cautious = 0;
	nrw_start_round(s, tp);
	nrw_enter_step(s, NRW_STEP_REFILL);
}

/* Restarts the search for a full pipe, with `bw` as the reference rate (BBR3-2). */
static __always_inline void nrw_restart_search(struct nrw_bbr *s, struct nrw_bounded *b, __u32 bw)
{
	s->full_bw = bw;
	s->full_bw_rounds = 0;
	b->full_now = 0;
}

/* Begins a probe for a rate above `bw`. From now on, losses are attributed to the probe. */
static __always_inline void nrw_enter_up(struct nrw_bbr *s, struct nrw_bounded *b, const struct tcp_sock *tp,
					 __u32 bw)
{
	b->acks = NRW_ACKS_STARTING;
	b->is_sampling = 1;
	nrw_raise_slope(b, tp->snd_cwnd);
	nrw_start_round(s, tp);
	if (!nrw_params.up_queue)
		nrw_restart_search(s, b, bw);
	b->up_at = tp->tcp_mstamp;
	nrw_enter_step(s, NRW_STEP_UP);
}

/* Looks for a full pipe at the end of a round (BBR-14, BBR3-2). */
static __always_inline void nrw_search_full_pipe(struct nrw_bbr *s, struct nrw_bounded *b,
						 const struct nrw_view *view)
{
	/* v2 uses the maximum bandwidth here, like v1. */
	__u32 seen = nrw_params.up_queue ? nrw_max_bw(s) : view->bw;

	if (b->full_now || !s->round_start || view->app_limited)
		return;
	if (seen >= ((__u64)s->full_bw * nrw_params.full_bw_growth) >> NRW_UNIT_SHIFT) {
		s->full_bw = seen;
		s->full_bw_rounds = 0;
		return;
	}
	b->full_now = ++s->full_bw_rounds >= nrw_params.full_bw_rounds;
	s->full_bw_reached |= b->full_now;
}

/*
 * Ends Startup after a round of loss recovery, if losses were excessive and many ACKs of the round reported
 * losses (BBR3-3).
 */
static __always_inline void nrw_check_startup_losses(struct nrw_bbr *s, struct nrw_bounded *b,
						     const struct tcp_sock *tp, const struct nrw_view *view,
						     __u32 newly_lost)
{
	__u32 fits;
	int enough;

	b->startup_losses += newly_lost > 0;
	if (!b->loss_round_start)
		return;
	enough = b->startup_losses >= nrw_params.startup_losses;
	b->startup_losses = 0;
	if (!enough || !nrw_is_too_high(view->lost, view->tx_in_flight) || nrw_ca_state(tp) != NRW_CA_RECOVERY)
		return;
	fits = nrw_bounded_inflight(s, tp, nrw_max_bw(s), NRW_UNIT);
	b->now.inflight_hi = nrw_params.startup_bound_delivered ? nrw_max(fits, b->inflight_latest) : fits;
	s->full_bw_reached = 1;
}

/* Moves from Startup to Drain, and from Drain to Down. Both moves may happen at one ACK. */
static __always_inline void nrw_leave_startup(struct nrw_bbr *s, struct nrw_bounded *b, struct tcp_sock *tp)
{
	if (s->mode == NRW_STARTUP && s->full_bw_reached) {
		nrw_forget_round(b);
		/* A low ssthresh disables the slow-start rule of nrw_is_cwnd_limited(). */
		tp->snd_ssthresh = nrw_params.min_cwnd;
		s->mode = NRW_DRAIN;
		b->drain_round = s->round;
	}
	if (s->mode != NRW_DRAIN)
		return;
	if ((nrw_params.drain_rounds && s->round - b->drain_round > nrw_params.drain_rounds) ||
	    nrw_in_flight(tp) <= nrw_bounded_inflight(s, tp, nrw_bw(s), NRW_UNIT))
		nrw_enter_down(s, b, tp);
}

/* Returns whether Up is over for a reason other than excessive loss (BBR3-6). */
static __always_inline int nrw_up_is_over(struct nrw_bbr *s, struct nrw_bounded *b, const struct tcp_sock *tp,
					  const struct rate_sample *rs, const struct nrw_view *view)
{
	if (b->was_too_high && nrw_in_flight(tp) >= b->now.inflight_hi) {
		b->was_cautious = 1;
		return 1;
	}
	if (nrw_params.up_queue)
		/* As in v1, add one for the packet that is about to leave. */
		return nrw_since(tp->tcp_mstamp, b->up_at) > s->min_rtt_us &&
		       rs->prior_in_flight + 1 >=
			       nrw_bounded_inflight(s, tp, nrw_max_bw(s), nrw_params.up_queue) +
				       nrw_params.probe_segments;
	if (nrw_is_cwnd_limited(tp) && tp->snd_cwnd >= b->now.inflight_hi) {
		/* inflight_hi limits the rate, so a rate that does not grow is no sign of a full pipe. */
		nrw_restart_search(s, b, view->bw);
		return 0;
	}
	return b->full_now;
}

/* Handles a valid sample after Startup. */
static __always_inline void nrw_update_step(struct nrw_bbr *s, struct nrw_bounded *b, const struct tcp_sock *tp,
					    const struct rate_sample *rs, const struct nrw_view *view)
{
	int in_probe_bw = s->mode == NRW_PROBE_BW;
	int followed = nrw_follow_probe(s, b);
	__u32 in_flight = nrw_in_flight(tp);
	int is_safe;

	if (in_probe_bw && followed && !view->app_limited)
		nrw_advance_bw(s, b);
	if (in_probe_bw && followed == 2) {
		nrw_enter_refill(s, b, tp);
		return;
	}
	is_safe = nrw_raise_hi(b, view->lost, view->tx_in_flight);
	if (!in_probe_bw)
		return;
	switch (s->cycle) {
	case NRW_STEP_UP:
		if (is_safe)
			nrw_grow_hi(s, b, tp, rs->acked_sacked);
		if (nrw_up_is_over(s, b, tp, rs, view)) {
			b->was_too_high = 0;
			nrw_enter_down(s, b, tp);
		}
		break;
	case NRW_STEP_REFILL:
		if (s->round_start)
			nrw_enter_up(s, b, tp, view->bw);
		break;
	default:
		if (nrw_probe_is_due(s, b, tp))
			nrw_enter_refill(s, b, tp);
		else if (s->cycle == NRW_STEP_DOWN && in_flight <= nrw_with_headroom(b) &&
			 in_flight <= nrw_bounded_inflight(s, tp, nrw_max_bw(s), NRW_UNIT))
			nrw_enter_step(s, NRW_STEP_CRUISE);
	}
}

/* Returns the window of ProbeRTT. */
static __always_inline __u32 nrw_probe_rtt_cwnd(const struct nrw_bbr *s)
{
	return nrw_max(nrw_bdp(s, nrw_bw(s), nrw_params.probe_rtt.cwnd), nrw_params.min_cwnd);
}

static __always_inline void nrw_bounded_end_probe_rtt(struct nrw_bbr *s, struct nrw_bounded *b, struct tcp_sock *tp)
{
	b->recent_rtt_at = tp->tcp_mstamp;
	tp->snd_cwnd = nrw_max(tp->snd_cwnd, s->prior_cwnd);
	nrw_forget_lo(s, b);
	if (!s->full_bw_reached) {
		s->mode = NRW_STARTUP;
		return;
	}
	/* Skip Down, because the data in flight is already below the BDP. */
	nrw_start_cycle(s, b, tp);
	nrw_enter_step(s, NRW_STEP_CRUISE);
}

/* Updates two minimum RTTs, each over its own window of time. Enters and leaves ProbeRTT (BBR3-9). */
static __always_inline void nrw_bounded_min_rtt(struct nrw_bbr *s, struct nrw_bounded *b, struct tcp_sock *tp,
						const struct rate_sample *rs)
{
	__u64 now = tp->tcp_mstamp;
	int expired = now > b->recent_rtt_at + nrw_params.probe_rtt_interval_us;

	if (rs->rtt_us >= 0 && (rs->rtt_us < b->recent_rtt_us || (expired && !rs->is_ack_delayed) ||
				(rs->rtt_us == b->recent_rtt_us && nrw_params.equal_rtt_renews))) {
		b->recent_rtt_us = rs->rtt_us;
		b->recent_rtt_at = now;
	}
	if (b->recent_rtt_us <= s->min_rtt_us || now > s->min_rtt_at + nrw_params.min_rtt_window_us) {
		s->min_rtt_us = b->recent_rtt_us;
		s->min_rtt_at = b->recent_rtt_at;
	}
	if (expired && !s->idle_restart && s->mode != NRW_PROBE_RTT) {
		nrw_begin_probe_rtt(s, tp);
		b->acks = NRW_ACKS_STOPPING;
		nrw_start_round(s, tp);
	}
	if (s->mode == NRW_PROBE_RTT && nrw_probe_rtt(s, tp, nrw_probe_rtt_cwnd(s)))
		nrw_bounded_end_probe_rtt(s, b, tp);
}

#endif
