//! Rows of the algorithms that respond to losses.

use crate::catalogue::{Constant, Entry, Family, Group, Linux, Look, Needs, Preset};
use crate::congestion::linux::bic::{self, Bic};
use crate::congestion::linux::cubic::{self, Cubic};
use crate::congestion::linux::highspeed::{self, HighSpeed};
use crate::congestion::linux::htcp::{self, Htcp};
use crate::congestion::linux::hybla::{self, Hybla};
use crate::congestion::linux::reno::{self, Reno};
use crate::congestion::linux::scalable::{self, Scalable};
use crate::congestion::linux::{hystart, hystartpp};
use crate::parameter::Parameters;

/// Algorithms that respond to losses.
pub(super) const LOSS: &[Entry] = &[
    Entry {
        name: "cubic",
        family: Family::Loss,
        summary: "CUBIC with HyStart, Linux's default (RFC 9438)",
        needs: Needs::NOTHING,
        linux: Some(Linux { name: "cubic", module: Some("tcp_cubic") }),
        look: Some(Look::new("CUBIC", "#0072b2", "#5aaee6", "solid", "square")),
        parameters: &[
            Group::of::<cubic::Params>(""),
            Group::of::<cubic::Start>(""),
            Group::of::<hystart::Params>("hystart_"),
            Group::of::<hystartpp::Params>("hystartpp_"),
        ],
        presets: &[Preset {
            name: "cubic-hystartpp",
            summary: "CUBIC whose first slow start slows down when the delay rises (HyStart++, RFC 9406)",
            values: &[("slow_start", Constant::Word("hystart++"))],
            look: Look::new("CUBIC, HyStart++", "#1f86b8", "#7cc4ef", "dotted", "square"),
            mode: None,
        }],
        build: |v| Box::new(Cubic::from_values(v)),
    },
    Entry {
        name: "reno",
        family: Family::Loss,
        summary: "additive increase, halving on congestion (RFC 5681)",
        needs: Needs::NOTHING,
        linux: Some(Linux { name: "reno", module: None }),
        look: Some(Look::new("Reno", "#5b6f84", "#a9bccf", "dashed", "square")),
        parameters: &[
            Group::of::<reno::Params>(""),
            Group::of::<reno::Start>(""),
            Group::of::<hystartpp::Params>("hystartpp_"),
        ],
        presets: &[Preset {
            name: "reno-hystartpp",
            summary: "Reno whose first slow start slows down when the delay rises (HyStart++, RFC 9406)",
            values: &[("slow_start", Constant::Word("hystart++"))],
            look: Look::new("Reno, HyStart++", "#6d7f92", "#b9c9d9", "dash-dot", "square"),
            mode: None,
        }],
        build: |v| Box::new(Reno::from_values(v)),
    },
    Entry {
        name: "bic",
        family: Family::Loss,
        summary: "binary search for the window of the last congestion (Linux tcp_bic)",
        needs: Needs::NOTHING,
        linux: Some(Linux { name: "bic", module: Some("tcp_bic") }),
        look: Some(Look::new("BIC", "#3f5fa8", "#8fa9e8", "dash-dot", "square")),
        parameters: &[Group::of::<bic::Params>("")],
        presets: &[],
        build: |v| Box::new(Bic::new(bic::Params::default().with("", v))),
    },
    Entry {
        name: "highspeed",
        family: Family::Loss,
        summary: "takes increase and decrease from a table by window (HighSpeed TCP, RFC 3649)",
        needs: Needs::NOTHING,
        linux: Some(Linux { name: "highspeed", module: Some("tcp_highspeed") }),
        look: Some(Look::new("HighSpeed", "#2f6f8f", "#7fc0df", "dotted", "square")),
        parameters: &[Group::of::<highspeed::Params>("")],
        presets: &[],
        build: |v| Box::new(HighSpeed::new(highspeed::Params::default().with("", v))),
    },
    Entry {
        name: "scalable",
        family: Family::Loss,
        summary: "adds 1 % of the ACKed segments, removes an eighth on congestion (Scalable TCP)",
        needs: Needs::NOTHING,
        linux: Some(Linux { name: "scalable", module: Some("tcp_scalable") }),
        look: Some(Look::new("Scalable", "#4b4b9b", "#9f9fe6", "dashed", "diamond")),
        parameters: &[Group::of::<scalable::Params>("")],
        presets: &[],
        build: |v| Box::new(Scalable::new(scalable::Params::default().with("", v))),
    },
    Entry {
        name: "htcp",
        family: Family::Loss,
        summary: "grows faster with time since congestion; the depth of the queue sets the back-off (H-TCP)",
        needs: Needs::NOTHING,
        linux: Some(Linux { name: "htcp", module: Some("tcp_htcp") }),
        look: Some(Look::new("H-TCP", "#46748c", "#93c0d8", "dash-dot", "diamond")),
        parameters: &[Group::of::<htcp::Params>("")],
        presets: &[],
        build: |v| Box::new(Htcp::new(htcp::Params::default().with("", v))),
    },
    Entry {
        name: "hybla",
        family: Family::Loss,
        summary: "increases the rate on a long path as fast as Reno on a path of 25 ms (TCP Hybla)",
        needs: Needs::NOTHING,
        linux: Some(Linux { name: "hybla", module: Some("tcp_hybla") }),
        look: Some(Look::new("Hybla", "#35618f", "#86b4e4", "dotted", "diamond")),
        parameters: &[Group::of::<hybla::Params>("")],
        presets: &[],
        build: |v| Box::new(Hybla::new(hybla::Params::default().with("", v))),
    },
];
