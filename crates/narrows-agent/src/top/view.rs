//! The order of the flows, and the first visible flow.

use std::cmp::Ordering;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::status::FlowStatus;

/// Columns to sort flows by, in the order in which the key `s` selects them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Column {
    #[default]
    Rate,
    Allocation,
    Rtt,
    Queue,
    Leaf,
    Flow,
}

impl Column {
    pub(super) const ALL: [Column; 6] =
        [Column::Rate, Column::Allocation, Column::Rtt, Column::Queue, Column::Leaf, Column::Flow];

    fn next(self) -> Self {
        let at = Column::ALL.iter().position(|c| *c == self).unwrap_or(0);
        Column::ALL[(at + 1) % Column::ALL.len()]
    }

    fn compare(self, a: &FlowStatus, b: &FlowStatus) -> Ordering {
        match self {
            Column::Rate => b.rate.cmp(&a.rate),
            Column::Allocation => b.allocation.cmp(&a.allocation),
            Column::Rtt => b.rtt.cmp(&a.rtt),
            Column::Queue => b.queued_packets.cmp(&a.queued_packets),
            Column::Leaf => a.leaf.cmp(&b.leaf),
            Column::Flow => Ordering::Equal,
        }
    }
}

/// State of the view.
#[derive(Debug, Default)]
pub(super) struct View {
    pub(super) column: Column,
    pub(super) reversed: bool,
    /// Index of the first visible flow.
    pub(super) first: usize,
    flows: usize,
}

impl View {
    /// Sets the number of flows. If the first visible flow no longer exists, the last flow becomes the first visible
    /// one.
    pub(super) fn fit(&mut self, flows: usize) {
        self.flows = flows;
        self.first = self.first.min(flows.saturating_sub(1));
    }

    /// Handles a key. Returns whether the key quits.
    pub(super) fn press(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return true,
            KeyCode::Char('c') if control => return true,
            KeyCode::Char('s') => self.column = self.column.next(),
            KeyCode::Char('r') => self.reversed = !self.reversed,
            KeyCode::Down => self.first += 1,
            KeyCode::Up => self.first = self.first.saturating_sub(1),
            KeyCode::PageDown => self.first += 10,
            KeyCode::PageUp => self.first = self.first.saturating_sub(10),
            KeyCode::Home => self.first = 0,
            _ => {}
        }
        self.fit(self.flows);
        false
    }

    /// Returns the flows in order from the first visible one. Equal flows are ordered by name, so that their order is
    /// stable.
    pub(super) fn pick<'f>(&self, flows: &'f [FlowStatus]) -> Vec<&'f FlowStatus> {
        let mut picked: Vec<_> = flows.iter().collect();
        picked.sort_by(|a, b| {
            let order = self.column.compare(a, b);
            let order = if self.reversed { order.reverse() } else { order };
            order.then_with(|| (&a.source, &a.destination).cmp(&(&b.source, &b.destination)))
        });
        picked.split_off(self.first.min(picked.len()))
    }
}
