//! Loads, finds and unloads congestion control algorithms.

use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fs, io, thread};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{AsRawLibbpf, ErrorKind, MapCore, MapFlags, MapHandle};
use narrows_control::units::Span;

use super::error::REMEDY;
use super::form::{Form, kernel_form};
use super::params::params;
use super::place::{ELEMENT, FACTS, LINK};
use super::registered::{Registered, is_registered};
use super::state::{StateMap, fields};
use super::{CcError, Options, Place, Variant};
use crate::{bpffs, clock, privileges};

skeleton!("cc");

use skeleton::{CcSkelBuilder, OpenCcSkel};

const BTF: &str = "/sys/kernel/btf/vmlinux";
const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
/// Maximum length of an algorithm's name in bytes, including the terminating zero (TCP_CA_NAME_MAX).
const NAME_MAX: usize = 16;
/// Longest wait for the kernel to unregister an algorithm after its pin is removed. A worker thread of the kernel does
/// this, and takes longer on a busy machine.
const UNREGISTER_SECONDS: u64 = 5;
const GONE_POLL: Duration = Duration::from_millis(2);

/// A loaded congestion control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// The variant.
    pub variant: Variant,
    /// The algorithm's name in the kernel.
    pub name: String,
    /// The options of this load.
    pub options: Options,
    /// Connections that use the algorithm now, in all network namespaces.
    pub connections: u64,
    /// Connections that have used the algorithm since it was loaded.
    pub begun: u64,
    /// Whether the algorithm's pin is visible. A pin is not visible if another mount hides it, or if it is in another
    /// mount namespace. A stale pin of the same name does not count.
    pub pin_is_visible: bool,
    /// The maps with the state of connections. Empty without CAP_SYS_ADMIN.
    pub state: Vec<StateMap>,
}

/// Checks the privileges and the kernel's BTF, which every call needs.
pub(super) fn check() -> Result<(), CcError> {
    privileges::check().map_err(CcError::Privileges)?;
    if Path::new(BTF).exists() {
        return Ok(());
    }
    Err(CcError::Missing {
        what: "relocating eBPF programs",
        found: format!("the kernel does not describe its types ({BTF} is missing)"),
        remedy: "a kernel with CONFIG_DEBUG_INFO_BTF is needed",
    })
}

/// Checks whether [`load`] can start. Callers check all algorithms before they load any of them.
///
/// # Errors
/// If the algorithm cannot be loaded with these options, or is loaded already. The message is one line.
pub fn loadable(variant: Variant, options: Options, place: &Place) -> Result<(), CcError> {
    if !variant.has_gain_model()
        && let Some(option) = options.names().first()
    {
        return Err(CcError::Pointless { option, name: variant.name() });
    }
    check()?;
    let name = place.registered(variant);
    if name.len() >= NAME_MAX {
        return Err(CcError::Long(name));
    }
    match find(variant, place)? {
        Some(loaded) if loaded.pin_is_visible => Err(CcError::Loaded(name)),
        Some(_) => Err(CcError::Taken { name, folder: place.folder.clone() }),
        None if is_registered(&name)? => Err(CcError::Taken { name, folder: place.folder.clone() }),
        None => Ok(()),
    }
}

/// Loads and registers a congestion control algorithm, which stays until [`unload`] or the next boot.
///
/// # Errors
/// If [`loadable`] fails, or if the kernel refuses the programs. The message is one line.
pub fn load(variant: Variant, options: Options, place: &Place) -> Result<Loaded, CcError> {
    check()?;
    let name = place.registered(variant);
    let _lock = bpffs::lock()?;
    place.mount()?;
    loadable(variant, options, place)?;
    let folder = place.make_empty(variant)?;
    let loaded = register(variant, options, &name, &folder);
    if loaded.is_err() {
        let _ = fs::remove_dir_all(&folder);
    }
    loaded?;
    Ok(Loaded { variant, name, options, connections: 0, begun: 0, pin_is_visible: true, state: Vec::new() })
}

/// Sets the constants of the programs for a variant, before they are loaded.
#[doc(hidden)]
pub fn configure(open: &mut OpenCcSkel<'_>, variant: Variant, options: Options) {
    if let Some(constants) = open.maps.rodata_data.as_deref_mut() {
        constants.nrw_variant = variant.number();
        constants.nrw_params = params(variant);
        constants.nrw_exit_125 = u32::from(options.exit_125);
        constants.nrw_down_needs_loss = u32::from(options.down_needs_loss);
    }
}

