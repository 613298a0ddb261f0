/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Handles packets on a switch with BDR, which keeps no flows (BDR-3). The switch counts designated packets
 * per port, and gives all flows of a port the same rate. Only the rate in a SYN-ACK differs: it is a ready
 * grant (nrw_grant()).
 *
 * - Rates are written into ACKs that arrive at the port's interface. If both directions use the same path,
 *   the acknowledged data leaves by this interface.
 * - Only ACKs to senders that designate packets get a rate. The queue of flows that apply rates is only for
 *   packets of such senders and for ACKs with the rate option.
 * - To recognize these senders, the program has one array of times, indexed by a hash of addresses and ports.
 *   Its size does not depend on the number of flows. Flows with the same hash share one entry.
 *
 * The program keeps no sequence numbers, so it cannot recognize forged packets. Each report therefore counts
 * for at most report_max_us.
 */
#ifndef NRW_DESIGNATED_H
#define NRW_DESIGNATED_H

#include "handshake.h"
#include "queue.h"
#include "syn.h"

/* Constants that the agent sets before load, as in narrows_control::rate::bdr. */
const volatile __u32 designations_mask;	/* size of `designations` (a power of two) minus one; 0: this switch keeps flows */
const volatile __u64 designated_ns;	/* no rate for flows whose last designated packet is older than this */

/*
 * The time of the last designated packet of a flow with this hash, in ns. A switch that keeps flows has only
 * one entry.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} designations SEC(".maps");

/* Returns the controlled port at whose interface this packet arrived, or NULL. */
static __always_inline struct nrw_port *nrw_port_behind(const struct nrw_here *h, __u32 *port_no)
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
	return port && nrw_controlled(port) && nrw_alive(port, h->now) ? port : NULL;
}

/* Returns the array entry with the time of this flow's last designated packet. */
static __always_inline __u64 *nrw_designation(const struct nrw_key *key)
{
	__u32 at = nrw_hash_key(key) & designations_mask;

	return bpf_map_lookup_elem(&designations, &at);
}

/* Returns whether the flow of this array entry has recently designated a packet. */
static __always_inline int nrw_has_designated(const __u64 *at, __u64 now)
{
	__u64 then = at ? *at : 0;

	/* Another CPU may have written a time that is later than this packet's. */
	return then && (now < then || now - then <= designated_ns);
}

/* Returns whether the sender states by a mark that it applies rates. */
static __always_inline int nrw_is_marked(const struct nrw_options *o)
{
	return o->marks_unlimited || o->marks_limited;
}

/*
 * Returns whether the sender applies a rate to this packet. Packets with data state this by a mark. A FIN
 * without data has no mark. If the flow recently sent another designated packet, the function assumes that a
 * rate applies to the FIN, too, because the ACK of that packet carried a rate.
 */
static __always_inline int nrw_applies_rate(const struct nrw_packet *p, int has_designated)
{
	return nrw_is_marked(&p->options) || (has_designated && !p->payload && (p->flags & NRW_TCP_FIN));
}

/*
 * Counts a segment of a designated packet (BDR-41). A super-packet counts as all its segments, but never as
 * more segments than its report states. Each amount is rounded to the nearest integer, so the sum is not
 * exact. The agent therefore also rounds the sum.
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
	unit = (NRW_REPORT_UNIT * here + segments / 2) / segments;
	__sync_fetch_and_add(&port->reported_ns, us * NRW_NS_PER_US * here / segments);
	__sync_fetch_and_add(&port->reports, unit);
	if (report & NRW_REPORT_FIRST)
		__sync_fetch_and_add(&port->first_reports, unit);
}

/* Handles a TCP packet that leaves by a controlled port, and returns its leaf. */
static __always_inline __u32 nrw_forward_stateless(struct nrw_here *h)
{
	const struct nrw_packet *p = h->packet;
	const struct nrw_options *o = &p->options;
	int opens = p->flags & NRW_TCP_SYN, has_designated;
	__u64 *at;

	if ((p->flags & NRW_TCP_RST) || (opens && (!o->has_rate || o->code != NRW_CODE_DESIGNATES)))
		return NRW_LEAF_OTHER_TCP;
	/*
	 * An ACK without data acknowledges data of the other direction. If it has the rate option, it joins
	 * the queue of flows that apply rates.
	 */
	if (!opens && !p->payload && !o->has_report)
		return o->has_rate ? NRW_LEAF_ELEPHANT : NRW_LEAF_OTHER_TCP;
	/* Data packets of other senders have neither a report nor a mark. */
	if (!opens && !o->has_report && !nrw_is_marked(o))
		return NRW_LEAF_OTHER_TCP;
	at = nrw_designation(&p->key);
	if (opens) {
		if (at)
			*at = h->now;
		nrw_count(h->port->designating_syns);
		return NRW_LEAF_ELEPHANT;
	}
	has_designated = nrw_has_designated(at, h->now);
	if (!o->has_report)
		return has_designated ? NRW_LEAF_ELEPHANT : NRW_LEAF_OTHER_TCP;
	if (at)
		*at = h->now;
	/*
	 * A sender without a rate does not mark its packets. Its report only shows that it can apply rates.
	 */
	if (!nrw_applies_rate(p, has_designated))
		return NRW_LEAF_OTHER_TCP;
	nrw_count_report(h->port, p);
	return NRW_LEAF_ELEPHANT;
}

/* Chooses the rate for a packet that acknowledges data of a controlled port. */
static __always_inline void nrw_speak_stateless(struct nrw_here *h, struct nrw_word *word)
{
	const struct nrw_packet *p = h->packet;
	struct nrw_port *port;
	struct nrw_key data;
	__u32 port_no = 0;

	if (!(p->flags & NRW_TCP_ACK) || (p->flags & NRW_TCP_RST))
		return;
	port = nrw_port_behind(h, &port_no);
	if (!port)
		return;
	nrw_reverse(&data, &p->key);
	if (!nrw_has_designated(nrw_designation(&data), h->now))
		return;
	word->port = port;
	word->code = p->flags & NRW_TCP_SYN ? nrw_grant(port, port_no, &data, 1) : port->common;
}

#endif
