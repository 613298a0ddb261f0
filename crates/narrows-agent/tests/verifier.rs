//! Compares the eBPF programs' cost for the verifier with the baselines in `bpf/*/verifier.toml`.
//!
//! The verifier's limit is a million instructions, and a small change may multiply the cost. To accept new costs, run
//! `sudo -E NARROWS_VERIFIER=write cargo test -p narrows-agent --test verifier`.
#![allow(missing_docs, reason = "a test program")]

use std::collections::BTreeMap;
use std::io::Write;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{PrintLevel, set_print};
use narrows_agent::cc::skeleton::{CcSkelBuilder, OpenCcSkel};
use narrows_agent::cc::{self, Options, Variant};
use narrows_control::rate::bdr;
use narrows_lab::{Need, can_run, skip};
use serde::Deserialize;

macro_rules! skeleton {
    ($name:ident) => {
        #[allow(warnings, clippy::all, unsafe_code, reason = "generated")]
        mod $name {
            include!(concat!(env!("OUT_DIR"), "/", stringify!($name), ".skel.rs"));
        }
    };
}
skeleton!(switch);
skeleton!(sender);
skeleton!(receiver);

/// BPF_LOG_STATS (include/linux/bpf_verifier.h): log only the costs.
const STATISTICS: u32 = 4;
/// A cost may exceed its baseline by the fraction 1 / `SHARE` of the baseline plus a fixed amount. The fixed amount
/// matters for short programs.
const SHARE: u64 = 20;
const INSTRUCTIONS: u64 = 10;
const STATES: u64 = 2;
const STACK: u64 = 16;

/// If this environment variable has the value `write`, the tests write new baselines.
const WRITE: &str = "NARROWS_VERIFIER";

/// The cost of one program.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cost {
    /// Instructions that the verifier checked, on all paths.
    instructions: u64,
    /// Largest number of states that the verifier kept at once.
    peak_states: u64,
    /// Bytes of stack of all functions together. The limit of 512 bytes applies only to a chain of calls.
    stack: u64,
}

type Costs = BTreeMap<String, Cost>;

/// A baseline, as in its file.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Baseline {
    kernel: String,
    clang: String,
    programs: Costs,
}

