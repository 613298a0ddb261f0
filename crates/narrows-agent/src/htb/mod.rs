//! The queue of a controlled port: Linux's HTB (`sch_htb`), managed over rtnetlink without running `tc`.
//!
//! ```text
//! root 4e57:            default class :20, so that ARP, ICMP and other unclassified packets are not delayed
//!   :1   the link
//!     :10  rated flows (BRF-20)
//!       :11  mice, priority 0            leaf pfifo
//!       :12  elephants, priority 1       leaf pfifo
//!     :20  other TCP, priority 2         leaf pfifo
//!     :30  UDP, priority 3 (BRF-23)
//!       :100 to :11f  its queues         leaf pfifo
//! ```
//!
//! The data plane selects the queue of a UDP flow: it adds a hash of the flow to the number of UDP's first class. A
//! flow that sends too much fills only its own queue. Classes with lower priority values borrow first, so UDP borrows
//! only capacity that TCP leaves unused.
//!
//! To classify a packet, the data plane writes `major:minor` of the leaf into `skb->priority` ([`Htb::priority`]). The
//! major number is "NW" instead of the usual 1. It distinguishes the agent's HTB from an administrator's.
//!
//! **Units of rates.** HTB counts frames: the IP datagram and 14 bytes of Ethernet header. For a GSO packet, it counts
//! each segment with its headers.
//!
//! A [`Layout::overhead`] other than 14 needs a size table (`TCA_STAB`). Linux then counts a GSO packet as *one*
//! datagram (`__qdisc_calculate_pkt_len`). With segmentation offload, it counts 1448 bytes instead of 1500 for each
//! full segment (measured). The port then sends 3.5 % more than its rate.

mod encode;
mod layout;
mod qdisc;
mod rtnl;
mod stats;
mod watch;

use narrows_control::rate::{Class, LEAVES, Leaf};
use narrows_control::units::{Bytes, Rate};
use netlink_packet_route::tc::TcMessage;

pub use layout::{HANDLE, Layout};
pub use qdisc::{Previous, Remains};
pub use rtnl::{Error, Link, Rtnl};
pub use stats::LeafStats;
pub use watch::{LinkChanges, LinkWatch};

use layout::{CLASSES, Node, leaf_of, leaves, nodes_of, queue_limit, udp_queues};

/// The HTB of one port. Dropping this value removes the HTB and restores the previous qdisc.
#[derive(Debug)]
pub struct Htb {
    rtnl: Rtnl,
    index: u32,
    layout: Layout,
    remains: Remains,
    /// Present rate and ceiling of each of [`CLASSES`].
    rates: [(Rate, Rate); CLASSES.len()],
    keep: bool,
}

impl Htb {
    /// Installs HTB at the root of interface `index`. If an earlier agent's HTB has the same layout, this HTB is taken
    /// over with its queued packets. If it has another layout, it is replaced.
    ///
    /// # Errors
    /// If the kernel refuses, or if a foreign classful qdisc is at the root. The agent could not restore such a qdisc
    /// later.
    pub fn install(index: u32, layout: &Layout) -> Result<Htb, Error> {
        let mut rtnl = Rtnl::open()?;
        let found = qdisc::root(&mut rtnl, index)?;
        let ours = found.as_ref().is_some_and(Previous::is_ours);
        let previous = found.filter(|_| !ours);
        if let Some(other) = &previous
            && !other.can_be_restored()
        {
            let interface = rtnl.name(index)?;
            return Err(Error::Occupied { interface, kind: other.kind.clone(), handle: other.handle });
        }
        let mut htb = Htb {
            rtnl,
            index,
            layout: layout.clone(),
            remains: Remains { index, previous },
            rates: CLASSES.map(|node| node.start(layout.link)),
            keep: false,
        };
        if !ours || !htb.has_my_shape()? {
            if ours {
                qdisc::delete_root(&mut htb.rtnl, index)?;
            }
            let message = encode::root(index, layout);
            htb.rtnl.create(rtnl::Object::Qdisc, message, "HTB")?;
        }
        // From here on, an error drops `htb`, which removes the HTB.
        for at in 0..CLASSES.len() {
            htb.write(at)?;
        }
        for node in udp_queues() {
            let (rate, ceil) = node.start(layout.link);
            htb.create(&node, rate, ceil)?;
        }
        htb.set_limits(layout.limits)?;
        Ok(htb)
    }

    /// Returns the `skb->priority` that puts a packet into `leaf`. For UDP, the result is the priority of the first
    /// queue. The following values are the priorities of UDP's other queues.
    pub fn priority(leaf: Leaf) -> u32 {
        layout::handle(layout::first_minor(leaf))
    }

