/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Handles the handshakes of flows (BRF-12 to BRF-14, BRF-31, BRF-32). A SYN only adds an entry to the table
 * of half-open connections, and may evict an old entry of this table. At the SYN-ACK, the flow gets a slot.
 * The SYN-ACK carries the flow's first rate.
 */
#ifndef NRW_HANDSHAKE_H
#define NRW_HANDSHAKE_H

#include "believe.h"
#include "rtt.h"
#include "slot.h"
#include "stamp.h"
#include "way.h"

#define NRW_SERVICE_PORTS	32768	/* higher ports are ephemeral (BRF-31) */

static __always_inline void nrw_syn(struct nrw_here *h)
{
	const struct nrw_packet *p = h->packet;
	struct nrw_half *known = bpf_map_lookup_elem(&half_open, &p->key);
	struct nrw_half half = { .syn_ns = h->now, .port = h->port_no, .permitted = p->options.has_rate,
				 .syn_payload = p->payload, .syn_seq = p->seq, .mark = h->skb->mark,
				 .vlan = p->vlan };

	nrw_count(h->port->syns);
	if (known && h->now - known->syn_ns <= handshake_ns) {
		/*
		 * Keep the time of the first SYN. The entry then times out even if the SYN is repeated
		 * without end.
		 */
		known->permitted = p->options.has_rate;
		known->syn_payload = p->payload;
		known->syn_seq = p->seq;
		known->mark = h->skb->mark;
		known->vlan = p->vlan;
		/*
		 * A bridge sends a SYN through all its ports until it has learned the destination's port.
		 * These copies do not count as repetitions.
		 */
		if (known->port == h->port_no)
			known->repeated = 1;
		else if (h->port->mode & NRW_MODE_CONTROLLED)
			known->port = h->port_no;
		return;
	}
	bpf_map_update_elem(&half_open, &p->key, &half, BPF_ANY);
}

/* Returns the code of the predictor's grant for this flow's service, or NRW_CODE_UNASSIGNED. */
static __always_inline __u16 nrw_service_code(__u32 port_no, const struct nrw_key *data)
{
	__u16 sport = bpf_ntohs(data->sport), dport = bpf_ntohs(data->dport);
	struct nrw_service service;
	__u16 *code;

	if (sport >= NRW_SERVICE_PORTS && dport >= NRW_SERVICE_PORTS)
		return NRW_CODE_UNASSIGNED;
	__builtin_memset(&service, 0, sizeof(service));
	__builtin_memcpy(service.prefix, data->daddr, 3);
	if (data->family == 6)
		__builtin_memcpy(service.prefix, data->daddr, 6);
	service.port = sport < dport ? data->sport : data->dport;
	service.family = data->family;
	service.ctl_port = port_no;
	code = bpf_map_lookup_elem(&services, &service);
	return code ? *code : NRW_CODE_UNASSIGNED;
}

/*
 * Returns the index of the grant for the k-th new flow of a tick, where k starts at 0. Grants with a larger
 * index are smaller. Otherwise, the sum of the rates of many new flows would be many times the rate of the
 * link. newcomers_up_to() in dataplane/layout.rs must agree with this function.
 */
static __always_inline __u32 nrw_grant_of(__u32 k)
{
	__u32 at = NRW_SINGLE_GRANTS, newcomers = 2 * NRW_SINGLE_GRANTS;

	if (k < NRW_SINGLE_GRANTS)
		return k;
	for (; at < NRW_GRANTS - 1 && k >= newcomers; at++)
		newcomers *= 2;
	return at;
}

/*
 * Returns the ready grant for the next new flow. If `takes` is set, counts the flow as one of the tick's new
 * flows.
 */
