//! A port's link: its capacity, configured or measured, and its division into the three classes.

use super::acks::Acks;
use super::capacity::{Estimator, Reading};
use super::params::Params;
use super::split::{Basis, Split, Splitter};
use super::udp::Udp;
use crate::rate::counters::rated;
use crate::rate::{Action, FlowIdentity, Leaf, PortCounters};
use crate::units::{Bytes, Rate, Span, Time};

/// The link of one port.
pub(super) struct Link {
    /// C_link, the capacity of the link.
    rate: Rate,
    /// The capacity that is assumed until the capacity is configured or measured.
    initial: Rate,
    /// `None` if the capacity is configured.
    estimator: Option<Estimator>,
    /// The time at which the link last became slower.
    slowed_at: Option<Time>,
    splitter: Splitter,
    pub(super) acks: Acks,
    pub(super) udp: Udp,
}

impl Link {
    pub(super) fn new(params: &Params) -> Self {
        Link {
            rate: Rate::ZERO,
            initial: params.capacity_initial,
            estimator: None,
            slowed_at: None,
            splitter: Splitter::new(params.eta, params.udp_share),
            acks: Acks::default(),
            udp: Udp::new(params),
        }
    }

    /// Returns C_link, the capacity of the link.
    pub(super) fn rate(&self) -> Rate {
        self.rate
    }

    /// Starts to measure the capacity, because it is not configured.
    pub(super) fn measure(&mut self, now: Time, params: &Params, mtu: Bytes) {
        self.estimator = Some(Estimator::new(now, params, mtu));
    }

    /// Returns whether the capacity is measured.
    pub(super) fn is_measured(&self) -> bool {
        self.estimator.is_some()
    }

    /// Updates the capacity from the configured value or from the estimate, and returns whether the capacity has
    /// changed.
    pub(super) fn refresh(&mut self, now: Time, configured: Option<Rate>) -> bool {
        let rate = match (configured, &self.estimator) {
            (Some(told), _) => told,
            (None, Some(estimator)) => estimator.capacity(),
            (None, None) => self.initial,
        };
        if rate == self.rate {
            return false;
        }
        if rate < self.rate {
            self.slowed_at = Some(now);
        }
        self.rate = rate;
        true
    }

    /// Returns whether the link became slower within the last `span`.
    pub(super) fn slowed_within(&self, now: Time, span: Span) -> bool {
        self.slowed_at.is_some_and(|at| now.since(at) < span)
    }

    /// Updates the estimate of the capacity, if the capacity is measured. Returns whether it is measured.
    pub(super) fn observe_capacity(&mut self, now: Time, port: &PortCounters, period: Span) -> bool {
        let Some(estimator) = &mut self.estimator else { return false };
        let [arrived, departed, queued] =
            [&port.arrived, &port.departed, &port.queued].map(|leaves| leaves.iter().copied().sum());
        estimator.observe(now, Reading { arrived, departed, queued }, period);
        true
    }

    /// Measures the traffic of TCP and UDP and, if `acks` is set, the rate of the ACKs for data of the reverse
    /// direction.
    pub(super) fn observe_traffic(&mut self, now: Time, port: &PortCounters, period: Span, acks: bool) {
        let other = port.arrived[Leaf::OtherTcp as usize];
        if acks {
            self.acks.observe(now, other, period);
        }
        self.udp.observe(now, rated(&port.arrived) + other, port.arrived[Leaf::Udp as usize], period);
    }

    /// Returns the shares of the classes.
    pub(super) fn shares(&self) -> Split {
        self.splitter.current()
    }

    /// Returns the share that the rated class would have with the weight `rated`.
    pub(super) fn rated_share_with(&self, rated: u64) -> Rate {
        self.splitter.rated_share_with(rated)
    }

    /// Updates the split between the classes, and returns whether the split has changed. The weights of rated flows and
    /// of other TCP are numbers of flows, or sums of subscribers' weights. UDP is active if a UDP packet arrived within
    /// the last `idle_after`.
    pub(super) fn split(
        &mut self,
        now: Time,
        period: Span,
        idle_after: Span,
        (rated, other): (u64, u64),
    ) -> bool {
        // UDP that may not borrow is policed to its share, so the class of UDP needs the whole share.
        let halvings = || self.udp_ceil().map_or(0, |_| self.udp.halvings(self.rate, period));
        let udp = self.udp.is_active(now, idle_after).then(halvings);
        let basis = Basis { link: self.rate, rated, other, udp, acks: self.acks.rate() };
        self.splitter.update(now, period, basis)
    }

    /// Adds the actions that set the class rates, if the rates have changed.
    pub(super) fn push<K: FlowIdentity>(&mut self, actions: &mut Vec<Action<K>>) {
        // Shaping a measured link to its own estimate would keep the estimate from rising.
        let ceil = if self.is_measured() { Rate::MAX } else { self.rate };
        self.splitter.push(ceil, self.udp_ceil(), actions);
    }

    /// Returns the rate up to which UDP may borrow, or `None` if UDP may not borrow (BRF-23). If the capacity is
    /// measured, UDP may not borrow, because the queue is in another device, which does not serve TCP first.
    pub(super) fn udp_ceil(&self) -> Option<Rate> {
        (self.udp.borrows() && !self.is_measured()).then(|| self.udp.ceil(self.rate))
    }
}
