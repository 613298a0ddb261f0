/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Measures both halves of a flow's RTT from the echoes of timestamps (BRF-17). The rules are those of
 * narrows_control::rate::brf::rtt, which also smooths the samples. If two CPUs write at the same time, one
 * sample may be wrong, but the next is correct.
 */
#ifndef NRW_RTT_H
#define NRW_RTT_H

#include "state.h"

#define NRW_AWAIT_US		1000000	/* no echo is expected after this time */

/* Returns the microseconds since `then_us`. The result is at least 1, because 0 means "no sample". */
static __always_inline __u32 nrw_since(__u32 now_us, __u32 then_us)
{
	__u32 span = now_us - then_us;

	return span ? span : 1;
}

static __always_inline void nrw_sample_receiver(struct nrw_slot *slot, __u32 us)
{
	slot->rtt_receiver_us = us;
	slot->rtt_receiver_n++;
}

static __always_inline void nrw_sample_sender(struct nrw_slot *slot, __u32 us)
{
	slot->rtt_sender_us = us;
	slot->rtt_sender_n++;
}

/* Returns whether `echo` is the awaited timestamp or a later one (RFC 7323, serial arithmetic). */
static __always_inline int nrw_echoes(__u32 echo, __u32 value)
{
	return (__s32)(echo - value) >= 0;
}

/* Takes RTT samples from a packet of the data direction that has payload. */
static __always_inline void nrw_rtt_data(struct nrw_here *h, struct nrw_slot *slot)
{
	const struct nrw_options *o = &h->packet->options;
	/*
	 * The time between an ACK and this data may include a pause of the application. In this case, it is
	 * no RTT sample.
	 */
	int paused = !slot->data_us || (slot->rtt_us && 2ULL * (h->now_us - slot->data_us) > slot->rtt_us);

	slot->data_us = h->now_us;
	if (!o->has_timestamps)
		return;
	if (slot->wait_sender_us && nrw_echoes(o->echo, slot->wait_sender_ts)) {
		__u32 span = nrw_since(h->now_us, slot->wait_sender_us);

		slot->wait_sender_us = 0;
		if (!paused)
			nrw_sample_sender(slot, span);
	}
	/*
	 * Wait for the echo of one timestamp at a time. If the echo never arrives, wait for a newer
	 * timestamp.
	 */
	if (!slot->wait_receiver_us || h->now_us - slot->wait_receiver_us > NRW_AWAIT_US) {
		slot->wait_receiver_ts = o->value;
		slot->wait_receiver_us = h->now_us;
	}
}

/* Takes RTT samples from a packet of the other direction. */
static __always_inline void nrw_rtt_reverse(struct nrw_here *h, struct nrw_slot *slot)
{
	const struct nrw_options *o = &h->packet->options;

	if (!o->has_timestamps)
		return;
	if (slot->wait_receiver_us && nrw_echoes(o->echo, slot->wait_receiver_ts)) {
		nrw_sample_receiver(slot, nrw_since(h->now_us, slot->wait_receiver_us));
		slot->wait_receiver_us = 0;
	}
	if (!slot->wait_sender_us || h->now_us - slot->wait_sender_us > NRW_AWAIT_US) {
		slot->wait_sender_ts = o->value;
		slot->wait_sender_us = h->now_us;
	}
}

/*
 * At the third packet of the handshake, completes the RTT sample that began at the SYN-ACK. No timestamps are
 * needed. By Karn's algorithm, a repeated SYN-ACK gives no sample.
 */
static __always_inline void nrw_rtt_third(struct nrw_here *h, struct nrw_slot *slot)
{
	int repeated = slot->flags & NRW_F_SYN_REPEATED;

	if (slot->flags & NRW_F_OPENED_BY_RECEIVER) {
		if (slot->wait_receiver_us && !repeated)
			nrw_sample_receiver(slot, nrw_since(h->now_us, slot->wait_receiver_us));
		slot->wait_receiver_us = 0;
	} else {
		if (slot->wait_sender_us && !repeated)
			nrw_sample_sender(slot, nrw_since(h->now_us, slot->wait_sender_us));
		slot->wait_sender_us = 0;
	}
}

#endif
