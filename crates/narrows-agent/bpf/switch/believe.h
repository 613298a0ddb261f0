/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Decides which packets of a flow are believed. A host that is not on the flow's path can forge the flow's
 * addresses and ports, but must guess its sequence numbers (RFC 5961). For each direction, a slot keeps the
 * end of the data and the acknowledged number. A packet is believed if its sequence number and its
 * acknowledgement number are near these numbers. Other packets are counted in nrw_port.implausible, but not
 * as packets of the flow.
 *
 * If packets took another path, or this program did not run for a while, the slot's numbers are out of date.
 * In this case, the program does not believe the flow's real packets. If a direction has had no believed
 * packet for NRW_PAUSE_US, the program learns new numbers from a few consecutive packets.
 */
#ifndef NRW_BELIEVE_H
#define NRW_BELIEVE_H

#include "slot.h"

/* A gap in the data up to this size may be a loss upstream of this switch. */
#define NRW_AHEAD		(1U << 22)
/*
 * Data may begin this far below the acknowledged number. Such data is a spurious retransmission, because its
 * acknowledgement has already passed here.
 */
#define NRW_LATE		(1U << 20)
/* Largest advance of the acknowledgement number in a data packet. */
#define NRW_ACK_STEP		(1U << 20)
/* Tolerance in all other cases, such as reordered ACKs and gaps in the reverse direction. */
#define NRW_NEAR		(1U << 16)
/* Upper bound of the data in flight: about 0.2 s at 10 Gbit/s. */
#define NRW_FLIGHT		(1U << 28)
/* If a direction has no believed packet for longer than this, the program may learn new numbers. */
#define NRW_PAUSE_US		250000
/* Learning new numbers takes this many consecutive packets. */
#define NRW_LEARN		4
/* After this many packets from another interface, packets from that interface are believed. */
#define NRW_MOVE		8
#define NRW_MOVE_US		100000

/* Returns whether `value` is in [from, to], in serial arithmetic (RFC 9293). */
static __always_inline int nrw_within(__u32 value, __u32 from, __u32 to)
{
	return value - from <= to - from;
}

static __always_inline __u32 nrw_end(const struct nrw_packet *p)
{
	return p->seq + p->payload + (p->flags & NRW_TCP_FIN);
}

/*
 * Returns the oldest sequence number that may be in flight: the acknowledged number, or next - NRW_FLIGHT if
 * the acknowledged number is further back, because no recent ACK passed here.
 */
static __always_inline __u32 nrw_oldest(__u32 acked, __u32 next)
{
	return next - acked <= NRW_FLIGHT ? acked : next - NRW_FLIGHT;
}

/*
 * Returns the end of the reverse direction's data. If the end seen here is out of date, returns the number
 * that the data packets acknowledge.
 */
static __always_inline __u32 nrw_reverse_end(const struct nrw_slot *slot)
{
	__u32 sent = slot->ack_sent, next = slot->reverse_next;

	return next - sent <= NRW_FLIGHT ? next : sent;
}

/* Initializes the sequence numbers of a slot that is created at this SYN-ACK. */
static __always_inline void nrw_number_answered(struct nrw_slot *slot, const struct nrw_here *h, int by_receiver)
{
	const struct nrw_packet *p = h->packet;
	__u32 after = p->seq + 1 + p->payload;

	slot->seq_next = by_receiver ? after : p->ack;
	slot->ack_sent = by_receiver ? p->ack : p->seq + 1;
	slot->acked = slot->seq_seen = by_receiver ? p->seq + 1 : p->ack;
	slot->reverse_next = by_receiver ? p->ack : after;
	if (by_receiver)
		slot->data_if = h->skb->ingress_ifindex;
	else
		slot->reverse_if = h->skb->ingress_ifindex;
}

/*
 * Initializes the numbers of a slot that begins at a data packet. The amount of data in flight is unknown, so
 * the function assumes NRW_AHEAD bytes.
 */
