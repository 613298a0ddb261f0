// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs the eBPF programs of sender and receiver on one connection of a host. The input determines the headers
 * and packets of the connection, and the calls of TCP. A failed check or undefined behaviour ends the process.
 *
 * The input consists of settings, followed by events. An event is a byte with its kind, followed by the bytes
 * that this kind needs. All bytes after the end of the input count as zero.
 */
#include <linux/types.h>
#include <linux/stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* The fuzzer sets the tunables for each input, so they must not be constant. */
#define const
#include "sender/sender.bpf.c"
#undef const

#include "kernel.h"

int nrw_receiver(struct bpf_sock_ops *ctx);
extern volatile __u32 receiver_scoped, receiver_ask;

static struct bpf_sock_ops context(__u32 op)
{
	struct bpf_sock_ops ctx = { .op = op };

	ctx.sk = &sock_view;
	ctx.skb_data = w.header;
	ctx.skb_data_end = w.header + w.header_len;
	ctx.skb_tcp_flags = w.header[13];
	return ctx;
}

static __u32 callback_flags;

static void callback(__u32 op)
{
	struct bpf_sock_ops ctx = context(op);

	ctx.bpf_sock_ops_cb_flags = callback_flags;
	nrw_sockops(&ctx);
	nrw_receiver(&ctx);
	callback_flags = ctx.bpf_sock_ops_cb_flags;
	/* The programs must request no callbacks for connections outside of the scope. */
	CHECK(!callback_flags || !nrw_scoped || !w.is_foreign);
}

/* Sends a packet. The programs first reserve room for options in its header, and then write the options. */
static void leave(__u8 flags, __u32 payload)
{
	struct bpf_sock_ops ctx;
	int is_syn = flags & NRW_TCP_SYN, designates = nrw_designate && w.has_conn && w.conn.possible;

	w.header_len = tcp_header(w.header, flags);
	w.reserved = w.stored = 0;
	ctx = context(BPF_SOCK_OPS_HDR_OPT_LEN_CB);
	ctx.skb_len = payload;
	ctx.args[0] = byte() & 1 ? BPF_WRITE_HDR_TCP_CURRENT_MSS : 0;
	nrw_sockops(&ctx);
	/*
	 * A sender that designates packets reserves room for a report in any segment. Other senders reserve room only
	 * in handshake segments, so that their data segments keep the full MSS.
	 */
	CHECK(is_syn || !w.reserved || (designates && w.reserved == NRW_REPORT_LEN));
	nrw_receiver(&ctx);
	CHECK(is_syn || !payload || !w.reserved || (designates && w.reserved == NRW_REPORT_LEN));
	CHECK(ctx.args[0] != BPF_WRITE_HDR_TCP_CURRENT_MSS || !w.reserved || designates);
	CHECK(w.reserved <= NRW_REPORT_LEN + 2 * NRW_OPT_LEN);

	ctx = context(BPF_SOCK_OPS_WRITE_HDR_OPT_CB);
	ctx.skb_len = w.header_len + payload;
	w.may_write = 1;
	ctx.mss_cache = w.tp.mss_cache;
	ctx.srtt_us = w.tp.srtt_us;
	ctx.snd_una = word();
	ctx.snd_nxt = byte() & 1 ? word() : (__u32)w.header[4] << 24 | w.header[5] << 16 | w.header[6] << 8 | w.header[7];
	nrw_sockops(&ctx);
	CHECK(is_syn || !w.stored || (designates && w.stored == NRW_REPORT_LEN));
	nrw_receiver(&ctx);
	CHECK(is_syn || !payload || !w.stored || (designates && w.stored == NRW_REPORT_LEN));
	CHECK(!w.stored || w.stored == sizeof(struct nrw_option) || (designates && w.stored == NRW_REPORT_LEN));
	w.may_write = 0;
}

static void set_state(void)
{
	struct tcp_sock *tp = &w.tp;

	tp->inet_conn.icsk_inet.sk.__sk_common.skc_family = byte() & 1 ? NRW_AF_INET6 : NRW_AF_INET;
	tp->inet_conn.icsk_ca_state = byte() % 5;
	tp->inet_conn.icsk_ca_setsockopt = byte();
	tp->mss_cache = 88 + up_to(65000);
	tp->tcp_header_len = 20 + byte() % 41;
	tp->srtt_us = up_to(~0U);
	for (int i = 0; i < 3; i++)
		tp->rtt_min.s[i].v = up_to(~0U);
	tp->snd_cwnd_clamp = 1 + up_to(~0U - 1);
	tp->snd_cwnd = 1 + up_to(tp->snd_cwnd_clamp - 1);
	tp->snd_ssthresh = 2 + up_to(TCP_INFINITE_SSTHRESH - 2);
	tp->prior_cwnd = up_to(1 << 20);
	tp->data_segs_out = up_to(~0U);
	tp->packets_out = up_to(1 << 20);
	tp->lost_out = up_to(tp->packets_out);
	tp->sacked_out = up_to(tp->packets_out - tp->lost_out);
	tp->retrans_out = up_to(tp->lost_out);
	tp->delivered = word();
	tp->app_limited = word();
	tp->prr_out = up_to(1 << 20);
	tp->undo_marker = word();
	tp->reordering = byte();
	tp->write_seq = byte();
}

