/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Limits the SYNs at a controlled port to a part of the link. SYNs belong to no flow yet, so without this
 * limit, a flood of SYNs would take capacity from all flows.
 *
 * A real client repeats a dropped SYN after one second, and again later (RFC 6298). An attacker with forged
 * addresses does not. Repeated SYNs therefore have a bucket of their own, so that connections can be opened
 * even during a flood.
 */
#ifndef NRW_SYN_H
#define NRW_SYN_H

#include "queue.h"

#define NRW_MISSED_BITS		18
#define NRW_AGAIN_LEAST_MS	500	/* no TCP stack repeats a SYN sooner */
#define NRW_AGAIN_MOST_MS	20000	/* 1, 2, 4, 8, 16 s: Linux, tcp_syn_retries = 4 */

const volatile __u64 syn_seed = 0;	/* random, so that an attacker cannot choose the entries that its SYNs overwrite */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1U << NRW_MISSED_BITS);
	__type(key, __u32);
	__type(value, struct nrw_missed);
} missed_syns SEC(".maps");

/*
 * Returns a hash of the key. For each word, mixes the word into the hash, multiplies the hash, and folds it.
 * The multiplier is 2^64 divided by the golden ratio.
 */
static __always_inline __u64 nrw_hash_key(const struct nrw_key *key)
{
	__u64 hash = syn_seed, word;

	for (__u32 at = 0; at < sizeof(*key); at += sizeof(word)) {
		__builtin_memcpy(&word, (const __u8 *)key + at, sizeof(word));
		hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 32;
	}
	return hash;
}

/*
 * Returns whether the same SYN was dropped NRW_AGAIN_LEAST_MS to NRW_AGAIN_MOST_MS ago, so that this packet
 * can be its repetition. If the SYN was not dropped in the last NRW_AGAIN_MOST_MS, records it as dropped now.
 */
static __always_inline int nrw_missed_before(const struct nrw_key *key, __u64 now)
{
	__u64 hash = nrw_hash_key(key);
	__u32 at = hash & ((1U << NRW_MISSED_BITS) - 1), mark = hash >> 32, now_ms = now / 1000000, age;
	struct nrw_missed *missed = bpf_map_lookup_elem(&missed_syns, &at);

	if (!missed)
		return 0;
	age = now_ms - missed->at_ms;
	if (missed->mark == mark && age < NRW_AGAIN_LEAST_MS)
		return 0;
	/*
	 * Record the time of this repetition. During the next NRW_AGAIN_LEAST_MS, further repetitions of this
	 * SYN get no token.
	 */
	if (missed->mark == mark && age <= NRW_AGAIN_MOST_MS) {
		missed->at_ms = now_ms;
		return 1;
	}
	missed->mark = mark;
	missed->at_ms = now_ms;
	return 0;
}

/*
 * Returns whether the SYN may pass. One token in the bucket is enough. If a SYN needed a token for each byte,
 * the small SYNs of a flood would take the tokens before a larger SYN could pass.
 */
static __always_inline int nrw_police_syn(struct nrw_here *h)
{
	struct nrw_port *port = h->port;
	__u32 bytes = h->packet->bytes;

	if (nrw_police(&port->syn, h->now, bytes, 1))
		return 1;
	if (nrw_missed_before(&h->packet->key, h->now) && nrw_police(&port->syn_again, h->now, bytes, 1))
		return 1;
	nrw_count(port->syn_policed);
	return 0;
}

#endif