static __always_inline void nrw_number_adopted(struct nrw_slot *slot, const struct nrw_here *h)
{
	const struct nrw_packet *p = h->packet;

	slot->seq_next = slot->seq_seen = p->seq;
	slot->acked = p->seq - NRW_AHEAD;
	slot->ack_sent = slot->reverse_next = p->ack;
	slot->data_if = h->skb->ingress_ifindex;
}

/*
 * Handles a packet that is not believed, after a pause in its direction. Returns whether enough consecutive
 * packets have arrived to learn new numbers. A packet that does not continue the previous packets reduces the
 * count by one, but does not reset it. A few forged packets therefore only delay the learning.
 */
static __always_inline int nrw_learn(__u32 *next, __u8 *n, const struct nrw_packet *p)
{
	if (*n && p->seq - *next > NRW_NEAR) {
		(*n)--;
		return 0;
	}
	*next = nrw_end(p);
	if (++*n < NRW_LEARN)
		return 0;
	*n = 0;
	return 1;
}

/* Returns whether the data packet acknowledges numbers that the other end has sent. */
static __always_inline int nrw_acks_reverse(const struct nrw_slot *slot, const struct nrw_packet *p)
{
	return nrw_within(p->ack, slot->ack_sent - NRW_NEAR, nrw_reverse_end(slot) + NRW_ACK_STEP);
}

static __always_inline int nrw_learn_data(struct nrw_here *h, struct nrw_slot *slot)
{
	const struct nrw_packet *p = h->packet;
	int reverse_is_known = slot->reverse_us && h->now_us - slot->reverse_us <= NRW_PAUSE_US;

	if (reverse_is_known && !nrw_acks_reverse(slot, p))
		return 0;
	if (!p->payload || (p->flags & (NRW_TCP_RST | NRW_TCP_FIN)) || h->now_us - slot->data_us <= NRW_PAUSE_US ||
	    !nrw_learn(&slot->learn_data, &slot->learn_data_n, p))
		return 0;
	slot->seq_next = p->seq;
	slot->acked = p->seq - NRW_AHEAD;
	slot->ack_sent = p->ack;
	return 1;
}

/* Learns the other direction's numbers from a packet that acknowledges data seen here. */
static __always_inline int nrw_learn_reverse(struct nrw_here *h, struct nrw_slot *slot)
{
	const struct nrw_packet *p = h->packet;
	__u32 next = slot->seq_next;

	if (!(p->flags & NRW_TCP_ACK) || (p->flags & (NRW_TCP_RST | NRW_TCP_FIN)) ||
	    (slot->reverse_us && h->now_us - slot->reverse_us <= NRW_PAUSE_US) || next - p->ack > NRW_FLIGHT ||
	    !nrw_learn(&slot->learn_reverse, &slot->learn_reverse_n, p))
		return 0;
	slot->seq_seen = next;
	slot->acked = p->ack;
	slot->reverse_next = p->seq;
	return 1;
}

/*
 * Returns whether the data arrived at the same interface as earlier data of the flow. The caller rejects a
 * RST or FIN that arrived at another interface.
 */
static __always_inline int nrw_data_interface(struct nrw_here *h, struct nrw_slot *slot)
{
	/*
	 * The lower half of the ifindex is enough. Packets that this host sends, and packets of a software
	 * path, have 0 as ingress_ifindex.
	 */
	__u16 from = h->skb->ingress_ifindex;

	if (!from || slot->data_if == from)
		return 1;
	if (slot->data_if && (slot->data_if_new != from || ++slot->data_if_n < NRW_MOVE)) {
		if (slot->data_if_new != from)
			slot->data_if_n = 0;
		slot->data_if_new = from;
		return 0;
	}
	slot->data_if = from;
	slot->data_if_n = 0;
	return 1;
}

/*
 * Returns whether a packet of the reverse direction arrived at the believed interface. If packets arrive by
 * two paths, only one path is believed. The program changes to the other path when the believed path has had
 * no packets for a while.
 */
