/* SPDX-License-Identifier: GPL-2.0-only */
/* Replaces libbpf's header: struct_ops programs as functions with their own arguments. */
#define BPF_PROG(name, ...)	name(__VA_ARGS__)
