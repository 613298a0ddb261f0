//! The ports' records in shared memory. A record holds the agent's decisions and the program's counters.

use core::sync::atomic::Ordering::{Relaxed, Release};

use libbpf_rs::{MapCore, MapHandle};
use narrows_control::feedback::code::RateCode;
use narrows_control::units::{Bytes, Rate, Span, Time};

use super::Error;
use super::layout::{GRANTS, LEAVES, MODE_CONTROLLED, MODE_POLICE_UDP, UNOPENED, WireFormat};
use super::memory::{Memory, Shared, field};
use super::skeleton::types::{nrw_bucket, nrw_port};

/// Defines counters as in `struct nrw_port`, and the function that reads them.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident: $type:ty),* $(,)?) => {
        /// The program's counters of a port. All counters except `unconfirmed` only increase.
        #[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            /// L3 bytes offered to each leaf.
            pub arrived_bytes: [u64; LEAVES],
            /// Packets offered to each leaf.
            pub arrived_packets: [u64; LEAVES],
            /// Packets that may contain flows that the program does not see, by kind.
            pub unopened: [u64; UNOPENED],
            $($(#[$doc])* pub $name: $type,)*
        }

        impl Counters {
            fn read(port: &Shared<nrw_port>) -> Self {
                Counters {
                    arrived_bytes: core::array::from_fn(|i| field!(port, arrived_bytes[i]).load(Relaxed)),
                    arrived_packets: core::array::from_fn(|i| field!(port, arrived_packets[i]).load(Relaxed)),
                    unopened: core::array::from_fn(|i| field!(port, unopened[i]).load(Relaxed)),
                    $($name: field!(port, $name).load(Relaxed),)*
                }
            }
        }
    };
}

counters! {
    /// UDP packets that UDP's token bucket dropped, because they exceeded UDP's share.
    udp_policed: u64,
    /// Rates written into an existing option.
    stamped: u64,
    /// Rates inserted together with the option.
    inserted: u64,
    /// ACKs left unchanged, because they already carried a lower rate.
    lower_passed: u64,
    /// ACKs without room for the option.
    no_room: u64,
    /// ACKs without a rate, left unchanged because they carry data.
    with_data: u64,
    /// Packets whose headers have contradictory lengths.
    malformed: u64,
    /// Packets that got no slot because none was free.
    no_slot: u64,
    /// Packets that got no slot because too many flows were unconfirmed.
    refused: u64,
    /// SYNs that were seen.
    syns: u64,
    /// Packets that passed unchanged while the agent did not run.
    watchdog: u64,
    /// SYNs dropped because they exceeded their share of the link.
    syn_policed: u64,
    /// Sum of the times in the reports of designated packets, ns.
    reported_ns: u64,
    /// Reports of designated packets, in units of 1 / `layout::REPORT_UNIT`.
    reports: u64,
    /// First reports of flows, in units of 1 / `layout::REPORT_UNIT`.
    first_reports: u64,
    /// SYNs and SYN-ACKs of senders that designate packets.
    designating_syns: u64,
    /// Packets of known flows with unexpected sequence numbers or interface. They are not counted as packets of their
    /// flows.
    implausible: u64,
    /// Unconfirmed flows: packets of only one side were seen so far.
    unconfirmed: u32,
}

impl Shared<nrw_bucket> {
    fn set(&self, rate: Rate, burst: Bytes) {
        field!(self, rate).store(rate.as_bytes_per_sec(), Relaxed);
        field!(self, burst).store(burst.get(), Relaxed);
    }
}

/// The record of one port.
pub struct Port<'a>(&'a Shared<nrw_port>);

