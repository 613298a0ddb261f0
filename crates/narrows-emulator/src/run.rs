//! Runs a spec. First, the calling thread opens all resources. Afterwards, other threads forward packets and run flows,
//! and the calling thread takes samples.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use narrows_control::units::{Rate, Span, Time};
use narrows_sim::model::{EmptyPath, Recorder};
use narrows_sim::plan::{AppPlan, TransportPlan};

use crate::clock::{Clock, monotonic};
use crate::endpoint::{FlowBoard, Host, Registry, members};
use crate::error::Error;
use crate::netns;
use crate::outcome::Outcome;
use crate::relay::{Relay, RelayReport};
use crate::sample::{Diag, EbpfMaps, Processors, Queue};
use crate::spec::{QueueRole, Spec};
use crate::track::{External, FlowTrack, LinkTrack, Probe, Program, Rows};
use crate::watch::Watch;

/// Maximum number of flows that are sampled, as in the simulator.
const SAMPLED_FLOWS: usize = 1_000;

/// Time from the end of the setup to the start of the run, if the caller does not set the start.
const HEAD_START_NANOS: u64 = 20_000_000;

/// Runs a spec. Blocks until the end of the run, or until `cancel` is set.
///
/// # Errors
/// If the spec is invalid, or if the kernel refuses an operation. [`Error::Cancelled`] if `cancel` was set.
pub fn emulate(spec: &Spec, cancel: &AtomicBool) -> Result<Outcome, Error> {
    spec.check()?;
    let relay = if spec.relays.is_empty() { None } else { Some(Relay::open(spec)?) };
    let boards = relay.as_ref().map(Relay::boards).unwrap_or_default();
    let mut links = Vec::new();
    for (i, plan) in spec.plan.links.iter().enumerate() {
        let opened = |role: QueueRole| {
            let chosen = spec.queues.iter().filter(|q| q.link as usize == i && q.role == role);
            chosen.map(Queue::open).collect::<Result<Vec<Queue>, Error>>()
        };
        let queues = (opened(QueueRole::Queue)?, opened(QueueRole::Loss)?);
        links.push(LinkTrack::new(i as u32, plan, queues, boards.get(&(i as u32)).cloned()));
    }
    let stage = Stage::build(spec)?;
    let zero = spec.start.map_or_else(|| monotonic() + HEAD_START_NANOS, Time::as_nanos);
    let clock = Clock { zero };
    let mut reasons = stage.reasons;
    if monotonic() > zero {
        let late = (monotonic() - zero) as f64 / 1e9;
        reasons.push(format!("the run started {late:.3} s late"));
    }

    let end = Time::ZERO + spec.plan.duration;
    let stop = AtomicBool::new(false);
    let mut watch = Watch {
        spec,
        clock,
        flows: stage.flows,
        links,
        diags: stage.diags,
        processors: Processors::new(),
        recorder: Recorder::new(),
        peak: 0,
    };
    let relay_report = std::thread::scope(|scope| -> Result<Option<RelayReport>, Error> {
        let stop = &stop;
        let relay = relay.map(|r| scope.spawn(move || halting(stop, || r.run(clock, end, stop))));
        let hosts: Vec<_> = stage
            .hosts
            .into_values()
            .map(|host| {
                let netns = host.netns().clone();
                let run = move || netns::inside(&netns, || host.run(clock, end, stop));
                scope.spawn(move || halting(stop, run))
            })
            .collect();
        let watched = watch.run(end, cancel, stop);
        stop.store(true, Ordering::Relaxed);
        for host in hosts {
            host.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        let report = relay.map(|r| r.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        let report = report.transpose()?;
        watched.map(|()| report)
    })?;
    Ok(watch.finish(relay_report, reasons))
}

/// Stops the other threads if `task` fails.
fn halting<T>(stop: &AtomicBool, task: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let outcome = task();
    if outcome.is_err() {
        stop.store(true, Ordering::Relaxed);
    }
    outcome
}

/// Hosts, flows and their resources.
struct Stage {
    hosts: BTreeMap<PathBuf, Host>,
    flows: Vec<FlowTrack>,
    diags: BTreeMap<PathBuf, Diag>,
    /// Reasons not to trust the run.
    reasons: Vec<String>,
}

impl Stage {
    fn build(spec: &Spec) -> Result<Self, Error> {
        let plan = &spec.plan;
        // A spec may have only relays and no flows. Such a spec needs no paths.
        let empty = if spec.flows.is_empty() { Vec::new() } else { EmptyPath::of_flows(plan)? };
        let registry = Arc::new(Registry::default());
        let mut stage =
            Stage { hosts: BTreeMap::new(), flows: Vec::new(), diags: BTreeMap::new(), reasons: Vec::new() };
        for (s, flow_spec) in spec.flows.iter().enumerate() {
            let flow = &plan.flows[flow_spec.flow as usize];
            let [from, to] = [flow.from, flow.to].map(|n| &spec.namespaces[&plan.nodes[n as usize]]);
            if flow_spec.external || matches!(flow.transport, TransportPlan::Program(_)) {
                for netns in [from, to] {
                    if !stage.diags.contains_key(netns) {
                        stage.diags.insert(netns.clone(), Diag::open(netns, plan.probes.traces)?);
                    }
                }
                continue;
            }
            for netns in [from, to] {
                if !stage.hosts.contains_key(netns) {
                    stage.hosts.insert(netns.clone(), Host::new(netns.clone(), registry.clone())?);
                }
                if let Some(host) = stage.hosts.get_mut(netns) {
                    host.add_flow(s, flow_spec, flow, empty[flow_spec.flow as usize]);
                }
            }
            if let Some(host) = stage.hosts.get_mut(to) {
                host.receive(s)?;
            }
            if !plan.receive_memory {
                stage.reasons.extend(window_warning(to, empty[flow_spec.flow as usize])?);
            }
        }
        stage.reasons.sort();
        stage.reasons.dedup();
        let maps = if plan.probes.traces { ebpf_maps(spec)? } else { BTreeMap::new() };
        for (id, member) in members(spec)?.into_iter().enumerate() {
            let flow_spec = &spec.flows[member.spec];
            let flow = &plan.flows[member.plan as usize];
            let [from, to] = [flow.from, flow.to].map(|n| &spec.namespaces[&plan.nodes[n as usize]]);
            let probe = if let TransportPlan::Program(program) = &flow.transport {
                Probe::Program(Box::new(Program::open(flow_spec, program, from, to)?))
            } else if flow_spec.external {
                Probe::External(Box::new(External::new(flow_spec, from, to)))
            } else {
                let board = Arc::new(FlowBoard::default());
                if let Some(host) = stage.hosts.get_mut(from) {
                    host.schedule(member.clone(), board.clone());
                }
                Probe::Own(board)
            };
            let poisson = matches!(flow.app, AppPlan::Poisson { .. });
            let is_sampled = plan.probes.flows && !poisson && id < SAMPLED_FLOWS;
            let path = empty[member.plan as usize];
            let maps = flow_spec.congestion.as_ref().and_then(|name| maps.get(name)).cloned();
            let rows = Rows { is_sampled, is_traced: plan.probes.traces, maps };
            stage.flows.push(FlowTrack::new(id as u32, member, probe, rows, path, flow_spec));
        }
        Ok(stage)
    }
}

/// Opens the maps of all controllers in eBPF.
fn ebpf_maps(spec: &Spec) -> Result<BTreeMap<String, Arc<EbpfMaps>>, Error> {
    spec.controllers.iter().map(|c| Ok((c.name.clone(), Arc::new(EbpfMaps::open(c)?)))).collect()
}

/// Returns a warning if a receiver's largest receive window is too small to fill the path and its queue.
fn window_warning(netns: &Path, path: EmptyPath) -> Result<Option<String>, Error> {
    if path.bottleneck == Rate::MAX {
        return Ok(None);
    }
    let largest = netns::inside(netns, || Ok(netns::sysctl_last("net/ipv4/tcp_rmem")))?;
    // Linux offers half of the buffer as the receive window, and a full queue may double the path's RTT. The buffer
    // therefore needs four times the data of one RTT.
    let needed = path.bottleneck.bytes_in(path.rtt + Span::from_millis(1)).get().saturating_mul(4);
    Ok(largest.filter(|&l| l < needed).map(|l| {
        format!("{}: net.ipv4.tcp_rmem is {l} bytes, but the path needs {needed}; raise it", netns.display())
    }))
}
