//! The queue of a controlled port: Linux's HTB (`sch_htb`), kept by rtnetlink without a fork of `tc`.
//!
//! ```text
//! root 4e57:            default class :20, so that ARP, ICMP and what else nobody classifies is not held up
//!   :1   the link
//!     :10  rated flows (BRF-20)
//!       :11  mice, priority 0            leaf pfifo
//!       :12  elephants, priority 1       leaf pfifo
//!     :20  other TCP, priority 2         leaf pfifo
//!     :30  UDP, priority 3, ceil = rate  leaf pfifo (BRF-23)
//! ```
//!
//! Who goes where is decided by the data plane, which writes `major:minor` of the leaf into `skb->priority`
//! ([`Htb::priority`]). The major number is "NW", not the customary 1, so that remains can be told from what an
//! administrator set up.
//!
//! **What a rate counts.** HTB counts frames: the IP datagram and 14 bytes of Ethernet header, of a GSO packet each
//! segment with its headers. [`Layout::overhead`] other than 14 is a size table (`TCA_STAB`), with which Linux counts
//! a GSO packet as *one* datagram (`__qdisc_calculate_pkt_len`): on a port with segmentation offload it counts 1448
//! bytes in place of 1500 for each full segment (measured), and 3.5 % more leave than the rate says.

mod encode;
mod layout;
mod qdisc;
mod rtnl;
mod stats;

use narrows_control::rate::{Class, LEAVES, Leaf};
use narrows_control::units::{Bytes, Rate};
use netlink_packet_route::tc::TcMessage;

pub use layout::{HANDLE, Layout};
pub use qdisc::{Previous, Remains};
pub use rtnl::{Error, Link, Rtnl};
pub use stats::LeafStats;

use layout::{CLASSES, Node, leaf_node, nodes_of};

/// HTB at one port. Dropping it removes it from the port and puts back what was there.
#[derive(Debug)]
pub struct Htb {
    rtnl: Rtnl,
    index: u32,
    layout: Layout,
    remains: Remains,
    /// Rate and ceiling of each of [`CLASSES`] as the kernel has them.
    rates: [(Rate, Rate); CLASSES.len()],
    keep: bool,
}

impl Htb {
    /// Puts HTB at the root of interface `index`. An HTB of ours that is there already, of the same layout, is
    /// taken over with what waits in it; one of another layout is replaced.
    ///
    /// # Errors
    /// When the kernel refuses, or somebody else's classful queue is at the root: it could not be put back.
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
        // From here on an error drops `htb`, which cleans up.
        for at in 0..CLASSES.len() {
            htb.write(at)?;
        }
        for (leaf, limit) in layout.limits.iter().enumerate() {
            let message = encode::pfifo(index, leaf_node(leaf), *limit);
            htb.rtnl.create(rtnl::Object::Qdisc, message, "a leaf's queue")?;
        }
        Ok(htb)
    }

    /// What a packet's `skb->priority` has to be to get into `leaf`.
    pub fn priority(leaf: Leaf) -> u32 {
        layout::handle(leaf_node(leaf as usize).minor)
    }

    /// Gives a class this rate and ceiling. Writes nothing when it has them.
    pub fn set_class(&mut self, class: Class, rate: Rate, ceil: Rate) -> Result<(), Error> {
        for (at, rate, ceil) in nodes_of(class, rate, ceil) {
            self.change(at, rate, ceil)?;
        }
        Ok(())
    }

    /// The link has this rate now. Ceilings of the classes above it stop to matter; classes are told by
    /// [`Htb::set_class`].
    pub fn set_link(&mut self, rate: Rate) -> Result<(), Error> {
        self.layout.link = rate;
        self.change(layout::LINK, rate, rate)
    }

    /// The rate of the link as HTB has it.
    pub fn link(&self) -> Rate {
        self.layout.link
    }

    /// Counters and queue of each leaf, in the order of [`Leaf`]. One dump, no fork.
    pub fn stats(&mut self) -> Result<[LeafStats; LEAVES], Error> {
        let mut leaves = [LeafStats::default(); LEAVES];
        for message in self.rtnl.dump_classes(self.index)? {
            for (leaf, stats) in leaves.iter_mut().enumerate() {
                if u32::from(message.header.handle) == layout::handle(leaf_node(leaf).minor) {
                    *stats = stats::of(&message);
                }
            }
        }
        Ok(leaves)
    }

    /// What has to be undone when this process is gone; for the guardian.
    pub fn remains(&self) -> &Remains {
        &self.remains
    }

    /// Leaves HTB at the port when this value is dropped (pinned mode).
    pub fn keep(&mut self) {
        self.keep = true;
    }

    /// Takes HTB away and puts back what was there.
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
        let message = encode::class(self.index, node, rate, ceil, self.frame());
        self.rtnl.create(rtnl::Object::Class, message, "an HTB class")
    }

    /// A full packet as HTB counts it.
    fn frame(&self) -> Bytes {
        self.layout.mtu + Bytes::new(u64::from(self.layout.overhead))
    }

    /// Whether the HTB of ours at the root has the classes and the size table that this one would have.
    fn has_my_shape(&mut self) -> Result<bool, Error> {
        let shape = |m: &TcMessage| (u32::from(m.header.handle), u32::from(m.header.parent));
        let mut found: Vec<_> = self.rtnl.dump_classes(self.index)?.iter().map(shape).collect();
        let mut mine: Vec<_> = CLASSES.iter().map(Node::place).collect();
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
