// SPDX-License-Identifier: GPL-2.0-only
/*
 * BBR v1 and its descendants BBR-A, BBR-B and BBR-C as congestion controls of a stock kernel. One source; what differs is
 * the gains of two phases, by a constant that is set before load, so that the verifier removes what a variant has not.
 *
 * The algorithm is that of Linux's net/ipv4/tcp_bbr.c, with its fixed point and its names where there are such
 * (docs/reference/rules/bbr.md; crates/narrows-control/src/congestion/bbr is the same for the simulator).
 *
 *   state.h        what is known of a connection, and what a variant is
 *   filter.h       windowed maximum
 *   model.h        bandwidth, propagation time, rounds, what fits the path
 *   aggregation.h  bursts of ACKs
 *   gains.h        the gain model of A, B and C
 *   omega.h        what the gain model looks at
 *   phases.h       Startup, Drain, ProbeBW
 *   policer.h      token buckets
 *   probe_rtt.h    ProbeRTT
 *   output.h       pacing rate and window, loss recovery
 *   bbr.h          struct_ops: the callbacks
 *   gains_run.h    the gain model by itself, for tests
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
