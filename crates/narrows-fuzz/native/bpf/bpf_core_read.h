/* SPDX-License-Identifier: GPL-2.0-only */
/* Replaces libbpf's header: normal code needs no relocation. */
#define BPF_CORE_READ_BITFIELD(from, field)	((from)->field)
