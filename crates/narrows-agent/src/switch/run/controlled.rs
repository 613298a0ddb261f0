//! A controlled port with its queue.

use std::os::unix::net::UnixDatagram;

use narrows_control::rate::LEAVES;
use narrows_control::units::{Bytes, Rate, Time};

use super::pins::Life;
use crate::claim::claim;
use crate::config;
use crate::dataplane::layout::UNOPENED;
use crate::events;
use crate::guard::{Charge, Guardian};
use crate::htb::{self, Htb, LeafStats, Rtnl};
use crate::services::Failure;
use crate::switch::reports::Reported;
use crate::switch::shares::Framing;

/// HTB's link rate at a port that is not shaped. HTB always needs a link rate, so a high one is set.
const UNSHAPED: Rate = Rate::from_bits_per_sec(100_000_000_000);

/// A controlled port, whose interface may be missing for some time.
pub(super) struct Controlled {
    pub(super) interface: String,
    /// `None` while the interface does not exist.
    queue: Option<Queue>,
    layout: htb::Layout,
    /// The configured MTU, if it overrides the interface's MTU.
    mtu: Option<Bytes>,
    life: Life,
    pub(super) framing: Framing,
    pub(super) stats: [LeafStats; LEAVES],
    /// Counters of earlier HTBs of this port.
    earlier: [LeafStats; LEAVES],
    /// The controller's rate and ceiling for each class, L3.
    pub(super) wanted: [(Rate, Rate); 3],
    /// Whether `wanted` has changed since HTB was last updated.
    pub(super) changed: bool,
    pub(super) congestion: &'static str,
    pub(super) repetitions: events::Repetitions,
    /// L3 capacity of the link for the controller. `None`: the controller measures it.
    pub(super) capacity: Option<Rate>,
    /// Whether HTB limits the port to a rate.
    pub(super) shaped: bool,
    /// The share of the link that SYNs may use.
    pub(super) syn_share: f64,
    /// Number of refused new flows so far, and when the last one was refused.
    pub(super) refused: (u64, Option<Time>),
    /// The designated packets that were passed to the controller.
    pub(super) reported: Reported,
    /// For each kind of tunnel, whether a warning about it was already logged.
    pub(super) unopened: [bool; UNOPENED],
}

struct Queue {
    htb: Htb,
    /// The claim to the interface.
    _claim: UnixDatagram,
}

impl Controlled {
    /// Returns the port without a queue. `mtu` is the interface's MTU.
    pub(super) fn new(port: &config::Port, mtu: Bytes, life: Life) -> Controlled {
        let known = match port.capacity {
            config::Capacity::Known(rate) => Some(rate),
            config::Capacity::Measured => None,
        };
        let mtu = port.mtu.unwrap_or(mtu);
        // HTB counts the encapsulation as a part of the packet. The controller does not count it.
        let framing = Framing { mtu: mtu.get(), overhead: u64::from(port.overhead + port.encapsulation) };
        let layout = htb::Layout {
            limits: [port.limit; LEAVES],
            overhead: port.overhead,
            ..htb::Layout::new(known.or(port.shape).unwrap_or(UNSHAPED), mtu)
        };
        Controlled {
            interface: port.interface.clone(),
            queue: None,
            layout,
            mtu: port.mtu,
            life,
            framing,
            stats: [LeafStats::default(); LEAVES],
            earlier: [LeafStats::default(); LEAVES],
            wanted: [(Rate::ZERO, Rate::ZERO); 3],
            changed: false,
            congestion: "none",
            repetitions: Default::default(),
            capacity: known.map(|rate| framing.l3(rate)),
            shaped: known.is_some() || port.shape.is_some(),
            syn_share: port.syn_share,
            refused: (0, None),
            reported: Reported::default(),
            unopened: [false; UNOPENED],
        }
    }

