//! The ports' records: what the agent decided for a port, and what the program counted there.

use core::sync::atomic::Ordering::{Relaxed, Release};

use libbpf_rs::MapHandle;
use narrows_control::feedback::code::RateCode;
use narrows_control::units::{Bytes, Rate, Time};

use super::Error;
use super::layout::{GRANTS, LEAVES, MODE_CONTROLLED, PORTS_MAX, RawBucket, RawPort, WireFormat};
use super::memory::Memory;

/// What the program counted at a port. All grow, but for `unconfirmed`.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// L3 bytes offered to each leaf.
    pub arrived_bytes: [u64; LEAVES],
    /// The same in packets.
    pub arrived_packets: [u64; LEAVES],
    /// UDP packets that did not conform.
    pub udp_policed: u64,
    /// Rates written over an option.
    pub stamped: u64,
    /// Rates inserted.
    pub inserted: u64,
    /// ACKs left alone because they carried less.
    pub lower_passed: u64,
    /// ACKs without room.
    pub no_room: u64,
    /// ACKs left alone because they carry data and no rate.
    pub with_data: u64,
    /// Packets whose headers contradict themselves.
    pub malformed: u64,
    /// Packets that asked for a slot when none was free.
    pub no_slot: u64,
    /// The same, when too many flows were unconfirmed.
    pub refused: u64,
    /// SYNs.
    pub syns: u64,
    /// Packets that passed while the agent was silent.
    pub watchdog: u64,
    /// SYNs that did not conform.
    pub syn_policed: u64,
    /// Flows not yet heard from both sides.
    pub unconfirmed: u32,
}

impl RawBucket {
    fn set(&self, rate: Rate, burst: Bytes) {
        self.rate.store(rate.as_bytes_per_sec(), Relaxed);
        self.burst.store(burst.get(), Relaxed);
    }
}

/// One port.
pub struct Port<'a>(&'a RawPort);

impl Port<'_> {
    /// The agent is alive (CLOCK_MONOTONIC).
    pub fn beat(&self, now: Time) {
        self.0.heartbeat_ns.store(now.as_nanos(), Relaxed);
    }

    /// Sets the mode, `layout::MODE_CONTROLLED` and its like.
    pub fn set_mode(&self, mode: u32) {
        self.0.mode.store(mode, Relaxed);
    }

    /// The mode has `layout::MODE_CONTROLLED`.
    pub fn is_controlled(&self) -> bool {
        self.0.mode.load(Relaxed) & MODE_CONTROLLED != 0
    }

    /// Sets how rates travel.
    pub fn set_format(&self, format: WireFormat) {
        self.0.format.store(format as u32, Relaxed);
    }

    /// Sets HTB's class of each leaf, major << 16 | minor.
    pub fn set_priorities(&self, priorities: [u32; LEAVES]) {
        for (cell, value) in self.0.priority.iter().zip(priorities) {
            cell.store(value, Relaxed);
        }
    }

    /// Begins a tick: the k-th newcomer from now on is given `grants[k]`, those after the last one the last.
    pub fn set_grants(&self, grants: [RateCode; GRANTS]) {
        for (cell, grant) in self.0.grants.iter().zip(grants) {
            cell.store(grant.to_bits(), Relaxed);
        }
        self.0.tick.fetch_add(1, Release);
    }

    /// Sets how many flows may hold slots without having been heard from both sides (BRF-104).
    pub fn set_unconfirmed_max(&self, flows: u32) {
        self.0.unconfirmed_max.store(flows, Relaxed);
    }

    /// Sets UDP's policer (`layout::MODE_POLICE_UDP`), L3 bytes.
    pub fn set_udp(&self, rate: Rate, burst: Bytes) {
        self.0.udp.set(rate, burst);
    }

    /// Sets the policer of SYNs (`layout::MODE_POLICE_SYN`), L3 bytes. SYNs that were dropped and come again have as much once
    /// more.
    pub fn set_syn(&self, rate: Rate, burst: Bytes) {
        self.0.syn.set(rate, burst);
        self.0.syn_again.set(rate, burst);
    }

    /// What was counted so far.
    pub fn counters(&self) -> Counters {
        let [
            udp_policed,
            stamped,
            inserted,
            lower_passed,
            no_room,
            with_data,
            malformed,
            no_slot,
            refused,
            syns,
            watchdog,
            syn_policed,
        ] = core::array::from_fn(|i| self.0.counters[i].load(Relaxed));
        Counters {
            arrived_bytes: core::array::from_fn(|i| self.0.arrived_bytes[i].load(Relaxed)),
            arrived_packets: core::array::from_fn(|i| self.0.arrived_packets[i].load(Relaxed)),
            udp_policed,
            stamped,
            inserted,
            lower_passed,
            no_room,
            with_data,
            malformed,
            no_slot,
            refused,
            syns,
            watchdog,
            syn_policed,
            unconfirmed: self.0.unconfirmed.load(Relaxed),
        }
    }

    pub(super) fn forget_unconfirmed(&self) {
        self.0.unconfirmed.fetch_sub(1, Relaxed);
    }
}

/// All ports.
pub struct Ports(Memory<RawPort>);

impl Ports {
    pub(super) fn new(map: &MapHandle) -> Result<Self, Error> {
        Memory::new(map, PORTS_MAX).map(Ports)
    }

    /// The port with this number.
    pub fn get(&self, port: u8) -> Option<Port<'_>> {
        self.0.as_slice().get(usize::from(port)).map(Port)
    }
}
