//! Loads the eBPF programs of the sender (`bpf/sender`).

use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;

use libbpf_rs::Link;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use narrows_control::feedback::option::Format;

use super::load::{Bss, check_kernel, counters, refused};
use super::namespaces::{Namespaces, take_over};
use super::netns::{self, DefaultChanged};
use super::{Choice, HostError, Mode, Namespace, SenderOptions, cgroup};
use crate::tcx;

skeleton!("sender");

use skeleton::types::{nrw_choice, nrw_format, nrw_host_counters};
use skeleton::{OpenSenderSkel, SenderSkel, SenderSkelBuilder};

/// Largest length of the congestion control's name in bytes, including the terminating zero (TCP_CA_NAME_MAX).
const NAME_MAX: usize = 16;
const REMEDY: &str = "Linux 6.12 or later with CONFIG_BPF_JIT and CONFIG_DEBUG_INFO_BTF is needed";

/// Counters of the sender's programs since they were loaded.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// SYNs that asked for feedback.
    pub asked: u64,
    /// Connections that started with a rate.
    pub rated: u64,
    /// Connections that started with CUBIC and may get a rate.
    pub awaiting: u64,
    /// Connections without an option in the handshake, which always use CUBIC.
    pub unrated: u64,
    /// Connections that changed to CUBIC because their feedback stopped.
    pub orphaned: u64,
    /// Connections that returned from CUBIC to a rate.
    pub adopted: u64,
    /// Connections that were taken over from an earlier sender.
    pub taken_over: u64,
    /// Data packets that were marked to state whether the application limits the flow.
    pub marked: u64,
    /// First segments that the qdisc fq held until their departure time.
    pub held: u64,
    /// Reports of designated packets (BDR).
    pub designated: u64,
    /// ACKs whose padding was restored (the paper's wire format).
    pub restored: u64,
}

/// The sender of this host. While it exists, the host applies rate feedback.
#[derive(Debug)]
pub struct Sender {
    counters: Bss,
    // This field is before the links, so that it is dropped first. An algorithm that is still a default would stay in
    // the kernel.
    _defaults: Vec<DefaultChanged>,
    /// The namespaces in which the programs apply.
    pub namespaces: Namespaces,
    // Stored only to be dropped with this value.
    _links: Vec<Link>,
}

impl Sender {
    /// Loads and attaches the programs.
    pub fn load(options: &SenderOptions) -> Result<Self, HostError> {
        check(options)?;
        check_kernel()?;
        let cgroup = cgroup::open(options.scope.cgroup.as_deref())?;

        let mut storage = MaybeUninit::uninit();
        let mut skel = open(options, &mut storage)?;
        let mut links = Vec::new();
        if options.mode == Mode::Brf {
            let link = skel.maps.brf.attach_struct_ops().map_err(refused(
                "registering the congestion control",
                "if another sender has registered this name (see `bpftool struct_ops`), end it or choose \
                 another name; otherwise Linux 6.12 or later is needed",
            ))?;
            links.push(link);
        }
        let attach = "attaching to the cgroup";
        if options.mode == Mode::Brf && options.choice == Choice::All {
            let link = skel
                .progs
                .nrw_setsockopt
                .attach_cgroup(cgroup.as_raw_fd())
                .map_err(refused(attach, REMEDY))?;
            links.push(link);
        }
        if options.mode == Mode::Brf {
            let link =
                skel.progs.nrw_depart.attach_cgroup(cgroup.as_raw_fd()).map_err(refused(attach, REMEDY))?;
            links.push(link);
        }
        let link =
            skel.progs.nrw_sockops.attach_cgroup(cgroup.as_raw_fd()).map_err(refused(attach, REMEDY))?;
        links.push(link);
        let mut namespaces = Namespaces::new(&skel.maps.nrw_namespaces)?;
        if options.mode == Mode::Brf {
            let iterator = skel.progs.nrw_take_over.attach();
            let iterator = iterator.map_err(refused("visiting the open sockets", REMEDY))?;
            if options.scope.namespaces.is_empty() {
                take_over(&iterator)?;
            }
            namespaces.take_over_sockets(iterator);
            // Only `brf` measures whether the application limits a flow.
            if marks(options) {
                namespaces.attach(&skel.progs.nrw_mark, tcx::EGRESS)?;
            }
        }
        if options.format == Format::Padding {
            namespaces.attach(&skel.progs.nrw_restore, tcx::INGRESS)?;
        }
        namespaces.start(&options.scope.namespaces)?;

        let mut defaults = Vec::new();
        if options.default_in_namespaces {
            for namespace in &options.scope.namespaces {
                defaults.push(DefaultChanged::to(&options.name, namespace)?);
            }
        }
        Ok(Sender { counters: Bss::new(&skel.maps.bss)?, _defaults: defaults, namespaces, _links: links })
    }

    /// Reads the present counters.
    pub fn counters(&self) -> SenderCounters {
        counters!(self.counters.read(), nrw_host_counters => SenderCounters {
            asked, rated, awaiting, unrated, orphaned, adopted, taken_over, marked, held, designated, restored
        })
    }
}

