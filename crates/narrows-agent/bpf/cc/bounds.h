/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bounds that follow from losses (BBR2-1, BBR2-3, BBR3-6, BBR3-7), on the data in flight and on the
 * bandwidth. Excessive losses in Startup or of a probe set inflight_hi. Volumes in flight that were safe
 * raise it. Losses at other times lower inflight_lo and bw_lo towards the delivered volume and rate. The next
 * Refill, or the end of ProbeRTT, removes inflight_lo and bw_lo.
 */
#ifndef NRW_BOUNDS_H
#define NRW_BOUNDS_H

/*
 * Returns whether losses were excessive: more than loss_percent of the volume in flight when a packet was
 * sent.
 */
static __always_inline int nrw_is_too_high(__u32 lost, __u32 tx_in_flight)
{
	return (__u64)lost * 100 > (__u64)tx_in_flight * nrw_params.loss_percent;
}

/*
 * Returns the volume in flight at which losses crossed the threshold (BBR2-3). The function adds the last
 * `newly` of the `lost` packets one after the other. Losses crossed the threshold at the first added packet
 * that makes nrw_is_too_high() true.
 */
static __always_inline __u32 nrw_inflight_at_loss(__u32 tx_in_flight, __u32 lost, __u32 newly)
{
	__u64 before = tx_in_flight ? tx_in_flight - 1 : 0;
	__u64 most = (__u64)tx_in_flight * nrw_params.loss_percent / 100;
	__u64 lost_before = nrw_max(lost - newly, most);
	/* In hundredths: lost_prefix >= (threshold * before - lost_before) / (1 - threshold). */
	__u64 allowed = before * nrw_params.loss_percent;
	__u64 prefix = allowed > lost_before * 100 ? allowed - lost_before * 100 : 0;

	return before + prefix / (100 - nrw_params.loss_percent);
}

static __always_inline void nrw_forget_lo(struct nrw_bbr *s, struct nrw_bounded *b)
{
	b->now.inflight_lo = NRW_NO_BOUND;
	s->bw_lo = NRW_NO_BOUND;
}

/*
 * Discards this round's losses, delivery rate and volume. Losses of a probe therefore lower neither
 * inflight_lo nor bw_lo.
 */
static __always_inline void nrw_forget_round(struct nrw_bounded *b)
{
	b->loss_in_round = 0;
	b->bw_latest = 0;
	b->inflight_latest = 0;
}

static __always_inline void nrw_begin_bounds(struct nrw_bbr *s, struct nrw_bounded *b, const struct tcp_sock *tp)
{
	b->now.inflight_hi = NRW_NO_BOUND;
	b->loss_round_delivered = tp->delivered;
	nrw_forget_lo(s, b);
}

/*
 * Records a loss at the time when tp->delivered was `delivered`. If `fresh` is set, the loss begins an
 * episode that may turn out to be spurious.
 */
static __always_inline void nrw_note_loss(const struct nrw_bbr *s, struct nrw_bounded *b, __u32 delivered, int fresh)
{
	if (fresh) {
		b->before.inflight_hi = b->now.inflight_hi;
		b->before.inflight_lo = b->now.inflight_lo;
		b->before.bw_lo = s->bw_lo;
		b->has_before = 1;
	}
	if (!b->loss_in_round)
		b->loss_round_delivered = delivered;
	b->loss_in_round = 1;
}

/*
 * Updates the latest delivery rate and volume from a valid sample. Call this before other code uses the
 * sample.
 */
static __always_inline void nrw_note_sample(struct nrw_bounded *b, const struct tcp_sock *tp,
					    const struct rate_sample *rs, __u32 bw)
{
	b->bw_latest = nrw_max(b->bw_latest, bw);
	b->inflight_latest = nrw_max(b->inflight_latest, rs->delivered);
	b->loss_round_start = nrw_reached(rs->prior_delivered, b->loss_round_delivered);
	if (b->loss_round_start)
		b->loss_round_delivered = tp->delivered;
}

static __always_inline void nrw_bound_inflight_lo(struct nrw_bounded *b, __u32 cwnd)
{
	if (b->now.inflight_lo == NRW_NO_BOUND)
		b->now.inflight_lo = cwnd;
}

/* Lowers inflight_lo and bw_lo once in each round that has losses outside of probes (BBR3-7). */
static __always_inline void nrw_lower_bounds(struct nrw_bbr *s, struct nrw_bounded *b, const struct tcp_sock *tp)
{
	if (!b->loss_round_start)
		return;
	if (b->loss_in_round && !nrw_is_probing(s)) {
		/*
		 * After the first loss of a cycle, start from the estimated bandwidth and the present window.
		 */
		if (s->bw_lo == NRW_NO_BOUND)
			s->bw_lo = nrw_max_bw(s);
		nrw_bound_inflight_lo(b, tp->snd_cwnd);
		s->bw_lo = nrw_max(nrw_percent(nrw_params.beta_percent, s->bw_lo), b->bw_latest);
		b->now.inflight_lo = nrw_max(nrw_percent(nrw_params.beta_percent, b->now.inflight_lo),
					     b->inflight_latest);
	}
	b->loss_in_round = 0;
}

/* Returns inflight_hi minus the headroom for other flows. The headroom is at least one packet. */
static __always_inline __u32 nrw_with_headroom(const struct nrw_bounded *b)
{
	__u32 hi = b->now.inflight_hi, headroom;

	if (hi == NRW_NO_BOUND)
		return hi;
	headroom = nrw_max(nrw_percent(nrw_params.headroom_percent, hi), 1);
	return nrw_max(hi > headroom ? hi - headroom : 0, nrw_params.min_cwnd);
}

/*
 * Raises inflight_hi to a volume in flight that was safe. Returns 0 if losses are excessive or inflight_hi is
 * not set.
 */
static __always_inline int nrw_raise_hi(struct nrw_bounded *b, __u32 lost, __u32 tx_in_flight)
{
	if (nrw_is_too_high(lost, tx_in_flight) || b->now.inflight_hi == NRW_NO_BOUND)
		return 0;
	b->now.inflight_hi = nrw_max(b->now.inflight_hi, tx_in_flight);
	return 1;
}

/* Undoes a spurious episode of losses: each bound rises to at least its value before the episode. */
static __always_inline void nrw_undo_bounds(struct nrw_bbr *s, struct nrw_bounded *b)
{
	b->loss_in_round = 0;
	if (!b->has_before)
		return;
	b->has_before = 0;
	b->now.inflight_hi = nrw_max(b->now.inflight_hi, b->before.inflight_hi);
	b->now.inflight_lo = nrw_max(b->now.inflight_lo, b->before.inflight_lo);
	s->bw_lo = nrw_max(s->bw_lo, b->before.bw_lo);
}

#endif
