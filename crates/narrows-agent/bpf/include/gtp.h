/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads the packets of subscribers inside GTP-U (3GPP TS 29.281). Packets in other UDP tunnels are only
 * counted.
 *
 * A flow's key does not include the tunnel endpoint id. This id differs by direction and exists only between
 * base station and gateway.
 *
 * The program looks into GTP-U only if the configuration allows it. The reason is that any host can send
 * GTP-U datagrams. Their inner packets can have the addresses of other hosts, and providers do not filter
 * inner packets.
 */
#ifndef NRW_GTP_H
#define NRW_GTP_H

#include "packet.h"

/* Port numbers of IANA. */
#define NRW_PORT_GTP		bpf_htons(2152)
#define NRW_PORT_VXLAN		bpf_htons(4789)
#define NRW_PORT_GENEVE		bpf_htons(6081)

#define NRW_GTP_V1		0x30	/* version 1, protocol type GTP */
#define NRW_GTP_V1_MASK		0xf0
#define NRW_GTP_EXTENDED	0x04	/* extension headers follow */
#define NRW_GTP_OPTIONAL	0x07	/* the four optional bytes are present if one of these flags is set */
#define NRW_GTP_DATA		255	/* message type G-PDU: a datagram of a subscriber */
#define NRW_GTP_EXTENSIONS	4	/* at most this many extension headers are skipped; 5G uses one */

struct nrw_gtp {
	__u8 flags;
	__u8 type;
	__be16 length;		/* number of bytes after this structure */
	__be32 tunnel;
};

/*
 * Returns the offset of the datagram in a G-PDU whose header is at `at`. Returns 0 if there is no datagram,
 * or if too many headers precede it. A wrong offset is harmless, because nrw_read_inner() checks the lengths
 * of the datagram at this offset.
 */
static __always_inline __u32 nrw_skip_gtp(struct __sk_buff *skb, __u32 at, __u8 flags)
{
	struct { __be16 sequence; __u8 number; __u8 next; } optional;
	__u8 words, next;

	at += sizeof(struct nrw_gtp);
	if (!(flags & NRW_GTP_OPTIONAL))
		return at;
	if (bpf_skb_load_bytes(skb, at, &optional, sizeof(optional)))
		return 0;
	at += sizeof(optional);
	next = flags & NRW_GTP_EXTENDED ? optional.next : 0;
	for (int i = 0; i < NRW_GTP_EXTENSIONS && next; i++) {
		/*
		 * An extension header begins with its length in words, and ends with the type of the next
		 * header.
		 */
		if (bpf_skb_load_bytes(skb, at, &words, sizeof(words)) || !words)
			return 0;
		at += words * 4U;
		if (bpf_skb_load_bytes(skb, at - 1, &next, sizeof(next)))
			return 0;
	}
	return next ? 0 : at;
}

/*
 * Looks for a subscriber's datagram in the G-PDU behind a UDP header, and sets `l3` to its offset. All length
 * fields must agree, because an inserted option later changes each of them. Super-packets hold several
 * G-PDUs, so the function does not look into them.
 */
static __always_inline int nrw_open_gtp(struct __sk_buff *skb, struct nrw_packet *p, const struct nrw_udp *udp)
{
	const __u32 header = p->l4 + sizeof(*udp);
	struct nrw_gtp gtp;

	if (p->fragment || skb->gso_size || bpf_ntohs(udp->length) != p->l4_len ||
	    bpf_skb_load_bytes(skb, header, &gtp, sizeof(gtp)))
		return 0;
	if ((gtp.flags & NRW_GTP_V1_MASK) != NRW_GTP_V1 ||
	    bpf_ntohs(gtp.length) + sizeof(*udp) + sizeof(gtp) != p->l4_len)
		return 0;
	if (gtp.type != NRW_GTP_DATA) {
		p->unopened = NRW_OPENED;
		return 0;
	}
	p->tunnel.l3 = p->l3;
	p->tunnel.l4 = p->l4;
	p->tunnel.l3_len = p->l3_len;
	p->tunnel.family = p->key.family;
	p->l3 = nrw_skip_gtp(skb, header, gtp.flags);
	return p->l3 != 0;
}

/*
 * Returns whether a UDP datagram may contain a subscriber's datagram. If so, the caller calls
 * nrw_read_inner() next. The function is not static, so that the verifier checks it only once. It is separate
 * from nrw_read_inner(), because one function for both would need too large a stack.
 */
__noinline int nrw_open_udp(struct __sk_buff *skb, struct nrw_packet *p, int opens_gtp)
{
	struct nrw_udp udp;

	if (!p || p->l4_len < sizeof(udp) || bpf_skb_load_bytes(skb, p->l4, &udp, sizeof(udp)))
		return 0;
	if (udp.dport == NRW_PORT_VXLAN || udp.dport == NRW_PORT_GENEVE)
		p->unopened = NRW_UNOPENED_VXLAN;
	if (udp.dport != NRW_PORT_GTP)
		return 0;
	p->unopened = NRW_UNOPENED_GTP;
	return opens_gtp && nrw_open_gtp(skb, p, &udp);
}

/*
 * If the tunnel's packet contains a TCP segment, makes `p` describe the segment and returns NRW_TCP.
 * Otherwise, returns NRW_UDP.
 */
__noinline int nrw_read_inner(struct __sk_buff *skb, struct nrw_packet *p)
{
	__u32 bytes, packets, end;
	__u8 version;
	int proto;

	if (!p)
		return NRW_UDP;
	end = p->tunnel.l3 + p->tunnel.l3_len;
	bytes = p->bytes;
	packets = p->packets;
	if (bpf_skb_load_bytes(skb, p->l3, &version, sizeof(version)))
		return NRW_UDP;
	__builtin_memset(p->key.saddr, 0, sizeof(p->key.saddr));
	__builtin_memset(p->key.daddr, 0, sizeof(p->key.daddr));
	proto = version >> 4 == 4 ? nrw_read_ipv4(skb, p) : version >> 4 == 6 ? nrw_read_ipv6(skb, p) : -1;
	if (proto == -1 || p->l3 + p->l3_len != end)
		return NRW_UDP;
	if (proto != IPPROTO_TCP) {
		p->unopened = NRW_OPENED;
		return NRW_UDP;
	}
	if (nrw_read_tcp(skb, p) != NRW_TCP) {
		p->bytes = bytes;
		p->packets = packets;
		return NRW_UDP;
	}
	p->unopened = NRW_OPENED;
	p->in_gtp = 1;
	return NRW_TCP;
}

#endif
