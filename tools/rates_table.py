"""Fills the table of docs/explanation/rate-controllers.md from the results of `narrows study rates`.

narrows study rates --out results/rates && python tools/rates_table.py results/rates
"""

import csv
import math
import sys
from collections import defaultdict
from pathlib import Path
from statistics import fmean

from narrows import markdown
from pages import fill

PAGE = Path(__file__).resolve().parent.parent / "docs" / "explanation" / "rate-controllers.md"
CONTROLLERS = {
    "brf": "BRF",
    "pacec": "PACEC",
    "rcp": "RCP",
    "rcp-published": "RCP, beta 0.4",
    "xcp": "XCP",
    "xcp-paced": "XCP, paced",
    "bdr": "BDR",
    "cubic": "CUBIC",
}
ROWS = (
    ("R1", "four flows, 4 s apart"),
    ("R2", "200 flows"),
    ("R3", "short flows, 60 %"),
    ("R4", "RTT 10 and 200 ms"),
    ("R5", "two bottlenecks"),
    ("R6", "with limited flows"),
    ("R7", "2 % random loss"),
    ("R8", "radio link"),
    ("R9", "capacity halved for 10 s"),
    ("R10", "four flows each way"),
    ("R11", "mesh of 20 flows"),
)
FIGURES = {
    "utilisation": ("utilisation, %", 100.0, 0),
    "sojourn": ("queue p99, ms", 1.0, 1),
    "jain_max_min": ("fairness", 1.0, 3),
    "convergence": ("newcomer has its share after, s", 1.0, 2),
    "responsiveness": ("within 10 % of the new share after the fall / the return, s", 1.0, 2),
    "allocation_error": ("error of the allotted rate, %", 1.0, 1),
    "time_above_capacity": ("time with allotted rates above the capacity, %", 1.0, 1),
    "slowdown": ("slowdown, mean / p99", 1.0, 1),
    "drop_rate": ("drops, %", 1.0, 2),
    "signalling_bytes": ("signalling, % of bytes", 1.0, 2),
    "signalling_work": ("messages / packets rewritten, 1/s", 1.0, 0),
}


def means(results: Path) -> dict[tuple[str, str, str, str], float]:
    """The mean over seeds for each experiment, measure, arguments and controller."""
    found: dict[tuple[str, str, str, str], list[float]] = defaultdict(list)
    with (results / "measures.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            controller = row["factors"].removeprefix("algorithm=")
            key = (row["experiment"], row["measure"], row["arguments"], controller)
            found[key].append(float(row["value"] or "nan"))
    return {key: fmean(values) for key, values in found.items()}


def table(results: Path) -> str:
    """The table as Markdown."""
    values = means(results)
    rows = []
    for experiment, title in ROWS:
        for measure, (name, scale, digits) in FIGURES.items():
            arguments = sorted({key[2] for key in values if key[:2] == (experiment, measure)})
            if not arguments:
                continue
            cells = []
            for controller in CONTROLLERS:
                parts = [values.get((experiment, measure, a, controller), float("nan")) for a in arguments]
                known = not all(math.isnan(part) for part in parts)
                cells.append(" / ".join(f"{scale * part:.{digits}f}" for part in parts) if known else "-")
            rows.append([title, name, *cells])
    return markdown.table(["scenario", "figure", *CONTROLLERS.values()], rows, "llr")


def main() -> None:
    """Fills the page."""
    text = fill(PAGE.read_text(encoding="utf-8"), "rates", f"{table(Path(sys.argv[1]))}\n")
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
