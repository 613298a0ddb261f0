/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's CUBIC, for connections without a rate.
 *
 * An algorithm with a cong_control() hook controls the window itself. With such an algorithm, the kernel's
 * tcp_cong_control(), tcp_end_cwnd_reduction() and tcp_slow_start_after_idle_check() do not change the window
 * (net/ipv4/tcp_input.c, include/net/tcp.h). The program does the work of these functions:
 *
 * - in recovery, proportional rate reduction (RFC 6937); at other times, calls of CUBIC's own functions
 * - the end of a reduction
 * - the restart after an idle time (RFC 2861)
 * - the pacing rate
 *
 * The program does not implement tcp_cwnd_application_limited(), which reduces the window if the sender has
 * not filled it for an RTO.
 */
#ifndef NRW_CUBIC_H
#define NRW_CUBIC_H

#define NRW_INIT_CWND	10	/* TCP_INIT_CWND; a route's initcwnd is ignored */

static __always_inline int nrw_in_reduction(const struct tcp_sock *tp)
{
	__u8 state = nrw_ca_state(tp);

	return state == NRW_CA_CWR || state == NRW_CA_RECOVERY;
}

/*
 * Does the work of tcp_cwnd_reduction(), which the kernel does not call for an algorithm with a
 * cong_control() hook. The kernel still updates prr_out, but not prr_delivered.
 */
static __always_inline void nrw_reduce(struct nrw_conn *conn, struct tcp_sock *tp, __u32 acked_sacked,
				       int losses, int flag)
{
	int in_flight = nrw_in_flight(tp);
	int delta = (int)tp->snd_ssthresh - in_flight;
	int prr_out = tp->prr_out;
	int send;

	if (!acked_sacked || !tp->prior_cwnd)
		return;
	conn->prr_delivered += acked_sacked;
	if (delta < 0) {
		__u64 share = (__u64)tp->snd_ssthresh * conn->prr_delivered + tp->prior_cwnd - 1;

		send = (int)(share / tp->prior_cwnd) - prr_out;
	} else {
		send = (int)conn->prr_delivered - prr_out;
		if (send < (int)acked_sacked)
			send = acked_sacked;
		if ((flag & FLAG_SND_UNA_ADVANCED) && losses <= 0)
			send++;
		if (send > delta)
			send = delta;
	}
	/* At the start of recovery, allow at least one packet, so that the fast retransmit does not wait. */
	if (send < (prr_out ? 0 : 1))
		send = prr_out ? 0 : 1;
	tp->snd_cwnd = nrw_max(in_flight + send, 1);
}

/*
 * The rule of tcp_may_raise_cwnd(). The constant 3 is the default of the sysctl tcp_reordering, which this
 * program does not read.
 */
static __always_inline int nrw_may_raise(const struct tcp_sock *tp, int flag)
{
	return flag & (tp->reordering > 3 ? FLAG_FORWARD_PROGRESS : FLAG_DATA_ACKED);
}

/*
 * Sets the pacing rate like tcp_update_pacing_rate(), with the default ratios: 200 % in slow start, 120 %
 * later.
 */
static __always_inline void nrw_cubic_pacing(struct tcp_sock *tp)
{
	struct sock *sk = (struct sock *)tp;
	__u64 percent = tp->snd_cwnd < tp->snd_ssthresh / 2 ? 200 : 120;
	__u64 rate = (__u64)tp->mss_cache * nrw_max(tp->snd_cwnd, tp->packets_out);

	/*
	 * srtt_us is eight times the RTT. In this order of operations, the product does not overflow for
	 * windows up to 10^9 bytes.
	 */
	rate *= percent * (1000000 / 100) * 8;
	if (tp->srtt_us)
		rate /= tp->srtt_us;
	sk->sk_pacing_rate = nrw_min(rate, sk->sk_max_pacing_rate);
}

static __always_inline void nrw_cubic_control(struct nrw_conn *conn, struct tcp_sock *tp, __u32 ack, int flag,
					      const struct rate_sample *rs)
{
	if (nrw_in_reduction(tp))
		nrw_reduce(conn, tp, rs->acked_sacked, rs->losses, flag);
	else if (nrw_may_raise(tp, flag))
		cubictcp_cong_avoid((struct sock *)tp, ack, rs->acked_sacked);
	nrw_cubic_pacing(tp);
	nrw_unpace(conn, tp);
}

/* Starts a reduction like tcp_init_cwnd_reduction(), and ends it like tcp_end_cwnd_reduction(). */
static __always_inline void nrw_cubic_state(struct nrw_conn *conn, struct tcp_sock *tp, __u8 new_state)
{
	__u8 state = nrw_ca_state(tp);

	/* A loss during CWR continues the present reduction (tcp_enter_recovery()). */
	if ((new_state == NRW_CA_CWR || new_state == NRW_CA_RECOVERY) && !nrw_in_reduction(tp))
		conn->prr_delivered = 0;
	/* undo_marker is 0 if the reduction was undone. */
	if (new_state <= NRW_CA_DISORDER && nrw_in_reduction(tp) && tp->snd_ssthresh < TCP_INFINITE_SSTHRESH &&
	    (state == NRW_CA_CWR || tp->undo_marker))
		tp->snd_cwnd = tp->snd_ssthresh;
	cubictcp_state((struct sock *)tp, new_state);
}

/*
 * Halves the window for each RTO of idle time, like tcp_cwnd_restart(). The RTO is an estimate, because
 * jiffies are not available here.
 */
static __always_inline void nrw_cubic_restart(struct nrw_conn *conn, struct tcp_sock *tp, __u64 idle)
{
	__u64 rto = (__u64)conn->srtt + NRW_RTO_FLOOR_US;
	__u32 cwnd = tp->snd_cwnd;
	__u32 least = nrw_min(cwnd, NRW_INIT_CWND);

	if (idle <= rto)
		return;
	cubictcp_cwnd_event((struct sock *)tp, CA_EVENT_CWND_RESTART);
	/* tcp_current_ssthresh() */
	tp->snd_ssthresh = nrw_max(tp->snd_ssthresh, (cwnd >> 1) + (cwnd >> 2));
	/* After 31 halvings, every window is at its minimum. */
	for (int i = 0; i < 31 && idle > rto && cwnd > least; i++) {
		idle -= rto;
		cwnd >>= 1;
	}
	tp->snd_cwnd = nrw_max(cwnd, least);
}

#endif
