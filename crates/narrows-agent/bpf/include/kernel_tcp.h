/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fields of the kernel's sockets that the programs use. The loader relocates their offsets (CO-RE), so
 * the order of the fields does not matter. Names are those of include/net/{sock,inet_connection_sock,tcp}.h
 * and include/linux/tcp.h.
 */
#ifndef NRW_KERNEL_TCP_H
#define NRW_KERNEL_TCP_H

#include <linux/types.h>

/*
 * Values of enum tcp_ca_state (visible in TCP_INFO), states from net/tcp_states.h, and address families.
 * <linux/tcp.h> has the values of tcp_ca_state. It is not included, because it also includes
 * <asm/byteorder.h>.
 */
enum nrw_ca_state { NRW_CA_OPEN, NRW_CA_DISORDER, NRW_CA_CWR, NRW_CA_RECOVERY, NRW_CA_LOSS };
#define NRW_TCP_ESTABLISHED	1
#define NRW_TCP_SYN_SENT	2
#define NRW_TCP_LISTEN		10
#define NRW_AF_INET		2
#define NRW_AF_INET6		10

#define TCP_INFINITE_SSTHRESH	0x7fffffff
#define TCP_CONG_NON_RESTRICTED	0x1

/* enum sk_pacing */
#define SK_PACING_NONE		0
#define SK_PACING_NEEDED	1
#define SK_PACING_FQ		2

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock_common {
	unsigned short skc_family;
	volatile unsigned char skc_state;
	__u16 skc_num;		/* host order */
	__be16 skc_dport;
};

struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate;	/* payload bytes/s */
	unsigned long sk_max_pacing_rate;
	__u32 sk_pacing_status;
	unsigned char sk_pacing_shift;	/* a burst is the data sent in 2^-shift s at the pacing rate */
};

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	__u32 icsk_rto;			/* jiffies */
	__u16 icsk_ext_hdr_len;		/* IP options or extension headers */
	__u8 icsk_ca_state : 5;
	__u8 icsk_ca_initialized : 1;
	__u8 icsk_ca_setsockopt : 1;	/* the application has chosen the congestion control */
};

/* include/linux/win_minmax.h */
struct minmax_sample {
	__u32 t;
	__u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u64 tcp_wstamp_ns;		/* CLOCK_MONOTONIC: earliest departure time of the next packet, if paced */
	__u64 tcp_clock_cache;		/* CLOCK_MONOTONIC: time at which tcp_mstamp was set */
	__u64 tcp_mstamp;		/* CLOCK_MONOTONIC, us: time of this ACK or of this transmission */
	__u64 delivered_mstamp;		/* CLOCK_MONOTONIC, us: time of the last ACK that delivered data */
	__u16 tcp_header_len;		/* header length with the options that every segment has */
	__u32 mss_cache;		/* payload of a full segment */
	__u32 srtt_us;			/* << 3 */
	__u32 snd_nxt;			/* sequence number of the next data to send */
	__u32 write_seq;		/* sequence number after all data written by the application */
	struct minmax rtt_min;		/* us */
	__u32 snd_cwnd;
	__u32 snd_ssthresh;
	__u32 snd_cwnd_clamp;
	__u32 prior_cwnd;
	__u32 max_packets_out;		/* largest number of packets in flight in the present window of data */
	__u8 is_cwnd_limited : 1;	/* the congestion window limited the sender in this window of data */
	__u32 data_segs_out;		/* data segments sent so far, including retransmissions */
	__u32 packets_out;
	__u32 retrans_out;
	__u32 lost_out;
	__u32 sacked_out;
	__u32 delivered;
	__u32 lost;			/* packets lost so far */
	__u32 app_limited;		/* `delivered` at which samples cease to be application-limited; 0: not limited */
	__u32 prr_out;
	__u32 undo_marker;
	__u32 reordering;
};

