/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Measures the propagation time (BBR-11). For this purpose, ProbeRTT empties the queue (BBR-17): for at least
 * 200 ms and one round, it limits the data in flight, in v1 to four packets.
 */
#ifndef NRW_PROBE_RTT_H
#define NRW_PROBE_RTT_H

/* Saves the window before a temporary reduction. */
static __always_inline void nrw_save_cwnd(struct nrw_bbr *s, const struct tcp_sock *tp)
{
	if (s->prev_ca_state < NRW_CA_RECOVERY && s->mode != NRW_PROBE_RTT)
		s->prior_cwnd = tp->snd_cwnd;
	else
		s->prior_cwnd = nrw_max(s->prior_cwnd, tp->snd_cwnd);
}

/* Returns whether the minimum time of ProbeRTT has passed. */
static __always_inline int nrw_probe_rtt_was_long_enough(const struct nrw_bbr *s, const struct tcp_sock *tp)
{
	return s->probe_rtt_done_at && tp->tcp_mstamp > s->probe_rtt_done_at;
}

static __always_inline void nrw_end_probe_rtt(struct nrw_bbr *s, struct tcp_sock *tp)
{
	s->min_rtt_at = tp->tcp_mstamp;
	tp->snd_cwnd = nrw_max(tp->snd_cwnd, s->prior_cwnd);
	nrw_leave_probe_rtt(s, tp);
}

static __always_inline void nrw_begin_probe_rtt(struct nrw_bbr *s, const struct tcp_sock *tp)
{
	/*
	 * As in Linux, change the mode before saving the window. In this mode, nrw_save_cwnd() keeps the
	 * larger of the present and the saved window.
	 */
	s->mode = NRW_PROBE_RTT;
	s->slowed_from = tp->delivered;
	s->has_slowed = 1;
	nrw_save_cwnd(s, tp);
	s->probe_rtt_done_at = 0;
}

/*
 * Handles an ACK in ProbeRTT. When at most `few` packets are in flight, the minimum time and a round begin.
 * ProbeRTT ends when both have passed. Returns whether ProbeRTT is over.
 */
static __always_inline int nrw_probe_rtt(struct nrw_bbr *s, struct tcp_sock *tp, __u32 few)
{
	__u32 in_flight = nrw_in_flight(tp);
	__u32 until = tp->delivered + in_flight;

	/*
	 * BBR limits the packets in flight on purpose, so mark their samples as limited by the application.
	 */
	if (nrw_old)
		s->slowed_until = until;
	else
		tp->app_limited = until ? until : 1;
	if (!s->probe_rtt_done_at) {
		if (in_flight > few)
			return 0;
		s->probe_rtt_done_at = tp->tcp_mstamp + nrw_params.probe_rtt_us;
		s->probe_rtt_round_done = 0;
		s->next_round_delivered = tp->delivered;
		return 0;
	}
	if (s->round_start)
		s->probe_rtt_round_done = 1;
	return s->probe_rtt_round_done && nrw_probe_rtt_was_long_enough(s, tp);
}

static __always_inline void nrw_update_min_rtt(struct nrw_bbr *s, struct tcp_sock *tp, const struct rate_sample *rs)
{
	__u64 now = tp->tcp_mstamp;
	int expired = now > s->min_rtt_at + nrw_params.min_rtt_window_us;

	if (rs->rtt_us >= 0 && (rs->rtt_us < s->min_rtt_us || (expired && !rs->is_ack_delayed))) {
		s->min_rtt_us = rs->rtt_us;
		s->min_rtt_at = now;
	}
	if (expired && !s->idle_restart && s->mode != NRW_PROBE_RTT)
		nrw_begin_probe_rtt(s, tp);
	if (s->mode == NRW_PROBE_RTT && nrw_probe_rtt(s, tp, nrw_params.min_cwnd))
		nrw_end_probe_rtt(s, tp);
	if (rs->delivered > 0)
		s->idle_restart = 0;
}

#endif