impl Port<'_> {
    /// Records the time at which the agent last ran (CLOCK_MONOTONIC).
    pub fn beat(&self, now: Time) {
        field!(self.0, heartbeat_ns).store(now.as_nanos(), Relaxed);
    }

    /// Sets the time without a heartbeat after which the program lets all packets pass unchanged.
    pub fn set_watchdog(&self, watchdog: Span) {
        field!(self.0, watchdog_ns).store(watchdog.as_nanos(), Relaxed);
    }

    /// Sets the mode: `layout::MODE_CONTROLLED` and other flags.
    pub fn set_mode(&self, mode: u32) {
        field!(self.0, mode.0).store(mode, Relaxed);
    }

    /// Returns whether the mode has `layout::MODE_CONTROLLED`.
    pub fn is_controlled(&self) -> bool {
        field!(self.0, mode.0).load(Relaxed) & MODE_CONTROLLED != 0
    }

    /// Sets how packets carry rates.
    pub fn set_format(&self, format: WireFormat) {
        field!(self.0, format.0).store(format as u32, Relaxed);
    }

    /// Sets the handle of HTB's class for each leaf, major << 16 | minor.
    pub fn set_priorities(&self, priorities: [u32; LEAVES]) {
        for (leaf, value) in priorities.into_iter().enumerate() {
            field!(self.0, priority[leaf]).store(value, Relaxed);
        }
    }

    /// Sets the grants for new flows (`newcomers_up_to`). Also begins a tick for the program, which then counts new
    /// flows from zero.
    pub fn set_grants(&self, grants: [RateCode; GRANTS]) {
        for (n, grant) in grants.into_iter().enumerate() {
            field!(self.0, grants[n]).store(grant.to_bits(), Relaxed);
        }
        field!(self.0, tick).fetch_add(1, Release);
    }

    /// Sets the code for all flows of the port. Only for a switch that keeps no flows.
    pub fn set_common(&self, code: RateCode) {
        field!(self.0, common).store(code.to_bits(), Relaxed);
    }

    /// Sets the longest time that one report may add to `reported_ns`.
    pub fn set_report_max(&self, time: Span) {
        let us = u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        field!(self.0, report_max_us).store(us, Relaxed);
    }

    /// Sets how many unconfirmed flows may hold slots (BRF-104).
    pub fn set_unconfirmed_max(&self, flows: u32) {
        field!(self.0, unconfirmed_max).store(flows, Relaxed);
    }

    /// Sets rate and burst of UDP's token bucket, in L3 bytes. Needs the mode `layout::MODE_POLICE_UDP`.
    pub fn set_udp(&self, rate: Rate, burst: Bytes) {
        field!(self.0, udp).set(rate, burst);
    }

    /// Sets whether UDP is policed by its token bucket.
    pub fn set_udp_policing(&self, is_policed: bool) {
        let mode = field!(self.0, mode.0).load(Relaxed) & !MODE_POLICE_UDP;
        self.set_mode(mode | if is_policed { MODE_POLICE_UDP } else { 0 });
    }

    /// Returns whether UDP is policed by its token bucket.
    pub fn polices_udp(&self) -> bool {
        field!(self.0, mode.0).load(Relaxed) & MODE_POLICE_UDP != 0
    }

    /// Sets rate and burst of the token bucket for SYNs, in L3 bytes. Needs the mode `layout::MODE_POLICE_SYN`. A
    /// second bucket of this size is for repetitions of dropped SYNs.
    pub fn set_syn(&self, rate: Rate, burst: Bytes) {
        field!(self.0, syn).set(rate, burst);
        field!(self.0, syn_again).set(rate, burst);
    }

    /// Reads the present counters.
    pub fn counters(&self) -> Counters {
        Counters::read(self.0)
    }

    pub(super) fn forget_unconfirmed(&self) {
        field!(self.0, unconfirmed).fetch_sub(1, Relaxed);
    }
}

/// The records of all ports.
pub struct Ports(Memory<nrw_port>);

impl Ports {
    pub(super) fn new(map: &MapHandle) -> Result<Self, Error> {
        Memory::new(map, map.max_entries() as usize).map(Ports)
    }

    /// Returns the record of the port with this number.
    pub fn get(&self, port: u8) -> Option<Port<'_>> {
        self.0.as_slice().get(usize::from(port)).map(Port)
    }
}
