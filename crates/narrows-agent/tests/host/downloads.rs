//! Tests in which the server sends the data. Its SYN-ACK asks for feedback, and the third packet of the handshake
//! carries the first rate (BRF-14).

use std::process::Stdio;
use std::time::Duration;

use narrows_agent::host::{Choice, Receiver, ReceiverOptions, Sender, SenderOptions};
use narrows_control::rate::RateOption;
use narrows_lab::patiently;

use super::net::{Net, can_run, greedy};
use super::switch::{Behaviour, Seen, must};
use super::{SECOND, WRITTEN, assert_near, code, data, rate, sender, writing};

/// Makes host A ask for feedback, so that servers apply rates to its downloads.
fn asking(net: &Net) -> Receiver {
    must(Receiver::load(&ReceiverOptions { scope: net.scope("a"), ask: true }))
}

fn syn_ack(net: &Net) -> Seen {
    net.switch.seen().into_iter().find(Seen::is_syn_ack).expect("a SYN-ACK")
}

#[test]
fn a_sending_server_gets_its_first_rate_with_the_third_packet() {
    patiently(|| {
        if !can_run() {
            return;
        }
        let net = Net::new(writing(WRITTEN));
        let server = must(Sender::load(&sender(&net, "b", "server")));
        let _client = asking(&net);
        net.transfer(2 * SECOND, true, greedy);
        assert_eq!(syn_ack(&net).option, RateOption::Unassigned, "it asks");
        let packets = data(&net, false);
        assert_near("rate", rate(&packets, 0.5, 1.9), WRITTEN as f64, 0.03);
        // The kernel does not pace the first ten packets of a server's connection either.
        let first = rate(&packets, 0.0, 0.1);
        assert!(first < 1.05 * WRITTEN as f64 + 10.0 * 1500.0 / 0.1, "first 100 ms: {first:.0} bytes/s");
        assert_eq!(server.counters().rated, 1, "{:?}", server.counters());
    });
}

#[test]
fn a_server_that_listened_before_also_asks() {
    patiently(|| {
        if !can_run() {
            return;
        }
        let net = Net::new(writing(WRITTEN));
        let listener = net.listen();
        let server = must(Sender::load(&sender(&net, "b", "older")));
        let _client = asking(&net);
        net.transfer_at(listener, 2 * SECOND, true, greedy);
        assert_eq!(syn_ack(&net).option, RateOption::Unassigned, "it asks");
        assert_near("rate", rate(&data(&net, false), 0.5, 1.9), WRITTEN as f64, 0.03);
        assert_eq!(server.counters().rated, 1, "{:?}", server.counters());
    });
}

/// The server began to listen before the agent was started. iperf3 uses a control connection and a data connection.
#[test]
fn reversed_iperf3_applies_the_rate() {
    patiently(|| {
        if !can_run() || std::process::Command::new("iperf3").arg("-v").output().is_err() {
            eprintln!("SKIPPED: iperf3 is needed");
            return;
        }
        let net = Net::new(writing(WRITTEN));
        let mut iperf3 =
            net.command("b", "iperf3", &["-s", "-1"]).stdout(Stdio::null()).spawn().expect("iperf3 runs");
        std::thread::sleep(SECOND / 2);
        let server =
            must(Sender::load(&SenderOptions { choice: Choice::All, ..sender(&net, "b", "reversed") }));
        let _client = asking(&net);
        let client = net.command("a", "iperf3", &["-c", "10.7.0.2", "-R", "-t", "2"]).output().expect("runs");
        let _ = iperf3.kill();
        let _ = iperf3.wait();
        assert!(client.status.success(), "{}", String::from_utf8_lossy(&client.stdout));
        // The control connection starts first, the data connection a moment later.
        assert_near("rate", rate(&data(&net, false), 0.8, 1.8), WRITTEN as f64, 0.03);
        assert_eq!(server.counters().rated, 2, "{:?}", server.counters());
    });
}

