/* SPDX-License-Identifier: GPL-2.0-only */
/* The cgroup's sock_ops program. The program asks for feedback, and reads the feedback that arrives. */
#ifndef NRW_FEEDBACK_H
#define NRW_FEEDBACK_H

#include "accept.h"

/*
 * Returns the storage of the callback's socket. For a SYN-ACK, returns NULL, because a request socket has no
 * storage.
 */
static __always_inline struct nrw_conn *nrw_conn_of(struct bpf_sock_ops *ctx, __u64 flags)
{
	struct bpf_sock *sk = ctx->sk;

	return sk ? bpf_sk_storage_get(&nrw_conns, sk, NULL, flags) : NULL;
}

static __always_inline struct tcp_sock *nrw_tcp_of(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *sk = ctx->sk;

	return sk ? (struct tcp_sock *)bpf_skc_to_tcp_sock(sk) : NULL;
}

static __always_inline void nrw_store_code(struct nrw_conn *conn, int code)
{
	if (code >= 0 && nrw_is_rate(code))
		conn->word = NRW_WORD_RATE | code;
}

/*
 * Begins a connection after its handshake. Only an option in the handshake lets the program accept feedback
 * later (BRF-104).
 *
 * The kernel calls this function before init() of the congestion control (tcp_init_transfer()). init()
 * therefore finds the first rate in the storage. If the congestion control was selected in SYN_SENT, its
 * init() has already run. See nrw_begin() for this case.
 */
static __always_inline void nrw_established(struct bpf_sock_ops *ctx, int passive)
{
	struct nrw_conn *conn = nrw_conn_of(ctx, BPF_SK_STORAGE_GET_F_CREATE);
	int code = nrw_option_read(ctx, 0);
	struct tcp_sock *tp;

	if (!conn)
		return;
	nrw_store_code(conn, code);
	conn->possible = code != NRW_NO_OPTION;
	/*
	 * The accepting side may get its first rate with the third packet of the handshake (BRF-14). If the
	 * SYN asked for feedback, a switch may write this rate. With a SYN cookie, the kernel does not keep
	 * the SYN, so only an option in the third packet counts.
	 */
	if (passive && nrw_syn_asks(ctx))
		conn->possible = 1;
	if (nrw_designate)
		nrw_reports_begin(&conn->reports, bpf_ktime_get_ns() / 1000);
	/*
	 * In the paper's format, a SYN-ACK has no padding for a rate. The handshake therefore does not show
	 * whether feedback is possible. The program assumes that feedback is possible on every connection.
	 */
	if (nrw_format == NRW_FORMAT_PADDING)
		conn->possible = 1;

	if (nrw_cap_only) {
		tp = nrw_tcp_of(ctx);
		if (tp)
			nrw_cap_begin(ctx, conn, tp);
	} else {
		if (!nrw_is_ours(ctx))
			nrw_choose(ctx);
	}
	/*
	 * Without an option in the handshake, the program parses no headers, so rates cannot be forged.
	 * Otherwise the program requests all headers, not only those with unknown options. It must also see
	 * ACKs whose SACK blocks leave no room for the option. Packets of the kernel's fast path never reach
	 * this program.
	 */
	if (conn->possible)
		nrw_callbacks_add(ctx, BPF_SOCK_OPS_PARSE_ALL_HDR_OPT_CB_FLAG |
				       (nrw_designate ? BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG : 0));
	else if (!passive)
		nrw_write_no_more(ctx);
}

/*
 * Returns whether this ACK has no room for a switch's option. Three SACK blocks fill all forty bytes of
 * options.
 */
static __always_inline int nrw_no_room(struct bpf_sock_ops *ctx)
{
	void *header = ctx->skb_data;
	void *end = ctx->skb_data_end;
	__u8 *doff = header + 12;

	return (void *)(doff + 1) <= end && (*doff >> 4) * 4 + NRW_OPT_PADDED > 60;
}

