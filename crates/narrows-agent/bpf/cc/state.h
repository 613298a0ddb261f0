/* SPDX-License-Identifier: GPL-2.0-only */
/* The state of a connection, and the constants of a variant. */
#ifndef NRW_STATE_H
#define NRW_STATE_H

#define NRW_NO_BOUND		0xffffffffU

/* Gains are in units of 1/256 (BBR_UNIT in Linux). */
#define NRW_UNIT_SHIFT		8
#define NRW_UNIT		(1U << NRW_UNIT_SHIFT)

/* Bandwidths are in packets/us, shifted left by NRW_BW_SHIFT. */
#define NRW_BW_SHIFT		24
#define NRW_BW_UNIT		(1ULL << NRW_BW_SHIFT)

#define NRW_CYCLE		8	/* phases of ProbeBW in v1 and its variants */
#define NRW_NO_RTT		0xffffffffU

/* Constants of a variant, which the agent sets before load. */
enum nrw_variant { NRW_V1, NRW_A, NRW_B, NRW_C, NRW_BBQ, NRW_V2, NRW_V3 };
const volatile __u32 nrw_variant = NRW_V1;
#define nrw_is_bounded()	(nrw_variant >= NRW_V2)
#define nrw_has_gain_model()	(nrw_variant >= NRW_A && nrw_variant <= NRW_C)
/* Alternative interpretations of the paper (GAIN-4). They affect only the gain model. */
const volatile __u32 nrw_exit_125;
const volatile __u32 nrw_down_needs_loss;

/*
 * 1: the kernel has the old form of cong_control (before Linux 6.10). Some of these kernels do not let
 * programs write app_limited. On all of these kernels, the program, not the kernel, records which packets
 * were sent in ProbeRTT. Users can see the difference only in the delivery rate that tcp_info reports.
 */
const volatile __u32 nrw_old;

enum nrw_mode { NRW_STARTUP, NRW_DRAIN, NRW_PROBE_BW, NRW_PROBE_RTT };

/* Sample of the windowed maximum. */
struct nrw_sample {
	__u32 at;		/* round */
	__u32 bw;
};

/*
 * State of a connection. It is in socket storage, because icsk_ca_priv has only 104 bytes. Linux's struct bbr
 * already fills these 104 bytes, and the gain model needs more. In socket storage, plain fields replace
 * Linux's bit fields.
 *
 * Times are values of tcp_mstamp in us, unless the comment says otherwise. Where Linux uses jiffies, this
 * program uses microseconds.
 */
struct nrw_bbr {
	struct nrw_sample max_bw[3];
	__u32 min_rtt_us;
	__u32 round;
	__u32 next_round_delivered;
	__u32 full_bw;		/* reference bandwidth for the search for a full pipe */
	__u64 min_rtt_at;
	__u64 probe_rtt_done_at; /* 0: not set yet, because too many packets are in flight */
	__u64 cycle_at;
	__u64 epoch_at;
	__u32 epoch_acked;
	__u32 extra_acked[2];
	__u32 prior_cwnd;	/* window to restore after recovery or ProbeRTT */
	__u16 pacing_gain;
	__u16 cwnd_gain;
	__u16 phase_gain;	/* gain of the present phase of ProbeBW, set when the phase begins */
	__u8 mode;
	__u8 cycle;		/* phase of ProbeBW: 0 probes, 1 drains, all others cruise; v2 and v3: enum nrw_step */
	__u8 full_bw_rounds;
	__u8 full_bw_reached;
	__u8 round_start;
	__u8 idle_restart;
	__u8 prev_ca_state;
	__u8 conserving;
	__u8 probe_rtt_round_done;
	__u8 has_seen_rtt;
	__u8 extra_acked_rounds;
	__u8 extra_acked_bin;

	/* policer */
	__u8 lt_is_sampling;
	__u8 lt_use_bw;
	__u8 counted;		/* the connection is counted in nrw_cc_facts.connections */
	__u8 probe_lost;	/* the last probing phase lost packets */
	__u8 probe_is_short;	/* BBQ: a queue persisted when this probing phase began */
	__u8 has_slowed;	/* the next two fields are valid */
	__u32 slowed_from;	/* nrw_old: packets were sent in ProbeRTT if tp->delivered was from this value ... */
	__u32 slowed_until;	/* ... to this value; their samples do not show the path's capacity */
	__u32 lt_bw;
	__u32 lt_rounds;
	__u32 lt_at_ms;
	__u32 lt_delivered;
	__u32 lt_lost;

	__u32 bw_lo;		/* v2, v3: short-term bound on the bandwidth; NRW_NO_BOUND: none */

	/*
	 * A, B, C, BBQ, in us: rtt_count and rtt_sum of this round, rtt_mean of the last round, rtt_max of
	 * all rounds
	 */
	__u32 rtt_count;
	__u64 rtt_sum;
	__u32 rtt_mean;		/* 0: none yet */
	__u32 rtt_max;
	__u32 queued_rounds;	/* BBQ: consecutive rounds with a queue */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct nrw_bbr);
} nrw_bbrs SEC(".maps");

/* Counters for `narrows cc list`. The agent pins the map of these counters. */
struct nrw_cc_facts {
	__u64 connections;	/* at present */
	__u64 begun;		/* since load */
	__u64 options;		/* options of this load, written by the agent */
};
struct nrw_cc_facts nrw_cc_facts;

static __always_inline __u64 nrw_min(__u64 a, __u64 b)
{
	return a < b ? a : b;
}

static __always_inline __u64 nrw_max(__u64 a, __u64 b)
{
	return a > b ? a : b;
}

/* Returns whether the counter `a` has reached `b`, in serial arithmetic. */
static __always_inline int nrw_reached(__u32 a, __u32 b)
{
	return (__s32)(a - b) >= 0;
}

/* Returns the time from `then` to `now`, or 0 if `then` is later (tcp_stamp_us_delta()). */
static __always_inline __u64 nrw_since(__u64 now, __u64 then)
{
	return now > then ? now - then : 0;
}

#endif
