/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Detects policers. If two consecutive intervals have high loss and nearly the same delivery rate, the
 * program assumes that the cause is a token bucket, not a queue (BBR-22). BBR then uses the bucket's rate for
 * a while, without probing.
 */
#ifndef NRW_POLICER_H
#define NRW_POLICER_H

#define NRW_LT_LONGEST_MS	(0xffffffffU / 1000)

static __always_inline void nrw_lt_begin_interval(struct nrw_bbr *s, const struct tcp_sock *tp)
{
	s->lt_at_ms = tp->delivered_mstamp / 1000;
	s->lt_delivered = tp->delivered;
	s->lt_lost = tp->lost;
	s->lt_rounds = 0;
}

static __always_inline void nrw_lt_reset(struct nrw_bbr *s, const struct tcp_sock *tp)
{
	s->lt_bw = 0;
	s->lt_use_bw = 0;
	s->lt_is_sampling = 0;
	nrw_lt_begin_interval(s, tp);
}

static __always_inline void nrw_lt_end_interval(struct nrw_bbr *s, const struct tcp_sock *tp, __u32 bw)
{
	__u32 difference = bw > s->lt_bw ? bw - s->lt_bw : s->lt_bw - bw;

	if (s->lt_bw && ((__u64)difference * NRW_UNIT <= (__u64)nrw_params.policer_ratio * s->lt_bw ||
			 nrw_bytes_per_sec(tp, difference, NRW_UNIT) <= nrw_params.policer_difference)) {
		s->lt_bw = ((__u64)bw + s->lt_bw) >> 1;
		s->lt_use_bw = 1;
		s->pacing_gain = NRW_UNIT;
		s->lt_rounds = 0;
		return;
	}
	s->lt_bw = bw;
	nrw_lt_begin_interval(s, tp);
}

static __always_inline void nrw_lt_update(struct nrw_bbr *s, const struct tcp_sock *tp, int losses, int app_limited)
{
	__u32 lost, delivered, ms;

	if (s->lt_use_bw) {
		if (s->mode == NRW_PROBE_BW && s->round_start && ++s->lt_rounds >= nrw_params.policer_use_rounds) {
			nrw_lt_reset(s, tp);
			nrw_enter_probe_bw(s, tp);
		}
		return;
	}
	/* Before the first loss, the bucket still has tokens, and the measured rate would be too high. */
	if (!s->lt_is_sampling) {
		if (!losses)
			return;
		nrw_lt_begin_interval(s, tp);
		s->lt_is_sampling = 1;
	}
	if (app_limited) {
		nrw_lt_reset(s, tp);
		return;
	}
	s->lt_rounds += s->round_start;
	if (s->lt_rounds > 4 * nrw_params.policer_rounds) {
		nrw_lt_reset(s, tp);
		return;
	}
	/* End each interval at a loss, when the bucket is empty again. */
	if (s->lt_rounds < nrw_params.policer_rounds || !losses)
		return;
	lost = tp->lost - s->lt_lost;
	delivered = tp->delivered - s->lt_delivered;
	if (!delivered || (__u64)lost << NRW_UNIT_SHIFT < (__u64)nrw_params.policer_loss * delivered)
		return;
	ms = tp->delivered_mstamp / 1000 - s->lt_at_ms;
	if ((__s32)ms < 1)
		return;
	if (ms >= NRW_LT_LONGEST_MS) {
		nrw_lt_reset(s, tp);
		return;
	}
	nrw_lt_end_interval(s, tp, (__u64)delivered * NRW_BW_UNIT / ((__u64)ms * 1000));
}

#endif
