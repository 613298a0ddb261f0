/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Learns the way to a flow's source from packets of the other direction. With this way, the agent can send
 * messages to the source even if this switch is a bridge without addresses (PAC-3b).
 */
#ifndef NRW_WAY_H
#define NRW_WAY_H

#include "state.h"

#define NRW_WAY_NS		1000000000ULL	/* learn the way again after this time */

/*
 * Learns from this packet. `index` is the index of the flow's slot. Packets with VLAN tags or in tunnels are
 * skipped, because the agent builds frames without tags.
 */
static __always_inline void nrw_learn_way(struct nrw_here *h, __u32 index)
{
	const struct nrw_packet *p = h->packet;
	struct nrw_way *way;

	if (p->vlan || p->in_gtp || p->l3 != ETH_HLEN || h->skb->vlan_present)
		return;
	way = bpf_map_lookup_elem(&ways, &index);
	if (!way || (way->ifindex == h->skb->ifindex && h->now - way->at_ns < NRW_WAY_NS))
		return;
	if (bpf_skb_load_bytes(h->skb, 0, way->to, 2 * ETH_ALEN))
		return;
	way->ifindex = h->skb->ifindex;
	way->at_ns = h->now;
}

#endif
