//! Topologies: layouts that convert a few keys into nodes and links, and published networks by name.

use super::network::{Jitter, JitterOrTime, Traits};
use super::queue::Queue;
use crate::units::{BitRate, Span};
use crate::value::Value;
use crate::value::fields::{Delay, DistanceOrDelay, Field, List, Number, Rate, Rtt, Text, Whole, ranges};
use crate::value::reader::Reader;
use crate::value::reference;
use crate::value::table::{Given, Keys, Takes, table, tables};

/// Maximum number of pairs of a dumbbell.
pub(crate) const MAX_PAIRS: usize = 4096;

table! {
    /// Senders s1..sn, routers r1 and r2, receivers d1..dn; r1->r2 is called `bottleneck`.
    pub struct Dumbbell tagged "kind" = "dumbbell" check Dumbbell::consistent {
        with traits: Traits, "Properties of the bottleneck link; access links are fast and never drop.",
            "rate": "L3 rate of each bottleneck link; either this or a `trace` is required.";
        /// L3 rate of the access links (default: ten times the bottleneck's highest rate).
        pub access_rate: Option<BitRate> as Option<Rate> = None;
        /// Number of pairs of hosts (default: the number of `rtts` or of `flows`).
        pub pairs: Option<u32> as Option<Whole<u32, 1, 4096>> = None;
        /// Two-way propagation delay between the hosts of a pair. Alternatives are `rtts`, and `delay` (the delay of
        /// r1->r2).
        pub rtt: Option<Span> as Option<Rtt> = None;
        /// Two-way propagation delay of each pair.
        pub rtts: Option<Vec<Span>> as Option<List<Rtt, 1, 4096>> = None;
    }
}

/// Checks that the rate of a bottleneck comes from one place.
fn rate_or_trace(traits: &Traits) -> Result<(), String> {
    if traits.rate.is_some() != traits.trace.is_some() { Ok(()) } else { Err("a rate or a trace".to_owned()) }
}

impl Dumbbell {
    fn consistent(&self) -> Result<(), String> {
        rate_or_trace(&self.traits)?;
        let delays = [self.rtt.is_some(), self.rtts.is_some(), self.traits.delay.is_some()];
        if delays.into_iter().filter(|is_given| *is_given).count() != 1 {
            return Err("one of rtt, rtts and delay".to_owned());
        }
        match (self.pairs, &self.rtts) {
            (Some(pairs), Some(rtts)) if pairs as usize != rtts.len() => {
                Err(format!("as many rtts as pairs ({pairs})"))
            }
            _ => Ok(()),
        }
    }
}

table! {
    /// Routers r1..r(n+1) with bottleneck links hop1..hopn between them.
    ///
    /// The hosts are the pair s0-d0, whose flows cross all hops, and a pair si-di for each hop i. The flows of the pair
    /// si-di cross only hop i.
    pub struct ParkingLot tagged "kind" = "parking-lot" check ParkingLot::consistent {
        with traits: Traits, "Properties of each hop. Access links are fast and never drop.",
            "rate": "L3 rate of each bottleneck link; either this or a `trace` is required.",
            "delay": "One-way propagation delay of each hop; required.";
        /// L3 rate of the access links (default: ten times the bottleneck's highest rate).
        pub access_rate: Option<BitRate> as Option<Rate> = None;
        /// Number of bottleneck links in series.
        pub hops: u32 as Whole<u32, 1, 1024>;
        /// One-way propagation delay of each access link.
        pub access_delay: Span as Delay = Span::from_millis(1);
    }
}

impl ParkingLot {
    fn consistent(&self) -> Result<(), String> {
        rate_or_trace(&self.traits)?;
        if self.traits.delay.is_some() { Ok(()) } else { Err("a delay".to_owned()) }
    }
}

table! {
    /// Hosts h1..hn around a switch `hub`.
    ///
    /// If `from` and `to` are not set, the flows go from h2, h3, ... to h1 (incast).
    pub struct Star tagged "kind" = "star" check Star::complete {
        with traits: Traits, "Properties of each link.";
        /// Number of hosts.
        pub leaves: u32 as Whole<u32, 2, 4096>;
        /// Two-way propagation delay between two hosts. Either this key or `delay` (the delay of one link) is required.
        pub rtt: Option<Span> as Option<Rtt> = None;
    }
}

