// SPDX-License-Identifier: GPL-2.0-only
/*
 * Compiles the receiver's program as normal code. Its global names are changed, because the sender's
 * program is in the same process and has the same names.
 */
#include <linux/types.h>
#include <linux/stddef.h>

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* The fuzzer sets the tunables for each input, so they must not be constant. */
#define const
#define LICENSE		receiver_license
#define nrw_counters	receiver_counters
#define nrw_namespaces	receiver_namespaces
#define nrw_scoped	receiver_scoped
#define nrw_ask		receiver_ask

#include "receiver/receiver.bpf.c"
