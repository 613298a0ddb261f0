/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How BBR v2 and v3 handle ACKs, losses, timeouts and undo, and set pacing rate and window. The steps have
 * the same order as in crates/narrows-control/src/congestion/bbr/bounded/mod.rs.
 *
 * A stock kernel reports only the number of lost packets, so the program cannot see which packets were lost.
 * A lost packet was sent at most one reordering window before the newest acknowledged packet. The program
 * therefore judges losses by the state (history.h) in which the newest acknowledged packet was sent. Without
 * a rate sample, and after a timeout, it uses the oldest packet in flight instead.
 */
#ifndef NRW_BOUNDED_ACK_H
#define NRW_BOUNDED_ACK_H

static __always_inline void nrw_bounded_begin(struct nrw_bbr *s, struct nrw_bounded *b, const struct tcp_sock *tp)
{
	__builtin_memset(b, 0, __builtin_offsetof(struct nrw_bounded, sent));
	b->recent_rtt_us = s->min_rtt_us;
	b->recent_rtt_at = s->min_rtt_at;
	b->lost = tp->lost;
	nrw_begin_bounds(s, b, tp);
	nrw_begin_history(b, tp);
}

/* Handles packets that were marked lost since the last call. Returns their number. */
static __always_inline __u32 nrw_bounded_losses(struct nrw_bbr *s, struct nrw_bounded *b, const struct tcp_sock *tp,
						const struct nrw_view *view)
{
	__u32 newly = tp->lost - b->lost;
	int fresh = !b->is_repairing;

	if (!newly)
		return 0;
	b->lost = tp->lost;
	b->is_repairing = 1;
	nrw_note_loss(s, b, tp->delivered, fresh);
	if (fresh) {
		b->undo = NRW_UNDO_NOTHING;
		if (s->mode == NRW_STARTUP)
			b->undo = NRW_UNDO_STARTUP;
		else if (s->mode == NRW_PROBE_BW && s->cycle == NRW_STEP_UP)
			b->undo = NRW_UNDO_UP;
	}
	if (!b->is_sampling || !nrw_is_too_high(view->lost, view->tx_in_flight))
		return newly;
	/* Further losses of this probe have no effect. */
	b->was_too_high = 1;
	b->is_sampling = 0;
	if (!view->app_limited)
		b->now.inflight_hi = nrw_max(nrw_inflight_at_loss(view->tx_in_flight, view->lost, newly),
					     nrw_percent(nrw_params.beta_percent, nrw_target_inflight(s, tp)));
	if (s->mode == NRW_PROBE_BW && s->cycle == NRW_STEP_UP)
		nrw_enter_down(s, b, tp);
	return newly;
}

/*
 * Handles the echo of an ECN mark. TCP reacts to one echo per round: it enters CWR. TCP may leave CWR and
 * enter it again at the same ACK. The number of marked packets is unknown, so the echo counts as one loss
 * (BBR3-10). Neither an echo nor the reductions before it can be undone.
 *
 * TCP also enters CWR if a queue of this host is full. In this case, the next ACK usually has no echo, and
 * this function ignores the entry to CWR.
 */
static __always_inline void nrw_bounded_ecn(struct nrw_bbr *s, struct nrw_bounded *b, const struct tcp_sock *tp,
					    const struct rate_sample *rs, int flag)
{
	int has_entered_cwr = b->has_entered_cwr;

	b->has_entered_cwr = 0;
	if (!has_entered_cwr || !(flag & FLAG_ECE))
		return;
	b->has_before = 0;
	b->undo = NRW_UNDO_NOTHING;
	/*
	 * Use the value of tp->delivered before this ACK. With the value after it, the loss round would end
	 * with the ACK at which TCP enters CWR again, and two echoes would count as one.
	 */
	if (nrw_params.ce_is_loss)
		nrw_note_loss(s, b, tp->delivered - rs->acked_sacked, 0);
}

