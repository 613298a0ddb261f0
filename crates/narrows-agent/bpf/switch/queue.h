/* SPDX-License-Identifier: GPL-2.0-only */
/* Leaves of the port's HTB, and the token buckets of UDP (BRF-22, BRF-23) and of SYNs. */
#ifndef NRW_QUEUE_H
#define NRW_QUEUE_H

#include "state.h"

#define NRW_NS_PER_US		1000ULL
#define NRW_US_PER_S		1000000ULL
#define NRW_LOCK_TRIES		16
#define NRW_UDP_QUEUES		32	/* UDP_QUEUES of crates/narrows-control/src/rate/queue.rs; a power of two */

/*
 * Puts the packet into a leaf, and counts it. HTB reads the handle of the class from skb->priority
 * (net/sched/sch_htb.c, htb_classify).
 */
static __always_inline void nrw_steer(struct nrw_here *h, __u32 leaf)
{
	leaf &= NRW_LEAVES - 1;
	barrier_var(leaf);
	if (leaf >= NRW_LEAVES)
		return;
	h->skb->priority = h->port->priority[leaf];
	__sync_fetch_and_add(&h->port->arrived_bytes[leaf], h->packet->bytes);
	__sync_fetch_and_add(&h->port->arrived_packets[leaf], h->packet->packets);
}

/*
 * Puts a UDP packet into a leaf. A hash of the five-tuple selects one of UDP's leaves (with IPv6, a hash of
 * addresses and flow label). A flow that sends too much therefore delays only the flows of its own leaf. The
 * kernel's hash is seeded, so an attacker cannot aim at a leaf.
 */
static __always_inline void nrw_steer_udp(struct nrw_here *h)
{
	nrw_steer(h, NRW_LEAF_UDP);
	h->skb->priority += bpf_get_hash_recalc(h->skb) & (NRW_UDP_QUEUES - 1);
}

/*
 * Adds the tokens for the time since the last fill, in whole bytes. `at` advances only by the time that these
 * bytes take, so the next fill includes the remaining time.
 */
static __always_inline void nrw_fill_bucket(struct nrw_bucket *b, __u64 now)
{
	__u64 us = now > b->at ? (now - b->at) / NRW_NS_PER_US : 0, earned;

	if (!b->at) {	/* a new bucket is full */
		b->tokens = b->burst;
		b->at = now;
		return;
	}
	/* Limit the time to a second, so that the product does not overflow. Rates are below 2^43 bytes/s. */
	if (us >= NRW_US_PER_S) {
		us = NRW_US_PER_S;
		b->at = now - NRW_US_PER_S * NRW_NS_PER_US;
	}
	earned = us * b->rate / NRW_US_PER_S;
	if (!earned)
		return;
	b->tokens += earned;
	b->at += earned * NRW_US_PER_S / b->rate * NRW_NS_PER_US;
	if (b->tokens > b->burst)
		b->tokens = b->burst;
}

/*
 * Returns whether a packet conforms: the bucket must hold at least `least` tokens. A conforming packet may
 * need more tokens than the bucket holds. Such a packet empties the bucket, and the missing tokens are
 * subtracted from the tokens that are added next. If another CPU holds the lock for too long, the packet
 * passes. Its HTB class still limits it.
 */
static __always_inline int nrw_police(struct nrw_bucket *b, __u64 now, __u32 bytes, __u64 least)
{
	__u64 paid;
	int conforms;

	for (int i = 0; i < NRW_LOCK_TRIES; i++) {
		if (__sync_val_compare_and_swap(&b->lock, 0, 1) != 0)
			continue;
		nrw_fill_bucket(b, now);
		conforms = b->tokens >= least;
		if (conforms) {
			paid = b->tokens < bytes ? b->tokens : bytes;
			b->tokens -= paid;
			if (paid < bytes && b->rate)
				b->at += (bytes - paid) * NRW_US_PER_S / b->rate * NRW_NS_PER_US;
		}
		/* The write is atomic, so that other CPUs see the earlier stores first. */
		__sync_lock_test_and_set(&b->lock, 0);
		return conforms;
	}
	return 1;
}

/*
 * Returns whether a UDP packet conforms. A super-packet (UDP_SEGMENT) may be larger than the bucket. Such a
 * packet conforms if the bucket is full.
 */
static __always_inline int nrw_police_udp(struct nrw_port *port, __u64 now, __u32 bytes)
{
	__u64 burst = port->udp.burst;

	return nrw_police(&port->udp, now, bytes, bytes < burst ? bytes : burst);
}

#endif