fn register(variant: Variant, options: Options, name: &str, folder: &Path) -> Result<(), CcError> {
    let mut storage = MaybeUninit::uninit();
    let opening = "opening the congestion control's programs";
    let mut open = CcSkelBuilder::default().open(&mut storage).map_err(CcError::refused(opening, REMEDY))?;
    let mut letters = [0i8; NAME_MAX];
    for (to, from) in letters.iter_mut().take(NAME_MAX - 1).zip(name.bytes()) {
        *to = from.cast_signed();
    }
    open.struct_ops.nrw_cc_mut().name = letters;
    open.progs.nrw_gains.set_autoload(false);
    open.progs.nrw_bbq.set_autoload(false);
    let form = kernel_form()?;
    match form {
        Form::Old => {
            let program = open.progs.nrw_cong_control_two.as_libbpf_object();
            open.struct_ops.nrw_cc_mut().cong_control = program.as_ptr();
            open.maps.nrw_cc.set_map_flags(0).map_err(CcError::refused(opening, REMEDY))?;
        }
        Form::New => open.progs.nrw_cong_control_two.set_autoload(false),
    }
    configure(&mut open, variant, options);
    if let Some(constants) = open.maps.rodata_data.as_deref_mut() {
        constants.nrw_old = u32::from(form == Form::Old);
    }
    if let Some(facts) = open.maps.bss_data.as_deref_mut() {
        facts.nrw_cc_facts.options = options.to_bits();
    }
    let loading = "loading the congestion control's programs";
    let mut skel = open.load().map_err(CcError::refused(loading, REMEDY))?;
    let pinning = "pinning the congestion control";
    let remedy = "a writable bpffs is needed";
    let mut link = skel.maps.nrw_cc.attach_struct_ops().map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => CcError::Taken { name: name.to_owned(), folder: folder.to_owned() },
        _ => CcError::refused("registering the congestion control", REMEDY)(error),
    })?;
    skel.maps.bss.pin(folder.join(FACTS)).map_err(CcError::refused(pinning, remedy))?;
    // Create this pin after all others, because it keeps the algorithm registered. On kernels without struct_ops
    // links, it is a pin of the map.
    match form {
        Form::New => link.pin(folder.join(LINK)),
        Form::Old => link.pin(folder.join(ELEMENT)).map(|()| link.disconnect()),
    }
    .map_err(CcError::refused(pinning, remedy))
}

/// Returns the loaded algorithm of a variant, or `None` if it is not loaded. Also finds an algorithm whose pin is not
/// visible.
///
/// # Errors
/// If this cannot be determined. The message is one line.
pub fn find(variant: Variant, place: &Place) -> Result<Option<Loaded>, CcError> {
    let name = place.registered(variant);
    // A pin does not prove that its algorithm is registered. A process in another mount namespace may have detached the
    // algorithm.
    if !is_registered(&name)? {
        return Ok(None);
    }
    let facts = place.of(variant).join(FACTS);
    let open = || MapHandle::from_pinned_path(&facts);
    // The pinned algorithm may have been unregistered, and another algorithm loaded under its name. Therefore compare
    // the pinned map with the registered one. Without CAP_SYS_ADMIN, the registered map cannot be opened, so accept
    // every pin that holds a map.
    let registered = Registered::find(&name);
    let pinned = place.pinned_map(variant)?;
    let pin_is_visible = pinned.is_some_and(|id| registered.as_ref().is_none_or(|found| found.id == id));
    let maps = registered.as_ref().map(|found| found.maps.as_slice()).unwrap_or_default();
    let of_state = |(map, id): &(String, u32)| {
        fields(map, variant.is_bounded()).map(|fields| StateMap { map: *id, fields })
    };
    let state = maps.iter().filter_map(of_state).collect();
    let map = if pin_is_visible {
        open().map_err(|error| CcError::file(&facts)(io::Error::other(error)))?
    } else {
        let Some(Registered { facts: Some(map), .. }) = registered else { return Ok(None) };
        map
    };
    let look = || map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
    let bytes = look().map_err(|error| CcError::file(&facts)(io::Error::other(error)))?.unwrap_or_default();
    let mut words = bytes.chunks_exact(8).filter_map(|word| word.try_into().ok().map(u64::from_ne_bytes));
    // Missing counters are an error. "Not loaded" would be wrong, because the algorithm may be in use.
    let (Some(connections), Some(begun), Some(options)) = (words.next(), words.next(), words.next()) else {
        return Err(CcError::file(&facts)(io::Error::other(
            "found counters of another version; unload the algorithm with that version",
        )));
    };
    let options = Options::from_bits(options);
    Ok(Some(Loaded { variant, name, options, connections, begun, pin_is_visible, state }))
}

