/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The part of a connection's state that only BBR v2 and v3 need. They also use struct nrw_bbr. The two
 * versions are one algorithm with two sets of parameters. crates/narrows-control/src/congestion/bbr/bounded
 * states the sources.
 *
 * The names are those of Google's kernel modules. BBR's Internet-Draft has other names: inflight_longterm
 * is inflight_hi, inflight_shortterm is inflight_lo, and bw_shortterm is bw_lo. As in the draft, the
 * bandwidth has only one long-term bound: its maximum over the cycles of two probes (bw_hi in the modules).
 */
#ifndef NRW_BOUNDED_H
#define NRW_BOUNDED_H

/* Steps of ProbeBW, with the modules' numbers. struct nrw_bbr has the present step in `cycle`. */
enum nrw_step { NRW_STEP_UP, NRW_STEP_DOWN, NRW_STEP_CRUISE, NRW_STEP_REFILL };

/* Which data the present ACKs acknowledge, relative to the latest probe. */
enum nrw_acks {
	NRW_ACKS_INIT,		/* data unrelated to a probe */
	NRW_ACKS_REFILLING,	/* data sent before or in Refill */
	NRW_ACKS_STARTING,	/* data sent before the probe */
	NRW_ACKS_FEEDBACK,	/* data of the probe */
	NRW_ACKS_STOPPING,	/* data of a probe that is already over */
};

/* The phase to which BBR returns if the latest losses were spurious. */
enum nrw_undo { NRW_UNDO_NOTHING, NRW_UNDO_STARTUP, NRW_UNDO_UP };

#define NRW_SENT_COUNT		128

/* State of the connection when packets were sent (history.h). */
struct nrw_sent {
	__u32 delivered;	/* the entry applies from this value of tp->delivered */
	__u32 lost;		/* tp->lost */
	__u32 in_flight;	/* largest number of packets in flight just after a packet was sent */
};

struct nrw_bounds {
	__u32 inflight_hi;	/* largest volume in flight that was safe */
	__u32 inflight_lo;	/* bound from losses outside of probes, in packets */
	__u32 bw_lo;		/* used only in `before`; struct nrw_bbr has the present value */
};

struct nrw_bounded {
	struct nrw_bounds now;
	struct nrw_bounds before;	/* bounds before the present episode of losses */
	__u32 bw_latest;		/* largest delivery rate in this round */
	__u32 inflight_latest;		/* largest delivered volume in this round, packets */
	__u32 loss_round_delivered;
	__u32 bw_hi[2];			/* largest delivery rate in the previous cycle and in this one */
	__u64 down_at;			/* start of Down */
	__u64 wait_us;			/* time from down_at to the next probe */
	__u64 up_at;
	__u32 rounds;			/* rounds since the latest probe; starts at a random value */
	__u32 up_rounds;
	__u32 up_acked;
	__u32 acked_per_packet;		/* inflight_hi grows by one packet for this many acknowledged packets */
	__u32 drain_round;		/* round in which Drain began */
	__u32 recent_rtt_us;		/* minimum RTT over the shorter of two windows of time (BBR3-9) */
	__u64 recent_rtt_at;
	__u32 startup_losses;		/* ACKs of this round that reported losses */
	__u32 lost;			/* tp->lost when losses were last handled */
	__u32 sent_count;		/* entries written to `sent` so far */
	__u8 has_before;
	__u8 loss_in_round;
	__u8 loss_round_start;
	__u8 acks;
	__u8 is_sampling;		/* losses are attributed to the latest probe */
	__u8 was_too_high;		/* the latest probe had excessive loss */
	__u8 was_cautious;		/* the latest probe was stopped at the old bound as a precaution */
	__u8 full_now;			/* the present search has found that the pipe is full */
	__u8 is_repairing;		/* in recovery, where further losses belong to the present episode */
	__u8 undo;
	__u8 has_entered_cwr;		/* entered CWR since the last ACK */
	struct nrw_sent sent[NRW_SENT_COUNT];
};

/*
 * This map is separate from nrw_bbrs, because it needs 1.7 kB per connection. Connections of v1 and its
 * variants do not need this memory.
 */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct nrw_bounded);
} nrw_boundeds SEC(".maps");

/* Returns `percent` % of `of`, rounded down as in the simulator. */
static __always_inline __u32 nrw_percent(__u32 percent, __u64 of)
{
	return percent * of / 100;
}

/* Starts a round. The round ends when data sent from now on is delivered. */
static __always_inline void nrw_start_round(struct nrw_bbr *s, const struct tcp_sock *tp)
{
	s->next_round_delivered = tp->delivered;
}

/*
 * Returns whether the phase probes for bandwidth. Losses in such a phase lower neither inflight_lo nor bw_lo.
 */
static __always_inline int nrw_is_probing(const struct nrw_bbr *s)
{
	return s->mode == NRW_STARTUP ||
	       (s->mode == NRW_PROBE_BW && (s->cycle == NRW_STEP_UP || s->cycle == NRW_STEP_REFILL));
}

#endif
