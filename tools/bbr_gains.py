"""Writes the gains of BBR-A, BBR-B and BBR-C for each value of omega to tests/vectors/bbr-gains.csv.

`python tools/bbr_gains.py` rewrites the file. tests/python/test_docs.py fails if the file is outdated. The
formulas in `narrows.studies.computed.gains` use floating point. The file has their results. Tests compare the
results with the controllers' integer code.
"""

import math
from pathlib import Path

from narrows.studies.computed.gains import GAINS

VECTORS = Path(__file__).resolve().parent.parent / "tests/vectors/bbr-gains.csv"

HEADER = """\
# Pacing gains of BBR-A, BBR-B and BBR-C, written by tools/bbr_gains.py. omega is in 1/1024, gains are in
# 1/256: the real-valued formula at omega / 1024, rounded half up. Tests compare these values with the gains
# that the simulator and the eBPF programs compute in integers.
omega,a_up,a_down,b_up,b_down,c_up,c_down
"""


def gains(omega: int) -> tuple[int, ...]:
    """Gains in units of 1/256: up and down of BBR-A, then of BBR-B, then of BBR-C."""
    variants = [GAINS[name] for name in ("bbr-a", "bbr-b", "bbr-c")]
    real = [gain(omega / 1024) for gains in variants for gain in (gains.up, gains.down)]
    return tuple(math.floor(256 * gain + 0.5) for gain in real)


def text() -> str:
    """The file's contents."""
    rows = (",".join(map(str, (omega, *gains(omega)))) for omega in range(1, 1025))
    return HEADER + "\n".join(rows) + "\n"


if __name__ == "__main__":
    VECTORS.write_text(text(), encoding="utf-8")
