/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A program that only computes the gains of one omega. Tests run it by BPF_PROG_TEST_RUN, and compare its
 * results with the results of the simulator's functions. It is not loaded with the congestion control
 * algorithms.
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

#endif
