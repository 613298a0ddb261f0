/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A model of the kernel for the programs under test. The model has one connection, the fuzzer's
 * input, and the helper functions.
 */
#ifndef NRW_HOST_KERNEL_H
#define NRW_HOST_KERNEL_H

#define CHECK(condition)							\
	do {									\
		if (!(condition)) {						\
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			abort();						\
		}								\
	} while (0)

#define HEADER_MAX	60
#define SEGMENT_MAX	70000	/* no segment is larger, and one segment per second is always allowed */
#define PACKET_MAX	160
#define MINE		0x01020304	/* the namespace in scope */

static struct {
	const __u8 *data;
	size_t left;

	struct tcp_sock tp;
	struct nrw_conn conn;
	int has_conn;
	int is_ours;			/* the connection uses `brf` */
	__u64 now_ns;
	__u32 cap;			/* SO_MAX_PACING_RATE as the programs set it */
	int handshake_has_option;
	int is_foreign;			/* the connection is in a namespace outside the scope */

	__u8 header[HEADER_MAX];	/* the header that the callback sees */
	__u32 header_len;
	__u8 syn[HEADER_MAX];		/* the saved SYN */
	__u32 syn_len;
	__u32 reserved, stored;
	int may_write;			/* in the callback that writes options */

	__u8 packet[PACKET_MAX];	/* the packet that traffic control sees */
	__u32 packet_len;
} w;

static struct bpf_sock sock_view;

/* Input. */

static __u8 byte(void)
{
	if (!w.left)
		return 0;
	w.left--;
	return *w.data++;
}

static __u32 word(void)
{
	__u32 value = byte();

	return value << 24 | byte() << 16 | byte() << 8 | byte();
}

/* Returns a value from 0 to `most`. Values with few bits are as likely as values with many bits. */
static __u64 up_to(__u64 most)
{
	__u64 value = (__u64)word() << 32 | word();

	return (value >> (byte() & 63)) % (most + 1);
}

static __u32 fill(__u8 *to, __u32 most)
{
	__u32 len = byte() % (most + 1);

	for (__u32 i = 0; i < len; i++)
		to[i] = byte();
	return len;
}

/* Writes a TCP header with options from the input. Most headers have a rate option at some position. */
static __u32 tcp_header(__u8 *to, __u8 flags)
{
	__u8 options[40];
	__u32 len = fill(options, sizeof(options)) & ~3U;
	__u8 shape = byte();

	memset(to, 0, HEADER_MAX);
	if ((shape & 3) && len >= 8) {
		__u32 at = shape % (len - 5);

		options[at] = NRW_OPT_KIND;
		options[at + 1] = shape & 4 ? shape : NRW_OPT_LEN;
		options[at + 2] = NRW_EXID >> 8;
		options[at + 3] = NRW_EXID & 0xff;
	}
	memcpy(to + 20, options, len);
	to[12] = (20 + len) / 4 << 4;
	to[13] = flags;
	return 20 + len;
}

/* The helpers below behave like the helpers in net/core/filter.c and net/ipv4/tcp.c. */

void *bpf_sk_storage_get(void *map, void *sk, void *value, __u64 flags)
{
	CHECK(map == &nrw_conns && sk);
	if (!w.has_conn && !(flags & BPF_SK_STORAGE_GET_F_CREATE))
		return NULL;
	if (!w.has_conn)
		memset(&w.conn, 0, sizeof(w.conn));
	w.has_conn = 1;
	return &w.conn;
}

struct tcp_sock *bpf_skc_to_tcp_sock(void *sk)
{
	return &w.tp;
}

struct bpf_sock *bpf_sk_fullsock(struct bpf_sock *sk)
{
	return sk;
}

struct bpf_sock *bpf_sk_lookup_tcp(void *ctx, struct bpf_sock_tuple *tuple, __u32 size, __u64 netns, __u64 flags)
{
	return byte() & 1 ? &sock_view : NULL;
}

void bpf_sk_release(void *sk)
{
}

void *bpf_map_lookup_elem(void *map, const void *key)
{
	static __u8 present = 1;

	return *(const __u64 *)key == MINE ? &present : NULL;
}

__u64 bpf_get_netns_cookie(void *ctx)
{
	return MINE + w.is_foreign;
}

__u64 bpf_ktime_get_ns(void)
{
	return w.now_ns;
}

__u32 bpf_get_prandom_u32(void)
{
	return word();
}

