/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Maximum over a window of time, in constant space (K. Nichols; Linux lib/win_minmax.c;
 * crates/narrows-control/src/congestion/filter.rs). s[0] is the best sample of the window, s[1] the best of
 * the samples later than s[0], and s[2] the best of the samples later than s[1].
 */
#ifndef NRW_FILTER_H
#define NRW_FILTER_H

static __always_inline void nrw_max_reset(struct nrw_sample s[3], __u32 at, __u32 bw)
{
	s[0].at = s[1].at = s[2].at = at;
	s[0].bw = s[1].bw = s[2].bw = bw;
}

static __always_inline void nrw_max_update(struct nrw_sample s[3], __u32 window, __u32 at, __u32 bw)
{
	const struct nrw_sample new = { .at = at, .bw = bw };
	__u32 age;

	/* The new sample is the maximum, or all earlier samples have left the window. */
	if (bw >= s[0].bw || at - s[2].at > window) {
		nrw_max_reset(s, at, bw);
		return;
	}
	if (bw >= s[1].bw)
		s[1] = s[2] = new;
	else if (bw >= s[2].bw)
		s[2] = new;

	age = at - s[0].at;
	if (age > window) {
		/*
		 * The best sample has left the window, so the other two samples move up by one place. If the
		 * second best sample has also left the window, they move up again.
		 */
		s[0] = s[1];
		s[1] = s[2];
		s[2] = new;
		if (at - s[0].at > window) {
			s[0] = s[1];
			s[1] = s[2];
			s[2] = new;
		}
	} else if (s[1].at == s[0].at && age > window / 4) {
		/* A quarter of the window has passed without a second best sample, so use the new sample. */
		s[1] = s[2] = new;
	} else if (s[2].at == s[1].at && age > window / 2) {
		s[2] = new;
	}
}

#endif
