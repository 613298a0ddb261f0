//! External transport protocols. These are implementations from other crates that run as flows of a simulation.
//!
//! A [`Transport`] implements both ends of one flow, without I/O. Its inputs are datagrams and timers, and its outputs
//! are datagrams. The simulator carries the datagrams through the network, with queues, losses and ECN marks. Flows of
//! the simulator's own TCP can share this network.
//!
//! In the plan, a flow selects an external transport by a [`StackPlan`]. Pass a [`Transports`] to
//! [`Run::transports`](crate::Run::transports). It builds a [`Transport`] for each of these flows. The crate
//! `narrows-quinn` is an example.

mod flow;
mod requests;

use narrows_control::catalogue::{Controllers, FlowNumber, Problem};
use narrows_control::units::{Bytes, Rate, Span, Time};

pub(crate) use self::flow::StackFlow;
pub use self::requests::{Object, Requests};
use crate::packet::UDP_HEADER_BYTES;
pub use crate::plan::StackPlan;
use crate::plan::TransportPlan;
use crate::tcp::RttStats;
pub use crate::tcp::{App, Chunk};

/// Largest number of bytes that a UDP datagram over IPv4 can carry.
pub const MAX_CONTENTS_BYTES: usize = u16::MAX as usize - UDP_HEADER_BYTES as usize;

/// If a flow's connection fails, the results contain an event. The kind of this event begins with this prefix, and the
/// reason of the failure follows.
pub const CONNECTION_LOST: &str = "connection-lost: ";

/// An end of a flow.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// The end that opens the connection and sends the data.
    Sender,
    /// The end that receives the data.
    Receiver,
}

/// The ECN field of a datagram (RFC 3168). The simulator does not support ECT(1).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotCapable,
    /// ECN-capable: ECT(0).
    Capable,
    /// Congestion experienced: a queue has marked the datagram.
    Experienced,
}

/// A UDP datagram.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Datagram {
    /// The bytes after the UDP header.
    pub contents: Vec<u8>,
    /// The ECN field.
    pub ecn: Ecn,
}

