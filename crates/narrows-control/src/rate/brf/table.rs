//! The flow table: records, and lists that avoid searches (BRF-12 to BRF-16).

use rustc_hash::FxHashMap;

use super::allocate::AppClass;
use super::feedback::Gate;
use super::layers::Layer;
use super::obedience::Demotions;
pub(super) use crate::rate::kit::flow_id::FlowId;
use crate::rate::kit::lifecycle::Life;
use crate::rate::kit::waterfill::UNBOUNDED;
use crate::rate::{Class, FlowIdentity};
use crate::units::{Bytes, Rate, Span, Time};

/// Earlier measurements stay valid if the allocation changes by at most this share.
const SAME: f64 = 0.01;

/// The lists. Every record is on exactly one of these lists.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum List {
    /// Rated flows with an allocation, in the order of their last data, oldest first. Their number is N_BRF.
    Rated = 0,
    /// Other TCP flows with data, in the order of their last data, oldest first. Their number is N_CUBIC.
    Other = 1,
    /// Flows without data for a while, in the order of their idle time, longest first.
    Idle = 2,
    /// Flows that were not yet seen from both sides, and flows that both sides have closed.
    Waiting = 3,
}

/// A flow's allocation and measured use.
///
/// ALLOC reads all meters. With 100,000 flows, memory access dominates its cost. So a meter is separate from [`Flow`]
/// and takes only two cache lines. Reports and decisions are more frequent than ALLOC, and need only the first cache
/// line.
#[derive(Copy, Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct Meter {
    /// The flow's demand in bytes/s; `UNBOUNDED` if no share satisfies it. In literal mode the demand is the
    /// allocation. See `Shares`.
    pub(super) demand: u64,
    /// The rate to which another switch holds the flow, as read from an ACK that passed this switch; `UNBOUNDED` if no
    /// switch holds it (BRF-102).
    pub(super) held: u64,
    /// The base allocation at the last feedback to the sender.
    pub(super) told: Rate,
    /// The time from which the sender has known this allocation; "never" before the first feedback.
    pub(super) told_at: Time,
    /// Time of the first data since `joined`.
    pub(super) first_data: Time,
    pub(super) rtt: Span,
    /// L3 bytes that arrived in the window.
    pub(super) bytes: Bytes,
    /// Number of the measurement window that `bytes` belongs to.
    pub(super) window: u32,
    /// In this cycle, the sender reported that its application does not limit the flow (`unlimited`), or that its
    /// application does limit the flow (`limited`) (BRF-100). A paced flow may have both flags. The reason is that the
    /// flow still has data to send while the application's last write is being paced.
    pub(super) unlimited: bool,
    pub(super) limited: bool,
    pub(super) app_class: AppClass,
    /// Whether the flow is in the upper layer, for hosts that report counts (`aggregate`). For hosts that
    /// pass packets see [`Flow::layer`].
    pub(super) mouse: bool,

    // The fields from here on are in the second cache line.
    /// The last time at which the flow got a rate as a newcomer.
    pub(super) joined: Time,
    /// Payload bytes that were lost on the way to this switch, according to gaps in the sequence numbers (BRF-100).
    pub(super) missing: Bytes,
    /// The evidence: L3 bytes that arrived in windows since the last classification, all under the same
    /// allocation.
    pub(super) evidence: Bytes,
    /// The time covered by the evidence.
    pub(super) evidence_span: Span,
    /// BW_real: the flow's rate in the last window.
    pub(super) real: Rate,
    /// Bytes and time of all windows, for the predictor.
    pub(super) measured: Bytes,
    pub(super) measured_span: Span,
    /// Headroom of a held flow, per mille.
    pub(super) headroom: u16,
    /// Number of windows since an ACK last carried the rate in `held`.
    pub(super) held_age: u8,
    /// Number of windows covered by the evidence.
    pub(super) evidence_windows: u8,
    /// Score of the windows in which the flow exceeded its rate (see `obedience`).
    pub(super) strikes: u8,
}

const _: () = assert!(size_of::<Meter>() == 128 && core::mem::offset_of!(Meter, joined) == 64);