impl Star {
    fn complete(&self) -> Result<(), String> {
        rate_or_trace(&self.traits)?;
        if self.rtt.is_some() != self.traits.delay.is_some() {
            Ok(())
        } else {
            Err("one of rtt and delay".to_owned())
        }
    }
}

table! {
    /// The link between a host and its switch.
    pub struct Access {
        /// Rate (default: ten times the rate of the topology's fastest link).
        pub rate: Option<BitRate> as Option<Rate> = None;
        /// One-way propagation delay (default: 930us for Abilene, 4ms for gfc-1 and gfc-2, otherwise 1ms).
        pub delay: Option<Span> as Option<Delay> = None;
        /// Random extra delay of each packet that leaves the host: its maximum or a table. With jitter, runs with
        /// different seeds differ.
        pub jitter: Option<Jitter> as Option<JitterOrTime> = None;
    }
}

ranges! {
    /// A factor of capacities.
    CapacityScale: 0.0 false, 1e6;
}

table! {
    /// A published network.
    ///
    /// The keys `from` and `to` of flows are names of nodes. Each switch that is an end of a flow gets a host. Links
    /// are called `A->B` and `B->A`.
    pub struct Named tagged "kind" = "named" check Named::consistent {
        /// abilene, abilene-zoo, gfc-1, gfc-2, fat-tree, or a name from topohub such as 'topozoo/Geant2012'.
        pub name: String as Text<1, 100>;
        /// Fat tree: number of ports of each switch; an even number.
        pub k: Option<u32> as Option<Whole<u32, 2, 32>> = None;
        /// L3 rate of every link; required if the topology has no capacities (fat-tree, topohub).
        pub rate: Option<BitRate> as Option<Rate> = None;
        /// Factor by which the topology's own capacities are multiplied. An alternative to `rate`.
        pub scale: Option<f64> as Option<Number<CapacityScale>> = None;
        /// Queue of every link in both directions (default: one BDP).
        pub queue: Option<Queue> as Option<Queue> = None;
        /// One-way propagation delay of links. With 'distance', a link has 5 us per km of its length, or the topology's
        /// own delay if the topology has no lengths. With a time such as '20ms', all links have this delay.
        pub delay: Option<Span> as DistanceOrDelay = None;
        /// The links of the hosts. These links never drop packets.
        pub access: Access as Access = Access { rate: None, delay: None, jitter: None, given: Given::default() };
    }
}

impl Named {
    fn consistent(&self) -> Result<(), String> {
        if self.rate.is_some() && self.scale.is_some() {
            return Err("one of rate and scale".to_owned());
        }
        if self.k.is_some_and(|k| k % 2 == 1) { Err("an even k".to_owned()) } else { Ok(()) }
    }
}

tables! {
    /// One of the layouts by kind, or a published network by name.
    pub enum Topology by "kind" {
        /// Pairs of hosts around one bottleneck.
        Dumbbell(Dumbbell),
        /// Bottlenecks in series.
        ParkingLot(ParkingLot),
        /// Hosts around one switch.
        Star(Star),
        /// A published network.
        Named(Named),
    }
}

impl Topology {
    /// Returns the properties of the links, if the topology is a layout.
    pub(crate) fn traits(&self) -> Option<&Traits> {
        match self {
            Topology::Dumbbell(layout) => Some(&layout.traits),
            Topology::ParkingLot(layout) => Some(&layout.traits),
            Topology::Star(layout) => Some(&layout.traits),
            Topology::Named(_) => None,
        }
    }
}

impl Field for Topology {
    type Value = Topology;
    fn read<'v>(value: &'v Value, at: &mut Reader<'v>) -> Option<Self> {
        // A table that has a name instead of a kind is a published network.
        if value.get("name").is_some() && value.get("kind").is_none() {
            return Topology::read_tagged("named", value, at);
        }
        Topology::read_table(value, at)
    }
    fn write(value: &Self, keys: Keys) -> Option<Value> {
        Some(value.write_table(keys))
    }
    fn schema() -> serde_json::Value {
        Topology::tables_schema()
    }
    fn words() -> String {
        reference::link("Dumbbell")
    }
    fn takes() -> Takes {
        Takes::Tables(Topology::tables())
    }
}
