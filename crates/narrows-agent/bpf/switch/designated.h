/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * BDR's ports (NRW_MODE_STATELESS), which keep no flows (BDR-3): designated packets are counted in the
 * port's record, and all flows get the same rate.
 *
 * - The rate is written into ACKs that arrived at the interface of the port. The data of these ACKs leaves
 *   by this interface if both directions of the flow use one path.
 * - Only ACKs of senders that designate packets get a rate, and only data of such senders joins the queue of
 *   flows that apply rates. For these decisions the program has one array of times, which a hash of
 *   addresses and ports indexes. Its size does not depend on the number of flows. Flows with the same hash
 *   share a time.
 *
 * Without sequence numbers of a flow, the program cannot tell a forged packet from a real packet. A report
 * counts for at most report_max_us.
 */
#ifndef NRW_DESIGNATED_H
#define NRW_DESIGNATED_H

#include "handshake.h"
#include "queue.h"
#include "syn.h"

#define NRW_DESIGNATIONS	(1U << 17)	/* CELLS of crates/narrows-control/src/rate/bdr/stateless.rs */
#define NRW_DESIGNATED_NS	4000000000ULL	/* FRESH of the same file */

/* When a packet of a flow with this hash was last designated, ns. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NRW_DESIGNATIONS);
	__type(key, __u32);
	__type(value, __u64);
} designations SEC(".maps");

static __always_inline int nrw_is_stateless(const struct nrw_port *port)
{
	const __u32 both = NRW_MODE_CONTROLLED | NRW_MODE_STATELESS;

	return (port->mode & both) == both;
}

/* Returns the port without flows at whose interface this packet arrived, or NULL. */
static __always_inline struct nrw_port *nrw_stateless_behind(const struct nrw_here *h, __u32 *port_no)
{
	__u32 ifindex = h->skb->ingress_ifindex, *no;
	struct nrw_port *port;

	if (!ifindex)
		return NULL;
	no = bpf_map_lookup_elem(&ifaces, &ifindex);
	if (!no)
		return NULL;
	*port_no = *no;
	port = nrw_port(*port_no);
	return port && nrw_is_stateless(port) && nrw_alive(port, h->now) ? port : NULL;
}

static __always_inline __u64 *nrw_designation(const struct nrw_key *key)
{
	__u32 at = nrw_hash_key(key) & (NRW_DESIGNATIONS - 1);

	return bpf_map_lookup_elem(&designations, &at);
}

/* Returns whether a flow with this hash has recently designated a packet. */
static __always_inline int nrw_designates(const struct nrw_key *key, __u64 now)
{
	__u64 *at = nrw_designation(key);

	return at && *at && now - *at <= NRW_DESIGNATED_NS;
}

static __always_inline void nrw_note_designation(const struct nrw_key *key, __u64 now)
{
	__u64 *at = nrw_designation(key);

	if (at)
		*at = now;
}

/* Returns whether the sender states in this packet that it applies rates. */
static __always_inline int nrw_is_marked(const struct nrw_options *o)
{
	return o->marks_unlimited || o->marks_limited;
}

/*
 * Counts a segment of a designated packet (BDR-41). A super-packet has several segments of the designated
 * packet, but at most all of them.
 */
static __always_inline void nrw_count_report(struct nrw_port *port, const struct nrw_packet *p)
{
	__u32 report = p->options.report, segments = NRW_REPORT_SEGMENTS(report), here = p->packets, unit;
	__u64 us = report & NRW_REPORT_US_MAX;

	if (!segments)
		segments = 1;
	if (here > segments)
		here = segments;
	if (us > port->report_max_us)
		us = port->report_max_us;
	unit = NRW_REPORT_UNIT * here / segments;
	__sync_fetch_and_add(&port->reported_us, us * here / segments);
	__sync_fetch_and_add(&port->reports, unit);
	if (report & NRW_REPORT_FIRST)
		__sync_fetch_and_add(&port->first_reports, unit);
}

/* Handles a TCP packet that leaves by a port without flows, and returns its leaf. */
static __always_inline __u32 nrw_forward_stateless(struct nrw_here *h)
{
	const struct nrw_packet *p = h->packet;
	const struct nrw_options *o = &p->options;

	if (p->flags & NRW_TCP_SYN) {
		if (!o->has_rate || o->code != NRW_CODE_DESIGNATES)
			return NRW_LEAF_OTHER_TCP;
		nrw_note_designation(&p->key, h->now);
		nrw_count(h->port->designating_syns);
		return NRW_LEAF_ELEPHANT;
	}
	if (p->flags & NRW_TCP_RST)
		return NRW_LEAF_OTHER_TCP;
	/* A sender without a rate does not mark its packets. Its report only shows that it can apply rates. */
	if (o->has_report) {
		nrw_note_designation(&p->key, h->now);
		if (nrw_is_marked(o))
			nrw_count_report(h->port, p);
	}
	/* ACKs without data belong to data of the other direction, whose queue they may join if they carry the option. */
	if (!p->payload && !o->has_report)
		return o->has_rate ? NRW_LEAF_ELEPHANT : NRW_LEAF_OTHER_TCP;
	return nrw_is_marked(o) && nrw_designates(&p->key, h->now) ? NRW_LEAF_ELEPHANT : NRW_LEAF_OTHER_TCP;
}

/*
 * Chooses the rate for a packet of the reverse direction of a flow that leaves by `port`. `data` is the
 * flow's key.
 */
static __always_inline void nrw_speak_stateless(struct nrw_here *h, struct nrw_port *port, __u32 port_no,
						const struct nrw_key *data, struct nrw_word *word)
{
	const struct nrw_packet *p = h->packet;

	if (!(p->flags & NRW_TCP_ACK) || (p->flags & NRW_TCP_RST) || !nrw_designates(data, h->now))
		return;
	word->port = port;
	word->code = p->flags & NRW_TCP_SYN ? nrw_grant(port, port_no, data, 1) : port->common;
}

#endif