static __always_inline void nrw_parse(struct bpf_sock_ops *ctx)
{
	struct nrw_conn *conn = nrw_conn_of(ctx, 0);
	struct tcp_sock *tp;
	int code;

	if (!conn || !conn->possible)
		return;
	code = nrw_option_read(ctx, 0);
	if (code == NRW_NO_OPTION) {
		if (nrw_no_room(ctx))
			conn->word |= NRW_WORD_NO_ROOM;
		return;
	}
	nrw_store_code(conn, code);
	if (nrw_cap_only) {
		tp = nrw_tcp_of(ctx);
		if (tp)
			nrw_cap_follow(ctx, conn, tp);
	}
}

/*
 * Returns whether this packet asks for feedback. Two kinds of packets do: SYNs of connections for which this
 * program asks, and SYN-ACKs that answer a SYN that asks.
 *
 * A call of this program proves nothing, because another program may have set the flag that enables the
 * callback. For a SYN, the socket has storage only if this program asks. A SYN-ACK's socket has no storage.
 * For a SYN-ACK, the receiver's program may have set the flag. This does no harm, because both programs write
 * the same option into the same SYN-ACKs.
 */
static __always_inline int nrw_asks(struct bpf_sock_ops *ctx)
{
	if (nrw_is_syn(ctx))
		return nrw_conn_of(ctx, 0) != NULL;
	return nrw_is_syn_ack(ctx) && nrw_in_scope(ctx) && nrw_syn_asks(ctx);
}

/* Returns the connection if it designates packets and its handshake is complete. */
static __always_inline struct nrw_conn *nrw_designating(struct bpf_sock_ops *ctx)
{
	struct nrw_conn *conn = nrw_designate ? nrw_conn_of(ctx, 0) : NULL;

	return conn && nrw_designates(conn) ? conn : NULL;
}

/*
 * Reserves room for the rate option or a report. The kernel also makes this call without a packet, to compute
 * the MSS. The MSS always leaves room for a report, so that every packet can be designated.
 */
static __always_inline void nrw_reserve(struct bpf_sock_ops *ctx)
{
	int mss = ctx->args[0] == BPF_WRITE_HDR_TCP_CURRENT_MSS, fin = 0;
	struct nrw_conn *conn;

	if (!mss) {
		if (nrw_is_syn(ctx) || nrw_is_syn_ack(ctx)) {
			if (nrw_asks(ctx))
				nrw_option_reserve(ctx);
			return;
		}
		fin = ctx->skb_tcp_flags & NRW_TCP_FIN;
		/* ACKs without data get no report. They are frequent, so return early. */
		if (!ctx->skb_len && !fin)
			return;
	}
	conn = nrw_designating(ctx);
	if (!conn || (!mss && !nrw_report_is_due(&conn->reports, bpf_ktime_get_ns() / 1000, ctx->snd_una, ctx->srtt_us >> 3, fin)))
		return;
	bpf_reserve_hdr_opt(ctx, NRW_REPORT_LEN, 0);
}

struct nrw_report_option {
	__u8 kind;
	__u8 len;
	__be16 exid;
	__be32 value;
} __attribute__((packed));

/* Writes a report into a packet with new data or a FIN, if there is room. Retransmissions get no report. */
static __always_inline void nrw_write_report(struct bpf_sock_ops *ctx, struct nrw_conn *conn)
{
	struct nrw_report_option option = { .kind = NRW_OPT_KIND, .len = NRW_REPORT_LEN, .exid = bpf_htons(NRW_REPORT_EXID) };
	struct nrw_reports reports = conn->reports;
	__u8 *header = ctx->skb_data;
	int fin = ctx->skb_tcp_flags & NRW_TCP_FIN;
	__u32 seq, payload, mss = ctx->mss_cache, doff;
	__u64 now = bpf_ktime_get_ns() / 1000;

	if ((void *)(header + 20) > ctx->skb_data_end)
		return;
	doff = (header[12] >> 4) * 4;
	seq = (__u32)header[4] << 24 | (__u32)header[5] << 16 | (__u32)header[6] << 8 | header[7];
	payload = ctx->skb_len > doff ? ctx->skb_len - doff : 0;
	/* snd_nxt does not include this packet yet, so new data begins at snd_nxt. */
	if (seq != ctx->snd_nxt || (!payload && !fin) ||
	    !nrw_report_is_due(&reports, now, ctx->snd_una, ctx->srtt_us >> 3, fin))
		return;
	mss = mss > NRW_REPORT_LEN ? mss - NRW_REPORT_LEN : 1;
	option.value = bpf_htonl(nrw_report(&reports, now, seq, payload > mss ? (payload + mss - 1) / mss : 1, fin));
	/* There is no room if the report became due only after the callback that reserves room. */
	if (bpf_store_hdr_opt(ctx, &option, sizeof(option), 0))
		return;
	conn->reports = reports;
	nrw_count(designated);
}

