/* SPDX-License-Identifier: GPL-2.0-only */
/* Parses TCP segments on Ethernet interfaces, for the traffic control programs. */
#ifndef NRW_SEGMENT_H
#define NRW_SEGMENT_H

/* The value of TCX_NEXT, which is in the user-space headers since Linux 6.6. */
#define NRW_TCX_NEXT	(-1)

#define NRW_ETH_P_IP	0x0800
#define NRW_ETH_P_IPV6	0x86DD
#define NRW_ETH_LEN	14
#define NRW_NOPS	20	/* offset in the TCP header where options begin */
#define NRW_CHECK	16
/*
 * After the handshake, the options of Linux's segments begin with two NOPs and the timestamp option
 * (tcp_options_write()). This value is the timestamp option's kind and length. If it follows the first two
 * bytes, these bytes are padding.
 */
#define NRW_TS_KIND_LEN	0x080A

struct nrw_segment {
	__u32 at;		/* offset of the TCP header */
	__u32 payload;
	__be16 sport;
	__be16 dport;
	__u16 padding;		/* the two bytes before the timestamps */
	__u8 family;		/* 4 or 6 */
	__u8 flags;
};

/*
 * Reads the segment into `seg`. Returns 0 if the packet is a TCP segment with timestamps in Linux's layout.
 * Does not recognise packets with IPv6 extension headers, or packets whose VLAN tag is still in the packet
 * data. To mark packets of a VLAN whose tags are in the packet data, attach the program to the VLAN's own
 * interface. bpf_skb_load_bytes() checks all bounds and also reads paged packets.
 */
static __always_inline int nrw_segment_read(struct __sk_buff *skb, struct nrw_segment *seg)
{
	struct {
		__be16 sport, dport;
		__be32 seq, ack;
		__u8 doff, flags;
		__be16 window, check, urgent;
		__be16 padding, ts;
	} tcp;
	__u8 ip[40];
	__u32 header;

	if (skb->protocol == bpf_htons(NRW_ETH_P_IP)) {
		if (bpf_skb_load_bytes(skb, NRW_ETH_LEN, ip, 20) || ip[0] >> 4 != 4 || ip[9] != IPPROTO_TCP)
			return -1;
		/* Only the first fragment has a TCP header. */
		if ((ip[6] & 0x1f) || ip[7])
			return -1;
		header = (ip[0] & 0x0f) * 4;
		seg->family = 4;
	} else if (skb->protocol == bpf_htons(NRW_ETH_P_IPV6)) {
		if (bpf_skb_load_bytes(skb, NRW_ETH_LEN, ip, 40) || ip[0] >> 4 != 6 || ip[6] != IPPROTO_TCP)
			return -1;
		header = 40;
		seg->family = 6;
	} else {
		return -1;
	}
	seg->at = NRW_ETH_LEN + header;
	if (bpf_skb_load_bytes(skb, seg->at, &tcp, sizeof(tcp)))
		return -1;
	header = (tcp.doff >> 4) * 4;
	if (header < NRW_NOPS + 12 || tcp.ts != bpf_htons(NRW_TS_KIND_LEN))
		return -1;
	/*
	 * Ethernet pads small packets, so take the payload from the IP length. Super-packets (BIG TCP) may
	 * have no IP length.
	 */
	if (skb->gso_segs > 1)
		seg->payload = 1;
	else if (seg->family == 4)
		seg->payload = ((__u32)ip[2] << 8 | ip[3]) - (seg->at - NRW_ETH_LEN) - header;
	else
		seg->payload = ((__u32)ip[4] << 8 | ip[5]) - header;
	seg->sport = tcp.sport;
	seg->dport = tcp.dport;
	seg->padding = bpf_ntohs(tcp.padding);
	seg->flags = tcp.flags;
	return 0;
}

/*
 * Overwrites the padding. bpf_l4_csum_replace() handles every state of the checksum: with CHECKSUM_PARTIAL,
 * the field has only the sum of the pseudo header, and the helper leaves it unchanged.
 */
static __always_inline int nrw_padding_write(struct __sk_buff *skb, const struct nrw_segment *seg, __u16 value)
{
	__be16 from = bpf_htons(seg->padding);
	__be16 to = bpf_htons(value);

	if (bpf_l4_csum_replace(skb, seg->at + NRW_CHECK, from, to, sizeof(to)))
		return -1;
	return bpf_skb_store_bytes(skb, seg->at + NRW_NOPS, &to, sizeof(to), 0);
}

#endif
