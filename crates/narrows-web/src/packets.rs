//! Packets at a link, for the animation of its queue.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;

use narrows_plan::{CapturePlan, Plan};
use narrows_sim::capture::{Captured, Place, Tap};

/// A packet that reaches the link's queue, or the end of the link.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// Time in seconds.
    pub(crate) at: f64,
    /// Whether the packet is at the end of the link. If not, it is before the link's queue.
    pub(crate) is_through: bool,
    /// The flow's number in the results.
    pub(crate) flow: u32,
    /// Sequence number of the packet's first byte; 0 for UDP.
    pub(crate) seq: u32,
    /// L3 bytes.
    pub(crate) bytes: u16,
    /// Whether the packet has a congestion mark (CE).
    pub(crate) is_marked: bool,
}

/// The rows that the page has not read yet.
pub(crate) type Rows = Rc<RefCell<Vec<Row>>>;

/// Collects the packets of a link's queue.
///
/// A packet before the queue is at the end of the link that leads to the queue, or at the host that sends it.
pub(crate) struct Watch {
    link: u32,
    rows: Rows,
}

impl Watch {
    /// Changes a plan so that it captures the packets of this link, and returns their collector.
    pub(crate) fn start(plan: &mut Plan, link: u32, rows: Rows) -> Option<Watch> {
        let node = plan.links.get(link as usize)?.from;
        let before = plan.links.iter().enumerate().filter(|(_, other)| other.to == node);
        let mut links: Vec<u32> = before.map(|(i, _)| i as u32).collect();
        links.push(link);
        let hosts = plan.flows.iter().any(|flow| flow.from == node || flow.to == node);
        plan.capture = Some(CapturePlan {
            links,
            hosts: hosts.then_some(node).into_iter().collect(),
            snap: 128,
            qlog: false,
        });
        Some(Watch { link, rows })
    }
}

impl Tap for Watch {
    fn on_packet(&mut self, packet: &Captured<'_>) -> ControlFlow<()> {
        let is_through = match packet.place {
            Place::Link(link) => link == self.link,
            Place::Sent(_) => false,
            Place::Received(_) => return ControlFlow::Continue(()),
        };
        self.rows.borrow_mut().push(Row {
            at: packet.at.as_secs_f64(),
            is_through,
            flow: packet.flow.id,
            seq: packet.segment.map_or(0, |segment| segment.seq),
            bytes: packet.size,
            is_marked: packet.ecn == 3,
        });
        ControlFlow::Continue(())
    }
}