/// Returns the versions of kernel and compiler, which both affect the costs.
fn versions() -> (String, String) {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("the kernel's release");
    let output = Command::new("clang").arg("--version").output().expect("clang, which compiled the programs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.split_ascii_whitespace().skip_while(|word| *word != "version").nth(1);
    (release.trim().to_owned(), version.expect("clang states its version").to_owned())
}

/// Returns the costs from libbpf's debug output, which has a log for each program.
fn costs(output: &str) -> Costs {
    let mut costs = Costs::new();
    for part in output.split("prog '").skip(1) {
        let Some((name, log)) = part.split_once("': -- BEGIN PROG LOAD LOG --") else { continue };
        let after = |words: &str| {
            let rest = &log[log.find(words)? + words.len()..];
            let value = rest.split(|c: char| !c.is_ascii_digit() && c != '+').next()?;
            value.split('+').map(|number| number.parse::<u64>().ok()).sum::<Option<u64>>()
        };
        let cost = Cost {
            instructions: after("processed ").expect("processed instructions"),
            peak_states: after("peak_states ").expect("peak states"),
            stack: after("stack depth ").expect("stack depth"),
        };
        costs.insert(name.to_owned(), cost);
    }
    costs
}

/// Compares `now` with a baseline of the same kernel and compiler. Returns one line for each failure.
fn failures(now: &Costs, baseline: &Costs) -> Vec<String> {
    let mut found = Vec::new();
    for (name, cost) in now {
        let Some(old) = baseline.get(name) else {
            found.push(format!("{name}: no baseline, found {cost:?}"));
            continue;
        };
        for (what, now, old, slack) in [
            ("instructions", cost.instructions, old.instructions, INSTRUCTIONS),
            ("peak_states", cost.peak_states, old.peak_states, STATES),
            ("stack", cost.stack, old.stack, STACK),
        ] {
            let most = old + old / SHARE + slack;
            if now > most {
                found.push(format!("{name}: {what} = {now}, expected at most {most} (baseline {old})"));
            }
        }
    }
    for name in baseline.keys().filter(|name| !now.contains_key(*name)) {
        found.push(format!("{name}: has a baseline, but there is no such program"));
    }
    found
}

fn file(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf").join(folder).join("verifier.toml")
}

fn write(folder: &str, kernel: &str, clang: &str, now: &Costs) {
    let rows: String = now
        .iter()
        .map(|(name, cost)| {
            let Cost { instructions, peak_states, stack } = cost;
            format!(
                "{name} = {{ instructions = {instructions}, peak_states = {peak_states}, stack = {stack} }}\n"
            )
        })
        .collect();
    let text = format!(
        "# The cost of these programs for the verifier. tests/verifier.rs compares and writes this file.\n\
         kernel = \"{kernel}\"\nclang = \"{clang}\"\n\n[programs]\n{rows}"
    );
    std::fs::write(file(folder), text).expect("the baseline can be written");
}

fn check(folder: &str, now: &Costs) {
    let (kernel, clang) = versions();
    if std::env::var_os(WRITE).is_some_and(|value| value == "write") {
        return write(folder, &kernel, &clang, now);
    }
    let text = std::fs::read_to_string(file(folder)).expect("a baseline");
    let baseline: Baseline = toml::from_str(&text).expect("a baseline");
    let found = failures(now, &baseline.programs);
    if (&kernel, &clang) == (&baseline.kernel, &baseline.clang) {
        assert!(found.is_empty(), "{folder} (accept with {WRITE}=write):\n{}", found.join("\n"));
    } else if !found.is_empty() {
        // With another kernel or compiler, costs differ. The test has still shown that all programs can be loaded.
        let Baseline { kernel: old_kernel, clang: old_clang, .. } = baseline;
        let found = found.join("\n");
        // Rust's test harness hides `eprintln` in tests that pass.
        let _ = writeln!(
            std::io::stderr(),
            "{folder}: Linux {kernel}, clang {clang}; baseline of Linux {old_kernel}, clang {old_clang}:\n{found}"
        );
    }
}

/// libbpf's debug output, for the whole process.
static OUTPUT: Mutex<String> = Mutex::new(String::new());
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn note(_: PrintLevel, text: String) {
    OUTPUT.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
}

/// Loads a skeleton's programs after `prepare`, without attaching them. Returns their costs.
macro_rules! load {
    ($builder:expr, $prepare:expr) => {{
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let mut storage = MaybeUninit::uninit();
        let mut open = $builder.open(&mut storage).expect("the object is valid");
        let prepare = $prepare;
        prepare(&mut open);
        for mut program in open.open_object_mut().progs_mut() {
            program.set_log_level(STATISTICS);
        }
        OUTPUT.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let before = set_print(Some((PrintLevel::Debug, note)));
        let loaded = open.load().map(|_| ());
        set_print(before);
        let output = std::mem::take(&mut *OUTPUT.lock().unwrap_or_else(PoisonError::into_inner));
        assert!(loaded.is_ok(), "{loaded:?}\n{output}");
        costs(&output)
    }};
}

/// Returns whether the test can run. It needs root, BTF, clang and at least this kernel version.
fn can_load(least: (u32, u32)) -> bool {
    if !can_run(&[Need::Root, Need::Btf, Need::Tool("clang --version")]) {
        return false;
    }
    let release = versions().0;
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let is_new = (numbers.next(), numbers.next()) >= (Some(least.0), Some(least.1));
    if !is_new {
        skip(&format!("Linux {release}, the program needs {}.{}", least.0, least.1));
    }
    is_new
}

fn named(prefix: &str, costs: Costs) -> Costs {
    costs.into_iter().map(|(name, cost)| (format!("{prefix}{name}"), cost)).collect()
}

/// Loads the switch twice: with slots for flows, and without slots, as for BDR.
#[test]
fn the_switch_costs_the_verifier_no_more_than_its_baseline() {
    if !can_load((5, 12)) {
        return;
    }
    let mut costs = load!(switch::SwitchSkelBuilder::default(), |_: &mut switch::OpenSwitchSkel<'_>| {});
    let bdr = load!(switch::SwitchSkelBuilder::default(), |open: &mut switch::OpenSwitchSkel<'_>| {
        open.maps.rodata_data.as_deref_mut().expect("constants").designations_mask = bdr::CELLS - 1;
    });
    costs.extend(named("bdr-", bdr));
    check("switch", &costs);
}

#[test]
fn the_receiver_costs_the_verifier_no_more_than_its_baseline() {
    if !can_load((5, 15)) {
        return;
    }
    let costs =
        load!(receiver::ReceiverSkelBuilder::default(), |open: &mut receiver::OpenReceiverSkel<'_>| {
            let constants = open.maps.rodata_data.as_deref_mut().expect("constants");
            (constants.nrw_scoped, constants.nrw_ask) = (1, 1);
        });
    check("receiver", &costs);
}

