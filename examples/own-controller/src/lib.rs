//! Two congestion controllers of your own. [`Constant`] has a constant window. [`hpcc`] has a congestion header, and a
//! rate controller that fills it.

pub mod hpcc;

use narrows_control::catalogue::{Entry, Family, Group};
use narrows_control::congestion::{Ack, Congestion, Controller, Window};
use narrows_control::parameter::{Parameters, whole};

narrows_control::parameters! {
    /// Parameters of [`Constant`].
    pub struct Params {
        /// Segments in flight.
        pub segments: u32 = 40, whole(1, 1_000_000).unit("segments").from("this example");
    }
}

/// Keeps a constant number of segments in flight, and does not react to losses.
pub struct Constant(Params);

impl Controller for Constant {
    fn name(&self) -> &'static str {
        "constant"
    }

    fn on_ack(&mut self, _ack: &Ack, window: &mut Window) {
        window.cwnd = self.0.segments;
    }

    fn on_congestion(&mut self, _event: &Congestion, window: &mut Window) {
        window.ssthresh = self.0.segments;
    }
}

/// The row of the catalogue. With this row, scenarios can use `cc = "constant"`, or
/// `cc = { name = "constant", segments = 20 }`.
pub const CONSTANT: Entry = Entry {
    parameters: &[Group::of::<Params>("")],
    ..Entry::new("constant", Family::Loss, "a constant window", |values| {
        Box::new(Constant(Params::default().with("", values)))
    })
};
