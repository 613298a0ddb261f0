/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Chooses designated packets, for switches with BDR. One packet per RTT carries the time since the flow's
 * last designated packet (BDR-1, BDR-20). The sum of these times is the lifetime of the flow. The rules are
 * those of congestion/network/bdr/designator.rs, with these deviations:
 *
 * - All full segments of the flow have 8 bytes less payload, because the kernel chooses a segment's size
 *   before this program knows whether the segment is designated.
 * - The kernel sends several segments at once. All of them carry the option, and together they count as one
 *   report.
 * - If a designated packet is lost, the next one is designated after the retransmission is acknowledged, or
 *   after two timeouts (BDR-27).
 * - A server's reports begin when its connection is established, because a SYN-ACK has no socket.
 */
#ifndef NRW_DESIGNATE_H
#define NRW_DESIGNATE_H

#include "wire.h"

/* nrw_conn.reports */
struct nrw_reports {
	__u64 last_us;		/* time of the last designated packet, at first the flow's start; 0: unknown */
	__u32 seq;		/* sequence number of this packet */
	__u8 outstanding;	/* no acknowledgement of this packet was seen yet */
	__u8 begun;		/* the first report was sent */
	__u8 finished;		/* the last report was sent */
	__u8 pad;
};

/* TCP_RTO_MIN, part of the time after which a designated packet counts as lost. */
#define NRW_REPORT_RTO_US	200000

/* Called when the SYN is sent, or when a server's connection is established. */
static __always_inline void nrw_reports_begin(struct nrw_reports *r, __u64 now_us)
{
	if (!r->last_us)
		r->last_us = now_us;
}

/*
 * Returns whether the next packet with new data is designated. All data before `una` is acknowledged. A FIN
 * is always designated, even if another designated packet is in flight (BDR-36).
 */
static __always_inline int nrw_report_is_due(const struct nrw_reports *r, __u64 now_us, __u32 una, __u32 srtt_us, int fin)
{
	if (r->finished)
		return 0;
	if (fin || !r->outstanding || (__s32)(una - r->seq) > 0)
		return 1;
	return now_us - r->last_us >= 2 * ((__u64)srtt_us + NRW_REPORT_RTO_US);
}

/* Returns the report for a packet that begins at `seq` and leaves as this many segments. */
static __always_inline __u32 nrw_report(struct nrw_reports *r, __u64 now_us, __u32 seq, __u32 segments, int fin)
{
	/* On a connection of an earlier sender, the time of the last report is unknown. */
	__u64 us = r->last_us ? now_us - r->last_us : 0;
	__u32 value;

	if (us > NRW_REPORT_US_MAX)
		us = NRW_REPORT_US_MAX;
	if (segments > 255)
		segments = 255;
	value = (__u32)us | segments << 22 | (r->begun ? 0 : NRW_REPORT_FIRST) | (fin ? NRW_REPORT_FIN : 0);
	r->last_us = now_us;
	r->seq = seq;
	r->outstanding = 1;
	r->begun = 1;
	r->finished = fin;
	return value;
}

#endif
