/* SPDX-License-Identifier: GPL-2.0-only */
/* Saying whether the application limits the flow (BRF-100), on one data packet per RTT, where data leaves. */
#ifndef NRW_MARK_H
#define NRW_MARK_H

SEC("tcx/egress")
int nrw_mark(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	struct nrw_segment seg = {};
	struct nrw_conn *conn;
	__u16 mark;

	/* a bridge's or router's packets have no socket, and TIME_WAIT and request sockets no storage */
	if (!sk)
		return NRW_TCX_NEXT;
	sk = bpf_sk_fullsock(sk);
	if (!sk)
		return NRW_TCX_NEXT;
	conn = bpf_sk_storage_get(&nrw_conns, sk, NULL, 0);
	if (!conn || !conn->mark)
		return NRW_TCX_NEXT;
	if (nrw_segment_read(skb, &seg) || !seg.payload || seg.padding != NRW_NOP_NOP)
		return NRW_TCX_NEXT;
	/* On an interface inside another the packet may be a tunnel's: then its ports are not the socket's. */
	if (seg.sport != bpf_htons(sk->src_port))
		return NRW_TCX_NEXT;
	mark = conn->mark;
	/* Lent to this packet without the socket's lock; a mark said twice or lost does no harm. */
	conn->mark = 0;
	if (!nrw_padding_write(skb, &seg, mark))
		nrw_count(marked);
	return NRW_TCX_NEXT;
}

#endif
