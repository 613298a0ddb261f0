"""The emulator reads the state of BBR in eBPF with the units and numbers of the C header."""

import re
from pathlib import Path

CRATES = Path(__file__).parents[2] / "crates"
HEADER = (CRATES / "narrows-agent/bpf/cc/state.h").read_text(encoding="utf-8")
READER = (CRATES / "narrows-emulator/src/sample/ebpf.rs").read_text(encoding="utf-8")


def number(pattern, text):
    return int(re.search(pattern, text)[1])


def test_units():
    bandwidth = number(r"BW_UNIT: f64 = \(1u64 << (\d+)\)", READER)
    assert bandwidth == number(r"#define NRW_BW_SHIFT\s+(\d+)", HEADER)
    gain = number(r"GAIN_UNIT: f64 = (\d+)\.0", READER)
    assert gain == 1 << number(r"#define NRW_UNIT_SHIFT\s+(\d+)", HEADER)


def test_phases():
    modes = re.search(r"enum nrw_mode \{ (.*?) \}", HEADER)[1].split(", ")
    assert modes == ["NRW_STARTUP", "NRW_DRAIN", "NRW_PROBE_BW", "NRW_PROBE_RTT"]
    assert number(r"PROBE_BW: u32 = (\d+)", READER) == modes.index("NRW_PROBE_BW")
