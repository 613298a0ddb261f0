//! Decides whether a run can be trusted, and records the limits that the run reached.

use serde::Serialize;

use crate::relay::RelayReport;
use crate::sample::ProcessorReport;
use crate::spec::Spec;
use crate::track::FlowTrack;

/// The verdict on a run, and the measurements on which it is based.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Soundness {
    /// Whether the run can be trusted, which is true if `reasons` is empty.
    pub sound: bool,
    /// Reasons not to trust the run, one line for each.
    pub reasons: Vec<String>,
    /// Further information that does not affect the verdict.
    pub notes: Vec<String>,
    /// Value of CLOCK_MONOTONIC at the start of the run, in nanoseconds.
    pub start_ns: u64,
    pub(crate) processors: ProcessorReport,
    pub(crate) relay_cpu: f64,
    pub(crate) relays: Vec<RelaySoundness>,
    pub(crate) flows: Vec<FlowSoundness>,
}

/// Measurements of a relayed link.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RelaySoundness {
    link: u32,
    name: String,
    /// Number of frames that the relay forwarded, and numbers of frames that the link model lost and duplicated.
    frames: u64,
    lost: u64,
    duplicated: u64,
    super_packets: u64,
    kernel_drops: u64,
    overflow: u64,
    refused: u64,
    late_p50_s: f64,
    late_p99_s: f64,
    late_max_s: f64,
}

/// Measurements of a flow: the shares of its busy time in which the receive window and the send buffer limited the
/// flow.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FlowSoundness {
    flow: u32,
    name: String,
    rwnd_limited: f64,
    sndbuf_limited: f64,
}

impl Soundness {
    /// Computes the verdict on a run from its measurements.
    pub(crate) fn judge(
        spec: &Spec,
        start_ns: u64,
        processors: ProcessorReport,
        relay: Option<&RelayReport>,
        flows: &[FlowTrack],
        reasons: Vec<String>,
    ) -> Self {
        let mut s = Soundness { reasons, start_ns, ..Soundness::default() };
        s.judge_relay(spec, relay);
        s.judge_flows(spec, flows);
        s.judge_processors(spec, &processors);
        s.processors = processors;
        s.sound = s.reasons.is_empty();
        s
    }

    fn judge_relay(&mut self, spec: &Spec, relay: Option<&RelayReport>) {
        let Some(relay) = relay else { return };
        self.relay_cpu = relay.cpu;
        if let Err(why) = &relay.priority {
            self.notes.push(format!("the relay has no real-time priority: {why}"));
        }
        let bound = spec.bounds.lateness.as_secs_f64();
        for l in &relay.links {
            let name = spec.plan.links[l.link as usize].name.clone();
            let mut count = |n: u64, what: &str| {
                if n > 0 {
                    self.reasons.push(format!("link {name}: {n} frames {what}"));
                }
            };
            count(l.kernel_drops, "dropped by the kernel before the relay");
            count(l.overflow, "dropped, because the relay's memory is full (bounds.relay_bytes)");
            count(l.refused, "refused by the device after the relay");
            if l.decides_per_packet {
                count(
                    l.stats.super_packets,
                    "were super-packets and counted as one packet each; turn tso, gso and gro off before the link",
                );
            }
            let [p50, p99, max] = l.late;
            if p99 > bound {
                let ms = |s: f64| format!("{:.3} ms", s * 1e3);
                self.reasons.push(format!(
                    "link {name}: the relay sent 1 % of the frames at least {} late (limit: {})",
                    ms(p99),
                    ms(bound)
                ));
            }
            self.relays.push(RelaySoundness {
                link: l.link,
                name,
                frames: l.sent,
                lost: l.stats.lost,
                duplicated: l.stats.duplicated,
                super_packets: l.stats.super_packets,
                kernel_drops: l.kernel_drops,
                overflow: l.overflow,
                refused: l.refused,
                late_p50_s: p50,
                late_p99_s: p99,
                late_max_s: max,
            });
        }
    }

    fn judge_flows(&mut self, spec: &Spec, flows: &[FlowTrack]) {
        let mut failed = 0;
        for flow in flows {
            let name = crate::endpoint::name(&spec.plan, &flow.member);
            if let Some(why) = flow.failure() {
                failed += 1;
                // A source may have thousands of flows, so only the first failures are listed.
                if failed <= 5 {
                    self.reasons.push(format!("flow {name}: {why}"));
                }
            }
            self.notes.extend(flow.notes().into_iter().map(|note| format!("flow {name}: {note}")));
            let Some(info) = flow.info().filter(|i| i.busy_us > 0 && flow.is_sampled) else { continue };
            let share = |us: u64| us as f64 / info.busy_us as f64;
            let window = spec.plan.flows[flow.member.plan as usize].limits_window();
            // With `receive_memory`, the simulator's receivers have the same receive windows as the kernel's receivers.
            // A flow that the receive window limits is therefore no reason to distrust the run.
            let (limited, by) = if spec.plan.receive_memory {
                (share(info.sndbuf_limited_us), "by the send buffer; set a larger receive_buffer")
            } else {
                let by = "by the receive window or the send buffer; set a larger receive_buffer, or \
                          \"auto\" if this limit is intended";
                (info.limited_share(), by)
            };
            if limited > spec.bounds.limited && !window {
                self.reasons
                    .push(format!("flow {name}: limited for {:.0} % of the time {by}", limited * 100.0));
            }
            self.flows.push(FlowSoundness {
                flow: flow.id,
                name,
                rwnd_limited: share(info.rwnd_limited_us),
                sndbuf_limited: share(info.sndbuf_limited_us),
            });
        }
        if failed > 5 {
            self.reasons.push(format!("{} more flows failed", failed - 5));
        }
    }

    fn judge_processors(&mut self, spec: &Spec, p: &ProcessorReport) {
        if p.busy_mean > spec.bounds.busy {
            self.reasons.push(format!(
                "the processors were {:.0} % busy (limit: {:.0} %)",
                p.busy_mean * 100.0,
                spec.bounds.busy * 100.0
            ));
        }
        if p.busy_max > spec.bounds.busiest {
            self.reasons.push(format!(
                "the processors were {:.0} % busy in a second (limit: {:.0} %): they were the bottleneck",
                p.busy_max * 100.0,
                spec.bounds.busiest * 100.0
            ));
        }
        if p.softnet_drops > 0 {
            self.reasons.push(format!(
                "the kernel dropped {} packets at a processor's backlog; raise net.core.netdev_max_backlog",
                p.softnet_drops
            ));
        }
    }
}

/// Adds a method to the plan of a flow. The method returns whether this plan limits the flow's window.
trait LimitsWindow {
    fn limits_window(&self) -> bool;
}

impl LimitsWindow for narrows_sim::plan::FlowPlan {
    fn limits_window(&self) -> bool {
        matches!(self.transport, narrows_sim::plan::TransportPlan::Tcp { receive_window: Some(_), .. })
    }
}
