/* SPDX-License-Identifier: GPL-2.0-only */
/* Who obeys: what asking for feedback promises, in SYNs and SYN-ACKs. */
#ifndef NRW_PROMISE_H
#define NRW_PROMISE_H

/* Whether the socket's congestion control is ours, by its name. `ctx` is what bpf_getsockopt() takes here. */
static __always_inline int nrw_is_ours(void *ctx)
{
	char name[16] = {};

	if (bpf_getsockopt(ctx, IPPROTO_TCP, TCP_CONGESTION, name, sizeof(name)))
		return 0;
	for (int i = 0; i < 16; i++) {
		if (name[i] != nrw_name[i])
			return 0;
		if (!name[i])
			break;
	}
	return 1;
}

/*
 * Whether this connection is to obey: what a SYN or a SYN-ACK that asks for feedback promises. Of a listener: whether those
 * that it accepts are, which inherit its choice.
 */
static __always_inline int nrw_will_obey(void *ctx, struct tcp_sock *tp)
{
	if (nrw_cap_only || nrw_choice == NRW_CHOICE_ALL)
		return 1;
	if (nrw_is_ours(ctx))
		return 1;
	if (nrw_choice == NRW_CHOICE_CHOSEN)
		return 0;
	return tp && !BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_setsockopt);
}

#endif
