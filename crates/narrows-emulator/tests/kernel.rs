//! Tests that run plans on the kernel's network stacks. The tests need root (see `lab`).

#![cfg(target_os = "linux")]
#![allow(missing_docs, reason = "tests")]

mod lab;

use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use lab::{Lab, flow, place};
use narrows_emulator::{Outcome, emulate};
use narrows_lab::patiently;
use narrows_sim::Table;
use serde_json::json;

fn table<'o>(outcome: &'o Outcome, name: &str) -> &'o Table {
    outcome.tables.iter().find(|t| t.name == name).expect("a table")
}

fn verdict(outcome: &Outcome) -> serde_json::Value {
    serde_json::to_value(&outcome.soundness).expect("a verdict")
}

#[test]
fn a_bulk_flow_fills_a_link_of_100_mbit_and_is_measured() {
    patiently(|| {
        let Some(lab) = Lab::new() else { return };
        lab.tc("a", "qdisc add dev x root handle 1: htb default 10");
        lab.tc(
            "a",
            "class add dev x parent 1: classid 1:10 htb rate 100mbit burst 6000 cburst 6000 quantum 1514",
        );
        lab.tc("a", "qdisc add dev x parent 1:10 pfifo limit 1000");
        lab.no_offloads("a");
        let spec = lab.spec(3.0, |s| {
            s["plan"]["flows"] = json!([flow("bulk", json!({"kind": "bulk"}))]);
            s["flows"] = json!([place(0, 5001)]);
            s["queues"] = json!([{"link": 0, "netns": lab.netns("a"), "interface": "x", "handle": "1:10"}]);
        });
        let outcome = emulate(&spec, &AtomicBool::new(false)).unwrap();
        eprintln!("{:#}", verdict(&outcome));
        let flows = table(&outcome, "flows");
        let get = |column: &str| flows.f64(column).unwrap()[0];
        eprintln!(
            "goodput {:.2} Mbit/s, srtt {:.2} ms, min RTT {:.3} ms",
            get("goodput_bps") / 1e6,
            get("rtt_mean_s") * 1e3,
            get("min_rtt_s") * 1e3
        );
        let samples = table(&outcome, "flow_samples");
        eprintln!("cwnd {:?}", samples.u64("cwnd").unwrap());
        eprintln!("retransmits {:?}", samples.u64("retransmits").unwrap().last());
        assert!((90e6..97e6).contains(&get("goodput_bps")), "{}", get("goodput_bps"));
        assert!(get("min_rtt_s") >= 0.020, "faster than the delay");
        assert!(get("rtt_p50_s") >= 0.020 && get("rtt_max_s") < 0.5);
        assert!(get("end_s").is_nan() && get("fct_s").is_nan());
        assert!(flows.u64("sent_packets").unwrap()[0] > 10_000);

        let samples = table(&outcome, "flow_samples");
        assert!(samples.rows() >= 25, "{} rows", samples.rows());
        assert!(samples.u64("cwnd").unwrap().iter().any(|&c| c > 100));
        let send: Vec<f64> = samples.f64("send_bps").unwrap().to_vec();
        assert!(send.iter().any(|&r| (90e6..110e6).contains(&r)), "{send:?}");

        let links = table(&outcome, "links");
        let throughput = links.f64("throughput_bps").unwrap();
        assert!((95e6..101e6).contains(&throughput[0]), "{throughput:?}");
        assert!(throughput[1] > 0.0 && throughput[1] < 10e6, "ACKs");
        let queue = table(&outcome, "link_samples");
        let waiting = queue.u64("link").unwrap().iter().zip(queue.u64("queue_packets").unwrap());
        assert!(
            waiting.filter(|(l, _)| **l == 0).any(|(_, q)| *q > 0),
            "the queue is long, although the kernel limits a sender's own queue (TCP small queues)"
        );
    });
}

#[test]
fn all_tables_have_the_columns_of_the_simulator() {
    patiently(|| {
        let Some(lab) = Lab::new() else { return };
        let spec = lab.spec(1.0, |s| {
            s["plan"]["flows"] = json!([flow("one", json!({"kind": "size", "bytes": 100_000}))]);
            s["flows"] = json!([place(0, 5001)]);
        });
        let simulated = narrows_sim::run(&spec.plan, &AtomicBool::new(false)).unwrap();
        let emulated = emulate(&spec, &AtomicBool::new(false)).unwrap();
        let shape = |tables: &[Table]| -> Vec<(&str, Vec<&str>)> {
            tables.iter().map(|t| (t.name, t.columns.iter().map(|c| c.0).collect())).collect()
        };
        assert_eq!(shape(&emulated.tables), shape(&simulated.tables));
        // The flow of 100 kB takes about the same time in the emulator and in the simulator: a handshake and four round
        // trips of 20 ms.
        let flows = table(&emulated, "flows");
        let get = |column: &str| flows.f64(column).unwrap()[0];
        assert_eq!(flows.u64("delivered_bytes").unwrap()[0], 100_000);
        assert!(get("fct_recv_s") >= 0.060 && get("fct_recv_s") <= get("fct_s"), "{}", get("fct_recv_s"));
        assert!(get("fct_s") >= get("ideal_fct_s") && get("end_s") > get("start_s"));
    });
}

