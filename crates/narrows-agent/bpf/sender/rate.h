/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Computes the rate in force: the network's rate within this host's bounds (BRF-92, BRF-94, BRF-104). The
 * functions are those of congestion/network/brf.rs, which gives the reasons.
 */
#ifndef NRW_RATE_H
#define NRW_RATE_H

static __always_inline __u64 nrw_min(__u64 a, __u64 b)
{
	return a < b ? a : b;
}

static __always_inline __u64 nrw_max(__u64 a, __u64 b)
{
	return a > b ? a : b;
}

/* Returns the rate, in L3 bytes/s, that sends this many segments in this time. */
static __always_inline __u64 nrw_segments_in(const struct tcp_sock *tp, __u64 segments, __u32 us)
{
	return us ? segments * nrw_packet_bytes(tp) * 1000000 / us : nrw_max_rate;
}

/* Returns the lowest rate to which missing feedback may reduce the rate (BRF-92). */
static __always_inline __u64 nrw_floor(const struct nrw_conn *conn, const struct tcp_sock *tp)
{
	return nrw_max(nrw_segments_in(tp, NRW_FLOOR_SEGMENTS, conn->recent), 1);
}

/* Returns the lowest rate that feedback may set (BRF-104). */
static __always_inline __u64 nrw_least(const struct nrw_conn *conn, const struct tcp_sock *tp)
{
	return nrw_min(nrw_floor(conn, tp), nrw_segments_in(tp, 1, NRW_SLOWEST_SEGMENT_US));
}

static __always_inline __u64 nrw_rate_in_force(const struct nrw_conn *conn, const struct tcp_sock *tp)
{
	/*
	 * The verifier has no bound for a value from memory, so mask the shift. The mask never changes the
	 * shift, because nrw_on_silence() stops counting at the largest shift.
	 */
	__u64 rate = nrw_max(conn->granted >> (conn->halvings & NRW_HALVINGS_MAX),
			     nrw_min(nrw_floor(conn, tp), conn->granted));

	return conn->restart ? nrw_min(rate, conn->restart) : rate;
}

/* Updates the smoothed, the least and the recent RTT, from the kernel's estimates and an RTT sample. */
static __always_inline void nrw_observe_rtt(struct nrw_conn *conn, const struct tcp_sock *tp, long sample_us)
{
	__u32 srtt = tp->srtt_us >> 3;
	__u32 path = tp->rtt_min.s[0].v;

	if (!srtt)
		return;
	conn->srtt = nrw_min(srtt, NRW_RTT_MAX_US);
	conn->path = nrw_max(nrw_min(path, conn->srtt), NRW_RTT_MIN_US);
	if (sample_us > 0)
		conn->recent = nrw_min(sample_us, NRW_RTT_MAX_US);
	conn->recent = nrw_min(nrw_max(conn->recent, conn->path), NRW_LONGEST_RTT * (__u64)conn->path);
}

static __always_inline void nrw_on_feedback(struct nrw_conn *conn, __u64 now, __u64 rate)
{
	conn->feedback_us = now;
	conn->halvings = 0;
	conn->restart = 0;
	conn->target = nrw_min(rate, nrw_max_rate);
}

/*
 * Moves the granted rate towards its target. Decreases take effect at once. Increases are limited to a factor
 * of 2 per RTT (BRF-104).
 */
static __always_inline void nrw_follow_target(struct nrw_conn *conn, const struct tcp_sock *tp, __u64 now)
{
	__u64 most;

	if (now - conn->base_us >= conn->path) {
		conn->base_us = now;
		conn->base = conn->granted;
	}
	most = 2 * nrw_max(conn->base, nrw_segments_in(tp, NRW_FIRST_STEP, conn->path));
	if (nrw_messages)	/* PACEC's sources follow each rate at once (PAC-4) */
		most = nrw_max_rate;
	conn->granted = nrw_max(nrw_min(conn->target, most), nrw_least(conn, tp));
	conn->base = nrw_min(conn->base, conn->granted);
}

