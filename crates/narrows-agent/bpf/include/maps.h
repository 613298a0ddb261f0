/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The memory that the switch program and the agent share. The program measures and classifies packets, and
 * writes rates into packets. The agent decides every rate. The agent's types are generated from this file
 * (src/dataplane/layout.rs), so fields with named values have an enumeration as their type.
 *
 * The comment of a field names its writer: P is the program, A the agent. At any time, a field has only one
 * writer, so plain loads and stores are enough. Counters are different: several CPUs add to them at the same
 * time, so each addition is atomic.
 *
 * Times are nanoseconds of CLOCK_MONOTONIC (bpf_ktime_get_ns). Rates are in L3 bytes/s. Codes are in host
 * byte order.
 */
#ifndef NRW_MAPS_H
#define NRW_MAPS_H

#include "wire.h"

#define NRW_LEAVES		4	/* as narrows_control::rate::Leaf: mouse, elephant, other TCP, UDP */
#define NRW_GRANTS		16	/* ready grants (prepared first rates) for the new flows of a tick */
#define NRW_NO_SLOT		0xffffffffU
#define NRW_NO_PORT		0xffffffffU

/*
 * Constants that the agent also needs. They are values of an enumeration, because the agent's constants are
 * generated from the BTF, which has no macros.
 */
enum nrw_constants {
	NRW_SINGLE_GRANTS = 8,		/* these grants are for one flow each; the next are for 8, 16, 32 ... flows */
	NRW_REPORT_UNIT = 1 << 16,	/* amount for one designated packet; each of its n segments adds 1/n of it */
};

/* The agent copies all bytes of these structures, so they must not have padding. */
#pragma clang diagnostic push
#pragma clang diagnostic error "-Wpadded"

/* A flow, in the direction of its data. An IPv4 address uses the first four bytes, and the rest is zero. */
struct nrw_key {
	__u8 saddr[16];
	__u8 daddr[16];
	__u16 sport;		/* network order, as in the packet */
	__u16 dport;
	__u16 vlan;		/* VLAN id; two tags: outer ^ inner << 4; 0: no tag or NRW_MODE_VLANS_ROUTED */
	__u8 family;		/* 4 or 6 */
	__u8 proto;		/* IPPROTO_TCP */
};

/* nrw_slot.flags: P sets flags atomically. A clears all flags together when it frees the slot. */
enum nrw_flags {
	NRW_F_RATED = 1U << 0,			/* the SYN asked for feedback, or the flow uses BRF */
	NRW_F_GUESSED = 1U << 1,		/* the handshake was not seen */
	NRW_F_OPENED_BY_RECEIVER = 1U << 2,	/* the receiver of the data sent the SYN */
	NRW_F_SYN_REPEATED = 1U << 3,		/* the SYN was seen twice, so the handshake gives no RTT */
	NRW_F_SENDER_SEEN = 1U << 4,		/* a packet of the data direction was seen after SYN and SYN-ACK */
	NRW_F_RECEIVER_SEEN = 1U << 5,		/* a packet of the other direction was seen after SYN and SYN-ACK */
	NRW_F_FIN_SENDER = 1U << 6,
	NRW_F_FIN_RECEIVER = 1U << 7,
	NRW_F_RST = 1U << 8,
	NRW_F_SPEAKS_BRF = 1U << 9,		/* an option or a mark was seen after the handshake */
	NRW_F_GRANTED = 1U << 10,		/* the SYN-ACK carried a ready grant */
	/*
	 * nrw_port.unconfirmed does not include this flow. P sets this flag when it has seen packets of both
	 * sides, which shows that the flow is not forged. A sets the flag when it frees the slot or stops
	 * waiting for ACKs. Both also subtract one from nrw_port.unconfirmed.
	 */
	NRW_F_CONFIRMED = 1U << 11,
	NRW_F_LIVE = 1U << 12,			/* the slot is in use and its key is in the table */
	NRW_F_ADOPTED = 1U << 13,		/* the slot began with data: the SYN-ACK was not seen, or got no slot */
	NRW_F_ANSWER_ASKS = 1U << 14,		/* the SYN-ACK asked for feedback; the data is from the SYN's sender */
};

