/* SPDX-License-Identifier: GPL-2.0-only */
/* The state of a connection at the sender, and the tunables of the sender's programs. */
#ifndef NRW_CONN_H
#define NRW_CONN_H

#include "designate.h"

/*
 * Tunables, set by the agent before load. The verifier treats them as constants, and removes the code that
 * they disable.
 */

/* Same meaning as Choice in src/host/options.rs. */
enum nrw_choice {
	NRW_CHOICE_UNCHOSEN,
	NRW_CHOICE_CHOSEN,
	NRW_CHOICE_ALL,
};
const volatile enum nrw_choice nrw_choice = NRW_CHOICE_UNCHOSEN;

const volatile __u32 nrw_cap_only = 0;
const volatile __u32 nrw_designate = 0;	/* 1: connections designate packets for switches with BDR */
const volatile enum nrw_format nrw_format = NRW_FORMAT_INSERT;
const volatile char nrw_name[16] = "brf";

/*
 * Upper bound of every rate: the rate of this host's link, in L3 bytes/s (BRF-104). The default is 1 Tbit/s.
 * Up to this rate, no product in the sender's programs overflows.
 */
const volatile __u64 nrw_max_rate = 125000000000ULL;

/* All other constants are those of congestion/network/brf.rs (struct Params). Times are in us. */
#define NRW_SLOWEST_SEGMENT_US	1000000	/* longest time between two segments (RFC 6298, 2.4) */
#define NRW_SILENCE_SRTTS	4	/* feedback counts as missing after this many smoothed RTTs ... */
#define NRW_SILENCE_LEAST_US	200000	/* ... but not before this time (BRF-92) */
#define NRW_HALVINGS		4	/* after more halvings, the connection changes to CUBIC */
#define NRW_HALVINGS_MAX	63	/* largest valid shift of 64 bits; it makes every rate 0 */
#define NRW_FLOOR_SEGMENTS	2	/* segments per RTT, below which missing feedback does not reduce the rate (BRF-92) */
#define NRW_FIRST_STEP		2	/* segments per RTT; an increase from a lower rate starts at this rate */
#define NRW_SPARSE		2	/* segments per RTT, below which the gaps between segments vary ... */
#define NRW_SPARSE_LEAST_US	10000	/* ... for shorter RTTs, use this time, a switch's shortest period (BRF-30) */
#define NRW_GAP			1024	/* value of nrw_conn.gap for the mean gap between two segments */
#define NRW_GAP_VARIED		341	/* largest variation of a gap, in the same unit */
#define NRW_RESTART_SEGMENTS	10	/* segments per RTT after an idle time, until the next feedback (BRF-94) */
#define NRW_RTO_FLOOR_US	200000	/* TCP_RTO_MIN */
#define NRW_NOMINAL_RTT_US	100000
#define NRW_RTT_MIN_US		10
#define NRW_RTT_MAX_US		10000000
#define NRW_LONGEST_RTT		8	/* larger RTT samples are reduced to this many times the least RTT */

/*
 * The window bounds the data in flight (BRF-91). It is NRW_WINDOW_SLACK_PACKETS packets larger than the data
 * that the rate sends in a certain time: twice the least RTT, plus NRW_WINDOW_SLACK_US. The window must not
 * limit the rate, even if the RTT is shorter than the timer's jitter or a TSO burst. In measurements with
 * RTTs from 6 us to 20 ms, it did not limit the rate.
 */
#define NRW_WINDOW_SLACK_US	2000
#define NRW_WINDOW_SLACK_PACKETS 10
/*
 * Replaces NRW_WINDOW_SLACK_PACKETS for a flow with few segments per RTT. The kernel sends at most half a
 * window at once (tcp_cwnd_test()). With this constant, the flows of a crowd therefore send one segment at a
 * time. With NRW_WINDOW_SLACK_PACKETS, they sent bursts of five segments in a measurement. See
 * docs/explanation/brf.md, "Crowds".
 */
#define NRW_WINDOW_SLACK_SPARSE	3

/*
 * The kernel does not pace the first segments of a new connection, up to this number
 * (tcp_update_skb_after_send()).
 */
#define NRW_UNPACED		10
/*
 * If one of these unpaced segments is late, the next ones leave earlier, until the connection is back on
 * schedule. They make up for at most this delay, which is about the delay of the kernel's timer.
 */
#define NRW_LATE_MOST_US	200000

