//! Loads the switch program and attaches it to ports.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle, TC_EGRESS, TcHook, TcHookBuilder};
use narrows_control::feedback::code::RateCode;
use narrows_control::rate::bdr;
use narrows_control::units::{Span, Time};

use super::layout::{Key, PORTS_MAX, addr_bytes};
use super::memory::bytes;
use super::ports::Ports;
use super::skeleton::SwitchSkelBuilder;
use super::skeleton::types::{nrw_advert, nrw_half, nrw_port, nrw_service, nrw_slot, nrw_way};
use super::slots::Slots;
use super::{Error, bpf, cost, sys};
use crate::tcx;

/// Sizes of the program's tables.
#[derive(Copy, Clone, Debug)]
pub struct Sizes {
    /// Largest number of flows with a slot.
    pub flows: u32,
    /// Largest number of SYNs that wait for an answer.
    pub half_open: u32,
    /// Largest number of services with a prediction (BRF-31).
    pub services: u32,
    /// Largest number of flows for which other switches advertise rates (BRF-63).
    pub adverts: u32,
    /// Number of entries in the table with the times of designated packets; a power of two. With a single entry, the
    /// switch keeps flows instead of these times.
    pub designations: u32,
}

impl Sizes {
    /// The sizes for a switch that keeps no flows. Its tables for flows have one entry, because maps must not be empty.
    pub const STATELESS: Sizes =
        Sizes { flows: 1, half_open: 1, services: 1, adverts: 1, designations: bdr::CELLS };
}

impl Default for Sizes {
    fn default() -> Self {
        Sizes { flows: 16_384, half_open: 16_384, services: 1024, adverts: 16_384, designations: 1 }
    }
}

/// Constants that are set before the program is loaded.
#[derive(Copy, Clone, Debug)]
pub struct Tunables {
    /// The entry of a SYN without an answer expires after this time (BRF-15).
    pub handshake_timeout: Span,
}

impl Default for Tunables {
    fn default() -> Self {
        Tunables { handshake_timeout: Span::from_secs(3) }
    }
}

/// The program's name.
const PROGRAM: &str = "nrw_switch";

/// The names of the maps and of their pins.
const MAPS: [&str; 10] = [
    "ifaces",
    "ports",
    "slots",
    "flows",
    "free_slots",
    "services",
    "adverts",
    "bells",
    "designations",
    "ways",
];
/// The operation that fails if the pinned maps have another layout.
const TAKE_OVER: &str = "take over the pinned maps of another version (narrows-agent clean removes them)";

/// The program's attachment to the egress of one interface. Dropping this value detaches the program, unless the
/// attachment is pinned.
pub enum Attachment {
    /// A link (Linux 6.6 and later). The kernel removes it when the process ends for any reason.
    Tcx(OwnedFd),
    /// A filter of clsact. It stays if the process is killed.
    Clsact(TcHook),
}

impl Drop for Attachment {
    fn drop(&mut self) {
        if let Attachment::Clsact(hook) = self {
            // Ignore an error, because it cannot be reported here. Usually, its cause is that the interface and its
            // filter are gone.
            let _ = hook.detach();
        }
    }
}

/// The loaded program and its maps.
pub struct Switch {
    program: OwnedFd,
    maps: [MapHandle; MAPS.len()],
    half_open: MapHandle,
    /// The flow table.
    pub slots: Slots,
    /// The ports' records.
    pub ports: Ports,
}

