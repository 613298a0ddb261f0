//! Tests the sender and the receiver of rate feedback on this kernel, with unmodified programs and a switch in user
//! space. The tests need root.
#![allow(missing_docs, unsafe_code, reason = "packet sockets have no wrapper")]

#[path = "host/downloads.rs"]
mod downloads;
#[path = "host/net.rs"]
mod net;
#[path = "host/switch.rs"]
mod switch;

use std::io::Write;
use std::time::Duration;

use narrows_agent::host::{Choice, Mode, Receiver, ReceiverOptions, Sender, SenderOptions};
use narrows_control::feedback::code::RateCode;
use narrows_control::feedback::option::Format;
use narrows_control::rate::RateOption;
use narrows_control::units::Rate;
use narrows_lab::patiently;
use net::{DELAY_NS, Net, can_run, greedy};
use switch::{Behaviour, Seen, must};

/// The rate that the test's switch writes, in bytes/s (20 Mbit/s).
const WRITTEN: u64 = 2_500_000;
const SECOND: Duration = Duration::from_secs(1);
const NS: f64 = 1e9;

fn code(bytes_per_sec: u64) -> Option<u16> {
    Some(RateCode::encode(Rate::from_bytes_per_sec(bytes_per_sec)).to_bits())
}

fn writing(bytes_per_sec: u64) -> Behaviour {
    Behaviour { handshake: code(bytes_per_sec), acks: code(bytes_per_sec), ..Behaviour::default() }
}

/// Returns the options of a sender for this network only. Names of algorithms are global in the kernel, so each test
/// uses its own name.
fn sender(net: &Net, side: &str, name: &str) -> SenderOptions {
    let name = format!("{name}{}", std::process::id() % 1_000_000);
    SenderOptions { scope: net.scope(side), name, ..SenderOptions::default() }
}

/// Returns the data packets of one direction that arrived at the switch.
fn data(net: &Net, forth: bool) -> Vec<Seen> {
    net.switch.seen().into_iter().filter(|s| s.forth == forth && s.payload > 0).collect()
}

/// Returns whether a packet arrived between the times `from` and `to`, in seconds after the first packet.
fn within(packets: &[Seen], packet: &Seen, from: f64, to: f64) -> bool {
    let start = packets.first().map_or(0, |p| p.at_ns) as f64;
    (from..to).contains(&((packet.at_ns as f64 - start) / NS))
}

/// Returns the rate from the time `from` to the time `to`, in L3 bytes/s. The times are in seconds after the first
/// packet.
fn rate(packets: &[Seen], from: f64, to: f64) -> f64 {
    packets.iter().filter(|p| within(packets, p, from, to)).map(|p| p.l3 as f64).sum::<f64>() / (to - from)
}

fn assert_near(what: &str, measured: f64, expected: f64, tolerance: f64) {
    let share = measured / expected;
    assert!((share - 1.0).abs() <= tolerance, "{what}: {measured:.0} bytes/s is {share:.3} of {expected:.0}");
}

#[test]
fn the_rate_applies_from_the_first_packets_on() {
    patiently(|| {
        if !can_run() {
            return;
        }
        let net = Net::new(writing(WRITTEN));
        let sender = must(Sender::load(&sender(&net, "a", "obey")));
        net.transfer(2 * SECOND, false, greedy);
        let seen = net.switch.seen();
        let syn = seen.iter().find(|s| s.is_syn()).expect("a SYN");
        assert_eq!(syn.option, RateOption::Unassigned, "the SYN asks");
        let packets = data(&net, true);
        assert_near("rate", rate(&packets, 0.5, 1.9), WRITTEN as f64, 0.03);
        // The kernel does not pace the first ten packets of a connection (tcp_update_skb_after_send()).
        let unpaced = 10.0 * 1500.0 / 0.1;
        let first = rate(&packets, 0.0, 0.1);
        assert!(
            first > 0.9 * WRITTEN as f64 && first < 1.05 * WRITTEN as f64 + unpaced,
            "first 100 ms: {first:.0} bytes/s"
        );
        let counters = sender.counters();
        assert_eq!((counters.rated, counters.orphaned, counters.unrated), (1, 0, 0), "{counters:?}");
    });
}

