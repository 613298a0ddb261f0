//! Implements [`FlowTable`] by the eBPF program's maps.

use std::io;

use narrows_control::rate::FlowKey;
use narrows_control::units::Span;

use super::table::{Flags, FlowTable, Head, Orders, Tags, Tail};
use crate::dataplane::program::Switch;
use crate::dataplane::slots::Slot;

impl FlowTable for Switch {
    fn capacity(&self) -> u32 {
        self.slots.len()
    }

    fn head(&self, slot: u32) -> Head {
        self.slots.get(slot).map_or_else(Head::default, |slot| Head {
            live: slot.is_live(),
            flags: Flags(slot.flags()),
            bytes: slot.bytes(),
            missing: slot.missing(),
        })
    }

    fn tail(&self, slot: u32) -> Tail {
        self.slots.get(slot).map_or_else(Tail::default, |slot: Slot<'_>| {
            let us = |half: Option<Span>| half.map_or(0, |half| half.as_micros() as u32);
            Tail {
                last_ns: slot.last().as_nanos(),
                rtt_receiver: (us(slot.rtt_receiver()), slot.rtt_receiver_n()),
                rtt_sender: (us(slot.rtt_sender()), slot.rtt_sender_n()),
                marked_unlimited: slot.marked_unlimited(),
                marked_limited: slot.marked_limited(),
                passed: (slot.passed().to_bits(), slot.passed_n()),
                code: slot.code().to_bits(),
            }
        })
    }

    fn owner(&self, slot: u32) -> Option<(FlowKey, usize)> {
        self.slots.get(slot).map(|slot| (slot.key().flow(), usize::from(slot.port())))
    }

    fn tags(&self, slot: u32) -> Tags {
        let tags =
            |slot: Slot<'_>| Tags { vlan: u16::try_from(slot.vlan()).unwrap_or_default(), mark: slot.mark() };
        self.slots.get(slot).map(tags).unwrap_or_default()
    }

    fn order(&self, slot: u32, orders: Orders) {
        if let Some(slot) = self.slots.get(slot) {
            slot.set_code(orders.code);
            slot.set_leaf(orders.leaf);
            slot.set_rtt(Span::from_micros(u64::from(orders.rtt_us)));
        }
    }

    fn confirm(&self, slot: u32) {
        if let Some(slot) = self.slots.get(slot) {
            slot.confirm(&self.ports);
        }
    }

    fn release(&mut self, slot: u32) -> io::Result<()> {
        self.slots.free(slot, &self.ports).map_err(io::Error::other)
    }

    fn begin_tick(&mut self) -> io::Result<()> {
        self.slots.recycle().map_err(io::Error::other)
    }
}
