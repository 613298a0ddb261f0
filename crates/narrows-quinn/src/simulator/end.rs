//! One end of a flow: quinn's endpoint with its connection.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use quinn_proto::{
    ClientConfig, ConnectError, Connection, ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint,
    EndpointConfig, Event, ServerConfig,
};

use narrows_sim::transport::{Datagram, Ecn};

/// The addresses of both ends, which quinn needs to distinguish peers.
const CLIENT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 50_000);
const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 443);

/// Capacity of a datagram buffer. quinn's largest datagram is smaller by default.
const DATAGRAM_CAPACITY_BYTES: usize = 1500;

/// An end of a flow.
pub(super) struct FlowEnd {
    endpoint: Endpoint,
    remote: SocketAddr,
    connection: Option<(ConnectionHandle, Connection)>,
    /// Buffer for the next datagram.
    buffer: Vec<u8>,
}

impl FlowEnd {
    /// Creates the client of a flow, and begins its connection.
    pub(super) fn client(
        config: EndpointConfig,
        client: ClientConfig,
        now: Instant,
    ) -> Result<Self, ConnectError> {
        let mut endpoint = Endpoint::new(Arc::new(config), None, true, None);
        let connection = endpoint.connect(now, client, SERVER, "receiver")?;
        Ok(FlowEnd { endpoint, remote: SERVER, connection: Some(connection), buffer: Vec::new() })
    }

    /// Creates the server of a flow.
    pub(super) fn server(config: EndpointConfig, server: ServerConfig) -> Self {
        let endpoint = Endpoint::new(Arc::new(config), Some(Arc::new(server)), true, None);
        FlowEnd { endpoint, remote: CLIENT, connection: None, buffer: Vec::new() }
    }

    /// Returns the connection, or `None` before the server has received the first packet.
    pub(super) fn connection(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut().map(|(_, connection)| connection)
    }

    /// Returns the connection, for read-only access.
    pub(super) fn view(&self) -> Option<&Connection> {
        self.connection.as_ref().map(|(_, connection)| connection)
    }

    /// Handles a datagram. Returns the datagram that quinn sends in response outside of the connection, if there is
    /// one.
    pub(super) fn receive(&mut self, now: Instant, datagram: Datagram) -> Option<Datagram> {
        let ecn = match datagram.ecn {
            Ecn::NotCapable => None,
            Ecn::Capable => Some(EcnCodepoint::Ect0),
            Ecn::Experienced => Some(EcnCodepoint::Ce),
        };
        let mut response = Vec::new();
        // This conversion does not copy the bytes.
        let data = BytesMut::from(Bytes::from(datagram.contents));
        match self.endpoint.handle(now, self.remote, None, ecn, data, &mut response)? {
            DatagramEvent::ConnectionEvent(_, event) => {
                self.connection()?.handle_event(event);
                None
            }
            DatagramEvent::NewConnection(incoming) => {
                // A flow has only one connection, so this end ignores attempts to open a second connection.
                if self.connection.is_some() {
                    self.endpoint.ignore(incoming);
                } else {
                    self.connection = self.endpoint.accept(incoming, now, &mut response, None).ok();
                }
                None
            }
            DatagramEvent::Response(_) => Some(Datagram { contents: response, ecn: Ecn::NotCapable }),
        }
    }

    /// Passes messages between the connection and its endpoint. Returns whether there were any messages.
    pub(super) fn exchange(&mut self) -> bool {
        let Some((handle, connection)) = &mut self.connection else { return false };
        let mut any = false;
        while let Some(event) = connection.poll_endpoint_events() {
            any = true;
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        any
    }

    /// Returns the next event for the application.
    pub(super) fn poll(&mut self) -> Option<Event> {
        self.connection()?.poll()
    }

    /// Returns the next datagram that the connection sends.
    pub(super) fn transmit(&mut self, now: Instant) -> Option<Datagram> {
        let (_, connection) = self.connection.as_mut()?;
        let Some(transmit) = connection.poll_transmit(now, 1, &mut self.buffer) else {
            self.buffer.clear();
            return None;
        };
        self.buffer.truncate(transmit.size);
        let contents = std::mem::replace(&mut self.buffer, Vec::with_capacity(DATAGRAM_CAPACITY_BYTES));
        let ecn = match transmit.ecn {
            None => Ecn::NotCapable,
            Some(EcnCodepoint::Ce) => Ecn::Experienced,
            Some(_) => Ecn::Capable,
        };
        Some(Datagram { contents, ecn })
    }
}
