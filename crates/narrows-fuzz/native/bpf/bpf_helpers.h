/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Replaces libbpf's header, so that the programs of senders and receivers compile as normal code.
 * kernel.h implements the helpers.
 */
#ifndef NRW_HOST_HELPERS_H
#define NRW_HOST_HELPERS_H

#define SEC(name)
#define __uint(name, value)	int (*name)[value]
#define __type(name, value)	value *name
#undef __always_inline
#define __always_inline		inline __attribute__((always_inline))
#define __ksym
#define __weak
#define barrier_var(value)	asm volatile("" : "+r"(value))

struct tcp_sock;

void *bpf_sk_storage_get(void *map, void *sk, void *value, __u64 flags);
struct tcp_sock *bpf_skc_to_tcp_sock(void *sk);
struct bpf_sock *bpf_sk_fullsock(struct bpf_sock *sk);
struct bpf_sock *bpf_sk_lookup_tcp(void *ctx, struct bpf_sock_tuple *tuple, __u32 size, __u64 netns, __u64 flags);
void bpf_sk_release(void *sk);
/* libbpf has a function with this name, and other fuzzers link libbpf. */
#define bpf_map_lookup_elem nrw_map_lookup_elem
void *bpf_map_lookup_elem(void *map, const void *key);
long bpf_getsockopt(void *ctx, int level, int name, void *value, int len);
long bpf_setsockopt(void *ctx, int level, int name, void *value, int len);
long bpf_sock_ops_cb_flags_set(struct bpf_sock_ops *ctx, int flags);
long bpf_load_hdr_opt(struct bpf_sock_ops *ctx, void *option, __u32 len, __u64 flags);
long bpf_reserve_hdr_opt(struct bpf_sock_ops *ctx, __u32 len, __u64 flags);
long bpf_store_hdr_opt(struct bpf_sock_ops *ctx, const void *option, __u32 len, __u64 flags);
long bpf_skb_load_bytes(const struct __sk_buff *skb, __u32 at, void *to, __u32 len);
long bpf_skb_store_bytes(struct __sk_buff *skb, __u32 at, const void *from, __u32 len, __u64 flags);
long bpf_l4_csum_replace(struct __sk_buff *skb, __u32 at, __u64 from, __u64 to, __u64 flags);
__u64 bpf_get_netns_cookie(void *ctx);
__u64 bpf_ktime_get_ns(void);
__u32 bpf_get_prandom_u32(void);

#endif