impl Switch {
    /// Loads a new program with empty tables.
    pub fn load(sizes: Sizes, tunables: Tunables) -> Result<Self, Error> {
        let failed = bpf("load the switch program");
        let designations = sizes.designations.max(1);
        let mut storage = MaybeUninit::uninit();
        let mut open = SwitchSkelBuilder::default().open(&mut storage).map_err(&failed)?;
        if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
            rodata.handshake_ns = tunables.handshake_timeout.as_nanos();
            rodata.designated_ns = bdr::FRESH.as_nanos();
            rodata.designations_mask = designations - 1;
            rodata.syn_seed = seed()?;
        }
        for map in [&mut open.maps.ifaces, &mut open.maps.ports] {
            map.set_max_entries(PORTS_MAX).map_err(&failed)?;
        }
        let open_maps = &mut open.maps;
        for map in
            [&mut open_maps.slots, &mut open_maps.ways, &mut open_maps.flows, &mut open_maps.free_slots]
        {
            map.set_max_entries(sizes.flows.max(1)).map_err(&failed)?;
        }
        open.maps.half_open.set_max_entries(sizes.half_open.max(1)).map_err(&failed)?;
        open.maps.services.set_max_entries(sizes.services.max(1)).map_err(&failed)?;
        open.maps.adverts.set_max_entries(sizes.adverts.max(1)).map_err(&failed)?;
        open.maps.designations.set_max_entries(designations).map_err(&failed)?;
        let skel = open.load().map_err(&failed)?;
        let handle = |map: &libbpf_rs::MapMut<'_>| MapHandle::try_from(map).map_err(&failed);
        let maps = &skel.maps;
        let maps = [
            handle(&maps.ifaces)?,
            handle(&maps.ports)?,
            handle(&maps.slots)?,
            handle(&maps.flows)?,
            handle(&maps.free_slots)?,
            handle(&maps.services)?,
            handle(&maps.adverts)?,
            handle(&maps.bells)?,
            handle(&maps.designations)?,
            handle(&maps.ways)?,
        ];
        let half_open = handle(&skel.maps.half_open)?;
        let program = skel
            .progs
            .nrw_switch
            .as_fd()
            .try_clone_to_owned()
            .map_err(|source| Error::System { what: "duplicate the program's descriptor", source })?;
        let mut switch = Self::over(program, maps, half_open)?;
        switch.slots.fill_queue()?;
        Ok(switch)
    }

    fn over(program: OwnedFd, maps: [MapHandle; MAPS.len()], half_open: MapHandle) -> Result<Self, Error> {
        let [_, ports, slots, flows, free, .., ways] = &maps;
        // Another version of the agent may have pinned another layout.
        for (map, size) in [
            (ports, size_of::<nrw_port>()),
            (slots, size_of::<nrw_slot>()),
            (ways, size_of::<nrw_way>()),
            (&half_open, size_of::<nrw_half>()),
        ] {
            if map.value_size() as usize != size {
                return Err(Error::System {
                    what: TAKE_OVER,
                    source: std::io::ErrorKind::InvalidData.into(),
                });
            }
        }
        let copy = |map: &MapHandle| MapHandle::try_from(map).map_err(bpf("duplicate a map's descriptor"));
        let slots = Slots::new(slots, ways, copy(flows)?, copy(free)?)?;
        let ports = Ports::new(ports)?;
        Ok(Switch { program, maps, half_open, slots, ports })
    }

    /// Pins the program and its maps in a folder of bpffs, so that they outlive the process.
    pub fn pin(&self, folder: &Path) -> Result<(), Error> {
        std::fs::create_dir_all(folder).map_err(|source| Error::Pin { folder: folder.to_owned(), source })?;
        let pin = |object: BorrowedFd<'_>, name: &str| {
            // No program is pinned in this folder. Other pins in the folder are from an agent that died before it had
            // pinned everything. Remove them.
            let _ = std::fs::remove_file(folder.join(name));
            sys::pin(object, &folder.join(name))
        };
        pin(self.half_open.as_fd(), "half_open")?;
        for (map, name) in self.maps.iter().zip(MAPS) {
            pin(map.as_fd(), name)?;
        }
        // Pin the program last, so that the maps' pins exist whenever the program's pin exists.
        pin(self.program.as_fd(), "program")
    }

    /// Takes over the pinned data plane of an earlier agent, with its flows, sizes and tunables, but without its
    /// predictions.
    pub fn open_pinned(folder: &Path) -> Result<Self, Error> {
        let map =
            |name: &str| MapHandle::from_pinned_path(folder.join(name)).map_err(bpf("open a pinned map"));
        let program = sys::open_pinned(&folder.join("program"))?;
        let [a, b, c, d, e, f, g, h, i, j] = MAPS;
        if !folder.join(j).exists() {
            return Err(Error::System { what: TAKE_OVER, source: std::io::ErrorKind::InvalidData.into() });
        }
        let maps = [map(a)?, map(b)?, map(c)?, map(d)?, map(e)?, map(f)?, map(g)?, map(h)?, map(i)?, map(j)?];
        let mut switch = Self::over(program, maps, map("half_open")?)?;
        switch.slots.reclaim()?;
        switch.forget_services()?;
        Ok(switch)
    }

    /// Attaches the program at the egress of an interface of the current network namespace, by tcx or (before Linux
    /// 6.6) by clsact.
    pub fn attach(&self, ifindex: u32) -> Result<Attachment, Error> {
        match tcx::attach(self.program.as_fd(), ifindex, tcx::EGRESS) {
            Ok(link) => Ok(Attachment::Tcx(link)),
            // EINVAL: the kernel has no tcx.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => self.attach_clsact(ifindex),
            Err(source) => Err(Error::System { what: "attach to the egress hook (tcx)", source }),
        }
    }

    /// Returns whether the kernel has tcx, which pinning needs. To find out, attaches the program to the loopback
    /// interface for a moment. Packets of this interface pass unchanged.
    pub fn has_tcx(&self) -> bool {
        nix::net::if_::if_nametoindex("lo")
            .is_ok_and(|index| tcx::attach(self.program.as_fd(), index, tcx::EGRESS).is_ok())
    }

    /// Attaches by clsact, even if the kernel has tcx.
    pub fn attach_clsact(&self, ifindex: u32) -> Result<Attachment, Error> {
        let failed = bpf("attach to the egress hook (clsact)");
        let mut hook = filter(self.program.as_fd(), ifindex);
        hook.create().map_err(&failed)?;
        hook.attach().map_err(&failed)?;
        Ok(Attachment::Clsact(hook))
    }

    /// Pins a tcx attachment, so that it outlives the process.
    pub fn pin_attachment(attachment: &Attachment, folder: &Path, ifindex: u32) -> Result<PathBuf, Error> {
        let path = link_pin(folder, ifindex);
        if let Attachment::Tcx(link) = attachment {
            sys::pin(link, &path)?;
        }
        Ok(path)
    }

    /// Takes over the pinned attachment of this interface, if any. Removes a pin of an earlier interface with this
    /// ifindex, or of an interface in another namespace.
    pub fn open_attachment(folder: &Path, ifindex: u32) -> Option<Attachment> {
        let link = sys::open_pinned(&link_pin(folder, ifindex)).ok()?;
        if tcx::is_attached(link.as_fd(), ifindex, tcx::EGRESS).unwrap_or(false) {
            return Some(Attachment::Tcx(link));
        }
        Self::unpin_attachment(folder, ifindex);
        None
    }

    /// Assigns a port to an interface. Packets of unassigned interfaces pass unchanged.
    pub fn set_interface(&self, ifindex: u32, port: u8) -> Result<(), Error> {
        self.maps[0]
            .update(&ifindex.to_ne_bytes(), &u32::from(port).to_ne_bytes(), MapFlags::ANY)
            .map_err(bpf("assign a port to an interface"))
    }

    /// Lets packets of this interface pass unchanged from now on. The attachment stays.
    pub fn forget_interface(&self, ifindex: u32) -> Result<(), Error> {
        set_or_delete(&self.maps[0], &ifindex.to_ne_bytes(), None)
    }

    /// Removes the pinned attachment of an interface, if any. The kernel detaches the program when no other descriptor
    /// or pin holds the attachment.
    pub fn unpin_attachment(folder: &Path, ifindex: u32) {
        // If this fails, there is no pin, and nothing to remove.
        let _ = std::fs::remove_file(link_pin(folder, ifindex));
    }

    /// Detaches the pinned program from all interfaces except the `kept` ones. All other interfaces belonged to an
    /// earlier agent, or no longer exist.
    pub fn forget_other_interfaces(&self, folder: &Path, kept: &[u32]) -> Result<(), Error> {
        for key in self.maps[0].keys().collect::<Vec<_>>() {
            let index = key.as_slice().try_into().map(u32::from_ne_bytes);
            if let Ok(index) = index
                && !kept.contains(&index)
            {
                Self::unpin_attachment(folder, index);
                self.forget_interface(index)?;
            }
        }
        Ok(())
    }

    /// Returns the controlled ports by number, with their ifindexes.
    pub fn controlled(&self) -> Result<BTreeMap<u8, u32>, Error> {
        let word = |bytes: &[u8]| Some(u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?));
        let mut found = BTreeMap::new();
        for key in self.maps[0].keys() {
            let value = self.maps[0].lookup(&key, MapFlags::ANY).map_err(bpf("read the ports"))?;
            let port = value.as_deref().and_then(word).and_then(|port| u8::try_from(port).ok());
            if let (Some(interface), Some(port)) = (word(&key), port)
                && self.ports.get(port).is_some_and(|port| port.is_controlled())
            {
                found.insert(port, interface);
            }
        }
        Ok(found)
    }

    /// Returns whether the maps are for flows, not for designated packets.
    pub fn keeps_flows(&self) -> bool {
        self.maps[8].max_entries() == 1
    }

    fn forget_services(&self) -> Result<(), Error> {
        for key in self.maps[5].keys().collect::<Vec<_>>() {
            set_or_delete(&self.maps[5], &key, None)?;
        }
        Ok(())
    }

    /// Sets or removes the largest grant for new flows of a service. Only the /24 or /48 network of the data's
    /// `destination` counts. `service_port` is the smaller of the flow's two ports.
    pub fn set_service(
        &self,
        port: u8,
        destination: IpAddr,
        service_port: u16,
        code: Option<RateCode>,
    ) -> Result<(), Error> {
        let (family, network) = if destination.is_ipv4() { (4, 3) } else { (6, 6) };
        let mut prefix = addr_bytes(destination);
        prefix[network..].fill(0);
        let key = nrw_service { prefix, port: service_port.to_be(), family, ctl_port: port };
        let code = code.map(|code| code.to_bits().to_ne_bytes());
        set_or_delete(&self.maps[5], bytes(&key), code.as_ref().map(|code| &code[..]))
    }

    /// Sets or removes a rate that another switch advertises for a flow without a slot here (BRF-63).
    pub fn set_advert(&self, key: &Key, advert: Option<(RateCode, Time)>) -> Result<(), Error> {
        let value = advert.map(|(code, until)| nrw_advert {
            valid_until_ns: until.as_nanos(),
            code: code.to_bits(),
            ..nrw_advert::default()
        });
        set_or_delete(&self.maps[6], bytes(key), value.as_ref().map(bytes))
    }

    /// Returns the ring buffer with the slots of new flows ([`announced_slot`](super::slots::announced_slot)), for
    /// `libbpf_rs::RingBufferBuilder`.
    pub fn bells(&self) -> &MapHandle {
        &self.maps[7]
    }

    /// Returns the program, for the kernel's statistics ([`cost`]).
    pub fn program(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }

    /// Runs the program once, as if this packet left by this interface. Nothing is sent.
    pub fn try_packet(&self, ifindex: u32, gso_size: u32, packet: &[u8]) -> Result<TestRun, Error> {
        self.try_packet_from(0, ifindex, gso_size, packet)
    }

    /// Like [`Switch::try_packet`], for a packet that arrived at the interface `ingress`. 0 means that this host made
    /// the packet.
    pub fn try_packet_from(
        &self,
        ingress: u32,
        ifindex: u32,
        gso_size: u32,
        packet: &[u8],
    ) -> Result<TestRun, Error> {
        let mut context: sys::Context = [0; 48];
        context[sys::INGRESS_IFINDEX] = ingress;
        context[sys::IFINDEX] = ifindex;
        context[sys::GSO_SIZE] = gso_size;
        self.run(context, packet)
    }

    /// Like [`Switch::try_packet`], for a packet with a mark.
    pub fn try_packet_marked(&self, mark: u32, ifindex: u32, packet: &[u8]) -> Result<TestRun, Error> {
        let mut context: sys::Context = [0; 48];
        context[sys::MARK] = mark;
        context[sys::IFINDEX] = ifindex;
        self.run(context, packet)
    }

    fn run(&self, mut context: sys::Context, packet: &[u8]) -> Result<TestRun, Error> {
        // A packet grows by at most one option. The buffer is larger than this, because the kernel needs more bytes to
        // report the length.
        let mut out = vec![0; packet.len() + 256];
        let (verdict, len) = sys::test_run(self.program.as_fd(), &mut context, packet, &mut out)?;
        out.truncate(len);
        Ok(TestRun { verdict, packet: out, priority: context[sys::PRIORITY] })
    }
}

