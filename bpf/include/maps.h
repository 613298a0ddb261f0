/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the switch program and the agent share. crates/narrows-agent/src/dataplane/layout.rs mirrors these structures;
 * both sides assert their sizes. The program measures, steers and stamps; every rate in here was decided by the agent.
 *
 * Who writes a field is said beside it: P the program, A the agent. A field has one writer, so plain loads and
 * stores do, but for counters, which several CPUs add to (atomically).
 * Times are CLOCK_MONOTONIC ns (bpf_ktime_get_ns), rates L3 bytes/s, codes in host order.
 */
#ifndef NRW_MAPS_H
#define NRW_MAPS_H

#define NRW_PORTS_MAX		64
#define NRW_LEAVES		4	/* as narrows_control::rate::Leaf: mouse, elephant, other TCP, UDP */
#define NRW_GRANTS		16	/* ready grants for the newcomers of one tick */
#define NRW_NO_SLOT		0xffffffffU
#define NRW_NO_PORT		0xffffffffU

/* A flow in its data direction. IPv4 addresses sit in the first four bytes, the rest is zero. */
struct nrw_key {
	__u8 saddr[16];
	__u8 daddr[16];
	__u16 sport;		/* network order, as in the packet */
	__u16 dport;
	__u16 vlan;		/* VLAN id, 0 without a tag or where tags do not tell flows apart; outer ^ inner << 4 */
	__u8 family;		/* 4 or 6 */
	__u8 proto;		/* IPPROTO_TCP */
};

/* nrw_slot.flags: P sets (atomically), A never clears one; all are gone when A frees the slot. */
#define NRW_F_RATED		(1U << 0)	/* the SYN asked for feedback, or the flow speaks BRF */
#define NRW_F_GUESSED		(1U << 1)	/* the handshake was not seen */
#define NRW_F_OPENED_BY_RECEIVER (1U << 2)	/* the side that receives the data sent the SYN */
#define NRW_F_SYN_REPEATED	(1U << 3)	/* the SYN was seen twice: no RTT from the handshake */
#define NRW_F_SENDER_HEARD	(1U << 4)	/* a packet of the data direction after the handshake's SYN and SYN-ACK */
#define NRW_F_RECEIVER_HEARD	(1U << 5)	/* the same of the other direction */
#define NRW_F_FIN_SENDER	(1U << 6)
#define NRW_F_FIN_RECEIVER	(1U << 7)
#define NRW_F_RST		(1U << 8)
#define NRW_F_SPEAKS_BRF	(1U << 9)	/* an option or a mark was seen after the handshake */
#define NRW_F_GRANTED		(1U << 10)	/* a ready grant was handed out at the SYN-ACK */
/*
 * Heard from both sides, hence not a forgery. Who sets it (P; or A when it frees the slot or waits for ACKs in vain) takes
 * one off nrw_port.unconfirmed.
 */
#define NRW_F_CONFIRMED		(1U << 11)
#define NRW_F_LIVE		(1U << 12)	/* the slot is in use and its key is in the table */
#define NRW_F_ADOPTED		(1U << 13)	/* began with data: no SYN-ACK was seen, or it was refused a slot then */
#define NRW_F_ANSWER_ASKS	(1U << 14)	/* the SYN-ACK asked for feedback: so will the data of who wrote it, if this is the opener's */

/*
 * One flow, in an mmapable array: two cache lines. Data and ACKs mostly pass on two CPUs. Data writes the first line with every
 * packet, so ACKs keep off it; the second one is written about once in an RTT.
 */
struct nrw_slot {
	struct nrw_key key;	/*   0 P */
	__u32 data_us;		/*  40 P last payload of the data direction (us, wraps); 0: none yet */
	__u32 flags;		/*  44 P */
	__u64 bytes;		/*  48 P L3 bytes of packets with payload that arrived at the port; 0: none yet */
	__u32 seq_next;		/*  56 P next sequence number expected; valid once bytes is not 0 */
	__u32 missing;		/*  60 P payload bytes that sequence numbers skipped (wraps) */
	__u64 last_ns;		/*  64 P last packet of either direction, to NRW_TOUCH_NS */
	__u8 paired;		/*  72 P the other direction has a slot, too, or had one since this one was taken */
	__u8 heard;		/*  73 P NRW_HEARD: flags say that the receiver was heard */
	__u16 pad;
	__u32 pad2;
	__u32 rtt_receiver_us;	/*  80 P last sample of switch - receiver - switch */
	__u32 rtt_sender_us;	/*  84 P last sample of switch - sender - switch */
	__u16 rtt_receiver_n;	/*  88 P samples so far (wraps) */
	__u16 rtt_sender_n;	/*  90 P */
	__u32 wait_receiver_ts;	/*  92 P timestamp value whose echo is awaited from the receiver */
	__u32 wait_receiver_us;	/*  96 P when it passed (us, wraps); 0: none is awaited */
	__u32 wait_sender_ts;	/* 100 P the same from the sender */
	__u32 wait_sender_us;	/* 104 P */
	__u16 said_unlimited;	/* 108 P marks "not limited" seen (wraps) */
	__u16 said_limited;	/* 110 P marks "limited" seen (wraps) */
	__u16 passed_code;	/* 112 P last rate another switch had written into an ACK before this one looked; unassigned: none */
	__u16 passed_n;		/* 114 P ACKs with such a rate (wraps) */
	__u16 code;		/* 116 P at the SYN-ACK (a ready grant), then A: what to write into ACKs; unassigned: nothing */
	__u8 leaf;		/* 118 P at creation, then A: leaf of the port's queue */
	__u8 port;		/* 119 P the controlled port of the data direction */
	__u32 gate_us;		/* 120 P once-per-RTT mode: next feedback (us, wraps) */
	__u32 rtt_us;		/* 124 A the flow's RTT, for the gate */
};

