/* SPDX-License-Identifier: GPL-2.0-only */
/* Replaces libbpf's header. A struct_ops program becomes a function with its own arguments. */
#define BPF_PROG(name, ...)	name(__VA_ARGS__)
