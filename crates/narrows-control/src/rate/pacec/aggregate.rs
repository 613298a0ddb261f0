//! The controller for a data plane that reports packet counts instead of packets.

use super::params::Signal;
use super::port::PacecPort;
use super::table::{FlowId, State};
use crate::rate::aggregate::{Aggregated, Counts, Decision, FlowHandle, Standing};
use crate::rate::{Action, FlowEvent, FlowIdentity, Leaf, PortCounters, Segment, Side};
use crate::units::{Bytes, Rate, Time};

/// The lowest rate that the option can express. If the ACKs of a flow carried no rate, the flow would not be limited.
const LEAST: Rate = Rate::from_bytes_per_sec(1);

impl<K: FlowIdentity> Aggregated<K> for PacecPort<K> {
    fn handle(&self, key: &K) -> Option<FlowHandle> {
        self.table.find(key).map(FlowHandle::from)
    }

    fn on_event(
        &mut self,
        now: Time,
        event: &FlowEvent<K>,
        _port: &PortCounters,
        actions: &mut Vec<Action<K>>,
    ) {
        match event.from {
            Side::Sender => {
                // The size is zero here, because the counts contain the bytes of this packet.
                self.on_tcp(now, event, Bytes::ZERO, actions);
            }
            Side::Receiver if event.segment == Segment::Rst => self.close(&event.key, actions),
            Side::Receiver => {}
        }
    }

    fn on_udp(&mut self, _now: Time, _bytes: Bytes, _port: &PortCounters, _actions: &mut Vec<Action<K>>) {}

    fn on_counts(
        &mut self,
        now: Time,
        flow: FlowHandle,
        counts: &Counts,
        actions: &mut Vec<Action<K>>,
    ) -> Standing {
        self.at = self.at.max(now);
        let Some(flow) = self.table.at_mut(FlowId::from(flow)) else { return Standing::Gone };
        if counts.bytes == Bytes::ZERO {
            return Standing::Same;
        }
        (flow.heard, flow.had_data) = (now, true);
        flow.meter.count(counts.bytes);
        let (key, state) = (flow.key, flow.state);
        if state != State::Idle {
            return Standing::Same;
        }
        self.begin(now, key, true, actions);
        self.tell(&key, actions);
        Standing::Changed
    }

    /// Returns the treatment of the flow's packets. The field `rtt` is the minimum time between two rates for a source.
    /// In PACEC it depends on Tc (PAC-3a), not on the flow's RTT.
    fn decide(&mut self, now: Time, flow: FlowHandle) -> Option<Decision> {
        let flow = self.table.at(FlowId::from(flow))?;
        let rate = flow.rate().filter(|_| self.gives_rates(now)).map(|rate| rate.max(LEAST));
        Some(Decision { rate, leaf: Leaf::Elephant, rtt: self.params.rewritten() })
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn advertised(&self, _now: Time, _key: &K) -> Option<(Rate, Time)> {
        None
    }

    fn sends_messages(&self) -> bool {
        self.params.signal == Signal::OutOfBand
    }

    /// Returns the rate for a newcomer. The first of several newcomers takes the whole offer, and each later newcomer
    /// gets the floor. A port gives no rate if no flows begin at its switch (`edge = false`), or if the controller has
    /// failed.
    fn grant(&self, key: Option<&K>, newcomers: u64) -> Option<Rate> {
        let rate = match newcomers {
            _ if !self.gives_rates(self.at) => return None,
            0 | 1 => self.ready(self.at, key.map(K::destination)),
            _ => self.floor,
        };
        Some(rate.max(LEAST))
    }
}

impl<K: FlowIdentity> PacecPort<K> {
    /// Returns whether the port writes rates into packets. Without a working controller, it writes none in band. Out of
    /// band, it still writes newcomers' rates into SYN-ACKs, because a port without flows gets no messages.
    fn gives_rates(&self, now: Time) -> bool {
        self.params.edge && (self.sends_messages() || self.is_guided(now))
    }
}