impl Meter {
    fn new(now: Time, rtt: Span) -> Self {
        Meter {
            demand: 0,
            told: Rate::ZERO,
            told_at: Time::NEVER,
            joined: now,
            first_data: Time::NEVER,
            rtt,
            window: 0,
            bytes: Bytes::ZERO,
            missing: Bytes::ZERO,
            evidence: Bytes::ZERO,
            evidence_span: Span::ZERO,
            real: Rate::ZERO,
            held: UNBOUNDED,
            held_age: 0,
            headroom: 0,
            measured: Bytes::ZERO,
            measured_span: Span::ZERO,
            evidence_windows: 0,
            unlimited: false,
            limited: false,
            app_class: AppClass::Unknown,
            mouse: false,
            strikes: 0,
        }
    }

    /// Resets the count of bytes if it belongs to an earlier window.
    pub(super) fn enter(&mut self, window: u32) {
        if self.window != window {
            (self.window, self.bytes) = (window, Bytes::ZERO);
        }
    }

    /// Records the base allocation at a feedback. The evidence stays valid if the allocation is almost the same.
    pub(super) fn note_told(&mut self, now: Time, base: Rate) {
        let same = (self.told.as_f64() - base.as_f64()).abs() <= SAME * self.told.as_f64();
        if self.told_at == Time::NEVER || !same {
            (self.told, self.told_at) = (base, now);
            // If another switch holds the flow, its traffic does not depend on its rate at this port.
            if self.app_class != AppClass::Held {
                self.drop_evidence();
            }
        }
    }

    /// Discards the evidence, because the class was decided or the allocation changed.
    pub(super) fn drop_evidence(&mut self) {
        (self.evidence, self.missing) = (Bytes::ZERO, Bytes::ZERO);
        (self.evidence_span, self.evidence_windows) = (Span::ZERO, 0);
    }

    /// Reduces the weight of old evidence.
    pub(super) fn fade_evidence(&mut self) {
        self.evidence = Bytes::new(self.evidence.get() / 2);
        self.missing = Bytes::new(self.missing.get() / 2);
        self.evidence_span = self.evidence_span.scale(1, 2);
        self.evidence_windows /= 2;
    }

    /// Returns the mean rate over the flow's measurement windows, if there were any.
    pub(super) fn mean(&self) -> Option<Rate> {
        (self.measured_span > Span::ZERO).then(|| Rate::of(self.measured, self.measured_span))
    }
}

/// One flow (FLOW_INFO_BRF of the paper).
#[derive(Clone, Debug)]
pub(super) struct Flow<K> {
    pub(super) key: K,
    pub(super) class: Class,
    pub(super) life: Life,
    pub(super) gate: Gate,
    /// The meter's `told` and `told_at` before the last write, which are restored if the written rate does not fit into
    /// the packet.
    pub(super) told_before: (Rate, Time),
    pub(super) next_seq: Option<u64>,
    /// Whether an ACK of the flow has passed this switch. If no ACK passes, the flow must be advertised (BRF-63).
    pub(super) ack_seen_here: bool,
    pub(super) demotions: Demotions,
    pub(super) layer: Layer,
    /// Number of the window after which `layer` was assigned.
    pub(super) layer_as_of: u32,
}

impl<K> Flow<K> {
    pub(super) fn new(key: K, class: Class, life: Life) -> Self {
        Flow {
            key,
            class,
            life,
            gate: Gate::default(),
            told_before: (Rate::ZERO, Time::NEVER),
            next_seq: None,
            ack_seen_here: false,
            demotions: Demotions::NONE,
            layer: Layer::default(),
            layer_as_of: 0,
        }
    }
}

const NIL: u32 = u32::MAX;

#[derive(Debug)]
struct Link {
    generation: u32,
    list: List,
    /// The time at which the flow was last moved to the end of its list, in ms. The value wraps. See
    /// [`Table::mark_moved_if_stale`].
    moved_ms: u16,
    prev: u32,
    next: u32,
}

const _: () = assert!(size_of::<Link>() == 16);

#[derive(Copy, Clone, Debug)]
struct Ends {
    head: u32,
    tail: u32,
    len: usize,
}

