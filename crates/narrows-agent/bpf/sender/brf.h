/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The congestion control `brf` applies the network's rate. Without a rate from the network, it runs CUBIC
 * (BRF-90 to BRF-94, BRF-104, BRF-105). The state machine is that of congestion/network/brf.rs.
 */
#ifndef NRW_BRF_H
#define NRW_BRF_H

static __always_inline struct nrw_conn *nrw_conn_get(struct sock *sk, __u64 flags)
{
	return bpf_sk_storage_get(&nrw_conns, sk, NULL, flags);
}

static __always_inline void nrw_to_cubic(struct nrw_conn *conn, struct tcp_sock *tp, __u8 mode)
{
	conn->mode = mode;
	nrw_unpace(conn, tp);
	cubictcp_init((struct sock *)tp);
}

/* Reads and clears nrw_conn.word. Returns whether it held a rate, and stores this rate in *rate. */
static __always_inline int nrw_take_word(struct nrw_conn *conn, __u64 now, __u64 *rate)
{
	__u32 word = conn->word;

	if (!word)
		return 0;
	conn->word = 0;
	if (word & NRW_WORD_NO_ROOM)
		conn->no_room_us = now;
	*rate = nrw_decode(word & 0xffff);
	return !!(word & NRW_WORD_RATE);
}

/*
 * Returns whether the connection begins with a rate, and stores this rate in *rate. Either the rate arrived
 * with the handshake, or an earlier sender applied it (takeover.h). In both cases, a switch has chosen the
 * rate.
 */
static __always_inline int nrw_first_rate(struct nrw_conn *conn, __u64 now, __u64 *rate)
{
	__u64 inherited = conn->inherited;

	conn->inherited = 0;
	if (nrw_take_word(conn, now, rate))
		return 1;
	*rate = inherited;
	return inherited != 0;
}

/*
 * Begins a connection with a rate or with CUBIC. After the connection has begun, further calls have no
 * effect. Usually, the connection begins in init(), after the handshake. If the application selects `brf`
 * between connect() and the SYN-ACK, init() runs in SYN_SENT, which is too early. In this case, the
 * connection begins at its first packet or ACK after the handshake.
 */
static __always_inline void nrw_begin(struct nrw_conn *conn, struct tcp_sock *tp)
{
	struct sock *sk = (struct sock *)tp;
	__u64 now = tp->tcp_mstamp;
	__u64 rate;

	if (conn->mode != NRW_MODE_NONE || sk->__sk_common.skc_state == NRW_TCP_SYN_SENT)
		return;
	conn->srtt = conn->path = conn->recent = NRW_NOMINAL_RTT_US;
	nrw_observe_rtt(conn, tp, tp->srtt_us >> 3);
	conn->acked_us = now;
	conn->due_us = conn->sent_us = now;
	conn->first_sent = tp->data_segs_out;
	conn->round_end = tp->delivered;
	if (nrw_first_rate(conn, now, &rate)) {
		conn->mode = NRW_MODE_RATED;
		nrw_on_feedback(conn, now, rate);
		/* A switch has chosen the first rate, so apply it at once, without a gradual increase. */
		conn->granted = nrw_max(conn->target, nrw_least(conn, tp));
		conn->base = conn->granted;
		conn->base_us = now;
		tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
		nrw_apply(conn, tp);
		nrw_count(rated);
	} else if (conn->possible) {
		nrw_to_cubic(conn, tp, NRW_MODE_ORPHANED);
		nrw_count(awaiting);
	} else {
		nrw_to_cubic(conn, tp, NRW_MODE_UNRATED);
		nrw_count(unrated);
	}
}

/*
 * Changes from the network's rate to CUBIC. CUBIC starts with the window of the halved rate. Its slow-start
 * threshold is half of the data in flight before the halvings (RFC 5681). In a recovery, all unacknowledged
 * data counts as in flight.
 */