    /// Sets the rate and the ceiling of a class of the rate controller. Sends a request to the kernel only if a value
    /// has changed.
    pub fn set_class(&mut self, class: Class, rate: Rate, ceil: Rate) -> Result<(), Error> {
        for (at, rate, ceil) in nodes_of(class, rate, ceil) {
            self.change(at, rate, ceil)?;
        }
        Ok(())
    }

    /// Sets the rate of the link. The rates and ceilings of the other classes stay the same ([`Htb::set_class`]). A
    /// ceiling above the link's rate has no effect.
    pub fn set_link(&mut self, rate: Rate) -> Result<(), Error> {
        self.layout.link = rate;
        self.change(layout::LINK, rate, rate)
    }

    /// Sets the limits of the leaves' queues, in packets. Queued packets stay.
    pub fn set_limits(&mut self, limits: [u32; LEAVES]) -> Result<(), Error> {
        self.layout.limits = limits;
        for (leaf, node) in leaves() {
            let message = encode::pfifo(self.index, &node, queue_limit(leaf, limits[leaf as usize]));
            self.rtnl.create(rtnl::Object::Qdisc, message, "a leaf's queue")?;
        }
        Ok(())
    }

    /// Returns the present rate of the link.
    pub fn link(&self) -> Rate {
        self.layout.link
    }

    /// Reads the counters of all leaves by one dump. The result is in the order of [`Leaf`]. Returns `None` if the
    /// agent's HTB is gone, even if its interface still exists.
    pub fn stats(&mut self) -> Result<Option<[LeafStats; LEAVES]>, Error> {
        let mut leaves = [LeafStats::default(); LEAVES];
        let mut found = false;
        self.rtnl.each_class(self.index, |class, attributes| {
            if let Some(leaf) = leaf_of(class) {
                leaves[leaf as usize] += stats::of(attributes);
                found = true;
            }
        })?;
        Ok(found.then_some(leaves))
    }

    /// Returns the state that the guardian restores when this process ends.
    pub fn remains(&self) -> &Remains {
        &self.remains
    }

    /// Leaves HTB at the port when this value is dropped (pinned mode).
    pub fn keep(&mut self) {
        self.keep = true;
    }

    /// Drops this value without removing or restoring a qdisc. Call this if the HTB is already gone.
    pub fn forget(mut self) {
        self.keep = true;
    }

    /// Removes HTB and restores the previous qdisc.
    pub fn remove(mut self) -> Result<(), Error> {
        self.keep = true;
        self.remains.undo(&mut self.rtnl).map(drop)
    }

    fn change(&mut self, at: usize, rate: Rate, ceil: Rate) -> Result<(), Error> {
        let Some(known) = self.rates.get_mut(at) else { return Ok(()) };
        if std::mem::replace(known, (rate, ceil)) == (rate, ceil) {
            return Ok(());
        }
        self.write(at)
    }

    fn write(&mut self, at: usize) -> Result<(), Error> {
        let (Some(node), Some(&(rate, ceil))) = (CLASSES.get(at), self.rates.get(at)) else { return Ok(()) };
        self.create(node, rate, ceil)
    }

    fn create(&mut self, node: &Node, rate: Rate, ceil: Rate) -> Result<(), Error> {
        let message = encode::class(self.index, node, rate, ceil, self.frame());
        self.rtnl.create(rtnl::Object::Class, message, "an HTB class")
    }

    /// Returns the length of a full packet, as HTB counts it.
    fn frame(&self) -> Bytes {
        self.layout.mtu + Bytes::new(u64::from(self.layout.overhead))
    }

    /// Returns whether the HTB at the interface's root has the classes and the overhead of this layout.
    fn has_my_shape(&mut self) -> Result<bool, Error> {
        let shape = |m: &TcMessage| (u32::from(m.header.handle), u32::from(m.header.parent));
        let mut found: Vec<_> = self.rtnl.dump_classes(self.index)?.iter().map(shape).collect();
        let mut mine: Vec<_> = CLASSES.into_iter().chain(udp_queues()).map(|node| node.place()).collect();
        found.sort_unstable();
        mine.sort_unstable();
        Ok(found == mine && qdisc::root_overhead(&mut self.rtnl, self.index)? == Some(self.layout.overhead))
    }
}

impl Drop for Htb {
    fn drop(&mut self) {
        if !self.keep
            && let Err(error) = self.remains.undo(&mut self.rtnl)
        {
            tracing::warn!(interface = self.index, %error, "HTB was not removed");
        }
    }
}