static __always_inline __u16 nrw_grant(struct nrw_port *port, __u32 port_no, const struct nrw_key *data, int takes)
{
	__u32 tick = port->tick, k;
	__u16 code, known;

	if (port->newcomers_tick != tick) {
		/* If two CPUs restart the count at the same time, two new flows may get the same grant. */
		port->newcomers_tick = tick;
		port->newcomers = 0;
	}
	k = takes ? __sync_fetch_and_add(&port->newcomers, 1) : port->newcomers;
	k = nrw_grant_of(k);
	barrier_var(k);
	code = port->grants[k < NRW_GRANTS ? k : NRW_GRANTS - 1];
	known = nrw_service_code(port_no, data);
	return nrw_is_rate(code) && nrw_is_rate(known) && nrw_decode(known) < nrw_decode(code) ? known : code;
}

/*
 * Returns whether the packet acknowledges the SYN. Only a host that received the SYN can acknowledge its
 * sequence number.
 */
static __always_inline int nrw_answers(const struct nrw_packet *p, const struct nrw_half *half)
{
	return p->ack - (half->syn_seq + 1) <= half->syn_payload;
}

/* Returns whether this packet repeats the SYN-ACK that created the slot. */
static __always_inline int nrw_same_answer(const struct nrw_packet *p, const struct nrw_slot *slot, int by_receiver)
{
	if (by_receiver)
		return p->seq + 1 == slot->acked && p->ack == slot->ack_sent;
	return p->ack == slot->acked && p->seq + 1 == slot->ack_sent;
}

#define NRW_QUIET_NS		1000000000ULL

/*
 * Returns whether a new connection may have the same addresses and ports as the slot's connection. This is
 * possible if the slot's connection has ended, or has had no packets for NRW_QUIET_NS. Otherwise, the program
 * treats the new handshake as forged (RFC 5961, section 4).
 */
static __always_inline int nrw_replaceable(const struct nrw_slot *slot, __u64 now)
{
	__u32 both = NRW_F_FIN_SENDER | NRW_F_FIN_RECEIVER, flags = slot->flags;

	return (flags & NRW_F_RST) || (flags & both) == both || now - slot->last_ns > NRW_QUIET_NS;
}

/* Handles a SYN-ACK of a flow that has a slot from an earlier SYN-ACK. */
static __always_inline void nrw_syn_ack_again(struct nrw_here *h, struct nrw_slot *slot)
{
	nrw_flag(slot, NRW_F_SYN_REPEATED);
	slot->last_ns = h->now;
}

static __always_inline void nrw_begin(struct nrw_here *h, const struct nrw_half *half, struct nrw_port *port,
				      __u32 port_no, const struct nrw_key *data, int by_receiver, struct nrw_word *word)
{
	const struct nrw_options *o = &h->packet->options;
	/* The sender of the data must ask for feedback, in its SYN or in its SYN-ACK (BRF-10, BRF-14). */
	int rated = by_receiver ? o->has_rate : half->permitted;
	__u32 sample = (h->now - half->syn_ns) / 1000, flags, index;
	struct nrw_slot *slot = nrw_take(port, port_no, data, h->now, &index, 0);

	if (!slot) {
		if (rated && !by_receiver) {
			word->port = port;
			word->code = nrw_grant(port, port_no, data, 0);
		}
		return;
	}
	/* If the receiver sent the SYN, the SYN-ACK is a packet of the data direction. */
	slot->mark = by_receiver ? h->skb->mark : half->mark;
	slot->vlan = by_receiver ? h->packet->vlan : half->vlan;
	flags = (rated ? NRW_F_RATED : 0) | (by_receiver ? NRW_F_OPENED_BY_RECEIVER : 0) |
		(half->repeated ? NRW_F_SYN_REPEATED : 0) | (!by_receiver && o->has_rate ? NRW_F_ANSWER_ASKS : 0);
	if (rated) {
		slot->leaf = NRW_LEAF_ELEPHANT;
		slot->code = nrw_grant(port, port_no, data, 1);
		flags |= nrw_is_rate(slot->code) ? NRW_F_GRANTED : 0;
	}
	/* The third packet of the handshake gives the other half of the RTT. */
	if (by_receiver) {
		if (!half->repeated)
			nrw_sample_sender(slot, sample ? sample : 1);
		slot->wait_receiver_ts = o->value;
		slot->wait_receiver_us = h->now_us;
	} else {
		if (!half->repeated)
			nrw_sample_receiver(slot, sample ? sample : 1);
		slot->wait_sender_ts = o->value;
		slot->wait_sender_us = h->now_us;
	}
	nrw_number_answered(slot, h, by_receiver);
	slot->flags = flags;
	if (nrw_publish(port, slot, index) || by_receiver)
		return;
	if (port->mode & NRW_MODE_MESSAGES)
		nrw_learn_way(h, index);
	word->port = port;
	word->slot = slot;
	word->code = slot->code;
}

