// SPDX-License-Identifier: GPL-2.0-only
/*
 * BBR v1 and its variants BBR-A, BBR-B and BBR-C as congestion control algorithms of a stock kernel, from one
 * source. The variants differ in the gains of two phases. A constant that is set before load
 * selects the variant, and the verifier removes the code that the variant does not use.
 *
 * The algorithm is that of Linux's net/ipv4/tcp_bbr.c, with its fixed-point formats and, where
 * possible, its names (docs/reference/rules/bbr.md). crates/narrows-control/src/congestion/bbr is
 * the simulator's implementation.
 *
 * The files:
 *
 * - state.h: state of a connection, constants of a variant
 * - filter.h: windowed maximum
 * - model.h: bandwidth, propagation time, rounds, BDP
 * - aggregation.h: ACK aggregation
 * - gains.h: the gain model of A, B and C
 * - omega.h: input of the gain model
 * - phases.h: Startup, Drain, ProbeBW
 * - policer.h: detection of token buckets
 * - probe_rtt.h: ProbeRTT
 * - output.h: pacing rate and window, loss recovery
 * - bbr.h: struct_ops: the callbacks
 * - gains_run.h: the gain model alone, for tests
 */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "kernel_tcp.h"

#include "state.h"
#include "filter.h"
#include "model.h"
#include "aggregation.h"
#include "gains.h"
#include "omega.h"
#include "phases.h"
#include "policer.h"
#include "probe_rtt.h"
#include "output.h"
#include "bbr.h"
#include "gains_run.h"

char LICENSE[] SEC("license") = "GPL";
