/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The gain model of BBR-A, BBR-B and BBR-C (GAIN-1, GAIN-2). The functions give the same results as
 * crates/narrows-control/src/congestion/bbr/gain_model.rs, which gives the reasons. Gains are rounded to the
 * nearest multiple of 1/256, and halves are rounded up. Tests run these functions in the kernel for every
 * omega.
 *
 * The unit of omega is 1/1024, and the unit of gains is 1/256.
 */
#ifndef NRW_GAINS_H
#define NRW_GAINS_H

#define NRW_OMEGA_ONE	1024

static __always_inline __u64 nrw_nearest(__u64 numerator, __u64 denominator)
{
	return (numerator + denominator / 2) / denominator;
}

/*
 * Returns omega (GAIN-1), which is the RTT divided by the longest RTT, or 1 if there is no longest RTT yet.
 */
static __always_inline __u32 nrw_omega_of(__u32 rtt_us, __u32 longest_us)
{
	__u64 share;

	if (!longest_us)
		return NRW_OMEGA_ONE;
	share = nrw_nearest(nrw_min(rtt_us, longest_us) * NRW_OMEGA_ONE, longest_us);
	return nrw_min(nrw_max(share, 1), NRW_OMEGA_ONE);
}

/* Returns cos(w / 1024) in units of 2^-30, by the Taylor series up to the eighth power. */
static __always_inline __u64 nrw_cosine(__u64 w)
{
	const __u64 one = 1ULL << 30;
	__u64 square = w * w;
	__u64 series = one - ((square * one / 56) >> 20);

	series = one - ((square * series / 30) >> 20);
	series = one - ((square * series / 12) >> 20);
	return one - ((square * series / 2) >> 20);
}

/*
 * Returns the square root of a number up to 2^32, rounded down. The loop starts from a zero that is unknown
 * to the verifier. If the verifier knew this zero, it would check each combination of the root's bits
 * separately. In a measurement with a known zero, the verifier checked 896,000 instructions for two square
 * roots. Its limit is a million instructions.
 */
static __always_inline __u64 nrw_root(__u64 n)
{
	__u64 same = n;
	__u64 root;
	int bit;

	barrier_var(same);
	root = n - same;
	for (bit = 16; bit >= 0; bit--) {
		__u64 larger = root | 1ULL << bit;

		if (larger * larger <= n)
			root = larger;
	}
	return root;
}

static __always_inline __u64 nrw_omega_in_range(__u32 omega)
{
	return nrw_min(nrw_max(omega, 1), NRW_OMEGA_ONE);
}

/* Returns P_up, the gain of the probing phase. */
static __always_inline __u32 nrw_gain_up(__u32 variant, __u32 omega)
{
	__u64 w = nrw_omega_in_range(omega);

	switch (variant) {
	case NRW_A:
		return nrw_nearest(2 * 256 * 1024, w + 1024);
	case NRW_B:
		return nrw_nearest(3 * 256 * 1024, w + 2048);
	case NRW_C:
		/* 256 (w / 2^10)^(1/4) = (w 2^22)^(1/4) */
		return 384 - ((nrw_root(nrw_root(w << 22)) + 1) >> 1);
	default:
		return nrw_params.up.pacing;
	}
}

/* Returns P_down, the gain of the draining phase. */
static __always_inline __u32 nrw_gain_down(__u32 variant, __u32 omega)
{
	__u64 w = nrw_omega_in_range(omega);

	switch (variant) {
	case NRW_A:
		return (nrw_cosine(w) + (1 << 21)) >> 22;
	case NRW_B:
		return nrw_nearest(256 * (3 * 1024 - 2 * w), 3 * 1024 - w);
	case NRW_C:
		return 256 - ((w * w * w * w + (1ULL << 32) - 1) >> 33);
	default:
		return nrw_params.down.pacing;
	}
}

#endif
