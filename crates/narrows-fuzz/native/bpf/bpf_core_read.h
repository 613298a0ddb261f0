/* SPDX-License-Identifier: GPL-2.0-only */
/* Replaces libbpf's header. In normal code, fields need no CO-RE relocation. */
#define BPF_CORE_READ_BITFIELD(from, field)	((from)->field)
