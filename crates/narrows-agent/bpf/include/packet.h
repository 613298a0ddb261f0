/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads the contents of a packet once, into a structure. The code uses no pointers into the packet, because
 * each write would invalidate them, and the program writes to half of the packets. bpf_skb_load_bytes also reads
 * the non-linear parts of a packet.
 */
#ifndef NRW_PACKET_H
#define NRW_PACKET_H

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include "maps.h"
#include "tcp_options.h"

#define NRW_VLAN_TAGS		2	/* largest number of tags (QinQ), including one that the driver has moved out */

/*
 * The header of a PPPoE session has version 1, type 1 and code 0 (RFC 2516). PPP protocol numbers from 0x4000
 * on are not for datagrams (RFC 1661).
 */
#define NRW_PPPOE_DATA		bpf_htons(0x1100)
#define NRW_PPP_IPV4		bpf_htons(0x0021)
#define NRW_PPP_IPV6		bpf_htons(0x0057)
#define NRW_PPP_CONTROL		0x4000

#define NRW_IPV6_HEADERS	6	/* largest number of extension headers that are skipped; real packets have fewer */

/*
 * Extension headers that are skipped (RFC 8200, RFC 6275). AH and ESP sign or encrypt the headers, so packets
 * with AH or ESP are not changed.
 */
#define NRW_NEXT_HOP_BY_HOP	0
#define NRW_NEXT_ROUTING	43
#define NRW_NEXT_FRAGMENT	44
#define NRW_NEXT_DESTINATION	60
#define NRW_NEXT_MOBILITY	135

/* IANA's protocol numbers of tunnels. */
#define NRW_NEXT_IPV4		4
#define NRW_NEXT_IPV6		41
#define NRW_NEXT_GRE		47
#define NRW_NEXT_ESP		50
#define NRW_NEXT_AH		51

#define NRW_TCP_FIN		0x01
#define NRW_TCP_SYN		0x02
#define NRW_TCP_RST		0x04
#define NRW_TCP_ACK		0x10

enum nrw_kind {
	NRW_OTHER,	/* a packet that this program does not handle */
	NRW_MALFORMED,	/* lengths contradict each other */
	NRW_TCP,
	NRW_UDP,
};

/* The fixed part of a TCP header (RFC 9293), without bit fields. */
struct nrw_tcp_header {
	__be16 sport;
	__be16 dport;
	__be32 seq;
	__be32 ack;
	__u8 offset;		/* data offset in the upper half */
	__u8 flags;
	__be16 window;
	__be16 check;
	__be16 urgent;
};

struct nrw_udp {
	__be16 sport;
	__be16 dport;
	__be16 length;
	__be16 check;
};

struct nrw_pppoe {
	__be16 version_code;
	__be16 session;
	__be16 length;		/* number of bytes after this field, including `protocol` */
	__be16 protocol;
};

/* The outer IP and UDP headers of a GTP-U packet. The fields of nrw_packet describe the inner packet. */
struct nrw_tunnel {
	__u32 l3;
	__u32 l4;
	__u32 l3_len;
	__u32 family;
};

struct nrw_packet {
	struct nrw_key key __attribute__((aligned(8)));	/* in the packet's own direction */
	__u32 l3;		/* offset of the IP header */
	__u32 l4;		/* offset of the transport header */
	__u32 l3_len;		/* length of the IP packet in the buffer; a super-packet (GSO) is one packet */
	__u32 l4_len;
	__u32 bytes;		/* L3 bytes on the wire, over all segments */
	__u32 packets;		/* segments */
	__u32 payload;		/* TCP payload bytes */
	__u32 seq;
	__u32 ack;
	__u8 flags;
	__u8 header_len;	/* of TCP, 20 to 60 */
	__u8 fragment;		/* this is a fragment, so its length is not the datagram's */
	__u8 unopened;		/* enum nrw_unopened */
	__u8 in_pppoe;		/* a PPPoE header precedes the IP header */
	__u8 in_gtp;		/* `tunnel` is valid */
	__u16 vlan;		/* VLAN id; outer ^ inner << 4 */
	__be32 word3;		/* data offset, flags and window as they are in the packet */
	struct nrw_tunnel tunnel;
	struct nrw_options options;
};

