//! The parameters of laws with one rate for all flows.

crate::words! {
    /// How a port's rate reaches the senders.
    pub enum Signal {
        /// In headers of data packets, as published. Receivers echo these headers. Simulator only.
        Header = "header",
        /// In ACKs with BRF's option, which works with stock hosts and real switches.
        Ack = "ack",
    }
}

/// Default maximum number of flows that a port keeps. Each flow takes about a third of a kilobyte.
pub(in crate::rate) const MAX_FLOWS: usize = 131_072;