/* nrw_conn.mode: what sets the rate. The values are those of Mode in congestion/network/brf.rs. */
#define NRW_MODE_NONE		0	/* the handshake is not complete */
#define NRW_MODE_RATED		1	/* the network's rate */
#define NRW_MODE_ORPHANED	2	/* CUBIC, until feedback arrives */
#define NRW_MODE_UNRATED	3	/* CUBIC forever: no option in the handshake (BRF-93, BRF-104) */

/* Flags of nrw_conn.word, whose low half is a code. */
#define NRW_WORD_RATE		(1U << 16) /* the code is a rate that was not applied yet */
#define NRW_WORD_NO_ROOM	(1U << 17) /* an ACK had no room for the option since the last call */

struct nrw_conn {
	/*
	 * In this word, the programs that see headers pass codes to the congestion control. It is a single
	 * word, because nrw_restore() (padding.h) writes it without the socket's lock. If two rates arrive at
	 * once, the later replaces the earlier. The next ACK brings a new rate anyway.
	 */
	__u32 word;
	__u8 possible;		/* the handshake carried the option */
	__u8 mode;
	__u8 halvings;
	__u8 paced;		/* this program enabled pacing */

	/* Rates in L3 bytes/s, as in congestion/network/brf.rs. */
	__u64 target;
	__u64 granted;
	__u64 base;
	__u64 restart;		/* 0: none */
	__u64 inherited;	/* rate that an earlier sender applied to this connection; 0: none */

	/* tcp_mstamp, in us */
	__u64 base_us;
	__u64 feedback_us;		/* time of the last feedback, or of a restart after an idle time */
	__u64 no_room_us;	/* time of the last ACK without room for feedback */
	__u64 halved_us;
	__u64 acked_us;
	__u64 due_us;		/* when the next unpaced segment is due */
	__u64 sent_us;		/* departure of the last unpaced segment before the present ACK */

	__u32 srtt;		/* us */
	__u32 path;		/* least RTT, us */
	__u32 recent;		/* last RTT, at most NRW_LONGEST_RTT times the least RTT */

	/*
	 * For CUBIC: replaces tp->prr_delivered. The kernel does not update that field if the algorithm has a
	 * cong_control().
	 */
	__u32 prr_delivered;

	/* BRF-100, over one RTT */
	__u32 round_end;	/* tp->delivered when this RTT began */
	__u32 limited;		/* packets delivered under an application limit */
	__u32 unlimited;
	__u32 mark;		/* mark to write on the next data packet; 0: none */

	/* cap only */
	__u64 own_cap;		/* the application's SO_MAX_PACING_RATE, bytes/s */
	__u32 capped;

	/* In units of 1/NRW_GAP of the mean gap. */
	__s32 gap;		/* present gap between segments, with few segments per RTT */
	__s32 varied;		/* sum of the gaps' variations */
	__u32 first_sent;	/* number of sent segments that due_us includes */

	/* depart.h */
	__u64 depart_ns;	/* CLOCK_MONOTONIC: earliest departure of the next segment; 0: any time */
	__u32 departed;		/* number of sent segments that depart_ns includes */

	struct nrw_reports reports; /* BDR, with nrw_designate */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct nrw_conn);
} nrw_conns SEC(".maps");

/* Counters of rare events, for `status`. */
struct nrw_host_counters {
	__u64 asked;		/* SYNs that asked for feedback */
	__u64 rated;		/* connections that started with a rate */
	__u64 awaiting;		/* connections that started without a rate and may get one */
	__u64 unrated;		/* connections whose handshake had no option */
	__u64 orphaned;		/* connections that changed to CUBIC because their feedback stopped */
	__u64 adopted;		/* connections that returned from CUBIC to a rate */
	__u64 taken_over;	/* connections of an earlier sender */
	__u64 marked;		/* data packets marked */
	__u64 held;		/* first segments that got a departure time */
	__u64 designated;	/* reports of designated packets */
	__u64 restored;		/* ACKs whose padding was restored */
};
struct nrw_host_counters nrw_counters;

/* Returns whether the connection designates packets. It does so only if a switch may read them (BDR-32). */
static __always_inline int nrw_designates(const struct nrw_conn *conn)
{
	return nrw_designate && conn->possible;
}

#define nrw_count(what)	__sync_fetch_and_add(&nrw_counters.what, 1)

#endif