/*
 * Parses the Ethernet header and the VLAN tags. A tag may be in the buffer. The driver may also have moved it
 * from the buffer to skb->vlan_tci. Returns the EtherType in network order. If there are more than
 * NRW_VLAN_TAGS tags, this is the EtherType of a VLAN tag.
 */
static __always_inline __be16 nrw_read_link(struct __sk_buff *skb, struct nrw_packet *p, int vlan_separates)
{
	struct { __be16 tci; __be16 type; } tag;
	__be16 type = (__be16)skb->protocol;
	__u16 outer = 0, inner = 0, tags = 0;

	p->l3 = ETH_HLEN;
	if (skb->vlan_present) {
		outer = skb->vlan_tci & 0x0fff;
		tags = 1;
	}
#pragma unroll
	for (int i = 0; i < NRW_VLAN_TAGS; i++) {
		if (type != bpf_htons(ETH_P_8021Q) && type != bpf_htons(ETH_P_8021AD))
			break;
		if (bpf_skb_load_bytes(skb, p->l3, &tag, sizeof(tag)))
			return 0;
		if (tags++ == 0)
			outer = bpf_ntohs(tag.tci) & 0x0fff;
		else
			inner = bpf_ntohs(tag.tci) & 0x0fff;
		type = tag.type;
		p->l3 += sizeof(tag);
	}
	p->vlan = outer ^ inner << 4;
	p->key.vlan = vlan_separates ? p->vlan : 0;
	/* If the driver has moved a tag out of the buffer, the loop may have read one tag too many. */
	return tags > NRW_VLAN_TAGS ? bpf_htons(ETH_P_8021Q) : type;
}

/*
 * Handles a frame that is not plain IP. If it is a PPPoE session's frame with an IP packet, returns the
 * EtherType of this packet. Otherwise returns 0. A flow's key does not include the session id, because the
 * flow's ACKs may use another port without PPPoE.
 */
static __always_inline __be16 nrw_read_session(struct __sk_buff *skb, struct nrw_packet *p, __be16 type)
{
	struct nrw_pppoe pppoe;
	__be16 said = 0;
	__u32 v4;

	if (type == bpf_htons(ETH_P_8021Q) || type == bpf_htons(ETH_P_8021AD))
		p->unopened = NRW_UNOPENED_VLANS;
	if (type == bpf_htons(ETH_P_MPLS_UC) || type == bpf_htons(ETH_P_MPLS_MC))
		p->unopened = NRW_UNOPENED_MPLS;
	if (type != bpf_htons(ETH_P_PPP_SES) || bpf_skb_load_bytes(skb, p->l3, &pppoe, sizeof(pppoe)) ||
	    pppoe.version_code != NRW_PPPOE_DATA)
		return 0;
	v4 = pppoe.protocol == NRW_PPP_IPV4;
	if (!v4 && pppoe.protocol != NRW_PPP_IPV6) {
		if (bpf_ntohs(pppoe.protocol) < NRW_PPP_CONTROL)
			p->unopened = NRW_UNOPENED_PPPOE;
		return 0;
	}
	p->l3 += sizeof(pppoe);
	/*
	 * The length in the PPPoE header must include the whole datagram. Super-packets may have no valid
	 * length, so they are not checked.
	 */
	bpf_skb_load_bytes(skb, p->l3 + (v4 ? offsetof(struct iphdr, tot_len) : offsetof(struct ipv6hdr, payload_len)),
			   &said, sizeof(said));
	if (!skb->gso_size && bpf_ntohs(said) + (v4 ? 0 : sizeof(struct ipv6hdr)) + sizeof(pppoe.protocol) >
				      bpf_ntohs(pppoe.length)) {
		p->unopened = NRW_UNOPENED_PPPOE;
		return 0;
	}
	p->in_pppoe = 1;
	return v4 ? bpf_htons(ETH_P_IP) : bpf_htons(ETH_P_IPV6);
}

