//! The SDN controller, as the loop needs it.

use std::net::ToSocketAddrs;

use narrows_control::rate::Message;
use narrows_control::rate::brf::congestion::Thresholds;
use narrows_control::units::{Rate, Span, Time};

use super::core::Switch;
use super::table::FlowTable;
use super::view::Meters;
use crate::channel::{Channel, ChannelConfig, ChannelState, FLOWS_MAX, FlowInfo, PortInfo, ToController};
use crate::cli::Failure;
use crate::config;
use crate::htb;
use crate::status::LEAF_NAMES;

/// Flows are listed for people to see, this often.
const FLOWS_EVERY: Span = Span::from_secs(1);

/// What the controller is told of a port at the beginning.
pub(super) struct Told {
    pub(super) interface: htb::Link,
    pub(super) capacity: Rate,
    pub(super) thresholds: Thresholds,
}

/// The channel.
pub(super) struct Link {
    channel: Channel,
    listed: Time,
}

impl Link {
    pub(super) fn start(config: &config::Controller, ports: Vec<Told>) -> Result<Link, Failure> {
        let unknown = || format!("controller.address: {}: no such host", config.address);
        let controller = config.address.to_socket_addrs()?.next().ok_or_else(unknown)?;
        let secret = config.secret_file.clone();
        let channel_config = ChannelConfig { controller, name: config.name.clone(), secret };
        let ports = (0..)
            .zip(ports)
            .map(|(port, told)| PortInfo {
                port,
                interface: told.interface.name,
                ifindex: told.interface.index,
                mac: told.interface.mac,
                mtu: told.interface.mtu,
                capacity: told.capacity,
                thresholds: told.thresholds,
            })
            .collect();
        Ok(Link { channel: Channel::start(channel_config, ports)?, listed: Time::ZERO })
    }

    pub(super) fn send(&self, message: &Message) {
        self.channel.send(ToController::Message(message.clone()));
    }

    pub(super) fn try_recv(&self) -> Option<Message> {
        self.channel.try_recv()
    }

    pub(super) fn is_connected(&self) -> bool {
        matches!(self.channel.state(), ChannelState::Connected(_))
    }

    /// The flows are due to be listed.
    pub(super) fn wants_flows(&self, now: Time) -> bool {
        now.since(self.listed) >= FLOWS_EVERY && self.is_connected()
    }

    /// Lists the heaviest flows of each port.
    pub(super) fn list_flows<T: FlowTable>(&mut self, now: Time, switch: &Switch<T>, meters: &Meters) {
        self.listed = now;
        for (number, port) in (0..).zip(0..switch.ports().len()) {
            let mut flows: Vec<_> = switch
                .flows()
                .filter(|flow| flow.port == port)
                .map(|flow| FlowInfo {
                    key: flow.key,
                    class: if (flow.orders.leaf as usize) < 2 { "rated" } else { "other-tcp" },
                    leaf: LEAF_NAMES[flow.orders.leaf as usize],
                    allocation: flow.orders.code.decode(),
                    rate: meters.of(&flow),
                    rtt: (flow.orders.rtt_us > 0).then(|| Span::from_micros(u64::from(flow.orders.rtt_us))),
                })
                .collect();
            flows.sort_by_key(|flow| std::cmp::Reverse(flow.rate));
            flows.truncate(FLOWS_MAX);
            self.channel.send(ToController::Flows { port: number, flows });
        }
    }
}
