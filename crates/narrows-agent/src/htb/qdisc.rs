//! Describes, removes and restores the root qdisc of an interface.

use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage};
use serde::{Deserialize, Serialize};

use super::encode::{TCA_OPTIONS, overhead_of};
use super::layout::HANDLE;
use super::rtnl::{Error, Object, Rtnl, attribute, value};

/// The classless kinds of qdiscs that can be created again from their dumped options.
const CAN_BE_RESTORED: [&str; 10] =
    ["pfifo", "bfifo", "fq", "fq_codel", "fq_pie", "codel", "pie", "sfq", "tbf", "cake"];

/// A configured root qdisc, as opposed to the kernel's default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Previous {
    /// Kind, e.g. `fq`.
    pub kind: String,
    /// Handle, `major << 16`.
    pub handle: u32,
    /// Options, as dumped by the kernel.
    pub options: Option<Vec<u8>>,
}

impl Previous {
    /// Returns whether an agent created this qdisc.
    pub(super) fn is_ours(&self) -> bool {
        self.kind == "htb" && self.handle >> 16 == u32::from(HANDLE)
    }

    pub(super) fn can_be_restored(&self) -> bool {
        CAN_BE_RESTORED.contains(&self.kind.as_str())
    }
}

/// An interface, and its qdisc to restore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remains {
    /// Ifindex of the interface.
    pub index: u32,
    /// The previous root qdisc; `None` if it was the default qdisc.
    pub previous: Option<Previous>,
}

impl Remains {
    /// Reads the present qdisc of interface `index`, so that it can be restored later. Call this before
    /// [`super::Htb::install`].
    pub fn before(rtnl: &mut Rtnl, index: u32) -> Result<Remains, Error> {
        Ok(Remains { index, previous: root(rtnl, index)?.filter(|found| !found.is_ours()) })
    }

    /// Removes the agent's HTB if it exists, and restores the previous qdisc. Returns whether the HTB existed.
    pub fn undo(&self, rtnl: &mut Rtnl) -> Result<bool, Error> {
        if !root(rtnl, self.index)?.is_some_and(|found| found.is_ours()) {
            return Ok(false);
        }
        delete_root(rtnl, self.index)?;
        if let Some(previous) = &self.previous {
            let mut message = root_message(self.index, previous.handle);
            message.attributes.push(TcAttribute::Kind(previous.kind.clone()));
            if let Some(options) = &previous.options {
                message.attributes.push(TcAttribute::Other(attribute(TCA_OPTIONS, options)));
            }
            rtnl.create(Object::Qdisc, message, &format!("the previous {} again", previous.kind))?;
        }
        Ok(true)
    }

    /// Returns all HTBs that agents left in this network namespace.
    pub fn find(rtnl: &mut Rtnl) -> Result<Vec<Remains>, Error> {
        let ours =
            |message: &TcMessage| is_root(message) && described(message).is_some_and(|found| found.is_ours());
        let index = |message: TcMessage| u32::try_from(message.header.index).ok();
        let found = rtnl.dump_qdiscs()?.into_iter().filter(ours).filter_map(index);
        Ok(found.map(|index| Remains { index, previous: None }).collect())
    }

    /// Returns the interfaces of this network namespace that have a clsact qdisc.
    pub fn find_clsact(rtnl: &mut Rtnl) -> Result<Vec<u32>, Error> {
        let is_clsact = |message: &TcMessage| described(message).is_some_and(|found| found.kind == "clsact");
        let index = |message: TcMessage| u32::try_from(message.header.index).ok();
        Ok(rtnl.dump_qdiscs()?.into_iter().filter(is_clsact).filter_map(index).collect())
    }
}

/// Returns the root qdisc, or `None` for the default qdisc (handle 0).
pub(super) fn root(rtnl: &mut Rtnl, index: u32) -> Result<Option<Previous>, Error> {
    Ok(root_dump(rtnl, index)?.as_ref().and_then(described))
}

/// Returns the overhead in the size table of the root qdisc.
pub(super) fn root_overhead(rtnl: &mut Rtnl, index: u32) -> Result<Option<u32>, Error> {
    Ok(root_dump(rtnl, index)?.and_then(|message| overhead_of(&message.attributes)))
}

/// Removes the agent's HTB, after which the kernel attaches its default qdisc. The kernel compares the handle, so a
/// foreign qdisc stays.
pub(super) fn delete_root(rtnl: &mut Rtnl, index: u32) -> Result<(), Error> {
    rtnl.delete_qdisc(root_message(index, u32::from(HANDLE) << 16))
}

fn root_dump(rtnl: &mut Rtnl, index: u32) -> Result<Option<TcMessage>, Error> {
    let here = |m: &TcMessage| m.header.index == index as i32 && is_root(m);
    Ok(rtnl.dump_qdiscs()?.into_iter().find(here))
}

fn is_root(message: &TcMessage) -> bool {
    message.header.parent == TcHandle::ROOT
}

fn described(message: &TcMessage) -> Option<Previous> {
    let handle = u32::from(message.header.handle);
    let kind = message.attributes.iter().find_map(|a| match a {
        TcAttribute::Kind(kind) => Some(kind.clone()),
        _ => None,
    })?;
    let options = message.attributes.iter().find(|a| matches!(a, TcAttribute::Options(_)));
    (handle != 0).then(|| Previous { kind, handle, options: options.map(raw_options) })
}

/// Returns the bytes of `TCA_OPTIONS`. `netlink_packet_route` keeps unknown options as one attribute.
fn raw_options(attribute: &TcAttribute) -> Vec<u8> {
    use netlink_packet_core::Nla;
    use netlink_packet_route::tc::TcOption;
    match attribute {
        TcAttribute::Options(options) => match &options[..] {
            [TcOption::Other(whole)] if whole.kind() == TCA_OPTIONS => value(whole),
            _ => value(attribute),
        },
        _ => value(attribute),
    }
}

fn root_message(index: u32, handle: u32) -> TcMessage {
    let mut message = TcMessage::with_index(index as i32);
    message.header.handle = TcHandle::from(handle);
    message.header.parent = TcHandle::ROOT;
    message
}
