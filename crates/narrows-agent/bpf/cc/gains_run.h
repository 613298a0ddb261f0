/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two programs for tests. One computes the gains for one omega, and the other computes BBQ's decision for one
 * probe. Tests run them by BPF_PROG_TEST_RUN and compare the results with those of the simulator. They are
 * loaded separately from the algorithms.
 */
#ifndef NRW_GAINS_RUN_H
#define NRW_GAINS_RUN_H

struct nrw_gains_run {
	__u32 variant;
	__u32 omega;		/* 1/1024 */
	__u32 up;		/* 1/256 */
	__u32 down;
};

SEC("syscall")
int nrw_gains(struct nrw_gains_run *run)
{
	run->up = nrw_gain_up(run->variant, run->omega);
	run->down = nrw_gain_down(run->variant, run->omega);
	return 0;
}

#define NRW_BBQ_ROUNDS	4

struct nrw_bbq_run {
	__u32 min_rtt_us;
	__u32 mean_us[NRW_BBQ_ROUNDS];	/* mean RTT of each round before the probe; 0 ends the list */
	__u32 is_short;
	__u32 length_us;
};

SEC("syscall")
int nrw_bbq(struct nrw_bbq_run *run)
{
	__u32 queued_rounds = 0;
	int round;

	for (round = 0; round < NRW_BBQ_ROUNDS && run->mean_us[round]; round++)
		queued_rounds = nrw_queued_rounds(queued_rounds, run->mean_us[round], run->min_rtt_us);
	run->is_short = nrw_has_standing_queue(queued_rounds);
	run->length_us = nrw_phase_us(run->is_short, run->min_rtt_us);
	return 0;
}

#endif
