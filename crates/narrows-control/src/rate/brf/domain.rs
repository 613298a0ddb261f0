//! The SDN controller of a BRF domain: a pure state machine (BRF-63, BRF-73).
//!
//! The controller polls every port and evaluates the reports with the same [`Detector`] that a switch has. While a port
//! is congested, the controller sends it each verdict. When the congestion ends, the controller sends one more message.
//! The controller forwards advertisements to all other ports. The host delivers messages in each direction with the
//! control network's delay `d_ctrl`.

use serde::{Deserialize, Serialize};

use super::congestion::{Detector, Thresholds, Verdict};
use crate::rate::domain::{DomainController, Settings, Topology};
use crate::rate::{FlowIdentity, Message, PortId, Report};
use crate::units::{Bytes, Span, Time};

/// Minimum time between two polls of a port, even if the port reports a shorter period.
const POLL_MIN: Span = Span::from_millis(1);

/// Parameters of the controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Maximum time between polls of a port (BRF-73: 100 ms). If the port's period T is shorter, the maximum is T.
    pub poll: Span,
    /// The detector's thresholds.
    pub thresholds: Thresholds,
}

impl Params {
    /// Returns parameters with the thresholds of the switch's own detector.
    pub fn of(switch: &super::Params, settings: &Settings, mtu: Bytes) -> Params {
        Params { poll: settings.poll.unwrap_or(switch.poll), thresholds: Thresholds::of(switch, mtu) }
    }
}

/// The state of one port.
#[derive(Clone, Debug)]
struct Port {
    id: PortId,
    params: Params,
    detector: Detector,
    verdict: Verdict,
    congested: bool,
    poll_at: Time,
    poll_every: Span,
}

impl Port {
    fn new(id: PortId, params: Params, now: Time) -> Self {
        let poll_every = params.poll.max(POLL_MIN);
        Port {
            id,
            params,
            detector: Detector::default(),
            verdict: Verdict::default(),
            congested: false,
            poll_at: now,
            poll_every,
        }
    }
}

/// The controller.
#[derive(Clone, Debug, Default)]
pub struct Sdn {
    /// The ports, sorted by number.
    ports: Vec<Port>,
}

impl Sdn {
    /// Creates a controller of these ports. The first poll of every port is due at `now`.
    pub fn new(ports: impl IntoIterator<Item = (PortId, Params)>, now: Time) -> Self {
        let mut sdn = Sdn::default();
        for (port, params) in ports {
            sdn.attach(port, params, now);
        }
        sdn
    }

    /// Adds a port, whose first poll is due at `now`. If the port is known, its state is reset, because its switch has
    /// restarted with new counters.
    pub fn attach(&mut self, id: PortId, params: Params, now: Time) {
        let port = Port::new(id, params, now);
        match self.ports.binary_search_by_key(&id, |port| port.id) {
            Ok(at) => self.ports[at] = port,
            Err(at) => self.ports.insert(at, port),
        }
    }

    /// Removes a port and its state.
    pub fn detach(&mut self, id: PortId) {
        self.ports.retain(|port| port.id != id);
    }

    /// Polls the ports whose next poll is due.
    pub fn on_timer<K: FlowIdentity>(&mut self, now: Time, out: &mut Vec<(PortId, Message<K>)>) {
        for port in self.ports.iter_mut().filter(|port| port.poll_at <= now) {
            port.poll_at = now + port.poll_every;
            out.push((port.id, Message::Poll));
        }
    }

    /// Handles a message from port `from`.
    pub fn on_message<K: FlowIdentity>(
        &mut self,
        _now: Time,
        from: PortId,
        message: &Message<K>,
        out: &mut Vec<(PortId, Message<K>)>,
    ) {
        match message {
            Message::Report(report) => self.on_report(from, report, out),
            Message::FlowAdvertisement { .. } => {
                let others = self.ports.iter().filter(|port| port.id != from);
                out.extend(others.map(|port| (port.id, message.clone())));
            }
            Message::Poll | Message::Congestion { .. } | Message::Flow { .. } | Message::Grants { .. } => {}
        }
    }

    /// Returns the time at which [`on_timer`](Sdn::on_timer) must be called next.
    pub fn next_timer(&self) -> Time {
        self.ports.iter().map(|port| port.poll_at).min().unwrap_or(Time::NEVER)
    }

    /// Returns the last verdict on a port, for traces.
    pub fn verdict(&self, port: PortId) -> Option<Verdict> {
        self.ports.iter().find(|p| p.id == port).map(|p| p.verdict)
    }

    fn on_report<K: FlowIdentity>(
        &mut self,
        from: PortId,
        report: &Report,
        out: &mut Vec<(PortId, Message<K>)>,
    ) {
        // A report about another port is ignored.
        let Some(port) = self.ports.iter_mut().find(|port| port.id == from && report.port == from) else {
            return;
        };
        port.poll_every = report.period.min(port.params.poll).max(POLL_MIN);
        port.verdict = port.detector.observe(report, &port.params.thresholds);
        let kind = port.verdict.kind;
        if kind.is_some() || port.congested {
            out.push((from, Message::Congestion { kind, port: from }));
        }
        port.congested = kind.is_some();
    }
}

