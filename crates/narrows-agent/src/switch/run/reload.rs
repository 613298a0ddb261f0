//! Applies a new configuration to a running switch. Flows keep their slots and rates.

use narrows_control::rate::{Class, LEAVES, PortCounters};
use narrows_control::units::{Bytes, Rate, Time};

use super::controlled::Controlled;
use super::interfaces::{Interface, PLAIN};
use super::{Runner, policers};
use crate::config::{self, Capacity, Config};
use crate::htb::{self, Rtnl};
use crate::services::{Failure, Services};
use crate::switch::core::Port;
use crate::switch::link::PortDescription;

impl Runner {
    /// Applies the new configuration, if the agent was asked to reload. If the kernel refuses a part of it, the refusal
    /// is logged, and the other parts apply.
    pub(super) fn reload(&mut self, services: &mut Services, now: Time) -> Result<(), Failure> {
        let Some(Config::Switch(new)) = services.reloaded(|| Config::Switch(self.config.clone())) else {
            return Ok(());
        };
        let old = std::mem::replace(&mut self.config, new.clone());
        self.tick = new.tick;
        self.reload_interfaces(&old, &new, services)?;
        for (number, port) in (0u8..).zip(&new.ports) {
            let applied = match old.ports.get(usize::from(number)) {
                Some(before) => {
                    let applied = self.reload_port(number, before, port, now);
                    // If the interface has vanished, the error is expected. The port gets the new values when the
                    // interface appears again.
                    if applied.is_err() && self.lost_interface(services)? {
                        self.reload_port(number, before, port, now)
                    } else {
                        applied
                    }
                }
                None => self.add_port(number, port, now),
            };
            if let Err(error) = applied {
                let error = error.to_string();
                tracing::warn!(event = "reload-failed", port = port.interface, error);
            }
            let (table, cores) = self.switch.table_and_ports_mut();
            if let (Some(record), Some(core)) = (table.ports.get(number), cores.get_mut(usize::from(number)))
            {
                super::start::prepare(&record, &new, &mut *core.controller);
            }
        }
        if let Some(record) = self.switch.table().ports.get(PLAIN) {
            super::start::prepare_plain(&record, &new);
        }
        self.interfaces.look_now();
        Ok(())
    }

    /// Detaches the program from interfaces that were removed from the configuration. Adds new interfaces, and treats
    /// them as if they had just appeared.
    fn reload_interfaces(
        &mut self,
        old: &config::Switch,
        new: &config::Switch,
        services: &mut Services,
    ) -> Result<(), Failure> {
        for name in old.interfaces.iter().filter(|name| !new.interfaces.contains(name)) {
            self.remove_interface(name, &mut services.guardian)?;
        }
        let added = new.interfaces.iter().filter(|name| !old.interfaces.contains(name));
        self.interfaces.all.extend(added.map(|name| Interface::new(name, PLAIN)));
        Ok(())
    }

    fn reload_port(
        &mut self,
        number: u8,
        old: &config::Port,
        new: &config::Port,
        now: Time,
    ) -> Result<(), Failure> {
        let (Some(port), Some(core)) =
            (self.ports.get_mut(usize::from(number)), self.switch.ports_mut().get_mut(usize::from(number)))
        else {
            return Ok(());
        };
        if old.limit != new.limit {
            port.set_limit(new.limit)?;
            core.counters.limit_packets = [new.limit; LEAVES];
        }
        if old.syn_share != new.syn_share {
            port.syn_share = new.syn_share;
            let (_, ceil) = port.wanted[Class::OtherTcp as usize];
            let (rate, burst) = policers::syn(ceil, new.syn_share);
            if let Some(record) = self.switch.table().ports.get(number) {
                record.set_syn(rate, burst);
            }
        }
        // A rate from the status socket stays until the rate in the configuration changes.
        if (old.capacity, old.shape) != (new.capacity, new.shape)
            && let Some(rate) = rate_of(new)
        {
            self.set_rate(&new.interface, rate)?;
        }
        if (&old.rate_controller, &old.params) != (&new.rate_controller, &new.params) {
            let mtu = self.ports.get(usize::from(number)).map_or(1500, |port| port.framing.mtu);
            let controller = new.rate_controller(u32::from(number), Bytes::new(mtu))?;
            self.switch.replace(now, usize::from(number), controller, &mut self.asked);
            if let Some(link) = &mut self.link {
                link.set_controller(number, new, Bytes::new(mtu));
            }
        }
        Ok(())
    }

    /// Adds a port, and treats its interface as if the interface had just appeared.
    fn add_port(&mut self, number: u8, port: &config::Port, now: Time) -> Result<(), Failure> {
        let found = Rtnl::open()?.link(&port.interface);
        let mtu = found.as_ref().map_or(1500, |link| link.mtu);
        let mtu = port.mtu.unwrap_or(Bytes::new(u64::from(mtu)));
        let controlled = Controlled::new(port, mtu, self.interfaces.life());
        let capacity = controlled.capacity;
        let counters =
            PortCounters { capacity, limit_packets: [port.limit; LEAVES], ..PortCounters::default() };
        let controller = port.rate_controller(u32::from(number), mtu)?;
        self.switch.add(now, Port::new(controller, counters), &mut self.asked);
        self.ports.push(controlled);
        self.interfaces.all.push(Interface::new(&port.interface, number));
        if let Some(link) = &mut self.link {
            link.add(PortDescription {
                port: u32::from(number),
                interface: found.unwrap_or_else(|_| htb::Link::missing(&port.interface)),
                capacity: capacity.unwrap_or(Rate::ZERO),
                rate_controller: port.rate_controller.clone(),
                params: port.params.clone(),
                thresholds: port.thresholds(mtu),
            });
        }
        Ok(())
    }
}

/// Returns the rate to which the port is shaped, if any.
fn rate_of(port: &config::Port) -> Option<Rate> {
    match port.capacity {
        Capacity::Known(rate) => Some(rate),
        Capacity::Measured => port.shape,
    }
}
