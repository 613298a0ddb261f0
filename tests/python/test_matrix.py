"""The matrix of controllers: its runs, its cells, its page."""

import csv
import json
import math
import re
from dataclasses import replace
from itertools import product

import pytest
from narrows import sweep
from narrows.cli import main as cli
from narrows.errors import NarrowsError
from narrows.matrix.cells import cells, table
from narrows.matrix.page import maps, notes, summary, write
from narrows.matrix.plan import HELP, MARKED, VARIANTS, Ask, choose, pairs, scenario
from narrows.report.kinds.heat import HARM, SHARE
from narrows.scenario.load import expand

SMALL = Ask(("bbr", "vegas", "reno"), duration="6s", seeds=2, buffers=("1bdp", "2bdp"))


@pytest.fixture
def narrows(monkeypatch, capsys):
    """Runs the command; gives exit code, output and errors."""

    def call(*args):
        monkeypatch.setattr("sys.argv", ["narrows", *args])
        with pytest.raises(SystemExit) as exit_:
            cli.main()
        out, err = capsys.readouterr()
        return exit_.value.code, out, err

    return call


@pytest.fixture(scope="module")
def measured():
    results = sweep.run(scenario(SMALL))
    return results, cells(results, SMALL)


def cell(found, buffer, controller, rival):
    (hit,) = [c for c in found if (c.buffer, c.controller, c.rival) == (buffer, controller, rival)]
    return hit


def test_each_alone_and_every_two_once_for_each_buffer_and_seed():
    runs = expand(scenario(SMALL))
    assert len(runs) == (3 + 6) * 2 * 2
    assert {len(run.scenario.flows) for run in runs} == {1, 2}
    met = {tuple(flow.cc for flow in run.scenario.flows) for run in runs}
    assert ("reno", "vegas") in met and ("vegas", "reno") not in met


def test_families_stand_together_however_they_were_named():
    known = ["bbr", "bic", "brf", "cubic", "dctcp", "reno", "vegas"]
    assert choose(known) == ("cubic", "reno", "bic", "vegas", "bbr")
    assert choose(known, ["vegas", "bbr", "cubic", "cubic"]) == ("cubic", "vegas", "bbr")


def test_what_needs_the_network_is_left_to_those_who_ask_for_it():
    known = [name for name, _ in sweep.simulator().congestion_controllers()]
    assert not set(choose(known)) & {*HELP, *MARKED}
    assert set(choose(known, marks=True)) == {
        name for name in known if name not in HELP and not name.endswith(VARIANTS)
    }
    assert set(choose(known, everyone=True)) == set(known)


def test_a_name_that_nobody_knows_is_one_line():
    with pytest.raises(NarrowsError, match="nearest is 'cubic'"):
        choose(["cubic", "bbr"], ["cubik"])


def test_a_port_has_one_rate_controller():
    ask = Ask(("cubic", "brf", "rcp"))
    assert ("rcp", "brf") not in pairs(ask) and ("brf", "rcp") not in pairs(ask)
    assert {("cubic", "brf"), ("cubic", "rcp"), ("brf", "brf")} <= set(pairs(ask))
    helped = [c for c in scenario(ask).sweep.case if "brf" in c.name]
    assert helped and all(c.set["controllers"][0]["kind"] == "brf" for c in helped)
    assert "brf and rcp" in " ".join(notes(ask))


def test_marks_begin_at_a_length_of_the_queue():
    ask = Ask(("dctcp",), rate="100mbit", rtt="40ms", mark="0.17bdp")
    plan = sweep.Resolver(sweep.simulator())(expand(scenario(ask))[0].scenario)
    (tight,) = [link for link in plan["links"] if link["name"] == "tight"]
    assert tight["queue"]["mark"] == {"kind": "threshold", "packets": round(0.17 * 100e6 / 8 * 0.04 / 1500)}
    assert notes(ask) == []
    assert "Reno" in notes(Ask(("dctcp",)))[0]


