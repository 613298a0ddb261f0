/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records how many packets were in flight, and how many were lost, when an acknowledged packet was sent. BBR
 * v2 and v3 judge losses by these two numbers (tx.in_flight and tx.lost in the draft). Google's kernels store
 * them in each packet. A stock kernel stores only tp->delivered, which a rate sample reports as
 * prior_delivered. The program therefore stores both numbers for each value of tp->delivered.
 *
 * Nothing is delivered between two ACKs, so all packets sent in this time have the same prior_delivered. The
 * next ACK's prior_in_flight is the largest number of packets in flight in this time. With more than
 * NRW_SENT_COUNT / 2 packets in flight, one entry covers several ACKs. In this case, the numbers of the entry
 * may belong to a packet that was sent up to 1/64 of a window earlier or later than the acknowledged packet.
 */
#ifndef NRW_HISTORY_H
#define NRW_HISTORY_H

static __always_inline struct nrw_sent *nrw_sent_entry(struct nrw_bounded *b, __u32 index)
{
	return &b->sent[index & (NRW_SENT_COUNT - 1)];
}

static __always_inline void nrw_begin_history(struct nrw_bounded *b, const struct tcp_sock *tp)
{
	b->sent_count = 1;
	b->sent[0].delivered = tp->delivered;
	b->sent[0].lost = tp->lost;
	b->sent[0].in_flight = nrw_in_flight(tp);
}

/* Called before an ACK is handled. Completes the entry for the packets sent since the last ACK. */
static __always_inline void nrw_close_history(struct nrw_bounded *b, const struct rate_sample *rs)
{
	struct nrw_sent *newest = nrw_sent_entry(b, b->sent_count - 1);

	newest->in_flight = nrw_max(newest->in_flight, rs->prior_in_flight);
}

/* Called after an ACK was handled. Begins an entry for the packets sent from now on. */
static __always_inline void nrw_continue_history(struct nrw_bounded *b, const struct tcp_sock *tp)
{
	__u32 in_flight = nrw_in_flight(tp);
	struct nrw_sent *newest = nrw_sent_entry(b, b->sent_count - 1);

	if (tp->delivered - newest->delivered <= in_flight / (NRW_SENT_COUNT / 2))
		return;
	newest = nrw_sent_entry(b, b->sent_count);
	newest->delivered = tp->delivered;
	newest->lost = tp->lost;
	newest->in_flight = in_flight;
	b->sent_count++;
}

/*
 * Searches for the entry of packets that were sent when tp->delivered was `prior_delivered`, and returns it.
 * If these packets are older than the history, returns the oldest entry.
 */
static __always_inline const struct nrw_sent *nrw_when_sent(struct nrw_bounded *b, __u32 prior_delivered)
{
	__u32 count = nrw_min(b->sent_count, NRW_SENT_COUNT);
	__u32 oldest = b->sent_count - count;
	__u32 at = 0, step;

	for (step = NRW_SENT_COUNT / 2; step; step >>= 1) {
		if (at + step < count &&
		    nrw_reached(prior_delivered, nrw_sent_entry(b, oldest + at + step)->delivered))
			at += step;
	}
	return nrw_sent_entry(b, oldest + at);
}

#endif
