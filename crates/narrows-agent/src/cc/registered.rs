//! Finds and unregisters congestion control algorithms that are registered in the kernel, even if their pins are not
//! visible.
#![allow(unsafe_code, reason = "system calls that libbpf-rs has no wrapper for")]

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{MemberAttr, Struct};
use libbpf_rs::query::{LinkInfoIter, LinkTypeInfo, MapInfoIter, ProgInfoIter, ProgInfoQueryOptions};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};

use super::CcError;

/// The kernel's list of congestion control algorithms.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// The struct_ops map's name in `bpf/cc/bbr.h`.
const MAP: &str = "nrw_cc";
/// End of the name of the map with `nrw_cc_facts`. The name begins with the object's name.
const FACTS: &str = ".bss";
/// `BPF_STRUCT_OPS_STATE_INUSE` (include/linux/bpf.h): the map's element is registered, without a link.
const IN_USE: u32 = 1;

/// Returns whether the kernel has an algorithm with this name.
pub(super) fn is_registered(name: &str) -> Result<bool, CcError> {
    let available = fs::read_to_string(AVAILABLE).map_err(CcError::file(AVAILABLE))?;
    Ok(available.split_ascii_whitespace().any(|available| available == name))
}

/// A registered congestion control of Narrows.
pub(super) struct Registered {
    map: MapHandle,
    /// The map's id.
    pub(super) id: u32,
    /// Id of the link that keeps the algorithm registered. `None`: the map's element keeps it registered.
    link: Option<u32>,
    /// The map with the algorithm's counters, `struct nrw_cc_facts`.
    pub(super) facts: Option<MapHandle>,
    /// The names and ids of the maps that the algorithm uses.
    pub(super) maps: Vec<(String, u32)>,
}

impl Registered {
    /// Finds a registered algorithm by its name. Returns `None` without CAP_SYS_ADMIN, which is needed to open a map by
    /// its id.
    pub(super) fn find(name: &str) -> Option<Registered> {
        let layout = Layout::read()?;
        let mut maps = MapInfoIter::default().filter(|map| map.ty == MapType::StructOps && map.name == MAP);
        maps.find_map(|info| {
            let map = MapHandle::from_map_id(info.id).ok()?;
            let value = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok()??;
            if layout.name(&value)? != name.as_bytes() {
                return None;
            }
            let link = link_of(info.id);
            if link.is_none() && word(&value, layout.state)? != IN_USE {
                return None;
            }
            let used = maps_of(word(&value, layout.cong_control)?);
            let maps =
                used.iter().map(|(id, map)| (map.name().to_string_lossy().into_owned(), *id)).collect();
            let facts = used.into_iter().map(|(_, map)| map);
            let facts = facts.into_iter().find(|map| map.name().to_string_lossy().ends_with(FACTS));
            Some(Registered { map, id: info.id, link, facts, maps })
        })
    }

    /// Unregisters the algorithm. If its pin remains, the pin no longer has an effect.
    ///
    /// # Errors
    /// If the kernel refuses. Before Linux 6.11, struct_ops links cannot be detached.
    pub(super) fn detach(&self) -> io::Result<()> {
        let Some(id) = self.link else {
            return self.map.delete(&0u32.to_ne_bytes()).map_err(io::Error::other);
        };
        // SAFETY: the call takes no pointers.
        let link = unsafe { libbpf_sys::bpf_link_get_fd_by_id(id) };
        if link < 0 {
            return gone(-link);
        }
        // SAFETY: the kernel has just opened the descriptor, and nothing else owns it.
        let link = unsafe { OwnedFd::from_raw_fd(link) };
        // SAFETY: the descriptor is valid.
        gone(-unsafe { libbpf_sys::bpf_link_detach(link.as_raw_fd()) })
    }
}

/// Returns whether the element of a struct_ops map is registered without a link. Without BTF, the element counts as
/// registered.
pub(super) fn is_in_use(map: &MapHandle) -> bool {
    let state = || {
        let value = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok()??;
        word(&value, Layout::read()?.state)
    };
    state().is_none_or(|state| state == IN_USE)
}

/// Converts an errno to a result. If the object or the link is missing, another process has already unregistered the
/// algorithm. This is no error.
fn gone(errno: i32) -> io::Result<()> {
    match errno {
        0 | libc::ENOENT | libc::ENOLINK => Ok(()),
        _ => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// Returns the id of the link that registers a struct_ops map.
fn link_of(map: u32) -> Option<u32> {
    let registers = |info: &LinkTypeInfo| matches!(info, LinkTypeInfo::StructOps(ops) if ops.map_id == map);
    LinkInfoIter::default().find(|link| registers(&link.info)).map(|link| link.id)
}

/// Returns the ids of the maps that the program with this id uses, and the maps.
fn maps_of(program: u32) -> Vec<(u32, MapHandle)> {
    let with_maps = ProgInfoQueryOptions::default().include_map_ids(true);
    let program = ProgInfoIter::with_query_opts(with_maps).find(|info| info.id == program);
    let ids = program.map(|program| program.map_ids).unwrap_or_default();
    ids.into_iter().filter_map(|id| Some((id, MapHandle::from_map_id(id).ok()?))).collect()
}

/// Offsets in `struct bpf_struct_ops_tcp_congestion_ops`, the value of a struct_ops map, from the kernel's BTF.
struct Layout {
    state: usize,
    name: usize,
    name_len: usize,
    /// In the kernel, this member is a pointer. User space reads the program's id at this offset.
    cong_control: usize,
}

impl Layout {
    fn read() -> Option<Layout> {
        let types = Btf::from_vmlinux().ok()?;
        let value: Struct<'_> = types.type_by_name("bpf_struct_ops_tcp_congestion_ops")?;
        let ops: Struct<'_> = types.type_by_name("tcp_congestion_ops")?;
        let data = offset(&value, "data")?;
        // Since Linux 6.9, `refcnt` (four bytes) and `state` are in a struct, `common`.
        let state = offset(&value, "state").or_else(|| Some(offset(&value, "common")? + 4))?;
        let (name, cong_control) = (data + offset(&ops, "name")?, data + offset(&ops, "cong_control")?);
        Some(Layout { state, name, name_len: 16, cong_control })
    }

    fn name<'a>(&self, value: &'a [u8]) -> Option<&'a [u8]> {
        let letters = value.get(self.name..self.name + self.name_len)?;
        letters.split(|letter| *letter == 0).next()
    }
}

/// Returns the offset of a member, in bytes.
fn offset(of: &Struct<'_>, member: &str) -> Option<usize> {
    let member = of.iter().find(|found| found.name.is_some_and(|name| name == member))?;
    match member.attr {
        MemberAttr::Normal { offset } => Some(offset as usize / 8),
        MemberAttr::BitField { .. } => None,
    }
}

fn word(value: &[u8], at: usize) -> Option<u32> {
    value.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}