/* nrw_port.mode */
#define NRW_MODE_CONTROLLED	(1U << 0)	/* flows that leave here are counted, steered and given rates */
#define NRW_MODE_ONCE_PER_RTT	(1U << 1)	/* the paper's gate; default: every ACK */
#define NRW_MODE_POLICE_UDP	(1U << 2)
#define NRW_MODE_POLICE_SYN	(1U << 3)

/* A token bucket. */
struct nrw_bucket {
	__u64 rate;		/* A: L3 bytes/s */
	__u64 burst;		/* A: bytes */
	__u64 tokens;		/* P: bytes */
	__u64 at;		/* P: when it was filled last (ns); 0: never */
	__u32 lock;		/* P: bpf_spin_lock cannot live in mmaped memory; a CAS on this guards tokens and at */
	__u32 pad;
};

/* One port, in an mmapable array. */
struct nrw_port {
	/* A: decisions */
	__u64 heartbeat_ns;	/* when the agent was last alive; the watchdog compares it with watchdog_ns */
	__u32 mode;
	__u32 format;		/* NRW_FORMAT_ */
	__u32 priority[NRW_LEAVES]; /* skb->priority: HTB's major:minor of each leaf */
	__u16 grants[NRW_GRANTS]; /* for the k-th newcomer since the last tick; the last one for all after it */
	__u32 tick;		/* grows with every tick of the agent, so that newcomers are counted anew */
	__u32 unconfirmed_max;	/* flows not yet heard from both sides that may hold slots */

	/* P: counters */
	__u64 arrived_bytes[NRW_LEAVES]; /* L3, before the queue */
	__u64 arrived_packets[NRW_LEAVES];
	__u64 udp_policed;	/* packets */
	__u64 stamped;		/* rates written over an option */
	__u64 inserted;		/* rates inserted */
	__u64 lower_passed;	/* ACKs left alone because they carried less */
	__u64 no_room;		/* ACKs without room for the option */
	__u64 with_data;	/* ACKs not stamped because they carry data and no rate */
	__u64 malformed;	/* packets whose headers lie about their lengths */
	__u64 no_slot;		/* packets that asked for a slot when none was free */
	__u64 refused;		/* packets that asked for a slot and were refused: too many flows unconfirmed */
	__u64 syns;
	__u64 watchdog;		/* packets that passed while the agent was silent */
	__u64 syn_policed;	/* SYNs above what they may take of the link, dropped */
	__u32 unconfirmed;	/* P adds at creation; see NRW_F_CONFIRMED */
	__u32 newcomers;	/* P: newcomers in the tick `newcomers_tick` */
	__u32 newcomers_tick;
	__u32 pad;

	/* A and P: policers */
	struct nrw_bucket udp;
	struct nrw_bucket syn;	/* SYNs without ACK */
	struct nrw_bucket syn_again; /* the same, of those that `syn` has dropped before */
};

/* A SYN that has not been answered, in an LRU hash: a flood of them evicts its own, never a slot (BRF-104). */
struct nrw_half {
	__u64 syn_ns;
	__u64 answered_ns;	/* SYN-ACK passed but the flow was refused a slot; 0: not answered */
	__u32 port;		/* port by which the SYN left, NRW_NO_PORT if the program does not know it */
	__u32 answer_seq;	/* the refused SYN-ACK's sequence number, which only who has heard it can acknowledge */
	__u8 permitted;		/* the SYN asks for feedback */
	__u8 repeated;
	__u8 pad[6];
};

/* A SYN that was dropped, in an array by a hash of its key; the last one of a place stays. */
struct nrw_missed {
	__u32 mark;		/* the rest of the hash */
	__u32 at_ms;		/* when (wraps) */
};

/* Ready grant for a service that the predictor knows: least of this and the ladder's (BRF-31, BRF-32). */
struct nrw_service {
	__u8 prefix[16];	/* destination network of the data, /24 or /48 */
	__u16 port;		/* network order: the smaller of both ports below 32768 */
	__u8 family;
	__u8 ctl_port;		/* the controlled port */
};

/* A rate advertised by a switch that does not see the flow's ACKs (BRF-63). Keyed by nrw_key. */
struct nrw_advert {
	__u64 valid_until_ns;	/* A */
	__u16 code;		/* A */
	__u16 pad[3];
};

_Static_assert(sizeof(struct nrw_key) == 40, "key");
_Static_assert(sizeof(struct nrw_slot) == 128, "slot");
_Static_assert(sizeof(struct nrw_port) == 368, "port");
_Static_assert(sizeof(struct nrw_half) == 32, "half");
_Static_assert(sizeof(struct nrw_advert) == 16, "advert");

#endif
