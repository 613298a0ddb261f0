/* SPDX-License-Identifier: GPL-2.0-only */
/* Counts the packets of flows, and chooses the port's queue for each packet. */
#ifndef NRW_FLOW_H
#define NRW_FLOW_H

#include "believe.h"
#include "rtt.h"
#include "slot.h"
#include "stamp.h"
#include "way.h"

/*
 * Returns whether the packet shows that its sender applies rates (BRF-10, BRF-105). The program cannot rely
 * on the SYN, which may not have passed here.
 */
static __always_inline int nrw_speaks_brf(const struct nrw_packet *p)
{
	return p->options.has_rate || p->options.has_report || p->options.marks_unlimited || p->options.marks_limited;
}

/*
 * Counts the payload that the sequence numbers skip. It was lost upstream of this switch (BRF-100).
 * Comparisons use serial arithmetic (RFC 9293).
 */
static __always_inline void nrw_note_sequence(struct nrw_slot *slot, const struct nrw_packet *p)
{
	__u32 end = nrw_end(p);
	__s32 gap = p->seq - slot->seq_next;

	if (gap > 0 && p->payload)
		slot->missing += gap;
	if ((__s32)(end - slot->seq_next) > 0)
		slot->seq_next = end;
}

/* Counts marks. A mark states whether the application limits the flow (BRF-100). */
static __always_inline void nrw_note_marks(struct nrw_slot *slot, const struct nrw_options *o)
{
	if (o->marks_unlimited || (o->has_rate && o->code == NRW_CODE_UNLIMITED))
		slot->marked_unlimited++;
	else if (o->marks_limited || (o->has_rate && !nrw_is_rate(o->code)))
		slot->marked_limited++;
}

static __always_inline void nrw_note_payload(struct nrw_here *h, struct nrw_slot *slot)
{
	const struct nrw_packet *p = h->packet;

	__sync_fetch_and_add(&slot->bytes, p->bytes);
	nrw_note_marks(slot, &p->options);
	nrw_rtt_data(h, slot);
}

/* Handles a packet of the data direction at its controlled port. Returns whether the packet is believed. */
static __always_inline int nrw_note_data(struct nrw_here *h, struct nrw_slot *slot)
{
	const struct nrw_packet *p = h->packet;

	if (p->flags & NRW_TCP_SYN) {
		/*
		 * If last_ns is the present time, this SYN-ACK has just created the slot. Otherwise, the
		 * SYN-ACK is a retransmission.
		 */
		if ((p->flags & NRW_TCP_ACK) && slot->last_ns != h->now && p->seq + 1 == slot->acked)
			nrw_flag(slot, NRW_F_SYN_REPEATED);
		return 1;
	}
	if (!nrw_believe_data(h, slot)) {
		nrw_count(h->port->implausible);
		return 0;
	}
	nrw_touch(slot, h->now);
	if (!(slot->flags & (NRW_F_SENDER_SEEN | NRW_F_OPENED_BY_RECEIVER | NRW_F_ADOPTED))) {
		nrw_rtt_third(h, slot);
		nrw_confirm(h->port, slot);
	}
	nrw_flag(slot, NRW_F_SENDER_SEEN | (nrw_speaks_brf(p) ? NRW_F_SPEAKS_BRF : 0));
	if (p->payload | (p->flags & NRW_TCP_FIN))
		nrw_note_sequence(slot, p);
	if (p->payload)
		nrw_note_payload(h, slot);
	if (p->flags & NRW_TCP_RST)
		nrw_flag(slot, NRW_F_RST);
	else if (p->flags & NRW_TCP_FIN)
		nrw_flag(slot, NRW_F_FIN_SENDER);
	return 1;
}

#define NRW_SEEN		1
#define NRW_SEEN_BRF		2	/* a packet with the rate option was seen */

/*
 * Records that the receiver was seen. Runs for the receiver's first packet, and for its first packet with the
 * option.
 */
static __always_inline void nrw_note_receiver(struct nrw_here *h, struct nrw_slot *slot, struct nrw_port *port)
{
	int speaks = h->packet->options.has_rate;

	if (!(slot->flags & NRW_F_RECEIVER_SEEN) && (slot->flags & (NRW_F_OPENED_BY_RECEIVER | NRW_F_ADOPTED))) {
		if (!(slot->flags & NRW_F_ADOPTED))
			nrw_rtt_third(h, slot);
		nrw_confirm(port, slot);
	}
	nrw_flag(slot, NRW_F_RECEIVER_SEEN | (speaks ? NRW_F_SPEAKS_BRF : 0));
	slot->receiver_seen = speaks ? NRW_SEEN_BRF : NRW_SEEN;
}

/* Handles a packet of the other direction, which may leave through any port. */
static __always_inline void nrw_note_reverse(struct nrw_here *h, struct nrw_slot *slot, __u32 index, struct nrw_word *word)
{
	const struct nrw_packet *p = h->packet;
	struct nrw_port *port = nrw_port(slot->port);

	if (!port)
		return;
	if (!nrw_believe_reverse(h, slot)) {
		nrw_count(port->implausible);
		/*
		 * The sender itself decides whether this ACK is valid. The switch therefore writes its rate
		 * into the ACK, but stores nothing about the ACK.
		 */
		if ((p->flags & NRW_TCP_ACK) && nrw_alive(port, h->now)) {
			word->port = port;
			word->code = slot->code;
		}
		return;
	}
	nrw_touch(slot, h->now);
	if (port->mode & NRW_MODE_MESSAGES)
		nrw_learn_way(h, index);
	if (!slot->receiver_seen || (p->options.has_rate && slot->receiver_seen != NRW_SEEN_BRF))
		nrw_note_receiver(h, slot, port);
	if (p->flags & NRW_TCP_RST) {
		nrw_flag(slot, NRW_F_RST);
		return;
	}
	nrw_rtt_reverse(h, slot);
	if (p->flags & NRW_TCP_FIN)
		nrw_flag(slot, NRW_F_FIN_RECEIVER);
	if ((p->flags & NRW_TCP_ACK) && nrw_alive(port, h->now)) {
		word->port = port;
		word->slot = slot;
		word->code = slot->code;
	}
}