static __always_inline void nrw_orphan(struct nrw_conn *conn, struct tcp_sock *tp)
{
	__u32 packet = nrw_packet_bytes(tp);
	__u64 filled, window;

	conn->halvings = NRW_HALVINGS;
	packet = packet ? packet : 1;
	filled = conn->granted * conn->srtt / 1000000 / packet + 1;
	if (nrw_ca_state(tp) > NRW_CA_DISORDER)
		filled = nrw_max(filled, tp->packets_out);
	window = nrw_rate_in_force(conn, tp) * conn->srtt / 1000000 / packet + 1;
	tp->snd_cwnd = nrw_min(nrw_max(window, 4), tp->snd_cwnd_clamp);
	nrw_to_cubic(conn, tp, NRW_MODE_ORPHANED);
	/*
	 * If a loss recovery began while the rate was in force, CUBIC continues it by proportional rate
	 * reduction.
	 */
	conn->prr_delivered = 0;
	tp->snd_ssthresh = nrw_min(nrw_max(filled / 2, tp->snd_cwnd), TCP_INFINITE_SSTHRESH);
	nrw_count(orphaned);
}

/*
 * Changes from CUBIC to the network's rate. The rate starts at CUBIC's present rate, and at most doubles in
 * each RTT.
 */
static __always_inline void nrw_adopt(struct nrw_conn *conn, struct tcp_sock *tp, __u64 now, __u64 rate)
{
	conn->mode = NRW_MODE_RATED;
	conn->granted = nrw_segments_in(tp, tp->snd_cwnd, conn->recent);
	conn->base = conn->granted;
	conn->base_us = now;
	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	nrw_on_feedback(conn, now, rate);
	nrw_count(adopted);
}

/* BRF-100: finds once per RTT whether the application limited most packets of that RTT. */
static __always_inline void nrw_judge_application(struct nrw_conn *conn, const struct tcp_sock *tp,
						  const struct rate_sample *rs)
{
	if (rs->is_app_limited)
		conn->limited += rs->acked_sacked;
	else
		conn->unlimited += rs->acked_sacked;
	/* As in tcp_bbr.c, an RTT ends when a packet is delivered that was sent after the RTT began. */
	if ((int)(rs->prior_delivered - conn->round_end) < 0 || !rs->acked_sacked)
		return;
	conn->round_end = tp->delivered;
	conn->mark = conn->limited > conn->unlimited ? NRW_MARK_LIMITED : NRW_MARK_UNLIMITED;
	conn->limited = conn->unlimited = 0;
}

SEC("struct_ops")
void BPF_PROG(brf_init, struct sock *sk)
{
	struct nrw_conn *conn = nrw_conn_get(sk, BPF_SK_STORAGE_GET_F_CREATE);

	/* CUBIC's state must always be valid. */
	cubictcp_init(sk);
	if (!conn)
		return;
	/*
	 * An application may select another algorithm, and later `brf` again. The connection then starts
	 * again with the last rate that arrived.
	 */
	conn->mode = NRW_MODE_NONE;
	nrw_begin(conn, (struct tcp_sock *)sk);
}

SEC("struct_ops")
void BPF_PROG(brf_release, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct nrw_conn *conn = nrw_conn_get(sk, 0);

	/* The next algorithm must not inherit the pacing or a window of 0. */
	if (conn)
		nrw_unpace(conn, tp);
	if (!tp->snd_cwnd)
		tp->snd_cwnd = 1;
}

SEC("struct_ops")
void BPF_PROG(brf_cong_control, struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct nrw_conn *conn = nrw_conn_get(sk, 0);
	__u64 now = tp->tcp_mstamp;
	__u64 rate = 0;
	int has_rate;

	if (!conn)
		return;
	nrw_begin(conn, tp);
	nrw_observe_rtt(conn, tp, rs->rtt_us);
	nrw_judge_application(conn, tp, rs);
	conn->acked_us = now;

	has_rate = conn->possible && nrw_take_word(conn, now, &rate);
	if (conn->mode == NRW_MODE_RATED) {
		if (has_rate)
			nrw_on_feedback(conn, now, rate);
		else
			nrw_on_silence(conn, now);
	}
	/*
	 * The connection can change to CUBIC and back even during a recovery. In an outage of a fast path,
	 * all packets of a large window may be lost. Recovery at the least rate of BRF-92 would take hundreds
	 * of RTTs, so change to CUBIC. When feedback has returned, CUBIC would exceed the flow's rate until
	 * the switch demotes the flow, so change back.
	 */
	if (conn->mode == NRW_MODE_RATED && conn->halvings > NRW_HALVINGS)
		nrw_orphan(conn, tp);
	else if (conn->mode == NRW_MODE_ORPHANED && has_rate)
		nrw_adopt(conn, tp, now, rate);
	if (conn->mode == NRW_MODE_RATED) {
		nrw_follow_target(conn, tp, now);
		nrw_choose_gap(conn);
		nrw_apply(conn, tp);
	} else {
		nrw_cubic_control(conn, tp, ack, flag, rs);
	}
}