#[test]
fn ping_takes_at_least_both_delays() {
    patiently(|| {
        let Some(lab) = Lab::new() else { return };
        let spec = lab.spec(3.0, |_| {});
        let relay = std::thread::spawn(move || emulate(&spec, &AtomicBool::new(false)).unwrap());
        std::thread::sleep(std::time::Duration::from_millis(200));
        let out = lab.program("a", "ping -c 60 -i 0.03 10.77.0.2").output().unwrap();
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let outcome = relay.join().unwrap();
        let mut times: Vec<f64> =
            text.lines().filter_map(|l| l.split_once("time=")?.1.split(' ').next()?.parse().ok()).collect();
        assert!(!times.is_empty(), "ping: {text}");
        // The first ping also waits for ARP, and ARP packets have the same delays as pings.
        times.remove(0);
        times.sort_by(f64::total_cmp);
        let median = times[times.len() / 2];
        eprintln!(
            "RTT of 2 x 10 ms: median {median} ms, minimum {}, maximum {}",
            times[0],
            times[times.len() - 1]
        );
        eprintln!("{:#}", verdict(&outcome)["relays"]);
        assert!(times[0] >= 20.0, "{times:?}");
        assert!(median < 25.0, "{median}");
        assert_eq!(times.len(), 59, "a perfect link lost housekeeping or data");
    });
}

#[test]
fn the_share_of_lost_packets_is_the_configured_one() {
    patiently(|| {
        let Some(lab) = Lab::new() else { return };
        let p = 0.1;
        let spec = lab.spec(3.0, |s| {
            s["plan"]["links"][0]["loss"] = json!([[0, {"kind": "bernoulli", "p": p}]]);
            s["plan"]["flows"] = json!([{"name": "udp", "from": 0, "to": 1, "start": 0, "stop": 2_500_000_000u64,
                "app": {"kind": "bulk"}, "transport": {"kind": "udp", "rate": 400_000, "packet": 200}}]);
            s["flows"] = json!([place(0, 6001)]);
        });
        let outcome = emulate(&spec, &AtomicBool::new(false)).unwrap();
        let flows = table(&outcome, "flows");
        let sent = flows.u64("sent_packets").unwrap()[0] as f64;
        let arrived = flows.u64("delivered_bytes").unwrap()[0] as f64 / (200.0 - 28.0);
        assert_eq!(sent, 5000.0, "400 kB/s of 200 bytes for 2.5 s");
        let lost = sent - arrived;
        eprintln!("{lost} of {sent} lost");
        let deviation = (sent * p * (1.0 - p)).sqrt();
        assert!((lost - sent * p).abs() < 5.0 * deviation, "{lost}");
        assert_eq!(table(&outcome, "links").u64("random_losses").unwrap()[0] as f64, lost);
    });
}

#[test]
fn the_relay_serves_a_trace_and_keeps_its_queue() {
    patiently(|| {
        let Some(lab) = Lab::new() else { return };
        lab.no_offloads("a");
        let spec = lab.spec(3.0, |s| {
            // Rates of 20 and 5 Mbit/s alternate every half second. HTB does not support a changing rate, so the relay
            // implements this rate.
            s["plan"]["links"][0]["rate"] =
                json!({"kind": "steps", "steps": [[0, 2_500_000], [500_000_000, 625_000]], "period": 1_000_000_000});
            s["plan"]["links"][0]["queue"] = json!({"kind": "fifo", "limit": {"packets": 60}});
            s["relays"][0]["model"] = json!("rate");
            s["plan"]["flows"] = json!([flow("bulk", json!({"kind": "bulk"}))]);
            s["flows"] = json!([place(0, 5001)]);
        });
        let outcome = emulate(&spec, &AtomicBool::new(false)).unwrap();
        let links = table(&outcome, "links");
        let get = |column: &str| links.f64(column).unwrap()[0];
        eprintln!("utilisation {:.3}, sojourn {:.1} ms", get("utilisation"), get("sojourn_mean_s") * 1e3);
        assert!((0.8..=1.01).contains(&get("utilisation")), "{}", get("utilisation"));
        // After the warm-up at 0.6 s, the link has 5 Mbit/s for 0.4 s. Afterwards, the link has two whole periods, with
        // 12.5 Mbit/s on average.
        assert_eq!(get("capacity_bps"), 11.25e6);
        assert!(links.u64("dropped_packets").unwrap()[0] > 0, "a short queue and cubic");
        // The transmission of 60 packets of 1500 bytes at 5 Mbit/s takes 144 ms.
        assert!(get("sojourn_max_s") <= 0.145 && get("sojourn_max_s") > 0.05, "{}", get("sojourn_max_s"));
        let samples = table(&outcome, "link_samples");
        assert!(samples.u64("queue_packets").unwrap().iter().all(|&q| q <= 60));
    });
}

