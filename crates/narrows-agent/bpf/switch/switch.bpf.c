// SPDX-License-Identifier: GPL-2.0-only
/*
 * The switch's data plane is one program at the egress of every port. It sees each packet once, when the
 * packet leaves.
 *
 * The program handles three kinds of packets:
 *
 * - Data that leaves by a controlled port: the program counts the packet for its flow and puts it into a
 *   leaf.
 * - Packets of the other direction of such a flow, at any port: the program reads their timestamps and writes
 *   a rate into them.
 * - Packets of a handshake (handshake.h).
 *
 * A switch with BDR keeps no flows. The shorter code in designated.h replaces the code for slots.
 *
 * The program makes no decisions. The agent decides rates, leaves and class priorities (maps.h).
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <stddef.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "designated.h"
#include "flow.h"
#include "gtp.h"
#include "handshake.h"
#include "queue.h"
#include "syn.h"

char LICENSE[] SEC("license") = "GPL";

/* After this result, the kernel runs the next program of the hook. The value equals TCX_NEXT. */
#define NRW_NEXT	TC_ACT_UNSPEC

/* Counts packets that may contain flows that this program does not see. */
static __always_inline void nrw_note_unopened(struct nrw_here *h)
{
	__u32 kind = h->packet->unopened;

	if (!kind)
		return;
	kind--;
	barrier_var(kind);
	if (kind < NRW_UNOPENED_KINDS)
		nrw_count(h->port->unopened[kind]);
}

static __always_inline int nrw_udp(struct nrw_here *h)
{
	nrw_note_unopened(h);
	if (!nrw_controlled(h->port))
		return NRW_NEXT;
	nrw_steer_udp(h);
	if ((h->port->mode & NRW_MODE_POLICE_UDP) && !nrw_police_udp(h->port, h->now, h->packet->bytes)) {
		nrw_count(h->port->udp_policed);
		return TC_ACT_SHOT;
	}
	return NRW_NEXT;
}

/* Returns whether the packet may pass the policer of SYNs, which applies only at controlled ports. */
static __always_inline int nrw_syn_passes(struct nrw_here *h)
{
	__u32 of = NRW_TCP_SYN | NRW_TCP_ACK | NRW_TCP_RST;

	return (h->packet->flags & of) != NRW_TCP_SYN || !nrw_controlled(h->port) ||
	       !(h->port->mode & NRW_MODE_POLICE_SYN) || nrw_police_syn(h);
}

/* Handles a packet at a switch that keeps flows. Returns whether the packet may pass. */
static __always_inline int nrw_tcp_slots(struct nrw_here *h, struct nrw_word *word)
{
	const struct nrw_packet *p = h->packet;
	struct nrw_key key, *reverse = &key;
	struct nrw_advert *advert;
	struct nrw_slot *own = NULL, *other = NULL;
	__u32 index = 0;

	nrw_reverse(reverse, &p->key);
	if ((p->flags & (NRW_TCP_SYN | NRW_TCP_RST)) == NRW_TCP_SYN) {
		if (p->flags & NRW_TCP_ACK)
			nrw_syn_ack(h, reverse, word);
		else if (!nrw_syn_passes(h))
			return 0;	/* drop the SYN before it creates any state */
		else
			nrw_syn(h);
		if (nrw_controlled(h->port))
			own = nrw_find(&p->key, &index);
	} else {
		nrw_find_both(h, reverse, &own, &other, &index);
		if (other) {
			nrw_note_reverse(h, other, index, word);
		} else if (p->flags & NRW_TCP_ACK) {
			/*
			 * Another switch, which does not see these ACKs, may have advertised a rate for the
			 * flow (BRF-63).
			 */
			advert = bpf_map_lookup_elem(&adverts, reverse);
			if (advert && advert->valid_until_ns >= h->now) {
				word->port = h->port;
				word->code = advert->code;
			}
		}
	}
	if (p->flags & NRW_TCP_RST) {
		nrw_refuse(p, reverse);
		word->port = NULL;
	}
	if (nrw_controlled(h->port))
		nrw_steer(h, nrw_forward(h, reverse, own));
	return 1;
}

/* Handles a packet at a switch that keeps no flows. Returns whether the packet may pass. */
static __always_inline int nrw_tcp_stateless(struct nrw_here *h, struct nrw_word *word)
{
	if (!nrw_syn_passes(h))
		return 0;
	nrw_speak_stateless(h, word);
	if (nrw_controlled(h->port))
		nrw_steer(h, nrw_forward_stateless(h));
	return 1;
}

static __always_inline int nrw_tcp(struct nrw_here *h)
{
	struct nrw_word word = { .code = NRW_CODE_UNASSIGNED };
	int passes;

	/* The verifier removes the unused branch, because designations_mask is constant. */
	if (designations_mask)
		passes = nrw_tcp_stateless(h, &word);
	else
		passes = nrw_tcp_slots(h, &word);
	if (!passes)
		return TC_ACT_SHOT;
	return word.port && nrw_stamp(h, &word) == NRW_BROKEN ? TC_ACT_SHOT : NRW_NEXT;
}

SEC("tcx/egress")
int nrw_switch(struct __sk_buff *skb)
{
	struct nrw_here here = { .skb = skb };
	__u32 ifindex = skb->ifindex, zero = 0, *no = bpf_map_lookup_elem(&ifaces, &ifindex);
	int kind;

	if (!no)
		return NRW_NEXT;
	here.port_no = *no;
	here.port = nrw_port(here.port_no);
	if (!here.port)
		return NRW_NEXT;
	here.now = bpf_ktime_get_ns();
	if (!nrw_alive(here.port, here.now)) {
		nrw_count(here.port->watchdog);
		return NRW_NEXT;
	}
	here.now_us = here.now / 1000;
	here.now_us += !here.now_us;

	here.packet = bpf_map_lookup_elem(&packets, &zero);
	if (!here.packet)
		return NRW_NEXT;
	__builtin_memset(here.packet, 0, sizeof(*here.packet));
	kind = nrw_read_packet(skb, here.packet, !(here.port->mode & NRW_MODE_VLANS_ROUTED));
	if (kind == NRW_UDP && nrw_open_udp(skb, here.packet, here.port->mode & NRW_MODE_OPEN_GTP))
		kind = nrw_read_inner(skb, here.packet);
	switch (kind) {
	case NRW_TCP:
		return nrw_tcp(&here);
	case NRW_UDP:
		return nrw_udp(&here);
	case NRW_MALFORMED:
		nrw_count(here.port->malformed);
		return NRW_NEXT;
	default:
		nrw_note_unopened(&here);
		return NRW_NEXT;
	}
}
