/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ACK aggregation (BBR-20): measures how many more packets are acknowledged than the bandwidth in use
 * predicts. When ACKs arrive in bursts, no ACKs arrive between the bursts. The window must let the sender
 * continue during these pauses.
 */
#ifndef NRW_AGGREGATION_H
#define NRW_AGGREGATION_H

static __always_inline void nrw_begin_epoch(struct nrw_bbr *s, __u64 now)
{
	s->epoch_at = now;
	s->epoch_acked = 0;
}

static __always_inline void nrw_update_aggregation(struct nrw_bbr *s, const struct tcp_sock *tp,
						   const struct rate_sample *rs)
{
	__u32 rounds = s->full_bw_reached ? nrw_params.extra_rounds : nrw_params.extra_rounds_startup;
	__u64 expected;
	__u32 extra;

	if (!rs->acked_sacked || rs->delivered < 0 || rs->interval_us <= 0)
		return;
	if (s->round_start && ++s->extra_acked_rounds >= rounds) {
		s->extra_acked_rounds = 0;
		s->extra_acked_bin ^= 1;
		s->extra_acked[s->extra_acked_bin & 1] = 0;
	}
	expected = ((__u64)nrw_bw(s) * nrw_since(tp->delivered_mstamp, s->epoch_at)) >> NRW_BW_SHIFT;
	if (s->epoch_acked <= expected || s->epoch_acked + rs->acked_sacked >= nrw_params.extra_epoch_packets) {
		nrw_begin_epoch(s, tp->delivered_mstamp);
		expected = 0;
	}
	s->epoch_acked = nrw_min(s->epoch_acked + rs->acked_sacked, nrw_params.extra_epoch_packets - 1);
	extra = nrw_min(s->epoch_acked - expected, tp->snd_cwnd);
	if (extra > s->extra_acked[s->extra_acked_bin & 1])
		s->extra_acked[s->extra_acked_bin & 1] = extra;
}

/* Returns how many packets to add to the window, so that the sender can continue in a pause between ACKs. */
static __always_inline __u32 nrw_aggregation_cwnd(const struct nrw_bbr *s)
{
	return nrw_min(nrw_max(s->extra_acked[0], s->extra_acked[1]),
		       ((__u64)nrw_bw(s) * nrw_params.extra_us) >> NRW_BW_SHIFT);
}

#endif
