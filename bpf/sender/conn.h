/* SPDX-License-Identifier: GPL-2.0-only */
/* What the sender knows of a connection, and its tunables. */
#ifndef NRW_CONN_H
#define NRW_CONN_H

/* Tunables: set before load, then read-only, so that the verifier drops what is switched off. */

/* nrw_choice: crates/narrows-agent/src/host/options.rs */
#define NRW_CHOICE_UNCHOSEN	0
#define NRW_CHOICE_CHOSEN	1
#define NRW_CHOICE_ALL		2
const volatile __u32 nrw_choice = NRW_CHOICE_UNCHOSEN;

const volatile __u32 nrw_cap_only = 0;
const volatile __u32 nrw_format = NRW_FORMAT_INSERT;
const volatile char nrw_name[16] = "brf";

/* BRF-104: no rate is above what this host's link can carry, L3 bytes/s. The default is 1 Tbit/s; no product below
 * overflows with it. */
const volatile __u64 nrw_max_rate = 125000000000ULL;

/* The rest is as congestion/network/brf.rs (struct Params) has it; times in us. */
#define NRW_SLOWEST_SEGMENT_US	1000000	/* a segment goes out at least this often (RFC 6298, 2.4) */
#define NRW_SILENCE_SRTTS	4	/* feedback is missed after so many srtt ... */
#define NRW_SILENCE_LEAST_US	200000	/* ... but not before this (BRF-92) */
#define NRW_HALVINGS		4	/* then CUBIC */
#define NRW_FLOOR_SEGMENTS	2	/* per RTT: silence does not push below (BRF-92) */
#define NRW_FIRST_STEP		2	/* segments per RTT: where the way up begins */
#define NRW_RESTART_SEGMENTS	10	/* per RTT, after idling, until the next feedback (BRF-94) */
#define NRW_RTO_FLOOR_US	200000	/* TCP_RTO_MIN */
#define NRW_NOMINAL_RTT_US	100000
#define NRW_RTT_MIN_US		10
#define NRW_RTT_MAX_US		10000000
#define NRW_LONGEST_RTT		8	/* no sample counts for more than so many of the least RTT */

/*
 * The window is the rate times twice the least RTT and this, and so many packets: it bounds what is in flight (BRF-91)
 * but must not clip the rate, nor where the RTT is shorter than the timer's jitter and a TSO burst. Measured from 6 us
 * to 20 ms.
 */
#define NRW_WINDOW_SLACK_US	2000
#define NRW_WINDOW_SLACK_PACKETS 10

/* nrw_conn.mode: who decides; as Mode in congestion/network/brf.rs */
#define NRW_MODE_NONE		0	/* the handshake is not over */
#define NRW_MODE_RATED		1	/* the network's rate */
#define NRW_MODE_ORPHANED	2	/* CUBIC, until feedback comes */
#define NRW_MODE_UNRATED	3	/* CUBIC for good: no option in the handshake (BRF-93, BRF-104) */

/* nrw_conn.word, beside a code in the low half */
#define NRW_WORD_RATE		(1U << 16) /* the code is a rate that has not been taken up */
#define NRW_WORD_NO_ROOM	(1U << 17) /* an ACK had no room for the option since the last look */

struct nrw_conn {
	/*
	 * From those who see headers to the congestion control, in one word: the padding's shim runs without the
	 * socket's lock. Of two rates that meet in it the later one stands; losing one costs an ACK.
	 */
	__u32 word;
	__u8 possible;		/* the handshake carried the option */
	__u8 mode;
	__u8 halvings;
	__u8 paced;		/* pacing was switched on here */

	/* rates, L3 bytes/s: as in congestion/network/brf.rs */
	__u64 target;
	__u64 granted;
	__u64 base;
	__u64 restart;		/* 0: none */

	/* tcp_mstamp, us */
	__u64 base_us;
	__u64 heard_us;		/* last feedback, or restart from idle */
	__u64 excused_us;	/* last ACK without room for feedback */
	__u64 halved_us;
	__u64 acked_us;

	__u32 srtt;		/* us */
	__u32 path;		/* least RTT, us */
	__u32 recent;		/* last RTT within limits, us */

	/* CUBIC: tp->prr_delivered's meaning, which the kernel leaves alone beside a cong_control */
	__u32 prr_delivered;

	/* BRF-100, one RTT long */
	__u32 round_end;	/* tp->delivered when the RTT began */
	__u32 limited;		/* packets delivered under an application limit */
	__u32 unlimited;
	__u32 mark;		/* to be written on the next data packet; 0: nothing */

	/* cap only */
	__u64 own_cap;		/* the program's SO_MAX_PACING_RATE, bytes/s */
	__u32 capped;
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct nrw_conn);
} nrw_conns SEC(".maps");

/* What has happened; for `status`. Rare events only, so plain atomics do. */
struct nrw_host_counters {
	__u64 asked;		/* SYNs that asked for feedback */
	__u64 rated;		/* connections that began with a rate */
	__u64 awaiting;		/* that began without one, but may get it */
	__u64 unrated;		/* whose handshake had no option */
	__u64 orphaned;		/* that fell silent and went to CUBIC */
	__u64 adopted;		/* that came back from CUBIC to a rate */
	__u64 marked;		/* data packets marked */
	__u64 restored;		/* ACKs whose padding was put right */
};
struct nrw_host_counters nrw_counters;

#define nrw_count(what)	__sync_fetch_and_add(&nrw_counters.what, 1)

#endif
