//! Attaches the program to interfaces, and builds the queues of ports. Interfaces may vanish and return with another
//! ifindex at any time.

use narrows_control::units::{Span, Time};

use super::Runner;
use super::pins::{Life, Pins};
use crate::clock;
use crate::damping::Damping;
use crate::dataplane::{
    self,
    program::{Attachment, Switch as Plane},
};
use crate::guard::{Charge, Guardian};
use crate::htb::{Link, LinkChanges, LinkWatch, Rtnl};
use crate::services::{Failure, Services};
use crate::status::InterfaceStatus;

/// Number of the record that all uncontrolled interfaces share. It is larger than all port numbers.
pub(super) const PLAIN: u8 = 63;
/// Shortest time between two examinations of the interfaces. A host may have thousands of interfaces, so several
/// changes are examined together.
const LOOK_AGAIN: Span = Span::from_millis(50);
/// Pause between two attempts to use interfaces that are not in use yet.
const RETRY: Span = Span::from_secs(1);

/// Why the agent stopped using an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Loss {
    #[error("the interface no longer exists")]
    Gone,
    #[error("the interface has another name")]
    Renamed,
    #[error("its queue is gone")]
    QueueGone,
    #[error("it is no longer configured")]
    Unconfigured,
}

/// An interface of the configuration.
pub(super) struct Interface {
    name: String,
    /// Number of the record: the port's number, or [`PLAIN`].
    number: u8,
    held: Option<Held>,
    /// Why the agent could not use the interface, as logged; empty if there is no such reason.
    refusal: String,
    damping: Damping,
}

/// An interface with the program attached.
struct Held {
    index: u32,
    _attachment: Attachment,
}

impl Interface {
    /// Returns an interface without the program.
    pub(super) fn new(name: &str, number: u8) -> Interface {
        Interface {
            name: name.to_owned(),
            number,
            held: None,
            refusal: String::new(),
            damping: Damping::default(),
        }
    }

    /// Returns whether the interface has this name.
    pub(super) fn is_called(&self, name: &str) -> bool {
        self.name == name
    }

    /// Returns whether the interface is a controlled port.
    fn is_port(&self) -> bool {
        self.number != PLAIN
    }

