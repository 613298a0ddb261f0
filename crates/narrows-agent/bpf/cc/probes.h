/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Decides when BBR v2 and v3 probe, and how inflight_hi grows in a probe (BBR2-4, BBR2-5, BBR3-5, BBR3-6).
 */
#ifndef NRW_PROBES_H
#define NRW_PROBES_H

/* Returns the target for data in flight: the BDP, or the window if the window is smaller. */
static __always_inline __u32 nrw_target_inflight(const struct nrw_bbr *s, const struct tcp_sock *tp)
{
	return nrw_min(nrw_bdp(s, nrw_bw(s), NRW_UNIT), tp->snd_cwnd);
}

/* Raises a number of packets, if necessary, to leave room for bursts of the end systems. */
static __always_inline __u32 nrw_with_room(const struct tcp_sock *tp, __u32 packets)
{
	return nrw_max(nrw_max(packets, nrw_params.offload_quanta * nrw_quantum(tp)), nrw_params.min_cwnd);
}

/* Returns the BDP times the gain, with room for bursts. */
static __always_inline __u32 nrw_bounded_inflight(const struct nrw_bbr *s, const struct tcp_sock *tp, __u32 bw,
						  __u32 gain)
{
	return nrw_with_room(tp, nrw_bdp(s, bw, gain));
}

/* Begins a cycle of ProbeBW. The time until its probe is random. */
static __always_inline void nrw_start_cycle(struct nrw_bbr *s, struct nrw_bounded *b, const struct tcp_sock *tp)
{
	__u64 random = bpf_get_prandom_u32();

	nrw_forget_round(b);
	b->acks = NRW_ACKS_STOPPING;
	b->acked_per_packet = 0xffffffffU;
	b->down_at = tp->tcp_mstamp;
	b->wait_us = nrw_params.probe_wait_us + ((random * nrw_params.probe_wait_random_us) >> 32);
	random = bpf_get_prandom_u32();
	b->rounds = (random * nrw_params.probe_rounds_random) >> 32;
	nrw_start_round(s, tp);
}

/* Doubles the rate at which inflight_hi grows. Called once in each round of a probe. */
static __always_inline void nrw_raise_slope(struct nrw_bounded *b, __u32 cwnd)
{
	/* The verifier has no bound for a value from memory, so mask the shift. */
	b->acked_per_packet = nrw_max(cwnd >> (b->up_rounds & 31), 1);
	b->up_rounds = nrw_min(b->up_rounds + 1, 30);
}

/* tcp_is_cwnd_limited(), include/net/tcp.h: whether the window, not the application, limits the sender. */
static __always_inline int nrw_is_cwnd_limited(const struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return 1;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

/* Raises inflight_hi in Up if the window has reached this bound. */
static __always_inline void nrw_grow_hi(const struct nrw_bbr *s, struct nrw_bounded *b, const struct tcp_sock *tp,
					__u32 acked)
{
	__u32 per_packet = nrw_max(b->acked_per_packet, 1);
	__u32 more;

	if (!nrw_is_cwnd_limited(tp) || tp->snd_cwnd < b->now.inflight_hi) {
		/* Discard ACKs from times when the window was below the bound. */
		b->up_acked = 0;
		return;
	}
	b->up_acked += acked;
	more = b->up_acked / per_packet;
	b->up_acked -= more * per_packet;
	b->now.inflight_hi = nrw_min((__u64)b->now.inflight_hi + more, NRW_NO_BOUND);
	if (s->round_start)
		nrw_raise_slope(b, tp->snd_cwnd);
}

/*
 * Returns whether a probe is due. A probe is due when the cycle's random time or a number of rounds has
 * passed, whichever is earlier. The number of rounds is the target for data in flight (in packets), but at
 * most probe_rounds. Reno would cause a loss after about this many rounds.
 */
static __always_inline int nrw_probe_is_due(const struct nrw_bbr *s, const struct nrw_bounded *b,
					    const struct tcp_sock *tp)
{
	return nrw_since(tp->tcp_mstamp, b->down_at) > b->wait_us ||
	       b->rounds >= nrw_min(nrw_target_inflight(s, tp), nrw_params.probe_rounds);
}

/* Ends a cycle of the bandwidth filter. If the cycle had no sample, the previous result stays. */
static __always_inline void nrw_advance_bw(struct nrw_bbr *s, struct nrw_bounded *b)
{
	if (!b->bw_hi[1])
		return;
	b->bw_hi[0] = b->bw_hi[1];
	b->bw_hi[1] = 0;
	s->max_bw[0].bw = b->bw_hi[0];
}

/*
 * Adds a delivery rate to the bandwidth filter, which holds the maximum over the cycles of the last two
 * probes.
 */
static __always_inline void nrw_update_bw_hi(struct nrw_bbr *s, struct nrw_bounded *b, __u32 bw, int app_limited)
{
	if (app_limited && bw < nrw_max_bw(s))
		return;
	b->bw_hi[1] = nrw_max(b->bw_hi[1], bw);
	s->max_bw[0].bw = nrw_max(b->bw_hi[0], b->bw_hi[1]);
}

/*
 * Tracks which data of a probe the ACKs acknowledge (enum nrw_acks). Returns 1 or 2 if the last data of a
 * probe was just acknowledged, otherwise 0. The result is 2 if this probe was stopped as a precaution and had
 * no excessive loss. In this case, BBR probes again.
 */
static __always_inline int nrw_follow_probe(const struct nrw_bbr *s, struct nrw_bounded *b)
{
	if (!s->round_start)
		return 0;
	if (b->acks == NRW_ACKS_STARTING)
		b->acks = NRW_ACKS_FEEDBACK;
	if (b->acks != NRW_ACKS_STOPPING)
		return 0;
	b->is_sampling = 0;
	b->acks = NRW_ACKS_INIT;
	return b->was_cautious && !b->was_too_high ? 2 : 1;
}

#endif