/*
 * Reduces the rate if feedback is missing (BRF-92). While ACKs have no room for feedback, the feedback does
 * not count as missing. This exception has a time limit: under heavy loss, all ACKs may lack room even if the
 * switch is dead. (The simulated receiver always reserves room. Linux's receiver cannot be configured to do
 * so.)
 */
static __always_inline void nrw_on_silence(struct nrw_conn *conn, __u64 now)
{
	__u64 least = nrw_messages ? NRW_MESSAGES_LEAST_US : NRW_SILENCE_LEAST_US;
	__u64 patience = nrw_max(NRW_SILENCE_SRTTS * (__u64)conn->srtt, least);
	__u64 since = now - nrw_max(conn->feedback_us, conn->no_room_us);
	__u64 since_halved = conn->halvings ? now - conn->halved_us : conn->srtt;

	if ((since > patience || now - conn->feedback_us > 4 * patience) && since_halved >= conn->srtt) {
		/* The limit is only a precaution: the connection changes to CUBIC at a smaller count. */
		if (conn->halvings < NRW_HALVINGS_MAX)
			conn->halvings++;
		conn->halved_us = now;
	}
}

/*
 * Ends the pacing that this program began. Under CUBIC, the kernel paces the connection only if another
 * program asked for pacing.
 *
 * Pacing continues while the departure time of the next packet (tcp_wstamp_ns) is in the future. At a low
 * rate, this time may be seconds away. Without pacing, the packet would leave at once, but carry the future
 * time as its timestamp. Its ACK would then give an RTT that is too short, and rtt_min would keep this RTT
 * for minutes.
 */
static __always_inline void nrw_unpace(struct nrw_conn *conn, struct tcp_sock *tp)
{
	struct sock *sk = (struct sock *)tp;

	if (!conn->paced || tp->tcp_wstamp_ns > tp->tcp_mstamp * 1000)
		return;
	conn->paced = 0;
	if (sk->sk_pacing_status == SK_PACING_NEEDED)
		sk->sk_pacing_status = SK_PACING_NONE;
}

/*
 * Chooses the next gap of a flow with few segments per RTT. With equal gaps, flows that start together would
 * keep sending together for ever. Gaps are therefore random: they vary uniformly by up to a third of their
 * mean. To keep long-term rates exact, each gap also corrects a sixteenth of the sum of all earlier
 * variations.
 */
static __always_inline void nrw_choose_gap(struct nrw_conn *conn)
{
	__s32 vary = bpf_get_prandom_u32() % (2 * NRW_GAP_VARIED);

	vary -= NRW_GAP_VARIED + (conn->varied >> 4);
	if (vary > NRW_GAP * 3 / 4)
		vary = NRW_GAP * 3 / 4;
	if (vary < -NRW_GAP * 3 / 4)
		vary = -NRW_GAP * 3 / 4;
	conn->gap = NRW_GAP + vary;
	conn->varied += vary;
}

/* Returns whether the connection sends few segments per RTT at this rate. */
static __always_inline int nrw_is_sparse(const struct nrw_conn *conn, const struct tcp_sock *tp, __u64 rate)
{
	return rate < nrw_segments_in(tp, NRW_SPARSE, nrw_max(conn->path, NRW_SPARSE_LEAST_US));
}

/* Returns the pacing rate that produces the chosen gap after the next segment. */
static __always_inline __u64 nrw_pace(const struct nrw_conn *conn, const struct tcp_sock *tp, __u64 rate)
{
	if (nrw_messages || conn->gap <= 0 || !nrw_is_sparse(conn, tp, rate))
		return rate;
	return rate * NRW_GAP / (__u32)conn->gap;
}

