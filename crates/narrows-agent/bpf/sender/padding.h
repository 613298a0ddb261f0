/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * In the paper's wire format, the rate replaces the two NOPs before an ACK's timestamps. Parsers of TCP
 * options would misread the rate. At the ingress, the program therefore reads the rate and restores the NOPs.
 */
#ifndef NRW_PADDING_H
#define NRW_PADDING_H

/*
 * Passes the rate of an ACK to the state of the ACK's socket. The socket lookup takes the addresses from the
 * IP header, where the two addresses are adjacent.
 */
static __always_inline void nrw_padding_deliver(struct __sk_buff *skb, const struct nrw_segment *seg)
{
	struct bpf_sock_tuple tuple = {};
	struct nrw_conn *conn;
	struct bpf_sock *sk;
	__u32 len;

	if (seg->family == 4) {
		if (bpf_skb_load_bytes(skb, NRW_ETH_LEN + 12, &tuple.ipv4.saddr, 8))
			return;
		tuple.ipv4.sport = seg->sport;
		tuple.ipv4.dport = seg->dport;
		len = sizeof(tuple.ipv4);
	} else {
		if (bpf_skb_load_bytes(skb, NRW_ETH_LEN + 8, &tuple.ipv6.saddr, 32))
			return;
		tuple.ipv6.sport = seg->sport;
		tuple.ipv6.dport = seg->dport;
		len = sizeof(tuple.ipv6);
	}
	sk = bpf_sk_lookup_tcp(skb, &tuple, len, BPF_F_CURRENT_NETNS, 0);
	if (!sk)
		return;
	conn = bpf_sk_storage_get(&nrw_conns, sk, NULL, 0);
	if (conn && conn->possible && nrw_is_rate(seg->padding))
		conn->word = NRW_WORD_RATE | seg->padding;
	bpf_sk_release(sk);
}

SEC("tcx/ingress")
int nrw_restore(struct __sk_buff *skb)
{
	struct nrw_segment seg = {};

	/*
	 * Data packets may have a mark in the padding. Leave it there, because parsers skip it as an unknown
	 * option.
	 */
	if (nrw_segment_read(skb, &seg) || seg.payload || seg.padding == NRW_NOP_NOP ||
	    (seg.flags & (NRW_TCP_SYN | NRW_TCP_ACK)) != NRW_TCP_ACK)
		return NRW_TCX_NEXT;
	nrw_padding_deliver(skb, &seg);
	if (!nrw_padding_write(skb, &seg, NRW_NOP_NOP))
		nrw_count(restored);
	return NRW_TCX_NEXT;
}

#endif