/* Handles the first packet after a time with nothing in flight. */
static __always_inline void nrw_tx_start(struct nrw_conn *conn, struct tcp_sock *tp)
{
	__u64 now = tp->tcp_mstamp;
	__u64 idle = now - conn->acked_us;

	nrw_begin(conn, tp);
	/*
	 * If all packets are marked lost, nothing is in flight, but the sender is not idle. `idle` may be 0
	 * or less, because the clock may not have advanced.
	 */
	if (conn->mode == NRW_MODE_NONE || tp->packets_out || (__s64)idle <= 0)
		return;
	conn->acked_us = now;
	if (conn->mode != NRW_MODE_RATED) {
		nrw_cubic_restart(conn, tp, idle);
		return;
	}
	/*
	 * An idle host gets no feedback, so idle time does not count as missing feedback
	 * (congestion/network/brf.rs, on_restart).
	 */
	conn->feedback_us = nrw_min(conn->feedback_us + idle, now);
	if (idle > (__u64)conn->srtt + NRW_RTO_FLOOR_US) {
		conn->restart = nrw_max(nrw_segments_in(tp, NRW_RESTART_SEGMENTS, conn->recent), 1);
		nrw_apply(conn, tp);
	}
}

SEC("struct_ops")
void BPF_PROG(brf_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct nrw_conn *conn = nrw_conn_get(sk, 0);

	if (conn && event == CA_EVENT_TX_START)
		nrw_tx_start(conn, (struct tcp_sock *)sk);
	if (conn && conn->mode != NRW_MODE_RATED)
		cubictcp_cwnd_event(sk, event);
}

SEC("struct_ops")
void BPF_PROG(brf_set_state, struct sock *sk, __u8 new_state)
{
	struct nrw_conn *conn = nrw_conn_get(sk, 0);

	if (conn && conn->mode != NRW_MODE_RATED)
		nrw_cubic_state(conn, (struct tcp_sock *)sk, new_state);
}

SEC("struct_ops")
__u32 BPF_PROG(brf_ssthresh, struct sock *sk)
{
	struct nrw_conn *conn = nrw_conn_get(sk, 0);

	/* A loss does not change the network's rate (BRF-91). */
	if (conn && conn->mode == NRW_MODE_RATED)
		return TCP_INFINITE_SSTHRESH;
	return cubictcp_recalc_ssthresh(sk);
}

SEC("struct_ops")
__u32 BPF_PROG(brf_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct nrw_conn *conn = nrw_conn_get(sk, 0);

	if (conn && conn->mode == NRW_MODE_RATED)
		return nrw_max(tp->snd_cwnd, 1);
	/* tcp_reno_undo_cwnd(), which CUBIC uses */
	return nrw_max(tp->snd_cwnd, tp->prior_cwnd);
}

SEC("struct_ops")
void BPF_PROG(brf_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct nrw_conn *conn = nrw_conn_get(sk, 0);

	if (!conn || conn->mode != NRW_MODE_RATED)
		cubictcp_acked(sk, sample);
}

/*
 * `brf` has no min_tso_segs(). On a processor, the kernel may skip this callback for some milliseconds, and
 * use 0 as its result (docs/explanation/brf.md, "Crowds"). At a low pacing rate, the kernel would then send
 * empty segments. Receivers do not acknowledge them, and the connection would wait for minutes
 * (tcp_tso_autosize(), tcp_mss_split_point()). Slow flows still send single segments, because their window is
 * small (NRW_WINDOW_SLACK_SPARSE).
 */
SEC(".struct_ops.link")
struct tcp_congestion_ops brf = {
	.init = (void *)brf_init,
	.release = (void *)brf_release,
	.ssthresh = (void *)brf_ssthresh,
	.cong_control = (void *)brf_cong_control,
	.cwnd_event = (void *)brf_cwnd_event,
	.set_state = (void *)brf_set_state,
	.undo_cwnd = (void *)brf_undo_cwnd,
	.pkts_acked = (void *)brf_pkts_acked,
	/* Not restricted: a network namespace may make this algorithm its default. */
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "brf",
};

#endif
