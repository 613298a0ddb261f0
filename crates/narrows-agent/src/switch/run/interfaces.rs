//! The interfaces with the program: an interface may vanish and come back, with another number, while the agent works.

use narrows_control::units::{Span, Time};

use super::Runner;
use super::pins::{Life, Pins};
use crate::clock;
use crate::dataplane::program::{Attachment, Switch as Plane};
use crate::guard::{Charge, Guardian};
use crate::htb::{Link, LinkChanges, LinkWatch, Rtnl};
use crate::services::{Failure, Services};
use crate::status::InterfaceStatus;

/// Record of all uncontrolled interfaces: the last one, after all that a configuration may have.
pub(super) const PLAIN: u8 = 63;
/// Changes of interfaces that follow each other faster are examined together, because a host may have thousands of
/// interfaces.
const LOOK_AGAIN: Span = Span::from_millis(50);
/// Pause between attempts to take an interface that exists.
const RETRY: Span = Span::from_secs(1);

/// Why an interface was given up.
const GONE: &str = "the interface no longer exists";

/// An interface of the configuration.
pub(super) struct Interface {
    name: String,
    /// Number of its record: its port's, or [`PLAIN`].
    number: u8,
    held: Option<Held>,
    /// Why the interface could not be taken. This text was logged.
    refusal: String,
}

/// An existing interface with the program.
struct Held {
    index: u32,
    _attachment: Attachment,
}

impl Interface {
    /// An interface without the program.
    pub(super) fn new(name: &str, number: u8) -> Interface {
        Interface { name: name.to_owned(), number, held: None, refusal: String::new() }
    }

    /// Whether this is its name.
    pub(super) fn is_called(&self, name: &str) -> bool {
        self.name == name
    }

    /// Whether its port is controlled.
    fn is_port(&self) -> bool {
        self.number != PLAIN
    }

    /// Attaches the program.
    pub(super) fn attach(&mut self, plane: &Plane, pins: Option<&Pins>, index: u32) -> Result<(), Failure> {
        plane.set_interface(index, self.number)?;
        let pinned = pins.and_then(|pins| Plane::open_attachment(pins.folder(), index));
        let attachment = match (pinned, pins) {
            (Some(attachment), _) => attachment,
            (None, None) => plane.attach(index)?,
            (None, Some(pins)) => {
                let attachment = plane.attach(index)?;
                Plane::pin_attachment(&attachment, pins.folder(), index)?;
                attachment
            }
        };
        self.held = Some(Held { index, _attachment: attachment });
        Ok(())
    }
}

/// The interfaces of a switch, and the reports about them.
pub(super) struct Interfaces {
    pub(super) all: Vec<Interface>,
    /// `None`: the data plane is not pinned.
    pub(super) pins: Option<Pins>,
    rtnl: Rtnl,
    watch: LinkWatch,
    /// Reports that were not examined yet.
    changes: LinkChanges,
    looked_at: Time,
}

impl Interfaces {
    /// Call this function before the first interface is looked up, so that no report is missed.
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
            controlled: interface.is_port(),
            present: interface.held.is_some(),
        };
        self.all.iter().map(status).collect()
    }

    /// Makes the next call of `look` examine the interfaces.
    pub(super) fn look_now(&mut self) {
        (self.changes.any, self.looked_at) = (true, Time::ZERO);
    }

    /// The existing interfaces, if it is time to examine them.
    fn look(&mut self) -> Result<Option<Vec<Link>>, Failure> {
        let LinkChanges { any, deleted } = self.watch.changes();
        self.changes.any |= any;
        self.changes.deleted.extend(deleted);
        let now = clock::now();
        let passed = now.since(self.looked_at);
        let is_missing = self.all.iter().any(|interface| interface.held.is_none());
        if (self.changes.any && passed >= LOOK_AGAIN) || (is_missing && passed >= RETRY) {
            self.looked_at = now;
            return Ok(Some(self.rtnl.links()?));
        }
        Ok(None)
    }

    /// Positions of held interfaces that no longer exist. A later interface may have the number of a deleted one.
    fn vanished(&mut self, links: &[Link]) -> Vec<usize> {
        let LinkChanges { deleted, .. } = std::mem::take(&mut self.changes);
        let is_gone =
            |held: &Held| deleted.contains(&held.index) || !links.iter().any(|link| link.index == held.index);
        let gone =
            |(at, interface): (usize, &Interface)| interface.held.as_ref().is_some_and(is_gone).then_some(at);
        self.all.iter().enumerate().filter_map(gone).collect()
    }
}

impl Runner {
    /// Takes the interfaces that have appeared, and gives up those that have vanished.
    pub(super) fn look_for_interfaces(&mut self, guardian: &mut Guardian) -> Result<(), Failure> {
        guardian.keep_alive();
        let Some(links) = self.interfaces.look()? else { return Ok(()) };
        for at in self.interfaces.vanished(&links) {
            self.lose(at, guardian, GONE)?;
        }
        for at in 0..self.interfaces.all.len() {
            let Some(interface) = self.interfaces.all.get(at).filter(|interface| interface.held.is_none())
            else {
                continue;
            };
            let Some(link) = links.iter().find(|link| link.name == interface.name) else { continue };
            if let Err(error) = self.take(at, link, guardian) {
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

    /// Whether an operation failed because an interface no longer exists. Any call may be the first to fail, with an error
    /// that does not name the interface. The switch continues without the interface.
    pub(super) fn lost_interface(&mut self, services: &mut Services) -> Result<bool, Failure> {
        let links = self.interfaces.rtnl.links()?;
        let vanished = self.interfaces.vanished(&links);
        for at in &vanished {
            self.lose(*at, &mut services.guardian, GONE)?;
        }
        // A report about a new interface may have been dropped with the others.
        self.interfaces.changes.any = true;
        Ok(!vanished.is_empty())
    }

    /// Gives up the interface of a port without a queue. Either the interface is gone, too, or another program has
    /// removed the queue. Then the interface is taken again.
    pub(super) fn lose_port(&mut self, number: u8, guardian: &mut Guardian) -> Result<(), Failure> {
        let links = self.interfaces.rtnl.links()?;
        let found = self.interfaces.all.iter().enumerate().find(|(_, interface)| interface.number == number);
        let Some((at, Some(held))) = found.map(|(at, interface)| (at, interface.held.as_ref())) else {
            return Ok(());
        };
        let exists = links.iter().any(|link| link.index == held.index);
        self.lose(at, guardian, if exists { "its queue is gone" } else { GONE })
    }

    /// Detaches the program from an uncontrolled interface that is no longer configured.
    pub(super) fn remove_interface(&mut self, name: &str, guardian: &mut Guardian) -> Result<(), Failure> {
        let is_it = |interface: &Interface| interface.name == name && !interface.is_port();
        let Some(at) = self.interfaces.all.iter().position(is_it) else { return Ok(()) };
        self.lose(at, guardian, "it is no longer configured")?;
        self.interfaces.all.remove(at);
        Ok(())
    }

    fn lose(&mut self, at: usize, guardian: &mut Guardian, reason: &str) -> Result<(), Failure> {
        let Some(interface) = self.interfaces.all.get_mut(at) else { return Ok(()) };
        let Some(Held { index, .. }) = interface.held.take() else { return Ok(()) };
        let name = interface.name.as_str();
        tracing::warn!(event = "interface-gone", interface = name, reason, "the others stay controlled");
        interface.refusal.clear();
        if let Some(pins) = &self.interfaces.pins {
            Plane::unpin_attachment(pins.folder(), index);
        }
        if let Some(port) = self.ports.get_mut(usize::from(interface.number)) {
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
