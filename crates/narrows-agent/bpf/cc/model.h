/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Model of the path: bottleneck bandwidth, propagation time and rounds (BBR-6, BBR-10 to BBR-13),
 * and the amount in flight.
 */
#ifndef NRW_MODEL_H
#define NRW_MODEL_H

#define NRW_BW_ROUNDS		10
#define NRW_PACING_PERCENT	99	/* pacing rate in percent of the estimated bandwidth; below 100, so that a queue does not grow slowly */
#define NRW_MIN_TSO_RATE	(1200000 / 8)	/* bytes/s */
#define NRW_MOST_TSO_SEGMENTS	0x7f
/*
 * GSO_LEGACY_MAX_SIZE - 1 - MAX_TCP_HEADER. MAX_TCP_HEADER depends on the kernel's configuration (128
 * plus the link's header); 320 is common. Another value changes a burst only above 500 Mbit/s, and there
 * by one packet.
 */
#define NRW_MOST_TSO_BYTES	(65536 - 1 - 320)

static __always_inline __u32 nrw_max_bw(const struct nrw_bbr *s)
{
	return s->max_bw[0].bw;
}

/* Returns the bandwidth in use: the policer's rate if a policer was detected, otherwise the estimate. */
static __always_inline __u32 nrw_bw(const struct nrw_bbr *s)
{
	return s->lt_use_bw ? s->lt_bw : nrw_max_bw(s);
}

/* Returns the pacing rate for this bandwidth and gain, in payload bytes/s (the unit of sk_pacing_rate). */
static __always_inline __u64 nrw_bytes_per_sec(const struct tcp_sock *tp, __u64 bw, __u32 gain)
{
	__u64 rate = (bw * tp->mss_cache * gain) >> NRW_UNIT_SHIFT;

	return (rate * (1000000 / 100 * NRW_PACING_PERCENT)) >> NRW_BW_SHIFT;
}

/*
 * Returns whether the sample does not show the capacity of the path. With nrw_old, samples of ProbeRTT
 * are recognised by the number of packets that TCP had delivered when the packet was sent. On other
 * kernels, tcp_rate_skb_sent() recognises them by app_limited.
 */
static __always_inline int nrw_app_limited(const struct nrw_bbr *s, const struct rate_sample *rs)
{
	if (rs->is_app_limited)
		return 1;
	return nrw_old && s->has_slowed && nrw_reached(rs->prior_delivered, s->slowed_from) &&
	       nrw_reached(s->slowed_until, rs->prior_delivered);
}

/* Counts rounds (BBR-6). Returns false if there is no sample. */
static __always_inline int nrw_count_round(struct nrw_bbr *s, const struct tcp_sock *tp,
					   const struct rate_sample *rs)
{
	s->round_start = 0;
	if (rs->delivered < 0 || rs->interval_us <= 0)
		return 0;
	if (nrw_reached(rs->prior_delivered, s->next_round_delivered)) {
		s->next_round_delivered = tp->delivered;
		s->round++;
		s->round_start = 1;
		s->conserving = 0;
	}
	return 1;
}

/* Puts the sample's delivery rate into the filter (BBR-10). */
static __always_inline void nrw_update_bw(struct nrw_bbr *s, const struct rate_sample *rs)
{
	__u64 bw = (__u64)rs->delivered * NRW_BW_UNIT / (__u64)rs->interval_us;

	/* a sample limited by the application says nothing about the path, unless its rate exceeds the estimate */
	if (!nrw_app_limited(s, rs) || bw >= nrw_max_bw(s))
		nrw_max_update(s->max_bw, NRW_BW_ROUNDS, s->round, bw);
}

/*
 * Returns the BDP times the gain, in packets (BBR-12). The result is rounded up, so that rounding alone
 * does not reduce it.
 */
static __always_inline __u32 nrw_bdp(const struct nrw_bbr *s, __u32 bw, __u32 gain)
{
	__u64 packets = (__u64)bw * s->min_rtt_us;

	if (s->min_rtt_us == NRW_NO_RTT)
		return NRW_INIT_CWND;
	return (((packets * gain) >> NRW_UNIT_SHIFT) + NRW_BW_UNIT - 1) >> NRW_BW_SHIFT;
}

static __always_inline __u32 nrw_least_tso_segments(const struct sock *sk)
{
	return sk->sk_pacing_rate < NRW_MIN_TSO_RATE ? 1 : 2;
}

/* Returns the number of packets that leave in one burst at the present pacing rate. */
static __always_inline __u32 nrw_quantum(const struct tcp_sock *tp)
{
	const struct sock *sk = (const struct sock *)tp;
	/* the mask is for the verifier, which has no bound for a shift by a value from memory */
	__u64 bytes = nrw_min(sk->sk_pacing_rate >> (sk->sk_pacing_shift & 63), NRW_MOST_TSO_BYTES);
	__u32 packets = nrw_max(tp->mss_cache ? bytes / tp->mss_cache : 0, nrw_least_tso_segments(sk));

	return nrw_min(packets, NRW_MOST_TSO_SEGMENTS);
}

/*
 * Adds room for bursts at both ends, rounds up to an even number because of delayed ACKs, and adds two
 * packets with which the probing phase can probe a small BDP (BBR-13).
 */
static __always_inline __u32 nrw_quantise(const struct nrw_bbr *s, const struct tcp_sock *tp, __u32 packets)
{
	packets = (packets + 3 * nrw_quantum(tp) + 1) & ~1U;
	if (s->mode == NRW_PROBE_BW && s->cycle == 0)
		packets += 2;
	return packets;
}

static __always_inline __u32 nrw_inflight(const struct nrw_bbr *s, const struct tcp_sock *tp, __u32 bw, __u32 gain)
{
	return nrw_quantise(s, tp, nrw_bdp(s, bw, gain));
}

/*
 * Returns the number of packets that are in the network when the next packet departs. With pacing, some
 * of the packets in flight have not left the host. If the pacing gain is above 1, the next burst counts
 * as sent.
 */
static __always_inline __u32 nrw_in_network(const struct nrw_bbr *s, const struct tcp_sock *tp, __u32 in_flight)
{
	__u64 wait_us = nrw_since(tp->tcp_wstamp_ns, tp->tcp_clock_cache) / 1000;
	__u64 delivered = ((__u64)nrw_bw(s) * wait_us) >> NRW_BW_SHIFT;

	if (s->pacing_gain > NRW_UNIT)
		in_flight += nrw_quantum(tp);
	return delivered >= in_flight ? 0 : in_flight - delivered;
}

#endif