/* include/net/tcp.h; only the fields used here. */
struct rate_sample {
	__u32 prior_delivered;		/* tp->delivered when the newest acknowledged packet was sent */
	__s32 delivered;		/* packets delivered over interval_us; negative: no sample */
	long interval_us;
	long rtt_us;			/* negative: no sample */
	int losses;
	__u32 acked_sacked;
	__u32 prior_in_flight;		/* before this ACK */
	_Bool is_app_limited;
	_Bool is_ack_delayed;		/* the ACK was probably delayed */
};

/* Context of the iterator over TCP sockets (net/ipv4/tcp_ipv4.c). */
struct bpf_iter__tcp {
	struct sock_common *sk_common;
};

/*
 * The programs only pass this structure to kernel functions. The full definition is needed, because the
 * loader compares types and a mere declaration does not match.
 */
struct ack_sample {
	__u32 pkts_acked;
	__s32 rtt_us;
	__u32 in_flight;
};

#pragma clang attribute pop

/* include/net/tcp.h: flags of tcp_ack(), net/ipv4/tcp_input.c */
#define FLAG_DATA_ACKED		0x04
#define FLAG_SYN_ACKED		0x10
#define FLAG_DATA_SACKED	0x20
#define FLAG_ECE		0x40
#define FLAG_SND_UNA_ADVANCED	0x400
#define FLAG_ACKED		(FLAG_DATA_ACKED | FLAG_SYN_ACKED)
#define FLAG_FORWARD_PROGRESS	(FLAG_ACKED | FLAG_DATA_SACKED)

/* enum tcp_ca_event */
enum tcp_ca_event {
	CA_EVENT_TX_START,
	CA_EVENT_CWND_RESTART,
	CA_EVENT_COMPLETE_CWR,
	CA_EVENT_LOSS,
	CA_EVENT_ECN_NO_CE,
	CA_EVENT_ECN_IS_CE,
};

/* The loader matches members by name. Members that this declaration lacks stay empty in the kernel. */
struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*set_state)(struct sock *sk, __u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event ev);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	__u32 (*min_tso_segs)(struct sock *sk);
	void (*cong_control)(struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs);
	__u32 (*undo_cwnd)(struct sock *sk);
	__u32 (*sndbuf_expand)(struct sock *sk);
	char name[16];
	__u32 flags;
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

/*
 * The functions of the kernel's CUBIC (net/ipv4/tcp_cubic.c). They are weak symbols, because the cap-only
 * mode does not need them.
 */
extern void cubictcp_init(struct sock *sk) __ksym __weak;
extern void cubictcp_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym __weak;
extern __u32 cubictcp_recalc_ssthresh(struct sock *sk) __ksym __weak;
extern void cubictcp_state(struct sock *sk, __u8 new_state) __ksym __weak;
extern void cubictcp_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym __weak;
extern void cubictcp_acked(struct sock *sk, const struct ack_sample *sample) __ksym __weak;

/*
 * icsk_ca_state is a bit field. Read it through its relocation, because its shifts may differ from this
 * declaration.
 */
#define nrw_ca_state(tp) ((__u8)BPF_CORE_READ_BITFIELD(&(tp)->inet_conn, icsk_ca_state))

/* tcp_packets_in_flight(), include/net/tcp.h */
static __always_inline __u32 nrw_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

/* Returns the L3 bytes of a full segment. Rates count L3 bytes (BRF-4). */
static __always_inline __u32 nrw_packet_bytes(const struct tcp_sock *tp)
{
	const struct sock *sk = (const struct sock *)tp;
	__u32 ip = sk->__sk_common.skc_family == NRW_AF_INET6 ? 40 : 20;

	return tp->mss_cache + tp->tcp_header_len + ip + tp->inet_conn.icsk_ext_hdr_len;
}

/*
 * Converts an L3 rate to a rate of payload, the unit of sk_pacing_rate. tcp_update_skb_after_send() divides
 * skb->len, which has no headers, by sk_pacing_rate. The conversion assumes full segments. With small
 * segments, an application exceeds the L3 rate, because the share of headers is larger.
 */
static __always_inline __u64 nrw_payload_rate(const struct tcp_sock *tp, __u64 rate)
{
	__u32 packet = nrw_packet_bytes(tp);

	return packet ? rate * tp->mss_cache / packet : rate;
}

#endif
