//! Cruise holds the measured bandwidth until the next probe (BBR3-5).

use super::{Phase, Refill, Rules};
use crate::congestion::bbr::bounded::params::{Gains, Params};
use crate::congestion::bbr::bounded::shared::Shared;
use crate::congestion::{Ack, Window};
use crate::units::Rate;

/// Sends at the estimated bandwidth.
#[derive(Clone, Debug)]
pub(in super::super) struct Cruise;

impl Rules for Cruise {
    fn numbers(&self) -> (u32, Option<u32>) {
        (2, Some(2))
    }

    fn gains(&self, params: &Params) -> Gains {
        params.cruise
    }

    fn longterm(&self, shared: &Shared) -> u32 {
        shared.with_headroom()
    }

    fn on_sample(&self, shared: &mut Shared, ack: &Ack, window: &Window, _: Rate) -> Option<Phase> {
        Refill::if_safe(shared, ack).or_else(|| {
            shared.raise_longterm(ack);
            Refill::if_due(shared, ack, window)
        })
    }
}
