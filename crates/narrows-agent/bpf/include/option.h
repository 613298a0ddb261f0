/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * With these functions, sock_ops programs read the rate option, reserve room for it, and write it without a
 * rate.
 */
#ifndef NRW_OPTION_H
#define NRW_OPTION_H

#include "wire.h"

struct nrw_option {
	__u8 kind;
	__u8 len;
	__be16 exid;
	__be16 code;
} __attribute__((packed));

/* Result of nrw_option_read() if there is no option. */
#define NRW_NO_OPTION	(-1)

/*
 * Returns the code in the header of the callback's packet. With BPF_LOAD_HDR_OPT_TCP_SYN in `flags`, returns
 * the code in the saved SYN of an accepted connection. The kernel parses the options. If their lengths are
 * wrong, it finds no option.
 */
static __always_inline int nrw_option_read(struct bpf_sock_ops *ctx, __u64 flags)
{
	/* With length 4, the helper searches by kind and 16-bit ExID. */
	struct nrw_option option = { .kind = NRW_OPT_KIND, .len = 4, .exid = bpf_htons(NRW_EXID) };

	if (bpf_load_hdr_opt(ctx, &option, sizeof(option), flags) != sizeof(option))
		return NRW_NO_OPTION;
	return bpf_ntohs(option.code);
}

/* Reserves room for the option. The kernel pads it to eight bytes with two NOPs. */
static __always_inline void nrw_option_reserve(struct bpf_sock_ops *ctx)
{
	bpf_reserve_hdr_opt(ctx, NRW_OPT_LEN, 0);
}

/*
 * Writes the option. If another program has already written it, the helper returns -EEXIST and that option
 * stays.
 */
static __always_inline void nrw_option_write(struct bpf_sock_ops *ctx, __u16 code)
{
	struct nrw_option option = {
		.kind = NRW_OPT_KIND,
		.len = NRW_OPT_LEN,
		.exid = bpf_htons(NRW_EXID),
		.code = bpf_htons(code),
	};

	bpf_store_hdr_opt(ctx, &option, sizeof(option), 0);
}

/* Sets callback flags. Keeps all other flags, because another program of the cgroup may need them. */
static __always_inline void nrw_callbacks_add(struct bpf_sock_ops *ctx, __u32 flags)
{
	bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags | flags);
}

/* Flags of the callback's TCP header (ctx->skb_tcp_flags). */
#define NRW_TCP_FIN	0x01
#define NRW_TCP_SYN	0x02
#define NRW_TCP_ACK	0x10

static __always_inline int nrw_is_syn(struct bpf_sock_ops *ctx)
{
	return (ctx->skb_tcp_flags & (NRW_TCP_SYN | NRW_TCP_ACK)) == NRW_TCP_SYN;
}

static __always_inline int nrw_is_syn_ack(struct bpf_sock_ops *ctx)
{
	return (ctx->skb_tcp_flags & (NRW_TCP_SYN | NRW_TCP_ACK)) == (NRW_TCP_SYN | NRW_TCP_ACK);
}

#endif
