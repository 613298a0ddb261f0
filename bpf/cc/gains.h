/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef NRW_GAINS_H
#define NRW_GAINS_H
#define NRW_OMEGA_ONE 1024
static __always_inline __u32 nrw_gain_up(__u32 variant, __u32 omega) { return NRW_UP_GAIN; }
static __always_inline __u32 nrw_gain_down(__u32 variant, __u32 omega) { return NRW_DOWN_GAIN; }
#endif
