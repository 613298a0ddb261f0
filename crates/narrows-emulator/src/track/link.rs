//! Records the measurements of a link over a run. The measurements come from the link's queue in the kernel and from
//! the link's relay. Some links have only one of these two sources, or none.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use narrows_control::units::Time;
use narrows_sim::model::{Cell, Recorder, Service};
use narrows_sim::plan::{LinkPlan, Plan};

use crate::relay::{LinkBoard, LinkReport};
use crate::sample::{Queue, QueueStats};

/// Counters of a link since the start of the run.
#[derive(Copy, Clone, Debug, Default)]
struct Counters {
    departed_bytes: u64,
    departed_packets: u64,
    dropped: u64,
    lost: u64,
    waiting_packets: u64,
    waiting_bytes: u64,
}

/// Returns the sum of the counters of several queues.
fn sum(queues: &mut [Queue], failure: &mut Option<String>) -> QueueStats {
    let mut sum = QueueStats::default();
    for queue in queues {
        match queue.read() {
            Ok(stats) => sum.add(stats),
            Err(e) => *failure = Some(format!("queue {}: {e}", queue.name)),
        }
    }
    sum
}

/// A link and its measurements.
pub(crate) struct LinkTrack {
    index: u32,
    service: Service,
    queues: Vec<Queue>,
    losses: Vec<Queue>,
    board: Option<Arc<LinkBoard>>,
    /// Counters of the queues before the run.
    base: QueueStats,
    base_lost: u64,
    now: Counters,
    at_warmup: Counters,
    last: Counters,
    backlog_sum: f64,
    backlog_count: u64,
    /// The error, if a queue could not be read.
    pub(crate) failure: Option<String>,
}

impl LinkTrack {
    pub(crate) fn new(
        index: u32,
        plan: &LinkPlan,
        (queues, losses): (Vec<Queue>, Vec<Queue>),
        board: Option<Arc<LinkBoard>>,
    ) -> Self {
        LinkTrack {
            index,
            service: Service::new(&plan.rate),
            queues,
            losses,
            board,
            base: QueueStats::default(),
            base_lost: 0,
            now: Counters::default(),
            at_warmup: Counters::default(),
            last: Counters::default(),
            backlog_sum: 0.0,
            backlog_count: 0,
            failure: None,
        }
    }

    fn is_measured(&self) -> bool {
        !self.queues.is_empty() || self.board.is_some()
    }

    fn queue_stats(&mut self) -> QueueStats {
        sum(&mut self.queues, &mut self.failure)
    }

    fn lost(&mut self) -> u64 {
        sum(&mut self.losses, &mut self.failure).drops
    }

    /// Records the counters at the start of the run.
    pub(crate) fn begin(&mut self) {
        self.base = self.queue_stats();
        self.base_lost = self.lost();
    }

    /// Samples queue and relay. If `measure` is set, the backlog is recorded.
    pub(crate) fn update(&mut self, measure: bool) {
        let mut now = Counters::default();
        if let Some(board) = &self.board {
            let get = |cell: &std::sync::atomic::AtomicU64| cell.load(Ordering::Relaxed);
            now = Counters {
                departed_bytes: get(&board.departed_bytes),
                departed_packets: get(&board.offered)
                    .saturating_sub(get(&board.dropped) + get(&board.queue_packets)),
                dropped: get(&board.dropped),
                lost: get(&board.lost),
                waiting_packets: get(&board.queue_packets),
                waiting_bytes: get(&board.queue_bytes),
            };
        }
        if !self.queues.is_empty() {
            let (q, base) = (self.queue_stats(), self.base);
            now.departed_bytes = q.bytes.saturating_sub(base.bytes);
            now.departed_packets = q.packets.saturating_sub(base.packets);
            now.dropped += q.drops.saturating_sub(base.drops);
            now.waiting_packets += q.waiting_packets;
            now.waiting_bytes += q.waiting_bytes;
        }
        now.lost += self.lost().saturating_sub(self.base_lost);
        self.now = now;
        if measure {
            self.backlog_sum += now.waiting_packets as f64;
            self.backlog_count += 1;
        }
    }

    /// Starts the measurement interval.
    pub(crate) fn mark_warmup(&mut self) {
        self.at_warmup = self.now;
    }

    /// Returns the number of packets that left the link's queue.
    pub(crate) fn departed_packets(&self) -> u64 {
        self.now.departed_packets
    }

    /// Adds a row for the interval that began at `from` and was due to end at `t`. Its actual length is `seconds`.
    pub(crate) fn sample(&mut self, from: Time, t: Time, seconds: f64, recorder: &mut Recorder) {
        let bytes = self.now.departed_bytes.saturating_sub(self.last.departed_bytes);
        let throughput = if self.is_measured() { bytes as f64 * 8.0 / seconds } else { f64::NAN };
        let capacity = self.service.capacity(from, t) * 8.0 / t.since(from).as_secs_f64();
        recorder.link_samples.push([
            Cell::F(t.as_secs_f64()),
            Cell::U(self.index as u64),
            Cell::F(throughput),
            Cell::F(capacity),
            Cell::U(self.now.waiting_packets),
            Cell::U(self.now.waiting_bytes),
            Cell::U(self.now.dropped),
            Cell::U(0),
            Cell::U(self.now.lost),
        ]);
        self.last = self.now;
    }

    /// Adds the row of the link.
    pub(crate) fn record(&self, plan: &Plan, report: Option<&LinkReport>, recorder: &mut Recorder) {
        let nan = f64::NAN;
        let (from, to) = (Time::ZERO + plan.warmup, Time::ZERO + plan.duration);
        let seconds = to.since(from).as_secs_f64();
        let departed = self.now.departed_bytes.saturating_sub(self.at_warmup.departed_bytes) as f64;
        let packets = self.now.departed_packets.saturating_sub(self.at_warmup.departed_packets) as f64;
        let capacity = self.service.capacity(from, to);
        let measured = |value: f64| if self.is_measured() { value } else { nan };
        let offered = self.now.departed_packets + self.now.dropped + self.now.waiting_packets;
        let backlog = self.backlog_sum / self.backlog_count as f64;
        // If the relay implements the queue, it records the sojourn time of each packet. The kernel's queues
        // report only their length, so the mean sojourn time is computed by Little's law.
        let own = report.and_then(|r| r.sojourn.as_ref());
        let mean = match own {
            Some((_, mean)) => *mean,
            None if self.queues.is_empty() || packets == 0.0 => nan,
            None => backlog * seconds / packets,
        };
        let q = |q: f64| own.map_or(nan, |(h, _)| h.quantile(q));
        let row = [
            Cell::U(self.index as u64),
            Cell::S(plan.links[self.index as usize].name.clone()),
            Cell::F(capacity * 8.0 / seconds),
            Cell::F(measured(departed / capacity)),
            Cell::F(measured(departed * 8.0 / seconds)),
            Cell::U(offered),
            Cell::U(self.now.dropped),
            Cell::F(if offered > 0 { self.now.dropped as f64 / offered as f64 } else { nan }),
            Cell::U(self.now.lost),
            Cell::U(0),
            Cell::F(mean),
            Cell::F(q(0.5)),
            Cell::F(q(0.95)),
            Cell::F(q(0.99)),
            Cell::F(q(1.0)),
            Cell::F(if self.queues.is_empty() && own.is_none() { nan } else { backlog }),
        ];
        recorder.links.push(row);
        if let Some((h, _)) = own {
            recorder.record_distribution("link", self.index, "sojourn", h);
        }
    }
}
