//! The sampler, which takes samples during a run, and writes the tables at the end of the run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use narrows_control::units::{Span, Time};
use narrows_sim::Counts;
use narrows_sim::model::Recorder;

use crate::clock::Clock;
use crate::error::Error;
use crate::outcome::Outcome;
use crate::relay::RelayReport;
use crate::sample::{Diag, Processors};
use crate::sound::Soundness;
use crate::spec::Spec;
use crate::track::{FlowTrack, LinkTrack};

const SECOND: Span = Span::from_secs(1);

/// Flows of Poisson sources have no rows of samples, so they are read only at every tenth sample.
const UNSAMPLED_DIVISOR: u64 = 10;

/// The sampler.
pub(crate) struct Watch<'s> {
    pub(crate) spec: &'s Spec,
    pub(crate) clock: Clock,
    pub(crate) flows: Vec<FlowTrack>,
    pub(crate) links: Vec<LinkTrack>,
    pub(crate) diags: BTreeMap<PathBuf, Diag>,
    pub(crate) processors: Processors,
    pub(crate) recorder: Recorder,
    pub(crate) peak: usize,
}

/// A point of the run at which the sampler records counters once.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    Warmup,
    Stop(usize),
}

impl Watch<'_> {
    /// Samples until `end`.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if `cancel` was set.
    pub(crate) fn run(&mut self, end: Time, cancel: &AtomicBool, stop: &AtomicBool) -> Result<(), Error> {
        let plan = &self.spec.plan;
        let warmup = Time::ZERO + plan.warmup;
        let mut marks = vec![(warmup, Mark::Warmup)];
        marks.extend(
            self.flows.iter().enumerate().map(|(i, f)| (f.member.stop, Mark::Stop(i))).filter(|m| m.0 < end),
        );
        marks.sort_unstable();
        let mut marks = marks.into_iter().peekable();
        let tick = self.spec.sample_interval;
        let row = if plan.probes.interval == Span::ZERO { Span::MAX } else { plan.probes.interval };
        let (mut next_tick, mut ticks) = (Time::ZERO + tick, 0u64);
        let mut next_row = Time::ZERO + row;
        let mut next_second = Time::ZERO + SECOND;
        let mut last_row = Time::ZERO;
        let mut begun = false;
        // `clock.now()` is zero until the run starts.
        while !begun || self.clock.now() < end {
            if cancel.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            if !begun {
                let now = crate::clock::monotonic();
                if now < self.clock.zero {
                    let left = (self.clock.zero - now).min(50_000_000);
                    std::thread::sleep(std::time::Duration::from_nanos(left));
                    continue;
                }
                begun = true;
                self.links.iter_mut().for_each(LinkTrack::begin);
                self.processors = Processors::new();
            }
            let now = self.clock.now();
            let mut sampled = false;
            while let Some(&(_, mark)) = marks.peek().filter(|m| m.0 <= now) {
                marks.next();
                match mark {
                    Mark::Warmup => {
                        self.sample(now, true, false);
                        sampled = true;
                        self.flows.iter_mut().for_each(FlowTrack::mark_warmup);
                        self.links.iter_mut().for_each(LinkTrack::mark_warmup);
                    }
                    Mark::Stop(i) => {
                        if let Some(flow) = self.flows.get_mut(i) {
                            flow.update((self.clock, now), false, &mut self.diags);
                            flow.mark_stop();
                        }
                    }
                }
            }
            if next_tick <= now && !sampled {
                ticks += 1;
                self.sample(now, ticks.is_multiple_of(UNSAMPLED_DIVISOR), now >= warmup);
                sampled = true;
            }
            while next_tick <= now {
                next_tick += tick;
            }
            if next_row <= now {
                if !sampled {
                    self.sample(now, false, false);
                }
                // A late row covers the time since the previous row. The recorded time is the time at which the row was
                // due.
                let at = next_row;
                while next_row <= now {
                    next_row += row;
                }
                self.rows(last_row, at, now);
                last_row = now;
            }
            if next_second <= now {
                self.processors.sample();
                next_second += SECOND;
            }
            let mark = marks.peek().map_or(Time::NEVER, |m| m.0);
            let next = next_tick.min(next_row).min(next_second).min(mark).min(end);
            self.clock.nap(next);
        }
        self.sample(end, true, false);
        if next_row <= end {
            self.rows(last_row, next_row, end);
        }
        Ok(())
    }

    /// Samples the links, and the active flows that have `is_sampled` set. If `all` is set, samples all active flows.
    fn sample(&mut self, now: Time, all: bool, measure: bool) {
        let mut active = 0;
        for flow in self.flows.iter_mut().filter(|f| f.is_active(now)) {
            active += 1;
            if all || flow.is_sampled {
                flow.update((self.clock, now), measure, &mut self.diags);
            }
        }
        self.peak = self.peak.max(active);
        for link in &mut self.links {
            link.update(measure);
        }
    }

    /// Writes the rows of an interval that was due to end at the time `at`, but ended at the time `now`.
    fn rows(&mut self, last: Time, at: Time, now: Time) {
        let plan = &self.spec.plan;
        let seconds = now.since(last).as_secs_f64().max(1e-9);
        for &link in &plan.probes.links {
            if let Some(link) = self.links.get_mut(link as usize) {
                link.sample(last, at.max(last + Span::from_nanos(1)), seconds, &mut self.recorder);
            }
        }
        for flow in self.flows.iter_mut().filter(|f| f.is_sampled && f.is_active(now)) {
            flow.sample(at, seconds, plan, &mut self.recorder);
        }
    }

    /// Returns the tables, the counts, and whether the run was sound.
    pub(crate) fn finish(mut self, relay: Option<RelayReport>, mut reasons: Vec<String>) -> Outcome {
        let (plan, end) = (&self.spec.plan, Time::ZERO + self.spec.plan.duration);
        let mut counts = Counts { peak_flows: self.peak as u64, ..Counts::default() };
        for flow in &mut self.flows {
            // The threads of the hosts have ended, so this update also records flows that ended after the last sample.
            flow.update((self.clock, end), false, &mut self.diags);
            flow.record(plan, &mut self.recorder);
            let (sent, retransmits) = flow.packets();
            counts.delivered_packets += sent.saturating_sub(retransmits);
        }
        let reports = relay.as_ref().map(|r| r.links.as_slice()).unwrap_or_default();
        for (i, link) in self.links.iter().enumerate() {
            let report = reports.iter().find(|r| r.link as usize == i);
            link.record(plan, report, &mut self.recorder);
            counts.packet_hops += link.departed_packets();
            reasons.extend(link.failure.clone());
        }
        counts.events = reports.iter().map(|r| r.sent).sum();
        let processors = self.processors.report();
        let soundness =
            Soundness::judge(self.spec, self.clock.zero, processors, relay.as_ref(), &self.flows, reasons);
        Outcome { tables: self.recorder.into_tables(), counts, soundness }
    }
}
