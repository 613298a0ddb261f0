//! Rows of the algorithms that follow rates or windows from the network.

use crate::catalogue::{Constant, Entry, Family, Feedback, Group, Look, Needs, Preset, Service};
use crate::congestion::network::bdr::{self, Bdr};
use crate::congestion::network::brf::{self, Brf};
use crate::congestion::network::stamped::Stamped;
use crate::congestion::network::xcp::Xcp;
use crate::parameter::Parameters;

const fn served(kind: &'static str, mode: Option<&'static str>, domain: bool, feedback: Feedback) -> Needs {
    Needs { service: Some(Service { kind, mode, domain, feedback }), ..Needs::NOTHING }
}

/// Algorithms that follow rates or windows from the network.
pub(super) const NETWORK: &[Entry] = &[
    Entry {
        name: "brf",
        family: Family::Network,
        summary: "paces at the rate that switches write into ACKs, with a fallback (BRF, resolved)",
        needs: served("brf", Some("resolved"), true, Feedback::Option),
        linux: None,
        look: Some(Look::new("BRF", "#007a57", "#2fc79a", "solid", "circle")),
        parameters: &[
            Group::of::<brf::Choices>(""),
            Group::of::<brf::Params>(""),
            Group::of::<brf::Silence>("silence_"),
        ],
        presets: &[Preset {
            name: "brf-literal",
            summary: "BRF as in the paper: no bounds, and no fallback after the first rate",
            values: &[("reading", Constant::Word("literal"))],
            look: Look::new("BRF, as printed", "#80852c", "#c2c860", "dotted", "diamond"),
            mode: Some("literal"),
        }],
        build: |v| Box::new(Brf::from_values(v)),
    },
    Entry {
        name: "pacec",
        family: Family::Network,
        summary: "paces at the SDN controller's rate, which the first switch sends (PACEC)",
        needs: served("pacec", None, true, Feedback::Message),
        linux: None,
        look: Some(Look::new("PACEC", "#00838f", "#4fd0dc", "dashed", "circle")),
        parameters: &[
            Group { prefix: "", table: brf::Params::TABLE, defaults: || brf::Params::pacec().values() },
            Group {
                prefix: "silence_",
                table: brf::Silence::TABLE,
                defaults: || brf::Params::pacec().silence.unwrap_or_default().values(),
            },
        ],
        presets: &[],
        build: |v| Box::new(Brf::new("pacec", brf::Params::pacec().changed(v))),
    },
    Entry {
        name: "rcp",
        family: Family::Network,
        summary: "paces at the rate that the bottleneck router writes into each packet's header (RCP)",
        needs: served("rcp", None, false, Feedback::Header),
        linux: None,
        look: Some(Look::new("RCP", "#8e44ad", "#c893e6", "dash-dot", "triangle-up")),
        parameters: &[],
        presets: &[],
        build: |_| Box::new(Stamped::rcp()),
    },
    Entry {
        name: "xcp",
        family: Family::Network,
        summary: "changes its window by the amount that routers write into each packet's header (XCP)",
        needs: served("xcp", None, false, Feedback::Header),
        linux: None,
        look: Some(Look::new("XCP", "#c0392b", "#ff8a7a", "dotted", "square")),
        parameters: &[],
        presets: &[],
        build: |_| Box::new(Xcp::default()),
    },
    Entry {
        name: "bdr",
        family: Family::Network,
        summary: "paces at the share that routers recommend once per window (BDR, resolved)",
        needs: served("bdr", None, false, Feedback::Header),
        linux: None,
        look: Some(Look::new("BDR", "#8a6500", "#e6bf4d", "dashed", "diamond")),
        parameters: &[Group::of::<bdr::Choices>("")],
        presets: &[Preset {
            name: "bdr-literal",
            summary: "adds the packets that routers recommend to its window (BDR, as printed)",
            values: &[("reading", Constant::Word("literal"))],
            look: Look::new("BDR, as printed", "#6b4f1d", "#b99556", "dash-dot", "diamond"),
            mode: Some("literal"),
        }],
        build: |v| Box::new(Bdr::from_values(v)),
    },
    Entry {
        name: "obp",
        family: Family::Network,
        summary: "takes the bandwidth left on its path, which each packet's header reports (OBP)",
        needs: served("obp", None, false, Feedback::Header),
        linux: None,
        look: Some(Look::new("OBP", "#5d6b1f", "#b9c96a", "dotted", "cross")),
        parameters: &[],
        presets: &[],
        build: |_| Box::new(Stamped::obp()),
    },
];