/// A slab of flows with four doubly linked lists. All operations are O(1), except [`Table::ids`] and
/// [`Table::each_rated`].
///
/// Keys are hashed without a secret so that runs are reproducible. A host that completes many
/// handshakes can cause collisions.
#[derive(Debug)]
pub(super) struct Table<K> {
    // Three arrays by slot, because they are read at different frequencies.
    links: Vec<Link>,
    meters: Vec<Meter>,
    flows: Vec<Option<Flow<K>>>,
    free: Vec<u32>,
    by_key: FxHashMap<K, u32>,
    ends: [Ends; 4],
    unconfirmed: usize,
    max: usize,
    rtt_default: Span,
    /// A flow with reports is moved to the end of its list only if the last move is at least this long ago
    /// (`aggregate`).
    patience: Span,
}

impl<K: FlowIdentity> Table<K> {
    pub(super) fn new(max: usize, rtt_default: Span) -> Self {
        Table {
            links: Vec::new(),
            meters: Vec::new(),
            flows: Vec::new(),
            free: Vec::new(),
            by_key: FxHashMap::default(),
            ends: [Ends { head: NIL, tail: NIL, len: 0 }; 4],
            unconfirmed: 0,
            max,
            rtt_default,
            patience: Span::ZERO,
        }
    }

    /// Sets the minimum time between two moves of a flow with reports to the end of its list.
    pub(super) fn set_patience(&mut self, patience: Span) {
        self.patience = patience;
    }

    pub(super) fn len(&self, list: List) -> usize {
        self.ends[list as usize].len
    }

    pub(super) fn is_full(&self) -> bool {
        self.by_key.len() >= self.max
    }

    /// Returns two numbers: flows seen from one side only, and flows seen from both sides.
    pub(super) fn unconfirmed_and_confirmed(&self) -> (usize, usize) {
        (self.unconfirmed, self.by_key.len() - self.unconfirmed)
    }

    pub(super) fn find(&self, key: &K) -> Option<FlowId> {
        let slot = *self.by_key.get(key)?;
        self.links.get(slot as usize).map(|e| FlowId { slot, generation: e.generation })
    }

    fn link(&self, id: FlowId) -> Option<&Link> {
        self.links.get(id.slot as usize).filter(|link| link.generation == id.generation)
    }

