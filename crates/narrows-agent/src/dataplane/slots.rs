//! The flow table. The program takes slots, and only the agent frees them.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use narrows_control::feedback::code::RateCode;
use narrows_control::rate::Leaf;
use narrows_control::units::{Span, Time};

use super::layout::{self, Key};
use super::memory::{Memory, Shared, bytes, field};
use super::ports::Ports;
use super::skeleton::types::{nrw_slot, nrw_way};
use super::{Error, bpf};

/// Returns the number of the slot that the program announces in `bell`. If an announcement is lost, the agent finds the
/// flow one or more ticks later.
pub fn announced_slot(bell: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(bell.get(..4)?.try_into().ok()?))
}

/// The slot of one flow, with the program's observations and the agent's decisions. Counters wrap, so use only
/// differences between two readings.
pub struct Slot<'a>(&'a Shared<nrw_slot>);

macro_rules! seen {
    ($($(#[$doc:meta])* $name:ident: $type:ty),* $(,)?) => {
        impl Slot<'_> {
            $($(#[$doc])* pub fn $name(&self) -> $type { field!(self.0, $name).load(Relaxed) })*
        }
    };
}

seen! {
    /// Returns the L3 bytes of packets with payload.
    bytes: u64,
    /// Returns how many payload bytes the sequence numbers skipped, because they were lost upstream of the switch
    /// (BRF-100). Wraps.
    missing: u32,
    /// Returns the time of the last payload in us, or 0 before the first payload. Wraps.
    data_us: u32,
    /// Returns the number of samples of the RTT between switch and receiver. Wraps.
    rtt_receiver_n: u16,
    /// Returns the number of samples of the RTT between switch and sender. Wraps.
    rtt_sender_n: u16,
    /// Returns the number of data packets marked "not limited by the application". Wraps.
    marked_unlimited: u16,
    /// Returns the number of data packets marked "limited by the application". Wraps.
    marked_limited: u16,
    /// Returns the number of ACKs that arrived with another switch's rate. Wraps.
    passed_n: u16,
    /// Returns the mark (`skb->mark`) of the first packet of the data direction.
    mark: u32,
    /// Returns the VLAN of the data at its port, or 0 if there is none.
    vlan: u32,
    /// Returns the end of the flow's data that passed here.
    seq_next: u32,
    /// Returns the highest acknowledgement number in packets of the data direction.
    ack_sent: u32,
    /// Returns the number of the controlled port.
    port: u8,
    /// Returns the leaf that the flow's packets join.
    leaf: u8,
}

impl Slot<'_> {
    /// Returns the flags of the slot: `layout::LIVE` and others.
    pub fn flags(&self) -> u32 {
        field!(self.0, flags.0).load(Relaxed)
    }

    /// Returns whether the slot is in use and complete.
    pub fn is_live(&self) -> bool {
        // The program sets LIVE last, so the earlier stores are visible, too.
        field!(self.0, flags.0).load(Acquire) & layout::LIVE != 0
    }

    /// Returns all words of the slot, for tests that compare slots.
    pub fn image(&self) -> Vec<u64> {
        self.0.words().iter().map(|word| word.load(Relaxed)).collect()
    }

    /// Returns the flow's key, which is valid while the slot is live.
    pub fn key(&self) -> Key {
        field!(self.0, key).read()
    }

    /// Returns the time of the last packet in any direction (CLOCK_MONOTONIC).
    pub fn last(&self) -> Time {
        Time::from_nanos(field!(self.0, last_ns).load(Relaxed))
    }

    /// Returns the last RTT sample from the switch to the receiver and back.
    pub fn rtt_receiver(&self) -> Option<Span> {
        sample(field!(self.0, rtt_receiver_us).load(Relaxed))
    }

    /// Returns the last RTT sample from the switch to the sender and back.
    pub fn rtt_sender(&self) -> Option<Span> {
        sample(field!(self.0, rtt_sender_us).load(Relaxed))
    }

    /// Returns the last rate of another switch in an ACK that arrived here.
    pub fn passed(&self) -> RateCode {
        RateCode::from_bits(field!(self.0, passed_code).load(Relaxed))
    }

    /// Returns the code that is written into ACKs.
    pub fn code(&self) -> RateCode {
        RateCode::from_bits(field!(self.0, code).load(Relaxed))
    }

    /// Sets the code to write into ACKs. `RateCode::UNASSIGNED` means none.
    pub fn set_code(&self, code: RateCode) {
        field!(self.0, code).store(code.to_bits(), Relaxed);
    }

    /// Sets the leaf of the flow's packets.
    pub fn set_leaf(&self, leaf: Leaf) {
        field!(self.0, leaf).store(leaf as u8, Relaxed);
    }

    /// Sets the flow's RTT. The program needs it for the once-per-RTT gate, and to tell a pause of the application from
    /// a delay of the path.
    pub fn set_rtt(&self, rtt: Span) {
        field!(self.0, rtt_us).store(u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX), Relaxed);
    }

    /// Confirms a flow whose ACKs take another path (BRF-63).
    pub fn confirm(&self, ports: &Ports) {
        let old = field!(self.0, flags.0).fetch_or(layout::CONFIRMED, Relaxed);
        if old & (layout::LIVE | layout::CONFIRMED) == layout::LIVE
            && let Some(port) = ports.get(self.port())
        {
            port.forget_unconfirmed();
        }
    }
}

fn sample(us: u32) -> Option<Span> {
    (us != 0).then(|| Span::from_micros(u64::from(us)))
}

/// The way from this switch to a flow's source: an interface of this host, and the MAC addresses of frames.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// Index of the interface.
    pub ifindex: u32,
    /// Destination address of frames.
    pub to: [u8; 6],
    /// Source address of frames.
    pub from: [u8; 6],
}

