use core::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;

use super::*;
use crate::rate::{FlowKey, Proto, Side};

fn key(n: u32) -> FlowKey {
    let daddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    FlowKey { saddr: IpAddr::V4(Ipv4Addr::from_bits(n)), daddr, sport: 40_000, dport: 443, proto: Proto::Tcp }
}

fn flow(n: u32) -> Flow<FlowKey> {
    Flow::new(key(n), Class::Rated, Life::new(Time::ZERO, Some(Side::Sender)))
}

fn on_list(table: &Table<FlowKey>, list: List) -> Vec<FlowKey> {
    table.ids(list).filter_map(|id| table.get(id)).map(|f| f.key).collect()
}

#[test]
fn slots_are_reused_but_ids_are_not() {
    let mut table = Table::new(1, Span::from_millis(100));
    let first = table.insert(flow(1)).unwrap();
    assert!(table.insert(flow(2)).is_none(), "full");
    assert_eq!(table.remove(first).unwrap().key, key(1));
    let second = table.insert(flow(2)).unwrap();
    assert_eq!(first.slot, second.slot);
    assert!(table.get(first).is_none() && table.remove(first).is_none());
    assert_eq!(table.get(second).unwrap().key, key(2));
}

proptest! {
    #[test]
    fn lists_behave_as_queues(steps in proptest::collection::vec((0u8..4, 0u32..12), 0..150)) {
        let lists = [List::Rated, List::Other, List::Idle, List::Waiting];
        let mut table = Table::new(8, Span::from_millis(100));
        let mut model: [Vec<FlowKey>; 4] = Default::default();
        for (step, n) in steps {
            match (step, table.find(&key(n))) {
                (0, None) if table.insert(flow(n)).is_some() => {
                    model[List::Waiting as usize].push(key(n));
                }
                (1, Some(id)) => {
                    table.remove(id);
                    model.iter_mut().for_each(|l| l.retain(|k| *k != key(n)));
                }
                (_, Some(id)) => {
                    let to = lists[(n as usize + usize::from(step)) % 4];
                    table.move_to(id, to);
                    table.confirm(id);
                    model.iter_mut().for_each(|l| l.retain(|k| *k != key(n)));
                    model[to as usize].push(key(n));
                }
                _ => {}
            }
            for list in lists {
                prop_assert_eq!(&on_list(&table, list), &model[list as usize]);
                prop_assert_eq!(table.len(list), model[list as usize].len());
            }
            let (unconfirmed, confirmed) = table.unconfirmed_and_confirmed();
            prop_assert_eq!(unconfirmed + confirmed, model.iter().map(Vec::len).sum::<usize>());
        }
    }
}
