//! External transport protocols: implementations from other crates that run as flows of a simulation.
//!
//! A [`Transport`] implements both ends of one flow, without I/O. Its inputs are datagrams and timers, and its outputs
//! are datagrams. The simulator carries the datagrams through the network, with queues, losses and ECN marks. Flows of
//! the simulator's own TCP can share this network. Pass a [`Transports`] to
//! [`Run::transports`](crate::Run::transports). The [`Transports`] builds the [`Transport`] of each flow whose
//! transport in the plan is a [`StackPlan`]. The crate `narrows-quinn` is an example.

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

/// Prefix of an event's kind, if the event reports that a flow's connection has failed. The reason follows the prefix.
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

/// A transport protocol between the two ends of a flow. The methods that handle an event send datagrams and report RTTs
/// through an [`Output`].
pub trait Transport: Send {
    /// Called once, when the flow starts.
    fn start(&mut self, output: &mut Output<'_>);

    /// Called when a datagram has reached an end.
    fn on_datagram(&mut self, at: End, datagram: Datagram, output: &mut Output<'_>);

    /// Returns the time at which [`on_timer`](Transport::on_timer) must be called; [`Time::NEVER`] if no call is
    /// needed. The simulator calls this method after each method that takes an [`Output`].
    fn next_timer(&self) -> Time;

    /// Called at the time that [`next_timer`](Transport::next_timer) has returned. After this call, `next_timer` must
    /// return a later time than the current time.
    fn on_timer(&mut self, output: &mut Output<'_>);

    /// Returns whether both ends have finished. If so, the flow ends, after the simulator has read the transport's
    /// final state.
    fn is_finished(&self) -> bool;

    /// Returns the application bytes that the receiver has delivered in order so far.
    fn delivered(&self) -> Bytes;

    /// Returns the state for samples and results.
    fn state(&self) -> TransportState;

    /// Passes the names and values of the congestion controller's internal state to `trace`.
    fn trace(&self, _trace: &mut dyn FnMut(&'static str, f64)) {}
}

/// The state of a transport for samples and results. Unknown values are `None`.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct TransportState {
    /// Bytes of a full datagram without its IP and UDP headers. The results give windows in packets of this size.
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
    /// Mean deviation of the RTT.
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
    /// Time and reason of the failure, if the connection failed. The results contain the failure as an event.
    pub failure: Option<(Time, String)>,
}

/// The time, and the datagrams and RTTs that a transport produces.
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

    /// Sends a datagram from an end to the other end. A datagram with more bytes than [`MAX_CONTENTS_BYTES`] is not
    /// sent.
    pub fn send(&mut self, from: End, datagram: Datagram) {
        if datagram.contents.len() <= MAX_CONTENTS_BYTES {
            self.sent.push((from, datagram));
        }
    }

    /// Records a request of the receiver, and returns the number of its object in this flow.
    pub fn record_request(&mut self, size: Bytes) -> usize {
        self.objects.push(Object { requested_at: self.now, received_at: None, size });
        self.objects.len() - 1
    }

    /// Records that the receiver has the whole object with this number.
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

/// The properties of a flow that its transport needs.
#[non_exhaustive]
pub struct FlowSetup<'a> {
    /// The stack, its congestion controller and its settings.
    pub stack: &'a StackPlan,
    /// The sending application.
    pub app: App,
    /// The receiver's requests. If there are any, the sender sends only the requested objects.
    pub requests: Option<Requests>,
    /// Seed for all random choices. Each flow has its own seed, which is derived from the plan's seed.
    pub seed: u64,
    /// The flow's number.
    pub flow: FlowNumber,
    /// The flow's name in the results.
    pub name: &'a str,
    /// The congestion controllers of the run.
    pub controllers: &'a dyn Controllers,
}

/// Builds the transports of a run from the names of their stacks.
pub trait Transports: Sync {
    /// Checks the name of a stack, its congestion controller and its settings.
    ///
    /// # Errors
    /// Returns the first invalid part.
    fn check(&self, stack: &StackPlan, controllers: &dyn Controllers) -> Result<(), Problem>;

    /// Builds the transport of a flow. The flow's stack has passed [`check`](Transports::check). If this method returns
    /// `None`, the flow sends nothing.
    fn build(&self, setup: FlowSetup<'_>) -> Option<Box<dyn Transport>>;

    /// Whether the flows of a plan may be programs. The simulator runs no programs.
    fn has_programs(&self) -> bool {
        false
    }
}

/// A run without external transports. Its plan can use only TCP and UDP.
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

/// Returns the name of a flow's congestion controller in the results. For TCP this is the controller's name with the
/// given parameters. For an external stack, the name of the stack comes first (`quinn:bbr`). For UDP, and for a program
/// without a congestion controller in the plan, the result is `udp`.
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