/// A transport protocol between the two ends of a flow. The methods that handle an event get an [`Output`]. They use
/// this [`Output`] to send datagrams and to report RTTs.
pub trait Transport: Send {
    /// Called once, when the flow starts.
    fn start(&mut self, output: &mut Output<'_>);

    /// Called when a datagram has reached an end.
    fn on_datagram(&mut self, at: End, datagram: Datagram, output: &mut Output<'_>);

    /// Returns the time at which [`on_timer`](Transport::on_timer) must be called; [`Time::NEVER`] if no call is
    /// needed. The simulator asks for this time again after each call that passes an [`Output`].
    fn next_timer(&self) -> Time;

    /// Called at the time that [`next_timer`](Transport::next_timer) has returned. After this call, `next_timer` must
    /// return a time later than the current time.
    fn on_timer(&mut self, output: &mut Output<'_>);

    /// Returns whether both ends have finished. If they have, the simulator reads the transport's final state and ends
    /// the flow.
    fn is_finished(&self) -> bool;

    /// Returns the application bytes that the receiver has delivered in order so far.
    fn delivered(&self) -> Bytes;

    /// Returns the state for samples and results.
    fn state(&self) -> TransportState;

    /// Calls `trace` with the name and the value of each internal variable of the congestion controller.
    fn trace(&self, _trace: &mut dyn FnMut(&'static str, f64)) {}
}

/// The state of a transport for samples and results. Unknown values are `None`.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct TransportState {
    /// Bytes of a full datagram without its IP and UDP headers. The results give windows in units of this size.
    pub datagram: Bytes,
    /// Congestion window.
    pub window: Option<Bytes>,
    /// Slow-start threshold.
    pub ssthresh: Option<Bytes>,
    /// Pacing rate.
    pub pacing_rate: Option<Rate>,
    /// Bytes in flight.
    pub in_flight: Bytes,
    /// Smoothed RTT.
    pub srtt: Option<Span>,
    /// Mean deviation of the RTT (`rttvar`).
    pub rttvar: Option<Span>,
    /// The most recent RTT.
    pub latest_rtt: Option<Span>,
    /// The minimum RTT.
    pub min_rtt: Option<Span>,
    /// Packets declared lost.
    pub lost_packets: u64,
    /// Number of retransmission timeouts; for QUIC, number of persistent congestion events.
    pub timeouts: u64,
    /// The time at which the last byte was acknowledged.
    pub acked_at: Option<Time>,
    /// The time at which the receiver had all data.
    pub received_at: Option<Time>,
    /// Time and reason of the failure, if the connection has failed. The failure is an event in the results.
    pub failure: Option<(Time, String)>,
}

/// Collects the datagrams, RTTs and object times that a transport produces, and provides the current time.
#[derive(Debug)]
pub struct Output<'a> {
    now: Time,
    sent: &'a mut Vec<(End, Datagram)>,
    rtts: &'a mut RttStats,
    objects: &'a mut Vec<Object>,
}

impl Output<'_> {
    /// Returns the current time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Sends a datagram from the end `from` to the other end. Does not send a datagram with more than
    /// [`MAX_CONTENTS_BYTES`] bytes.
    pub fn send(&mut self, from: End, datagram: Datagram) {
        if datagram.contents.len() <= MAX_CONTENTS_BYTES {
            self.sent.push((from, datagram));
        }
    }

    /// Records that the receiver has requested an object of this size. Returns the number of the object in this flow.
    pub fn record_request(&mut self, size: Bytes) -> usize {
        self.objects.push(Object { requested_at: self.now, received_at: None, size });
        self.objects.len() - 1
    }

    /// Records that the receiver now has the whole object with this number.
    pub fn record_object(&mut self, number: usize) {
        if let Some(object) = self.objects.get_mut(number) {
            object.received_at = Some(self.now);
        }
    }

    /// Reports an RTT that the sender has measured.
    pub fn report_rtt(&mut self, rtt: Span) {
        self.rtts.add(self.now, rtt);
    }
}

/// The data from which a flow's transport is built.
#[non_exhaustive]
pub struct FlowSetup<'a> {
    /// The stack, its congestion controller and its settings.
    pub stack: &'a StackPlan,
    /// The sending application.
    pub app: App,
    /// The receiver's requests. If a flow has requests, the sender sends only the requested objects.
    pub requests: Option<Requests>,
    /// Seed for all random choices. The simulator derives a different seed for each flow from the plan's seed.
    pub seed: u64,
    /// The flow's number.
    pub flow: FlowNumber,
    /// The flow's name in the results.
    pub name: &'a str,
    /// The congestion controllers of the run.
    pub controllers: &'a dyn Controllers,
}

/// Builds the transports of a run. A transport is selected by the name of its stack.
pub trait Transports: Sync {
    /// Checks the name of a stack, its congestion controller and its settings.
    ///
    /// # Errors
    /// Returns the first invalid part.
    fn check(&self, stack: &StackPlan, controllers: &dyn Controllers) -> Result<(), Problem>;

    /// Builds the transport of a flow. The flow's stack has already passed [`check`](Transports::check). If this method
    /// returns `None`, the flow sends nothing.
    fn build(&self, setup: FlowSetup<'_>) -> Option<Box<dyn Transport>>;

    /// Whether a flow of a plan may be an external program. The simulator cannot run programs.
    fn has_programs(&self) -> bool {
        false
    }
}

/// The transports of a run that has no external transports. The plan of this run can use only TCP and UDP.
#[derive(Copy, Clone, Debug, Default)]
pub struct NoTransports;

impl Transports for NoTransports {
    fn check(&self, stack: &StackPlan, _controllers: &dyn Controllers) -> Result<(), Problem> {
        let expected = "tcp or udp: this program has no other transports".to_owned();
        let parameter = Some("transport".to_owned());
        Err(Problem { parameter, found: format!("{:?}", stack.name), expected })
    }

    fn build(&self, _setup: FlowSetup<'_>) -> Option<Box<dyn Transport>> {
        None
    }
}

/// Returns the name that the results give to a flow's congestion controller:
///
/// * TCP: the controller's name with the given parameters.
/// * An external stack: the name of the stack and then the controller (`quinn:bbr`).
/// * UDP, and programs without a congestion controller in the plan: `udp`.
pub(crate) fn label(transport: &TransportPlan, controllers: &dyn Controllers) -> String {
    match transport {
        TransportPlan::Tcp { cc, .. } => controllers.label(cc),
        TransportPlan::Udp { .. } => "udp".to_owned(),
        TransportPlan::Stack(stack) => format!("{}:{}", stack.name, controllers.label(&stack.cc)),
        TransportPlan::Program(program) => {
            program.cc.as_ref().map_or_else(|| "udp".to_owned(), |cc| controllers.label(cc))
        }
    }
}
