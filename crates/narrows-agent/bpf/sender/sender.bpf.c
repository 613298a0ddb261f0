// SPDX-License-Identifier: GPL-2.0-only
/*
 * With these programs, a sender on a stock kernel asks for rates and applies them. They are one object, so
 * that they share one map of connections.
 *
 * The files:
 *
 * - announce.h: decides which connections apply rates
 * - feedback.h: cgroup sock_ops: asks for feedback in SYNs and SYN-ACKs, and reads rates from ACKs
 * - takeover.h: iterator: prepares listeners that are older than the program, and takes over connections of
 *   an earlier sender
 * - brf.h: struct_ops: the congestion control
 * - rate.h: the rate in force, for brf.h
 * - cubic.h: CUBIC for connections without a rate, for brf.h
 * - cap.h: caps the rate of the kernel's own congestion control, instead of brf.h
 * - designate.h: the reports of designated packets, for feedback.h
 * - depart.h: egress of the cgroup: departure times of the first segments
 * - mark.h: tcx egress: states whether the application limits the flow
 * - padding.h: tcx ingress: the paper's wire format
 */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/*
 * Constants from <linux/tcp.h>, <linux/in.h> and <asm/socket.h>, which conflict with the kernel's own
 * structures.
 */
#define IPPROTO_TCP		6
#define TCP_CONGESTION		13
#define SOL_SOCKET		1
#define SO_MAX_PACING_RATE	47

#include "kernel_tcp.h"
#include "option.h"
#include "scope.h"
#include "wire.h"

#include "conn.h"
#include "cap.h"
#include "announce.h"
#include "feedback.h"
#include "takeover.h"
#include "rate.h"
#include "cubic.h"
#include "brf.h"
#include "depart.h"
#include "segment.h"
#include "mark.h"
#include "padding.h"

char LICENSE[] SEC("license") = "GPL";
