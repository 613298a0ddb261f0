//! The controller for a data plane that reports packet counts instead of packets.
//!
//! Decisions from counts differ from decisions from packets in two ways. First, a measurement may begin in the middle
//! of a counted interval (see `judge::measured_from`). The bytes that arrived after this beginning are estimated in
//! proportion to the time, because paced flows send evenly. Second, a flow with frequent reports is moved to the end of
//! its list only occasionally. So the flow may become idle too early, by at most a quarter of
//! [`Params::idle_after`](super::Params::idle_after).

use super::allocate::AppClass;
use super::subscribers::WEIGHT;
use super::table::{FlowId, List};
use super::{Brf, layers, newcomer};
use crate::rate::aggregate::{Aggregated, Counts, Decision, FlowHandle, Standing};
use crate::rate::{Action, Class, FlowEvent, FlowIdentity, Leaf, PortCounters, Side};
use crate::units::{Bytes, Rate, Time};

/// Estimates how many of the `bytes` were counted after `from`. All of them were counted from `since` to `now`.
fn part_after(from: Time, since: Time, now: Time, bytes: Bytes) -> Bytes {
    let (valid, whole) = (now.since(from.max(since)).as_nanos(), now.since(since).as_nanos());
    if valid >= whole || bytes == Bytes::ZERO {
        return bytes;
    }
    if valid == 0 {
        return Bytes::ZERO;
    }
    // The result is at most `bytes`.
    Bytes::new((u128::from(bytes.get()) * u128::from(valid) / u128::from(whole)) as u64)
}

impl<K: FlowIdentity> Brf<K> {
    /// Returns the leaf of an active flow. This code reads only the flow's meter.
    fn leaf_by_meter(&mut self, id: FlowId) -> Leaf {
        let fair = self.shares.capacity().as_bytes_per_sec() / self.shares.flows().max(1);
        let (shares, layered) = (&self.shares, self.params.layers);
        let Some(meter) = self.table.meter_mut(id) else { return Leaf::Elephant };
        let terms = shares.terms(id.slot, meter.app_class);
        let base = Rate::from_bytes_per_sec(terms.base(meter.demand));
        let unlimited = meter.app_class == AppClass::Unlimited;
        meter.mouse =
            layered && layers::is_mouse(meter.mouse, base, Rate::from_bytes_per_sec(fair), unlimited);
        if meter.mouse { Leaf::Mouse } else { Leaf::Elephant }
    }

    fn measure_counts(&mut self, now: Time, id: FlowId, counts: &Counts) {
        let (cycle, mode) = (&self.cycle, self.params.mode);
        let Some(meter) = self.table.meter_mut(id) else { return };
        if meter.first_data == Time::NEVER {
            meter.first_data = now;
        }
        meter.unlimited |= counts.unlimited;
        meter.limited |= counts.limited;
        let Some(from) = cycle.counts_from(mode, meter) else { return };
        meter.enter(cycle.windows);
        meter.bytes += part_after(from, counts.since, now, counts.bytes);
        if counts.missing > Bytes::ZERO {
            // `missing` is in the meter's second cache line. It is accessed only in this branch, which is rare.
            meter.missing += part_after(from, counts.since, now, counts.missing);
        }
    }
}

impl<K: FlowIdentity> Aggregated<K> for Brf<K> {
    fn handle(&self, key: &K) -> Option<FlowHandle> {
        self.table.find(key).map(FlowHandle::from)
    }

    fn on_event(
        &mut self,
        now: Time,
        event: &FlowEvent<K>,
        port: &PortCounters,
        actions: &mut Vec<Action<K>>,
    ) {
        self.refresh_capacity(now, port, actions);
        let Some(id) = self.on_tcp(now, event, actions) else { return };
        if event.has_data {
            self.record_data(now, id, actions);
        }
        // The data plane has written a rate into this packet.
        if event.from == Side::Receiver && self.table.list(id) == Some(List::Rated) {
            self.note_told(now, id);
        }
    }

    fn on_udp(&mut self, now: Time, bytes: Bytes, port: &PortCounters, actions: &mut Vec<Action<K>>) {
        self.refresh_capacity(now, port, actions);
        // T may be much shorter than the time between reports. If all bytes of a report were counted in one T, UDP's
        // load would be several times too high. So at most one packet is recorded. The load itself is measured with the
        // port's counters.
        self.record_udp(now, bytes.min(self.mtu), actions);
    }