/*
 * Returns whether the data acknowledges the SYN-ACK that got no slot. If so, the sender of the data has
 * received the SYN-ACK. Both sides are then confirmed, because a host that forges addresses would have to
 * guess the SYN-ACK's number. The data may also acknowledge data that the server sent in its first window.
 * This window is at most 65,535 bytes, because the window of a SYN is not scaled (RFC 7323).
 */
static __always_inline int nrw_proven(const struct nrw_packet *p, const struct nrw_half *half)
{
	return half->answered_ns && (p->flags & NRW_TCP_ACK) && p->ack - (half->answer_seq + 1) <= 0xffff;
}

/*
 * Returns whether the SYN-ACK asked for feedback. The program knows this only if the direction of the SYN is
 * also controlled and has a slot.
 */
static __always_inline int nrw_asked_in_answer(const struct nrw_key *reverse)
{
	__u32 index;
	struct nrw_slot *opener = nrw_find(reverse, &index);

	return opener && (opener->flags & NRW_F_ANSWER_ASKS);
}

/*
 * At a data packet, takes a slot for a flow that has none. The flow's SYN-ACK took another path, got no slot,
 * or passed before this switch started. The data may be forged, so the flow is unconfirmed until a packet of
 * the other side is seen.
 */
static __always_inline struct nrw_slot *nrw_adopt(struct nrw_here *h, const struct nrw_key *reverse, __u32 *index)
{
	const struct nrw_key *key = &h->packet->key;
	struct nrw_half *half = bpf_map_lookup_elem(&half_open, key);
	int opened = half != NULL, rated = nrw_speaks_brf(h->packet), proven = 0;
	struct nrw_slot *slot;

	if (half) {
		rated |= half->permitted;
		proven = nrw_proven(h->packet, half);
	} else {
		half = bpf_map_lookup_elem(&half_open, reverse);
		rated |= nrw_asked_in_answer(reverse);
	}
	slot = nrw_take(h->port, h->port_no, key, h->now, index, proven);
	if (!slot)
		return NULL;
	nrw_number_adopted(slot, h);
	slot->mark = h->skb->mark;
	slot->vlan = h->packet->vlan;
	slot->leaf = rated ? NRW_LEAF_ELEPHANT : NRW_LEAF_OTHER_TCP;
	slot->flags |= NRW_F_ADOPTED | (rated ? NRW_F_RATED : 0) | (half ? 0 : NRW_F_GUESSED) |
		      (half && !opened ? NRW_F_OPENED_BY_RECEIVER : 0);
	if (nrw_publish(h->port, slot, *index))
		return NULL;
	if (opened)
		bpf_map_delete_elem(&half_open, key);
	return slot;
}

/*
 * Finds the slots of both directions of a connection, if this port needs them. A connection with data in only
 * one direction has one slot. This slot records that the other direction has no slot, so the program needs
 * only one table lookup per packet.
 */
static __always_inline void nrw_find_both(const struct nrw_here *h, const struct nrw_key *reverse, struct nrw_slot **own,
					  struct nrw_slot **other, __u32 *other_index)
{
	const struct nrw_packet *p = h->packet;
	__u32 index;

	if (p->payload && nrw_controlled(h->port)) {
		*own = nrw_find(&p->key, &index);
		if (!*own || (*own)->paired)
			*other = nrw_find(reverse, other_index);
		return;
	}
	*other = nrw_find(reverse, other_index);
	if (nrw_controlled(h->port) && (!*other || (*other)->paired))
		*own = nrw_find(&p->key, &index);
}

/*
 * Handles a TCP packet that leaves by a controlled port, and returns its leaf. `slot` is the slot of the
 * packet's direction.
 */
static __always_inline __u32 nrw_forward(struct nrw_here *h, const struct nrw_key *reverse, struct nrw_slot *slot)
{
	const struct nrw_packet *p = h->packet;
	__u32 index = 0;

	if (!slot && p->payload && !(p->flags & (NRW_TCP_SYN | NRW_TCP_RST)))
		slot = nrw_adopt(h, reverse, &index);
	/*
	 * Data of a flow that is not counted here must not enter the queue of flows that apply rates, even if
	 * it carries an option. An ACK without data may enter this queue if it carries an option and the
	 * limit on unconfirmed flows is not reached (BRF-104).
	 *
	 * After a change of route, the slot still belongs to the old port. The slot times out at the old
	 * port, and the flow gets a new slot at this port. The rules for data and ACKs above also apply to
	 * packets that are not believed.
	 */
	if (!slot || slot->port != h->port_no || !nrw_note_data(h, slot))
		return !p->payload && nrw_speaks_brf(p) && !nrw_crowded(h->port) ? NRW_LEAF_ELEPHANT : NRW_LEAF_OTHER_TCP;
	return slot->leaf;
}

#endif