#[test]
fn an_application_stops_in_time_and_a_limited_one_keeps_its_rate() {
    patiently(|| {
        let Some(lab) = Lab::new() else { return };
        let spec = lab.spec(3.0, |s| {
            let mut stopped = flow("stopped", json!({"kind": "bulk"}));
            stopped["stop"] = json!(1_500_000_000u64);
            let limited = flow("limited", json!({"kind": "limited", "rate": 250_000}));
            let mut group = flow("group", json!({"kind": "size", "bytes": 20_000}));
            group["count"] = json!(5);
            group["spacing"] = json!(100_000_000);
            s["plan"]["links"][0]["rate"] = json!({"kind": "steps", "steps": [[0, 12_500_000]]});
            s["relays"][0]["model"] = json!("rate");
            s["plan"]["flows"] = json!([stopped, limited, group]);
            s["flows"] = json!([place(0, 5001), place(1, 5002), place(2, 5003)]);
        });
        lab.no_offloads("a");
        let outcome = emulate(&spec, &AtomicBool::new(false)).unwrap();
        let flows = table(&outcome, "flows");
        let names = flows.str("name").unwrap();
        let at = |name: &str| names.iter().position(|n| n == name).unwrap();
        let get = |name: &str, column: &str| flows.f64(column).unwrap()[at(name)];
        let end = get("stopped", "end_s");
        assert!((1.5..2.2).contains(&end), "only data written before the stop is delivered: {end}");
        let limited = get("limited", "goodput_bps");
        assert!((1.9e6..2.1e6).contains(&limited), "{limited}");
        for i in 0..5 {
            let name = format!("group.{i}");
            assert!(get(&name, "fct_s") > 0.02, "{name}");
            assert_eq!(flows.u64("delivered_bytes").unwrap()[at(&name)], 20_000);
        }
    });
}

#[test]
fn the_connection_of_another_program_is_found_and_measured() {
    patiently(|| {
        let Some(lab) = Lab::new() else { return };
        lab.tc("a", "qdisc add dev x root tbf rate 20mbit burst 6000 limit 100000");
        let spec = lab.spec(3.0, |s| {
            s["plan"]["flows"] = json!([flow("theirs", json!({"kind": "bulk"}))]);
            s["flows"] = json!([place(0, 5301)]);
            s["flows"][0]["external"] = json!(true);
        });
        lab.no_offloads("a");
        let quiet = |mut program: Command| program.stdout(Stdio::null()).spawn().expect("iperf3 runs");
        let mut server = quiet(lab.program("b", "iperf3 -s -1 -p 5301"));
        std::thread::sleep(std::time::Duration::from_millis(200));
        let mut client = quiet(lab.program("a", "iperf3 -c 10.77.0.2 -p 5301 -t 5"));
        let outcome = emulate(&spec, &AtomicBool::new(false)).unwrap();
        for program in [&mut client, &mut server] {
            let _ = program.kill();
            let _ = program.wait();
        }
        let flows = table(&outcome, "flows");
        let goodput = flows.f64("goodput_bps").unwrap()[0];
        assert!((15e6..21e6).contains(&goodput), "{goodput}: {:#}", verdict(&outcome));
        assert!(flows.f64("min_rtt_s").unwrap()[0] >= 0.020);
    });
}

#[test]
fn a_cancelled_run_ends_and_a_wrong_spec_gives_a_one_line_error() {
    let Some(lab) = Lab::new() else { return };
    let spec = lab.spec(60.0, |s| {
        s["plan"]["flows"] = json!([flow("bulk", json!({"kind": "bulk"}))]);
        s["flows"] = json!([place(0, 5001)]);
    });
    let cancel = std::sync::Arc::new(AtomicBool::new(false));
    let flag = cancel.clone();
    let run = std::thread::spawn(move || emulate(&spec, &flag));
    std::thread::sleep(std::time::Duration::from_millis(300));
    cancel.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(matches!(run.join().unwrap(), Err(narrows_emulator::Error::Cancelled)));

    let wrong = lab.spec(1.0, |s| s["relays"][0]["from"]["interface"] = json!("nosuch"));
    let error = emulate(&wrong, &AtomicBool::new(false)).unwrap_err().to_string();
    assert!(error.contains("nosuch") && !error.contains('\n'), "{error}");
    let wrong = lab.spec(1.0, |s| {
        s["plan"]["flows"] = json!([flow("bulk", json!({"kind": "bulk"}))]);
        s["flows"] = json!([place(0, 5001)]);
        s["plan"]["flows"][0]["transport"]["cc"] = json!("nosuchcc");
    });
    let outcome = emulate(&wrong, &AtomicBool::new(false)).unwrap();
    assert!(!outcome.soundness.sound);
    assert!(
        outcome.soundness.reasons.iter().any(|r| r.contains("nosuchcc")),
        "{:?}",
        outcome.soundness.reasons
    );
}
