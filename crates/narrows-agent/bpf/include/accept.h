/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * With these functions, sock_ops programs answer SYNs that ask for feedback. A SYN-ACK belongs to a request
 * socket, which has neither callback flags nor storage. The programs can still write the SYN-ACK's header,
 * because they set a callback flag of the listener. They also make the kernel save the SYN, which shows
 * whether the client asked for feedback.
 */
#ifndef NRW_ACCEPT_H
#define NRW_ACCEPT_H

#include "option.h"

/* <linux/tcp.h> */
#define TCP_SAVE_SYN	27

/*
 * Prepares a listener, at listen(), for SYNs that ask for feedback. The kernel then saves each SYN. Programs
 * can read the saved SYN when a SYN-ACK is repeated, and later at the accepted socket. The accepted socket
 * inherits BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG. This function does not run for a listener that is older than
 * the program. On Linux 6.12 and later, the sender's program also prepares older listeners (takeover.h).
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
 * Clears the flag for writing headers, so that no program writes an option on this connection. The sender's
 * and the receiver's program share this flag. Both see the same SYN or SYN-ACK, and each clears the flag only
 * if this packet had no option. One program therefore never disables the other by mistake.
 */
static __always_inline void nrw_write_no_more(struct bpf_sock_ops *ctx)
{
	bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags & ~BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
}

#endif
