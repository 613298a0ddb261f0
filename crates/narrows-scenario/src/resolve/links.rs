//! Makes the links of a plan: rates, delays and losses over time, and queues.

use std::collections::{BTreeMap, HashMap};

use narrows_control::units::{Bytes, Rate, Time};
use narrows_plan::{
    HtbClassPlan, JitterPlan, LimitPlan, LinkPlan, LossPlan, MarkPlan, PolicerPlan, QueuePlan, RatePlan,
};

use super::fitting;
use super::graph::Direction;
use crate::data::FULL_PACKET;
use crate::error::{Error, Result};
use crate::model::queue::TXQUEUELEN;
use crate::model::{Change, Jitter, Loss, Queue};
use crate::units::{BitRate, Limit, MAX_BYTES, NANOS_PER_SEC, Span};

/// The properties of flows on which queues depend, by link.
pub(super) struct Crossing {
    /// The largest data packet, L3 bytes.
    pub(super) packets: HashMap<usize, u64>,
    /// The longest two-way propagation delay of the flows whose data crosses the link.
    pub(super) rtts: HashMap<usize, Span>,
    /// The longest two-way propagation delay of all flows.
    pub(super) longest_rtt: Span,
}

/// Returns the plan of a directed link.
///
/// # Errors
/// Returns an error if a queue or policer is too small, or if changes are not in order.
pub(super) fn link(link: &Direction, index: usize, crossing: &Crossing) -> Result<LinkPlan> {
    let traits = &link.traits;
    let changes: Vec<&Change> = traits.at.iter().filter(|change| change.when.is_none()).collect();
    if !changes.is_sorted_by_key(|change| time_of(change)) {
        return Err(Error::new(
            "found changes out of order, expected rising times",
            format!("{}.at", link.key),
        ));
    }
    if let Some(policer) = &traits.policer {
        let largest = crossing.packets.get(&index).copied().unwrap_or(0).max(FULL_PACKET.into());
        fitting::check_burst(policer.burst, largest, &format!("{}.policer.burst", link.key))?;
    }
    let rate = match &link.capacity {
        Some(capacity) => capacity.plan.clone(),
        None => RatePlan::Steps { steps: rates(link.rate(), &changes), period: None },
    };
    let delays = changes.iter().filter_map(|change| Some((time_of(change), change.delay?)));
    Ok(LinkPlan {
        name: link.name.clone(),
        from: link.from as u32,
        to: link.to as u32,
        rate,
        delay: steps(link.delay(), delays),
        // A maximum of zero is no jitter, so that a sweep over jitters can begin with it.
        jitter: traits.jitter.as_ref().map(jitter).filter(|jitter| jitter.max > Span::ZERO),
        jitter_changes: jitters(&changes),
        loss: losses(traits.loss.as_ref(), &changes),
        duplicate: traits.duplicate,
        policer: traits
            .policer
            .as_ref()
            .map(|policer| PolicerPlan { rate: policer.rate.in_bytes(), burst: policer.burst }),
        aggregation: traits.aggregation,
        queue: match &traits.queue {
            Some(given) => queue(given, link, index, crossing)?,
            None => queue(&Queue::fifo(TXQUEUELEN), link, index, crossing)?,
        },
    })
}

/// The time of a change that does not depend on a phase.
fn time_of(change: &Change) -> Span {
    change.time.unwrap_or_default()
}

fn rates(first: BitRate, changes: &[&Change]) -> Vec<(Time, Rate)> {
    let later = changes.iter().filter_map(|change| Some((time_of(change), change.rate?.in_bytes())));
    steps(first.in_bytes(), later)
}

/// Returns the changes of a link's jitter.
fn jitters(changes: &[&Change]) -> Vec<(Time, JitterPlan)> {
    by_time(changes.iter().filter_map(|change| Some((time_of(change), jitter(change.jitter.as_ref()?)))))
}

pub(super) fn jitter(given: &Jitter) -> JitterPlan {
    JitterPlan { max: given.max, reorder: given.reorder }
}

/// Returns the random losses of a link over time; the list is empty if there are none.
fn losses(first: Option<&Loss>, changes: &[&Change]) -> Vec<(Time, LossPlan)> {
    let mut later =
        changes.iter().filter_map(|change| Some((time_of(change), loss(change.loss.as_ref()?)))).peekable();
    if first.is_none() && later.peek().is_none() {
        return Vec::new();
    }
    steps(first.map_or(LossPlan::Bernoulli { p: 0.0 }, loss), later)
}

