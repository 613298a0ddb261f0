//! Loads the eBPF program of the receiver (`bpf/receiver`).

use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;

use libbpf_rs::Link;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};

use super::load::{Bss, check_kernel, counters, refused};
use super::namespaces::Namespaces;
use super::{HostError, ReceiverOptions, cgroup};

skeleton!("receiver");

use skeleton::ReceiverSkelBuilder;
use skeleton::types::nrw_receiver_counters;

const REMEDY: &str = "Linux 5.14 or later with CONFIG_CGROUP_BPF and CONFIG_DEBUG_INFO_BTF is needed";

/// Counters of the receiver's program since it was loaded.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceiverCounters {
    /// SYNs of this host that asked for feedback.
    pub asked: u64,
    /// Connections whose ACKs have room for feedback.
    pub reserving: u64,
}

/// The receiver of this host. While it exists, the host's ACKs have room for feedback.
#[derive(Debug)]
pub struct Receiver {
    counters: Bss,
    /// The namespaces in which the program applies.
    pub namespaces: Namespaces,
    _link: Link,
}

impl Receiver {
    /// Loads and attaches the program.
    ///
    /// A socket that listens before the program is loaded does not save the SYNs of its connections, unless a sender
    /// also runs on this host. Without a saved SYN, ACKs have no room for feedback, and the switch inserts the option.
    pub fn load(options: &ReceiverOptions) -> Result<Self, HostError> {
        check_kernel()?;
        let cgroup = cgroup::open(options.scope.cgroup.as_deref())?;

        let mut storage = MaybeUninit::uninit();
        let opening = "opening the receiver's program";
        let mut open = ReceiverSkelBuilder::default().open(&mut storage).map_err(refused(opening, REMEDY))?;
        if let Some(tunables) = open.maps.rodata_data.as_deref_mut() {
            tunables.nrw_scoped = u32::from(!options.scope.namespaces.is_empty());
            tunables.nrw_ask = u32::from(options.ask);
        }
        let skel = open.load().map_err(refused("loading the receiver's program", REMEDY))?;
        let mut namespaces = Namespaces::new(&skel.maps.nrw_namespaces)?;
        namespaces.start(&options.scope.namespaces)?;
        let attached = skel.progs.nrw_receiver.attach_cgroup(cgroup.as_raw_fd());
        let link = attached.map_err(refused("attaching to the cgroup", REMEDY))?;
        Ok(Receiver { counters: Bss::new(&skel.maps.bss)?, namespaces, _link: link })
    }

    /// Reads the present counters.
    pub fn counters(&self) -> ReceiverCounters {
        counters!(self.counters.read(), nrw_receiver_counters => ReceiverCounters { asked, reserving })
    }
}