    fn on_counts(
        &mut self,
        now: Time,
        flow: FlowHandle,
        counts: &Counts,
        actions: &mut Vec<Action<K>>,
    ) -> Standing {
        let id = FlowId::from(flow);
        let Some(list) = self.table.list(id) else { return Standing::Gone };
        // If this port has received advertisements, a new or an expired advertisement may also have changed the
        // decision.
        let mut changed = !self.adverts.is_empty();
        if (counts.receiver_half.is_some() || counts.sender_half.is_some())
            && let Some(flow) = self.table.get_mut(id)
        {
            counts.receiver_half.into_iter().for_each(|sample| flow.life.rtt.receiver_half(sample));
            counts.sender_half.into_iter().for_each(|sample| flow.life.rtt.sender_half(sample));
            self.note_rtt(id);
            changed = true;
        }
        if let Some(value) = counts.passed {
            changed |= self.hold(id, value);
        }
        if counts.bytes > Bytes::ZERO {
            if list == List::Other {
                self.link.acks.record_other(counts.bytes);
            }
            if !matches!(list, List::Rated | List::Other) || self.table.mark_moved_if_stale(id, now) {
                if let Some(flow) = self.table.get_mut(id) {
                    flow.life.last_seen = now;
                }
                self.record_data(now, id, actions);
                changed |= self.table.list(id) != Some(list);
            }
            if list == List::Other && (counts.unlimited || counts.limited) {
                self.readmit(now, id, actions);
                changed |= self.table.list(id) != Some(list);
            }
            self.measure_counts(now, id, counts);
        }
        if changed { Standing::Changed } else { Standing::Same }
    }

    fn decide(&mut self, now: Time, flow: FlowHandle) -> Option<Decision> {
        let id = FlowId::from(flow);
        let (list, meter) = self.table.standing(id)?;
        let rtt = meter.rtt;
        if list != List::Rated {
            let last = self.last_rate(id);
            let leaf = match self.table.get(id)?.class {
                Class::Rated if last.is_some() && meter.mouse => Leaf::Mouse,
                Class::Rated => Leaf::Elephant,
                _ => Leaf::OtherTcp,
            };
            return Some(Decision { rate: last, leaf, rtt });
        }
        if self.is_down() {
            return Some(Decision { rate: None, leaf: self.leaf_by_meter(id), rtt });
        }
        let mut rate = self.rate_for(id, meter).min(Rate::from_bytes_per_sec(meter.held));
        if !self.adverts.is_empty()
            && let Some(advertised) = self.adverts.rate(now, &self.table.get(id)?.key)
        {
            rate = rate.min(advertised);
        }
        self.note_told(now, id);
        let leaf = self.leaf_by_meter(id);
        Some(Decision { rate: Some(rate), leaf, rtt })
    }

    fn version(&self) -> u64 {
        use core::hash::Hasher;
        let mut hasher = rustc_hash::FxHasher::default();
        self.shares.rule().into_iter().for_each(|part| hasher.write_u64(part));
        hasher.write_u8(self.is_down().into());
        hasher.finish()
    }

    fn advertised(&self, now: Time, key: &K) -> Option<(Rate, Time)> {
        self.adverts.standing(now, key)
    }

    fn grant(&self, key: Option<&K>, newcomers: u64) -> Option<Rate> {
        if self.is_down() {
            return None;
        }
        let flows = (self.table.len(List::Rated) as u64).saturating_add(newcomers.max(1));
        // The grant is computed from the share that the rated class will have when the newcomers have begun. Before
        // that, the class may have no flows and no share.
        let capacity = self.link.rated_share_with(match self.shares.weights() {
            None => flows,
            // The sum of weights if each newcomer belongs to a new subscriber.
            Some((rated, _)) => rated.saturating_add(newcomers.max(1).saturating_mul(WEIGHT)),
        });
        let predicted = match key {
            Some(key) => self.predictor.predict(key),
            None => self.predictor.predict_any(),
        };
        let equal = newcomer::initial(predicted, capacity, flows);
        let share = self.shares.newcomer_share(capacity, newcomers.max(1));
        let rate = self.first_rate(equal, share, capacity, flows);
        Some(rate.mul_f64(self.shares.reduction()).max(Rate::from_bytes_per_sec(1)))
    }
}

#[cfg(test)]
#[path = "aggregate_tests.rs"]
mod tests;
