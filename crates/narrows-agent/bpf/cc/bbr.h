/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The callbacks of the algorithm. The kernel lets a program write only a few fields of a socket: snd_cwnd,
 * snd_ssthresh, app_limited, sk_pacing_rate and sk_pacing_status (bpf_tcp_ca_btf_struct_access(),
 * net/ipv4/bpf_tcp_ca.c). Linux 6.1 does not allow writes to app_limited yet (nrw_old).
 */
#ifndef NRW_BBR_H
#define NRW_BBR_H

static __always_inline void nrw_begin(struct nrw_bbr *s, struct tcp_sock *tp)
{
	struct sock *sk = (struct sock *)tp;
	__u64 now = tp->tcp_mstamp;
	__u8 counted = s->counted;

	__builtin_memset(s, 0, sizeof(*s));
	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	s->next_round_delivered = tp->delivered;
	s->min_rtt_us = tp->rtt_min.s[0].v;
	s->min_rtt_at = now;
	s->mode = NRW_STARTUP;
	s->phase_gain = NRW_UNIT;
	nrw_max_reset(s->max_bw, 0, 0);
	nrw_begin_pacing(s, tp);
	nrw_lt_reset(s, tp);
	nrw_begin_epoch(s, now);
	s->bw_lo = NRW_NO_BOUND;
	nrw_update_gains(s);
	/*
	 * The kernel's BBR writes this field by cmpxchg(), so that it does not undo a concurrent
	 * setsockopt(). A BPF program cannot use cmpxchg() here. Its plain write could therefore undo a
	 * concurrent change to SK_PACING_FQ. In this case, both TCP and the fq qdisc would pace the flow.
	 */
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
	if (!counted) {
		__sync_fetch_and_add(&nrw_cc_facts.connections, 1);
		__sync_fetch_and_add(&nrw_cc_facts.begun, 1);
	}
	s->counted = 1;
}

static __always_inline struct nrw_bbr *nrw_state(struct sock *sk)
{
	return bpf_sk_storage_get(&nrw_bbrs, sk, NULL, 0);
}

/*
 * Returns the additional state of v2 and v3. A connection has either both structures, struct nrw_bbr and
 * struct nrw_bounded, or neither.
 */
static __always_inline struct nrw_bounded *nrw_bounded_state(struct sock *sk)
{
	return bpf_sk_storage_get(&nrw_boundeds, sk, NULL, 0);
}

/* Begins a connection. Returns NULL if there is no memory for its state. */
static __always_inline struct nrw_bbr *nrw_make(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct nrw_bounded *b = NULL;
	struct nrw_bbr *s;

	if (nrw_is_bounded()) {
		b = bpf_sk_storage_get(&nrw_boundeds, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
		if (!b)
			return NULL;
	}
	s = bpf_sk_storage_get(&nrw_bbrs, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!s)
		return NULL;
	nrw_begin(s, tp);
	if (b)
		nrw_bounded_begin(s, b, tp);
	return s;
}

SEC("struct_ops")
void BPF_PROG(nrw_init, struct sock *sk)
{
	nrw_make(sk);
}

SEC("struct_ops")
void BPF_PROG(nrw_release, struct sock *sk)
{
	struct nrw_bbr *s = nrw_state(sk);

	if (!s)
		return;
	if (s->counted)
		__sync_fetch_and_add(&nrw_cc_facts.connections, -1);
	s->counted = 0;
	/*
	 * The kernel frees this state with the socket. The socket may stay open with another congestion
	 * control, so delete the state now.
	 */
	bpf_sk_storage_delete(&nrw_bbrs, sk);
	if (nrw_is_bounded())
		bpf_sk_storage_delete(&nrw_boundeds, sk);
}

static __always_inline void nrw_on_ack(struct sock *sk, const struct rate_sample *rs, int flag)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct nrw_bbr *s = nrw_state(sk);
	struct nrw_bounded *b;

	if (!s) {
		/*
		 * The connection began without memory for its state, so try again. Until the kernel provides
		 * memory, the window does not change.
		 */
		s = nrw_make(sk);
		if (!s)
			return;
	}
	if (nrw_is_bounded()) {
		b = nrw_bounded_state(sk);
		if (b)
			nrw_bounded_ack(s, b, tp, rs, flag);
		return;
	}
	if (nrw_count_round(s, tp, rs)) {
		nrw_lt_update(s, tp, rs->losses, nrw_app_limited(s, rs));
		nrw_update_bw(s, rs);
	}
	nrw_observe_rtt(s, rs);
	nrw_update_aggregation(s, tp, rs);
	nrw_update_cycle(s, tp, rs);
	nrw_check_full_pipe(s, rs);
	nrw_check_drain(s, tp);
	nrw_update_min_rtt(s, tp, rs);
	nrw_update_gains(s);
	nrw_set_pacing_rate(s, tp, s->pacing_gain);
	nrw_set_cwnd(s, tp, rs);
}

