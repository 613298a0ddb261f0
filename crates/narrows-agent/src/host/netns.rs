//! Runs code inside a network namespace, and changes the namespace's default congestion control.

#![allow(unsafe_code, reason = "system calls that no library of ours wraps")]

use std::fs;
use std::io;
use std::mem;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;

use serde::{Deserialize, Serialize};

use super::{HostError, Namespace};
use crate::htb;
use crate::netns::Netns;

const CONGESTION_CONTROL: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Runs `work` in the namespace.
pub(super) fn within<T: Send>(
    namespace: &Namespace,
    work: impl FnOnce() -> Result<T, HostError> + Send,
) -> Result<T, HostError> {
    match &namespace.path {
        None => work(),
        Some(path) => Netns::at(path.clone()).run(work).map_err(HostError::Netns)?,
    }
}

/// Returns the current namespace's cookie, as seen by eBPF programs (SO_NETNS_COOKIE, since Linux 5.14).
pub(super) fn cookie() -> Result<u64, HostError> {
    let socket = UnixDatagram::unbound().map_err(HostError::file("a socket in the namespace"))?;
    let mut cookie = 0u64;
    let mut len = mem::size_of::<u64>() as libc::socklen_t;
    // SAFETY: the value is a u64 that outlives the call, and the length is that of a u64.
    let ret = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut len,
        )
    };
    if ret != 0 {
        return Err(HostError::Missing {
            what: "identifying the network namespace (SO_NETNS_COOKIE)",
            found: io::Error::last_os_error().to_string(),
            remedy: "Linux 5.14 or later is needed".to_owned(),
        });
    }
    Ok(cookie)
}

/// Returns the ifindex of a network interface of the current namespace.
pub(super) fn interface(name: &str) -> Result<u32, htb::Error> {
    nix::net::if_::if_nametoindex(name).map_err(|_| htb::Error::NoInterface(name.to_owned()))
}

/// Returns whether the kernel offers this congestion control.
pub(super) fn has_congestion_control(name: &str) -> Result<bool, HostError> {
    let text = fs::read_to_string(AVAILABLE).map_err(HostError::file(AVAILABLE))?;
    Ok(text.split_whitespace().any(|word| word == name))
}

/// A namespace's default congestion control before the agent changed it. The functions apply to the calling thread's
/// namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefaultBefore {
    own: String,
    before: String,
}

impl DefaultBefore {
    /// Reads the present default, before the caller changes it to `own`.
    ///
    /// # Errors
    /// If the default cannot be read.
    pub fn read(own: &str) -> io::Result<Self> {
        let before = fs::read_to_string(CONGESTION_CONTROL)?.trim().to_owned();
        // If the default is already `own`, an earlier sender has left it. Restore the kernel's usual default later
        // instead.
        let before = if before == own { "cubic".to_owned() } else { before };
        Ok(DefaultBefore { own: own.to_owned(), before })
    }

    fn change(&self) -> io::Result<()> {
        fs::write(CONGESTION_CONTROL, &self.own)
    }

    /// Restores the previous default. Returns `false` and changes nothing if somebody has chosen another default in the
    /// meantime.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn restore(&self) -> io::Result<bool> {
        if fs::read_to_string(CONGESTION_CONTROL)?.trim() != self.own {
            return Ok(false);
        }
        // All namespaces except the first accept only unrestricted algorithms as their default. Reno is always
        // unrestricted (tcp_set_default_congestion_control()).
        fs::write(CONGESTION_CONTROL, &self.before).or_else(|_| fs::write(CONGESTION_CONTROL, "reno"))?;
        Ok(true)
    }
}

/// A namespace whose default congestion control was changed. Dropping this value restores the default.
#[derive(Debug)]
pub(super) struct DefaultChanged {
    namespace: Namespace,
    default: DefaultBefore,
}

impl DefaultChanged {
    /// Makes `name` the namespace's default.
    pub(super) fn to(name: &str, namespace: &Namespace) -> Result<Self, HostError> {
        let default = within(namespace, || {
            let default = DefaultBefore::read(name).map_err(HostError::file(CONGESTION_CONTROL))?;
            default.change().map_err(HostError::file(CONGESTION_CONTROL))?;
            Ok(default)
        })?;
        Ok(DefaultChanged { namespace: namespace.clone(), default })
    }
}

impl Drop for DefaultChanged {
    fn drop(&mut self) {
        let restored =
            within(&self.namespace, || self.default.restore().map_err(HostError::file(CONGESTION_CONTROL)));
        if let Err(error) = restored {
            tracing::warn!(%error, "the default congestion control was not restored");
        }
    }
}
