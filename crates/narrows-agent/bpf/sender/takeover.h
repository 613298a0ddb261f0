/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Handles sockets that are older than the program. When the program begins to apply to a network namespace,
 * an iterator runs over the namespace's sockets. It prepares listeners, as nrw_answer_syns() does for newer
 * ones. It also takes over the connections of an earlier sender: an earlier load of these programs that
 * ended, was killed or is replaced.
 *
 * The earlier sender's state is in its own maps, which no later program can reach. The socket itself has the
 * needed data: the name of its congestion control, and its callback flags. Since Linux 6.12, programs outside
 * of sock_ops can read and set these flags.
 */
#ifndef NRW_TAKEOVER_H
#define NRW_TAKEOVER_H

#include "announce.h"

/* <linux/bpf.h> of 6.12 */
#define NRW_TCP_BPF_SOCK_OPS_CB_FLAGS	1008

/* sk_max_pacing_rate without a cap. */
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
 * Takes over a connection whose SYN has asked for feedback, but was not answered yet. The function only
 * creates storage, by which nrw_sockops() recognizes such a connection when the SYN-ACK arrives.
 */
static __always_inline void nrw_take_opening(struct tcp_sock *tp, int flags)
{
	if ((flags & BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG) && nrw_will_apply_rates(tp, tp))
		bpf_sk_storage_get(&nrw_conns, tp, NULL, BPF_SK_STORAGE_GET_F_CREATE);
}

/*
 * Takes over a connection of an earlier `brf`. The earlier algorithm stays in the kernel as long as
 * connections use it, even after the new `brf` is registered under the same name. The callback flag for
 * parsing headers shows that the handshake had an option (nrw_established()).
 *
 * If the connection is still paced, the earlier sender applied a rate, and the connection continues at this
 * rate. Otherwise it continues with CUBIC until the next rate arrives. If an fq qdisc paces the connection,
 * or the application has set SO_MAX_PACING_RATE, pacing does not show whether the earlier sender applied a
 * rate. Such connections also continue with CUBIC.
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

	/* The iterator also lists time-wait and request sockets, which are not full TCP sockets. */
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
