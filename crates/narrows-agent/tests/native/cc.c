// SPDX-License-Identifier: GPL-2.0-only
/*
 * Compiles the programs of bpf/cc as a normal program. It reads a connection's events from standard input,
 * one per line. It passes each event to the callbacks, and prints the state afterwards. tests/cc_replay.rs
 * writes the events. PARAMS and VARIANT are the constants that the agent sets in the kernel.
 */
#include <linux/bpf.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* The programs' constants are `const volatile`, but main() must set them. */
#define const
#define volatile

static void *bpf_sk_storage_delete(void *map, void *sk)
{
	return NULL;
}

#include "cc.bpf.c"

static struct nrw_bbr state;
static struct nrw_bounded bounded;

void *bpf_sk_storage_get(void *map, void *sk, void *value, __u64 flags)
{
	return map == (void *)&nrw_bbrs ? (void *)&state : (void *)&bounded;
}

/* The simulator's random numbers, from the first line of the input. */
static __u32 draws[256];
static int drawn, draw_count;

__u32 bpf_get_prandom_u32(void)
{
	return drawn < draw_count ? draws[drawn++] : 0;
}

static struct tcp_sock tp;

/* Sets window and rate before an event, so that differences do not add up. */
static void set_window(unsigned cwnd, unsigned ssthresh, unsigned long pacing)
{
	tp.snd_cwnd = cwnd;
	tp.snd_ssthresh = ssthresh;
	((struct sock *)&tp)->sk_pacing_rate = pacing;
}

static void print(void)
{
	printf("%u %lu %u %u %u %u %u %u\n", tp.snd_cwnd, ((struct sock *)&tp)->sk_pacing_rate, state.mode, state.cycle,
	       bounded.now.inflight_hi, bounded.now.inflight_lo,
	       (__u32)(((__u64)nrw_bw(&state) * tp.mss_cache * 1000000) >> NRW_BW_SHIFT), state.min_rtt_us);
}

/* Sets the connection's counters after an event. */
static void set_counters(unsigned long now_us, unsigned long delivered, unsigned long lost, unsigned in_flight)
{
	tp.tcp_mstamp = now_us;
	tp.tcp_clock_cache = tp.tcp_wstamp_ns = now_us * 1000;
	tp.delivered = delivered;
	tp.lost = lost;
	tp.packets_out = in_flight;
}

int main(void)
{
	struct nrw_params params = PARAMS;
	unsigned long now, delivered, lost, pacing, prior_delivered, interval, at;
	unsigned cwnd, ssthresh, in_flight, prior_in_flight, acked, newly_lost, sampled, srtt, draw;
	int rtt, ca_state, app_limited, cwnd_limited, delayed, ece;
	char kind, line[4096], *rest;

	nrw_params = params;
	nrw_variant = VARIANT;
	nrw_old = 1; /* the simulator does not know which packets ProbeRTT has limited */
	while (fgets(line, sizeof(line), stdin)) {
		kind = line[0];
		rest = line + 1;
		at = 0;
		if (kind == 'D') { /* random numbers */
			for (; sscanf(rest, "%u%ln", &draw, &at) == 1 && draw_count < 256; rest += at)
				draws[draw_count++] = draw;
			continue;
		}
		if (sscanf(rest, "%lu %lu %lu %u %u %u %lu%ln", &now, &delivered, &lost, &in_flight, &cwnd, &ssthresh,
			   &pacing, &at) != 7)
			return 1;
		rest += at;
		set_window(cwnd, ssthresh, pacing);
		set_counters(now, delivered, lost, in_flight);
		switch (kind) {
		case 'B': /* begin */
			if (sscanf(rest, "%u %d", &tp.mss_cache, &rtt) != 2)
				return 1;
			tp.rtt_min.s[0].v = rtt;
			tp.srtt_us = rtt > 0 ? rtt << 3 : 0;
			tp.snd_cwnd_clamp = NRW_NO_BOUND;
			tp.delivered_mstamp = now;
			((struct sock *)&tp)->sk_max_pacing_rate = ~0UL;
			((struct sock *)&tp)->sk_pacing_shift = 10;
			nrw_init((struct sock *)&tp);
			break;
		case 'A': { /* ACK */
			struct rate_sample rs = {};

			if (sscanf(rest, "%u %u %u %d %u %u %lu %lu %d %d %d %d %d", &acked, &newly_lost,
				   &prior_in_flight, &rtt, &srtt, &sampled, &interval, &prior_delivered, &app_limited,
				   &ca_state, &cwnd_limited, &delayed, &ece) != 13)
				return 1;
			rs.prior_delivered = prior_delivered;
			rs.delivered = interval ? (int)sampled : -1;
			rs.interval_us = interval ? (long)interval : -1;
			rs.rtt_us = rtt;
			rs.losses = newly_lost;
			rs.acked_sacked = acked;
			rs.prior_in_flight = prior_in_flight;
			rs.is_app_limited = app_limited;
			rs.is_ack_delayed = delayed;
			tp.srtt_us = srtt << 3;
			tp.inet_conn.icsk_ca_state = ca_state;
			tp.is_cwnd_limited = cwnd_limited;
			tp.max_packets_out = 0;
			if (acked)
				tp.delivered_mstamp = now;
			nrw_cong_control((struct sock *)&tp, 0, ece ? FLAG_ECE : 0, &rs);
			break;
		}
		case 'C': /* congestion */
			nrw_ssthresh((struct sock *)&tp);
			break;
		case 'E': /* echo of a mark */
			nrw_ssthresh((struct sock *)&tp);
			nrw_set_state((struct sock *)&tp, NRW_CA_CWR);
			break;
		case 'T': /* timeout */
			nrw_ssthresh((struct sock *)&tp);
			nrw_set_state((struct sock *)&tp, NRW_CA_LOSS);
			break;
		case 'U': /* undo */
			tp.snd_cwnd = nrw_undo_cwnd((struct sock *)&tp);
			break;
		case 'R': /* restart from idle, limited by the application */
			tp.app_limited = 1;
			nrw_cwnd_event((struct sock *)&tp, CA_EVENT_TX_START);
			break;
		default:
			return 1;
		}
		print();
	}
	return 0;
}
