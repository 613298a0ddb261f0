/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Functions of sock_ops programs that answer a SYN that asks for feedback. The SYN-ACK belongs to a
 * request socket, which has no flags and no storage. Instead, a flag of the listener lets the programs
 * write the SYN-ACK's header. The SYN that the kernel saved shows whether the client asked for feedback.
 */
#ifndef NRW_ACCEPT_H
#define NRW_ACCEPT_H

#include "option.h"

/* <linux/tcp.h> */
#define TCP_SAVE_SYN	27

/*
 * Prepares a listener, when listen() is called, for SYNs that ask for feedback. The kernel then saves
 * each SYN for repeated SYN-ACKs and for the accepted socket, which inherits
 * BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG. A listener that called listen() before the program was loaded has
 * no such flag, and its SYNs are not saved. Since Linux 6.12, the sender's program prepares such
 * listeners, too (takeover.h).
 */
static __always_inline void nrw_answer_syns(struct bpf_sock_ops *ctx)
{
	int save = 1;

	bpf_setsockopt(ctx, IPPROTO_TCP, TCP_SAVE_SYN, &save, sizeof(save));
	nrw_callbacks_add(ctx, BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
}

/* Returns whether the SYN of this request socket or accepted connection asks for feedback. */
static __always_inline int nrw_syn_asks(struct bpf_sock_ops *ctx)
{
	return nrw_option_read(ctx, BPF_LOAD_HDR_OPT_TCP_SYN) != NRW_NO_OPTION;
}

/*
 * Clears the flag for writing headers, so that neither the sender's nor the receiver's program writes
 * an option on this connection. Neither program can disable the other by mistake. Both programs see the
 * same SYN or SYN-ACK of the other end, and each program clears the flag only if this packet had no
 * option.
 */
static __always_inline void nrw_write_no_more(struct bpf_sock_ops *ctx)
{
	bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags & ~BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
}

#endif