    /// Builds the queue at the interface.
    pub(super) fn take(
        &mut self,
        link: &htb::Link,
        rtnl: &mut Rtnl,
        guardian: &mut Guardian,
    ) -> Result<(), Failure> {
        let claim = claim(link)?;
        let mtu = self.mtu.unwrap_or(Bytes::new(u64::from(link.mtu)));
        // Register the queue with the guardian before it exists, so that no queue is missed. The guardian ignores a
        // missing queue. With a pinned data plane, queues must outlive the agent, so do not register them.
        if self.life == Life::Process {
            guardian.charge(&Charge::Htb(htb::Remains::before(rtnl, link.index)?))?;
        }
        (self.layout.mtu, self.framing.mtu) = (mtu, mtu.get());
        let mut htb = Htb::install(link.index, &self.layout)?;
        if self.life == Life::Always {
            htb.keep();
        }
        self.capacity = self.capacity.map(|_| self.framing.l3(self.layout.link));
        self.queue = Some(Queue { htb, _claim: claim });
        Ok(())
    }

    /// Removes the queue again. Call this if a step after [`take`](Controlled::take) has failed.
    pub(super) fn give_back(&mut self) {
        self.queue = None;
    }

    /// Removes the queue from an interface that still exists.
    pub(super) fn release(&mut self) {
        if let Some(queue) = self.queue.take()
            && let Err(error) = queue.htb.remove()
        {
            tracing::warn!(port = self.interface, %error, "HTB was not removed");
        }
    }

    /// Records that the queue is gone. The queue's counts are kept, so that the port's counters never decrease.
    pub(super) fn lose(&mut self) {
        if let Some(queue) = self.queue.take() {
            queue.htb.forget();
        }
        self.earlier = self.stats.map(|stats| LeafStats { queued_packets: 0, queued_bytes: 0, ..stats });
        self.stats = self.earlier;
    }

    /// Reads the queue's counters. Returns `false` if the queue has vanished. If the port has no interface, there is no
    /// queue to read, and the result is `true`.
    pub(super) fn refresh(&mut self) -> Result<bool, htb::Error> {
        let Some(queue) = &mut self.queue else { return Ok(true) };
        let Some(stats) = queue.htb.stats()? else { return Ok(false) };
        for ((shown, read), earlier) in self.stats.iter_mut().zip(stats).zip(self.earlier) {
            *shown = read.after(earlier);
        }
        Ok(true)
    }

    /// Sets the limit of each leaf's queue, in packets. Queued packets stay.
    pub(super) fn set_limit(&mut self, limit: u32) -> Result<(), htb::Error> {
        self.layout.limits = [limit; LEAVES];
        self.queue.as_mut().map_or(Ok(()), |queue| queue.htb.set_limits(self.layout.limits))
    }

    /// Returns the rate of the link.
    pub(super) fn link(&self) -> Rate {
        self.layout.link
    }

    /// Sets the rate of the link, and adapts the rates of the classes to it.
    pub(super) fn set_link(&mut self, rate: Rate) -> Result<(), htb::Error> {
        self.layout.link = rate;
        if let Some(queue) = &mut self.queue {
            queue.htb.set_link(rate)?;
        }
        if self.capacity.is_some() {
            self.capacity = Some(self.framing.l3(rate));
        }
        self.give_classes()
    }

    /// Sets the rates of HTB's classes. If their sum exceeds the link's rate, they are reduced in proportion, because
    /// HTB gives a class its own rate regardless of its parent's rate. Without this reduction, the classes would exceed
    /// a reduced link rate until the controller uses the new link rate.
    pub(super) fn give_classes(&mut self) -> Result<(), htb::Error> {
        self.changed = false;
        let Some(queue) = &mut self.queue else { return Ok(()) };
        for (class, rate, ceil) in self.framing.classes(&self.wanted, self.layout.link) {
            queue.htb.set_class(class, rate, ceil)?;
        }
        Ok(())
    }
}