/*
 * One flow: three cache lines in an mmapable array. Usually, one CPU handles a flow's data packets and
 * another CPU its ACKs. A line that both CPUs use for every packet would be slow.
 *
 * - First line: written by every data packet, read by ACKs only about once per RTT.
 * - Second line: written about once per RTT.
 * - Third line: written by every ACK. Data packets that arrive in order do not touch it.
 */
struct nrw_slot {
	struct nrw_key key;	/*   0 P */
	__u32 data_us;		/* P: time of the last payload in the data direction (us, wraps); 0: none yet */
	enum nrw_flags flags;	/*  44 P */
	__u64 bytes;		/*  48 P: L3 bytes of packets with payload that arrived at the port; 0: no such packet */
	__u32 seq_next;		/* P: next expected sequence number; valid once bytes is not 0 */
	__u32 missing;		/* P: payload bytes that the sequence numbers skipped (wraps) */
	__u64 last_ns;		/* P: time of the last packet in any direction, in steps of NRW_TOUCH_NS */
	__u8 paired;		/* P: the other direction has a slot, or had one since this slot was taken */
	__u8 receiver_seen;	/* P: NRW_SEEN or NRW_SEEN_BRF after packets of the receiver; otherwise 0 */
	__u16 data_if;		/* P: lower half of the ifindex where the data arrives; 0: unknown */
	__u32 ack_sent;		/* P: highest acknowledgement number in packets of the data direction */
	__u32 rtt_receiver_us;	/* P: last RTT sample from the switch to the receiver and back */
	__u32 rtt_sender_us;	/* P: last RTT sample from the switch to the sender and back */
	__u16 rtt_receiver_n;	/*  88 P: number of samples so far (wraps) */
	__u16 rtt_sender_n;	/*  90 P */
	__u32 wait_receiver_ts;	/* P: timestamp value that the receiver will echo */
	__u32 wait_receiver_us;	/* P: time at which this timestamp passed (us, wraps); 0: no echo expected */
	__u32 wait_sender_ts;	/* P: timestamp value that the sender will echo */
	__u32 wait_sender_us;	/* 104 P */
	__u16 marked_unlimited;	/* P: number of marks "not limited" seen (wraps) */
	__u16 marked_limited;	/* P: number of marks "limited" seen (wraps) */
	__u16 passed_code;	/* P: last rate of another switch in an ACK that arrived here; unassigned: none */
	__u16 passed_n;		/* P: number of ACKs that arrived with a rate of another switch (wraps) */
	__u16 code;		/* P at the SYN-ACK (a ready grant), later A: code to write into ACKs; unassigned: none */
	__u8 leaf;		/* P at creation, later A: leaf of the port's queue */
	__u8 port;		/* P: the controlled port that the data leaves by */
	__u32 gate_us;		/* P: once-per-RTT mode: time of the next feedback (us, wraps) */
	__u32 rtt_us;		/* A: RTT of the flow, for the gate */
	__u32 acked;		/* 128 P: highest acknowledgement number in packets of the other direction */
	__u32 seq_seen;		/* P: copy of seq_next, made when a packet of the other direction last read it */
	__u32 reverse_next;	/* P: next expected sequence number of the other direction */
	__u32 reverse_us;	/* P: time of the last believed packet of the other direction (us, wraps); 0: none */
	__u32 reverse_if;	/* P: ifindex where packets of the other direction arrive; 0: unknown */
	__u32 reverse_if_new;	/* P: another ifindex where packets of the other direction arrive */
	__u32 passed_us;	/* P: time of the last rate of another switch (us, wraps); 0: none */
	__u32 learn_data;	/* P: next expected sequence number of data that is not believed */
	__u32 learn_reverse;	/* 160 P: like learn_data, for the other direction */
	__u16 data_if_new;	/* P: another interface where data arrived */
	__u8 data_if_n;		/* P: number of packets from data_if_new */
	__u8 reverse_if_n;	/* P: number of packets from reverse_if_new */
	__u8 learn_data_n;	/* P: number of consecutive data packets that are not believed */
	__u8 learn_reverse_n;	/* P: like learn_data_n, for the other direction */
	__u16 pad;
	__u32 mark;		/* P: skb->mark of the first data packet, which can identify a subscriber */
	__u32 vlan;		/* P: VLAN id of the data at its port in every mode, can identify a subscriber */
	__u32 pad2[3];
};

