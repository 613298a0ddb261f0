//! Models a link of the plan. The model itself uses no clock and no sockets. The input is a packet and its time. The
//! output says whether the packet arrives, and when. The link model, impairments and random streams are the same as in
//! the simulator (`narrows-sim`, `net`).

use std::collections::VecDeque;

use narrows_control::units::{Bytes, Span, Time};
use narrows_sim::model::{Histogram, Impairments, Service, step_at};
use narrows_sim::plan::{LimitPlan, LinkPlan, MarkPlan, QueuePlan};

use crate::error::Error;
use crate::spec::RelayModel;

/// Limit of the backlog that a packet finds on the wire, as a multiple of the packet's own transmission time. The
/// backlog is small, because the token buckets are small (`burst` in `backends/kernel/queues.py`).
const MOST_WAITING_PACKETS: u64 = 2;

/// Counters of a link since the start of the run.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinkStats {
    /// Number of packets offered to the queue, and number of packets that the queue dropped.
    pub(crate) offered: u64,
    pub(crate) dropped: u64,
    /// L3 bytes that the queue has accepted. This number minus the backlog is the number of bytes whose transmission
    /// has begun.
    pub(crate) accepted_bytes: u64,
    /// Number of packets that were lost at random after the queue, and number of packets that were duplicated after the
    /// queue.
    pub(crate) lost: u64,
    pub(crate) duplicated: u64,
    /// Number of super-packets, which are frames that contain several packets.
    pub(crate) super_packets: u64,
}

/// The fate of a packet that reaches the link.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The packet arrives.
    Arrives {
        /// Time of arrival.
        at: Time,
        /// Whether a copy arrives directly after the packet.
        is_duplicated: bool,
    },
    /// The packet is lost after the queue.
    Lost,
    /// The queue drops the packet.
    Dropped,
}

/// A link.
pub(crate) struct Link {
    delay: Vec<(Time, Span)>,
    impair: Option<Box<Impairments>>,
    server: Option<Server>,
    /// The wire after a queue that the kernel implements.
    wire: Option<Wire>,
    pub(crate) stats: LinkStats,
}

/// The wire of a link whose rate and queue are in the kernel. A token bucket sends a packet at the start of its
/// transmission time, and may send several packets at once. A real link delivers packets one after the other, each at
/// the end of its transmission time.
struct Wire {
    service: Service,
    free_at: Time,
}

/// The rate and queue of a link that the relay models completely. As in the simulator, a packet's departure time is
/// known when the packet arrives.
struct Server {
    service: Service,
    limit: LimitPlan,
    free_at: Time,
    /// For each packet that waits, the start of its transmission and its size.
    waiting: VecDeque<(Time, u32)>,
    bytes: u64,
    sojourn: Option<Box<Histogram>>,
    sojourn_sum: u128,
    sojourn_count: u64,
    measure_from: Time,
}

impl Link {
    /// Returns the model of the link with this index in a checked plan.
    ///
    /// # Errors
    /// If the relay does not support the queue.
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
                let what = format!("link {}: queue of a link with relay model \"rate\"", plan.name);
                return Err(Error::invalid(what, found, "a FIFO without marking"));
            }
        };
        let impair = Impairments::new(plan, seed, index as u64);
        let wire = server.is_none().then(|| Wire { service: Service::new(&plan.rate), free_at: Time::ZERO });
        Ok(Link { delay: plan.delay.clone(), impair, server, wire, stats: LinkStats::default() })
    }

    /// Returns whether a packet that enters the link at `now` may overtake another packet.
    pub(crate) fn can_reorder(&self, now: Time) -> bool {
        self.impair.as_ref().is_some_and(|i| i.can_reorder(now))
    }

    /// Returns whether the model decides about each packet separately. Such a model would wrongly count a super-packet
    /// as one packet.
    pub(crate) fn decides_per_packet(&self) -> bool {
        self.impair.is_some() || self.server.is_some()
    }

    /// Decides what happens to a packet that reaches the link. `now` must not decrease from call to call.
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
        let fate =
            self.impair.as_mut().map(|i| i.draw_fate(finish, Bytes::new(bytes.into()))).unwrap_or_default();
        if fate.is_lost {
            self.stats.lost += 1;
            return Fate::Lost;
        }
        self.stats.duplicated += fate.is_duplicated as u64;
        Fate::Arrives {
            at: finish + step_at(&self.delay, finish) + fate.extra_delay,
            is_duplicated: fate.is_duplicated,
        }
    }

    /// Returns the arrival time of a frame that is only delayed.
    pub(crate) fn delayed(&self, now: Time) -> Time {
        now + step_at(&self.delay, now)
    }

    /// Returns the numbers of waiting packets and bytes.
    pub(crate) fn backlog(&mut self, now: Time) -> (u64, u64) {
        self.server.as_mut().map_or((0, 0), |s| {
            s.expire(now);
            (s.waiting.len() as u64, s.bytes)
        })
    }

    /// Returns the histogram of the sojourn times in the measurement interval, and the mean of these times in seconds.
    pub(crate) fn sojourn(&self) -> Option<(&Histogram, f64)> {
        let server = self.server.as_ref()?;
        let mean = server.sojourn_sum as f64 / server.sojourn_count as f64 / 1e9;
        Some((server.sojourn.as_deref()?, mean))
    }
}

impl Wire {
    /// Returns the time at which the packet has left the wire. Bursts of the token bucket cause a backlog on the wire.
    /// The backlog that a packet finds is limited to [`MOST_WAITING_PACKETS`] packets of its own size. Without this
    /// limit, the backlog would never shrink, because the bucket and the wire send at the same rate.
    fn carry(&mut self, now: Time, bytes: u32) -> Time {
        let (start, finish) = self.service.serve(now, bytes);
        let own = finish.since(start);
        self.free_at = now.max(self.free_at).min(now + own.scale(MOST_WAITING_PACKETS, 1)) + own;
        self.free_at
    }
}

impl Server {
    /// Returns the time at which the packet's transmission ends, or `None` if the packet does not fit into the queue.
    fn accept(&mut self, now: Time, bytes: u32) -> Option<Time> {
        self.expire(now);
        let is_full = self.limit.packets.is_some_and(|l| self.waiting.len() as u64 >= l as u64)
            || self.limit.bytes.is_some_and(|l| self.bytes + bytes as u64 > l.get());
        if is_full {
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

    /// Removes the packets whose transmission has started.
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
