//! The table of congestion controllers: a newcomer adds a file and a line here.

use super::Controller;
use super::bbr::Bbr;
use super::bbr::bbq::Bbq;
use super::bbr::gain_cycle::{self, GainModel};
use super::bbr::gain_model::Variant;
use super::bbr::v2::bbr2;
use super::bbr::v3::bbr3;
use super::linux::bic::Bic;
use super::linux::cubic::Cubic;
use super::linux::dctcp::Dctcp;
use super::linux::highspeed::HighSpeed;
use super::linux::htcp::Htcp;
use super::linux::hybla::Hybla;
use super::linux::hystartpp;
use super::linux::illinois::Illinois;
use super::linux::lp::Lp;
use super::linux::reno::Reno;
use super::linux::scalable::Scalable;
use super::linux::vegas::Vegas;
use super::linux::veno::Veno;
use super::linux::westwood::Westwood;
use super::linux::yeah::Yeah;
use super::network::bdr::Bdr;
use super::network::brf::{self, Brf};
use super::network::stamped::Stamped;
use super::network::xcp::Xcp;

/// A controller that a scenario can name.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name in scenarios and results.
    pub name: &'static str,
    /// One line of description.
    pub summary: &'static str,
    /// Makes one, for one connection.
    pub build: fn() -> Box<dyn Controller>,
}

/// All controllers, by name.
pub fn all() -> &'static [Entry] {
    ENTRIES
}

/// A new controller of this name, `None` if there is none.
pub fn build(name: &str) -> Option<Box<dyn Controller>> {
    ENTRIES.iter().find(|entry| entry.name == name).map(|entry| (entry.build)())
}

fn gains(name: &'static str, variant: Variant, params: gain_cycle::Params) -> Bbr {
    Bbr::with_cycle(GainModel::new(name, variant, params))
}

