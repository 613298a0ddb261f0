/* SPDX-License-Identifier: GPL-2.0-only */
/* The switch's maps and tunables. The agent sets the sizes before load. */
#ifndef NRW_STATE_H
#define NRW_STATE_H

#include "packet.h"

/* Set by the agent before load. */
const volatile __u64 handshake_ns = 3000000000;	/* a SYN without a SYN-ACK expires after this time, in ns (BRF-15) */

/* Unused variables. They put their types into the BTF, from which the agent's constants are generated. */
const volatile enum nrw_constants nrw_constants_for_btf;
const volatile enum nrw_code nrw_code_for_btf;

/* Maps an ifindex to its port number. Packets of other interfaces pass unchanged. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} ifaces SEC(".maps");

/* The ports, in memory that the program shares with the agent. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct nrw_port);
} ports SEC(".maps");

/* One slot for each possible flow. `flows` maps a flow's key to the index of its slot. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct nrw_slot);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct nrw_key);
	__type(value, __u32);
} flows SEC(".maps");

/* The way to the source of the flow in each slot. Filled only for ports with NRW_MODE_MESSAGES. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct nrw_way);
} ways SEC(".maps");

/* Indexes of free slots. The program takes them, and the agent puts them back. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 1024);
	__type(value, __u32);
} free_slots SEC(".maps");

/*
 * SYNs without an answer, by the key of the SYN. A flood of SYNs can evict only entries of this map
 * (BRF-104).
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct nrw_key);
	__type(value, struct nrw_half);
} half_open SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct nrw_service);
	__type(value, __u16);
} services SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);	/* entries expire; neither program nor agent deletes them */
	__uint(max_entries, 16384);
	__type(key, struct nrw_key);
	__type(value, struct nrw_advert);
} adverts SEC(".maps");

/* Through this ring buffer, the program notifies the agent of new flows, by the indexes of their slots. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024);
} bells SEC(".maps");

/*
 * The parsed fields of the present packet. They are too large for the stack of 512 bytes. Bottom halves are
 * disabled while the program runs, so one entry per CPU is enough.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct nrw_packet);
} packets SEC(".maps");

/* Arguments of most functions. */
struct nrw_here {
	struct __sk_buff *skb;
	struct nrw_packet *packet;
	struct nrw_port *port;	/* port by which the packet leaves */
	__u32 port_no;
	__u32 now_us;		/* wraps; never 0 */
	__u64 now;		/* ns */
};

#define nrw_count(counter)	__sync_fetch_and_add(&(counter), 1)

static __always_inline struct nrw_port *nrw_port(__u32 no)
{
	return bpf_map_lookup_elem(&ports, &no);
}

static __always_inline int nrw_controlled(const struct nrw_port *port)
{
	return port->mode & NRW_MODE_CONTROLLED;
}

/*
 * Returns whether the agent runs: its last heartbeat is not older than watchdog_ns. Agent and program use the
 * same clock. The heartbeat may be later than `now`, because the agent may have read the clock later.
 */
static __always_inline int nrw_alive(const struct nrw_port *port, __u64 now)
{
	__u64 beat = port->heartbeat_ns;

	return now < beat || now - beat <= port->watchdog_ns;
}

/* Notifies the agent that a slot was taken. */
static __always_inline void nrw_ring(__u32 slot)
{
	/* If the ring buffer is full, the agent finds the slot in its next scan of all slots. */
	bpf_ringbuf_output(&bells, &slot, sizeof(slot), 0);
}

#endif