static __always_inline void nrw_write_header(struct bpf_sock_ops *ctx)
{
	struct nrw_conn *conn;

	if (nrw_asks(ctx)) {
		nrw_option_write(ctx, nrw_designate ? NRW_CODE_DESIGNATES : NRW_CODE_UNASSIGNED);
		conn = nrw_designate && nrw_is_syn(ctx) ? nrw_conn_of(ctx, 0) : NULL;
		if (conn)
			nrw_reports_begin(&conn->reports, bpf_ktime_get_ns() / 1000);
		return;
	}
	conn = nrw_designating(ctx);
	if (conn && !nrw_is_syn(ctx) && !nrw_is_syn_ack(ctx))
		nrw_write_report(ctx, conn);
}

SEC("sockops")
int nrw_sockops(struct bpf_sock_ops *ctx)
{
	struct nrw_conn *conn;
	struct tcp_sock *tp;

	switch (ctx->op) {
	case BPF_SOCK_OPS_TCP_LISTEN_CB:
		if (nrw_in_scope(ctx) && nrw_will_apply_rates(ctx, nrw_tcp_of(ctx)))
			nrw_answer_syns(ctx);
		break;
	case BPF_SOCK_OPS_TCP_CONNECT_CB:
		if (nrw_in_scope(ctx) && nrw_will_apply_rates(ctx, nrw_tcp_of(ctx))) {
			nrw_conn_of(ctx, BPF_SK_STORAGE_GET_F_CREATE);
			nrw_callbacks_add(ctx, BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
			nrw_count(asked);
		}
		break;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		nrw_reserve(ctx);
		break;
	case BPF_SOCK_OPS_WRITE_HDR_OPT_CB:
		nrw_write_header(ctx);
		break;
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
		/* The socket has storage only if this program has asked for feedback. */
		if (nrw_conn_of(ctx, 0))
			nrw_established(ctx, 0);
		break;
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		if (!nrw_in_scope(ctx))
			break;
		if (nrw_will_apply_rates(ctx, nrw_tcp_of(ctx)))
			nrw_established(ctx, 1);
		/* The socket has inherited the listener's flag. */
		if (!nrw_syn_asks(ctx))
			nrw_write_no_more(ctx);
		break;
	case BPF_SOCK_OPS_PARSE_HDR_OPT_CB:
		nrw_parse(ctx);
		break;
	case BPF_SOCK_OPS_RTT_CB:
		conn = nrw_cap_only ? nrw_conn_of(ctx, 0) : NULL;
		tp = conn ? nrw_tcp_of(ctx) : NULL;
		if (tp)
			nrw_cap_silence(ctx, conn, tp);
		break;
	}
	return 1;
}

/*
 * With NRW_CHOICE_ALL, ignores an application's choice of congestion control. With optlen = -1, the kernel
 * keeps the present algorithm and reports no error.
 */
SEC("cgroup/setsockopt")
int nrw_setsockopt(struct bpf_sockopt *ctx)
{
	if (ctx->level == IPPROTO_TCP && ctx->optname == TCP_CONGESTION && nrw_in_scope(ctx))
		ctx->optlen = -1;
	return 1;
}

#endif