    /// Attaches the program to the interface with this ifindex.
    pub(super) fn attach(&mut self, plane: &Plane, pins: Option<&Pins>, index: u32) -> Result<(), Failure> {
        plane.set_interface(index, self.number)?;
        match attachment(plane, pins, index) {
            Ok(attachment) => self.held = Some(Held { index, _attachment: attachment }),
            Err(error) => {
                plane.forget_interface(index)?;
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Returns why the interface must not be used any more, or `None`. `deleted` is needed because a new interface may
    /// have the ifindex of a deleted interface.
    fn loss(&self, links: &[Link], deleted: &[u32]) -> Option<Loss> {
        let index = self.held.as_ref()?.index;
        let link = links.iter().find(|link| link.index == index && !deleted.contains(&index));
        match link {
            None => Some(Loss::Gone),
            Some(link) if link.name != self.name => Some(Loss::Renamed),
            Some(_) => None,
        }
    }
}

/// Takes over the interface's pinned attachment, or makes a new one.
fn attachment(plane: &Plane, pins: Option<&Pins>, index: u32) -> Result<Attachment, dataplane::Error> {
    let Some(pins) = pins else { return plane.attach(index) };
    if let Some(pinned) = Plane::open_attachment(pins.folder(), index) {
        return Ok(pinned);
    }
    let attachment = plane.attach(index)?;
    Plane::pin_attachment(&attachment, pins.folder(), index)?;
    Ok(attachment)
}

/// The interfaces of a switch, and the kernel's reports about changes.
pub(super) struct Interfaces {
    pub(super) all: Vec<Interface>,
    /// `None`: the data plane is not pinned.
    pub(super) pins: Option<Pins>,
    rtnl: Rtnl,
    watch: LinkWatch,
    /// Changes that were reported, but not examined yet.
    changes: LinkChanges,
    looked_at: Time,
}

impl Interfaces {
    /// Opens the sockets for requests and reports. Call this before the first lookup of an interface, so that no report
    /// is missed.
    pub(super) fn new() -> Result<Interfaces, Failure> {
        Ok(Interfaces {
            all: Vec::new(),
            pins: None,
            rtnl: Rtnl::open()?,
            watch: LinkWatch::open()?,
            changes: LinkChanges::default(),
            looked_at: Time::ZERO,
        })
    }

    pub(super) fn life(&self) -> Life {
        self.pins.as_ref().map_or(Life::Process, Pins::life)
    }

    pub(super) fn status(&self) -> Vec<InterfaceStatus> {
        let status = |interface: &Interface| InterfaceStatus {
            name: interface.name.clone(),
            netns: None,
            controlled: interface.is_port(),
            present: interface.held.is_some(),
            refusal: interface.refusal.clone(),
        };
        self.all.iter().map(status).collect()
    }

    /// Makes the next `look` examine the interfaces.
    pub(super) fn look_now(&mut self) {
        (self.changes.any, self.looked_at) = (true, Time::ZERO);
    }

    /// Returns the existing interfaces if it is time to examine them.
    fn look(&mut self) -> Result<Option<Vec<Link>>, Failure> {
        self.read_reports();
        let now = clock::now();
        let passed = now.since(self.looked_at);
        let is_missing = self.all.iter().any(|interface| interface.held.is_none());
        if (self.changes.any && passed >= LOOK_AGAIN) || (is_missing && passed >= RETRY) {
            self.looked_at = now;
            return Ok(Some(self.rtnl.links()?));
        }
        Ok(None)
    }

    fn read_reports(&mut self) {
        let LinkChanges { any, deleted } = self.watch.changes();
        self.changes.any |= any;
        self.changes.deleted.extend(deleted);
    }

    /// Returns the positions of the interfaces that must not be used any more, each with the reason.
    fn vanished(&mut self, links: &[Link]) -> Vec<(usize, Loss)> {
        let LinkChanges { deleted, .. } = std::mem::take(&mut self.changes);
        let loss = |(at, interface): (usize, &Interface)| Some((at, interface.loss(links, &deleted)?));
        self.all.iter().enumerate().filter_map(loss).collect()
    }
}

impl Runner {
    /// Starts to use interfaces that have appeared, and stops using interfaces that have vanished.
    pub(super) fn look_for_interfaces(&mut self, guardian: &mut Guardian) -> Result<(), Failure> {
        guardian.keep_alive();
        let Some(links) = self.interfaces.look()? else { return Ok(()) };
        for (at, loss) in self.interfaces.vanished(&links) {
            self.lose(at, guardian, loss)?;
        }
        let now = clock::now();
        for at in 0..self.interfaces.all.len() {
            let Some(interface) =
                self.interfaces.all.get_mut(at).filter(|interface| interface.held.is_none())
            else {
                continue;
            };
            let Some(link) = links.iter().find(|link| link.name == interface.name) else {
                interface.damping.missing();
                if !interface.damping.flaps(now) {
                    interface.refusal.clear();
                }
                continue;
            };
            let admitted = interface.damping.admit(now, link.index.into()).map_err(Failure::from);
            if let Err(error) = admitted.and_then(|()| self.take(at, link, guardian)) {
                let text = error.to_string();
                let Some(interface) = self.interfaces.all.get_mut(at) else { continue };
                if interface.refusal != text {
                    tracing::warn!(event = "interface-refused", interface = interface.name, error = text);
                    interface.refusal = text;
                }
            }
        }
        Ok(())
    }

    /// Stops using interfaces that have vanished, and ports without a queue. Returns whether there were such interfaces
    /// or ports. Call this after an operation has failed. The cause may be a vanished interface, even if the error does
    /// not name it. In this case, the switch continues without the interface.
    pub(super) fn lost_interface(&mut self, services: &mut Services) -> Result<bool, Failure> {
        self.interfaces.read_reports();
        let links = self.interfaces.rtnl.links()?;
        let mut any = false;
        for (at, loss) in self.interfaces.vanished(&links) {
            self.lose(at, &mut services.guardian, loss)?;
            any = true;
        }
        any |= self.lose_ports_without_queue(&mut services.guardian)?;
        // The reports may also have announced a new interface, so look again.
        self.interfaces.changes.any = true;
        Ok(any)
    }

    /// Reads the counters of all queues. Stops using ports whose queue is gone, and returns whether there were such
    /// ports.
    pub(super) fn lose_ports_without_queue(&mut self, guardian: &mut Guardian) -> Result<bool, Failure> {
        let mut any = false;
        for number in 0..self.ports.len() {
            let Some(port) = self.ports.get_mut(number) else { continue };
            if !port.refresh()? {
                self.lose_port(u8::try_from(number)?, guardian)?;
                any = true;
            }
        }
        Ok(any)
    }

    /// Stops using the interface of a port whose queue is gone. Either the interface has vanished, or another program
    /// has removed the queue. If the interface still exists, it is used again later.
    fn lose_port(&mut self, number: u8, guardian: &mut Guardian) -> Result<(), Failure> {
        let links = self.interfaces.rtnl.links()?;
        let found = self.interfaces.all.iter().enumerate().find(|(_, interface)| interface.number == number);
        let Some((at, Some(held))) = found.map(|(at, interface)| (at, interface.held.as_ref())) else {
            return Ok(());
        };
        let exists = links.iter().any(|link| link.index == held.index);
        self.lose(at, guardian, if exists { Loss::QueueGone } else { Loss::Gone })
    }

    /// Detaches the program from an uncontrolled interface that was removed from the configuration.
    pub(super) fn remove_interface(&mut self, name: &str, guardian: &mut Guardian) -> Result<(), Failure> {
        let is_it = |interface: &Interface| interface.name == name && !interface.is_port();
        let Some(at) = self.interfaces.all.iter().position(is_it) else { return Ok(()) };
        self.lose(at, guardian, Loss::Unconfigured)?;
        self.interfaces.all.remove(at);
        Ok(())
    }

    fn lose(&mut self, at: usize, guardian: &mut Guardian, loss: Loss) -> Result<(), Failure> {
        let Some(interface) = self.interfaces.all.get_mut(at) else { return Ok(()) };
        let Some(Held { index, .. }) = interface.held.take() else { return Ok(()) };
        let (name, reason) = (interface.name.as_str(), loss.to_string());
        tracing::warn!(
            event = "interface-gone",
            interface = name,
            reason,
            "the other interfaces stay in use"
        );
        interface.refusal.clear();
        interface.damping.lost(clock::now());
        if let Some(pins) = &self.interfaces.pins {
            Plane::unpin_attachment(pins.folder(), index);
        }
        if let Some(port) = self.ports.get_mut(usize::from(interface.number)) {
            if loss == Loss::Renamed {
                port.release();
            }
            port.lose();
            guardian.charge(&Charge::Vanished(index))?;
        }
        Ok(self.switch.table().forget_interface(index)?)
    }

    fn take(&mut self, at: usize, link: &Link, guardian: &mut Guardian) -> Result<(), Failure> {
        let Some(interface) = self.interfaces.all.get_mut(at) else { return Ok(()) };
        if !link.ethernet {
            return Err(crate::htb::Error::NotEthernet(link.name.clone()).into());
        }
        let number = usize::from(interface.number);
        if let Some(port) = self.ports.get_mut(number) {
            port.take(link, &mut self.interfaces.rtnl, guardian)?;
            port.give_classes()?;
            if let Some(core) = self.switch.ports_mut().get_mut(number) {
                core.counters.capacity = port.capacity;
            }
        }
        if let Err(error) = interface.attach(self.switch.table(), self.interfaces.pins.as_ref(), link.index) {
            if let Some(port) = self.ports.get_mut(number) {
                port.give_back();
            }
            return Err(error);
        }
        interface.refusal.clear();
        tracing::info!(event = "interface-back", interface = interface.name, index = link.index);
        if let Some(channel) = &mut self.link {
            channel.set_interface(interface.number, link);
        }
        Ok(())
    }
}
