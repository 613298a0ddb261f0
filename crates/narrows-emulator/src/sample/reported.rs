//! The state of a congestion controller.

use std::os::fd::AsFd;

use super::{BbrInfo, EbpfInfo, EbpfMaps};

/// The state of a congestion controller that can be read.
#[derive(Clone, Debug)]
pub(crate) enum Reported {
    /// Linux's BBR v1.
    Linux(BbrInfo),
    /// BBR in eBPF.
    Ebpf(EbpfInfo),
}

impl Reported {
    /// Reads the state of a socket. `maps`: the maps of the controller, if it is in eBPF.
    pub(crate) fn of(socket: impl AsFd, maps: Option<&EbpfMaps>) -> Option<Self> {
        match maps {
            Some(maps) => maps.of(socket).map(Reported::Ebpf),
            None => BbrInfo::of(socket).map(Reported::Linux),
        }
    }

    /// Calls `trace` with the variables that the simulator's controller also traces. The arguments are the payload of a
    /// full packet, and its size at L3.
    pub(crate) fn trace(&self, payload: f64, packet: f64, trace: &mut dyn FnMut(&'static str, f64)) {
        match self {
            Reported::Linux(bbr) => bbr.trace(packet / payload, trace),
            Reported::Ebpf(bbr) => bbr.trace(packet, trace),
        }
    }
}