long bpf_getsockopt(void *ctx, int level, int name, void *value, int len)
{
	if (name != TCP_CONGESTION) {
		memset(value, byte(), len);
		return byte() & 1 ? -1 : 0;
	}
	memset(value, 0, len);
	memcpy(value, w.is_ours ? "brf" : "cubic", w.is_ours ? 4 : 6);
	return 0;
}

long bpf_setsockopt(void *ctx, int level, int name, void *value, int len)
{
	if (name == SO_MAX_PACING_RATE && level == SOL_SOCKET) {
		memcpy(&w.cap, value, sizeof(w.cap));
		CHECK(len == 4 && w.cap);
		CHECK(w.cap == ~0U || w.cap <= nrw_max(w.conn.own_cap, 1));
	}
	if (name == TCP_CONGESTION && level == IPPROTO_TCP)
		w.is_ours = 1;
	return 0;
}

long bpf_sock_ops_cb_flags_set(struct bpf_sock_ops *ctx, int flags)
{
	ctx->bpf_sock_ops_cb_flags = flags;
	return 0;
}

/* bpf_search_tcp_opt() */
static const __u8 *search(const __u8 *at, const __u8 *end, const __u8 *wanted)
{
	while (at < end) {
		if (*at == 0)
			return NULL;
		if (*at == 1) {
			at++;
			continue;
		}
		if (end - at < 2 || at[1] < 2 || at[1] > end - at)
			return NULL;
		if (*at == wanted[0] && at[1] >= 4 && !memcmp(at + 2, wanted + 2, 2))
			return at;
		at += at[1];
	}
	return NULL;
}

long bpf_load_hdr_opt(struct bpf_sock_ops *ctx, void *option, __u32 len, __u64 flags)
{
	const __u8 *header = flags & BPF_LOAD_HDR_OPT_TCP_SYN ? w.syn : w.header, *found;
	__u32 have = flags & BPF_LOAD_HDR_OPT_TCP_SYN ? w.syn_len : w.header_len, copied;

	if (have < 20)
		return -2;
	found = search(header + 20, header + have, option);
	if (!found)
		return -42;
	copied = found[1] < len ? found[1] : len;
	memcpy(option, found, copied);
	return found[1] > len ? -28 : copied;
}

long bpf_reserve_hdr_opt(struct bpf_sock_ops *ctx, __u32 len, __u64 flags)
{
	w.reserved += len;
	return 0;
}

long bpf_store_hdr_opt(struct bpf_sock_ops *ctx, const void *option, __u32 len, __u64 flags)
{
	CHECK(w.may_write);
	if (w.stored)
		return -17;
	w.stored = len;
	return 0;
}

long bpf_skb_load_bytes(const struct __sk_buff *skb, __u32 at, void *to, __u32 len)
{
	if (at > w.packet_len || len > w.packet_len - at)
		return -14;
	memcpy(to, w.packet + at, len);
	return 0;
}

long bpf_skb_store_bytes(struct __sk_buff *skb, __u32 at, const void *from, __u32 len, __u64 flags)
{
	if (at > w.packet_len || len > w.packet_len - at)
		return -14;
	memcpy(w.packet + at, from, len);
	return 0;
}

/* Computes the one's complement sum of old value, new value and checksum, as csum_replace2() does. */
long bpf_l4_csum_replace(struct __sk_buff *skb, __u32 at, __u64 from, __u64 to, __u64 flags)
{
	__u32 sum;
	__u16 check;

	if (at > w.packet_len || 2 > w.packet_len - at)
		return -14;
	memcpy(&check, w.packet + at, 2);
	sum = (__u16)~check + (__u16)~(__u16)from + (__u16)to;
	sum = (sum & 0xffff) + (sum >> 16);
	check = ~((sum & 0xffff) + (sum >> 16));
	memcpy(w.packet + at, &check, 2);
	return 0;
}

/* Replaces the kernel's CUBIC. The replacement may return any window. */

void cubictcp_init(struct sock *sk)
{
}

void cubictcp_cong_avoid(struct sock *sk, __u32 ack, __u32 acked)
{
	w.tp.snd_cwnd = 1 + up_to(w.tp.snd_cwnd_clamp - 1);
}

__u32 cubictcp_recalc_ssthresh(struct sock *sk)
{
	return 2 + up_to(1 << 20);
}

void cubictcp_state(struct sock *sk, __u8 new_state)
{
}

void cubictcp_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
}

void cubictcp_acked(struct sock *sk, struct ack_sample *sample)
{
}

#endif
