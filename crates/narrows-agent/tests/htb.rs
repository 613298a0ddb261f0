//! Tests of HTB on a real kernel, each in its own network namespace. Without root, the tests are skipped.

mod kernel;

use std::net::UdpSocket;

use narrows_agent::htb::{Htb, Layout, LeafStats, Remains, Rtnl};
use narrows_control::rate::{Class, Leaf, UDP_QUEUES};
use narrows_control::units::{Bytes, Rate};

fn mbit(rate: u64) -> Rate {
    Rate::from_bits_per_sec(rate * 1_000_000)
}

fn layout(rate: u64) -> Layout {
    Layout::new(mbit(rate), Bytes::new(1500))
}

/// Returns the ifindex of `a` in the thread's namespace.
fn port() -> u32 {
    Rtnl::open().unwrap().link("a").unwrap().index
}

fn tc(lab: &kernel::Lab, what: &str) -> String {
    lab.says(&format!("tc {what} show dev a")).unwrap_or_default()
}

#[test]
fn htb_is_installed_as_laid_out_and_removed_afterwards() {
    let Some(lab) = kernel::lab() else { return };
    let before = tc(&lab, "qdisc");
    lab.here()
        .run(|| {
            let mut htb = Htb::install(port(), &layout(100)).unwrap();
            assert_eq!(htb.stats().unwrap().unwrap(), [LeafStats::default(); 4]);
            htb.set_class(Class::Rated, mbit(60), mbit(100)).unwrap();
            htb.set_class(Class::OtherTcp, mbit(35), mbit(100)).unwrap();
            htb.set_class(Class::Udp, mbit(5), mbit(95)).unwrap();
            // Check with `tc`, which shares no code with the agent.
            let classes = tc(&lab, "class");
            for expected in [
                "htb 4e57:1 root rate 100Mbit ceil 100Mbit",
                "htb 4e57:10 parent 4e57:1 rate 60Mbit ceil 100Mbit",
                "htb 4e57:12 parent 4e57:10 leaf",
                "prio 2 rate 35Mbit ceil 100Mbit",
                "htb 4e57:30 parent 4e57:1 rate 5Mbit ceil 95Mbit",
                "htb 4e57:11f parent 4e57:30 leaf",
                "prio 3 rate 8bit ceil 1Tbit",
            ] {
                assert!(classes.contains(expected), "{expected} is not in\n{classes}");
            }
            let qdiscs = tc(&lab, "qdisc");
            assert!(qdiscs.contains("default 0x20"), "{qdiscs}");
            assert_eq!(qdiscs.matches("limit 1000p").count(), 3, "{qdiscs}");
            assert_eq!(qdiscs.matches("limit 100p").count(), usize::from(UDP_QUEUES), "{qdiscs}");
            htb.remove().unwrap();
        })
        .unwrap();
    assert_eq!(tc(&lab, "qdisc"), before);
}

#[test]
fn rates_above_2_to_the_32_bytes_are_set_exactly() {
    let Some(lab) = kernel::lab() else { return };
    lab.here()
        .run(|| {
            let _htb = Htb::install(port(), &layout(100_000)).unwrap();
            let classes = tc(&lab, "class");
            assert!(classes.contains("htb 4e57:1 root rate 100Gbit ceil 100Gbit"), "{classes}");
        })
        .unwrap();
}

#[test]
fn a_thousand_changes_under_load_all_take_effect() {
    let Some(lab) = kernel::lab() else { return };
    lab.here()
        .run(|| {
            let mut htb = Htb::install(port(), &layout(100)).unwrap();
            let blast = UdpSocket::bind("10.99.0.1:0").unwrap();
            for n in 1..=1000u64 {
                let rate = Rate::from_bytes_per_sec(100_000 + n);
                htb.set_class(Class::OtherTcp, rate, mbit(100)).unwrap();
                let _ = blast.send_to(&[0; 1000], "10.99.0.2:9");
            }
            htb.set_class(Class::OtherTcp, mbit(33), mbit(77)).unwrap();
            assert!(tc(&lab, "class").contains("rate 33Mbit ceil 77Mbit"), "{}", tc(&lab, "class"));
        })
        .unwrap();
}