/* nrw_port.mode */
enum nrw_mode {
	NRW_MODE_CONTROLLED = 1U << 0,		/* flows that leave here are counted, classified and given rates */
	NRW_MODE_ONCE_PER_RTT = 1U << 1,	/* write rates once per RTT (the paper's gate); default: into every ACK */
	NRW_MODE_POLICE_UDP = 1U << 2,		/* drop UDP packets for which bucket `udp` has too few tokens */
	NRW_MODE_POLICE_SYN = 1U << 3,
	NRW_MODE_VLANS_ROUTED = 1U << 4,	/* this host routes between VLANs: data and ACKs have different tags */
	NRW_MODE_OPEN_GTP = 1U << 5,		/* flows inside GTP-U are handled like other flows */
	NRW_MODE_MESSAGES = 1U << 6,		/* sources get rates in messages; only SYN-ACKs get rates (PAC-3b) */
};

/*
 * Kinds of packets that may contain flows that the program does not see. nrw_packet.unopened has one of these
 * values. nrw_port.unopened has a counter for each kind, in this order.
 */
enum nrw_unopened {
	NRW_OPENED,		/* not such a packet */
	NRW_UNOPENED_VLANS,	/* more than two VLAN tags */
	NRW_UNOPENED_MPLS,
	NRW_UNOPENED_PPPOE,	/* compressed or multilink PPP */
	NRW_UNOPENED_GTP,	/* no NRW_MODE_OPEN_GTP, or a fragment, super-packet or wrong lengths */
	NRW_UNOPENED_VXLAN,	/* VXLAN or Geneve */
	NRW_UNOPENED_IP,	/* IPv4 or IPv6 in IP */
	NRW_UNOPENED_GRE,
	NRW_UNOPENED_IPSEC,	/* ESP or AH */
	NRW_UNOPENED_END,
};
#define NRW_UNOPENED_KINDS	(NRW_UNOPENED_END - 1)

/* A token bucket. */
struct nrw_bucket {
	__u64 rate;		/* A: L3 bytes/s */
	__u64 burst;		/* A: bytes */
	__u64 tokens;		/* P: bytes */
	__u64 at;		/* P: when tokens were last added (ns); 0: never */
	__u32 lock;		/* P: lock for `tokens` and `at`; bpf_spin_lock is not allowed in mmaped memory */
	__u32 pad;
};

/* One port, in an mmapable array. */
struct nrw_port {
	/* A: decisions */
	__u64 heartbeat_ns;	/* when the agent last ran */
	__u64 watchdog_ns;	/* the agent counts as dead if its last heartbeat is older than this */
	enum nrw_mode mode;
	enum nrw_format format;
	__u32 priority[NRW_LEAVES]; /* skb->priority: HTB's major:minor of each leaf (for UDP, of its first queue) */
	__u16 grants[NRW_GRANTS]; /* codes of the ready grants for the new flows of this tick, see nrw_grant_of() */
	__u32 tick;		/* number of the agent's tick; when it changes, new flows are counted from zero */
	__u32 unconfirmed_max;	/* maximum number of unconfirmed flows that hold slots */
	__u32 report_max_us;	/* with BDR: longest time that one report may add to reported_ns */
	__u16 common;		/* with BDR: code for the ACKs of all flows */
	__u16 pad2;

