/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Marks one data packet of a flow per RTT, at the egress of interfaces. The mark states whether the
 * application limits the flow (BRF-100). If the flow's feedback stopped or has not begun, each of its
 * data packets carries the mark. If a flow designates packets, each of its data packets carries a mark while
 * the sender applies a rate to the flow. A switch that keeps no flows recognizes these packets by the marks
 * (BDR-42).
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

	/* forwarded packets have no socket; TIME_WAIT and request sockets have no storage */
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
	 * A flow that designates packets sends no marks while it has no rate. Without a rate, the flow's data
	 * counts as other TCP, and the flow's reports show that the sender can apply rates.
	 */
	if (each ? conn->mode != NRW_MODE_RATED : !conn->mark)
		return NRW_TCX_NEXT;
	if (nrw_segment_read(skb, &seg) || !seg.payload || seg.padding != NRW_NOP_NOP)
		return NRW_TCX_NEXT;
	/*
	 * The packet may be a tunnel's packet around a packet of the socket. In that case, the ports of the
	 * outer packet are not the ports of the socket.
	 */
	if (seg.sport != bpf_htons(sk->src_port))
		return NRW_TCX_NEXT;
	/* until the first RTT has ended, the application does not count as a limit of the flow */
	mark = conn->mark ? conn->mark : NRW_MARK_UNLIMITED;
	/*
	 * A flow without feedback keeps its mark, so that a switch that has just started recognizes the
	 * flow by the first data packet that it sees. The mark is read without the socket's lock, because
	 * a mark that is sent twice or lost does no harm.
	 */
	if (conn->mode != NRW_MODE_ORPHANED && !each)
		conn->mark = 0;
	if (!nrw_padding_write(skb, &seg, mark))
		nrw_count(marked);
	return NRW_TCX_NEXT;
}

#endif