/*
 * Sets the lengths of the IP packet. The buffer must hold at least as many bytes as the IP header states.
 * Ethernet padding may follow these bytes. If a super-packet is too long for the length field, the field is
 * zero (BIG TCP).
 */
static __always_inline int nrw_set_lengths(struct __sk_buff *skb, struct nrw_packet *p, __u32 said, __u32 header)
{
	__u32 there = skb->len - p->l3;

	p->l3_len = said ? said : there;
	return !said && !skb->gso_size ? -1 : p->l3_len < header || p->l3_len > there ? -1 : 0;
}

/*
 * Returns the transport protocol, -1 for contradictory lengths, or -2 for a fragment without a transport
 * header. For a UDP fragment, returns IPPROTO_UDP even if it has no UDP header.
 */
static __always_inline int nrw_read_ipv4(struct __sk_buff *skb, struct nrw_packet *p)
{
	struct iphdr ip;
	__u32 header;
	__u16 fragment;

	if (bpf_skb_load_bytes(skb, p->l3, &ip, sizeof(ip)))
		return -1;
	header = ip.ihl * 4;
	if (ip.version != 4 || header < sizeof(ip) || nrw_set_lengths(skb, p, bpf_ntohs(ip.tot_len), header))
		return -1;
	p->key.family = 4;
	__builtin_memcpy(p->key.saddr, &ip.saddr, sizeof(ip.saddr));
	__builtin_memcpy(p->key.daddr, &ip.daddr, sizeof(ip.daddr));
	p->l4 = p->l3 + header;
	p->l4_len = p->l3_len - header;
	fragment = bpf_ntohs(ip.frag_off);
	p->fragment = (fragment & 0x3fff) != 0;
	if (fragment & 0x1fff)
		return ip.protocol == IPPROTO_UDP ? IPPROTO_UDP : -2;
	return ip.protocol;
}

static __always_inline int nrw_read_ipv6(struct __sk_buff *skb, struct nrw_packet *p)
{
	struct { __u8 next; __u8 len; __be16 fragment; __be32 id; } extension;
	struct ipv6hdr ip;
	__u32 header = sizeof(ip), said;
	__u8 next;

	if (bpf_skb_load_bytes(skb, p->l3, &ip, sizeof(ip)))
		return -1;
	said = bpf_ntohs(ip.payload_len);
	if (ip.version != 6 || nrw_set_lengths(skb, p, said ? said + header : 0, header))
		return -1;
	p->key.family = 6;
	__builtin_memcpy(p->key.saddr, &ip.saddr, sizeof(ip.saddr));
	__builtin_memcpy(p->key.daddr, &ip.daddr, sizeof(ip.daddr));
	next = ip.nexthdr;
	for (int i = 0; i < NRW_IPV6_HEADERS; i++) {
		if (next != NRW_NEXT_HOP_BY_HOP && next != NRW_NEXT_ROUTING && next != NRW_NEXT_FRAGMENT &&
		    next != NRW_NEXT_DESTINATION && next != NRW_NEXT_MOBILITY)
			break;
		if (header + sizeof(extension) > p->l3_len ||
		    bpf_skb_load_bytes(skb, p->l3 + header, &extension, sizeof(extension)))
			return -1;
		if (next == NRW_NEXT_FRAGMENT) {
			p->fragment |= (extension.fragment & bpf_htons(0xfff9)) != 0;
			if (extension.fragment & bpf_htons(0xfff8))
				return extension.next == IPPROTO_UDP ? IPPROTO_UDP : -2;
			header += sizeof(extension);
		} else {
			header += (extension.len + 1U) * 8;
		}
		next = extension.next;
	}
	if (header > p->l3_len)
		return -1;
	p->l4 = p->l3 + header;
	p->l4_len = p->l3_len - header;
	return next;
}

#define NRW_PADDED	64		/* shortest tagged Ethernet frame; only frames up to this length have padding */

/*
 * Sets the number of segments and the bytes on the wire. A super-packet leaves as several segments, and each
 * of them has a copy of the headers. In frames longer than NRW_PADDED, bytes behind the datagram are
 * included: a bridge forwards them, so they take time on the link.
 */
