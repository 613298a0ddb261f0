//! Many connections open and close in all possible ways. They must leave no state behind.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use narrows_agent::clock;
use narrows_control::units::Span;
use narrows_lab::patiently;
use nix::sys::socket::{setsockopt, sockopt};

use super::agent::{Agent, counter, since};
use super::net::{Forwarding, Net};

/// Number of slots. Fewer connections exist at a time, so slots run out only if they leak.
const SLOTS: usize = 128;
const CLIENTS: usize = 24;

/// `NARROWS_CHURN_SECONDS` sets the duration (default: 15).
fn seconds() -> u64 {
    std::env::var("NARROWS_CHURN_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(15)
}

/// Answers connections at once. The first byte of a connection selects the answer.
fn serve(listener: &TcpListener, stop: &AtomicBool) {
    listener.set_nonblocking(true).expect("a socket");
    thread::scope(|scope| {
        while !stop.load(Relaxed) {
            let Ok((mut stream, _)) = listener.accept() else {
                thread::sleep(Duration::from_millis(1));
                continue;
            };
            scope.spawn(move || {
                let _ = stream.set_nonblocking(false);
                let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
                let mut first = [0];
                let Ok(1) = stream.read(&mut first) else { return };
                match first[0] {
                    // The answer is data, a FIN at once, or an RST.
                    0 => drop(stream.write_all(&[1; 20_000])),
                    1 => return,
                    2 => reset(&stream),
                    _ => {}
                }
                let mut sink = [0; 4096];
                while stream.read(&mut sink).is_ok_and(|n| n > 0) {}
            });
        }
    });
}

/// Makes the kernel send an RST when this socket is closed.
fn reset(stream: &TcpStream) {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let _ = setsockopt(&stream.as_fd(), sockopt::Linger, &linger);
}

fn connection(address: SocketAddr, n: u64) -> std::io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let way = (n % 6) as u8;
    if way == 5 {
        // The client sends no data.
        return Ok(());
    }
    stream.write_all(&[way])?;
    // If the server closes the connection at once, this write may fail.
    let _ = stream.write_all(&vec![2; [100, 3_000, 30_000][(n / 6 % 3) as usize]]);
    if way == 4 {
        reset(&stream);
        return Ok(());
    }
    let _ = stream.shutdown(Shutdown::Write);
    let mut sink = [0; 4096];
    while stream.read(&mut sink).is_ok_and(|n| n > 0) {}
    Ok(())
}

#[test]
fn a_thousand_flows_leave_no_state() {
    patiently(|| {
        let Some(net) = Net::star(Forwarding::Router, 2) else { return };
        let switch = Agent::switch_with(&net, "100mbit", &format!("max_flows = {SLOTS}"), "");
        let _sender = Agent::sender(&net, "all", &[("s1", "r")]);
        let address = net.server(5001, false);
        let (stop, stop_serving) = (AtomicBool::new(false), AtomicBool::new(false));
        let (opened, failed) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            let listener = net.inside("c", || TcpListener::bind(address).expect("a server can listen"));
            let stop_serving = &stop_serving;
            scope.spawn(move || serve(&listener, stop_serving));
            for client in 0..CLIENTS {
                let net = &net;
                let (stop, opened, failed) = (&stop, &opened, &failed);
                scope.spawn(move || {
                    net.netns(if client % 3 == 0 { "s2" } else { "s1" }).enter().expect("the namespace");
                    let mut n = client as u64;
                    while !stop.load(Relaxed) {
                        match connection(address, n) {
                            Ok(()) => opened.fetch_add(1, Relaxed),
                            Err(_) => failed.fetch_add(1, Relaxed),
                        };
                        n += 1;
                    }
                });
            }
            let begun = clock::now();
            let mut most = 0;
            while since(begun) < Span::from_secs(seconds()) || opened.load(Relaxed) < 1000 {
                most = most.max(switch.fresh().flow_count);
                assert!(since(begun) < Span::from_secs(seconds() + 60), "{} opened", opened.load(Relaxed));
                thread::sleep(Duration::from_millis(200));
            }
            stop.store(true, Relaxed);
            let ended = clock::now();
            let empty = loop {
                let status = switch.fresh();
                let unconfirmed = counter(&status.ports[0], "unconfirmed");
                if status.flow_count == 0 && unconfirmed == 0 {
                    break Some(since(ended));
                }
                if since(ended) > Span::from_secs(20) {
                    println!("left: {unconfirmed} unconfirmed, {:#?}", status.flows);
                    break None;
                }
                thread::sleep(Duration::from_millis(50));
            };
            let port = switch.port();
            println!(
                "{} connections ({} failed), at most {most} at a time; table empty after {empty:?}; refused {}, no slot {}",
                opened.load(Relaxed),
                failed.load(Relaxed),
                counter(&port, "refused"),
                counter(&port, "no_slot")
            );
            // All slots must be free again. Open one connection for each slot.
            let before = counter(&port, "no_slot");
            let all: Vec<_> = net.inside("s1", || {
                (0..SLOTS)
                    .map(|_| {
                        let mut stream = TcpStream::connect(address).expect("the server answers");
                        stream.write_all(&[3]).expect("it takes a byte");
                        // Wait, to limit the number of unconfirmed flows.
                        thread::sleep(Duration::from_millis(2));
                        stream
                    })
                    .collect()
            });
            thread::sleep(Duration::from_millis(300));
            let status = switch.fresh();
            let lacking = counter(&status.ports[0], "no_slot") - before;
            println!("{} of {SLOTS} slots came back, {lacking} were lacking", status.flow_count);
            drop(all);
            stop_serving.store(true, Relaxed);
            assert!(empty.is_some(), "the table is not empty");
            assert_eq!((status.flow_count, lacking), (SLOTS as u64, 0));
        });
    });
}