#[rustfmt::skip]
const ENTRIES: &[Entry] = &[
    Entry { name: "bbq", summary: "BBR v1 whose probes are short while a queue stands (BBQ)", build: || Box::new(Bbr::with_cycle(Bbq::default())) },
    Entry { name: "bbr", summary: "BBR v1: paces at the measured bottleneck bandwidth (Linux tcp_bbr)", build: || Box::new(Bbr::default()) },
    Entry { name: "bbr-a", summary: "BBR v1 whose gains fall as the RTT grows: inverse proportion and cosine (BBR-A)", build: || Box::new(gains("bbr-a", Variant::A, gain_cycle::Params::default())) },
    Entry { name: "bbr-a-literal", summary: "BBR-A whose phases end as its paper's sentences say", build: || Box::new(gains("bbr-a-literal", Variant::A, gain_cycle::Params::literal())) },
    Entry { name: "bbr-a-recent", summary: "BBR-A that forgets the largest RTT after a minute", build: || Box::new(gains("bbr-a-recent", Variant::A, gain_cycle::Params::recent())) },
    Entry { name: "bbr-b", summary: "BBR v1 whose gains fall as the RTT grows: inverse proportions (BBR-B)", build: || Box::new(gains("bbr-b", Variant::B, gain_cycle::Params::default())) },
    Entry { name: "bbr-b-literal", summary: "BBR-B whose phases end as its paper's sentences say", build: || Box::new(gains("bbr-b-literal", Variant::B, gain_cycle::Params::literal())) },
    Entry { name: "bbr-b-recent", summary: "BBR-B that forgets the largest RTT after a minute", build: || Box::new(gains("bbr-b-recent", Variant::B, gain_cycle::Params::recent())) },
    Entry { name: "bbr-c", summary: "BBR v1 whose gains fall as the RTT grows: gamma correction (BBR-C)", build: || Box::new(gains("bbr-c", Variant::C, gain_cycle::Params::default())) },
    Entry { name: "bbr-c-literal", summary: "BBR-C whose phases end as its paper's sentences say", build: || Box::new(gains("bbr-c-literal", Variant::C, gain_cycle::Params::literal())) },
    Entry { name: "bbr-c-recent", summary: "BBR-C that forgets the largest RTT after a minute", build: || Box::new(gains("bbr-c-recent", Variant::C, gain_cycle::Params::recent())) },
    Entry { name: "bbr2", summary: "BBR v2: v1 bounded by what losses say (Google's alpha)", build: || Box::new(bbr2()) },
    Entry { name: "bbr3", summary: "BBR v3: v2's successor (draft-ietf-ccwg-bbr-06)", build: || Box::new(bbr3()) },
    Entry { name: "bdr", summary: "asks the routers once per window for its share, and paces that (BDR, resolved)", build: || Box::new(Bdr::default()) },
    Entry { name: "bdr-literal", summary: "adds the packets that the routers say to its window, as the BDR paper prints it", build: || Box::new(Bdr::literal()) },
    Entry { name: "bic", summary: "a binary search for the window of the last congestion (Linux tcp_bic)", build: || Box::new(Bic::default()) },
    Entry { name: "brf", summary: "obeys the rate that the network writes into ACKs, with fallback (BRF, resolved)", build: || Box::new(Brf::default()) },
    Entry { name: "brf-literal", summary: "obeys the rate as the BRF paper has it: no bounds, no fallback once rated", build: || Box::new(Brf::literal()) },
    Entry { name: "cubic", summary: "CUBIC with HyStart, Linux's default (RFC 9438)", build: || Box::new(Cubic::default()) },
    Entry { name: "cubic-hystartpp", summary: "CUBIC whose first slow start slows down when the delay rises (HyStart++, RFC 9406)", build: || Box::new(Cubic::with_hystartpp(hystartpp::Params::default())) },
    Entry { name: "dctcp", summary: "gives way in proportion to the share of marked packets; implies ECN (RFC 8257)", build: || Box::new(Dctcp::default()) },
    Entry { name: "highspeed", summary: "increase and decrease by a table of windows (HighSpeed TCP, RFC 3649)", build: || Box::new(HighSpeed::default()) },
    Entry { name: "htcp", summary: "the longer since congestion, the faster; backs off as the queue is deep (H-TCP)", build: || Box::new(Htcp::default()) },
    Entry { name: "hybla", summary: "grows a long path's rate as fast as one of 25 ms (TCP Hybla)", build: || Box::new(Hybla::default()) },
    Entry { name: "illinois", summary: "grows and backs off by the delay, gives way to losses (TCP-Illinois)", build: || Box::new(Illinois::default()) },
    Entry { name: "lp", summary: "gives way to a rising one-way delay, where Linux's clocks let it (TCP-LP)", build: || Box::new(Lp::default()) },
    Entry { name: "obp", summary: "takes what the routers say is left of its path, in a header of each packet (OBP)", build: || Box::new(Stamped::obp()) },
    Entry { name: "pacec", summary: "obeys the rate that the ingress switch hands on from the domain's controller (PACEC)", build: || Box::new(Brf::new("pacec", brf::Params::pacec())) },
    Entry { name: "rcp", summary: "obeys the one rate of the bottleneck router, in a header of each packet (RCP)", build: || Box::new(Stamped::rcp()) },
    Entry { name: "reno", summary: "additive increase, halving on congestion (RFC 5681)", build: || Box::new(Reno::default()) },
    Entry { name: "reno-hystartpp", summary: "Reno whose first slow start slows down when the delay rises (HyStart++, RFC 9406)", build: || Box::new(Reno::with_hystartpp(hystartpp::Params::default())) },
    Entry { name: "scalable", summary: "a hundredth of a segment per ACKed segment, an eighth off (Scalable TCP)", build: || Box::new(Scalable::default()) },
    Entry { name: "vegas", summary: "holds two to four packets in the queue, by the delay (Linux tcp_vegas)", build: || Box::new(Vegas::default()) },
    Entry { name: "veno", summary: "Reno that gives up a fifth where the queue was short (TCP Veno)", build: || Box::new(Veno::default()) },
    Entry { name: "westwood", summary: "after congestion the window that the path carried of late (Westwood+)", build: || Box::new(Westwood::default()) },
    Entry { name: "xcp", summary: "lets the network move its window, by a header of each packet (XCP)", build: || Box::new(Xcp::default()) },
    Entry { name: "yeah", summary: "Scalable while the queue is short, Reno while it is not, drains it (YeAH-TCP)", build: || Box::new(Yeah::default()) },
];

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
