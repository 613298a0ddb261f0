/* SPDX-License-Identifier: GPL-2.0-only */
/* Replaces libbpf's header. All processors for which the project is built are little-endian. */
#define bpf_htons(value)	__builtin_bswap16(value)
#define bpf_ntohs(value)	__builtin_bswap16(value)
#define bpf_htonl(value)	__builtin_bswap32(value)
