//! Random changes of valid scenarios give a plan or an error of one line, and never a panic.

use narrows_scenario::{Memory, Scenario, Settings, Value, expand, parse_override, resolve};
use proptest::prelude::*;

/// Scenarios that use most keys of the format.
const VALID: [&str; 5] = [
    r#"
duration = "5s"
warmup = "1s"
receive_buffer = "auto"
[topology]
kind = "dumbbell"
rate = "10mbit"
rtts = ["20ms", "40ms"]
queue = { kind = "red", min = 3.0, ecn = true }
loss = { model = "gilbert-elliott", p = 0.01, r = "50%" }
jitter = { max = "1ms", reorder = true }
policer = { rate = "5mbit", burst = "15kB" }
at = [{ time = "1s", rate = "5mbit" }, { time = "2s", delay = "9ms", loss = "1%" }]
[[flows]]
cc = { name = "cubic", beta = 0.5 }
size = "1MB"
[[flows]]
transport = "udp"
rate = "1mbit"
packet = 500
[probes]
links = "all"
acks = ["cubic"]
[capture]
hosts = ["s1"]
[sweep]
seeds = 2
[sweep.vary]
"topology.rate" = ["10mbit", "20mbit"]
[[sweep.case]]
name = "slow"
set = { "flows.cubic.cc.beta" = 0.7 }
[[expect]]
measure = "goodput"
at_least = "1mbit"
"#,
    r#"
ecmp = true
[topology]
name = "fat-tree"
k = 4
rate = "1gbit"
[[flows]]
pattern = "permutation"
cc = "dctcp"
ecn = true
[[rate_controllers]]
kind = "brf"
link = "*"
shape = [{ time = "0s", rate = "9mbit" }]
params = { mode = "literal" }
[sdn]
outages = [["1s", "2s"]]
"#,
    r#"
[topology]
name = "abilene"
scale = 0.001
[[flows]]
demands = "sndlib"
scale = 0.001
[[flows]]
name = "more"
from = "STTLng"
to = ["NYCMng", "*"]
arrivals = { rate = 5.0, size = { distribution = "web-search" } }
"#,
    r#"
[[links]]
between = ["a", "b"]
trace = { file = "trace.csv", format = "csv", time = "t", rate = "r" }
queue = { kind = "threshold", mark = "0.2bdp" }
back = { rate = "1mbit", queue = "1bdp" }
[[links]]
name = "last"
between = ["b", "c"]
rate = "5mbit"
delay = "3ms"
queue = { kind = "htb", classes = [{ rate = "1mbit", ceil = "5mbit" }, { rate = "1mbit" }] }
[[flows]]
from = "a"
to = "c"
class = 1
transport = "quinn"
requests = { size = "10kB", parallel = 3, think = "10ms" }
"#,
    r#"
[topology]
kind = "parking-lot"
hops = 3
delay = "5ms"
trace = { file = "trace.mahi" }
[[flows]]
app = { rate = "1mbit", on = "1s", off = "1s" }
[[flows]]
count = 3
spacing = "1s"
return_path = ["d1", "r2", "r1", "s1"]
[[flows]]
program = { server = "iperf3 -s", client = "iperf3 -c {server}" }
[kernel]
tool = "own"
"#,
];

/// Pieces of text that a change inserts.
const PIECES: [&str; 32] = [
    "0",
    "1",
    "-1",
    "1e99",
    "99999999999999999999",
    "0x10",
    "inf",
    "nan",
    "1979-05-27",
    "true",
    "\"\"",
    "\"x\"",
    "\"1ns\"",
    "\"1bit\"",
    "\"1e15bit\"",
    "\"infinite\"",
    "\"*\"",
    "[]",
    "[[]]",
    "{}",
    "{ a = { b = 1 } }",
    "\n[x]\n",
    "\n[[flows]]\n",
    "\nseed = 1\n",
    "=",
    ".",
    "\"",
    "'",
    "é",
    "\u{200b}",
    "\0",
    "%",
];

fn files() -> Memory {
    Memory::default().with("trace.csv", "t,r\n0,1\n1,5\n2,3\n").with("trace.mahi", "1\n5\n9\n30\n")
}

/// Makes a plan, or returns the error.
fn try_all(text: &str, overrides: &[(String, Value)]) -> Result<usize, narrows_scenario::Error> {
    let files = files();
    let scenario = Scenario::parse(text, "x.toml", overrides)?;
    let again = Scenario::from_table(scenario.raw(), "x.toml")?;
    assert_eq!(again.full(), scenario.full(), "a printed scenario is the same scenario");
    let runs = expand(&scenario, None)?;
    let settings = Settings::simulator(&files);
    runs.iter().take(3).try_for_each(|run| resolve(&run.scenario(), &settings).map(|_| ()))?;
    Ok(runs.len())
}

fn check(text: &str, overrides: &[(String, Value)]) {
    if let Err(error) = try_all(text, overrides) {
        let line = error.to_string();
        assert!(
            !line.contains(char::is_control) && line.starts_with("x.toml: ") || line.starts_with("trace."),
            "{line:?} for {text}"
        );
    }
}

#[test]
fn the_valid_scenarios_have_plans() {
    for text in VALID {
        let runs = try_all(text, &[]);
        assert!(runs.is_ok(), "{:?}", runs.err().map(|error| error.to_string()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn changed_text_never_panics(
        base in 0..VALID.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0usize..12, 0..PIECES.len()), 1..4),
    ) {
        let mut letters: Vec<char> = VALID[base].chars().collect();
        for (at, removed, piece) in changes {
            let at = at.index(letters.len());
            let end = (at + removed).min(letters.len());
            letters.splice(at..end, PIECES[piece].chars());
        }
        check(&letters.into_iter().collect::<String>(), &[]);
    }

    #[test]
    fn changed_values_never_panic(
        base in 0..VALID.len(),
        line in any::<prop::sample::Index>(),
        piece in 0..PIECES.len(),
    ) {
        let mut lines: Vec<String> = VALID[base].lines().map(str::to_owned).collect();
        let line = line.index(lines.len());
        if let Some((key, _)) = lines[line].clone().split_once('=') {
            lines[line] = format!("{key}= {}", PIECES[piece]);
        }
        check(&lines.join("\n"), &[]);
    }

    #[test]
    fn overrides_never_panic(base in 0..VALID.len(), key in "[a-z0-9_.*\"']{0,20}", piece in 0..PIECES.len()) {
        if let Ok(change) = parse_override(&format!("{key}={}", PIECES[piece])) {
            check(VALID[base], &[change]);
        }
    }

    #[test]
    fn any_text_never_panics(text in "\\PC{0,80}") {
        check(&text, &[]);
    }
}
