//! Computes the receive buffer that a scenario's network needs, for the simulator and for real sockets.

use narrows_control::units::Bytes;
use narrows_plan::{LimitPlan, LinkPlan, QueuePlan, RatePlan};

use super::paths::Path;
use crate::data::FULL_PACKET;
use crate::units::NANOS_PER_SEC;

/// Linux's default maximum of the receive buffer (tcp_rmem), bytes.
pub const DEFAULT: u64 = 6 << 20;
/// Maximum size. Half of this size is near the largest window that TCP can offer (RFC 7323 section 2.3).
const MOST: u64 = 1 << 30;
/// Ratio of the receive buffer to the content of a path. It is 2 times 2: Linux offers only half of the buffer as the
/// window, and slow start sends up to twice the content of a full path before it detects a loss.
const MARGIN: u64 = 4;

/// Returns the size: Linux's default or four times the content of the largest path, whichever is larger.
///
/// The content of a path is the BDP of its slowest link, plus that link's queue. The size of the buffer affects
/// algorithms that count ACKs, because a receiver acknowledges each segment while its window grows (`tcp/offer.rs`).
pub(super) fn receive_buffer(links: &[LinkPlan], paths: &[Path]) -> Bytes {
    let most = paths.iter().map(|path| content(links, path)).max().unwrap_or(0);
    Bytes::new(most.saturating_mul(MARGIN).clamp(DEFAULT, MOST))
}

fn content(links: &[LinkPlan], path: &Path) -> u64 {
    let both = path.forth.iter().chain(&path.back).filter_map(|link| links.get(*link));
    let rtt = both.fold(0u64, |sum, link| {
        let longest = link.delay.iter().map(|(_, delay)| delay.as_nanos()).max().unwrap_or(0);
        sum.saturating_add(longest)
    });
    let forth = path.forth.iter().filter_map(|link| links.get(*link));
    let Some(slowest) = forth.min_by_key(|link| rate(link)) else { return 0 };
    let held = u128::from(rate(slowest)) * u128::from(rtt.min(NANOS_PER_SEC)) / u128::from(NANOS_PER_SEC);
    u64::try_from(held).unwrap_or(u64::MAX).saturating_add(waiting(&slowest.queue))
}

/// Returns the highest rate of a link, or the mean rate of its trace, bytes/s.
fn rate(link: &LinkPlan) -> u64 {
    match &link.rate {
        RatePlan::Steps { steps, .. } => {
            steps.iter().map(|(_, rate)| rate.as_bytes_per_sec()).max().unwrap_or(0)
        }
        RatePlan::Opportunities { millis, period_millis, bytes } => {
            millis.len() as u64 * u64::from(*bytes) * 1000 / u64::from(*period_millis).max(1)
        }
    }
}

/// Returns the capacity of a queue in bytes; 0 if it is unlimited.
fn waiting(queue: &QueuePlan) -> u64 {
    let of = |limit: &LimitPlan| match limit.bytes {
        Some(bytes) if bytes > Bytes::ZERO => bytes.get(),
        _ => u64::from(limit.packets.unwrap_or(0)) * u64::from(FULL_PACKET),
    };
    match queue {
        QueuePlan::Priority { classes } => classes.iter().map(of).sum(),
        QueuePlan::Htb { classes } => classes.iter().map(|class| of(&class.limit)).sum(),
        QueuePlan::Fifo { limit, .. } | QueuePlan::Codel { limit, .. } | QueuePlan::FqCodel { limit, .. } => {
            of(limit)
        }
    }
}
