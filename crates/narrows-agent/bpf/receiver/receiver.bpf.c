// SPDX-License-Identifier: GPL-2.0-only
/*
 * The receiver's program reserves room for the rate in SYN-ACKs and pure ACKs, if the SYN asked for feedback.
 * Without this program, the switch inserts the option.
 *
 * Data packets get no room for a rate, because the room would reduce the MSS and prevent TSO. The sender's
 * program may be in the same cgroup. The sender's program writes the rate option only into SYNs and SYN-ACKs.
 * Neither of the two programs clears callback flags that the other needs.
 */
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* <linux/in.h> */
#define IPPROTO_TCP	6

#include "accept.h"
#include "option.h"
#include "scope.h"
#include "wire.h"

/* 1: SYNs of this host also ask for feedback, so that data from the other side gets rates. */
const volatile __u32 nrw_ask = 0;

struct nrw_receiver_counters {
	__u64 asked;	/* SYNs of this host that asked for feedback */
	__u64 reserving; /* connections whose ACKs have room */
};
struct nrw_receiver_counters nrw_counters;

#define nrw_count(what)	__sync_fetch_and_add(&nrw_counters.what, 1)

static __always_inline void nrw_reserve(struct bpf_sock_ops *ctx)
{
	/*
	 * The kernel also makes this call without a packet, to compute the MSS of later data. Data gets no
	 * room.
	 */
	if (ctx->args[0] == BPF_WRITE_HDR_TCP_CURRENT_MSS)
		return;
	if (nrw_is_syn(ctx)) {
		/*
		 * The sender's program may already have reserved the option. The kernel then fills the second
		 * reservation with NOPs.
		 */
		if (nrw_ask)
			nrw_option_reserve(ctx);
	} else if (nrw_is_syn_ack(ctx)) {
		if (nrw_syn_asks(ctx))
			nrw_option_reserve(ctx);
	} else if (!ctx->skb_len) {
		nrw_option_reserve(ctx);
	}
}

/*
 * Returns whether the packet that is being written has payload. skb_len includes the header here, unlike in
 * the callback that reserves room.
 */
static __always_inline int nrw_has_data(struct bpf_sock_ops *ctx)
{
	__u8 *doff = ctx->skb_data + 12;

	return (void *)(doff + 1) > ctx->skb_data_end || ctx->skb_len > (__u32)(*doff >> 4) * 4;
}

/*
 * Writes the option, but never into data packets. If a data packet has room for an option, another program
 * has reserved it.
 */
static __always_inline void nrw_write(struct bpf_sock_ops *ctx)
{
	if (nrw_is_syn(ctx) ? nrw_ask : nrw_is_syn_ack(ctx) || !nrw_has_data(ctx))
		nrw_option_write(ctx, NRW_CODE_UNASSIGNED);
}

SEC("sockops")
int nrw_receiver(struct bpf_sock_ops *ctx)
{
	switch (ctx->op) {
	case BPF_SOCK_OPS_TCP_LISTEN_CB:
		/* If listen() was called before this program was loaded, the switch inserts the option. */
		if (nrw_in_scope(ctx))
			nrw_answer_syns(ctx);
		break;
	case BPF_SOCK_OPS_TCP_CONNECT_CB:
		if (nrw_ask && nrw_in_scope(ctx)) {
			nrw_callbacks_add(ctx, BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
			nrw_count(asked);
		}
		break;
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		if (!nrw_in_scope(ctx))
			break;
		if (nrw_syn_asks(ctx)) {
			nrw_callbacks_add(ctx, BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
			nrw_count(reserving);
		} else {
			nrw_write_no_more(ctx);
		}
		break;
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
		/*
		 * A SYN-ACK with the option shows that the SYN asked for feedback. This callback runs before
		 * the third packet of the handshake is sent. That packet carries the first rate for the other
		 * side (BRF-14).
		 */
		if (nrw_in_scope(ctx) && nrw_option_read(ctx, 0) != NRW_NO_OPTION) {
			nrw_callbacks_add(ctx, BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
			nrw_count(reserving);
		}
		break;
	/* Another program may have set the callback's flag on a socket outside this program's scope. */
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		if (nrw_in_scope(ctx))
			nrw_reserve(ctx);
		break;
	case BPF_SOCK_OPS_WRITE_HDR_OPT_CB:
		if (nrw_in_scope(ctx))
			nrw_write(ctx);
		break;
	}
	return 1;
}

char LICENSE[] SEC("license") = "GPL";
