//! The control loop's connection to the SDN controller.

use std::collections::BTreeMap;
use std::net::ToSocketAddrs;

use narrows_channel::{FLOWS_MAX, FlowChange, FlowChanges, FlowInfo, Flows, PortInfo, Ports, ToController};
use narrows_control::parameter::{Takes, Values};
use narrows_control::rate::brf::congestion::Thresholds;
use narrows_control::rate::{Class, Message, registry};
use narrows_control::units::{Bytes, Rate, Span, Time};

use super::core::{Flow, Switch};
use super::table::FlowTable;
use super::view::{Meters, Seen};
use crate::channel::{Channel, ChannelConfig, ChannelState};
use crate::config;
use crate::htb;
use crate::services::Failure;

/// Shortest time between two lists of flows that the agent sends to the SDN controller for display.
const FLOWS_EVERY: Span = Span::from_secs(1);

/// The description of a port for the SDN controller, sent at the start.
pub(super) struct PortDescription {
    /// The port's number.
    pub(super) port: u32,
    pub(super) interface: htb::Link,
    pub(super) capacity: Rate,
    pub(super) rate_controller: String,
    pub(super) params: Values,
    pub(super) thresholds: Option<Thresholds>,
}

impl From<PortDescription> for PortInfo {
    fn from(description: PortDescription) -> PortInfo {
        let params = reported(&description.rate_controller, &description.params);
        PortInfo {
            port: description.port,
            interface: description.interface.name,
            ifindex: description.interface.index,
            mac: description.interface.mac,
            mtu: description.interface.mtu,
            capacity: description.capacity,
            rate_controller: description.rate_controller,
            params,
            thresholds: description.thresholds,
        }
    }
}

/// Returns the parameters without the contents of files, which are long and useless to the SDN controller.
fn reported(rate_controller: &str, params: &Values) -> Values {
    let is_file = |name: &str| {
        let parameter = registry::find(rate_controller).and_then(|entry| entry.parameter(name));
        parameter.is_some_and(|parameter| matches!(parameter.shape.takes, Takes::Contents { .. }))
    };
    params
        .iter()
        .filter(|(name, _)| !is_file(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// The channel to the SDN controller, and the data that is sent through it.
pub(super) struct Link {
    channel: Channel,
    ports: Vec<PortInfo>,
    /// Changes of flows that were not sent yet, by port.
    changes: BTreeMap<u32, Vec<FlowChange>>,
    listed: Time,
}

impl Link {
    pub(super) fn start(config: &config::Controller, ports: Vec<PortDescription>) -> Result<Link, Failure> {
        let resolve = |address: &String| {
            let unknown = || Failure::from(format!("controller.address: {address}: no such host"));
            address.to_socket_addrs()?.next().ok_or_else(unknown)
        };
        let controllers = config.addresses.iter().map(resolve).collect::<Result<_, Failure>>()?;
        let keys = config.keys.clone();
        let channel_config = ChannelConfig { controllers, name: config.name.clone(), keys };
        let ports: Vec<_> = ports.into_iter().map(PortInfo::from).collect();
        let channel = Channel::start(channel_config, ports.clone())?;
        Ok(Link { channel, ports, changes: BTreeMap::new(), listed: Time::ZERO })
    }

    /// Tells the SDN controller about a port's new interface.
    pub(super) fn set_interface(&mut self, port: u8, interface: &htb::Link) {
        let Some(info) = self.ports.iter_mut().find(|info| info.port == u32::from(port)) else { return };
        (info.ifindex, info.mtu) = (interface.index, interface.mtu);
        info.mac.clone_from(&interface.mac);
        self.channel.send(ToController::Ports(Ports { ports: self.ports.clone() }));
    }

    /// Tells the SDN controller about a new port.
    pub(super) fn add(&mut self, port: PortDescription) {
        self.ports.push(port.into());
        self.channel.send(ToController::Ports(Ports { ports: self.ports.clone() }));
    }

    /// Tells the SDN controller about a port's new rate controller.
    pub(super) fn set_controller(&mut self, number: u8, port: &config::Port, mtu: Bytes) {
        let Some(info) = self.ports.iter_mut().find(|info| info.port == u32::from(number)) else { return };
        info.rate_controller.clone_from(&port.rate_controller);
        info.params = reported(&port.rate_controller, &port.params);
        info.thresholds = port.thresholds(mtu);
        self.channel.send(ToController::Ports(Ports { ports: self.ports.clone() }));
    }

    /// Sends a message to the SDN controller. Changes of flows are queued until [`flush`](Link::flush).
    pub(super) fn send(&mut self, message: &Message) {
        match message {
            Message::Flow { port, key, begun, demand } => {
                let change = FlowChange { key: *key, begun: *begun, demand: *demand };
                self.changes.entry(*port).or_default().push(change);
            }
            message => self.channel.send(ToController::Message(message.clone())),
        }
    }

    pub(super) fn flush(&mut self) {
        for (port, changes) in core::mem::take(&mut self.changes) {
            for changes in changes.chunks(FLOWS_MAX) {
                self.channel.send(ToController::FlowChanges(FlowChanges { port, changes: changes.to_vec() }));
            }
        }
    }

    pub(super) fn try_recv(&self) -> Option<Message> {
        self.channel.try_recv()
    }

    pub(super) fn is_connected(&self) -> bool {
        matches!(self.channel.state(), ChannelState::Connected(_))
    }

    /// Returns whether the list of flows is due.
    pub(super) fn wants_flows(&self, now: Time) -> bool {
        now.since(self.listed) >= FLOWS_EVERY && self.is_connected()
    }

    /// Sends a list of the flows of each port. If a port has too many flows, lists only the flows with the highest
    /// rates.
    pub(super) fn list_flows<T: FlowTable>(&mut self, now: Time, switch: &Switch<T>, meters: &Meters) {
        self.listed = now;
        let mut flows: Vec<Vec<(Rate, Flow)>> = vec![Vec::new(); switch.ports().len()];
        for flow in switch.flows() {
            if let Some(flows) = flows.get_mut(flow.port) {
                flows.push((meters.of(&flow), flow));
            }
        }
        for (port, mut flows) in (0..).zip(flows) {
            let heavy_first = |(rate, _): &(Rate, Flow)| std::cmp::Reverse(*rate);
            if flows.len() > FLOWS_MAX {
                flows.select_nth_unstable_by_key(FLOWS_MAX, heavy_first);
                flows.truncate(FLOWS_MAX);
            }
            flows.sort_by_key(heavy_first);
            let flows = flows.iter().map(|(rate, flow)| listed(flow, *rate)).collect();
            self.channel.send(ToController::Flows(Flows { port, flows }));
        }
    }
}

fn listed(flow: &Flow, rate: Rate) -> FlowInfo {
    let Seen { rated, leaf, allocation, rtt } = Seen::of(flow);
    let class = if rated { Class::Rated } else { Class::OtherTcp };
    FlowInfo { key: flow.key, class, leaf, allocation, rate, rtt }
}

#[cfg(test)]
mod tests {
    use narrows_control::parameter::Value;

    use super::reported;

    #[test]
    fn the_sdn_controller_gets_no_model() {
        let params = [("predictor", "{}"), ("mode", "resolved")];
        let params = params.map(|(name, word)| (name.to_owned(), Value::Word(word.into()))).into();
        assert_eq!(reported("brf", &params).into_keys().collect::<Vec<_>>(), ["mode"]);
    }
}
