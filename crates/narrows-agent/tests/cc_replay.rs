//! Compares the congestion control algorithms of bpf/cc with the simulator's implementations, event by event. The tests
//! need no special kernel and no root.
//!
//! A flow in the simulator records its events and its controller's decisions. The eBPF source, compiled as a normal
//! program (`native/cc.c`), gets the same events. Before each event, both implementations get the same window and rate.
//! A difference therefore shows only at the event that causes it.
#![allow(missing_docs, reason = "a test program")]

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use narrows_agent::cc::{self, Variant};
use narrows_control::catalogue::{Catalogue, Entry, Family};
use narrows_control::congestion::bbr::bbq::Bbq;
use narrows_control::congestion::bbr::bounded::Bounded;
use narrows_control::congestion::bbr::bounded::params::Params as BoundedParams;
use narrows_control::congestion::bbr::v1::Bbr;
use narrows_control::congestion::bbr::{pacing, v2, v3};
use narrows_control::congestion::{
    Ack, Congestion, Connection, Controller, Lost, Recovery, Signal, State, Window,
};
use narrows_control::units::{Span, Time};
use narrows_sim::plan::Plan;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

/// The events of the recorded flow, and its controller's decision after each event.
static RECORD: Mutex<Vec<(String, Decision)>> = Mutex::new(Vec::new());
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The controller's state after an event. Bounds that are not set are infinite.
#[derive(Clone, Debug, Default)]
struct Decision {
    cwnd: f64,
    /// L3 bytes/s.
    pacing: f64,
    phase: (u32, u32),
    inflight_hi: f64,
    inflight_lo: f64,
    /// L3 bytes/s.
    bw: f64,
    min_rtt_us: f64,
}

/// A controller whose events are recorded.
struct Recorder {
    inner: Box<dyn Controller>,
    delivered: u64,
    lost: u64,
    in_flight: u32,
}

impl Recorder {
    /// Returns the beginning of an event's line: the state before the event.
    fn head(&self, kind: char, now: Time, window: &Window) -> String {
        let pacing = window.pacing_rate.map_or(0, |rate| rate.as_bytes_per_sec());
        let now = micros(now.since(Time::ZERO));
        let Recorder { delivered, lost, in_flight, .. } = self;
        format!("{kind} {now} {delivered} {lost} {in_flight} {} {} {pacing}", window.cwnd, window.ssthresh)
    }

    fn note(&self, line: String, window: &Window) {
        let mut decision = Decision {
            cwnd: f64::from(window.cwnd),
            pacing: window.pacing_rate.map_or(0.0, |rate| rate.as_f64()),
            inflight_hi: f64::INFINITY,
            inflight_lo: f64::INFINITY,
            ..Decision::default()
        };
        self.inner.trace(&mut |name, value| match name {
            "phase" => decision.phase.0 = value as u32,
            "step" => decision.phase.1 = value as u32,
            "inflight_longterm" if value.is_finite() => decision.inflight_hi = value,
            "inflight_shortterm" if value.is_finite() => decision.inflight_lo = value,
            "bw" => decision.bw = value,
            "min_rtt" => decision.min_rtt_us = value * 1e6,
            _ => {}
        });
        RECORD.lock().unwrap_or_else(PoisonError::into_inner).push((line, decision));
    }
}

fn micros(span: Span) -> u64 {
    span.as_nanos() / 1000
}

fn number(state: State) -> u32 {
    match state {
        State::Open => 0,
        State::Disorder => 1,
        State::Cwr => 2,
        State::Recovery => 3,
        State::Loss => 4,
    }
}