SEC("struct_ops")
void BPF_PROG(nrw_cong_control, struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs)
{
	nrw_on_ack(sk, rs, flag);
}

/*
 * cong_control for kernels before Linux 6.10. The agent selects this function or nrw_cong_control before
 * load. The verifier sees only the selected function.
 */
SEC("struct_ops")
void BPF_PROG(nrw_cong_control_two, struct sock *sk, const struct rate_sample *rs)
{
	/* The old form has no `flag`, so treat every entry to CWR as the echo of an ECN mark. */
	nrw_on_ack(sk, rs, FLAG_ECE);
}

SEC("struct_ops")
void BPF_PROG(nrw_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct nrw_bounded *b;
	struct nrw_bbr *s;

	/*
	 * The rest of the function handles the first packet after an idle time of the application (BBR-23).
	 */
	if (event != CA_EVENT_TX_START || !tp->app_limited)
		return;
	s = nrw_state(sk);
	if (!s)
		return;
	s->idle_restart = 1;
	nrw_begin_epoch(s, tp->tcp_mstamp);
	if (s->mode == NRW_PROBE_BW)
		nrw_set_pacing_rate(s, tp, NRW_UNIT);
	else if (s->mode == NRW_PROBE_RTT && nrw_probe_rtt_was_long_enough(s, tp)) {
		if (!nrw_is_bounded()) {
			nrw_end_probe_rtt(s, tp);
			return;
		}
		b = nrw_bounded_state(sk);
		if (b)
			nrw_bounded_end_probe_rtt(s, b, tp);
	}
}

SEC("struct_ops")
void BPF_PROG(nrw_set_state, struct sock *sk, __u8 new_state)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct nrw_bounded *b;
	struct nrw_bbr *s;

	if (new_state != NRW_CA_LOSS && !(nrw_is_bounded() && new_state == NRW_CA_CWR))
		return;
	s = nrw_state(sk);
	if (!s)
		return;
	if (nrw_is_bounded()) {
		b = nrw_bounded_state(sk);
		if (b && new_state == NRW_CA_CWR)
			b->has_entered_cwr = 1;
		else if (b)
			nrw_bounded_timeout(s, b, tp);
		return;
	}
	s->prev_ca_state = NRW_CA_LOSS;
	s->full_bw = 0;
	/* A timeout ends the round. The detector of policers counts the timeout as a loss. */
	s->round_start = 1;
	nrw_lt_update(s, tp, 1, 0);
}

SEC("struct_ops")
__u32 BPF_PROG(nrw_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct nrw_bbr *s = nrw_state(sk);

	if (s)
		nrw_save_cwnd(s, tp);
	return tp->snd_ssthresh;
}

/*
 * Called if the last reduction of the window was spurious. BBR v1 restarts its detection of a full pipe and
 * of policers. For v1, the callback returns the present window, because the end of recovery restores the
 * earlier window.
 */
SEC("struct_ops")
__u32 BPF_PROG(nrw_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct nrw_bbr *s = nrw_state(sk);
	struct nrw_bounded *b;

	if (!s)
		return tp->snd_cwnd;
	if (nrw_is_bounded()) {
		b = nrw_bounded_state(sk);
		return b ? nrw_bounded_undo(s, b, tp) : tp->snd_cwnd;
	}
	s->full_bw = 0;
	s->full_bw_rounds = 0;
	nrw_lt_reset(s, tp);
	return tp->snd_cwnd;
}

/*
 * Returns how many congestion windows the send buffer holds. Slow start continues during recovery, so the
 * buffer must be large.
 */
SEC("struct_ops")
__u32 BPF_PROG(nrw_sndbuf_expand, struct sock *sk)
{
	return 3;
}

/*
 * `nrw_cc` has no min_tso_segs(). The kernel would sometimes skip this callback and use 0 as its result. Slow
 * flows would then send empty segments (bpf/sender/brf.h). Without the callback, a burst has at least two
 * packets. The kernel's BBR has the callback and sends single packets below 1.2 Mbit/s.
 *
 * The agent sets the name of the algorithm before load.
 */
SEC(".struct_ops.link")
struct tcp_congestion_ops nrw_cc = {
	.init = (void *)nrw_init,
	.release = (void *)nrw_release,
	.ssthresh = (void *)nrw_ssthresh,
	.cong_control = (void *)nrw_cong_control,
	.cwnd_event = (void *)nrw_cwnd_event,
	.set_state = (void *)nrw_set_state,
	.undo_cwnd = (void *)nrw_undo_cwnd,
	.sndbuf_expand = (void *)nrw_sndbuf_expand,
	/* Not restricted: a namespace may make this algorithm the default, and any user may select it. */
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "narrows_bbr",
};

#endif