def test_shares_of_two_make_a_whole_and_harm_is_to_what_one_has_alone(measured):
    _, found = measured
    for buffer in SMALL.buffers:
        for a, b in product(("bbr", "vegas", "reno"), repeat=2):
            if a != b:
                one, other = cell(found, buffer, a, b), cell(found, buffer, b, a)
                assert one.share.mean + other.share.mean == pytest.approx(1)
                assert one.jain.mean == pytest.approx(other.jain.mean)
            alone = cell(found, buffer, a, None)
            beside = cell(found, buffer, a, b)
            # Ware et al. (2019): (solo - with) / solo, seed by seed; the seeds' solo rates hardly differ.
            expected = 1 - beside.goodput_bps.mean / alone.goodput_bps.mean
            assert beside.harm_goodput.mean == pytest.approx(expected, abs=1e-2)
            assert beside.seeds == 2
            assert math.isnan(alone.share.mean)


def test_the_table_has_a_row_per_cell_and_an_interval_per_figure(measured):
    _, found = measured
    rows = table(found)
    assert len(rows) == 2 * (3 + 9)
    assert {"harm_rtt", "harm_rtt_ci95", "starved", "ratio"} <= set(rows.column_names)


def test_the_summary_says_who_leaves_little_to_whom(measured):
    _, found = measured
    assert all(c.share.mean > 0.1 for c in found if c.buffer == "1bdp" and c.rival)
    assert "Nobody leaves less than a tenth" in " ".join(summary(found, "1bdp"))
    starved = [
        replace(c, share=replace(c.share, mean=0.05))
        if (c.buffer, c.controller, c.rival) == ("1bdp", "vegas", "bbr")
        else c
        for c in found
    ]
    (line,) = (line for line in summary(starved, "1bdp") if "leaves less than a tenth" in line)
    assert line.index("BBR") < line.index("Vegas")


def test_a_heat_map_has_a_cell_for_each_pair_and_readable_text(measured):
    _, found = measured
    (share, *_) = maps(found, SMALL, "1bdp")
    drawn = re.findall(r'"r": "([^"]+)", "c": "([^"]+)"', json.dumps(share.specs()[0]))
    assert set(drawn) == set(product(("BBR", "Vegas", "Reno"), repeat=2))
    assert SHARE.text(0.5) == "#000000" and SHARE.text(0.0) == SHARE.text(1.0) == "#ffffff"
    assert HARM.text(1.0) == "#ffffff" and HARM.text(-1.0) == "#000000"


def test_the_command_writes_tables_a_page_and_says_who_starves_whom(tmp_path, narrows):
    out = tmp_path / "m"
    arguments = ["matrix", "cubic", "vegas", "--buffer", "1bdp", "--seeds", "1", "--duration", "5s"]
    arguments += ["--out", str(out), "--no-figures"]
    code, printed, _ = narrows(*arguments)
    assert code == 0
    assert "1bdp:" in printed and "CUBIC" in printed
    with (out / "matrix.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 2 + 4
    assert "Harm to the goodput" in (out / "report.html").read_text()
    before = (out / "matrix.csv").read_bytes()
    code, again, error = narrows(*arguments, "--reuse")
    assert code == 0 and again == printed and "runs" not in error
    assert (out / "matrix.csv").read_bytes() == before


def test_a_wrong_unit_is_one_line(tmp_path, narrows):
    code, _, error = narrows("matrix", "--rate", "fast", "--out", str(tmp_path))
    assert code == 2 and error.count("\n") == 1 and "--rate" in error


def test_all_with_help_runs(tmp_path):
    ask = Ask(("cubic", *HELP), duration="3s", seeds=1, buffers=("1bdp",))
    found = cells(sweep.run(scenario(ask)), ask)
    assert all(c.goodput_bps.mean > 0 for c in found)
    write(found, sweep.run(scenario(Ask(("cubic",), duration="1s", seeds=1))), ask, tmp_path, files=False)