/* Checks the rules of the rate, which hold for any behaviour of network and host. */
static void check_rate(void)
{
	struct sock *sk = (struct sock *)&w.tp;
	struct nrw_conn *conn = &w.conn;

	if (!w.has_conn || conn->mode != NRW_MODE_RATED)
		return;
	/* A rate is used only if the handshake of the connection had an option (BRF-104). */
	CHECK(conn->possible);
	CHECK(w.handshake_has_option || nrw_format == NRW_FORMAT_PADDING);
	CHECK(conn->granted && conn->granted <= nrw_max(nrw_max_rate, SEGMENT_MAX));
	CHECK(conn->halvings <= NRW_HALVINGS_MAX);
	CHECK(sk->sk_pacing_rate);
}

static void check_applied(void)
{
	struct sock *sk = (struct sock *)&w.tp;

	if (!w.has_conn || w.conn.mode != NRW_MODE_RATED)
		return;
	/* The window may be 0 only between the first segments of a slow connection. */
	CHECK(w.tp.snd_cwnd || (!w.tp.packets_out && w.tp.data_segs_out < NRW_UNPACED));
	CHECK(w.tp.snd_cwnd <= w.tp.snd_cwnd_clamp);
	CHECK(sk->sk_pacing_rate <= nrw_max(sk->sk_max_pacing_rate, 1));
	CHECK(sk->sk_pacing_status != SK_PACING_NONE);
	CHECK(w.conn.gap > 0);
}

static void ack(void)
{
	struct rate_sample rs = {
		.prior_delivered = word(),
		.delivered = byte(),
		.rtt_us = (long)up_to(1ULL << 40) - 1,
		.losses = up_to(1 << 20),
		.acked_sacked = up_to(1 << 20),
		.is_app_limited = byte() & 1,
	};

	set_state();
	brf_cong_control((struct sock *)&w.tp, word(), up_to(0xffff), &rs);
	check_rate();
	check_applied();
}

static void wait(void)
{
	w.now_ns += up_to(1ULL << 40);
	w.tp.tcp_mstamp = w.now_ns / 1000;
	w.tp.tcp_wstamp_ns = w.now_ns + (byte() & 1 ? up_to(1 << 30) : 0);
}

/* Passes a packet of an Ethernet interface through a traffic control program. */
static void packet(int leaves)
{
	struct __sk_buff skb = { .gso_segs = byte() };
	__u8 before[PACKET_MAX], shape = byte();
	struct nrw_segment seg = {};
	__u32 at = 14 + (shape & 1 ? 40 : 20), len;

	len = fill(w.packet, PACKET_MAX);
	if (shape & 2 && len >= at + 32) {
		/* a packet in Linux's layout, with addresses, lengths and padding from the input */
		w.packet[14] = shape & 1 ? 0x60 : 0x45;
		w.packet[14 + (shape & 1 ? 6 : 9)] = IPPROTO_TCP;
		if (!(shape & 1))
			w.packet[20] = w.packet[21] = 0;
		w.packet[at + 12] = 0x80;
		w.packet[at + 22] = NRW_TS_KIND_LEN >> 8;
		w.packet[at + 23] = NRW_TS_KIND_LEN & 0xff;
	}
	skb.protocol = shape & 1 ? bpf_htons(NRW_ETH_P_IPV6) : bpf_htons(NRW_ETH_P_IP);
	skb.sk = shape & 4 ? NULL : &sock_view;
	skb.len = w.packet_len = len;
	if (len >= at + 2 && shape & 8)
		sock_view.src_port = w.packet[at] << 8 | w.packet[at + 1];
	memcpy(before, w.packet, sizeof(before));
	if (leaves) {
		/* A packet never leaves before TCP's departure time, and never much later. */
		skb.tstamp = w.tp.tcp_wstamp_ns;
		CHECK(nrw_depart(&skb) == NRW_PASS);
		CHECK(skb.tstamp - w.tp.tcp_wstamp_ns <= NRW_HOLD_NS);
	}
	CHECK((leaves ? nrw_mark(&skb) : nrw_restore(&skb)) == NRW_TCX_NEXT);
	if (!memcmp(before, w.packet, sizeof(before)))
		return;
	/* Only the padding and the checksum change, and only in packets with Linux's layout. */
	CHECK(!nrw_segment_read(&skb, &seg));
	CHECK(leaves ? seg.padding == NRW_MARK_LIMITED || seg.padding == NRW_MARK_UNLIMITED
		     : seg.padding == NRW_NOP_NOP);
	for (__u32 i = 0; i < len; i++)
		CHECK(before[i] == w.packet[i] || i - (seg.at + NRW_CHECK) < 2 || i - (seg.at + NRW_NOPS) < 2);
}

