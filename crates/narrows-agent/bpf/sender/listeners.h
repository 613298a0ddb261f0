/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Listeners that are older than the program. An iterator over the sockets of a network namespace
 * runs once at the start and prepares them as nrw_answer_syns() prepares newer listeners. The flag
 * can be set outside of sock_ops since 6.12.
 */
#ifndef NRW_LISTENERS_H
#define NRW_LISTENERS_H

#include "announce.h"

/* <linux/bpf.h> of 6.12 */
#define NRW_TCP_BPF_SOCK_OPS_CB_FLAGS	1008

SEC("iter/tcp")
int nrw_listeners(struct bpf_iter__tcp *ctx)
{
	struct sock_common *skc = ctx->sk_common;
	int save = 1, flags = 0;
	struct tcp_sock *tp;

	/* the iterator also lists time-wait and request sockets */
	if (!skc || skc->skc_state != NRW_TCP_LISTEN)
		return 0;
	tp = bpf_skc_to_tcp_sock(skc);
	if (!tp || !nrw_will_apply_rates(tp, tp))
		return 0;
	bpf_setsockopt(tp, IPPROTO_TCP, TCP_SAVE_SYN, &save, sizeof(save));
	if (bpf_getsockopt(tp, IPPROTO_TCP, NRW_TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags)))
		return 0;
	flags |= BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG;
	bpf_setsockopt(tp, IPPROTO_TCP, NRW_TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags));
	return 0;
}

#endif
