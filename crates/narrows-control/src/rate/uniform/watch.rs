//! The port's present state, and its traffic since the last reading.

use super::{Passed, Port};
use crate::rate::kit::classes;
use crate::rate::{Action, FlowIdentity, LEAVES, Leaf, PortCounters};
use crate::units::{Bytes, Rate, Span, Time};

/// `ahead` assumes at most this time between two readings of the counts.
const BETWEEN_MAX: Span = Span::from_millis(200);

/// Bytes that a port had counted at the last reading, by leaf.
#[derive(Clone, Debug)]
struct Seen {
    at: Time,
    arrived: [Bytes; LEAVES],
    departed: [Bytes; LEAVES],
}

/// Converts counters into [`Passed`].
#[derive(Clone, Debug, Default)]
struct Meter {
    /// `None` before the first reading. Earlier counts are ignored, because the time that they cover is unknown.
    seen: Option<Seen>,
    /// The guarantees for arrivals and for departures, each for other TCP and for UDP.
    guarantees: [[classes::Guarantee; 2]; 2],
}

impl Meter {
    fn read(&mut self, now: Time, link: Rate, port: &PortCounters) -> Passed {
        let seen = Seen { at: now, arrived: port.arrived, departed: port.departed };
        let before = self.seen.replace(seen.clone()).unwrap_or(seen);
        let elapsed = now.since(before.at);
        let [arrivals, departures] = &mut self.guarantees;
        let of =
            |now: &[Bytes; LEAVES], before: &[Bytes; LEAVES], guarantees: &mut [classes::Guarantee; 2]| {
                let passed = |leaf: Leaf| now[leaf as usize] - before[leaf as usize];
                let own = passed(Leaf::Mouse) + passed(Leaf::Elephant);
                let [tcp, udp] = guarantees;
                let other = tcp.within(link, elapsed, passed(Leaf::OtherTcp))
                    + udp.within(link, elapsed, passed(Leaf::Udp));
                (own, other)
            };
        let arrived = of(&port.arrived, &before.arrived, arrivals);
        let (own, other) = of(&port.departed, &before.departed, departures);
        Passed { arrived: arrived.0 + arrived.1, own, other }
    }
}

/// A port as its adapter sees it.
#[derive(Clone, Debug, Default)]
pub(in crate::rate) struct Watch {
    /// The state at the last reading.
    pub(in crate::rate) port: Port,
    /// The time of the last call.
    pub(in crate::rate) at: Time,
    meter: Meter,
    /// The link's rate for which the classes were computed.
    shaped: Option<Rate>,
    /// The time between the last two readings, if the data plane reports counts.
    between: Span,
}

impl Watch {
    /// Starts or restarts with the port's present state.
    pub(in crate::rate) fn start<K: FlowIdentity>(
        &mut self,
        now: Time,
        port: &PortCounters,
        actions: &mut Vec<Action<K>>,
    ) {
        self.look(now, port);
        self.meter = Meter::default();
        self.shape(actions);
    }

    /// Returns whether the port was read since the start.
    pub(in crate::rate) fn has_read(&self) -> bool {
        self.meter.seen.is_some()
    }

    /// Stores the port's present state.
    pub(in crate::rate) fn look(&mut self, now: Time, port: &PortCounters) {
        self.pass(now);
        self.port = Port::of(port);
    }

    /// Advances the last known time to `now`.
    pub(in crate::rate) fn pass(&mut self, now: Time) {
        self.at = self.at.max(now);
    }

    /// Stores the port's present state, sets its classes, and returns the traffic since the last call.
    pub(in crate::rate) fn read<K: FlowIdentity>(
        &mut self,
        now: Time,
        port: &PortCounters,
        actions: &mut Vec<Action<K>>,
    ) -> Passed {
        self.look(now, port);
        self.shape(actions);
        self.meter.read(now, self.port.capacity, port)
    }

    /// Sets the time since the last reading, if the data plane reports counts.
    pub(in crate::rate) fn set_between(&mut self, between: Span) {
        self.between = between.min(BETWEEN_MAX);
    }

    /// Returns the time for which a rate is computed now. A data plane that reports counts uses the rate until the next
    /// reading, and an estimated number of flows decays during this time. So this function returns the midpoint between
    /// now and the expected next reading.
    pub(in crate::rate) fn ahead(&self, now: Time) -> Time {
        now + self.between.scale(1, 2)
    }

    fn shape<K: FlowIdentity>(&mut self, actions: &mut Vec<Action<K>>) {
        if self.shaped != Some(self.port.capacity) {
            self.shaped = Some(self.port.capacity);
            classes::set(self.port.capacity, actions);
        }
    }
}
