/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Parameters of the algorithms. The agent sets them before load, from the parameters of the simulator
 * (crates/narrows-agent/src/cc/params.rs). No program repeats their values.
 *
 * The verifier treats them as constants, so they do not increase its work.
 */
#ifndef NRW_PARAMS_H
#define NRW_PARAMS_H

/*
 * Two gains in units of 1/256: the pacing rate divided by the bandwidth, and the window divided by the
 * bandwidth-delay product.
 */
struct nrw_gain_pair {
	__u32 pacing;
	__u32 cwnd;
};

struct nrw_params {
	/* all algorithms */
	struct nrw_gain_pair startup;
	struct nrw_gain_pair drain;
	struct nrw_gain_pair up;
	struct nrw_gain_pair down;
	struct nrw_gain_pair cruise;
	struct nrw_gain_pair refill;	/* v2, v3 */
	struct nrw_gain_pair probe_rtt;
	__u64 min_rtt_window_us;
	__u64 probe_rtt_us;
	__u64 extra_us;			/* most that aggregation adds to the window, in us at the present bandwidth */
	__u32 extra_rounds;		/* length of each of the two bins for aggregation, in rounds */
	__u32 extra_rounds_startup;
	__u32 extra_epoch_packets;	/* an epoch ends before it has this many acknowledged packets */
	__u32 full_bw_growth;		/* 1/256 */
	__u32 full_bw_rounds;
	__u32 min_cwnd;			/* packets */
	__u32 initial_cwnd;		/* packets */
	__u32 probe_segments;		/* packets added to the window, so that a probe exceeds even a small BDP */
	__u32 margin_percent;		/* how far the pacing rate stays below the bandwidth, to avoid a queue */
	__u32 nominal_rtt_us;		/* before the first RTT sample */

	/* v1, A, B, C, BBQ */
	__u32 bw_rounds;
	__u32 policer_rounds;		/* rounds of the shortest interval; the longest has four times as many */
	__u32 policer_loss;		/* minimum loss rate of a policer: lost / delivered packets, in 1/256 */
	__u32 policer_ratio;		/* two rates are equal if they differ by at most this ratio (1/256) ... */
	__u32 policer_difference;	/* ... or by at most this many bytes/s */
	__u32 policer_use_rounds;

	/* BBQ */
	__u32 bbq_longest_probe_us;
	__u32 bbq_queue_us;
	__u32 bbq_queue_share;		/* 1/n of the propagation time */
	__u32 bbq_rounds;

	/* v2, v3 */
	__u64 probe_rtt_interval_us;
	__u64 probe_wait_us;
	__u64 probe_wait_random_us;
	__u32 probe_rounds;
	__u32 probe_rounds_random;
	__u32 drain_rounds;		/* 0: no limit */
	__u32 loss_percent;
	__u32 beta_percent;
	__u32 headroom_percent;
	__u32 startup_losses;
	__u32 offload_quanta;
	__u32 up_queue;			/* v2: a probe ends at this many 1/256 BDP in flight; 0 (v3): at a full pipe */
	__u32 startup_bound_delivered;
	__u32 undo_returns;
	__u32 ce_is_loss;
	__u32 equal_rtt_renews;
};

const volatile struct nrw_params nrw_params;

#endif
