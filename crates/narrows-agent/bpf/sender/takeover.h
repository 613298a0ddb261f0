/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sockets that are older than the program. An iterator over the sockets of a network namespace runs
 * when the program begins to apply to the namespace. It prepares listeners as nrw_answer_syns()
 * prepares newer ones. It takes over connections of an earlier sender that ended, was killed or is
 * replaced.
 *
 * The state of an earlier sender is in its own maps, which no later program can reach. But the
 * socket itself shows what is needed: the name of its congestion control, and the callbacks that the
 * earlier program requested from the kernel. The flag can be set outside of sock_ops since 6.12.
 */
#ifndef NRW_TAKEOVER_H
#define NRW_TAKEOVER_H

#include "announce.h"

/* <linux/bpf.h> of 6.12 */
#define NRW_TCP_BPF_SOCK_OPS_CB_FLAGS	1008

/* sk_max_pacing_rate without a cap */
#define NRW_UNCAPPED	(~0UL)

static __always_inline void nrw_take_listener(struct tcp_sock *tp, int flags)
{
	int save = 1;

	if (!nrw_will_apply_rates(tp, tp))
		return;
	bpf_setsockopt(tp, IPPROTO_TCP, TCP_SAVE_SYN, &save, sizeof(save));
	flags |= BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG;
	bpf_setsockopt(tp, IPPROTO_TCP, NRW_TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags));
}

/*
 * Takes over a connection whose SYN has asked for feedback. The connection gets storage, which shows
 * nrw_sockops() that the SYN has asked.
 */
static __always_inline void nrw_take_opening(struct tcp_sock *tp, int flags)
{
	if ((flags & BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG) && nrw_will_apply_rates(tp, tp))
		bpf_sk_storage_get(&nrw_conns, tp, NULL, BPF_SK_STORAGE_GET_F_CREATE);
}

/*
 * Takes over a connection of an earlier `brf`. That algorithm stays in the kernel as long as connections
 * use it, even after its name is free again. The kernel parses headers only of connections with an option
 * in the handshake (nrw_established()).
 *
 * A connection that is paced still had a rate from the earlier sender, and continues at this rate.
 * Any other connection continues with CUBIC until the next rate arrives. So does a connection with
 * an fq qdisc or with a cap of its own, because its pacing status does not show whether it had a
 * rate.
 */
static __always_inline void nrw_take_connection(struct tcp_sock *tp, int flags)
{
	struct sock *sk = (struct sock *)tp;
	struct nrw_conn *conn;

	if (!(flags & BPF_SOCK_OPS_PARSE_ALL_HDR_OPT_CB_FLAG) || !nrw_is_ours(tp))
		return;
	conn = bpf_sk_storage_get(&nrw_conns, tp, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!conn)
		return;
	conn->possible = 1;
	if (sk->sk_pacing_status == SK_PACING_NEEDED && sk->sk_max_pacing_rate == NRW_UNCAPPED &&
	    tp->mss_cache) {
		conn->paced = 1;
		conn->inherited = (__u64)sk->sk_pacing_rate * nrw_packet_bytes(tp) / tp->mss_cache;
	}
	if (!nrw_choose(tp))
		nrw_count(taken_over);
}

SEC("iter/tcp")
int nrw_take_over(struct bpf_iter__tcp *ctx)
{
	struct sock_common *skc = ctx->sk_common;
	struct tcp_sock *tp;
	int flags = 0;

	/* time-wait and request sockets, which the iterator also lists, are no TCP sockets */
	tp = skc ? bpf_skc_to_tcp_sock(skc) : NULL;
	if (!tp || bpf_getsockopt(tp, IPPROTO_TCP, NRW_TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags)))
		return 0;
	switch (skc->skc_state) {
	case NRW_TCP_LISTEN:
		nrw_take_listener(tp, flags);
		break;
	case NRW_TCP_SYN_SENT:
		nrw_take_opening(tp, flags);
		break;
	default:
		nrw_take_connection(tp, flags);
	}
	return 0;
}

#endif
