/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Changes packets and updates their checksums (RFC 1624). A correct checksum stays correct, and a wrong
 * checksum stays wrong.
 *
 * The kernel's helpers update checksums, because only they know whether the device will complete a checksum
 * (CHECKSUM_PARTIAL). If a function cannot change the packet, it returns NRW_UNTOUCHED, and the packet's
 * contents stay the same. If a helper fails half-way, the function returns NRW_BROKEN, and the packet must be
 * dropped.
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
#define NRW_UDP_LENGTH		4	/* offsets in the UDP header */
#define NRW_UDP_CHECK		6
#define NRW_GTP_LENGTH		2	/* offset in GTP-U's header */
#define NRW_PPPOE_LENGTH	4	/* distance from the length field to the IP header */

/*
 * Adds `sum` to the checksum of a TCP segment in GTP-U. The kernel's helper cannot do this. It assumes that a
 * TCP checksum is the packet's outer checksum. If the device completes the outer checksum (of UDP), the
 * helper would leave the TCP checksum unchanged.
 */
static __always_inline int nrw_add_inner(struct __sk_buff *skb, const struct nrw_packet *p, __u64 sum)
{
	__be16 check;

	if (bpf_skb_load_bytes(skb, p->l4 + NRW_TCP_CHECK, &check, sizeof(check)))
		return -1;
	sum += (__u16)~check;
	sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	check = ~sum;
	return bpf_skb_store_bytes(skb, p->l4 + NRW_TCP_CHECK, &check, sizeof(check), 0);
}

/* Replaces 16 bits at offset `at` of the TCP header. Old and new value are in host order. */
static __always_inline enum nrw_written nrw_rewrite_u16(struct __sk_buff *skb, const struct nrw_packet *p, __u32 at,
							__u16 old, __u16 new)
{
	__be16 value = bpf_htons(new), from = bpf_htons(old), to = value;

	if (old == new)
		return NRW_WRITTEN;
	/* At an odd offset, the two bytes belong to two words of the checksum, so swap them. */
	if (at & 1) {
		from = __builtin_bswap16(from);
		to = __builtin_bswap16(to);
	}
	if (bpf_skb_store_bytes(skb, p->l4 + at, &value, sizeof(value), 0))
		return NRW_UNTOUCHED;
	/*
	 * The outer checksum does not change, because the new inner checksum compensates for the new value.
	 */
	if (p->in_gtp)
		return nrw_add_inner(skb, p, to + (__u16)~from) ? NRW_BROKEN : NRW_WRITTEN;
	return bpf_l4_csum_replace(skb, p->l4 + NRW_TCP_CHECK, from, to, sizeof(to)) ? NRW_BROKEN : NRW_WRITTEN;
}

/*
 * Returns whether the TCP header can grow by eight bytes, for the option and its two NOPs. An insertion also
 * requires a packet without payload.
 */
static __always_inline int nrw_has_room(const struct nrw_packet *p)
{
	return p->header_len + NRW_OPT_PADDED <= 60;
}

/* Adds the option's length to the length in an IP header. */
static __always_inline int nrw_grow_ip(struct __sk_buff *skb, __u32 l3, __u32 l3_len, __u32 family)
{
	__be16 old, new;

	if (family == 6) {
		new = bpf_htons(l3_len - sizeof(struct ipv6hdr) + NRW_OPT_PADDED);
		return bpf_skb_store_bytes(skb, l3 + offsetof(struct ipv6hdr, payload_len), &new, sizeof(new), 0);
	}
	old = bpf_htons(l3_len);
	new = bpf_htons(l3_len + NRW_OPT_PADDED);
	if (bpf_skb_store_bytes(skb, l3 + offsetof(struct iphdr, tot_len), &new, sizeof(new), 0))
		return -1;
	return bpf_l3_csum_replace(skb, l3 + offsetof(struct iphdr, check), old, new, sizeof(new));
}

/* Adds the option's length to a length field. */
static __always_inline int nrw_grow_field(struct __sk_buff *skb, __u32 at)
{
	__be16 length;

	if (bpf_skb_load_bytes(skb, at, &length, sizeof(length)))
		return -1;
	length = bpf_htons(bpf_ntohs(length) + NRW_OPT_PADDED);
	return bpf_skb_store_bytes(skb, at, &length, sizeof(length), 0);
}

/*
 * Updates the lengths and checksums of the outer headers after the inner IP packet has grown by 8 bytes.
 *
 * UDP's checksum covers the inner packet. The TCP checksum compensates every change of the TCP segment and
 * its pseudo header. The checksum of an inner IPv4 header compensates every change of this header. Only these
 * lengths change the sum of the UDP datagram:
 *
 * - the length in the inner pseudo header: 8 less, because the TCP checksum compensates this length, but the
 *   packet does not contain it
 * - the lengths in the headers of UDP, of GTP-U and of an inner IPv6 packet: 8 more each
 * - the length in the outer pseudo header: 8 more
 *
 * A UDP datagram without a checksum stays without one (BPF_F_MARK_MANGLED_0).
 */
