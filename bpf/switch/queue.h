/* SPDX-License-Identifier: GPL-2.0-only */
/* Into the leaves of the port's HTB, and UDP's policer (BRF-22, BRF-23). */
#ifndef NRW_QUEUE_H
#define NRW_QUEUE_H

#include "state.h"

#define NRW_NS_PER_US		1000ULL
#define NRW_US_PER_S		1000000ULL
#define NRW_LOCK_TRIES		16

/* HTB takes the class whose handle is the packet's priority (net/sched/sch_htb.c, htb_classify). */
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

/* Tokens since the bucket was filled last. Time that did not make a whole byte stays in `udp_at`. */
static __always_inline void nrw_fill_bucket(struct nrw_port *port, __u64 now)
{
	__u64 us = now > port->udp_at ? (now - port->udp_at) / NRW_NS_PER_US : 0, earned;

	if (!port->udp_at) {	/* a new bucket is full */
		port->udp_tokens = port->udp_burst;
		port->udp_at = now;
		return;
	}
	/* A second at most, lest the product overflow: rates are below 2^43 bytes/s. */
	if (us >= NRW_US_PER_S) {
		us = NRW_US_PER_S;
		port->udp_at = now - NRW_US_PER_S * NRW_NS_PER_US;
	}
	earned = us * port->udp_rate / NRW_US_PER_S;
	if (!earned)
		return;
	port->udp_tokens += earned;
	port->udp_at += earned * NRW_US_PER_S / port->udp_rate * NRW_NS_PER_US;
	if (port->udp_tokens > port->udp_burst)
		port->udp_tokens = port->udp_burst;
}

/*
 * Does the packet conform? When the lock is not to be had it passes: the class still limits it. A super-packet (UDP_SEGMENT)
 * is larger than the bucket and would never conform; a full bucket lets it pass, and what it took too much is paid in time.
 */
static __always_inline int nrw_police(struct nrw_port *port, __u64 now, __u32 bytes)
{
	__u64 over, burst = port->udp_burst;
	int conforms;

	for (int i = 0; i < NRW_LOCK_TRIES; i++) {
		if (__sync_val_compare_and_swap(&port->udp_lock, 0, 1) != 0)
			continue;
		nrw_fill_bucket(port, now);
		over = bytes > burst ? bytes - burst : 0;
		conforms = port->udp_tokens >= bytes - over;
		if (conforms) {
			port->udp_tokens -= bytes - over;
			if (over && port->udp_rate)
				port->udp_at += over * NRW_US_PER_S / port->udp_rate * NRW_NS_PER_US;
		}
		/* An atomic, so that what was stored before is seen before. */
		__sync_lock_test_and_set(&port->udp_lock, 0);
		return conforms;
	}
	return 1;
}

#endif