pub(super) fn loss(model: &Loss) -> LossPlan {
    match model {
        Loss::Bernoulli(loss) => LossPlan::Bernoulli { p: loss.p },
        Loss::GilbertElliott(loss) => {
            LossPlan::GilbertElliott { p: loss.p, r: loss.r, good: loss.good, bad: loss.bad }
        }
    }
}

/// Returns steps with unique times. A change at 0 replaces the first value.
pub(super) fn steps<T>(first: T, later: impl Iterator<Item = (Span, T)>) -> Vec<(Time, T)> {
    by_time(std::iter::once((Span::ZERO, first)).chain(later))
}

/// Returns changes with unique times, in order. If several changes have the same time, the last one applies.
fn by_time<T>(changes: impl Iterator<Item = (Span, T)>) -> Vec<(Time, T)> {
    let unique: BTreeMap<Time, T> = changes.map(|(at, value)| (Time::ZERO + at, value)).collect();
    unique.into_iter().collect()
}

/// Returns the limit of a queue in packets or bytes. A queue with this limit always admits a full packet.
///
/// A BDP is the link's rate times the longest two-way propagation delay of the flows that send data over the link. If
/// no flow sends data over the link, the longest RTT of all flows is used.
///
/// # Errors
/// Returns an error if a packet of a flow does not fit into the queue.
pub(super) fn limit(
    limit: Limit,
    link: &Direction,
    index: usize,
    crossing: &Crossing,
    key: &str,
) -> Result<LimitPlan> {
    let packet = crossing.packets.get(&index).copied().unwrap_or(0);
    fitting::check_limit(limit, packet, key)?;
    Ok(match limit {
        Limit::Infinite => LimitPlan::default(),
        Limit::Packets(packets) => LimitPlan::packets(packets),
        Limit::Bytes(bytes) => LimitPlan::bytes(Bytes::new(bytes)),
        Limit::Bdp(bdp) => {
            let own = crossing.rtts.get(&index).copied().unwrap_or_default();
            let twice = link.delay() + link.delay();
            let candidates = [own, crossing.longest_rtt, twice];
            let rtt = candidates.into_iter().find(|rtt| *rtt > Span::ZERO).unwrap_or_default();
            let bits = bdp * link.rate().0 as f64 * rtt.as_nanos() as f64;
            let size = (bits / (8 * NANOS_PER_SEC) as f64).ceil() as u64;
            LimitPlan::bytes(Bytes::new(size.max(packet).max(FULL_PACKET.into()).min(MAX_BYTES)))
        }
    })
}

fn queue(queue: &Queue, link: &Direction, index: usize, crossing: &Crossing) -> Result<QueuePlan> {
    let key = format!("{}.queue", link.key);
    let limit_of = |length: Limit| limit(length, link, index, crossing, &key);
    Ok(match queue {
        Queue::Fifo(queue) => QueuePlan::Fifo { limit: limit_of(queue.limit)?, mark: MarkPlan::None },
        Queue::Threshold(queue) => {
            let most = limit_of(queue.limit)?;
            let mark_key = format!("{key}.mark");
            let mark = limit(queue.mark, link, index, crossing, &mark_key)?;
            fitting::check_mark(&mark, &most, &mark_key)?;
            QueuePlan::Fifo { limit: most, mark: MarkPlan::Threshold { packets: fitting::in_packets(&mark) } }
        }
        Queue::Red(queue) => QueuePlan::Fifo {
            limit: limit_of(queue.limit)?,
            mark: MarkPlan::Red {
                min: queue.min,
                max: queue.max,
                max_p: queue.max_p,
                weight: queue.weight,
                ecn: queue.ecn,
            },
        },
        Queue::Codel(queue) => QueuePlan::Codel {
            limit: limit_of(queue.limit)?,
            target: queue.target,
            interval: queue.interval,
            ecn: queue.ecn,
        },
        Queue::FqCodel(queue) => QueuePlan::FqCodel {
            limit: limit_of(queue.limit)?,
            target: queue.target,
            interval: queue.interval,
            quantum: queue.quantum,
            queues: queue.queues,
            ecn: queue.ecn,
        },
        Queue::Priority(queue) => {
            let classes: Result<Vec<LimitPlan>> =
                queue.classes.iter().map(|class| limit_of(*class)).collect();
            QueuePlan::Priority { classes: classes? }
        }
        Queue::Htb(queue) => {
            let classes: Result<Vec<HtbClassPlan>> = queue
                .classes
                .iter()
                .map(|class| {
                    Ok(HtbClassPlan {
                        rate: class.rate.in_bytes(),
                        ceil: class.ceil.unwrap_or(class.rate).in_bytes(),
                        limit: limit_of(class.limit)?,
                        priority: class.priority,
                    })
                })
                .collect();
            QueuePlan::Htb { classes: classes? }
        }
    })
}