/// With SYN cookies, the kernel saves no SYN. In this case, the rate in the third packet of the handshake is enough for
/// the server.
#[test]
fn a_server_without_a_saved_syn_is_rated_by_the_third_packet() {
    patiently(|| {
        if !can_run() {
            return;
        }
        let net = Net::new(writing(WRITTEN));
        let always = net.command("b", "sh", &["-c", "echo 2 > /proc/sys/net/ipv4/tcp_syncookies"]).status();
        assert!(always.is_ok_and(|status| status.success()));
        let server = must(Sender::load(&sender(&net, "b", "cookie")));
        let _client = asking(&net);
        net.transfer(SECOND, true, greedy);
        assert_eq!(syn_ack(&net).option, RateOption::Unassigned, "it asks");
        assert_near("rate", rate(&data(&net, false), 0.3, 0.9), WRITTEN as f64, 0.05);
        assert_eq!(server.counters().rated, 1, "{:?}", server.counters());
    });
}

/// A sender and a receiver share a cgroup. Neither program clears the callback flags of the other program, whichever
/// program was loaded first. The SYN-ACK asks only once, and the server's ACKs still have room for a rate.
#[test]
fn a_server_can_be_sender_and_receiver() {
    patiently(|| {
        if !can_run() {
            return;
        }
        for receiver_first in [true, false] {
            let net = Net::new(writing(WRITTEN));
            let receive = || must(Receiver::load(&ReceiverOptions { scope: net.scope("b"), ask: false }));
            let early = receiver_first.then(receive);
            let server = must(Sender::load(&sender(&net, "b", "both")));
            let receiver = early.unwrap_or_else(receive);
            let _client = asking(&net);
            net.transfer(SECOND, true, greedy);
            assert_eq!(syn_ack(&net).option, RateOption::Unassigned);
            assert_eq!(server.counters().rated, 1, "{:?}", server.counters());
            assert_near("rate", rate(&data(&net, false), 0.3, 0.9), WRITTEN as f64, 0.05);

            let before = net.switch.seen().len();
            net.transfer(SECOND / 2, false, greedy);
            let seen = net.switch.seen().split_off(before);
            // Begin at the SYN-ACK, because a last ACK of the previous connection may follow the SYN. This ACK belongs
            // to no socket.
            let begin = seen.iter().position(Seen::is_syn_ack).expect("a SYN-ACK");
            let acks =
                || seen[begin..].iter().filter(|s| !s.forth && s.payload == 0 && s.flags & 0x17 == 0x10);
            assert!(acks().count() > 20, "{}", acks().count());
            let without = acks().filter(|s| s.option != RateOption::Unassigned).count();
            assert_eq!((without, receiver.counters().reserving), (0, 2), "of {} ACKs", acks().count());
        }
    });
}

#[test]
fn a_client_that_does_not_ask_gets_cubic() {
    patiently(|| {
        if !can_run() {
            return;
        }
        let net = Net::new(Behaviour::default());
        let server = must(Sender::load(&sender(&net, "b", "stock")));
        std::thread::scope(|scope| {
            scope.spawn(|| net.transfer(SECOND, true, greedy));
            // The switch begins to write rates after the handshake. The client has not asked for feedback, so the
            // server ignores these rates.
            std::thread::sleep(SECOND / 5);
            net.switch.change(|b| b.acks = code(100_000));
        });
        assert_eq!(syn_ack(&net).option, RateOption::Absent);
        let counters = server.counters();
        assert_eq!((counters.rated, counters.unrated, counters.adopted), (0, 1, 0), "{counters:?}");
        let measured = rate(&data(&net, false), 0.3, 0.9);
        assert!(measured > 10.0 * 100_000.0, "CUBIC grows: {measured:.0} bytes/s");
    });
}

/// A server must not ask for feedback if it will not use `brf`. With `Choice::Chosen`, it uses `brf` only if its
/// program chooses `brf`.
#[test]
fn a_server_that_will_not_apply_rates_does_not_ask() {
    patiently(|| {
        if !can_run() {
            return;
        }
        let net = Net::new(Behaviour::default());
        let options = SenderOptions { choice: Choice::Chosen, ..sender(&net, "b", "chosen") };
        let server = must(Sender::load(&options));
        let _client = asking(&net);
        net.transfer(Duration::from_millis(200), true, greedy);
        assert_eq!(syn_ack(&net).option, RateOption::Absent);
        let counters = server.counters();
        assert_eq!((counters.rated, counters.awaiting), (0, 0), "{counters:?}");
    });
}