/// Returns all loaded congestion control algorithms.
///
/// # Errors
/// If this cannot be determined. The message is one line.
pub fn list(place: &Place) -> Result<Vec<Loaded>, CcError> {
    privileges::check().map_err(CcError::Privileges)?;
    let found: Result<Vec<_>, _> = Variant::ALL.into_iter().map(|variant| find(variant, place)).collect();
    Ok(found?.into_iter().flatten().collect())
}

/// Checks whether [`unload`] can start. Callers check all algorithms before they unload any of them.
///
/// # Errors
/// If the algorithm is not loaded, is in use or is the default. The message is one line.
pub fn unloadable(variant: Variant, place: &Place) -> Result<(), CcError> {
    check()?;
    let name = place.registered(variant);
    let Some(loaded) = find(variant, place)? else { return Err(CcError::Absent(name)) };
    if fs::read_to_string(DEFAULT).map_err(CcError::file(DEFAULT))?.trim() == name {
        return Err(CcError::Default(name));
    }
    if loaded.connections > 0 {
        return Err(CcError::InUse { name, connections: loaded.connections });
    }
    Ok(())
}

/// Unregisters a congestion control algorithm that no connection uses, and waits until its name is free.
///
/// The kernel keeps an algorithm while a socket uses it. If a connection begins to use the algorithm during this call,
/// the algorithm stays until the connection ends.
///
/// # Errors
/// If the algorithm is not loaded or is in use, or if its name does not become free. The message is one line.
pub fn unload(variant: Variant, place: &Place) -> Result<(), CcError> {
    check()?;
    let _lock = bpffs::lock()?;
    unloadable(variant, place)?;
    let name = place.registered(variant);
    let was_visible = place.unpin(variant)?;
    // Always search the hidden mounts: an algorithm that was detached earlier may have left pins in them.
    let was_hidden = bpffs::below(|| place.unpin(variant));
    let is_unpinned = was_visible || matches!(was_hidden, Ok(true));
    if !(is_unpinned && is_gone_soon(&name)?) {
        // If another process holds the algorithm's link, removing the pins is not enough. Detach the link.
        detach(&name)?;
        if !is_gone_soon(&name)? {
            let connections = find(variant, place)?.map_or(0, |loaded| loaded.connections);
            return Err(CcError::Held { name, seconds: UNREGISTER_SECONDS, connections });
        }
    }
    bpffs::uncover();
    Ok(())
}

/// The result of [`tidy`].
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Tidied {
    /// Whether pins of algorithms that are not registered were removed.
    pub pins: bool,
    /// Number of bpffs mounts that hid another bpffs and were unmounted.
    pub mounts: usize,
}

/// Removes visible and hidden pins of algorithms that are not registered. Also unmounts each bpffs that hides another
/// bpffs and has no pins. Takes the lock only if there is something to remove.
///
/// # Errors
/// If the pins cannot be read or removed. The message is one line.
pub fn tidy(place: &Place) -> Result<Tidied, CcError> {
    if place.leftovers()?.is_empty() && bpffs::covered().unwrap_or(0) == 0 {
        return Ok(Tidied::default());
    }
    let _lock = bpffs::lock()?;
    let pins = AtomicBool::new(place.remove_leftovers()?);
    bpffs::below(|| {
        pins.fetch_or(place.remove_leftovers()?, Ordering::Relaxed);
        Ok::<_, CcError>(false)
    })?;
    Ok(Tidied { pins: pins.into_inner(), mounts: bpffs::uncover() })
}

/// Unregisters a congestion control algorithm whose pin is in another mount namespace or does not exist.
fn detach(name: &str) -> Result<(), CcError> {
    let Some(registered) = Registered::find(name) else { return Ok(()) };
    registered.detach().map_err(|found| CcError::Elsewhere { name: name.to_owned(), found })
}

/// Waits until a name is no longer registered. Returns false if the name is still registered after
/// [`UNREGISTER_SECONDS`].
fn is_gone_soon(name: &str) -> Result<bool, CcError> {
    let begun = clock::now();
    while is_registered(name)? {
        if clock::now().since(begun) >= Span::from_secs(UNREGISTER_SECONDS) {
            return Ok(false);
        }
        thread::sleep(GONE_POLL);
    }
    Ok(true)
}
