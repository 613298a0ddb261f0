/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Computes the mean RTT of a round, for BBQ's test for a queue and for the gain model. The gain model uses
 * omega = T / T_max: the mean RTT of the last round divided by the connection's longest RTT (GAIN-1, GAIN-5).
 */
#ifndef NRW_OMEGA_H
#define NRW_OMEGA_H

/*
 * Collects the RTT samples of this round. Without timestamps, the kernel takes no samples from retransmitted
 * packets.
 */
static __always_inline void nrw_observe_rtt(struct nrw_bbr *s, const struct rate_sample *rs)
{
	if (!nrw_has_gain_model() && nrw_variant != NRW_BBQ)
		return;
	if (s->round_start && s->rtt_count) {
		s->rtt_mean = s->rtt_sum / s->rtt_count;
		s->rtt_sum = 0;
		s->rtt_count = 0;
		if (nrw_variant == NRW_BBQ)
			s->queued_rounds = nrw_queued_rounds(s->queued_rounds, s->rtt_mean, s->min_rtt_us);
	}
	if (rs->rtt_us <= 0)
		return;
	s->rtt_sum += rs->rtt_us;
	s->rtt_count++;
	s->rtt_max = nrw_max(s->rtt_max, rs->rtt_us);
}

/*
 * Returns omega, which is 1 until the first round with RTT samples has ended. With an omega of 1, the gain of
 * the probing phase is 1.
 */
static __always_inline __u32 nrw_omega(const struct nrw_bbr *s)
{
	return s->rtt_mean ? nrw_omega_of(s->rtt_mean, s->rtt_max) : NRW_OMEGA_ONE;
}

#endif