impl Controller for Recorder {
    fn name(&self) -> &'static str {
        "recorded"
    }

    fn on_established(&mut self, connection: &Connection, window: &mut Window) {
        let mut random = Pcg32::seed_from_u64(connection.seed);
        let draws: Vec<String> = (0..200).map(|_| random.next_u32().to_string()).collect();
        let rtt = connection.rtt.map_or(-1, |rtt| micros(rtt).cast_signed());
        let head = self.head('B', connection.now, window);
        let line = format!("D {}\n{head} {} {rtt}", draws.join(" "), connection.packet_bytes);
        self.inner.on_established(connection, window);
        self.note(line, window);
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) {
        (self.delivered, self.in_flight) = (ack.delivered, ack.in_flight);
        assert_eq!(self.lost, ack.total_lost);
        let mut line = self.head('A', ack.now, window);
        let rtt = ack.rtt.map_or(-1, |rtt| micros(rtt).cast_signed());
        let (rate, flag) = (&ack.rate, |flag: bool| u32::from(flag));
        let _ = write!(
            line,
            " {} {} {} {rtt} {} {} {} {} {} {} {} {} {}",
            ack.acked,
            ack.lost,
            ack.prior_in_flight,
            micros(ack.srtt),
            rate.delivered,
            micros(rate.interval),
            rate.prior_delivered,
            flag(rate.app_limited),
            number(ack.state),
            flag(ack.cwnd_limited),
            flag(ack.delayed),
            flag(ack.ece),
        );
        self.inner.on_ack(ack, window);
        self.note(line, window);
    }

    fn on_lost(&mut self, lost: &Lost, window: &Window) {
        self.lost += 1;
        self.inner.on_lost(lost, window);
    }

    fn on_congestion(&mut self, event: &Congestion, window: &mut Window) {
        let kind = match event.signal {
            Signal::Timeout => 'T',
            Signal::Ecn => 'E',
            _ => 'C',
        };
        let line = self.head(kind, event.now, window);
        self.inner.on_congestion(event, window);
        self.note(line, window);
    }

    fn on_recovered(&mut self, now: Time, window: &mut Window) {
        self.inner.on_recovered(now, window);
    }

    fn on_undo(&mut self, now: Time, window: &mut Window) {
        let line = self.head('U', now, window);
        self.inner.on_undo(now, window);
        self.note(line, window);
    }

    fn on_restart(&mut self, now: Time, idle: Span, app_limited: bool, window: &mut Window) {
        let line = self.head('R', now, window);
        self.inner.on_restart(now, idle, app_limited, window);
        if app_limited {
            self.note(line, window);
        }
    }

    fn recovery(&self) -> Recovery {
        self.inner.recovery()
    }
}

fn recorded(inner: impl Controller + 'static) -> Box<dyn Controller> {
    Box::new(Recorder { inner: Box::new(inner), delivered: 0, lost: 0, in_flight: 0 })
}

/// Returns the parameters with the kernel's burst size, which the eBPF programs also use.
fn with_kernel_bursts(params: BoundedParams) -> BoundedParams {
    BoundedParams { pacing: pacing::Params::default(), ..params }
}

/// Builds the recorded controller of a variant.
fn entry(variant: Variant) -> Entry {
    let build: fn(&narrows_control::parameter::Values) -> Box<dyn Controller> = match variant {
        Variant::V3 => |_| recorded(Bounded::new(with_kernel_bursts(v3::params()))),
        Variant::V2 => |_| recorded(Bounded::new(with_kernel_bursts(v2::params()))),
        Variant::Bbq => |_| recorded(Bbr::with_cycle(Bbq::default())),
        _ => |_| recorded(Bbr::default()),
    };
    Entry::new("recorded", Family::Model, "a recorded controller", build)
}

/// A flow with an RTT of 20 ms. It shares a bottleneck of 50 Mbit/s with `others` CUBIC flows.
#[derive(Copy, Clone)]
struct Case {
    name: &'static str,
    /// Maximum length of the queue in packets.
    queue: u64,
    loss: f64,
    /// Packets are marked if the queue is longer than this number of packets; 0: never.
    mark: u64,
    /// Largest random delay of a packet, so that packets overtake each other; 0: none.
    reorder_ms: u64,
    others: usize,
    /// Largest share of events after which a value may differ.
    most: f64,
}

const SECONDS: u64 = 25;

fn plan(case: &Case) -> Plan {
    let rate = 50_000_000 / 8;
    let is_ecn = case.mark > 0;
    let mark = match case.mark {
        0 => String::new(),
        packets => format!(r#", "mark": {{ "kind": "threshold", "packets": {packets} }}"#),
    };
    let jitter = match case.reorder_ms {
        0 => String::new(),
        millis => format!(r#", "jitter": {{ "max": {}, "reorder": true }}"#, millis * 1_000_000),
    };
    let loss = if case.loss > 0.0 {
        format!(r#", "loss": [[0, {{ "kind": "bernoulli", "p": {} }}]]"#, case.loss)
    } else {
        String::new()
    };
    let flow = |name: &str, cc: &str, start: u64| {
        format!(
            r#"{{ "name": "{name}", "from": 0, "to": 1, "start": {start},
                 "transport": {{ "kind": "tcp", "cc": "{cc}", "ecn": {is_ecn} }}, "app": {{ "kind": "bulk" }} }}"#
        )
    };
    let mut flows = vec![flow("recorded", "recorded", 0)];
    flows.extend((0..case.others).map(|n| flow(&format!("other{n}"), "cubic", 3_000_000_000)));
    let text = format!(
        r#"{{
        "seed": 1, "duration": {}, "nodes": ["a", "b"],
        "links": [
            {{ "name": "a->b", "from": 0, "to": 1, "rate": {{ "kind": "steps", "steps": [[0, {rate}]] }},
               "delay": [[0, 10000000]], "queue": {{ "kind": "fifo", "limit": {{ "packets": {} }}{mark} }}{loss}{jitter} }},
            {{ "name": "b->a", "from": 1, "to": 0, "rate": {{ "kind": "steps", "steps": [[0, 1250000000]] }},
               "delay": [[0, 10000000]], "queue": {{ "kind": "fifo" }} }}
        ],
        "flows": [{}] }}"#,
        SECONDS * 1_000_000_000,
        case.queue,
        flows.join(", ")
    );
    serde_json::from_str(&text).expect("a plan")
}