    pub(super) fn get(&self, id: FlowId) -> Option<&Flow<K>> {
        self.link(id)?;
        self.flows.get(id.slot as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, id: FlowId) -> Option<&mut Flow<K>> {
        self.link(id)?;
        self.flows.get_mut(id.slot as usize)?.as_mut()
    }

    pub(super) fn meter(&self, id: FlowId) -> Option<&Meter> {
        self.link(id)?;
        self.meters.get(id.slot as usize)
    }

    pub(super) fn meter_mut(&mut self, id: FlowId) -> Option<&mut Meter> {
        self.link(id)?;
        self.meters.get_mut(id.slot as usize)
    }

    /// Returns the meter of a record, and the list that the record is on.
    pub(super) fn standing(&self, id: FlowId) -> Option<(List, &Meter)> {
        let link = self.link(id)?;
        Some((link.list, self.meters.get(id.slot as usize)?))
    }

    pub(super) fn list(&self, id: FlowId) -> Option<List> {
        self.link(id).map(|e| e.list)
    }

    /// Adds a record at the end of [`List::Waiting`]. Returns `None` if the table is full or already has a record with
    /// this key.
    pub(super) fn insert(&mut self, flow: Flow<K>) -> Option<FlowId> {
        if self.is_full() || self.by_key.contains_key(&flow.key) {
            return None;
        }
        self.unconfirmed += usize::from(flow.life.awaited.is_some());
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.links.push(Link {
                    generation: 0,
                    list: List::Waiting,
                    moved_ms: 0,
                    prev: NIL,
                    next: NIL,
                });
                self.meters.push(Meter::new(flow.life.last_seen, self.rtt_default));
                self.flows.push(None);
                self.links.len() as u32 - 1
            }
        };
        self.by_key.insert(flow.key, slot);
        let generation = self.links[slot as usize].generation;
        let id = FlowId { slot, generation };
        self.meters[slot as usize] =
            Meter::new(flow.life.last_seen, flow.life.rtt.get().unwrap_or(self.rtt_default));
        self.flows[slot as usize] = Some(flow);
        self.push_back(slot, List::Waiting);
        Some(id)
    }

    pub(super) fn remove(&mut self, id: FlowId) -> Option<Flow<K>> {
        self.link(id)?;
        self.unlink(id.slot);
        let link = &mut self.links[id.slot as usize];
        link.generation = link.generation.wrapping_add(1);
        // The record is on no list now, so `each_rated` must not visit it.
        link.list = List::Waiting;
        let flow = self.flows[id.slot as usize].take()?;
        self.free.push(id.slot);
        self.by_key.remove(&flow.key);
        self.unconfirmed -= usize::from(flow.life.awaited.is_some());
        Some(flow)
    }

    /// Called when packets of both sides of the flow have been seen.
    pub(super) fn confirm(&mut self, id: FlowId) {
        if let Some(flow) = self.get_mut(id)
            && flow.life.awaited.take().is_some()
        {
            self.unconfirmed -= 1;
        }
    }

    /// Moves a record to the end of `list`.
    pub(super) fn move_to(&mut self, id: FlowId, list: List) {
        if self.link(id).is_some() {
            self.unlink(id.slot);
            self.push_back(id.slot, list);
        }
    }

    /// Returns whether an active flow should be moved to the end of its list, and records the move. Used for hosts that
    /// report counts (`aggregate`). Flows are moved only occasionally, because moving each of 100,000 flows at each
    /// report would dominate the cost.
    pub(super) fn mark_moved_if_stale(&mut self, id: FlowId, now: Time) -> bool {
        let ms = (now.as_nanos() / 1_000_000) as u16;
        let Some(link) = self.links.get_mut(id.slot as usize).filter(|l| l.generation == id.generation)
        else {
            return false;
        };
        let stale = u64::from(ms.wrapping_sub(link.moved_ms)) >= self.patience.as_nanos() / 1_000_000;
        if stale {
            link.moved_ms = ms;
        }
        stale
    }

    /// Returns the first record on `list`, which was moved to the end of the list least recently.
    pub(super) fn front(&self, list: List) -> Option<FlowId> {
        let slot = self.ends[list as usize].head;
        self.links.get(slot as usize).map(|e| FlowId { slot, generation: e.generation })
    }

    /// Returns the next record on the list of this record.
    fn after(&self, id: FlowId) -> Option<FlowId> {
        let slot = self.link(id)?.next;
        self.links.get(slot as usize).map(|e| FlowId { slot, generation: e.generation })
    }

    /// For every flow on [`List::Rated`], passes the slot and the meter to `visit`, in no particular order. If at least
    /// a quarter of all records are on this list, the function reads them in the order of memory, which is faster.
    pub(super) fn each_rated(&mut self, mut visit: impl FnMut(u32, &mut Meter)) {
        if self.len(List::Rated) >= self.links.len() / 4 {
            let slots = self.links.iter().zip(&mut self.meters).zip(0..);
            let rated = slots.filter(|((link, _), _)| link.list == List::Rated);
            rated.for_each(|((_, meter), slot)| visit(slot, meter));
            return;
        }
        let mut at = self.ends[List::Rated as usize].head;
        while let (Some(link), Some(meter)) = (self.links.get(at as usize), self.meters.get_mut(at as usize))
        {
            visit(at, meter);
            at = link.next;
        }
    }

    /// Returns all records on `list`, in order. This costs O(n), so call it once per period, not once per packet.
    pub(super) fn ids(&self, list: List) -> impl Iterator<Item = FlowId> + '_ {
        core::iter::successors(self.front(list), |id| self.after(*id))
    }

    fn push_back(&mut self, slot: u32, list: List) {
        let ends = &mut self.ends[list as usize];
        let last = core::mem::replace(&mut ends.tail, slot);
        ends.len += 1;
        if last == NIL {
            ends.head = slot;
        } else {
            self.links[last as usize].next = slot;
        }
        let link = &mut self.links[slot as usize];
        (link.list, link.prev, link.next) = (list, last, NIL);
    }

    fn unlink(&mut self, slot: u32) {
        let Link { list, prev, next, .. } = self.links[slot as usize];
        let ends = &mut self.ends[list as usize];
        ends.len -= 1;
        if prev == NIL {
            ends.head = next;
        } else {
            self.links[prev as usize].next = next;
        }
        let ends = &mut self.ends[list as usize];
        if next == NIL {
            ends.tail = prev;
        } else {
            self.links[next as usize].prev = prev;
        }
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
