/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Changes to a packet that keep its checksums as right, or as wrong, as they were (RFC 1624).
 *
 * The kernel's helpers know whether the packet's checksum is complete, or will be completed by the
 * device (CHECKSUM_PARTIAL). Code of this program could not take that into account. Each function
 * does all of its work, or returns NRW_UNTOUCHED. If a helper fails half-way, the function returns
 * NRW_BROKEN, and the packet must be dropped.
 */
#ifndef NRW_REWRITE_H
#define NRW_REWRITE_H

#include "packet.h"

enum nrw_written {
	NRW_WRITTEN,
	NRW_UNTOUCHED,
	NRW_BROKEN,
};

#define NRW_TCP_CHECK		16	/* offset of the checksum in the TCP header */

/* Sixteen bits at offset `at` of the TCP header, old and new value in host order. */
static __always_inline enum nrw_written nrw_rewrite_u16(struct __sk_buff *skb, const struct nrw_packet *p, __u32 at,
							__u16 old, __u16 new)
{
	__be16 value = bpf_htons(new), from = bpf_htons(old), to = value;

	if (old == new)
		return NRW_WRITTEN;
	/*
	 * In the checksum, two bytes at an odd offset are the low half of one word and the high
	 * half of the next word.
	 */
	if (at & 1) {
		from = __builtin_bswap16(from);
		to = __builtin_bswap16(to);
	}
	if (bpf_skb_store_bytes(skb, p->l4 + at, &value, sizeof(value), 0))
		return NRW_UNTOUCHED;
	return bpf_l4_csum_replace(skb, p->l4 + NRW_TCP_CHECK, from, to, sizeof(to)) ? NRW_BROKEN : NRW_WRITTEN;
}

/*
 * Whether the option may be inserted: the packet has no payload, so that it ends with its options,
 * and eight bytes are free.
 */
static __always_inline int nrw_has_room(const struct nrw_packet *p)
{
	return p->header_len + NRW_OPT_PADDED <= 60;
}

static __always_inline int nrw_grow_ip(struct __sk_buff *skb, const struct nrw_packet *p)
{
	__be16 old, new;

	if (p->key.family == 6) {
		new = bpf_htons(p->l3_len - sizeof(struct ipv6hdr) + NRW_OPT_PADDED);
		return bpf_skb_store_bytes(skb, p->l3 + offsetof(struct ipv6hdr, payload_len), &new, sizeof(new), 0);
	}
	old = bpf_htons(p->l3_len);
	new = bpf_htons(p->l3_len + NRW_OPT_PADDED);
	if (bpf_skb_store_bytes(skb, p->l3 + offsetof(struct iphdr, tot_len), &new, sizeof(new), 0))
		return -1;
	return bpf_l3_csum_replace(skb, p->l3 + offsetof(struct iphdr, check), old, new, sizeof(new));
}

/*
 * Inserts the option in front of the other options, because an END would hide the options behind
 * it. Call this function only for packets without payload for which nrw_has_room() is true.
 */
static __always_inline enum nrw_written nrw_insert(struct __sk_buff *skb, const struct nrw_packet *p, __u16 code)
{
	__u8 added[4 + NRW_OPT_PADDED] = {
		0, 0, 0, 0,
		NRW_OPT_NOP, NRW_OPT_NOP, NRW_OPT_KIND, NRW_OPT_LEN,
		NRW_EXID >> 8, NRW_EXID & 0xff, code >> 8, code & 0xff,
	};
	const __u32 options = p->l4 + sizeof(struct nrw_tcp_header);
	__be16 old_len = bpf_htons(p->l4_len), new_len = bpf_htons(p->l4_len + NRW_OPT_PADDED);
	__be32 word3 = p->word3;
	__u32 len = p->options.len;
	__s64 sum;

	__builtin_memcpy(added, &word3, sizeof(word3));
	added[0] += (NRW_OPT_PADDED / 4) << 4;
	/*
	 * The old options move by eight bytes, an even number, so their part of the sum stays the
	 * same.
	 */
	sum = bpf_csum_diff(&word3, sizeof(word3), (__be32 *)added, sizeof(added), 0);
	if (sum < 0)
		return NRW_UNTOUCHED;
	/*
	 * Cuts off Ethernet padding and makes the whole packet writable, so that the calls below do
	 * not fail.
	 */
	if (bpf_skb_change_tail(skb, p->l3 + p->l3_len + NRW_OPT_PADDED, 0))
		return NRW_UNTOUCHED;

	barrier_var(len);
	if (len && len <= NRW_OPTIONS_MAX - NRW_OPT_PADDED &&
	    bpf_skb_store_bytes(skb, options + NRW_OPT_PADDED, p->options.bytes, len, 0))
		return NRW_BROKEN;
	if (bpf_skb_store_bytes(skb, options, added + 4, NRW_OPT_PADDED, 0) ||
	    bpf_skb_store_bytes(skb, p->l4 + offsetof(struct nrw_tcp_header, offset), added, 1, 0) ||
	    bpf_l4_csum_replace(skb, p->l4 + NRW_TCP_CHECK, 0, sum, 0) ||
	    bpf_l4_csum_replace(skb, p->l4 + NRW_TCP_CHECK, old_len, new_len, BPF_F_PSEUDO_HDR | sizeof(new_len)) ||
	    nrw_grow_ip(skb, p))
		return NRW_BROKEN;
	return NRW_WRITTEN;
}

#endif
