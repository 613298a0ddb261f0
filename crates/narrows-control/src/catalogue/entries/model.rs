//! Rows of the algorithms with a model of the path: BBR and its relatives.

use crate::catalogue::{Constant, Entry, Family, Group, Linux, Look, Needs, Preset};
use crate::congestion::Controller;
use crate::congestion::bbr::bbq::{self, Bbq};
use crate::congestion::bbr::bounded::Bounded;
use crate::congestion::bbr::bounded::params as bounded;
use crate::congestion::bbr::gain_cycle::{self, GainModel};
use crate::congestion::bbr::gain_model::Variant;
use crate::congestion::bbr::v1::Bbr;
use crate::congestion::bbr::v1::probe_bw::ConstantGains;
use crate::congestion::bbr::{aggregation, pacing, v1, v2, v3};
use crate::parameter::{Parameters, Values};

/// Algorithms with a model of the path.
pub(super) const MODEL: &[Entry] = &[
    Entry {
        name: "bbr",
        family: Family::Model,
        summary: "BBR v1: paces at the measured bottleneck bandwidth (Linux tcp_bbr)",
        needs: Needs::NOTHING,
        linux: Some(Linux { name: "bbr", module: Some("tcp_bbr") }),
        look: Some(Look::new("BBR", "#d55e00", "#ff9248", "dashed", "triangle-up")),
        parameters: V1,
        presets: &[],
        build: |v| Box::new(Bbr::from_values(v, ConstantGains::default().with("probe_", v))),
    },
    Entry {
        name: "bbr2",
        family: Family::Model,
        summary: "BBR v2: v1 with bounds that losses set (Google's alpha)",
        needs: Needs::NOTHING,
        linux: None,
        look: Some(Look::new("BBRv2", "#b8437f", "#ec8cbd", "dash-dot", "triangle-up")),
        parameters: BBR2,
        presets: &[],
        build: |v| Box::new(Bounded::from_values(v2::params(), v)),
    },
    Entry {
        name: "bbr3",
        family: Family::Model,
        summary: "BBR v3: v2's successor (draft-ietf-ccwg-bbr-06)",
        needs: Needs::NOTHING,
        linux: None,
        look: Some(Look::new("BBRv3", "#a3261a", "#f2786b", "dotted", "triangle-up")),
        parameters: BBR3,
        presets: &[],
        build: |v| Box::new(Bounded::from_values(v3::params(), v)),
    },
    Entry {
        name: "bbr-a",
        family: Family::Model,
        summary: "BBR v1 whose gains fall as the RTT grows: inverse proportion and cosine (BBR-A)",
        needs: Needs::NOTHING,
        linux: None,
        look: Some(Look::new("BBR-A", "#c77400", "#f5b04d", "solid", "triangle-right")),
        parameters: GAINS,
        presets: &[
            Preset {
                name: "bbr-a-literal",
                summary: "BBR-A with the phase ends that its paper describes",
                values: &[("reading", Constant::Word("literal"))],
                look: Look::new("BBR-A, as printed", "#a8844a", "#dcbd8c", "dotted", "triangle-right"),
                mode: None,
            },
            Preset {
                name: "bbr-a-recent",
                summary: "BBR-A with the largest RTT of the last minute",
                values: &[("tmax_window", Constant::Number(60e9))],
                look: Look::new("BBR-A, last minute", "#b3903a", "#e6cb85", "dash-dot", "triangle-right"),
                mode: None,
            },
        ],
        build: |v| gains("bbr-a", Variant::A, v),
    },
    Entry {
        name: "bbr-b",
        family: Family::Model,
        summary: "BBR v1 whose gains fall as the RTT grows: inverse proportions (BBR-B)",
        needs: Needs::NOTHING,
        linux: None,
        look: Some(Look::new("BBR-B", "#b04a6b", "#e591ae", "dashed", "triangle-right")),
        parameters: GAINS,
        presets: &[
            Preset {
                name: "bbr-b-literal",
                summary: "BBR-B with the phase ends that its paper describes",
                values: &[("reading", Constant::Word("literal"))],
                look: Look::new("BBR-B, as printed", "#94747f", "#cfb0bb", "dotted", "triangle-right"),
                mode: None,
            },
            Preset {
                name: "bbr-b-recent",
                summary: "BBR-B with the largest RTT of the last minute",
                values: &[("tmax_window", Constant::Number(60e9))],
                look: Look::new("BBR-B, last minute", "#a06e8c", "#d9a8c4", "dash-dot", "triangle-right"),
                mode: None,
            },
        ],
        build: |v| gains("bbr-b", Variant::B, v),
    },
    Entry {
        name: "bbr-c",
        family: Family::Model,
        summary: "BBR v1 whose gains fall as the RTT grows: gamma correction (BBR-C)",
        needs: Needs::NOTHING,
        linux: None,
        look: Some(Look::new("BBR-C", "#8e3b1f", "#e0886a", "dash-dot", "triangle-right")),
        parameters: GAINS,
        presets: &[
            Preset {
                name: "bbr-c-literal",
                summary: "BBR-C with the phase ends that its paper describes",
                values: &[("reading", Constant::Word("literal"))],
                look: Look::new("BBR-C, as printed", "#836052", "#c7a396", "dotted", "triangle-right"),
                mode: None,
            },
            Preset {
                name: "bbr-c-recent",
                summary: "BBR-C with the largest RTT of the last minute",
                values: &[("tmax_window", Constant::Number(60e9))],
                look: Look::new("BBR-C, last minute", "#94604a", "#d49d88", "dash-dot", "triangle-right"),
                mode: None,
            },
        ],
        build: |v| gains("bbr-c", Variant::C, v),
    },
    Entry {
        name: "bbq",
        family: Family::Model,
        summary: "BBR v1 with short probes while a queue persists (BBQ)",
        needs: Needs::NOTHING,
        linux: None,
        look: Some(Look::new("BBQ", "#9a5b8c", "#d79fca", "dotted", "triangle-right")),
        parameters: BBQ,
        presets: &[],
        build: |v| {
            let gains = ConstantGains::default().with("probe_", v);
            Box::new(Bbr::from_values(v, Bbq::new(bbq::Params::default().with("bbq_", v), gains)))
        },
    },
];