/// All slots of the flow table.
pub struct Slots {
    memory: Memory<nrw_slot>,
    ways: Memory<nrw_way>,
    flows: MapHandle,
    free: MapHandle,
    /// Slots that were freed since the last [`recycle`](Slots::recycle). A run of the program may still use them.
    resting: Vec<u32>,
}

impl Slots {
    pub(super) fn new(
        slots: &MapHandle,
        ways: &MapHandle,
        flows: MapHandle,
        free: MapHandle,
    ) -> Result<Self, Error> {
        let memory = Memory::new(slots, slots.max_entries() as usize)?;
        let ways = Memory::new(ways, ways.max_entries() as usize)?;
        Ok(Slots { memory, ways, flows, free, resting: Vec::new() })
    }

    pub(super) fn fill_queue(&mut self) -> Result<(), Error> {
        (0..self.len()).try_for_each(|index| self.push(index))
    }

    /// Repairs the queue of free slots after an agent has died. Adds the slots that are neither in use nor in the
    /// queue. The repair takes about a millisecond. During this time, new flows get no slot.
    pub(super) fn reclaim(&mut self) -> Result<(), Error> {
        let mut queued = vec![false; self.len() as usize];
        while let Some(bytes) = self.free.lookup_and_delete(&[]).map_err(bpf("take a free slot"))? {
            let index = bytes.get(..4).and_then(|b| b.try_into().ok()).map(u32::from_ne_bytes);
            if let Some(place) = index.and_then(|index| queued.get_mut(index as usize)) {
                *place = true;
            }
        }
        // If a run of the program took a slot before this pause, it publishes the slot during the pause.
        std::thread::sleep(std::time::Duration::from_millis(1));
        for (index, queued) in (0..).zip(queued) {
            let Some(slot) = self.get(index).filter(|slot| !slot.is_live()) else { continue };
            if !queued {
                slot.0.clear();
            }
            self.push(index)?;
        }
        Ok(())
    }

    fn push(&self, index: u32) -> Result<(), Error> {
        self.free.update(&[], &index.to_ne_bytes(), MapFlags::ANY).map_err(bpf("free a slot"))
    }

    /// Returns the number of slots, both free and in use.
    pub fn len(&self) -> u32 {
        self.memory.as_slice().len() as u32
    }

    /// Returns whether the table has no slots, which never happens.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the slot with this number.
    pub fn get(&self, index: u32) -> Option<Slot<'_>> {
        self.memory.as_slice().get(index as usize).map(Slot)
    }

    /// Returns the way to the source of the slot's flow. Returns `None` if no packet of the other direction was seen, or
    /// if such packets have VLAN tags.
    pub fn way(&self, index: u32) -> Option<Way> {
        let way = self.ways.as_slice().get(index as usize)?.read();
        (way.ifindex != 0).then_some(Way { ifindex: way.ifindex, to: way.to, from: way.from })
    }

    /// Returns the slots in use, each with its number.
    pub fn live(&self) -> impl Iterator<Item = (u32, Slot<'_>)> {
        (0..).zip(self.memory.as_slice()).map(|(i, raw)| (i, Slot(raw))).filter(|(_, slot)| slot.is_live())
    }

    /// Returns the number of a flow's slot, if the flow has one.
    pub fn find(&self, key: &Key) -> Result<Option<u32>, Error> {
        let found = self.flows.lookup(bytes(key), MapFlags::ANY).map_err(bpf("look a flow up"))?;
        Ok(found.and_then(|bytes| Some(u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?))))
    }

    /// Removes a flow's key from the table, and marks the flow's slot as unused. After the next
    /// [`recycle`](Slots::recycle), the program may use the slot again.
    pub fn free(&mut self, index: u32, ports: &Ports) -> Result<(), Error> {
        let Some(slot) = self.get(index).filter(Slot::is_live) else { return Ok(()) };
        slot.confirm(ports);
        match self.flows.delete(bytes(&slot.key())) {
            Err(error) if error.kind() != libbpf_rs::ErrorKind::NotFound => {
                return Err(bpf("remove a flow from the table")(error));
            }
            _ => {}
        }
        field!(slot.0, flags.0).store(0, Relaxed);
        self.resting.push(index);
        Ok(())
    }

    /// Clears the slots that were freed since the last call, and gives them to the program. Call this once per tick,
    /// before the first `free`. A run of the program is shorter than a tick, so no run still uses these slots.
    pub fn recycle(&mut self) -> Result<(), Error> {
        for index in core::mem::take(&mut self.resting) {
            if let Some(slot) = self.get(index) {
                slot.0.clear();
            }
            if let Some(way) = self.ways.as_slice().get(index as usize) {
                way.clear();
            }
            self.push(index)?;
        }
        Ok(())
    }
}