static void established(int passive)
{
	w.header_len = tcp_header(w.header, passive ? NRW_TCP_ACK : NRW_TCP_SYN | NRW_TCP_ACK);
	w.handshake_has_option = search(w.header + 20, w.header + w.header_len,
					(const __u8[]){ NRW_OPT_KIND, 0, NRW_EXID >> 8, NRW_EXID & 0xff }) != NULL;
	w.syn_len = 0;
	if (passive) {
		w.syn_len = tcp_header(w.syn, NRW_TCP_SYN);
		w.handshake_has_option |= search(w.syn + 20, w.syn + w.syn_len,
						 (const __u8[]){ NRW_OPT_KIND, 0, NRW_EXID >> 8, NRW_EXID & 0xff }) != NULL;
	}
	w.tp.inet_conn.icsk_inet.sk.__sk_common.skc_state = 1;
	callback(passive ? BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB : BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB);
}

static void event(int *is_established)
{
	struct sock *sk = (struct sock *)&w.tp;
	struct ack_sample sample = {};
	__u8 kind = byte();

	switch (kind % 16) {
	case 0:
		callback(kind & 16 ? BPF_SOCK_OPS_TCP_LISTEN_CB : BPF_SOCK_OPS_TCP_CONNECT_CB);
		leave(NRW_TCP_SYN, kind & 32 ? 100 : 0);
		break;
	case 1:
		if (*is_established)	/* once for a connection */
			break;
		*is_established = 1;
		established(kind & 16);
		if (!nrw_cap_only) {
			set_state();
			brf_init(sk);
			check_rate();
		}
		break;
	case 2:
		leave(NRW_TCP_SYN | NRW_TCP_ACK, 0);
		break;
	case 3:
		leave(NRW_TCP_ACK, up_to(60000));
		break;
	case 4:
	case 5:
	case 6:
		if (!(callback_flags & BPF_SOCK_OPS_PARSE_ALL_HDR_OPT_CB_FLAG))
			break;
		w.header_len = tcp_header(w.header, NRW_TCP_ACK);
		callback(BPF_SOCK_OPS_PARSE_HDR_OPT_CB);
		break;
	case 7:
		set_state();
		callback(BPF_SOCK_OPS_RTT_CB);
		break;
	case 8:
	case 9:
	case 10:
		if (*is_established && !nrw_cap_only)
			ack();
		break;
	case 11:
		if (!*is_established || nrw_cap_only)
			break;
		set_state();
		if (kind & 16)
			w.tp.packets_out = 0;
		brf_cwnd_event(sk, kind >> 5);
		check_rate();
		break;
	case 12:
		set_state();
		brf_set_state(sk, byte() % 5);
		CHECK(brf_ssthresh(sk) >= 2);
		CHECK(brf_undo_cwnd(sk) >= 1);
		brf_pkts_acked(sk, &sample);
		break;
	case 13:
		packet(1);
		break;
	case 14:
		packet(0);
		break;
	case 15:
		wait();
		break;
	}
}

int nrw_fuzz_host(const __u8 *data, size_t len)
{
	struct bpf_iter__tcp sockets = {};
	int is_established = 0;
	__u8 settings;

	memset(&w, 0, sizeof(w));
	memset(&sock_view, 0, sizeof(sock_view));
	w.data = data;
	w.left = len;
	w.now_ns = 1000000000000ULL;
	w.tp.tcp_mstamp = w.now_ns / 1000;
	callback_flags = 0;

	settings = byte();
	nrw_cap_only = settings & 1;
	nrw_scoped = receiver_scoped = settings >> 1 & 1;
	nrw_choice = (settings >> 2 & 3) % 3;
	nrw_format = settings & 16 ? NRW_FORMAT_PADDING : NRW_FORMAT_INSERT;
	receiver_ask = settings >> 5 & 1;
	w.is_foreign = byte();
	nrw_designate = w.is_foreign >> 1 & 1;
	w.is_foreign &= 1;
	nrw_max_rate = 1 + up_to(125000000000ULL - 1);
	w.is_ours = settings >> 6 & 1;
	w.tp.inet_conn.icsk_inet.sk.sk_max_pacing_rate = settings & 128 ? ~0UL : up_to(1ULL << 34);
	set_state();

	sockets.sk_common = &w.tp.inet_conn.icsk_inet.sk.__sk_common;
	sockets.sk_common->skc_state = (int[]){ NRW_TCP_LISTEN, NRW_TCP_SYN_SENT, BPF_TCP_ESTABLISHED }[settings % 3];
	/* The iterator runs only in namespaces that are in the scope. */
	if (!nrw_scoped || !w.is_foreign)
		nrw_take_over(&sockets);
	while (w.left)
		event(&is_established);
	return 0;
}