#[test]
fn bytes_packets_queue_and_drops_of_a_burst_are_counted() {
    let Some(lab) = kernel::lab() else { return };
    lab.here()
        .run(|| {
            let slow = Layout { limits: [10, 10, 20, 10], ..layout(1) };
            let mut htb = Htb::install(port(), &slow).unwrap();
            let blast = UdpSocket::bind("10.99.0.1:0").unwrap();
            for _ in 0..100 {
                let _ = blast.send_to(&[0; 1472], "10.99.0.2:9");
            }
            // Without a classifier, all packets are in the default class, other TCP. 100 datagrams of 1500 bytes enter
            // a link of 1 Mbit/s. The burst and the queue hold 21 of them, so the queue drops some of the rest.
            let stats = htb.stats().unwrap().unwrap();
            let other = stats[Leaf::OtherTcp as usize];
            assert!(other.queued_packets > 10 && other.queued_packets <= 20, "{other:?}");
            assert!(other.queued_bytes >= 10 * 1514 && other.queued_bytes <= 20 * 1514, "{other:?}");
            assert!(other.drops > 0 && other.overlimits > 0, "{other:?}");
            assert!(other.bytes > 0 && other.packets > 0, "{other:?}");
            assert_eq!(stats[Leaf::Mouse as usize], LeafStats::default());
        })
        .unwrap();
}

#[test]
fn without_overhead_htb_counts_datagrams() {
    let Some(lab) = kernel::lab() else { return };
    lab.here()
        .run(|| {
            for (overhead, size) in [(0, 1028), (14, 1042), (38, 1066)] {
                let mut htb = Htb::install(port(), &Layout { overhead, ..layout(100) }).unwrap();
                let sender = UdpSocket::bind("10.99.0.1:0").unwrap();
                for _ in 0..5 {
                    sender.send_to(&[0; 1000], "10.99.0.2:9").unwrap();
                }
                let mut other = LeafStats::default();
                for _ in 0..5_000 {
                    other = htb.stats().unwrap().unwrap()[Leaf::OtherTcp as usize];
                    if other.packets >= 5 {
                        break;
                    }
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
                assert_eq!((other.packets, other.bytes), (5, 5 * size));
                htb.remove().unwrap();
            }
        })
        .unwrap();
}

#[test]
fn an_htb_of_the_same_layout_is_taken_over_and_another_replaced() {
    let Some(lab) = kernel::lab() else { return };
    lab.here()
        .run(|| {
            let mut first = Htb::install(port(), &layout(100)).unwrap();
            let sender = UdpSocket::bind("10.99.0.1:0").unwrap();
            sender.send_to(&[0; 1000], "10.99.0.2:9").unwrap();
            first.keep();
            drop(first);
            // The second call takes over the same HTB, so the counters continue.
            let mut second = Htb::install(port(), &layout(50)).unwrap();
            assert!(second.stats().unwrap().unwrap()[Leaf::OtherTcp as usize].bytes > 0);
            assert!(tc(&lab, "class").contains("htb 4e57:1 root rate 50Mbit"), "{}", tc(&lab, "class"));
            second.keep();
            drop(second);
            let mut third = Htb::install(port(), &Layout { overhead: 0, ..layout(50) }).unwrap();
            assert_eq!(third.stats().unwrap().unwrap()[Leaf::OtherTcp as usize].bytes, 0);
            third.keep();
            drop(third);
            let mut rtnl = Rtnl::open().unwrap();
            let found = Remains::find(&mut rtnl).unwrap();
            assert_eq!(found, [Remains { index: port(), previous: None }]);
            assert!(found[0].undo(&mut rtnl).unwrap());
            assert!(!found[0].undo(&mut rtnl).unwrap(), "nothing is left to undo");
        })
        .unwrap();
}

#[test]
fn the_previous_qdisc_is_restored_or_left_unchanged() {
    let Some(lab) = kernel::lab() else { return };
    lab.says("tc qdisc add dev a root handle 7: pfifo limit 77").unwrap();
    lab.here().run(|| drop(Htb::install(port(), &layout(100)).unwrap())).unwrap();
    let back = tc(&lab, "qdisc");
    assert!(back.contains("qdisc pfifo 7: root") && back.contains("limit 77p"), "{back}");

    lab.says("tc qdisc replace dev a root handle 1: htb default 1").unwrap();
    let refused = lab.here().run(|| Htb::install(port(), &layout(100)).map(drop).unwrap_err()).unwrap();
    assert!(refused.to_string().contains("has a htb at its root (handle 1:)"), "{refused}");
    assert!(tc(&lab, "qdisc").contains("qdisc htb 1: root"));
}