/// Compiles the programs with the constants of a variant.
fn compile(variant: Variant, folder: &Path) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = folder.join("cc");
    // A few replacements turn Rust's debug output of a structure into a C initializer.
    let text = format!("{:?}", cc::params(variant)).replace("nrw_params", "").replace("nrw_gain_pair", "");
    let fields = text.split(", __pad").next().unwrap_or_default().trim_end_matches([' ', '}']);
    let params = format!("{fields} }}").replace("{ ", "{ .").replace(", ", ", .").replace(": ", " = ");
    let compiled = Command::new("clang")
        .args(["-O2", "-Wall", "-Werror", "-Wno-unused-function", "-Wno-unknown-attributes", "-o"])
        .arg(&program)
        .arg(format!("-DPARAMS={params}"))
        .arg(format!("-DVARIANT={}", variant as u32))
        .args(
            ["../narrows-fuzz/native", "bpf/cc", "bpf/include"]
                .map(|path| format!("-I{}", here.join(path).display())),
        )
        .arg(here.join("tests/native/cc.c"))
        .output()
        .expect("clang, which also compiles the eBPF programs");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    program
}

/// Runs the case in the simulator, and passes its events to the programs. Returns both decisions for each event.
fn replay(variant: Variant, case: &Case, program: &Path) -> Vec<(String, Decision, Decision)> {
    RECORD.lock().unwrap_or_else(PoisonError::into_inner).clear();
    let mut catalogue = Catalogue::built_in().clone();
    catalogue.add(entry(variant)).expect("a new name");
    narrows_sim::run_with(&plan(case), &AtomicBool::new(false), &catalogue).expect("a run");
    let record = std::mem::take(&mut *RECORD.lock().unwrap_or_else(PoisonError::into_inner));

    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut input = child.stdin.take().expect("a pipe");
    let lines: Vec<String> = record.iter().map(|(line, _)| line.clone() + "\n").collect();
    let writing =
        std::thread::spawn(move || lines.iter().try_for_each(|line| input.write_all(line.as_bytes())));
    let output = child.wait_with_output().expect("the program ends");
    writing.join().expect("a thread").expect("all events are read");
    assert!(output.status.success(), "an event was not understood");
    let printed = String::from_utf8(output.stdout).expect("numbers");
    let decisions: Vec<Decision> = printed.lines().map(|line| decision(variant, line)).collect();
    assert_eq!(decisions.len(), record.len());
    record.into_iter().zip(decisions).map(|((line, simulated), ebpf)| (line, simulated, ebpf)).collect()
}

fn decision(variant: Variant, line: &str) -> Decision {
    let fields: Vec<f64> = line.split(' ').map(|field| field.parse().expect("a number")).collect();
    let &[cwnd, pacing, mode, step, hi, lo, bw, min_rtt_us] = &fields[..] else { panic!("{line}") };
    let bound = |value: f64| if value == f64::from(u32::MAX) { f64::INFINITY } else { value };
    let has_steps = mode == 2.0 && matches!(variant, Variant::V2 | Variant::V3);
    let (hi, lo) = if matches!(variant, Variant::V2 | Variant::V3) {
        (bound(hi), bound(lo))
    } else {
        (f64::INFINITY, f64::INFINITY)
    };
    Decision {
        cwnd,
        pacing,
        phase: (mode as u32, if has_steps { step as u32 } else { 0 }),
        inflight_hi: hi,
        inflight_lo: lo,
        bw,
        min_rtt_us,
    }
}

/// Shares of events after which the implementations differ.
#[derive(Debug, Default)]
struct Differences {
    events: usize,
    phase: f64,
    /// Windows differ by more than two packets and by more than 2 %.
    cwnd: f64,
    inflight_hi: f64,
    inflight_lo: f64,
    /// Pacing rates differ by more than 1 %.
    pacing: f64,
    bw: f64,
    min_rtt: f64,
}