/* Updates the model of the path. Returns whether the ACK has a valid sample. */
static __always_inline int nrw_bounded_model(struct nrw_bbr *s, struct nrw_bounded *b, const struct tcp_sock *tp,
					     const struct rate_sample *rs, struct nrw_view *view)
{
	if (!nrw_count_round(s, tp, rs) || !rs->acked_sacked) {
		b->loss_round_start = 0;
		return 0;
	}
	b->rounds += s->round_start;
	view->bw = nrw_min(nrw_delivery_rate(rs), NRW_NO_BOUND);
	nrw_note_sample(b, tp, rs, view->bw);
	nrw_update_bw_hi(s, b, view->bw, view->app_limited);
	nrw_lower_bounds(s, b, tp);
	nrw_update_aggregation(s, tp, rs);
	nrw_search_full_pipe(s, b, view);
	return 1;
}

static __always_inline void nrw_bounded_gains(struct nrw_bbr *s)
{
	struct nrw_gain_pair gains = nrw_params.startup;

	if (s->mode == NRW_DRAIN)
		gains = nrw_params.drain;
	else if (s->mode == NRW_PROBE_RTT)
		gains = nrw_params.probe_rtt;
	else if (s->mode == NRW_PROBE_BW && s->cycle == NRW_STEP_UP)
		gains = nrw_params.up;
	else if (s->mode == NRW_PROBE_BW && s->cycle == NRW_STEP_DOWN)
		gains = nrw_params.down;
	else if (s->mode == NRW_PROBE_BW && s->cycle == NRW_STEP_REFILL)
		gains = nrw_params.refill;
	else if (s->mode == NRW_PROBE_BW)
		gains = nrw_params.cruise;
	s->pacing_gain = gains.pacing;
	s->cwnd_gain = gains.cwnd;
}

/* Returns the present phase's bound on data in flight. */
static __always_inline __u32 nrw_bounded_cap(const struct nrw_bbr *s, const struct nrw_bounded *b)
{
	__u32 hi = b->now.inflight_hi;

	if (s->mode == NRW_STARTUP)
		hi = NRW_NO_BOUND;
	else if (s->mode == NRW_PROBE_RTT || (s->mode == NRW_PROBE_BW && s->cycle == NRW_STEP_CRUISE))
		hi = nrw_with_headroom(b);
	return nrw_max(nrw_min(hi, b->now.inflight_lo), nrw_params.min_cwnd);
}

/* Sets the window (BBR3-8). Losses reduce the window only through the bounds. */
static __always_inline void nrw_bounded_cwnd(struct nrw_bbr *s, struct nrw_bounded *b, struct tcp_sock *tp,
					     const struct rate_sample *rs)
{
	__u32 cwnd = tp->snd_cwnd, most;

	if (rs->acked_sacked) {
		most = nrw_with_room(tp, nrw_bdp(s, nrw_bw(s), s->cwnd_gain) + nrw_aggregation_cwnd(s));
		if (s->mode == NRW_PROBE_BW && s->cycle == NRW_STEP_UP)
			most += nrw_params.probe_segments;
		if (s->full_bw_reached)
			cwnd = nrw_min(cwnd + rs->acked_sacked, most);
		else if (cwnd < most || tp->delivered < nrw_params.initial_cwnd)
			cwnd += rs->acked_sacked;
		cwnd = nrw_max(cwnd, nrw_params.min_cwnd);
	}
	if (s->mode == NRW_PROBE_RTT)
		cwnd = nrw_min(cwnd, nrw_probe_rtt_cwnd(s));
	cwnd = nrw_min(cwnd, nrw_bounded_cap(s, b));
	tp->snd_cwnd = nrw_min(cwnd, tp->snd_cwnd_clamp);
}

/*
 * Stores the history (history.h) of a packet in `view`. When the packet was sent, tp->delivered was
 * `prior_delivered`.
 */
static __always_inline void nrw_look_back(struct nrw_view *view, struct nrw_bounded *b, const struct tcp_sock *tp,
					  __u32 prior_delivered)
{
	const struct nrw_sent *sent = nrw_when_sent(b, prior_delivered);

	view->tx_in_flight = sent->in_flight;
	view->lost = tp->lost - sent->lost;
}

