/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The encoding of a rate in TCP options. The reference is crates/narrows-control/src/feedback, with its
 * tests.
 *
 * A rate has 16 bits in network order: mantissa * 10 + decimal exponent, in bytes per second (BRF-5). A
 * larger code can mean a smaller rate (BRF-8), so compare decoded rates.
 */
#ifndef NRW_WIRE_H
#define NRW_WIRE_H

#define NRW_OPT_KIND		253	/* RFC 4727, RFC 6994: experiments with an ExID */
#define NRW_OPT_LEN		6	/* kind, length, ExID, value */
#define NRW_OPT_PADDED		8	/* length of the option with two NOPs in front, for alignment */
#define NRW_EXID		0x4E57	/* "NW"; not registered */

/*
 * The code of the largest rate. Larger codes are not rates. The build of the agent checks that
 * narrows-control has the same codes.
 */
enum nrw_code {
	NRW_CODE_MAX = 65529,		/* the largest rate that can be encoded */
	NRW_CODE_DESIGNATES = 65532,	/* in a SYN or SYN-ACK: unassigned, and the sender designates packets (BDR-31) */
	NRW_CODE_UNLIMITED = 65534,	/* no rate, and the application does not limit the sender (BRF-100) */
	NRW_CODE_UNASSIGNED = 65535,	/* in a SYN: feedback is welcome; in an ACK: no switch has written a rate yet */
};

/*
 * The report of a designated packet (BDR-6): one option per RTT, in a data packet or in the FIN. Its value
 * has 32 bits. Linux may send the packet as several segments that all carry the option. The value therefore
 * includes the number of segments, and each segment counts as a fraction of a report.
 * crates/narrows-control/src/feedback/report.rs implements the same encoding.
 */
#define NRW_REPORT_EXID		0x4E44	/* "ND"; not registered */
#define NRW_REPORT_LEN		8	/* kind, length, ExID, value */
#define NRW_REPORT_FIRST	(1U << 31) /* the flow's first report after its SYN */
#define NRW_REPORT_FIN		(1U << 30) /* the flow's last report */
#define NRW_REPORT_SEGMENTS(value) ((value) >> 22 & 0xff)
#define NRW_REPORT_US_MAX	((1U << 22) - 1) /* largest time since the last report, us; longer times are cut */

/*
 * Marks in data packets. With a mark, the sender states whether its application limits the flow (BRF-100). A
 * mark is a TCP option without a body that replaces the two NOPs before the timestamps. It needs no
 * additional bytes, so the MSS stays the same and TSO works. Other stacks skip it as an unknown option.
 */
#define NRW_MARK_UNLIMITED	0xFD02	/* kind 253, length 2 */
#define NRW_MARK_LIMITED	0xFE02	/* kind 254, length 2 */
#define NRW_NOP_NOP		0x0101

/*
 * Wire formats. NRW_FORMAT_INSERT also overwrites options that the receiver has reserved, like
 * NRW_FORMAT_RESERVED.
 */
enum nrw_format {
	NRW_FORMAT_PADDING = 1,		/* the paper's format: overwrite the two NOPs before the timestamps */
	NRW_FORMAT_RESERVED = 2,	/* overwrite the option if the receiver has reserved it */
	NRW_FORMAT_INSERT = 3,		/* insert the option into pure ACKs and SYN-ACKs, or lower its rate (default) */
};

/*
 * A message that carries a flow's rate to its source (PAC-3b): the payload of a UDP datagram from the flow's
 * destination address to its source address. The message has the two sequence numbers of an ACK from the
 * destination. A host that does not see the flow's packets must guess these numbers.
 * crates/narrows-control/src/feedback/message.rs implements the same encoding.
 */
#define NRW_MESSAGE_PORT	20055	/* source and destination port; not registered */
#define NRW_MESSAGE_VERSION	1
struct nrw_message {
	__be16 exid;		/* NRW_EXID */
	__u8 version;
	__u8 zero;
	__be16 sport;		/* ports of the flow */
	__be16 dport;
	__be32 seq;		/* end of the flow's data that the switch has seen */
	__be32 ack;		/* acknowledgement number of the flow's data packets */
	__be16 code;
	__be16 pad;
};

/* Returns the rate of a code, in bytes/s. Include bpf_helpers.h before this file, for barrier_var(). */
static __always_inline __u64 nrw_decode(__u16 code)
{
	static const __u64 pow10[10] = {
		1ULL, 10ULL, 100ULL, 1000ULL, 10000ULL, 100000ULL, 1000000ULL,
		10000000ULL, 100000000ULL, 1000000000ULL,
	};
	__u32 exponent = code % 10;

	/*
	 * The compiler knows that the exponent is below ten. Without barrier_var(), it would remove the test
	 * below, which the verifier needs.
	 */
	barrier_var(exponent);
	return exponent < 10 ? (__u64)(code / 10) * pow10[exponent] : 0;
}

static __always_inline int nrw_is_rate(__u16 code)
{
	return code <= NRW_CODE_MAX;
}

#endif