/// Returns the path of the pin of an interface's attachment.
fn link_pin(folder: &Path, ifindex: u32) -> PathBuf {
    folder.join(format!("link_{ifindex}"))
}

/// Removes the program's clsact filter from the egress of an interface. Returns whether there was such a filter. On
/// kernels without tcx, the filter outlives an agent that was killed.
pub fn remove_filter(ifindex: u32) -> bool {
    let is_ours = |id: &u32| cost::by_id(*id).is_ok_and(|(name, _)| name == PROGRAM);
    cost::loaded().into_iter().filter(is_ours).any(|id| {
        let Ok(program) = sys::open_program(id) else { return false };
        let mut hook = filter(program.as_fd(), ifindex);
        hook.query().is_ok_and(|found| found == id) && hook.detach().is_ok()
    })
}

/// Returns the clsact filter of the program at the egress of an interface.
fn filter(program: BorrowedFd<'_>, ifindex: u32) -> TcHook {
    TcHookBuilder::new(program).ifindex(ifindex as i32).replace(true).handle(1).priority(1).hook(TC_EGRESS)
}

/// Returns a random seed for the program's hash, unknown to attackers.
fn seed() -> Result<u64, Error> {
    getrandom::u64()
        .map_err(|e| Error::System { what: "get random bytes", source: std::io::Error::other(e.to_string()) })
}

fn set_or_delete(map: &MapHandle, key: &[u8], value: Option<&[u8]>) -> Result<(), Error> {
    let done = match value {
        Some(value) => map.update(key, value, MapFlags::ANY),
        None => map.delete(key),
    };
    match done {
        Err(error) if error.kind() == libbpf_rs::ErrorKind::NotFound => Ok(()),
        other => other.map_err(bpf("change a table of the switch")),
    }
}

/// The result of [`Switch::try_packet`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestRun {
    /// -1: the packet goes to the next program. 2: the packet is dropped.
    pub verdict: i32,
    /// The packet after the program's run.
    pub packet: Vec<u8>,
    /// `skb->priority` after the program's run: the handle of HTB's class.
    pub priority: u32,
}
