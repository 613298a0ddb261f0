/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Marks data packets at the egress of interfaces. A mark states whether the application limits the flow
 * (BRF-100):
 *
 * - Usually, one data packet per RTT carries a mark.
 * - While a flow gets no feedback, each of its data packets carries a mark.
 * - If a flow designates packets, each of its data packets carries a mark while the sender applies a rate to
 *   the flow. A switch that keeps no flows recognizes these packets by their marks (BDR-42).
 */
#ifndef NRW_MARK_H
#define NRW_MARK_H

SEC("tcx/egress")
int nrw_mark(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	struct nrw_segment seg = {};
	struct nrw_conn *conn;
	__u16 mark;
	int each;

	/* Forwarded packets have no socket. TIME_WAIT and request sockets have no storage. */
	if (!sk)
		return NRW_TCX_NEXT;
	sk = bpf_sk_fullsock(sk);
	if (!sk)
		return NRW_TCX_NEXT;
	conn = bpf_sk_storage_get(&nrw_conns, sk, NULL, 0);
	if (!conn)
		return NRW_TCX_NEXT;
	each = nrw_designates(conn);
	/*
	 * If a flow designates packets but has no rate, it sends no marks, and the switch treats its data as
	 * other TCP. It needs no marks, because its reports already show that the sender can apply rates.
	 */
	if (each ? conn->mode != NRW_MODE_RATED : !conn->mark)
		return NRW_TCX_NEXT;
	if (nrw_segment_read(skb, &seg) || !seg.payload || seg.padding != NRW_NOP_NOP)
		return NRW_TCX_NEXT;
	/*
	 * The packet of the socket may be inside a tunnel's packet. In this case, the outer source port
	 * differs from the socket's port.
	 */
	if (seg.sport != bpf_htons(sk->src_port))
		return NRW_TCX_NEXT;
	/* Until the first RTT has ended, assume that the application does not limit the flow. */
	mark = conn->mark ? conn->mark : NRW_MARK_UNLIMITED;
	/*
	 * A flow without feedback keeps its mark. A switch that has just started then recognizes the flow by
	 * any data packet. The mark is read without the socket's lock, because a repeated or lost mark does
	 * no harm.
	 */
	if (conn->mode != NRW_MODE_ORPHANED && !each)
		conn->mark = 0;
	if (!nrw_padding_write(skb, &seg, mark))
		nrw_count(marked);
	return NRW_TCX_NEXT;
}

#endif
