//! Advertisements for flows whose ACKs take another path than their data (BRF-63). A switch that sees only the ACKs
//! writes the advertised rate into them.

use rustc_hash::FxHashMap;

use super::feedback::Gate;
use super::table::FlowId;
use crate::rate::{FlowIdentity, PacketInfo, PortId};
use crate::units::{Rate, Span, Time};

#[derive(Debug)]
struct Advert {
    rate: Rate,
    from: PortId,
    seq: u64,
    expires: Time,
    /// Validity of the advertisement: three periods T of the advertiser. This switch does not know the flow's RTT. In
    /// place of the RTT, its gate uses the advertiser's T (a third of the validity), because the advertiser repeats the
    /// advertisement every T.
    valid_for: Span,
    gate: Gate,
}

/// The advertisements that this port sends, and those that it receives from other ports.
#[derive(Debug)]
pub(super) struct Adverts<K> {
    port: PortId,
    heard: FxHashMap<K, Advert>,
    max: usize,
    /// Flows that this port must advertise.
    pub(super) own: Vec<FlowId>,
    pub(super) next_at: Time,
    seq: u64,
}

impl<K: FlowIdentity> Adverts<K> {
    pub(super) fn new(port: PortId, max: usize) -> Self {
        Adverts { port, heard: FxHashMap::default(), max, own: Vec::new(), next_at: Time::ZERO, seq: 0 }
    }

    pub(super) fn next_seq(&mut self) -> u64 {
        self.seq += 1;
        self.seq
    }

    pub(super) fn receive(&mut self, now: Time, key: K, rate: Rate, from: PortId, seq: u64, valid_for: Span) {
        if from == self.port {
            return;
        }
        let room = self.heard.len() < self.max;
        match self.heard.get_mut(&key) {
            // If two switches advertise the flow, the smaller rate applies until the advertisement of that rate
            // expires.
            Some(known) if known.from != from && known.rate < rate && known.expires > now => {}
            Some(known) if known.from == from && known.seq >= seq => {}
            Some(known) => {
                let gate = known.gate;
                *known = Advert { rate, from, seq, expires: now + valid_for, valid_for, gate };
            }
            None if room => {
                let expires = now + valid_for;
                self.heard.insert(key, Advert { rate, from, seq, expires, valid_for, gate: Gate::default() });
            }
            None => {}
        }
    }

    /// Returns the advertised rate of this flow.
    pub(super) fn rate(&self, now: Time, key: &K) -> Option<Rate> {
        self.standing(now, key).map(|(rate, _)| rate)
    }

    /// Returns the advertised rate of this flow, and the time at which this rate expires.
    pub(super) fn standing(&self, now: Time, key: &K) -> Option<(Rate, Time)> {
        if self.heard.is_empty() {
            return None;
        }
        self.heard.get(key).filter(|a| a.expires > now).map(|a| (a.rate, a.expires))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.heard.is_empty()
    }

    /// Returns the rate to write into this packet (BRF-61): the advertised rate or `own`, whichever is smaller.
    pub(super) fn answer(&mut self, now: Time, packet: &PacketInfo<K>, own: Option<Rate>) -> Option<Rate> {
        let advertised = self.rate(now, &packet.key)?;
        let advert = self.heard.get_mut(&packet.key)?;
        let rate = own.map_or(advertised, |own| own.min(advertised));
        advert.gate.answer(now, advert.valid_for.scale(1, 3), rate, packet.option, false)
    }

    pub(super) fn reopen(&mut self, key: &K) {
        if let Some(advert) = self.heard.get_mut(key) {
            advert.gate.reopen();
        }
    }

    pub(super) fn expire(&mut self, now: Time) {
        self.heard.retain(|_, advert| advert.expires > now);
    }
}