impl<K: FlowIdentity> DomainController<K> for Sdn {
    fn name(&self) -> &'static str {
        "brf"
    }

    fn on_message(
        &mut self,
        now: Time,
        from: PortId,
        message: &Message<K>,
        _network: &dyn Topology<K>,
        out: &mut Vec<(PortId, Message<K>)>,
    ) {
        Sdn::on_message(self, now, from, message, out);
    }

    fn on_timer(&mut self, now: Time, _network: &dyn Topology<K>, out: &mut Vec<(PortId, Message<K>)>) {
        Sdn::on_timer(self, now, out);
    }

    fn next_timer(&self) -> Time {
        Sdn::next_timer(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::{CongestionKind, FlowKey, Proto};
    use crate::units::Rate;

    fn ms(n: u64) -> Time {
        Time::ZERO + Span::from_millis(n)
    }

    fn sdn() -> Sdn {
        let thresholds = Thresholds::of(&super::super::Params::resolved(), Bytes::new(1500));
        let params = Params { poll: Span::from_millis(100), thresholds };
        Sdn::new([3, 1, 2, 1].map(|port| (port, params.clone())), Time::ZERO)
    }

    fn report(port: PortId, at: u64, queued: u64) -> Message {
        Message::Report(Report {
            port,
            at: ms(at),
            capacity: Rate::from_bits_per_sec(100_000_000),
            rated_share: Rate::from_bits_per_sec(98_000_000),
            rated_arrived: Bytes::ZERO,
            rated_departed: Bytes::ZERO,
            queued: Bytes::new(queued),
            departed: Bytes::ZERO,
            departed_packets: 0,
            rated_queued: Bytes::new(queued),
            rated_packets: ((queued / 1500) as u32, 1000),
            all_packets: (0, 3000),
            period: Span::from_millis(20),
        })
    }

    #[test]
    fn polls_each_port_at_its_own_period() {
        let (mut sdn, mut out) = (sdn(), Vec::new());
        sdn.on_timer(ms(0), &mut out);
        assert_eq!(out, [1, 2, 3].map(|id| (id, Message::Poll)));
        sdn.on_message(ms(2), 1, &report(1, 1, 0), &mut out);
        out.clear();
        sdn.on_timer(ms(100), &mut out);
        assert_eq!(out.len(), 3);
        assert_eq!(sdn.next_timer(), ms(120), "port 1 said that its T is 20 ms");
    }

    #[test]
    fn reports_congestion_while_it_lasts_and_its_end_once() {
        let (mut sdn, mut out) = (sdn(), Vec::new());
        for (i, queued) in [0, 100_000, 90_000, 10_000, 0].into_iter().enumerate() {
            sdn.on_message(ms(i as u64), 2, &report(2, i as u64, queued), &mut out);
        }
        let said = |kind| (2, Message::Congestion { kind, port: 2 });
        assert_eq!(out, [said(Some(CongestionKind::Queue)), said(Some(CongestionKind::Queue)), said(None)]);
    }

    #[test]
    fn a_port_reports_for_itself_only() {
        let (mut sdn, mut out) = (sdn(), Vec::new());
        sdn.on_message(ms(0), 2, &report(1, 0, 100_000), &mut out);
        sdn.on_message(ms(0), 9, &report(9, 0, 100_000), &mut out);
        assert!(out.is_empty());
    }

    #[test]
    fn ports_come_and_go() {
        let (mut sdn, mut out) = (sdn(), Vec::new());
        let params = Params {
            poll: Span::from_millis(10),
            thresholds: Thresholds::of(&super::super::Params::resolved(), Bytes::new(1500)),
        };
        sdn.on_timer(ms(0), &mut out);
        sdn.attach(7, params, ms(5));
        assert_eq!(sdn.next_timer(), ms(5), "a newcomer is polled at once");
        sdn.detach(1);
        out.clear();
        sdn.on_timer(ms(100), &mut out);
        assert_eq!(out.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [2, 3, 7]);
        sdn.on_message(ms(101), 1, &report(1, 101, 100_000), &mut out);
        assert_eq!(sdn.verdict(1), None);
    }

    #[test]
    fn advertisements_go_to_all_other_ports() {
        let (mut sdn, mut out) = (sdn(), Vec::new());
        let host = core::net::IpAddr::from([10, 0, 0, 1]);
        let key = FlowKey { saddr: host, daddr: host, sport: 1, dport: 2, proto: Proto::Tcp };
        let rate = Rate::from_bytes_per_sec(1000);
        let message =
            Message::FlowAdvertisement { key, rate, port: 2, seq: 1, valid_for: Span::from_millis(60) };
        sdn.on_message(ms(0), 2, &message, &mut out);
        assert_eq!(out, [(1, message.clone()), (3, message)]);
    }
}
