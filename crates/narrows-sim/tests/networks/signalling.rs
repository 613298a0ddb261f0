//! Tests the counters that measure the cost of feedback (MET-82).

use crate::common::*;
use narrows_sim::Results;
use narrows_sim::plan::SdnPlan;
use serde_json::json;

fn u(r: &Results, column: &str) -> u64 {
    r.u("signalling", column, 0)
}

fn of_flow(r: &Results, column: &str) -> u64 {
    r.u("flows", column, 0)
}

#[test]
fn there_is_no_signalling_without_a_controller() {
    let mut plan = path(mbit(20), ms(20), fifo(packets(100)), 5);
    plan.flows.push(sized("cubic", 1_000_000));
    let r = run(&plan);
    assert_eq!((r.rows("signalling"), of_flow(&r, "signal_bytes")), (0, 0));
    // `sent_bytes` includes 52 bytes of headers for each segment, and the ACKs.
    assert!(of_flow(&r, "sent_bytes") > 1_000_000 + 52 * of_flow(&r, "sent_packets"));
}

/// RCP-4: the SYN, each data segment and the ACK of the receiver's FIN carry 12 bytes for RCP. The port lowers the rate
/// in all these packets.
#[test]
fn rcp_rewrites_every_packet_and_its_bytes_are_counted() {
    let mut plan = dumbbell("rcp", 40, 1_000, 5);
    plan.flows.push(sized("rcp", 1_436_000));
    let r = run(&plan);
    assert_eq!(of_flow(&r, "sent_packets"), 1_000);
    assert_eq!(u(&r, "rewritten_data"), 1_002);
    assert_eq!((u(&r, "rewritten_acks"), u(&r, "messages"), u(&r, "notices")), (0, 0, 0));
    let echoes = of_flow(&r, "signal_bytes") - 12 * 1_002;
    // `plain` is the payload and the headers without RCP's bytes. The SYN and the SYN-ACK have headers of 60 bytes. The
    // other packets have headers of 52 bytes: 1,000 segments, the ACK of the receiver's FIN, the receiver's packets
    // with an echo (except the SYN-ACK), and the third packet of the handshake, which carries no echo.
    let acks = echoes / 8;
    let plain = 1_436_000 + 52 * (1_000 + 1 + (acks - 1) + 1) + 60 + 60;
    assert_eq!(echoes % 8, 0);
    assert_eq!(of_flow(&r, "sent_bytes"), plain + of_flow(&r, "signal_bytes"));
}

/// BDR-6: only one packet per window carries the 16 bytes of BDR. The port therefore rewrites fewer packets than a port
/// with RCP.
#[test]
fn bdr_rewrites_one_packet_of_a_window() {
    let mut plan = dumbbell("bdr", 40, 1_000, 10);
    plan.flows.push(bulk("bdr"));
    let r = run(&plan);
    let windows = 10.0 / 0.04;
    let rewritten = u(&r, "rewritten_data") as f64;
    assert!((0.5 * windows..1.5 * windows).contains(&rewritten), "{rewritten}");
    assert!(of_flow(&r, "signal_bytes") <= (16 + 8) * u(&r, "rewritten_data") + 24);
}

/// BRF-9: every ACK carries the option, and the port writes a rate into one ACK per RTT.
#[test]
fn brf_writes_into_acks() {
    let mut plan = dumbbell("brf", 40, 1_000, 10);
    plan.flows.push(bulk("brf"));
    let r = run(&plan);
    let (acks, bytes) = (u(&r, "rewritten_acks"), of_flow(&r, "signal_bytes"));
    assert_eq!((u(&r, "rewritten_data"), u(&r, "notices"), bytes % 8), (0, 0, 0));
    let rtts = 10.0 / 0.04;
    assert!((0.8 * rtts..1.2 * rtts).contains(&(acks as f64)), "{acks}");
    assert!(bytes > 8 * 100 * acks, "{bytes} bytes, {acks} rates");
}

/// PAC-21, PAC-22: the port sends reports, the controller answers with rates, and the rates are sent to the
/// sources. If the control period is twice as long, the number of messages is half as large.
#[test]
fn pacec_sends_messages() {
    let with_sample = |sample: u64| {
        let mut plan = dumbbell("pacec", 40, 1_000, 10);
        plan.rate_controllers[0].params = values(json!({ "sample": ms(sample).as_nanos() }));
        plan.sdn = Some(SdnPlan { delay: ms(5), poll: None, outages: Vec::new() });
        plan.flows.push(group("pacec", 4, 1_000));
        let r = run(&plan);
        assert_eq!((u(&r, "rewritten_data"), u(&r, "rewritten_acks")), (0, 4), "a rate in each SYN-ACK");
        // PAC-5: the SYN, the SYN-ACK and one segment per RTT carry the option. No other ACK carries the option.
        for flow in 0..4 {
            let (bytes, rtts) = (r.u("flows", "signal_bytes", flow), 10_000 / 40);
            assert!((16..=8 * (2 + rtts)).contains(&bytes), "{bytes}");
        }
        (u(&r, "messages") as f64, u(&r, "notices"))
    };
    let ((often, notices), (seldom, _)) = (with_sample(10), with_sample(20));
    assert!((1.8..2.2).contains(&(often / seldom)), "{often} and {seldom}");
    assert!(notices >= 4, "{notices}");
}
