/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cap-only mode: the program sets SO_MAX_PACING_RATE to the network's rate. The kernel's own congestion
 * control stays in use. The sender paces at the lower of the network's rate and the rate of this congestion
 * control. If feedback is missing, the cap is removed. This congestion control works with and without a cap,
 * so a change to CUBIC and a gradual increase of the rate (BRF-104) are not needed.
 */
#ifndef NRW_CAP_H
#define NRW_CAP_H

/*
 * With this value, bpf_setsockopt() removes the cap. The helper takes four bytes, so a cap is at most 4.29
 * GB/s.
 */
#define NRW_NO_CAP	0xffffffffU
/*
 * Shortest time that a cap stays in force without feedback. At RTTs up to about 100 ms, `brf` changes to
 * CUBIC within this time.
 */
#define NRW_CAP_SILENCE_US	1000000

static __always_inline void nrw_cap_set(struct bpf_sock_ops *ctx, struct nrw_conn *conn, __u64 cap)
{
	__u32 value;

	if (conn->own_cap < cap)
		cap = conn->own_cap;
	value = cap < NRW_NO_CAP ? cap : NRW_NO_CAP;
	if (value == conn->capped)
		return;
	/* With a pacing rate of 0, the connection would never send again. */
	if (!value)
		value = 1;
	conn->capped = value;
	bpf_setsockopt(ctx, SOL_SOCKET, SO_MAX_PACING_RATE, &value, sizeof(value));
}

static __always_inline void nrw_cap_follow(struct bpf_sock_ops *ctx, struct nrw_conn *conn,
					   struct tcp_sock *tp)
{
	__u32 word = conn->word;
	__u64 rate, least;

	if (!(word & NRW_WORD_RATE))
		return;
	conn->word = 0;
	conn->feedback_us = bpf_ktime_get_ns() / 1000;
	rate = nrw_decode(word & 0xffff);
	least = nrw_packet_bytes(tp) * 1000000ULL / NRW_SLOWEST_SEGMENT_US;
	if (rate > nrw_max_rate)
		rate = nrw_max_rate;
	if (rate < least)
		rate = least;
	nrw_cap_set(ctx, conn, nrw_payload_rate(tp, rate));
}

static __always_inline void nrw_cap_begin(struct bpf_sock_ops *ctx, struct nrw_conn *conn,
					  struct tcp_sock *tp)
{
	conn->own_cap = ((struct sock *)tp)->sk_max_pacing_rate;
	conn->capped = NRW_NO_CAP;
	if (!conn->possible)
		return;
	nrw_callbacks_add(ctx, BPF_SOCK_OPS_RTT_CB_FLAG);
	nrw_cap_follow(ctx, conn, tp);
}

/* Removes the cap if feedback is missing. Runs once per RTT, when the kernel updates its RTT estimate. */
static __always_inline void nrw_cap_silence(struct bpf_sock_ops *ctx, struct nrw_conn *conn,
					    struct tcp_sock *tp)
{
	__u64 patience = NRW_SILENCE_SRTTS * (__u64)(tp->srtt_us >> 3);

	if (patience < NRW_CAP_SILENCE_US)
		patience = NRW_CAP_SILENCE_US;
	if (bpf_ktime_get_ns() / 1000 - conn->feedback_us > patience)
		nrw_cap_set(ctx, conn, ~0ULL);
}

#endif
