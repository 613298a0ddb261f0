// SPDX-License-Identifier: GPL-2.0-only
/*
 * Congestion control algorithms for a stock kernel, from one source: BBR v1, its variants BBR-A, BBR-B, BBR-C
 * and BBQ, BBR v2 and v3. Before load, the agent sets a constant that selects the algorithm. The verifier
 * removes the code that the algorithm does not use.
 *
 * BBR v1 follows net/ipv4/tcp_bbr.c of Linux, with its fixed-point formats and, where possible, its names
 * (docs/reference/rules/bbr.md). crates/narrows-control/src/congestion/bbr has the simulator's
 * implementations. Its comments state the sources of v2, v3 and BBQ.
 *
 * The files:
 *
 * - params.h: parameters
 * - state.h: state of a connection, constants of a variant
 * - filter.h: windowed maximum
 * - model.h: bandwidth, propagation time, rounds, BDP
 * - aggregation.h: ACK aggregation
 * - gains.h: the gain model of A, B and C
 * - bbq.h: BBQ's test for a queue
 * - omega.h: mean RTT of a round, input of the gain model
 * - phases.h: Startup, Drain, ProbeBW
 * - policer.h: detection of token buckets
 * - probe_rtt.h: ProbeRTT
 * - output.h: pacing rate and window, loss recovery
 * - bounded.h: state of v2 and v3
 * - history.h: packets in flight and lost packets when a packet was sent
 * - bounds.h: bounds that follow from losses
 * - probes.h: when to probe, and how inflight_hi grows in a probe
 * - steps.h: the state machine of v2 and v3
 * - bounded_ack.h: an ACK, losses, timeouts and undo in v2 and v3
 * - bbr.h: struct_ops: the callbacks
 * - gains_run.h: programs for tests, which run only the gain model or only BBQ's test
 */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "kernel_tcp.h"

#include "params.h"
#include "state.h"
#include "filter.h"
#include "model.h"
#include "aggregation.h"
#include "gains.h"
#include "bbq.h"
#include "omega.h"
#include "phases.h"
#include "policer.h"
#include "probe_rtt.h"
#include "output.h"
#include "bounded.h"
#include "history.h"
#include "bounds.h"
#include "probes.h"
#include "steps.h"
#include "bounded_ack.h"
#include "bbr.h"
#include "gains_run.h"

char LICENSE[] SEC("license") = "GPL";
