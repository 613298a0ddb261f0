//! Records in reusable slots, identified by unique [`FlowId`]s.

use super::flow_id::FlowId;

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    record: Option<T>,
}

/// The records.
#[derive(Debug)]
pub(in crate::rate) struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Slots { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    /// Returns the number of slots, including empty ones.
    pub(in crate::rate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns the identifier of the record in this slot, if there is one.
    pub(in crate::rate) fn id(&self, slot: usize) -> Option<FlowId> {
        let place = self.slots.get(slot).filter(|place| place.record.is_some())?;
        Some(FlowId { slot: u32::try_from(slot).ok()?, generation: place.generation })
    }

    pub(in crate::rate) fn get(&self, id: FlowId) -> Option<&T> {
        let place = self.slots.get(id.slot as usize)?;
        place.record.as_ref().filter(|_| place.generation == id.generation)
    }

    pub(in crate::rate) fn get_mut(&mut self, id: FlowId) -> Option<&mut T> {
        let place = self.slots.get_mut(id.slot as usize)?;
        place.record.as_mut().filter(|_| place.generation == id.generation)
    }

    pub(in crate::rate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|place| place.record.as_ref())
    }

    /// Stores a record and returns its identifier, or `None` if there are 2^32 slots already.
    pub(in crate::rate) fn insert(&mut self, record: T) -> Option<FlowId> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                let slot = u32::try_from(self.slots.len()).ok()?;
                self.slots.push(Slot { generation: 0, record: None });
                slot
            }
        };
        let place = self.slots.get_mut(slot as usize)?;
        place.record = Some(record);
        Some(FlowId { slot, generation: place.generation })
    }

    pub(in crate::rate) fn remove(&mut self, id: FlowId) -> Option<T> {
        let place = self.slots.get_mut(id.slot as usize).filter(|place| place.generation == id.generation)?;
        let record = place.record.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(id.slot);
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_reused_and_old_ids_are_not() {
        let mut slots = Slots::default();
        let [a, b] = ["a", "b"].map(|text| slots.insert(text).unwrap());
        assert_eq!((slots.remove(a), slots.remove(a)), (Some("a"), None));
        let c = slots.insert("c").unwrap();
        assert_eq!((c.slot, slots.len()), (a.slot, 2));
        assert_eq!((slots.get(a), slots.get(b), slots.get(c)), (None, Some(&"b"), Some(&"c")));
        assert_eq!(slots.get_mut(a), None);
        assert_eq!(slots.iter().copied().collect::<Vec<_>>(), ["c", "b"]);
        assert_eq!([slots.id(0), slots.id(1), slots.id(2)], [Some(c), Some(b), None]);
    }
}
