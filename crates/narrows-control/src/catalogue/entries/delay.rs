//! Rows of the algorithms that respond to delay, or to losses and delay.

use crate::catalogue::{Entry, Family, Group, Linux, Look, Needs};
use crate::congestion::copa::{self, Copa};
use crate::congestion::linux::illinois::{self, Illinois};
use crate::congestion::linux::lp::{self, Lp};
use crate::congestion::linux::vegas::{self, Vegas};
use crate::congestion::linux::veno::{self, Veno};
use crate::congestion::linux::westwood::{self, Westwood};
use crate::congestion::linux::yeah::{self, Yeah};
use crate::parameter::Parameters;

/// Algorithms that respond to delay, or to losses and delay.
pub(super) const DELAY: &[Entry] = &[
    Entry {
        name: "vegas",
        family: Family::Delay,
        summary: "estimates the queue from the delay and keeps two to four packets in it (Linux tcp_vegas)",
        needs: Needs::NOTHING,
        linux: Some(Linux { name: "vegas", module: Some("tcp_vegas") }),
        look: Some(Look::new("Vegas", "#8f6b00", "#d9b54a", "solid", "triangle-down")),
        parameters: &[Group::of::<vegas::Params>("")],
        presets: &[],
        build: |v| Box::new(Vegas::new(vegas::Params::default().with("", v))),
    },
    Entry {
        name: "veno",
        family: Family::Delay,
        summary: "Reno, but a loss with a short queue removes only a fifth of the window (TCP Veno)",
        needs: Needs::NOTHING,
        linux: Some(Linux { name: "veno", module: Some("tcp_veno") }),
        look: Some(Look::new("Veno", "#7d5f2a", "#c9a76c", "dash-dot", "triangle-down")),
        parameters: &[Group::of::<veno::Params>("")],
        presets: &[],
        build: |v| Box::new(Veno::new(veno::Params::default().with("", v))),
    },
    Entry {
        name: "westwood",
        family: Family::Delay,
        summary: "sets the window after congestion from the measured bandwidth (Westwood+)",
        needs: Needs::NOTHING,
        linux: Some(Linux { name: "westwood", module: Some("tcp_westwood") }),
        look: Some(Look::new("Westwood", "#6f6a3a", "#bdb67e", "dotted", "triangle-down")),
        parameters: &[Group::of::<westwood::Params>("")],
        presets: &[],
        build: |v| Box::new(Westwood::new(westwood::Params::default().with("", v))),
    },
    Entry {
        name: "yeah",
        family: Family::Delay,
        summary: "grows as Scalable while the queue is short, else as Reno; drains long queues (YeAH-TCP)",
        needs: Needs::NOTHING,
        linux: Some(Linux { name: "yeah", module: Some("tcp_yeah") }),
        look: Some(Look::new("YeAH", "#94621f", "#dba765", "dashed", "triangle-left")),
        parameters: &[Group::of::<yeah::Params>("")],
        presets: &[],
        build: |v| Box::new(Yeah::new(yeah::Params::default().with("", v))),
    },
    Entry {
        name: "illinois",
        family: Family::Delay,
        summary: "backs off on losses; the delay sets the size of growth and back-off (TCP-Illinois)",
        needs: Needs::NOTHING,
        linux: Some(Linux { name: "illinois", module: Some("tcp_illinois") }),
        look: Some(Look::new("Illinois", "#8a4f2f", "#d6977a", "dash-dot", "triangle-left")),
        parameters: &[Group::of::<illinois::Params>("")],
        presets: &[],
        build: |v| Box::new(Illinois::new(illinois::Params::default().with("", v))),
    },
    Entry {
        name: "lp",
        family: Family::Delay,
        summary: "yields when the one-way delay rises; needs synchronised clocks (TCP-LP)",
        needs: Needs::NOTHING,
        linux: Some(Linux { name: "lp", module: Some("tcp_lp") }),
        look: Some(Look::new("LP", "#777777", "#aaaaaa", "dotted", "triangle-left")),
        parameters: &[Group::of::<lp::Params>("")],
        presets: &[],
        build: |v| Box::new(Lp::new(lp::Params::default().with("", v))),
    },
    Entry {
        look: Some(Look::new("Copa", "#9a4f7a", "#e0a3c6", "solid", "triangle-left")),
        parameters: &[Group::of::<copa::Params>("")],
        ..Entry::new(
            "copa",
            Family::Delay,
            "approaches the rate 1/(delta x queueing delay); competes with flows that fill buffers (Copa)",
            |v| Box::new(Copa::new(copa::Params::default().with("", v))),
        )
    },
];
