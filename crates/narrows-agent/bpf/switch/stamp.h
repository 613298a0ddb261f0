/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Decides whether a packet gets a rate, and which one, and writes the rate (BRF-60 to BRF-63). The packet
 * belongs to the direction opposite to the flow's data.
 */
#ifndef NRW_STAMP_H
#define NRW_STAMP_H

#include "rewrite.h"
#include "state.h"

#define NRW_PADDING_AT		20	/* offset in the TCP header, format 1 */

/* The place where a packet has room for a rate, and the present value at this place. */
struct nrw_place {
	__u8 at;		/* in the TCP header; 0: nowhere */
	__u16 bits;		/* as they are in the packet */
};

static __always_inline struct nrw_place nrw_find_place(const struct nrw_packet *p, __u32 format)
{
	const struct nrw_options *o = &p->options;
	struct nrw_place place = { 0, 0 };

	if (format == NRW_FORMAT_PADDING) {
		if (!(p->flags & NRW_TCP_SYN) && nrw_options_padded(o)) {
			place.at = NRW_PADDING_AT;
			place.bits = nrw_options_u16(o, 0);
		}
	} else if (o->has_rate) {
		place.at = sizeof(struct nrw_tcp_header) + o->rate_at;
		place.bits = o->code;
	}
	return place;
}

/*
 * Returns whether the packet has a rate of another switch. In format 1, two NOPs or a mark of a data packet
 * are not a rate.
 */
static __always_inline int nrw_place_assigned(const struct nrw_packet *p, struct nrw_place place, __u32 format)
{
	if (!place.at || !nrw_is_rate(place.bits))
		return 0;
	if (format != NRW_FORMAT_PADDING)
		return 1;
	return place.bits != NRW_NOP_NOP &&
	       !(p->payload && (place.bits == NRW_MARK_UNLIMITED || place.bits == NRW_MARK_LIMITED));
}

/* Returns whether the paper's gate is closed, because the next feedback is not due yet (BRF-60, BRF-62). */
static __always_inline int nrw_gate_closed(const struct nrw_slot *slot, __u32 now_us)
{
	return slot->gate_us && (__s32)(slot->gate_us - now_us) > 0;
}

/*
 * Writes a rate where the packet has room for one. If there is no room, inserts the option, provided that the
 * format allows it.
 */
static __always_inline enum nrw_written nrw_speak(struct nrw_here *h, struct nrw_port *port, __u32 format, __u16 code,
						  struct nrw_place place)
{
	const struct nrw_packet *p = h->packet;
	enum nrw_written done;

	if (place.at) {
		/*
		 * In a data packet, the present value may be a mark of the sender (BRF-100), so do not
		 * overwrite it.
		 */
		if (p->payload && !(format == NRW_FORMAT_PADDING && place.bits == NRW_NOP_NOP)) {
			nrw_count(port->with_data);
			return NRW_UNTOUCHED;
		}
		done = nrw_rewrite_u16(h->skb, p, place.at, place.bits, code);
		if (done == NRW_WRITTEN)
			nrw_count(port->stamped);
		return done;
	}
	if (p->payload) {
		nrw_count(port->with_data);
		return NRW_UNTOUCHED;
	}
	if (format != NRW_FORMAT_INSERT || !nrw_has_room(p) || (p->flags & NRW_TCP_FIN)) {
		nrw_count(port->no_room);
		return NRW_UNTOUCHED;
	}
	done = nrw_insert(h->skb, p, code);
	if (done == NRW_WRITTEN)
		nrw_count(port->inserted);
	return done;
}

/* The rate that this switch writes into a packet. */
struct nrw_word {
	struct nrw_port *port;	/* for the format and the counters; NULL: nothing to write */
	struct nrw_slot *slot;	/* NULL: advertised rate, flow without a slot, or packet that is not believed */
	__u16 code;
};

#define NRW_AGAIN_US		2000000

/*
 * Records another switch's rate. The first rate after a pause is ignored, so that a single forged packet has
 * no effect. A real switch writes many rates.
 */
static __always_inline void nrw_note_passed(struct nrw_here *h, struct nrw_slot *slot, __u16 code)
{
	if (slot->passed_us && h->now_us - slot->passed_us <= NRW_AGAIN_US) {
		slot->passed_code = code;
		slot->passed_n++;
	}
	slot->passed_us = h->now_us;
}

/* Writes this switch's rate, unless the packet has a smaller one (BRF-61). */
static __always_inline enum nrw_written nrw_stamp(struct nrw_here *h, const struct nrw_word *word)
{
	const struct nrw_packet *p = h->packet;
	struct nrw_port *port = word->port;
	struct nrw_slot *slot = word->slot;
	__u16 code = word->code;
	__u32 format = port->format;
	struct nrw_place place;
	int gated = slot && (port->mode & NRW_MODE_ONCE_PER_RTT);
	enum nrw_written done;

	if ((port->mode & NRW_MODE_MESSAGES) && !(p->flags & NRW_TCP_SYN))
		return NRW_UNTOUCHED;
	place = nrw_find_place(p, format);
	if (nrw_place_assigned(p, place, format)) {
		if (slot) {
			nrw_note_passed(h, slot, place.bits);
			if (gated)
				slot->gate_us = (h->now_us + slot->rtt_us + slot->rtt_us / 2) | 1;
		}
		if (!nrw_is_rate(code))
			return NRW_UNTOUCHED;
		if (nrw_decode(code) > nrw_decode(place.bits)) {
			nrw_count(port->lower_passed);
			return NRW_UNTOUCHED;
		}
		if (p->fragment || p->options.is_signed) {
			nrw_count(port->no_room);
			return NRW_UNTOUCHED;
		}
		done = nrw_rewrite_u16(h->skb, p, place.at, place.bits, code);
		if (done == NRW_WRITTEN)
			nrw_count(port->stamped);
		return done;
	}
	if (!nrw_is_rate(code) || (gated && nrw_gate_closed(slot, h->now_us)))
		return NRW_UNTOUCHED;
	if (p->fragment || p->options.is_signed) {
		nrw_count(port->no_room);
		return NRW_UNTOUCHED;
	}
	done = nrw_speak(h, port, format, code, place);
	/* An ACK without room keeps the gate open (BRF-11). */
	if (done == NRW_WRITTEN && gated)
		slot->gate_us = (h->now_us + slot->rtt_us) | 1;
	return done;
}

#endif
