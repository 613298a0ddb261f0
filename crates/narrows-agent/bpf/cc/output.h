/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Computes the pacing rate (BBR-18) and the window (BBR-19) from the model. Also reduces the window in loss
 * recovery (BBR-21).
 */
#ifndef NRW_OUTPUT_H
#define NRW_OUTPUT_H

static __always_inline __u64 nrw_pacing_rate(const struct tcp_sock *tp, __u64 bw, __u32 gain)
{
	const struct sock *sk = (const struct sock *)tp;

	/* SO_MAX_PACING_RATE still applies. */
	return nrw_min(nrw_bytes_per_sec(tp, bw, gain), sk->sk_max_pacing_rate);
}

/* Sets the first pacing rate: the initial window per RTT, times the gain of Startup. */
static __always_inline void nrw_begin_pacing(struct nrw_bbr *s, struct tcp_sock *tp)
{
	struct sock *sk = (struct sock *)tp;
	__u32 rtt_us = nrw_params.nominal_rtt_us;

	if (tp->srtt_us) {
		rtt_us = nrw_max(tp->srtt_us >> 3, 1);
		s->has_seen_rtt = 1;
	}
	sk->sk_pacing_rate = nrw_pacing_rate(tp, tp->snd_cwnd * NRW_BW_UNIT / rtt_us, nrw_params.startup.pacing);
}

static __always_inline void nrw_set_pacing_rate(struct nrw_bbr *s, struct tcp_sock *tp, __u32 gain)
{
	struct sock *sk = (struct sock *)tp;
	__u64 rate = nrw_pacing_rate(tp, nrw_bw(s), gain);

	if (!s->has_seen_rtt && tp->srtt_us)
		nrw_begin_pacing(s, tp);
	/*
	 * Until the pipe is full, only raise the rate, because the first samples cover few packets and may be
	 * too low.
	 */
	if (s->full_bw_reached || rate > sk->sk_pacing_rate)
		sk->sk_pacing_rate = rate;
}

/* Stores the window for recovery in *cwnd. Returns true if it applies instead of the model's window. */
static __always_inline int nrw_recovery_cwnd(struct nrw_bbr *s, const struct tcp_sock *tp,
					     const struct rate_sample *rs, __u32 *cwnd)
{
	__u8 before = s->prev_ca_state;
	__u8 state = nrw_ca_state(tp);
	__u32 conserved = nrw_in_flight(tp) + rs->acked_sacked;

	/*
	 * An ACK of n packets may release at most 2n packets. This function only subtracts the lost packets
	 * from the window. In slow start, nrw_set_cwnd() adds n packets.
	 */
	if (rs->losses > 0)
		*cwnd = *cwnd > (__u32)rs->losses ? *cwnd - rs->losses : 1;
	if (state == NRW_CA_RECOVERY && before != NRW_CA_RECOVERY) {
		s->conserving = 1;
		s->next_round_delivered = tp->delivered;
		*cwnd = conserved;
	} else if (before >= NRW_CA_RECOVERY && state < NRW_CA_RECOVERY) {
		s->conserving = 0;
		*cwnd = nrw_max(*cwnd, s->prior_cwnd);
	}
	s->prev_ca_state = state;
	if (s->conserving)
		*cwnd = nrw_max(*cwnd, conserved);
	return s->conserving;
}

static __always_inline void nrw_set_cwnd(struct nrw_bbr *s, struct tcp_sock *tp, const struct rate_sample *rs)
{
	__u32 cwnd = tp->snd_cwnd;
	__u32 target;

	if (rs->acked_sacked && !nrw_recovery_cwnd(s, tp, rs, &cwnd)) {
		target = nrw_bdp(s, nrw_bw(s), s->cwnd_gain);
		if (s->full_bw_reached)
			target += nrw_aggregation_cwnd(s);
		target = nrw_quantise(s, tp, target);
		if (s->full_bw_reached)
			cwnd = nrw_min(cwnd + rs->acked_sacked, target);
		else if (cwnd < target || tp->delivered < nrw_params.initial_cwnd)
			cwnd += rs->acked_sacked;
		cwnd = nrw_max(cwnd, nrw_params.min_cwnd);
	}
	cwnd = nrw_min(cwnd, tp->snd_cwnd_clamp);
	if (s->mode == NRW_PROBE_RTT)
		cwnd = nrw_min(cwnd, nrw_params.min_cwnd);
	tp->snd_cwnd = cwnd;
}

#endif