/// The kernel does not pace the first ten packets. ACKs cannot pace them either, because the rate of this test is below
/// one packet per RTT: it is one packet in 300 ms, which is many RTTs.
#[test]
fn the_first_packets_of_a_slow_flow_keep_to_its_rate() {
    patiently(|| {
        if !can_run() {
            return;
        }
        let net = Net::new(writing(5_000));
        let _sender = must(Sender::load(&sender(&net, "a", "slow")));
        net.transfer(5 * SECOND, false, greedy);
        let packets = data(&net, true);
        let until = |end| packets.iter().filter(|p| within(&packets, p, 0.0, end)).count();
        let times = packets.iter().map(|p| (p.at_ns - packets[0].at_ns) / 1_000_000).collect::<Vec<_>>();
        println!("packets after {times:?} ms");
        // The kernel's timer may send a packet 90 ms early. Later gaps compensate for it.
        assert!((3..=8).contains(&until(1.5)), "{times:?} ms");
        assert!((14..=18).contains(&until(4.8)), "{times:?} ms");
    });
}

#[test]
fn without_the_option_in_the_handshake_forged_feedback_is_ignored() {
    patiently(|| {
        if !can_run() {
            return;
        }
        let net = Net::new(Behaviour { acks: code(100_000), ..Behaviour::default() });
        let sender = must(Sender::load(&sender(&net, "a", "forged")));
        net.transfer(SECOND, false, greedy);
        let counters = sender.counters();
        assert_eq!((counters.rated, counters.unrated, counters.adopted), (0, 1, 0), "{counters:?}");
        let measured = rate(&data(&net, true), 0.3, 0.9);
        assert!(measured > 10.0 * 100_000.0, "CUBIC grows: {measured:.0} bytes/s");
    });
}

#[test]
fn missing_feedback_leads_to_cubic_and_new_feedback_back_to_the_rate() {
    patiently(|| {
        if !can_run() {
            return;
        }
        let net = Net::new(writing(WRITTEN));
        let sender = must(Sender::load(&sender(&net, "a", "silent")));
        let mut orphaned_in_time = false;
        std::thread::scope(|scope| {
            scope.spawn(|| net.transfer(8 * SECOND, false, greedy));
            std::thread::sleep(SECOND);
            net.switch.change(|b| (b.acks, b.handshake) = (Some(0xFFFF), None));
            // After 1 s and 4 RTTs without feedback, the sender must have changed to CUBIC.
            std::thread::sleep(SECOND + Duration::from_nanos(8 * DELAY_NS));
            orphaned_in_time = sender.counters().orphaned == 1;
            std::thread::sleep(SECOND / 2);
            net.switch.change(|b| b.acks = code(WRITTEN));
        });
        let counters = sender.counters();
        assert!(orphaned_in_time, "{counters:?}");
        assert_eq!((counters.rated, counters.orphaned, counters.adopted), (1, 1, 1), "{counters:?}");
        let packets = data(&net, true);
        let alone = rate(&packets, 2.0, 2.5);
        assert!(alone > 1.3 * WRITTEN as f64, "CUBIC grows: {alone:.0} bytes/s");
        // Because of the mark, a switch that has just started can recognize the flow by any data packet.
        let orphan: Vec<_> = packets.iter().filter(|p| within(&packets, p, 2.0, 2.5)).collect();
        let marked = orphan.iter().filter(|p| [0xFD02, 0xFE02].contains(&p.first_options)).count();
        assert_eq!(marked, orphan.len(), "every data packet is marked");
        // Do not measure before 6 s, because CUBIC's queue at the switch must drain first. If CUBIC has begun a
        // recovery, the recovery must also end first, by CUBIC's rules.
        assert_near("rate after all", rate(&packets, 6.0, 7.8), WRITTEN as f64, 0.03);
    });
}

/// The first sender ends during a transfer, and the next sender takes the connection over. The next sender starts
/// either at once, while the connection still sends at its rate, or after the change to CUBIC.
#[test]
fn the_next_sender_takes_over_open_connections() {
    for pause in [Duration::ZERO, 2 * SECOND] {
        patiently(|| {
            if !can_run() {
                return;
            }
            let net = Net::new(writing(WRITTEN));
            let options = sender(&net, "a", "next");
            let first = must(Sender::load(&options));
            let mut next = None;
            std::thread::scope(|scope| {
                scope.spawn(|| net.transfer(5 * SECOND + pause, false, greedy));
                std::thread::sleep(SECOND);
                drop(first);
                std::thread::sleep(pause);
                next = Some(must(Sender::load(&options)));
            });
            let counters = next.map(|next| next.counters()).unwrap_or_default();
            let packets = data(&net, true);
            let pause = pause.as_secs_f64();
            let between = rate(&packets, 1.0, 1.3 + pause);
            println!("{between:.0} bytes/s until the next sender, {counters:?}");
            assert_eq!((counters.taken_over, counters.asked, counters.unrated), (1, 0, 0), "{counters:?}");
            if pause > 0.0 {
                assert_eq!((counters.awaiting, counters.adopted), (1, 1), "{counters:?}");
                assert!(between > 1.2 * WRITTEN as f64, "CUBIC meanwhile: {between:.0} bytes/s");
            } else {
                assert_eq!((counters.rated, counters.orphaned), (1, 0), "{counters:?}");
                assert_near("without a pause", between, WRITTEN as f64, 0.1);
            }
            // CUBIC may have left packets in the queue, so do not measure at once.
            assert_near("taken over", rate(&packets, 2.5 + pause, 4.8 + pause), WRITTEN as f64, 0.03);
            let marked = packets.iter().filter(|p| within(&packets, p, 2.5 + pause, 4.8 + pause));
            let marked = marked.filter(|p| [0xFD02, 0xFE02].contains(&p.first_options)).count();
            assert!(marked > 20, "{marked} marks");
        });
    }
}

