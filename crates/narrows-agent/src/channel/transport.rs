//! TLS between the socket and the session's lines, as a state machine without I/O. TLS is optional if the controller is
//! on this host.

use std::io::{Read, Write};
use std::net::IpAddr;
use std::sync::Arc;

use rustls::{AlertDescription, ClientConfig, ClientConnection, Error};

/// Why TLS ends a connection.
#[derive(Debug, thiserror::Error)]
pub enum TlsRefusal {
    /// The controller's certificate is not in the agent's list of trusted certificates.
    #[error("the controller's certificate is not in the file 'trusted'")]
    Stranger,
    /// The controller refuses the agent's certificate.
    #[error("the controller does not trust this agent's certificate")]
    NotTrusted,
    /// The controller does not use TLS 1.3, for example because it has no key.
    #[error("the controller does not use TLS 1.3; expected a controller with agents.key")]
    Plain,
    /// The data was changed, repeated or reordered, or another error occurred.
    #[error("TLS: {0}")]
    Other(Error),
}

impl From<Error> for TlsRefusal {
    fn from(error: Error) -> Self {
        use AlertDescription as Alert;
        match error {
            Error::InvalidCertificate(_) => TlsRefusal::Stranger,
            Error::AlertReceived(
                Alert::UnknownCA
                | Alert::BadCertificate
                | Alert::CertificateUnknown
                | Alert::CertificateRequired,
            ) => TlsRefusal::NotTrusted,
            Error::InvalidMessage(_) | Error::AlertReceived(Alert::ProtocolVersion) => TlsRefusal::Plain,
            other => TlsRefusal::Other(other),
        }
    }
}

/// Converts between bytes of the socket and bytes of lines.
#[derive(Debug)]
pub enum Transport {
    /// No TLS. The buffer holds bytes for the socket.
    Plain(Vec<u8>),
    /// TLS 1.3.
    Tls(Box<ClientConnection>),
}

impl Transport {
    /// Begins a connection with the controller at this address.
    ///
    /// # Errors
    /// If the system provides no random numbers.
    pub fn new(config: Option<&Arc<ClientConfig>>, controller: IpAddr) -> Result<Self, TlsRefusal> {
        let Some(config) = config else { return Ok(Transport::Plain(Vec::new())) };
        let mut connection = ClientConnection::new(config.clone(), controller.into())?;
        // This buffer needs no limit, because the worker limits how much it writes.
        connection.set_buffer_limit(None);
        Ok(Transport::Tls(Box::new(connection)))
    }

    /// Takes bytes from the socket, and appends the lines' bytes to `lines`.
    ///
    /// # Errors
    /// If the connection must be closed.
    pub fn receive(&mut self, mut wire: &[u8], lines: &mut Vec<u8>) -> Result<(), TlsRefusal> {
        match self {
            Transport::Plain(_) => {
                lines.extend_from_slice(wire);
                Ok(())
            }
            Transport::Tls(connection) => {
                while !wire.is_empty() {
                    // This read fails only if the buffer of lines is full. The code below empties that buffer.
                    if !matches!(connection.read_tls(&mut wire), Ok(1..)) {
                        break;
                    }
                    connection.process_new_packets()?;
                    // `WouldBlock` means that everything was read.
                    let _ = connection.reader().read_to_end(lines);
                }
                Ok(())
            }
        }
    }

    /// Queues bytes of lines for the socket.
    pub fn send(&mut self, lines: &[u8]) {
        match self {
            Transport::Plain(out) => out.extend_from_slice(lines),
            // The buffer has no limit, so the call cannot fail.
            Transport::Tls(connection) => drop(connection.writer().write_all(lines)),
        }
    }

    /// Appends all bytes for the socket to `wire`.
    pub fn take(&mut self, wire: &mut Vec<u8>) {
        match self {
            Transport::Plain(out) => wire.append(out),
            Transport::Tls(connection) => {
                while connection.wants_write() && connection.write_tls(wire).is_ok() {}
            }
        }
    }
}

#[cfg(test)]
#[path = "transport_tests.rs"]
mod tests;
