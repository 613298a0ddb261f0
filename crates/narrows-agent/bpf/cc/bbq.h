/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * BBQ shortens a probe if a queue persisted when the probe began (BBQ-2, BBQ-3). The functions give the same
 * results as crates/narrows-control/src/congestion/bbr/bbq.rs, which states the source. Tests run these
 * functions in the kernel.
 */
#ifndef NRW_BBQ_H
#define NRW_BBQ_H

/*
 * Returns the number of consecutive rounds with a queue. In such a round, the mean RTT exceeds the
 * propagation time by a margin. The margin is a fixed time or a share of the propagation time, whichever is
 * larger.
 */
static __always_inline __u32 nrw_queued_rounds(__u32 before, __u32 mean_us, __u32 min_rtt_us)
{
	__u64 room;

	if (min_rtt_us == NRW_NO_RTT)
		return before;
	room = nrw_max(nrw_params.bbq_queue_us, min_rtt_us / nrw_params.bbq_queue_share);
	if (mean_us <= min_rtt_us + room)
		return 0;
	return before == 0xffffffffU ? before : before + 1;
}

static __always_inline int nrw_has_standing_queue(__u32 queued_rounds)
{
	return queued_rounds >= nrw_params.bbq_rounds;
}

/*
 * Returns the minimum length of a phase, which is one propagation time. For a short probe, this length is
 * limited to bbq_longest_probe_us.
 */
static __always_inline __u32 nrw_phase_us(int is_short, __u32 min_rtt_us)
{
	return is_short ? nrw_min(min_rtt_us, nrw_params.bbq_longest_probe_us) : min_rtt_us;
}

#endif
