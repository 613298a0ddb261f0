/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The model of the path: bottleneck bandwidth, propagation time and rounds (BBR-6, BBR-10 to BBR-13), and
 * data in flight.
 */
#ifndef NRW_MODEL_H
#define NRW_MODEL_H

/* Default of net.ipv4.tcp_min_tso_segs. The kernel uses it for algorithms without min_tso_segs() (bbr.h). */
#define NRW_LEAST_TSO_SEGMENTS	2
#define NRW_MOST_TSO_SEGMENTS	0x7f
/*
 * GSO_LEGACY_MAX_SIZE - 1 - MAX_TCP_HEADER. MAX_TCP_HEADER depends on the kernel's configuration: it is 128
 * plus the link's header, commonly 320. If the kernel has another value, the size of its bursts differs by at
 * most one packet, and only above 500 Mbit/s.
 */
#define NRW_MOST_TSO_BYTES	(65536 - 1 - 320)

static __always_inline __u32 nrw_max_bw(const struct nrw_bbr *s)
{
	return s->max_bw[0].bw;
}

/*
 * Returns the bandwidth in use: the policer's rate if a policer was detected, otherwise the estimate. v2 and
 * v3 do not detect policers. They use the estimate, up to a bound that losses set (BBR2-1).
 */
static __always_inline __u32 nrw_bw(const struct nrw_bbr *s)
{
	if (nrw_is_bounded())
		return nrw_min(nrw_max_bw(s), s->bw_lo);
	return s->lt_use_bw ? s->lt_bw : nrw_max_bw(s);
}

/* Returns the pacing rate for this bandwidth and gain, in payload bytes/s (the unit of sk_pacing_rate). */
static __always_inline __u64 nrw_bytes_per_sec(const struct tcp_sock *tp, __u64 bw, __u32 gain)
{
	__u64 rate = (bw * tp->mss_cache * gain) >> NRW_UNIT_SHIFT;

	return (rate * (1000000 / 100 * (100 - nrw_params.margin_percent))) >> NRW_BW_SHIFT;
}

/*
 * Returns whether too few packets were sent, so that the sample does not show the path's capacity. This is
 * also the case in ProbeRTT. tcp_rate_skb_sent() marks packets that are sent while app_limited is set. With
 * nrw_old, the program recognises packets of ProbeRTT by prior_delivered.
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

static __always_inline __u64 nrw_delivery_rate(const struct rate_sample *rs)
{
	return (__u64)rs->delivered * NRW_BW_UNIT / (__u64)rs->interval_us;
}

/* Puts the sample's delivery rate into the filter (BBR-10). */
static __always_inline void nrw_update_bw(struct nrw_bbr *s, const struct rate_sample *rs)
{
	__u64 bw = nrw_delivery_rate(rs);

	/* A sample limited by the application is used only if its rate reaches the estimate. */
	if (!nrw_app_limited(s, rs) || bw >= nrw_max_bw(s))
		nrw_max_update(s->max_bw, nrw_params.bw_rounds, s->round, bw);
}

/* Returns the BDP times the gain, in packets (BBR-12), rounded up. */
static __always_inline __u32 nrw_bdp(const struct nrw_bbr *s, __u32 bw, __u32 gain)
{
	__u64 packets = (__u64)bw * s->min_rtt_us;

	if (s->min_rtt_us == NRW_NO_RTT)
		return nrw_params.initial_cwnd;
	return (((packets * gain) >> NRW_UNIT_SHIFT) + NRW_BW_UNIT - 1) >> NRW_BW_SHIFT;
}

/* Returns the size of a burst in packets, at the present pacing rate. */
static __always_inline __u32 nrw_quantum(const struct tcp_sock *tp)
{
	const struct sock *sk = (const struct sock *)tp;
	/* The verifier has no bound for a value from memory, so mask the shift. */
	__u64 bytes = nrw_min(sk->sk_pacing_rate >> (sk->sk_pacing_shift & 63), NRW_MOST_TSO_BYTES);
	__u32 packets = nrw_max(tp->mss_cache ? bytes / tp->mss_cache : 0, NRW_LEAST_TSO_SEGMENTS);

	return nrw_min(packets, NRW_MOST_TSO_SEGMENTS);
}

/*
 * Adds room for bursts at both ends. Because of delayed ACKs, rounds the result up to an even number of
 * packets. The probing phase gets two more packets, so that it can probe a small BDP (BBR-13).
 */
static __always_inline __u32 nrw_quantise(const struct nrw_bbr *s, const struct tcp_sock *tp, __u32 packets)
{
	packets = (packets + 3 * nrw_quantum(tp) + 1) & ~1U;
	if (s->mode == NRW_PROBE_BW && s->cycle == 0)
		packets += nrw_params.probe_segments;
	return packets;
}

static __always_inline __u32 nrw_inflight(const struct nrw_bbr *s, const struct tcp_sock *tp, __u32 bw, __u32 gain)
{
	return nrw_quantise(s, tp, nrw_bdp(s, bw, gain));
}

/*
 * Returns the number of packets in the network when the next packet departs. With pacing, the next packet
 * departs later, so the function subtracts the packets that are delivered until then. With a pacing gain
 * above 1, the function adds the next burst.
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
