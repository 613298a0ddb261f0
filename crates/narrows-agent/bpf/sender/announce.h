/* SPDX-License-Identifier: GPL-2.0-only */
/* Decides which connections apply rates. Such a connection asks for feedback in its SYN or SYN-ACK. */
#ifndef NRW_ANNOUNCE_H
#define NRW_ANNOUNCE_H

/*
 * Returns whether the socket's congestion control has the name nrw_name. `ctx` is the first argument of
 * bpf_getsockopt().
 */
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

/* Selects the congestion control nrw_name for the socket. Returns 0, or the kernel's error. */
static __always_inline int nrw_choose(void *ctx)
{
	char name[16];

	for (int i = 0; i < 16; i++)
		name[i] = nrw_name[i];
	return bpf_setsockopt(ctx, IPPROTO_TCP, TCP_CONGESTION, name, sizeof(name));
}

/*
 * Returns whether this connection will apply rates. For a listener, the answer is for the connections that it
 * accepts, because they inherit its congestion control.
 */
static __always_inline int nrw_will_apply_rates(void *ctx, struct tcp_sock *tp)
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
