//! Loads congestion control algorithms from papers into a stock kernel, where any program can use them (`bpf/cc`):
//! BBR-A, BBR-B, BBR-C, and BBR v1 for comparison.
//!
//! Each algorithm is registered under its own name (`net.ipv4.tcp_available_congestion_control`). A pinned link or
//! map in bpffs holds the algorithm. The algorithm therefore outlives the process that loaded it.

mod error;
mod form;
mod gains;
mod load;
mod place;
mod registered;

pub use error::CcError;
pub use gains::gains;
pub use load::{Loaded, Tidied, find, list, load, loadable, tidy, unload, unloadable};
pub use place::Place;

/// A variant of BBR.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Variant {
    /// BBR v1, the same algorithm as the kernel's own `bbr`.
    V1,
    /// BBR-A: P_up is an inverse proportion, and P_down is a cosine.
    A,
    /// BBR-B: both gains are inverse proportions.
    B,
    /// BBR-C: both gains are gamma corrections.
    C,
}

impl Variant {
    /// All variants, in the order of `bpf/cc/state.h`.
    pub const ALL: [Variant; 4] = [Variant::V1, Variant::A, Variant::B, Variant::C];

    /// Returns the short name, as on the command line and in scenarios.
    pub fn name(self) -> &'static str {
        match self {
            Variant::V1 => "bbr",
            Variant::A => "bbr-a",
            Variant::B => "bbr-b",
            Variant::C => "bbr-c",
        }
    }

    /// Returns a short description.
    pub fn what(self) -> &'static str {
        match self {
            Variant::V1 => "BBR v1 in eBPF, as a control",
            Variant::A => "BBR v1 with BBR-A's pacing gains",
            Variant::B => "BBR v1 with BBR-B's pacing gains",
            Variant::C => "BBR v1 with BBR-C's pacing gains",
        }
    }

    /// Returns the variant with this short name or kernel name.
    pub fn named(name: &str) -> Option<Variant> {
        let place = Place::default();
        Variant::ALL.into_iter().find(|v| name == v.name() || name == place.registered(*v))
    }

    /// Returns the variant's number in `enum nrw_variant`.
    fn number(self) -> u32 {
        self as u32
    }
}

/// Alternative readings of the paper (GAIN-4).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The probing phase ends at 1.25 BDP in flight, regardless of its gain, or after two propagation times.
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