/*
 * Returns the window of a connection whose segments the kernel does not pace yet. The window is the number of
 * segments that the rate sends in an RTT, so that ACKs pace the flow.
 *
 * If the rate sends less than one segment per RTT, the ACK arrives before the next segment is due. In this
 * case, the window is closed until the segment is due. A connection with data but nothing in flight looks to
 * the kernel as if the receiver had closed its window. After an RTO, the probe timer therefore sends a
 * segment, regardless of the congestion window (tcp_check_probe_timer(), tcp_write_wakeup()). A segment thus
 * leaves at the first ACK after it is due, or after an RTO. Later segments compensate for the timer's error.
 */
static __always_inline __u64 nrw_first_window(struct nrw_conn *conn, const struct tcp_sock *tp, __u64 rate,
					      __u32 packet)
{
	__u64 window = rate * conn->path / 1000000 / packet;
	__u32 sent = tp->data_segs_out - conn->first_sent;

	if (sent) {
		conn->first_sent = tp->data_segs_out;
		conn->sent_us = tp->tcp_wstamp_ns / 1000;
		conn->due_us = nrw_max(conn->due_us, tp->tcp_mstamp - NRW_LATE_MOST_US) +
			       (__u64)sent * packet * 1000000 / nrw_max(nrw_pace(conn, tp, rate), 1);
	}
	/*
	 * If all data was sent, keep the window open, so that one segment of the next write leaves at once.
	 */
	if (window || tp->packets_out || tp->write_seq == tp->snd_nxt)
		return window + 1;
	return tp->tcp_mstamp >= conn->due_us;
}

/*
 * Returns the window in segments. (The simulated sender uses the same slack at all rates, because it never
 * sends several segments at once.)
 */
static __always_inline __u64 nrw_window(struct nrw_conn *conn, const struct tcp_sock *tp, __u64 rate)
{
	__u32 packet = nrw_packet_bytes(tp);
	__u64 slack = nrw_is_sparse(conn, tp, rate) ? NRW_WINDOW_SLACK_SPARSE : NRW_WINDOW_SLACK_PACKETS;

	if (!packet)
		return slack;
	if (tp->data_segs_out < NRW_UNPACED)
		return nrw_first_window(conn, tp, rate, packet);
	return rate * (2 * (__u64)conn->path + NRW_WINDOW_SLACK_US) / 1000000 / packet + slack;
}

/*
 * Returns the pacing rate for the gap after the last unpaced segment. The kernel's timer may have been early
 * for the first segments. This gap brings the connection back to its schedule. It begins at the departure of
 * the last segment: the kernel shortens the gap by the time since that departure, but at most by half
 * (tcp_update_skb_after_send()).
 */
static __always_inline __u64 nrw_first_pace(const struct nrw_conn *conn, const struct tcp_sock *tp, __u64 rate)
{
	__u64 gap = (__u64)nrw_packet_bytes(tp) * 1000000 / nrw_max(rate, 1);
	__s64 until = conn->due_us + gap - conn->sent_us;

	return until > (__s64)gap ? (__u64)nrw_packet_bytes(tp) * 1000000 / until : rate;
}

/* Sets window and pacing rate for the rate in force. Losses change neither (BRF-91). */
static __always_inline void nrw_apply(struct nrw_conn *conn, struct tcp_sock *tp)
{
	struct sock *sk = (struct sock *)tp;
	__u64 rate = nrw_rate_in_force(conn, tp);
	__u64 window = nrw_window(conn, tp, rate);
	__u64 paced = nrw_pace(conn, tp, rate);

	if (tp->data_segs_out == NRW_UNPACED - 1)
		paced = nrw_first_pace(conn, tp, paced);
	paced = nrw_payload_rate(tp, paced);

	/* SO_MAX_PACING_RATE still applies. */
	sk->sk_pacing_rate = nrw_max(nrw_min(paced, sk->sk_max_pacing_rate), 1);
	/* Keep SK_PACING_FQ, with which an fq qdisc paces. A concurrent setsockopt() does no harm. */
	if (sk->sk_pacing_status == SK_PACING_NONE) {
		sk->sk_pacing_status = SK_PACING_NEEDED;
		conn->paced = 1;
	}
	tp->snd_cwnd = nrw_min(window, tp->snd_cwnd_clamp);
}

#endif