/// Loads the sender twice: as `brf` with all programs, and in cap-only mode.
#[test]
fn the_sender_costs_the_verifier_no_more_than_its_baseline() {
    if !can_load((6, 12)) {
        return;
    }
    let mut costs = load!(sender::SenderSkelBuilder::default(), |open: &mut sender::OpenSenderSkel<'_>| {
        open.maps.rodata_data.as_deref_mut().expect("constants").nrw_scoped = 1;
    });
    let cap = load!(sender::SenderSkelBuilder::default(), |open: &mut sender::OpenSenderSkel<'_>| {
        let constants = open.maps.rodata_data.as_deref_mut().expect("constants");
        (constants.nrw_scoped, constants.nrw_cap_only) = (1, 1);
        open.maps.brf.set_autocreate(false).expect("the congestion control can be left out");
        for mut program in open.open_object_mut().progs_mut() {
            let is_used = program.name() == "nrw_sockops";
            program.set_autoload(is_used);
        }
    });
    costs.extend(named("cap-", cap));
    check("sender", &costs);
}

/// Loads the programs once for each variant, because the verifier removes the code of the other variants.
#[test]
fn the_congestion_controls_cost_the_verifier_no_more_than_their_baselines() {
    if !can_load((6, 10)) {
        return;
    }
    let mut costs = Costs::new();
    for variant in Variant::ALL {
        let found = load!(CcSkelBuilder::default(), |open: &mut OpenCcSkel<'_>| {
            cc::configure(open, variant, Options::default());
            open.progs.nrw_cong_control_two.set_autoload(false);
        });
        costs.extend(named(&format!("{}-", variant.name()), found));
    }
    check("cc", &costs);
}

const LOG: &str = "libbpf: prog 'one': -- BEGIN PROG LOAD LOG --\nverification time 9 usec\nstack depth 16+8\n\
    processed 120 insns (limit 1000000) max_states_per_insn 1 total_states 40 peak_states 30 mark_read 2\n\
    -- END PROG LOAD LOG --\n";

#[test]
fn a_log_has_the_costs_and_growth_or_a_missing_row_is_a_failure() {
    let now = costs(LOG);
    let cost = Cost { instructions: 120, peak_states: 30, stack: 24 };
    assert_eq!(now, Costs::from([("one".to_owned(), cost)]));
    let with = |cost| Costs::from([("one".to_owned(), cost)]);
    assert_eq!(failures(&now, &with(cost)), [""; 0]);
    // 120 is more than 104 + 5 + 10.
    let found = failures(&now, &with(Cost { instructions: 104, ..cost }));
    assert_eq!(found, ["one: instructions = 120, expected at most 119 (baseline 104)"]);
    assert_eq!(failures(&now, &with(Cost { instructions: 105, ..cost })), [""; 0]);
    assert_eq!(failures(&now, &with(Cost { peak_states: 26, ..cost })).len(), 1);
    assert_eq!(failures(&now, &with(Cost { stack: 0, ..cost })).len(), 1);
    assert!(failures(&now, &Costs::new())[0].starts_with("one: no baseline"));
    assert_eq!(failures(&Costs::new(), &now).len(), 1);
}