static __always_inline int nrw_grow_outside(struct __sk_buff *skb, const struct nrw_packet *p)
{
	const __u64 flags = BPF_F_MARK_MANGLED_0 | sizeof(__be16);
	__u32 l3, check, more = NRW_OPT_PADDED;

	l3 = p->l3;
	if (p->in_gtp) {
		l3 = p->tunnel.l3;
		check = p->tunnel.l4 + NRW_UDP_CHECK;
		if (p->key.family == 6)
			more += NRW_OPT_PADDED;
		if (nrw_grow_field(skb, p->tunnel.l4 + sizeof(struct nrw_udp) + NRW_GTP_LENGTH) ||
		    nrw_grow_field(skb, p->tunnel.l4 + NRW_UDP_LENGTH) ||
		    bpf_l4_csum_replace(skb, check, 0, bpf_htons(more), flags) ||
		    bpf_l4_csum_replace(skb, check, 0, bpf_htons(NRW_OPT_PADDED), BPF_F_PSEUDO_HDR | flags) ||
		    nrw_grow_ip(skb, l3, p->tunnel.l3_len, p->tunnel.family))
			return -1;
	}
	return p->in_pppoe ? nrw_grow_field(skb, l3 - NRW_PPPOE_LENGTH) : 0;
}

/*
 * Inserts the option in front of the other options, because a receiver does not read options behind an END.
 * Call this function only if nrw_has_room() is true and the packet has no payload.
 */
static __always_inline enum nrw_written nrw_insert(struct __sk_buff *skb, const struct nrw_packet *p, __u16 code)
{
	__u8 added[4 + NRW_OPT_PADDED] = {
		0, 0, 0, 0,
		NRW_OPT_NOP, NRW_OPT_NOP, NRW_OPT_KIND, NRW_OPT_LEN,
		NRW_EXID >> 8, NRW_EXID & 0xff, code >> 8, code & 0xff,
	};
	const __u32 options = p->l4 + sizeof(struct nrw_tcp_header), check = p->l4 + NRW_TCP_CHECK;
	__be16 old_len = bpf_htons(p->l4_len), new_len = bpf_htons(p->l4_len + NRW_OPT_PADDED);
	__be32 word3 = p->word3;
	__u32 len = p->options.len;
	__s64 sum;

	__builtin_memcpy(added, &word3, sizeof(word3));
	added[0] += (NRW_OPT_PADDED / 4) << 4;
	/*
	 * The old options move by eight bytes. This is an even number, so their part of the checksum stays
	 * the same.
	 */
	sum = bpf_csum_diff(&word3, sizeof(word3), (__be32 *)added, sizeof(added), 0);
	if (sum < 0)
		return NRW_UNTOUCHED;
	/* Cut off Ethernet padding, and make the whole packet writable, so that the next calls succeed. */
	if (bpf_skb_change_tail(skb, p->l3 + p->l3_len + NRW_OPT_PADDED, 0))
		return NRW_UNTOUCHED;

	/*
	 * Without barrier_var(), the compiler would merge the two conditions into one comparison of `len - 1`. From
	 * it, the verifier of Linux 6.12 does not learn the bounds of `len`.
	 */
	if (len) {
		barrier_var(len);
		if (len <= NRW_OPTIONS_MAX - NRW_OPT_PADDED &&
		    bpf_skb_store_bytes(skb, options + NRW_OPT_PADDED, p->options.bytes, len, 0))
			return NRW_BROKEN;
	}
	if (bpf_skb_store_bytes(skb, options, added + 4, NRW_OPT_PADDED, 0) ||
	    bpf_skb_store_bytes(skb, p->l4 + offsetof(struct nrw_tcp_header, offset), added, 1, 0) ||
	    nrw_grow_ip(skb, p->l3, p->l3_len, p->key.family))
		return NRW_BROKEN;
	if (p->in_gtp) {
		if (nrw_add_inner(skb, p, sum + new_len + (__u16)~old_len))
			return NRW_BROKEN;
	} else if (bpf_l4_csum_replace(skb, check, 0, sum, 0) ||
		   bpf_l4_csum_replace(skb, check, old_len, new_len, BPF_F_PSEUDO_HDR | sizeof(new_len))) {
		return NRW_BROKEN;
	}
	return (p->in_gtp | p->in_pppoe) && nrw_grow_outside(skb, p) ? NRW_BROKEN : NRW_WRITTEN;
}

#endif
