//! The controller for a data plane that reports packet counts instead of packets.
//!
//! For a law, counts have two consequences. First, a flow can report only when the counts are read. So the time between
//! its reports is a multiple of the reading interval, and all flows of a port may report at once. Second, a decision is
//! valid until the next reading, so it uses the law's rate for the middle of that time.

use super::table::FlowId;
use super::{Law, Uniform};
use crate::feedback::code::RateCode;
use crate::rate::aggregate::{Aggregated, Counts, Decision, FlowHandle, Standing};
use crate::rate::{Action, FlowEvent, FlowIdentity, Leaf, PortCounters};
use crate::units::{Bytes, Rate, Time};

impl<L: Law + 'static, K: FlowIdentity> Aggregated<K> for Uniform<L, K> {
    fn handle(&self, key: &K) -> Option<FlowHandle> {
        self.table.find(key).map(FlowHandle::from)
    }

    fn on_event(
        &mut self,
        now: Time,
        event: &FlowEvent<K>,
        port: &PortCounters,
        _actions: &mut Vec<Action<K>>,
    ) {
        self.watch.look(now, port);
        let found = self.on_tcp(now, event);
        if event.has_data
            && let Some(id) = found
        {
            // The size is zero here, because the counts contain the bytes of this packet.
            self.record_data(now, id, Bytes::ZERO);
        }
    }

    fn on_udp(&mut self, now: Time, _bytes: Bytes, port: &PortCounters, _actions: &mut Vec<Action<K>>) {
        self.watch.look(now, port);
    }

    fn on_counts(
        &mut self,
        now: Time,
        flow: FlowHandle,
        counts: &Counts,
        _actions: &mut Vec<Action<K>>,
    ) -> Standing {
        let id = FlowId::from(flow);
        self.watch.pass(now);
        let Some(flow) = self.table.get_mut(id) else { return Standing::Gone };
        let before = flow.rtt();
        self.watch.set_between(now.since(counts.since));
        counts.receiver_half.into_iter().for_each(|sample| flow.life.rtt.receiver_half(sample));
        counts.sender_half.into_iter().for_each(|sample| flow.life.rtt.sender_half(sample));
        let mut changed = flow.rtt() != before;
        // `counts.passed` is not needed: if an ACK already carries a lower rate, the data plane leaves that rate in the
        // ACK.
        if counts.bytes > Bytes::ZERO {
            changed |= self.record_data(now, id, counts.bytes);
        }
        if changed { Standing::Changed } else { Standing::Same }
    }

    fn decide(&mut self, now: Time, flow: FlowHandle) -> Option<Decision> {
        let flow = self.table.get(FlowId::from(flow))?;
        let (rated, known) = (flow.is_rated(), flow.rtt());
        let leaf = if rated { Leaf::Elephant } else { Leaf::OtherTcp };
        let rate = rated.then(|| self.rate_for(self.watch.ahead(now), known));
        self.watch.pass(now);
        Some(Decision { rate, leaf, rtt: known.unwrap_or(self.ageing.rtt_default) })
    }

    /// Returns the code of the common rate. Decisions about flows without a report change only when this rate changes.
    fn version(&self) -> u64 {
        RateCode::encode(self.law.rate(self.watch.ahead(self.watch.at))).to_bits().into()
    }

    fn advertised(&self, _now: Time, _key: &K) -> Option<(Rate, Time)> {
        None
    }

    fn grant(&self, _key: Option<&K>, newcomers: u64) -> Option<Rate> {
        Some(self.law.grant(self.watch.at, newcomers).max(Rate::from_bytes_per_sec(1)))
    }
}