fn check(options: &SenderOptions) -> Result<(), HostError> {
    let name = &options.name;
    let setting = |key, found, remedy| Err(HostError::Setting { key, found, remedy });
    if name.is_empty() || name.len() >= NAME_MAX || !name.bytes().all(|b| b.is_ascii_graphic()) {
        let remedy = "expected 1 to 15 printable ASCII characters without spaces";
        return setting("name", format!("`{name}`"), remedy);
    }
    if options.mode == Mode::Brf && !netns::has_congestion_control("cubic")? {
        return Err(HostError::Missing {
            what: "falling back to CUBIC without feedback",
            found: "the kernel has no cubic".to_owned(),
            remedy: "CONFIG_TCP_CONG_CUBIC is needed (`modprobe tcp_cubic`), or mode = \"cap\"".to_owned(),
        });
    }
    if options.default_in_namespaces && (options.mode != Mode::Brf || options.scope.namespaces.is_empty()) {
        let found = "true, without a namespace or a congestion control".to_owned();
        return setting("default_in_namespaces", found, "name namespaces and use a mode other than cap");
    }
    let interfaces = options.scope.namespaces.iter().any(|n| !n.interfaces.is_empty());
    if options.format == Format::Padding && !interfaces {
        let found = "padding, without an interface by which ACKs arrive".to_owned();
        return setting("format", found, "name interfaces or use another format");
    }
    Ok(())
}

fn open<'obj>(
    options: &SenderOptions,
    storage: &'obj mut MaybeUninit<libbpf_rs::OpenObject>,
) -> Result<SenderSkel<'obj>, HostError> {
    let opening = "opening the sender's programs";
    let mut open = SenderSkelBuilder::default().open(storage).map_err(refused(opening, REMEDY))?;
    tune(options, &mut open);
    choose_programs(options, &mut open).map_err(refused(opening, REMEDY))?;
    open.load().map_err(refused("loading the sender's programs", REMEDY))
}

fn tune(options: &SenderOptions, open: &mut OpenSenderSkel<'_>) {
    let mut name = [0i8; NAME_MAX];
    for (to, from) in name.iter_mut().zip(options.name.bytes()) {
        *to = from.cast_signed();
    }
    open.struct_ops.brf_mut().name = name;
    if let Some(tunables) = open.maps.rodata_data.as_deref_mut() {
        tunables.nrw_name = name;
        tunables.nrw_scoped = u32::from(!options.scope.namespaces.is_empty());
        tunables.nrw_designate = u32::from(options.designate);
        tunables.nrw_cap_only = u32::from(options.mode == Mode::Cap);
        tunables.nrw_choice = match options.choice {
            Choice::Unchosen => nrw_choice::NRW_CHOICE_UNCHOSEN,
            Choice::Chosen => nrw_choice::NRW_CHOICE_CHOSEN,
            Choice::All => nrw_choice::NRW_CHOICE_ALL,
        };
        tunables.nrw_format = match options.format {
            Format::Padding => nrw_format::NRW_FORMAT_PADDING,
            Format::Experimental => nrw_format::NRW_FORMAT_INSERT,
        };
        if let Some(rate) = options.max_rate {
            tunables.nrw_max_rate = rate.as_bytes_per_sec().clamp(1, tunables.nrw_max_rate);
        }
    }
}

/// Disables the programs that these options do not use, so that the kernel need not support them.
fn choose_programs(options: &SenderOptions, open: &mut OpenSenderSkel<'_>) -> libbpf_rs::Result<()> {
    let uses_brf = options.mode == Mode::Brf;
    open.progs.nrw_setsockopt.set_autoload(uses_brf && options.choice == Choice::All);
    open.progs.nrw_mark.set_autoload(marks(options));
    open.progs.nrw_restore.set_autoload(options.format == Format::Padding);
    open.progs.nrw_depart.set_autoload(uses_brf);
    // This program needs a newer kernel than the programs for the mode `cap`.
    open.progs.nrw_take_over.set_autoload(uses_brf);
    if !uses_brf {
        open.maps.brf.set_autocreate(false)?;
        for program in [
            &mut open.progs.brf_init,
            &mut open.progs.brf_release,
            &mut open.progs.brf_cong_control,
            &mut open.progs.brf_cwnd_event,
            &mut open.progs.brf_set_state,
            &mut open.progs.brf_ssthresh,
            &mut open.progs.brf_undo_cwnd,
            &mut open.progs.brf_pkts_acked,
        ] {
            program.set_autoload(false);
        }
    }
    Ok(())
}

/// Returns whether data packets are marked. For a namespace with a path, returns true even if it has no interfaces,
/// because a reload can add interfaces to it.
fn marks(options: &SenderOptions) -> bool {
    let may_have = |namespace: &Namespace| namespace.path.is_some() || !namespace.interfaces.is_empty();
    options.mode == Mode::Brf && options.scope.namespaces.iter().any(may_have)
}
