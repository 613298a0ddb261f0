/* SPDX-License-Identifier: GPL-2.0-only */
/* Takes and publishes slots, and confirms flows. Only the agent frees published slots. */
#ifndef NRW_SLOT_H
#define NRW_SLOT_H

#include "state.h"

/* As narrows_control::rate::Leaf. */
#define NRW_LEAF_ELEPHANT	1
#define NRW_LEAF_OTHER_TCP	2
#define NRW_LEAF_UDP		3

#define NRW_TOUCH_NS		1000000ULL

static __always_inline struct nrw_slot *nrw_find(const struct nrw_key *key, __u32 *index)
{
	__u32 *found = bpf_map_lookup_elem(&flows, key);

	if (!found)
		return NULL;
	*index = *found;
	return bpf_map_lookup_elem(&slots, index);
}

/*
 * Returns whether unconfirmed flows hold the maximum number of slots. This happens in a flood, or if too many
 * flows begin at the same time.
 */
static __always_inline int nrw_crowded(const struct nrw_port *port)
{
	return port->unconfirmed >= port->unconfirmed_max;
}

/*
 * Takes a free slot for a flow of this port and fills it. nrw_publish() puts it into the table later. The
 * number of unconfirmed flows is limited (BRF-104). A `proven` flow is already confirmed.
 */
static __always_inline struct nrw_slot *nrw_take(struct nrw_port *port, __u32 port_no, const struct nrw_key *key,
						 __u64 now, __u32 *index, int proven)
{
	struct nrw_slot *slot;

	if (!proven && __sync_fetch_and_add(&port->unconfirmed, 1) >= port->unconfirmed_max) {
		__sync_fetch_and_add(&port->unconfirmed, -1);
		nrw_count(port->refused);
		return NULL;
	}
	if (bpf_map_pop_elem(&free_slots, index)) {
		if (!proven)
			__sync_fetch_and_add(&port->unconfirmed, -1);
		nrw_count(port->no_slot);
		return NULL;
	}
	slot = bpf_map_lookup_elem(&slots, index);
	if (!slot)	/* the agent has queued an invalid index */
		return NULL;
	/* The agent cleared all other fields when it freed the slot. */
	slot->key = *key;
	slot->last_ns = now;
	slot->port = port_no;
	slot->passed_code = NRW_CODE_UNASSIGNED;
	slot->code = NRW_CODE_UNASSIGNED;
	slot->leaf = NRW_LEAF_OTHER_TCP;
	slot->flags = proven ? NRW_F_CONFIRMED : 0;
	return slot;
}

/*
 * Sets only the flags that are not set yet. An atomic operation for each packet would cost more than this
 * test.
 */
static __always_inline void nrw_flag(struct nrw_slot *slot, __u32 flags)
{
	if (~slot->flags & flags)
		__sync_fetch_and_or(&slot->flags, flags);
}

/*
 * Records that a packet of the flow was seen, at most once per NRW_TOUCH_NS. Usually, each direction has its
 * own CPU. If each packet wrote the time, the cache line would move between the two CPUs all the time.
 */
static __always_inline void nrw_touch(struct nrw_slot *slot, __u64 now)
{
	if (now - slot->last_ns > NRW_TOUCH_NS)
		slot->last_ns = now;
}

/*
 * If the other direction already has a slot, marks both slots as paired. The slot that was taken later always
 * finds the other one, because each slot enters the table before this check.
 */
static __always_inline void nrw_pair(struct nrw_slot *slot)
{
	struct nrw_key reverse;
	struct nrw_slot *peer;
	__u32 index;

	nrw_reverse(&reverse, &slot->key);
	peer = nrw_find(&reverse, &index);
	if (!peer)
		return;
	peer->paired = 1;
	slot->paired = 1;
}

/*
 * Puts the slot into the table. If another CPU has already put a slot of the same flow there, frees this slot
 * and returns -1.
 */
static __always_inline int nrw_publish(struct nrw_port *port, struct nrw_slot *slot, __u32 index)
{
	int proven = slot->flags & NRW_F_CONFIRMED;
	__u32 old;

	if (bpf_map_update_elem(&flows, &slot->key, &index, BPF_NOEXIST)) {
		if (!proven)
			__sync_fetch_and_add(&port->unconfirmed, -1);
		__builtin_memset(slot, 0, sizeof(*slot));
		bpf_map_push_elem(&free_slots, &index, 0);
		return -1;
	}
	nrw_pair(slot);
	old = __sync_fetch_and_or(&slot->flags, NRW_F_LIVE);
	/*
	 * Another CPU may have found the slot in the table, and confirmed it before it was live. In this
	 * case, nrw_confirm() did not decrease `unconfirmed`.
	 */
	if (!proven && (old & NRW_F_CONFIRMED))
		__sync_fetch_and_add(&port->unconfirmed, -1);
	nrw_ring(index);
	return 0;
}

static __always_inline void nrw_confirm(struct nrw_port *port, struct nrw_slot *slot)
{
	__u32 old;

	if (slot->flags & NRW_F_CONFIRMED)
		return;
	old = __sync_fetch_and_or(&slot->flags, NRW_F_CONFIRMED);
	/*
	 * If the slot is not live, do not decrease `unconfirmed`. Either the agent has already done so and
	 * freed the slot, or nrw_publish() will do so.
	 */
	if ((old & (NRW_F_LIVE | NRW_F_CONFIRMED)) == NRW_F_LIVE)
		__sync_fetch_and_add(&port->unconfirmed, -1);
}

#endif