fn gains(name: &'static str, variant: Variant, values: &Values) -> Box<dyn Controller> {
    let cycle = GainModel::new(name, variant, gain_cycle::Params::from_values(values));
    Box::new(Bbr::from_values(values, cycle))
}

/// Parameters of BBR v1.
const V1: &[Group] = &[
    Group::of::<v1::params::Params>(""),
    Group::of::<aggregation::Params>("aggregation_"),
    Group::of::<pacing::Params>("pacing_"),
    Group::of::<v1::params::PolicerParams>("policer_"),
    Group::of::<ConstantGains>("probe_"),
];
/// Parameters of BBQ.
const BBQ: &[Group] = &[
    Group::of::<v1::params::Params>(""),
    Group::of::<aggregation::Params>("aggregation_"),
    Group::of::<pacing::Params>("pacing_"),
    Group::of::<v1::params::PolicerParams>("policer_"),
    Group::of::<ConstantGains>("probe_"),
    Group::of::<bbq::Params>("bbq_"),
];
/// Parameters of BBR-A, BBR-B and BBR-C.
const GAINS: &[Group] = &[
    Group::of::<v1::params::Params>(""),
    Group::of::<aggregation::Params>("aggregation_"),
    Group::of::<pacing::Params>("pacing_"),
    Group::of::<v1::params::PolicerParams>("policer_"),
    Group::of::<gain_cycle::Choices>(""),
];

/// Parameters of BBR v2 or v3. Their defaults are `$version::params()`.
macro_rules! bounded {
    ($version:ident) => {
        &[
            Group { prefix: "", table: bounded::Params::TABLE, defaults: || $version::params().values() },
            bounded!($version, startup, "startup_", bounded::Gains),
            bounded!($version, drain, "drain_", bounded::Gains),
            bounded!($version, down, "down_", bounded::Gains),
            bounded!($version, cruise, "cruise_", bounded::Gains),
            bounded!($version, refill, "refill_", bounded::Gains),
            bounded!($version, up, "up_", bounded::Gains),
            bounded!($version, probe_rtt, "probe_rtt_", bounded::Gains),
            bounded!($version, aggregation, "aggregation_", aggregation::Params),
            bounded!($version, pacing, "pacing_", pacing::Params),
        ]
    };
    ($version:ident, $field:ident, $prefix:literal, $type:ty) => {
        Group { prefix: $prefix, table: <$type>::TABLE, defaults: || $version::params().$field.values() }
    };
}
const BBR2: &[Group] = bounded!(v2);
const BBR3: &[Group] = bounded!(v3);