fn differences(pairs: &[(String, Decision, Decision)]) -> Differences {
    let share = |differ: &dyn Fn(&Decision, &Decision) -> bool| {
        let count = pairs.iter().filter(|(_, simulated, ebpf)| differ(simulated, ebpf)).count();
        count as f64 / pairs.len() as f64
    };
    // The difference of two infinite bounds is NaN, so two infinite bounds count as equal. A finite and an infinite
    // bound differ by infinity.
    let volumes = |a: f64, b: f64| (a - b).abs() > f64::max(2.0, 0.02 * a.min(b));
    let rates = |a: f64, b: f64| (a - b).abs() > f64::max(2000.0, 0.01 * a);
    Differences {
        events: pairs.len(),
        phase: share(&|a, b| a.phase != b.phase),
        cwnd: share(&|a, b| volumes(a.cwnd, b.cwnd)),
        inflight_hi: share(&|a, b| volumes(a.inflight_hi, b.inflight_hi)),
        inflight_lo: share(&|a, b| volumes(a.inflight_lo, b.inflight_lo)),
        pacing: share(&|a, b| rates(a.pacing, b.pacing)),
        bw: share(&|a, b| rates(a.bw, b.bw)),
        min_rtt: share(&|a, b| (a.min_rtt_us - b.min_rtt_us).abs() > 1.0),
    }
}

/// For each packet, both implementations record how many packets were in flight when it was sent. With losses, these
/// numbers differ by a few packets (bpf/cc/history.h). The difference can change the time at which a probe ends.
const CASES: [Case; 7] = [
    Case { name: "a queue of a BDP", ..PLAIN },
    Case { name: "a short queue", queue: 20, ..PLAIN },
    Case { name: "a long queue beside CUBIC", queue: 300, others: 1, most: 0.15, ..PLAIN },
    Case { name: "1 % of loss", loss: 0.01, most: 0.03, ..PLAIN },
    Case { name: "a short queue beside three flows", queue: 30, others: 3, most: 0.15, ..PLAIN },
    Case { name: "marks beside CUBIC", mark: 20, others: 1, most: 0.1, ..PLAIN },
    Case { name: "packets that overtake each other", reorder_ms: 4, most: 0.15, ..PLAIN },
];
const PLAIN: Case = Case { name: "", queue: 83, loss: 0.0, mark: 0, reorder_ms: 0, others: 0, most: 0.0 };

fn compare(variant: Variant) -> Vec<(Case, Differences)> {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(variant, folder.path());
    let compare = |case: &Case| {
        let pairs = replay(variant, case, &program);
        let found = differences(&pairs);
        println!("{} {}: {found:.4?}", variant.name(), case.name);
        (*case, found)
    };
    CASES.iter().map(compare).collect()
}

/// Checks in each case that no value differs in a larger share of events than the case accepts.
fn check(variant: Variant) {
    for (Case { name, most, .. }, found) in compare(variant) {
        assert!(found.events > 20_000, "{name}: {found:?}");
        let Differences { phase, cwnd, inflight_hi, inflight_lo, pacing, bw, min_rtt, .. } = found;
        for share in [phase, cwnd, inflight_hi, inflight_lo, pacing, bw, min_rtt] {
            assert!(share <= most, "{} {name}: {found:?}", variant.name());
        }
    }
}

#[test]
fn v3_decides_as_the_simulator() {
    check(Variant::V3);
}

#[test]
fn v2_decides_as_the_simulator() {
    check(Variant::V2);
}

/// To decide when a probe ends, the kernel's BBR estimates the number of packets in the network. The simulator's BBR
/// uses the number of packets in flight, so gains differ at some ACKs. With marks and spurious losses, the policer
/// detectors of the kernel's BBR and of the simulator's BBR give different results.
#[test]
fn v1_and_bbq_have_the_model_and_the_phases_of_the_simulator() {
    for variant in [Variant::V1, Variant::Bbq] {
        for (Case { name, mark, reorder_ms, .. }, found) in compare(variant) {
            let Differences { phase, cwnd, pacing, bw, min_rtt, .. } = found;
            let most_bw = if mark + reorder_ms > 0 { 0.1 } else { 0.0 };
            assert_eq!((phase, min_rtt), (0.0, 0.0), "{} {name}: {found:?}", variant.name());
            assert!(cwnd < 0.05 && pacing < 0.2 && bw <= most_bw, "{} {name}: {found:?}", variant.name());
        }
    }
}