/// A flow with a large window gets a low rate. Then all data in flight is lost, and feedback ends. If the flow
/// continued its recovery at the lowest rate, the recovery would take half a minute.
#[test]
fn missing_feedback_leads_to_cubic_during_a_long_recovery() {
    patiently(|| {
        if !can_run() {
            return;
        }
        let net =
            Net::with_delay(5 * DELAY_NS, Behaviour { handshake: Some(0xFFFF), ..Behaviour::default() });
        let sender = must(Sender::load(&sender(&net, "a", "lost")));
        let (mut adopted, mut orphaned) = (0, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| net.transfer(7 * SECOND, false, greedy));
            std::thread::sleep(2 * SECOND);
            // The code for 200 kbit/s.
            net.switch.change(|b| (b.acks, b.lose_each) = (code(25_000), 1));
            std::thread::sleep(SECOND / 8);
            net.switch.change(|b| (b.acks, b.lose_each) = (Some(0xFFFF), 0));
            adopted = sender.counters().adopted;
            let begun = switch::now_ns();
            while orphaned == 0 && switch::now_ns() - begun < 4_000_000_000 {
                std::thread::sleep(SECOND / 20);
                orphaned = sender.counters().orphaned;
            }
        });
        let counters = sender.counters();
        let packets = data(&net, true);
        let (before, after) = (rate(&packets, 1.5, 1.9), rate(&packets, 6.0, 6.8));
        println!("{before:.0}, then {after:.0} bytes/s, {counters:?}");
        assert_eq!((counters.awaiting, adopted), (1, 1), "{counters:?}");
        assert_eq!(orphaned, 1, "{counters:?}");
        assert!(after > 0.3 * before, "{before:.0}, then {after:.0} bytes/s");
    });
}

#[test]
fn losses_do_not_change_the_rate() {
    patiently(|| {
        if !can_run() {
            return;
        }
        let net = Net::new(Behaviour { lose_each: 20, ..writing(WRITTEN) });
        let sender = must(Sender::load(&sender(&net, "a", "lossy")));
        net.transfer(3 * SECOND, false, greedy);
        assert_near("rate before the loss", rate(&data(&net, true), 0.5, 2.9), WRITTEN as f64, 0.05);
        let counters = sender.counters();
        assert_eq!((counters.rated, counters.orphaned), (1, 0), "{counters:?}");
    });
}

#[test]
fn the_application_limit_is_stated_once_per_rtt() {
    patiently(|| {
        if !can_run() {
            return;
        }
        let marks = |write: fn(&mut std::net::TcpStream), name| {
            let net = Net::new(writing(WRITTEN));
            let sender = must(Sender::load(&sender(&net, "a", name)));
            net.transfer(2 * SECOND, false, write);
            let packets = data(&net, true);
            let count = |mark| packets.iter().filter(|p| p.first_options == mark).count();
            // Each segment of a super-packet carries the super-packet's mark, so more marks are on the wire than the
            // sender counts.
            (count(0xFD02), count(0xFE02), sender.counters().marked)
        };
        let (unlimited, limited, marked) = marks(greedy, "greedy");
        assert!(unlimited > 20 * limited, "greedy: {unlimited} unlimited, {limited} limited");
        // The RTT is 10 ms, plus the delay by pacing. The sender counts one mark per RTT.
        assert!((100..=200).contains(&marked), "{marked} marks in 2 s");

        let slow = |stream: &mut std::net::TcpStream| {
            let _ = stream.write(&[0; 1000]);
            std::thread::sleep(Duration::from_millis(5));
        };
        let (unlimited, limited, _) = marks(slow, "slow");
        assert!(limited > 10 * unlimited, "slow: {unlimited} unlimited, {limited} limited");
    });
}