/* Returns an estimate of tp->delivered at the time when the oldest packet in flight was sent. */
static __always_inline __u32 nrw_oldest_prior_delivered(const struct tcp_sock *tp)
{
	return tp->delivered - (tp->packets_out - tp->sacked_out);
}

static __always_inline void nrw_bounded_ack(struct nrw_bbr *s, struct nrw_bounded *b, struct tcp_sock *tp,
					    const struct rate_sample *rs, int flag)
{
	__u8 state = nrw_ca_state(tp);
	struct nrw_view view = {};
	__u32 newly_lost;
	int is_valid;

	nrw_close_history(b, rs);
	nrw_look_back(&view, b, tp, rs->delivered < 0 ? nrw_oldest_prior_delivered(tp) : rs->prior_delivered);
	view.app_limited = nrw_app_limited(s, rs);

	if (s->prev_ca_state >= NRW_CA_RECOVERY && state < NRW_CA_RECOVERY) {
		b->is_repairing = 0;
		tp->snd_cwnd = nrw_max(tp->snd_cwnd, s->prior_cwnd);
	}
	newly_lost = nrw_bounded_losses(s, b, tp, &view);
	nrw_bounded_ecn(s, b, tp, rs, flag);

	is_valid = nrw_bounded_model(s, b, tp, rs, &view);
	if (!s->full_bw_reached)
		nrw_check_startup_losses(s, b, tp, &view, newly_lost);
	nrw_leave_startup(s, b, tp);
	if (s->full_bw_reached && is_valid)
		nrw_update_step(s, b, tp, rs, &view);
	nrw_bounded_min_rtt(s, b, tp, rs);
	if (rs->delivered > 0)
		s->idle_restart = 0;
	if (is_valid && b->loss_round_start) {
		b->bw_latest = view.bw;
		b->inflight_latest = rs->delivered;
	}
	s->prev_ca_state = state;
	b->is_repairing = state >= NRW_CA_RECOVERY;

	nrw_bounded_gains(s);
	nrw_set_pacing_rate(s, tp, s->pacing_gain);
	nrw_bounded_cwnd(s, b, tp, rs);
	nrw_continue_history(b, tp);
}

static __always_inline void nrw_bounded_timeout(struct nrw_bbr *s, struct nrw_bounded *b, const struct tcp_sock *tp)
{
	struct nrw_view view = {};

	nrw_look_back(&view, b, tp, nrw_oldest_prior_delivered(tp));
	nrw_bounded_losses(s, b, tp, &view);
	s->prev_ca_state = NRW_CA_LOSS;
	nrw_restart_search(s, b, 0);
	/*
	 * TCP is about to cut the window to almost nothing, so take the bound from the window before the cut.
	 */
	if (!nrw_is_probing(s))
		nrw_bound_inflight_lo(b, s->prior_cwnd);
}

/* Restores the bounds after spurious losses. Returns the window to restore. */
static __always_inline __u32 nrw_bounded_undo(struct nrw_bbr *s, struct nrw_bounded *b, const struct tcp_sock *tp)
{
	__u8 undo = b->undo;

	b->is_repairing = 0;
	b->undo = NRW_UNDO_NOTHING;
	nrw_undo_bounds(s, b);
	nrw_restart_search(s, b, 0);
	if (!nrw_params.undo_returns)
		undo = NRW_UNDO_NOTHING;
	if (undo == NRW_UNDO_STARTUP && s->mode != NRW_STARTUP) {
		s->full_bw_reached = 0;
		if (s->mode != NRW_PROBE_RTT)
			s->mode = NRW_STARTUP;
	} else if (undo == NRW_UNDO_UP && s->mode != NRW_PROBE_RTT &&
		   !(s->mode == NRW_PROBE_BW && s->cycle == NRW_STEP_UP)) {
		/* With 0 as the reference rate, the rate of the next sample becomes the reference. */
		nrw_enter_up(s, b, tp, 0);
	}
	return nrw_max(tp->snd_cwnd, s->prior_cwnd);
}

#endif
