/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Gives the first segments of a connection departure times, because the kernel does not pace them
 * (NRW_UNPACED). The qdisc fq holds a packet until its departure time. Other qdiscs ignore this time, so the
 * program sets it only if fq has seen packets of the connection. In this case, fq has set SK_PACING_FQ.
 */
#ifndef NRW_DEPART_H
#define NRW_DEPART_H

/* The results of the program: it drops no packet. */
#define NRW_PASS	1

/*
 * Longest time for which a segment waits. TCP starts the retransmission timer when it passes the segment to
 * fq. The timer runs for at least 200 ms plus the RTT, so a segment that waits longer would be sent twice.
 */
#define NRW_HOLD_NS	100000000

/*
 * Returns the time between the last segment and the next one, at the pacing rate. As in
 * tcp_update_skb_after_send(), a late segment shortens this time, but at most by half.
 *
 * TCP passes up to five segments to fq before they depart. For the segments after the tenth, TCP's own
 * departure times are therefore too early, so these segments wait as well. Each of them waits a little less
 * than the one before it, until TCP's own departure times are late enough. A flow with few segments per RTT
 * does not need this correction, because nrw_first_pace() sets the time of its eleventh segment.
 */
static __always_inline __u64 nrw_departure_gap(const struct nrw_conn *conn, const struct tcp_sock *tp,
					       __u64 payload, __u64 late)
{
	__u64 gap = payload * 1000000000 / nrw_max(((const struct sock *)tp)->sk_pacing_rate, 1);

	if (tp->data_segs_out >= NRW_UNPACED) {
		if (nrw_is_sparse(conn, tp, conn->granted))
			return 0;
		gap -= gap / 8;
	}
	return gap - nrw_min(gap / 2, late);
}

static __always_inline void nrw_schedule(struct __sk_buff *skb, struct nrw_conn *conn, const struct tcp_sock *tp)
{
	const struct sock *sk = (const struct sock *)tp;
	__u32 header = nrw_packet_bytes(tp) - tp->mss_cache;
	__u64 now = skb->tstamp;	/* TCP's own departure time */
	__u64 depart, late;
	int has_data;

	/* Usual case: the kernel paces the connection. */
	if (tp->data_segs_out > NRW_UNPACED && conn->depart_ns <= now)
		return;
	has_data = tp->data_segs_out != conn->departed;
	/* ACKs need not wait. A FIN must not overtake data. */
	if (!has_data && sk->__sk_common.skc_state == NRW_TCP_ESTABLISHED)
		return;
	depart = nrw_min(nrw_max(conn->depart_ns, now), now + NRW_HOLD_NS);
	if (has_data) {
		late = conn->depart_ns ? depart - nrw_min(conn->depart_ns, depart) : 0;
		conn->departed = tp->data_segs_out;
		conn->depart_ns = depart + nrw_departure_gap(conn, tp, skb->len > header ? skb->len - header : 0, late);
	}
	if (depart > now && sk->sk_pacing_status == SK_PACING_FQ) {
		skb->tstamp = depart;
		nrw_count(held);
	}
}

SEC("cgroup_skb/egress")
int nrw_depart(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	struct nrw_conn *conn;
	struct tcp_sock *tp;

	/* Only connections of this sender have storage. */
	if (!sk)
		return NRW_PASS;
	sk = bpf_sk_fullsock(sk);
	if (!sk)
		return NRW_PASS;
	conn = bpf_sk_storage_get(&nrw_conns, sk, NULL, 0);
	if (!conn || conn->mode != NRW_MODE_RATED)
		return NRW_PASS;
	tp = bpf_skc_to_tcp_sock(sk);
	if (tp)
		nrw_schedule(skb, conn, tp);
	return NRW_PASS;
}

#endif