#[test]
fn the_receiver_reserves_room_only_for_senders_that_ask() {
    patiently(|| {
        if !can_run() {
            return;
        }
        let net = Net::new(Behaviour { only_reserved: true, ..writing(WRITTEN) });
        let receiver = must(Receiver::load(&ReceiverOptions { scope: net.scope("b"), ask: false }));
        net.transfer(SECOND / 5, false, greedy);
        assert!(net.switch.seen().iter().all(|s| s.option == RateOption::Absent), "no SYN asked");

        let before = net.switch.seen().len();
        // A host may be sender and receiver in one cgroup.
        let receiver_too = must(Receiver::load(&ReceiverOptions { scope: net.scope("a"), ask: false }));
        let sender = must(Sender::load(&sender(&net, "a", "asking")));
        net.transfer(2 * SECOND, false, greedy);
        let seen = net.switch.seen().split_off(before);
        // Skip the last ACKs of the previous connection.
        let begin = seen.iter().position(Seen::is_syn).expect("a SYN");
        let seen = &seen[begin..];
        let syn_ack = seen.iter().find(|s| s.is_syn_ack()).expect("a SYN-ACK");
        assert_eq!(syn_ack.option, RateOption::Unassigned);
        let acks = || seen.iter().filter(|s| !s.forth && s.payload == 0 && s.flags & 0x17 == 0x10);
        assert!(acks().count() > 100);
        let without: Vec<_> = acks().filter(|s| s.option != RateOption::Unassigned).collect();
        let (first, counted) = (without.first(), receiver.counters());
        assert!(
            without.is_empty(),
            "{} of {} pure ACKs have no room, first {first:?}; {counted:?}",
            without.len(),
            acks().count()
        );
        let third = seen.iter().find(|s| s.forth && s.flags & 0x12 == 0x10).expect("a third packet");
        assert_eq!(third.option, RateOption::Unassigned, "so has the handshake's third packet");
        let packets: Vec<_> = seen.iter().filter(|s| s.forth && s.payload > 0).cloned().collect();
        assert_near("rate", rate(&packets, 0.5, 1.9), WRITTEN as f64, 0.03);
        assert_eq!((receiver.counters().reserving, receiver_too.counters().reserving), (1, 1));
        assert_eq!(sender.counters().rated, 1);
    });
}

#[test]
fn a_cap_limits_the_kernels_own_congestion_control() {
    patiently(|| {
        if !can_run() {
            return;
        }
        let net = Net::new(writing(WRITTEN));
        let _sender = must(Sender::load(&SenderOptions { mode: Mode::Cap, ..sender(&net, "a", "cap") }));
        net.transfer(3 * SECOND, false, greedy);
        assert_near("rate", rate(&data(&net, true), 1.5, 2.9), WRITTEN as f64, 0.05);
    });
}

#[test]
fn the_papers_padding_is_read_and_restored() {
    patiently(|| {
        if !can_run() {
            return;
        }
        let net = Net::new(Behaviour { padding: true, ..writing(WRITTEN) });
        let options = SenderOptions { format: Format::Padding, ..sender(&net, "a", "padding") };
        let sender = must(Sender::load(&options));
        net.transfer(3 * SECOND, false, greedy);
        let counters = sender.counters();
        assert_eq!((counters.awaiting, counters.adopted), (1, 1), "{counters:?}");
        assert!(counters.restored > 100, "{counters:?}");
        assert_near("rate", rate(&data(&net, true), 1.0, 2.9), WRITTEN as f64, 0.03);
    });
}

#[test]
fn iperf3_applies_the_rate_with_any_congestion_control_that_it_asks_for() {
    patiently(|| {
        if !can_run() || std::process::Command::new("iperf3").arg("-v").output().is_err() {
            eprintln!("SKIPPED: iperf3 is needed");
            return;
        }
        let net = Net::new(writing(WRITTEN));
        let options = SenderOptions { choice: Choice::All, ..sender(&net, "a", "iperf") };
        let sender = must(Sender::load(&options));
        let mut server = net
            .command("b", "iperf3", &["-s", "-1"])
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("runs");
        std::thread::sleep(SECOND / 2);
        let client =
            net.command("a", "iperf3", &["-c", "10.7.0.2", "-t", "2", "-C", "reno"]).output().expect("runs");
        let _ = server.kill();
        let _ = server.wait();
        assert!(client.status.success(), "{}", String::from_utf8_lossy(&client.stdout));
        // The control connection starts first, the data connection a moment later.
        assert_near("rate", rate(&data(&net, true), 0.8, 1.8), WRITTEN as f64, 0.03);
        assert_eq!(sender.counters().rated, 2, "{:?}", sender.counters());
    });
}

#[test]
fn invalid_options_are_named() {
    let long = SenderOptions { name: "a-name-that-is-too-long".to_owned(), ..SenderOptions::default() };
    let error = Sender::load(&long).expect_err("it cannot be");
    assert!(error.is_setting() && error.to_string().contains("15"), "{error}");
}
