/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Walks over the options of a TCP header once (RFC 9293 section 3.1). The walk ends at an option with a wrong
 * length. The reference for this code is narrows_control::feedback::option.
 */
#ifndef NRW_TCP_OPTIONS_H
#define NRW_TCP_OPTIONS_H

#include "wire.h"

#define NRW_OPTIONS_MAX		40
#define NRW_OPTIONS_MASK	63	/* masks an index, so that the verifier knows its bound */

#define NRW_OPT_END		0
#define NRW_OPT_NOP		1
#define NRW_OPT_TIMESTAMP	8	/* RFC 7323 */
#define NRW_OPT_MD5		19	/* RFC 2385 */
#define NRW_OPT_AO		29	/* RFC 5925 */
#define NRW_OPT_MARK_LIMITED	254

struct nrw_options {
	__u8 bytes[NRW_OPTIONS_MASK + 1];
	__u8 len;
	__u8 at;		/* position of the walk */
	__u8 rate_at;		/* offset of the option's value, from the first option; valid with has_rate */
	__u8 has_rate;		/* the rate option was found */
	__u8 has_timestamps;
	__u8 marks_unlimited;
	__u8 marks_limited;
	__u8 is_signed;		/* MD5 or AO: the receiver would drop the packet if its header changed */
	__u8 has_report;	/* a designated packet */
	__u8 pad;
	__u16 code;		/* the rate option's value */
	__u32 report;		/* the report's value */
	__u32 value;		/* timestamp value and echo */
	__u32 echo;
};

static __always_inline __u16 nrw_options_u16(const struct nrw_options *o, __u32 at)
{
	return (__u16)(o->bytes[at & NRW_OPTIONS_MASK] << 8 | o->bytes[(at + 1) & NRW_OPTIONS_MASK]);
}

static __always_inline __u32 nrw_options_u32(const struct nrw_options *o, __u32 at)
{
	return (__u32)nrw_options_u16(o, at) << 16 | nrw_options_u16(o, at + 2);
}

/*
 * Returns whether the timestamps follow the first two bytes of the options, as in Linux's packets after the
 * handshake. Format 1 writes a rate only into packets with this layout.
 */
static __always_inline int nrw_options_padded(const struct nrw_options *o)
{
	return o->len >= 12 && nrw_options_u16(o, 2) == (NRW_OPT_TIMESTAMP << 8 | 10);
}

static __always_inline void nrw_options_stamps(struct nrw_options *o, __u32 at)
{
	o->value = nrw_options_u32(o, at);
	o->echo = nrw_options_u32(o, at + 4);
	o->has_timestamps = 1;
}

static __always_inline void nrw_note_option(struct nrw_options *o, __u32 at, __u32 kind, __u32 size)
{
	if (kind == NRW_OPT_TIMESTAMP && size == 10) {
		nrw_options_stamps(o, at + 2);
	} else if (kind == NRW_OPT_KIND && size == NRW_OPT_LEN) {
		if (!o->has_rate && nrw_options_u16(o, at + 2) == NRW_EXID) {
			o->code = nrw_options_u16(o, at + 4);
			o->rate_at = at + 4;
			o->has_rate = 1;
		}
	} else if (kind == NRW_OPT_KIND && size == NRW_REPORT_LEN) {
		if (!o->has_report && nrw_options_u16(o, at + 2) == NRW_REPORT_EXID) {
			o->report = nrw_options_u32(o, at + 4);
			o->has_report = 1;
		}
	} else if (kind == NRW_OPT_KIND && size == 2) {
		o->marks_unlimited = 1;
	} else if (kind == NRW_OPT_MARK_LIMITED && size == 2) {
		o->marks_limited = 1;
	} else if (kind == NRW_OPT_MD5 || kind == NRW_OPT_AO) {
		o->is_signed = 1;
	}
}

/*
 * Reads the options into `o`, which the caller has zeroed. The loop has forty steps, because the options may
 * be forty NOPs.
 *
 * The function is not static, so the verifier checks the loop only once and does not track its result. The
 * position is in memory, where the verifier does not track it. With the position in a register, the verifier
 * would follow every path to each value, and reach its limit of a million instructions.
 */
__noinline int nrw_walk_options(struct nrw_options *o)
{
	__u32 at, kind, size;

	if (!o)
		return 0;
	for (int i = 0; i < NRW_OPTIONS_MAX; i++) {
		at = o->at;
		if (at >= o->len)
			break;
		kind = o->bytes[at & NRW_OPTIONS_MASK];
		if (kind == NRW_OPT_END)
			break;
		size = 1;
		if (kind != NRW_OPT_NOP) {
			if (at + 1 >= o->len)
				break;
			size = o->bytes[(at + 1) & NRW_OPTIONS_MASK];
			if (size < 2 || at + size > o->len)
				break;
			nrw_note_option(o, at, kind, size);
		}
		o->at = at + size;
	}
	return 0;
}

static __always_inline int nrw_read_options(struct __sk_buff *skb, __u32 from, __u32 len, struct nrw_options *o)
{
	o->len = len;
	if (!len)
		return 0;
	/*
	 * The compiler knows the bounds of `len`. Without barrier_var(), it would remove the next checks,
	 * which the verifier needs.
	 */
	barrier_var(len);
	if (len < 1 || len > NRW_OPTIONS_MAX)
		return -1;
	if (bpf_skb_load_bytes(skb, from, o->bytes, len))
		return -1;
	nrw_walk_options(o);
	/*
	 * Format 1 writes the rate over the padding. The walk takes such a rate for the start of another
	 * option, so it may miss the timestamps behind the rate.
	 */
	if (!o->has_timestamps && nrw_options_padded(o))
		nrw_options_stamps(o, 4);
	return 0;
}

#endif
