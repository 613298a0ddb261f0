//! The ports' records: the agent's decisions for a port, and the program's counters.

use core::sync::atomic::Ordering::{Relaxed, Release};

use libbpf_rs::MapHandle;
use narrows_control::feedback::code::RateCode;
use narrows_control::units::{Bytes, Rate, Span, Time};

use super::Error;
use super::layout::{
    GRANTS, LEAVES, MODE_CONTROLLED, MODE_POLICE_UDP, PORTS_MAX, RawBucket, RawPort, UNOPENED, WireFormat,
};
use super::memory::Memory;

/// The program's counters of a port. All increase, except `unconfirmed`.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// L3 bytes offered to each leaf.
    pub arrived_bytes: [u64; LEAVES],
    /// Packets offered to each leaf.
    pub arrived_packets: [u64; LEAVES],
    /// UDP packets that were dropped because they exceeded UDP's share at a port where UDP may not borrow.
    pub udp_policed: u64,
    /// Rates written into an existing option.
    pub stamped: u64,
    /// Rates inserted.
    pub inserted: u64,
    /// ACKs left unchanged because they carried a lower rate.
    pub lower_passed: u64,
    /// ACKs without room for the option.
    pub no_room: u64,
    /// ACKs left unchanged because they carry data and no rate.
    pub with_data: u64,
    /// Packets whose headers contradict each other.
    pub malformed: u64,
    /// Packets that needed a slot when none was free.
    pub no_slot: u64,
    /// Packets that needed a slot when too many flows were unconfirmed.
    pub refused: u64,
    /// SYNs.
    pub syns: u64,
    /// Packets that passed while the agent did not run.
    pub watchdog: u64,
    /// SYNs that were dropped because they exceeded their share.
    pub syn_policed: u64,
    /// Packets of known flows with unexpected sequence numbers or an unexpected interface. They change nothing.
    pub implausible: u64,
    /// Packets that may contain flows that the program does not see, by kind.
    pub unopened: [u64; UNOPENED],
    /// Flows of which packets of both sides were not seen yet.
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
    /// Records the time at which the agent last ran (CLOCK_MONOTONIC).
    pub fn beat(&self, now: Time) {
        self.0.heartbeat_ns.store(now.as_nanos(), Relaxed);
    }

    /// Sets the time without a heartbeat after which the program stops working.
    pub fn set_watchdog(&self, watchdog: Span) {
        self.0.watchdog_ns.store(watchdog.as_nanos(), Relaxed);
    }

    /// Sets the mode: `layout::MODE_CONTROLLED` and other flags.
    pub fn set_mode(&self, mode: u32) {
        self.0.mode.store(mode, Relaxed);
    }

    /// Whether the mode has `layout::MODE_CONTROLLED`.
    pub fn is_controlled(&self) -> bool {
        self.0.mode.load(Relaxed) & MODE_CONTROLLED != 0
    }

    /// Sets how packets carry rates.
    pub fn set_format(&self, format: WireFormat) {
        self.0.format.store(format as u32, Relaxed);
    }

    /// Sets HTB's class of each leaf, major << 16 | minor.
    pub fn set_priorities(&self, priorities: [u32; LEAVES]) {
        for (cell, value) in self.0.priority.iter().zip(priorities) {
            cell.store(value, Relaxed);
        }
    }

    /// Starts a tick: newcomers from now on get these grants (`newcomers_up_to`).
    pub fn set_grants(&self, grants: [RateCode; GRANTS]) {
        for (cell, grant) in self.0.grants.iter().zip(grants) {
            cell.store(grant.to_bits(), Relaxed);
        }
        self.0.tick.fetch_add(1, Release);
    }

    /// Sets how many unconfirmed flows may hold slots (BRF-104).
    pub fn set_unconfirmed_max(&self, flows: u32) {
        self.0.unconfirmed_max.store(flows, Relaxed);
    }

    /// Sets the token bucket of UDP (`layout::MODE_POLICE_UDP`), L3 bytes.
    pub fn set_udp(&self, rate: Rate, burst: Bytes) {
        self.0.udp.set(rate, burst);
    }

    /// Sets whether UDP is policed by its token bucket.
    pub fn set_udp_policing(&self, is_policed: bool) {
        let mode = self.0.mode.load(Relaxed) & !MODE_POLICE_UDP;
        self.set_mode(mode | if is_policed { MODE_POLICE_UDP } else { 0 });
    }

    /// Whether UDP is policed by its token bucket.
    pub fn polices_udp(&self) -> bool {
        self.0.mode.load(Relaxed) & MODE_POLICE_UDP != 0
    }

    /// Sets the token bucket of SYNs (`layout::MODE_POLICE_SYN`), L3 bytes. A second bucket of the same size is for
    /// repetitions of dropped SYNs.
    pub fn set_syn(&self, rate: Rate, burst: Bytes) {
        self.0.syn.set(rate, burst);
        self.0.syn_again.set(rate, burst);
    }

    /// The present counters.
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
            implausible,
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
            implausible,
            unopened: core::array::from_fn(|i| self.0.unopened[i].load(Relaxed)),
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
