//! The table of congestion controllers. To add a controller, add a file and a line here.

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
    /// Builds the controller for one connection.
    pub build: fn() -> Box<dyn Controller>,
}

/// All controllers, by name.
pub fn all() -> &'static [Entry] {
    ENTRIES
}

/// A new instance of the controller with this name; `None` if no controller has it.
pub fn build(name: &str) -> Option<Box<dyn Controller>> {
    ENTRIES.iter().find(|entry| entry.name == name).map(|entry| (entry.build)())
}

fn gains(name: &'static str, variant: Variant, params: gain_cycle::Params) -> Bbr {
    Bbr::with_cycle(GainModel::new(name, variant, params))
}

#[rustfmt::skip]
const ENTRIES: &[Entry] = &[
    Entry { name: "bbq", summary: "BBR v1 with short probes while a queue persists (BBQ)", build: || Box::new(Bbr::with_cycle(Bbq::default())) },
    Entry { name: "bbr", summary: "BBR v1: paces at the measured bottleneck bandwidth (Linux tcp_bbr)", build: || Box::new(Bbr::default()) },
    Entry { name: "bbr-a", summary: "BBR v1 whose gains fall as the RTT grows: inverse proportion and cosine (BBR-A)", build: || Box::new(gains("bbr-a", Variant::A, gain_cycle::Params::default())) },
    Entry { name: "bbr-a-literal", summary: "BBR-A whose phases end as its paper's text says", build: || Box::new(gains("bbr-a-literal", Variant::A, gain_cycle::Params::literal())) },
    Entry { name: "bbr-a-recent", summary: "BBR-A with the largest RTT of the last minute", build: || Box::new(gains("bbr-a-recent", Variant::A, gain_cycle::Params::recent())) },
    Entry { name: "bbr-b", summary: "BBR v1 whose gains fall as the RTT grows: inverse proportions (BBR-B)", build: || Box::new(gains("bbr-b", Variant::B, gain_cycle::Params::default())) },
    Entry { name: "bbr-b-literal", summary: "BBR-B whose phases end as its paper's text says", build: || Box::new(gains("bbr-b-literal", Variant::B, gain_cycle::Params::literal())) },
    Entry { name: "bbr-b-recent", summary: "BBR-B with the largest RTT of the last minute", build: || Box::new(gains("bbr-b-recent", Variant::B, gain_cycle::Params::recent())) },
    Entry { name: "bbr-c", summary: "BBR v1 whose gains fall as the RTT grows: gamma correction (BBR-C)", build: || Box::new(gains("bbr-c", Variant::C, gain_cycle::Params::default())) },
    Entry { name: "bbr-c-literal", summary: "BBR-C whose phases end as its paper's text says", build: || Box::new(gains("bbr-c-literal", Variant::C, gain_cycle::Params::literal())) },
    Entry { name: "bbr-c-recent", summary: "BBR-C with the largest RTT of the last minute", build: || Box::new(gains("bbr-c-recent", Variant::C, gain_cycle::Params::recent())) },
    Entry { name: "bbr2", summary: "BBR v2: v1 with bounds from losses (Google's alpha)", build: || Box::new(bbr2()) },
    Entry { name: "bbr3", summary: "BBR v3: v2's successor (draft-ietf-ccwg-bbr-06)", build: || Box::new(bbr3()) },
    Entry { name: "bdr", summary: "paces at the share that routers recommend once per window (BDR, resolved)", build: || Box::new(Bdr::default()) },
    Entry { name: "bdr-literal", summary: "adds the packets that routers recommend to its window (BDR, as printed)", build: || Box::new(Bdr::literal()) },
    Entry { name: "bic", summary: "binary search for the window of the last congestion (Linux tcp_bic)", build: || Box::new(Bic::default()) },
    Entry { name: "brf", summary: "paces at the rate that switches write into ACKs, with a fallback (BRF, resolved)", build: || Box::new(Brf::default()) },
    Entry { name: "brf-literal", summary: "as brf, but as in the paper: no bounds, no fallback once it has a rate", build: || Box::new(Brf::literal()) },
    Entry { name: "cubic", summary: "CUBIC with HyStart, Linux's default (RFC 9438)", build: || Box::new(Cubic::default()) },
    Entry { name: "cubic-hystartpp", summary: "CUBIC whose first slow start slows down when the delay rises (HyStart++, RFC 9406)", build: || Box::new(Cubic::with_hystartpp(hystartpp::Params::default())) },
    Entry { name: "dctcp", summary: "backs off in proportion to the share of marked packets; implies ECN (RFC 8257)", build: || Box::new(Dctcp::default()) },
    Entry { name: "highspeed", summary: "increase and decrease depend on the window by a table (HighSpeed TCP, RFC 3649)", build: || Box::new(HighSpeed::default()) },
    Entry { name: "htcp", summary: "grows faster with time since congestion; backs off by the depth of the queue (H-TCP)", build: || Box::new(Htcp::default()) },
    Entry { name: "hybla", summary: "grows the rate on a long path as fast as on one of 25 ms (TCP Hybla)", build: || Box::new(Hybla::default()) },
    Entry { name: "illinois", summary: "backs off on losses; the delay sets growth and back-off (TCP-Illinois)", build: || Box::new(Illinois::default()) },
    Entry { name: "lp", summary: "yields to a rising one-way delay, if Linux's clocks permit (TCP-LP)", build: || Box::new(Lp::default()) },
    Entry { name: "obp", summary: "takes the bandwidth left on its path, from a header of each packet (OBP)", build: || Box::new(Stamped::obp()) },
    Entry { name: "pacec", summary: "paces at the rate of the domain's controller, sent by its first switch (PACEC)", build: || Box::new(Brf::new("pacec", brf::Params::pacec())) },
    Entry { name: "rcp", summary: "paces at the bottleneck router's rate, from a header of each packet (RCP)", build: || Box::new(Stamped::rcp()) },
    Entry { name: "reno", summary: "additive increase, halving on congestion (RFC 5681)", build: || Box::new(Reno::default()) },
    Entry { name: "reno-hystartpp", summary: "Reno whose first slow start slows down when the delay rises (HyStart++, RFC 9406)", build: || Box::new(Reno::with_hystartpp(hystartpp::Params::default())) },
    Entry { name: "scalable", summary: "adds 1 % of the ACKed segments, removes an eighth on congestion (Scalable TCP)", build: || Box::new(Scalable::default()) },
    Entry { name: "vegas", summary: "keeps two to four packets in the queue, estimated from the delay (Linux tcp_vegas)", build: || Box::new(Vegas::default()) },
    Entry { name: "veno", summary: "Reno that removes only a fifth if the queue was short (TCP Veno)", build: || Box::new(Veno::default()) },
    Entry { name: "westwood", summary: "sets the window after congestion from the measured bandwidth (Westwood+)", build: || Box::new(Westwood::default()) },
    Entry { name: "xcp", summary: "changes its window as routers tell it, in a header of each packet (XCP)", build: || Box::new(Xcp::default()) },
    Entry { name: "yeah", summary: "Scalable while the queue is short, else Reno; drains long queues (YeAH-TCP)", build: || Box::new(Yeah::default()) },
];

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
