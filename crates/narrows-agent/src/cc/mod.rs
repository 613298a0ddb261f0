//! Loads congestion control algorithms of the BBR family (`bpf/cc`) into a stock kernel, where any program can use
//! them. The algorithms are BBR-A, BBR-B, BBR-C, BBQ, BBR v2 and v3, and BBR v1 for comparison.
//!
//! Each algorithm is registered under its own name (`net.ipv4.tcp_available_congestion_control`). A pinned link or map
//! in bpffs keeps it registered after the loading process has ended.

mod error;
mod form;
mod gains;
mod load;
mod params;
mod place;
mod registered;
mod state;

pub use error::CcError;
pub use gains::{Probe, gains, probe};
pub use load::{Loaded, Tidied, find, list, load, loadable, tidy, unload, unloadable};
#[doc(hidden)]
pub use load::{configure, skeleton};
#[doc(hidden)]
pub use params::params;
pub use place::Place;
pub use state::{StateField, StateMap};

/// A member of the BBR family.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Variant {
    /// BBR v1, the same algorithm as the kernel's own `bbr`.
    V1,
    /// BBR-A: P_up is 2 / (omega + 1), and P_down is the cosine of omega.
    A,
    /// BBR-B: P_up is 3 / (omega + 2), and P_down is (3 - 2 omega) / (3 - omega).
    B,
    /// BBR-C: P_up is (3 - omega^(1/4)) / 2, and P_down is 1 - omega^4 / 2.
    C,
    /// BBQ: probes are short while a queue persists.
    Bbq,
    /// BBR v2, with bounds from losses.
    V2,
    /// BBR v3, the successor of v2.
    V3,
}

impl Variant {
    /// All variants, in the order of `bpf/cc/state.h`.
    pub const ALL: [Variant; 7] =
        [Variant::V1, Variant::A, Variant::B, Variant::C, Variant::Bbq, Variant::V2, Variant::V3];

    /// Returns the short name that the command line and scenarios use.
    pub fn name(self) -> &'static str {
        match self {
            Variant::V1 => "bbr",
            Variant::A => "bbr-a",
            Variant::B => "bbr-b",
            Variant::C => "bbr-c",
            Variant::Bbq => "bbq",
            Variant::V2 => "bbr2",
            Variant::V3 => "bbr3",
        }
    }

    /// Returns a short description.
    pub fn what(self) -> &'static str {
        match self {
            Variant::V1 => "BBR v1 in eBPF, as a control",
            Variant::A => "BBR v1 with BBR-A's pacing gains",
            Variant::B => "BBR v1 with BBR-B's pacing gains",
            Variant::C => "BBR v1 with BBR-C's pacing gains",
            Variant::Bbq => "BBR v1 with short probes while a queue persists",
            Variant::V2 => "BBR v2 (Google's alpha) without its reaction to ECN",
            Variant::V3 => "BBR v3 (draft-ietf-ccwg-bbr-06)",
        }
    }

    /// Returns whether the pacing gains of this variant depend on the RTT. [`Options`] apply only to variants with such
    /// gains.
    pub fn has_gain_model(self) -> bool {
        matches!(self, Variant::A | Variant::B | Variant::C)
    }

    /// Returns whether this is BBR v2 or v3. Only in these variants do losses bound the bandwidth and the data in
    /// flight, and only in these does ProbeBW have steps.
    fn is_bounded(self) -> bool {
        matches!(self, Variant::V2 | Variant::V3)
    }

    /// Returns the variant with this short name or kernel name.
    pub fn named(name: &str) -> Option<Variant> {
        let place = Place::default();
        Variant::ALL.into_iter().find(|v| name == v.name() || name == place.registered(*v))
    }

    /// Returns the short names of all variants, separated by commas.
    pub fn names() -> String {
        Variant::ALL.map(Variant::name).join(", ")
    }

    /// Returns the variant's number in `enum nrw_variant`.
    fn number(self) -> u32 {
        self as u32
    }
}

/// Alternative interpretations of the paper (GAIN-4).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The probing phase ends at 1.25 BDP in flight, at a loss, or after two propagation times. The level of 1.25 BDP
    /// does not depend on the gain of the phase.
    pub exit_125: bool,
    /// The draining phase drains only if the previous probe lost packets.
    pub down_needs_loss: bool,
}

impl Options {
    fn to_bits(self) -> u64 {
        u64::from(self.exit_125) | u64::from(self.down_needs_loss) << 1
    }

    fn from_bits(bits: u64) -> Self {
        Options { exit_125: bits & 1 != 0, down_needs_loss: bits & 2 != 0 }
    }

    /// Returns the names of the options that are set.
    pub fn names(self) -> Vec<&'static str> {
        let all = [(self.exit_125, "exit-125"), (self.down_needs_loss, "down-needs-loss")];
        all.into_iter().filter_map(|(on, name)| on.then_some(name)).collect()
    }
}
