// SPDX-License-Identifier: GPL-2.0-only
/*
 * Computes the sender's rate while no feedback arrives, with bpf/sender/rate.h as a normal program. It prints
 * the rate after each RTT. In this program, the sender does not change to CUBIC.
 */
#include <linux/types.h>
#include <stdio.h>

#define SEC(name)
#define __uint(name, value)	int (*name)[value]
#define __type(name, value)	value *name
#define BPF_MAP_TYPE_SK_STORAGE	1
#define BPF_F_NO_PREALLOC	1
#define SK_PACING_NONE		0
#define SK_PACING_NEEDED	1
#define barrier_var(variable)


struct sock {
	unsigned long sk_pacing_rate, sk_max_pacing_rate;
	__u32 sk_pacing_status;
};

struct tcp_sock {
	struct sock sk;
	__u32 srtt_us, snd_cwnd, snd_cwnd_clamp, data_segs_out, packets_out, write_seq, snd_nxt;
	__u64 tcp_wstamp_ns, tcp_mstamp;
	struct { struct { __u32 v; } s[1]; } rtt_min;
};

static inline __u32 bpf_get_prandom_u32(void)
{
	return 0;
}

static inline __u32 nrw_packet_bytes(const struct tcp_sock *tp)
{
	return 1500;
}

static inline __u64 nrw_payload_rate(const struct tcp_sock *tp, __u64 rate)
{
	return rate;
}

#include "conn.h"
#include "rate.h"

#define RTT_US		100000
#define GRANTED		12500000000ULL

int main(void)
{
	struct tcp_sock tp = { .srtt_us = RTT_US << 3 };
	struct nrw_conn conn = { .srtt = RTT_US, .path = RTT_US, .recent = RTT_US, .granted = GRANTED };

	/* More RTTs than the counter has values. */
	for (int i = 1; i <= 600; i++) {
		nrw_on_silence(&conn, (__u64)i * RTT_US);
		printf("%llu\n", (unsigned long long)nrw_rate_in_force(&conn, &tp));
	}
	return 0;
}
