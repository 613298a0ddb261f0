//! Loads `bpf/receiver`.

use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::path::Path;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};

use super::links::Links;
use super::load::{Bss, check_kernel, counters, enter_namespaces, refused};
use super::{HostError, ReceiverOptions, cgroup, links};

skeleton!("receiver");

use skeleton::ReceiverSkelBuilder;
use skeleton::types::nrw_receiver_counters;

const ROLE: &str = "receiver";
const REMEDY: &str = "Linux 5.14 or later with CONFIG_CGROUP_BPF and CONFIG_DEBUG_INFO_BTF is needed";

/// Counters of the receiver's program since it was loaded.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceiverCounters {
    /// SYNs of this host that asked for feedback.
    pub asked: u64,
    /// Connections whose ACKs have room for feedback.
    pub reserving: u64,
}

/// A host whose ACKs have room for feedback, as long as this value exists or is pinned.
#[derive(Debug)]
pub struct Receiver {
    counters: Bss,
    _links: Links,
}

impl Receiver {
    /// Loads and attaches the program. Pins of an earlier start in the same folder are removed first.
    ///
    /// Sockets that listened before do not accept connections with feedback, because the SYNs of these connections are
    /// not saved, unless a sender also runs on this host. For such connections the switch inserts the option.
    pub fn load(options: &ReceiverOptions) -> Result<Self, HostError> {
        check_kernel()?;
        let cgroup = cgroup::open(options.scope.cgroup.as_deref())?;
        let mut links = Links::new(ROLE, options.scope.pin.as_deref())?;

        let mut storage = MaybeUninit::uninit();
        let opening = "opening the receiver's program";
        let mut open = ReceiverSkelBuilder::default().open(&mut storage).map_err(refused(opening, REMEDY))?;
        if let Some(tunables) = open.maps.rodata_data.as_deref_mut() {
            tunables.nrw_scoped = u32::from(!options.scope.namespaces.is_empty());
            tunables.nrw_ask = u32::from(options.ask);
        }
        let skel = open.load().map_err(refused("loading the receiver's program", REMEDY))?;
        enter_namespaces(&skel.maps.nrw_namespaces, &options.scope)?;
        let attached = skel.progs.nrw_receiver.attach_cgroup(cgroup.as_raw_fd());
        links.hold("sockops", attached.map_err(refused("attaching to the cgroup", REMEDY))?)?;
        Ok(Receiver { counters: Bss::new(&skel.maps.bss)?, _links: links })
    }

    /// The present counters.
    pub fn counters(&self) -> ReceiverCounters {
        counters!(self.counters.read(), nrw_receiver_counters => ReceiverCounters { asked, reserving })
    }
}

/// Removes the pins of a receiver from this folder.
pub(super) fn clean(pin: &Path) -> Result<(), HostError> {
    links::unpin(pin, ROLE)
}
