//! A link of the plan as a pure function of time: a packet in, its fate out. The same link, impairment and random streams
//! as in the simulator (`narrows-sim`, `net`).

use std::collections::VecDeque;

use narrows_control::units::{Span, Time};
use narrows_sim::model::{Histogram, Impairments, Service, step_at};
use narrows_sim::plan::{LimitPlan, LinkPlan, MarkPlan, QueuePlan};

use crate::error::Error;
use crate::spec::RelayModel;

/// Packets of a token bucket that may go at once (`backends/kernel/queues.py`), less the first.
const MOST_WAITING: u64 = 2;

/// Counters of a link since the start of the run.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinkStats {
    /// Packets offered, and those that the queue dropped.
    pub(crate) offered: u64,
    pub(crate) dropped: u64,
    /// L3 bytes accepted: less the backlog, what has begun to leave.
    pub(crate) accepted_bytes: u64,
    /// Lost at random, and sent twice, behind the queue.
    pub(crate) lost: u64,
    pub(crate) duplicated: u64,
    /// Packets that stood for several.
    pub(crate) super_packets: u64,
}

/// What becomes of a packet.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It arrives.
    Arrives {
        /// When.
        at: Time,
        /// And a copy right behind it.
        twice: bool,
    },
    /// Lost behind the queue.
    Lost,
    /// Dropped by the queue.
    Dropped,
}

/// A link.
pub(crate) struct Link {
    delay: Vec<(Time, Span)>,
    impair: Option<Box<Impairments>>,
    server: Option<Server>,
    /// Behind a queue of the kernel's.
    wire: Option<Wire>,
    pub(crate) stats: LinkStats,
}

/// What is left of a link whose rate and queue are the kernel's. A token bucket lets a packet go when its turn begins, a link
/// when it is through, and the bucket's packets go at once, a link's one after the other.
struct Wire {
    service: Service,
    free_at: Time,
}

/// The rate and queue of a link that is wholly ours. As in the simulator, a packet's departure is known when it arrives.
struct Server {
    service: Service,
    limit: LimitPlan,
    free_at: Time,
    /// Start of transmission and size of the packets that wait.
    waiting: VecDeque<(Time, u32)>,
    bytes: u64,
    sojourn: Option<Box<Histogram>>,
    sojourn_sum: u128,
    sojourn_count: u64,
    measure_from: Time,
}

impl Link {
    /// Link number `index` of a checked plan.
    ///
    /// # Errors
    /// A queue that the relay does not have.
    pub(crate) fn new(
        plan: &LinkPlan,
        seed: u64,
        index: u32,
        model: RelayModel,
        measure_from: Time,
    ) -> Result<Self, Error> {
        let server = match (model, &plan.queue) {
            (RelayModel::Delay, _) => None,
            (RelayModel::Rate, QueuePlan::Fifo { limit, mark: MarkPlan::None }) => Some(Server {
                service: Service::new(&plan.rate),
                limit: *limit,
                free_at: Time::ZERO,
                waiting: VecDeque::new(),
                bytes: 0,
                sojourn: Histogram::new(),
                sojourn_sum: 0,
                sojourn_count: 0,
                measure_from,
            }),
            (RelayModel::Rate, other) => {
                let found = match other {
                    QueuePlan::Fifo { .. } => "a FIFO with marking",
                    QueuePlan::Codel { .. } => "codel",
                    QueuePlan::FqCodel { .. } => "fq-codel",
                    QueuePlan::Priority { .. } => "priority",
                    QueuePlan::Htb { .. } => "htb",
                };
                let what = format!("link {}: queue of a link whose rate the relay has", plan.name);
                return Err(Error::invalid(what, found, "a FIFO without marking"));
            }
        };
        let impair = Impairments::new(plan, seed, index as u64);
        let wire = server.is_none().then(|| Wire { service: Service::new(&plan.rate), free_at: Time::ZERO });
        Ok(Link { delay: plan.delay.clone(), impair, server, wire, stats: LinkStats::default() })
    }