static __always_inline void nrw_count_segments(struct __sk_buff *skb, struct nrw_packet *p, __u32 payload)
{
	__u32 size = skb->gso_size, there = skb->len - p->l3;

	p->packets = size && payload > size ? (payload + size - 1) / size : 1;
	p->bytes = p->l3_len + (p->packets - 1) * (p->l3_len - payload);
	if (!size && skb->len > NRW_PADDED && there > p->l3_len)
		p->bytes = there;
}

/* Returns an enum nrw_kind. */
static __always_inline int nrw_read_tcp(struct __sk_buff *skb, struct nrw_packet *p)
{
	struct nrw_tcp_header tcp;

	if (p->l4_len < sizeof(tcp) || bpf_skb_load_bytes(skb, p->l4, &tcp, sizeof(tcp)))
		return NRW_MALFORMED;
	p->header_len = (tcp.offset >> 4) * 4;
	if (p->header_len < sizeof(tcp) || p->header_len > p->l4_len)
		return NRW_MALFORMED;
	p->key.sport = tcp.sport;
	p->key.dport = tcp.dport;
	p->key.proto = IPPROTO_TCP;
	p->flags = tcp.flags;
	p->seq = bpf_ntohl(tcp.seq);
	p->ack = bpf_ntohl(tcp.ack);
	p->payload = p->l4_len - p->header_len;
	__builtin_memcpy(&p->word3, &tcp.offset, sizeof(p->word3));
	nrw_count_segments(skb, p, p->payload);
	return nrw_read_options(skb, p->l4 + sizeof(tcp), p->header_len - sizeof(tcp), &p->options) ? NRW_MALFORMED : NRW_TCP;
}

static __always_inline __u8 nrw_tunnel_of(int proto)
{
	switch (proto) {
	case NRW_NEXT_IPV4:
	case NRW_NEXT_IPV6:
		return NRW_UNOPENED_IP;
	case NRW_NEXT_GRE:
		return NRW_UNOPENED_GRE;
	case NRW_NEXT_ESP:
	case NRW_NEXT_AH:
		return NRW_UNOPENED_IPSEC;
	default:
		return NRW_OPENED;
	}
}

/*
 * Reads the needed fields of a packet into a zeroed structure. The function is not static, so the verifier
 * checks it only once. If it were static, the verifier would check the rest of the caller again for each path
 * through this function.
 */
__noinline int nrw_read_packet(struct __sk_buff *skb, struct nrw_packet *p, int vlan_separates)
{
	__be16 type;
	int proto;

	if (!p)
		return NRW_OTHER;
	type = nrw_read_link(skb, p, vlan_separates);
	if (type != bpf_htons(ETH_P_IP) && type != bpf_htons(ETH_P_IPV6))
		type = nrw_read_session(skb, p, type);
	if (skb->len <= p->l3)
		return NRW_OTHER;
	if (type == bpf_htons(ETH_P_IP))
		proto = nrw_read_ipv4(skb, p);
	else if (type == bpf_htons(ETH_P_IPV6))
		proto = nrw_read_ipv6(skb, p);
	else
		return NRW_OTHER;
	if (proto == IPPROTO_TCP)
		return nrw_read_tcp(skb, p);
	if (proto == -1)
		return NRW_MALFORMED;
	if (proto == IPPROTO_UDP) {
		nrw_count_segments(skb, p, p->l4_len > 8 ? p->l4_len - 8 : 0);
		return NRW_UDP;
	}
	p->unopened = nrw_tunnel_of(proto);
	return NRW_OTHER;
}

static __always_inline void nrw_reverse(struct nrw_key *to, const struct nrw_key *from)
{
	__builtin_memcpy(to->saddr, from->daddr, sizeof(to->saddr));
	__builtin_memcpy(to->daddr, from->saddr, sizeof(to->daddr));
	to->sport = from->dport;
	to->dport = from->sport;
	to->vlan = from->vlan;
	to->family = from->family;
	to->proto = from->proto;
}

#endif
