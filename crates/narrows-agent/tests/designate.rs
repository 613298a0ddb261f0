//! Compares two kinds of reports of designated packets: reports that the eBPF program's C header computes, and reports
//! of the simulator's sender. The tests need no special kernel and no root.
#![allow(missing_docs, reason = "a test program")]

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use narrows_control::congestion::network::bdr::designator::Designator;
use narrows_control::feedback::report::OptionReport;
use narrows_control::units::{Bytes, Span, Time};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

const PACKET: Bytes = Bytes::new(1500);
/// The retransmission timeout that the C header assumes: 200 ms plus the program's RTT of 100 ms.
const RTO: Span = Span::from_millis(300);

struct Native {
    _folder: tempfile::TempDir,
    program: PathBuf,
}

impl Native {
    /// Compiles `native/designate.c`.
    fn build() -> Native {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("designate");
        let compiled = Command::new("clang")
            .args(["-O2", "-Wall", "-Werror", "-fsanitize=undefined", "-fsanitize-trap=undefined", "-o"])
            .arg(&program)
            .args(["bpf/sender", "bpf/include"].map(|folder| format!("-I{}", here.join(folder).display())))
            .arg(here.join("tests/native/designate.c"))
            .output()
            .expect("clang, which also compiles the eBPF programs");
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        Native { _folder: folder, program }
    }

    fn reports(&self, events: &str) -> Vec<OptionReport> {
        let mut child = Command::new(&self.program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        child.stdin.take().expect("a pipe").write_all(events.as_bytes()).expect("it reads");
        let ran = child.wait_with_output().expect("the program runs");
        assert!(ran.status.success());
        let printed = String::from_utf8(ran.stdout).expect("numbers");
        printed.lines().map(|line| OptionReport::from_bits(line.parse().expect("a value"))).collect()
    }
}

fn said(reports: &[OptionReport]) -> Vec<u64> {
    reports.iter().map(|report| report.lived.as_micros()).collect()
}

/// Test vector TV-D8, with a SYN at 1.0 s, designated data at 1.1 s and 1.2 s, and a FIN at 1.3 s.
#[test]
fn tv_d8_reports_add_up_to_the_lifetime() {
    let native = Native::build();
    let reports = native.reports(
        "s 1000000\nd 1100000 1 2\nd 1150000 3001 1\na 3001\nd 1200000 6001 1\nf 1300000 9001\nf 1400000 9001\n",
    );
    assert_eq!(said(&reports), [100_000, 100_000, 100_000]);
    let flags = |report: &OptionReport| (report.first, report.fin, report.segments);
    assert_eq!(
        reports.iter().map(flags).collect::<Vec<_>>(),
        [(true, false, 2), (false, false, 1), (false, true, 1)]
    );
}

#[test]
fn a_lost_packet_has_a_successor_after_two_timeouts_and_an_idle_flow_reports_a_bounded_time() {
    let native = Native::build();
    let reports =
        native.reports("s 1000000\nd 1100000 1 1\nd 1700000 2 1\nd 1700001 3 1\na 9\nd 90000000 9 1\n");
    assert_eq!(said(&reports), [100_000, 600_000, (1 << 22) - 1]);
    assert_eq!(native.reports("d 5 1 1\n")[0].lived, Span::ZERO, "no SYN was seen");
    assert_eq!(native.reports("s 5\nd 6 1 900\n")[0].segments, 255);
}

#[derive(Clone, Debug)]
enum Step {
    Send(u32),
    Ack,
}

#[test]
fn any_flow_reports_as_in_the_simulator() {
    let native = Native::build();
    let step = prop_oneof![3 => (1..5u32).prop_map(Step::Send), 1 => Just(Step::Ack)];
    let steps = proptest::collection::vec((step, 1..400_000u64), 0..60);
    let mut runner = TestRunner::new(Config::with_cases(64));
    runner
        .run(&steps, |steps| {
            let mut d = Designator::default();
            let at = |us: u64| Time::from_nanos(us * 1000);
            let (mut now, mut next, mut events, mut expected) = (1_000_000, 1u64, String::new(), Vec::new());
            d.connect(at(now), PACKET);
            d.on_established();
            writeln!(events, "s {now}").ok();
            for (step, wait) in steps {
                now += wait;
                match step {
                    Step::Send(segments) => {
                        writeln!(events, "d {now} {next} {segments}").ok();
                        expected.extend(d.on_send(at(now), next, RTO, PACKET));
                        next += u64::from(segments);
                    }
                    Step::Ack => {
                        writeln!(events, "a {next}").ok();
                        d.on_ack(at(now), false, next);
                    }
                }
            }
            writeln!(events, "f {} {next}", now + 7).ok();
            expected.extend(d.finish(at(now + 7), PACKET));
            let reports = native.reports(&events);
            let of_simulator: Vec<_> = expected
                .iter()
                .map(|r| (r.t_rep.min(Span::from_micros((1 << 22) - 1)), r.first_data, r.fin))
                .collect();
            let of_program: Vec<_> = reports.iter().map(|r| (r.lived, r.first, r.fin)).collect();
            prop_assert_eq!(of_simulator, of_program);
            Ok(())
        })
        .expect("equal reports");
}
