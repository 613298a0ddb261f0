/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Limits a host program to certain network namespaces. If the program is attached to a cgroup, it applies
 * only to those sockets of the cgroup that are in these namespaces.
 */
#ifndef NRW_SCOPE_H
#define NRW_SCOPE_H

/* 0: the program applies to every namespace. 1: it applies to the namespaces in the map. */
const volatile __u32 nrw_scoped = 0;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);	/* SO_NETNS_COOKIE */
	__type(value, __u8);
} nrw_namespaces SEC(".maps");

/* Returns whether the program applies to the network namespace of a sock_ops or sockopt context. */
#define nrw_in_scope(ctx)						\
({									\
	__u64 cookie__ = nrw_scoped ? bpf_get_netns_cookie(ctx) : 0;	\
									\
	!nrw_scoped || bpf_map_lookup_elem(&nrw_namespaces, &cookie__);	\
})

#endif