static __always_inline int nrw_reverse_interface(struct nrw_here *h, struct nrw_slot *slot)
{
	__u32 from = h->skb->ingress_ifindex;

	if (!from || slot->reverse_if == from)
		return 1;
	if (slot->reverse_if) {
		if (slot->reverse_if_new != from)
			slot->reverse_if_n = 0;
		slot->reverse_if_new = from;
		if (slot->reverse_if_n < NRW_MOVE)
			slot->reverse_if_n++;
		if (slot->reverse_if_n < NRW_MOVE || h->now_us - slot->reverse_us <= NRW_MOVE_US)
			return 0;
	}
	slot->reverse_if = from;
	slot->reverse_if_n = 0;
	return 1;
}

/*
 * Returns whether a RST has an exact number: the end of the data, or the number that the other end expects. A
 * RST ends a connection only if it has the number that its receiver expects (RFC 5961, section 3.2).
 */
static __always_inline int nrw_exact(__u32 seq, __u32 next, __u32 expected)
{
	return seq == next || seq == expected;
}

/* Returns whether a packet of the data direction is believed, and updates the slot's numbers. */
static __always_inline int nrw_believe_data(struct nrw_here *h, struct nrw_slot *slot)
{
	const struct nrw_packet *p = h->packet;
	__u32 next = slot->seq_next, sent = slot->ack_sent;
	int ends = p->flags & (NRW_TCP_RST | NRW_TCP_FIN);

	/*
	 * If data arrives in order, this condition is false, and the program does not read the numbers that
	 * packets of the other direction write. The cache line of these numbers therefore stays with the CPU
	 * of the other direction.
	 */
	if (p->seq != next || !nrw_within(p->ack, sent - NRW_NEAR, sent + NRW_NEAR) || ends) {
		__u32 acked = slot->acked;

		if (!nrw_within(p->seq, nrw_oldest(acked, next) - NRW_LATE, next + NRW_AHEAD))
			return nrw_learn_data(h, slot);
		if ((p->flags & NRW_TCP_ACK) && !nrw_acks_reverse(slot, p))
			return nrw_learn_data(h, slot);
		if ((p->flags & NRW_TCP_RST) && !nrw_exact(p->seq, next, acked))
			return 0;
	}
	if (!nrw_data_interface(h, slot) && ends)
		return 0;
	if ((p->flags & NRW_TCP_ACK) && (__s32)(p->ack - sent) > 0)
		slot->ack_sent = p->ack;
	return 1;
}

/* Returns whether a packet of the other direction is believed, and updates the slot's numbers. */
static __always_inline int nrw_believe_reverse(struct nrw_here *h, struct nrw_slot *slot)
{
	const struct nrw_packet *p = h->packet;
	__u32 next = slot->seq_seen, acked = slot->acked, sent = slot->ack_sent, theirs = nrw_reverse_end(slot);

	/*
	 * Each data packet changes the slot's first cache line. If each ACK read this line, both CPUs would
	 * be slower. Read the line only when an ACK exceeds the last copy of seq_next, about once per flight.
	 */
	if ((__s32)(p->ack - next) > 0)
		next = slot->seq_next;
	if (!nrw_within(p->seq, sent - NRW_NEAR, theirs + NRW_NEAR) ||
	    ((p->flags & NRW_TCP_ACK) && !nrw_within(p->ack, nrw_oldest(acked, next) - NRW_NEAR, next))) {
		if (!nrw_learn_reverse(h, slot))
			return 0;
		next = slot->seq_seen;
		acked = p->ack;
		theirs = p->seq;
	}
	if ((p->flags & NRW_TCP_RST) && !nrw_exact(p->seq, theirs, sent))
		return 0;
	if (!nrw_reverse_interface(h, slot))
		return 0;
	slot->seq_seen = next;
	if ((p->flags & NRW_TCP_ACK) && (__s32)(p->ack - acked) > 0)
		slot->acked = p->ack;
	if ((__s32)(nrw_end(p) - theirs) > 0)
		slot->reverse_next = nrw_end(p);
	slot->reverse_us = h->now_us;
	return 1;
}

#endif