/* Records a SYN-ACK that got no slot. The first data that acknowledges it gets a slot. */
static __always_inline void nrw_answered(struct nrw_here *h, struct nrw_half *half)
{
	half->answer_seq = h->packet->seq;
	half->answered_ns = h->now;
}

/*
 * Ends a handshake at a RST that acknowledges the SYN, or that continues its sequence number. After any other
 * RST, the entry stays until it times out.
 */
static __always_inline void nrw_refuse(const struct nrw_packet *p, const struct nrw_key *reverse)
{
	struct nrw_half *half = bpf_map_lookup_elem(&half_open, reverse);

	if (half && (p->flags & NRW_TCP_ACK) && nrw_answers(p, half))
		bpf_map_delete_elem(&half_open, reverse);
	half = bpf_map_lookup_elem(&half_open, &p->key);
	if (half && p->seq - (half->syn_seq + 1) <= half->syn_payload)
		bpf_map_delete_elem(&half_open, &p->key);
}

/* Handles a SYN-ACK. `opener` is the key of the SYN, which is the packet's reversed key. */
static __always_inline void nrw_syn_ack(struct nrw_here *h, const struct nrw_key *opener, struct nrw_word *word)
{
	struct nrw_half *half = bpf_map_lookup_elem(&half_open, opener);
	struct nrw_half seen = {};
	struct nrw_port *port = NULL;
	const struct nrw_key *data = opener;
	struct nrw_slot *slot;
	__u32 port_no = 0, index;
	int by_receiver = 0;

	if (half && h->now - half->syn_ns <= handshake_ns) {
		if (!nrw_answers(h->packet, half)) {
			nrw_count(h->port->implausible);
			return;
		}
		seen = *half;
		port_no = seen.port;
		port = nrw_port(port_no);
		if (!port || !nrw_controlled(port)) {
			/*
			 * The direction of the SYN's sender is not controlled, so the slot is for the
			 * direction of the SYN-ACK's sender. (If both directions are controlled, the SYN's
			 * direction gets a slot now. The direction of the SYN-ACK gets a slot with its first
			 * data.)
			 */
			port = nrw_controlled(h->port) ? h->port : NULL;
			port_no = h->port_no;
			data = &h->packet->key;
			by_receiver = 1;
		}
		if (!port)
			return;
	}
	slot = nrw_find(data, &index);
	if (slot && !(slot->flags & (NRW_F_CONFIRMED | NRW_F_RST))) {
		if (!nrw_same_answer(h->packet, slot, by_receiver)) {
			nrw_count(h->port->implausible);
			return;
		}
		nrw_syn_ack_again(h, slot);
		bpf_map_delete_elem(&half_open, opener);
		/* Write the initial rate again, regardless of the gate (BRF-60). */
		slot->gate_us = 0;
		if (!by_receiver) {
			word->port = nrw_port(slot->port);
			word->slot = slot;
			word->code = slot->code;
		}
		return;
	}
	if (!port)
		return;
	if (slot) {
		/*
		 * A new connection has the addresses and ports of an old one. Only the agent can free the old
		 * slot, within a tick. The half-open entry stays, so the new connection gets a slot with its
		 * first data.
		 */
		if (!nrw_replaceable(slot, h->now)) {
			nrw_count(h->port->implausible);
			return;
		}
		nrw_flag(slot, NRW_F_RST);
		nrw_answered(h, half);
		return;
	}
	nrw_begin(h, &seen, port, port_no, data, by_receiver, word);
	if (nrw_find(data, &index))
		bpf_map_delete_elem(&half_open, opener);
	else
		nrw_answered(h, half);
}

#endif
