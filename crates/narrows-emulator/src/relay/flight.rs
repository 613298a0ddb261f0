//! Frames in flight, ordered by due time.

use std::collections::VecDeque;

/// The frames in flight on a link.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    /// Pairs of a time (nanoseconds of CLOCK_MONOTONIC) and the frame that is due at this time, with its virtio header.
    /// The pairs are sorted by time.
    frames: VecDeque<(u64, Box<[u8]>)>,
}

impl Flight {
    /// Adds a frame. As in the simulator, the frame overtakes other frames only if `reorder` is set.
    pub(crate) fn push(&mut self, due: u64, frame: Box<[u8]>, reorder: bool) {
        match self.frames.back() {
            Some(&(last, _)) if due < last => {
                if reorder {
                    let at = self.frames.partition_point(|f| f.0 <= due);
                    self.frames.insert(at, (due, frame));
                } else {
                    self.frames.push_back((last, frame));
                }
            }
            _ => self.frames.push_back((due, frame)),
        }
    }

    /// Returns the time when the next frame is due.
    pub(crate) fn next(&self) -> Option<u64> {
        self.frames.front().map(|f| f.0)
    }

    /// Returns the frames that are due, but at most `max` of them.
    pub(crate) fn due(&self, now: u64, max: usize) -> impl Iterator<Item = &(u64, Box<[u8]>)> {
        self.frames.iter().take(max).take_while(move |f| f.0 <= now)
    }

    /// Removes the first `n` frames.
    pub(crate) fn remove(&mut self, n: usize) {
        self.frames.drain(..n.min(self.frames.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tag(i: usize) -> Box<[u8]> {
        vec![i as u8].into()
    }

    proptest! {
        #[test]
        fn order_is_kept_unless_reordering_is_enabled(dues in prop::collection::vec(0u64..50, 1..40), reorder: bool) {
            let mut flight = Flight::default();
            for (i, &due) in dues.iter().enumerate() {
                flight.push(due, tag(i), reorder);
            }
            let out: Vec<(u64, usize)> = flight.due(u64::MAX, usize::MAX).map(|f| (f.0, f.1[0] as usize)).collect();
            prop_assert_eq!(out.len(), dues.len());
            prop_assert!(out.is_sorted_by_key(|f| f.0));
            for &(at, i) in &out {
                prop_assert!(at >= dues[i], "a frame is sent before it is due");
            }
            if reorder {
                prop_assert!(out.iter().all(|&(at, i)| at == dues[i]));
            } else {
                prop_assert!(out.is_sorted_by_key(|f| f.1));
            }
        }
    }
}