	/* P: counters */
	__u64 arrived_bytes[NRW_LEAVES]; /* L3, before the queue */
	__u64 arrived_packets[NRW_LEAVES];
	__u64 udp_policed;	/* packets */
	__u64 stamped;		/* rates written into an existing option */
	__u64 inserted;		/* rates inserted */
	__u64 lower_passed;	/* ACKs that kept the lower rate that they carried */
	__u64 no_room;		/* ACKs without room for the option */
	__u64 with_data;	/* ACKs without a rate that were not stamped, because they carry data */
	__u64 malformed;	/* packets whose headers contradict their lengths */
	__u64 no_slot;		/* packets that needed a slot when all were in use */
	__u64 refused;		/* packets that got no slot because too many flows were unconfirmed */
	__u64 syns;
	__u64 watchdog;		/* packets that passed unchanged while the agent was dead */
	__u64 syn_policed;	/* SYNs dropped because they exceeded their share of the link */
	__u64 reported_ns;	/* sum of the times in reports; this and the next three fields are for BDR */
	__u64 reports;		/* reports, in units of 1 / NRW_REPORT_UNIT */
	__u64 first_reports;	/* first reports of flows, in the same unit */
	__u64 designating_syns;	/* SYNs and SYN-ACKs of senders that designate packets */
	__u64 implausible;	/* ignored packets of known flows: unexpected sequence numbers or interface */
	__u64 unopened[NRW_UNOPENED_KINDS];
	__u32 unconfirmed;	/* unconfirmed flows: P adds one for a new flow; see NRW_F_CONFIRMED */
	__u32 newcomers;	/* P: new flows in the tick `newcomers_tick` */
	__u32 newcomers_tick;
	__u32 pad;

	/* A and P: token buckets */
	struct nrw_bucket udp;
	struct nrw_bucket syn;	/* SYNs without ACK */
	struct nrw_bucket syn_again; /* repeated SYNs whose first copy the bucket `syn` dropped */
};

/*
 * A SYN that was not answered yet, or whose SYN-ACK got no slot. Entries are in an LRU hash of fixed size. A
 * flood of SYNs can therefore evict only other entries of this hash, and no slots (BRF-104).
 */
struct nrw_half {
	__u64 syn_ns;
	__u64 answered_ns;	/* time of a SYN-ACK that got no slot; 0: none */
	__u32 port;		/* port that the SYN left by; NRW_NO_PORT: unknown */
	__u32 answer_seq;	/* sequence number of this SYN-ACK, known only to hosts that received the SYN-ACK */
	__u8 permitted;		/* the SYN asks for feedback */
	__u8 repeated;
	__u16 syn_payload;	/* data in the SYN (TCP Fast Open) */
	__u32 syn_seq;		/* sequence number of the SYN, which the answer acknowledges */
	__u32 mark;		/* mark of the SYN */
	__u32 vlan;		/* VLAN of the SYN, as nrw_slot.vlan */
};

/*
 * A dropped SYN, in an array indexed by a hash of its key. A new entry replaces the older entry at its index.
 */
struct nrw_missed {
	__u32 mark;		/* upper half of the hash */
	__u32 at_ms;		/* time of the drop (wraps) */
};

/*
 * A service for which the predictor has data. This is the key of the map of the services' ready grants. A
 * flow gets the smaller of its service's grant and the port's ready grant (BRF-31, BRF-32).
 */
struct nrw_service {
	__u8 prefix[16];	/* destination network of the data, /24 or /48 */
	__u16 port;		/* network order: the smaller of the two ports, below 32768 */
	__u8 family;
	__u8 ctl_port;		/* the controlled port */
};

/*
 * Another switch has advertised this rate for a flow, because that switch does not see the flow's ACKs
 * (BRF-63). This switch writes the rate into the ACKs. The key of the map is nrw_key.
 */
struct nrw_advert {
	__u64 valid_until_ns;	/* A */
	__u16 code;		/* A */
	__u16 pad[3];
};

/*
 * The way from this switch to a flow's source, in an mmapable array with the indexes of the slots. The program
 * learns the way from the last packet of the other direction. The agent sends messages by this way (PAC-3b).
 */
struct nrw_way {
	__u64 at_ns;		/* P: when the way was learned */
	__u32 ifindex;		/* P: interface by which the packet left; 0: unknown */
	__u8 to[6];		/* P: destination MAC address of the packet */
	__u8 from[6];		/* P: its source MAC address */
};

#pragma clang diagnostic pop

/* The cache lines of a slot. */
_Static_assert(sizeof(struct nrw_slot) == 192, "slot");
_Static_assert(__builtin_offsetof(struct nrw_slot, last_ns) == 64, "second line");
_Static_assert(__builtin_offsetof(struct nrw_slot, acked) == 128, "third line");

#endif