    /// Packets may overtake each other.
    pub(crate) fn reorders(&self) -> bool {
        self.impair.as_ref().is_some_and(|i| i.can_reorder())
    }

    /// It decides packet by packet, so that a packet that stands for several is judged as one.
    pub(crate) fn judges_packets(&self) -> bool {
        self.impair.is_some() || self.server.is_some()
    }

    /// A packet reaches the link. Calls must come with times that do not go back.
    pub(crate) fn offer(&mut self, now: Time, bytes: u32) -> Fate {
        self.stats.offered += 1;
        let finish = match &mut self.server {
            None => self.wire.as_mut().map_or(now, |wire| wire.carry(now, bytes)),
            Some(server) => match server.accept(now, bytes) {
                Some(finish) => finish,
                None => {
                    self.stats.dropped += 1;
                    return Fate::Dropped;
                }
            },
        };
        self.stats.accepted_bytes += bytes as u64;
        let fate = self.impair.as_mut().map(|i| i.draw_fate(finish)).unwrap_or_default();
        if fate.is_lost {
            self.stats.lost += 1;
            return Fate::Lost;
        }
        self.stats.duplicated += fate.is_duplicated as u64;
        Fate::Arrives {
            at: finish + step_at(&self.delay, finish) + fate.extra_delay,
            twice: fate.is_duplicated,
        }
    }

    /// When something arrives that is only delayed.
    pub(crate) fn pass(&self, now: Time) -> Time {
        now + step_at(&self.delay, now)
    }

    /// Packets and bytes that wait.
    pub(crate) fn backlog(&mut self, now: Time) -> (u64, u64) {
        self.server.as_mut().map_or((0, 0), |s| {
            s.expire(now);
            (s.waiting.len() as u64, s.bytes)
        })
    }

    /// Time in the queue of each packet in the measurement interval: quantiles, and the mean in seconds.
    pub(crate) fn sojourn(&self) -> Option<(&Histogram, f64)> {
        let server = self.server.as_ref()?;
        let mean = server.sojourn_sum as f64 / server.sojourn_count as f64 / 1e9;
        Some((server.sojourn.as_deref()?, mean))
    }
}

impl Wire {
    /// When the packet is through. It waits for a bucket's worth of packets before it, and no longer: of two servers of
    /// one rate in a row the second would keep for ever what the first is too fast.
    fn carry(&mut self, now: Time, bytes: u32) -> Time {
        let (start, finish) = self.service.serve(now, bytes);
        let own = finish.since(start);
        self.free_at = now.max(self.free_at).min(now + own.scale(MOST_WAITING, 1)) + own;
        self.free_at
    }
}

impl Server {
    /// When the packet will have left; `None` if it does not fit.
    fn accept(&mut self, now: Time, bytes: u32) -> Option<Time> {
        self.expire(now);
        let full = self.limit.packets.is_some_and(|l| self.waiting.len() as u64 >= l as u64)
            || self.limit.bytes.is_some_and(|l| self.bytes + bytes as u64 > l.get());
        if full {
            return None;
        }
        let (start, finish) = self.service.serve(now.max(self.free_at), bytes);
        self.free_at = finish;
        if start > now {
            self.waiting.push_back((start, bytes));
            self.bytes += bytes as u64;
        }
        if now >= self.measure_from && start != Time::NEVER {
            let waited = start.since(now).as_nanos();
            self.sojourn_sum += waited as u128;
            self.sojourn_count += 1;
            if let Some(h) = &mut self.sojourn {
                h.record(waited);
            }
        }
        Some(finish)
    }

    /// Forgets the packets whose transmission has started.
    fn expire(&mut self, now: Time) {
        while let Some(&(start, bytes)) = self.waiting.front() {
            if start > now {
                break;
            }
            self.bytes -= bytes as u64;
            self.waiting.pop_front();
        }
    }
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod tests;
