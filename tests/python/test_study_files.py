"""A mistake in a study's files gives one line with file, key, and the values found and expected."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from narrows.errors import NarrowsError
from narrows.studies import find_study, load_study

CLAIMS, STUDY = "claims.toml", "study.toml"


@pytest.mark.parametrize(
    ("file", "right", "wrong", "said"),
    [
        (CLAIMS, "measure = ", "mesure = ", "claims.C1.mesure: found an unknown key; nearest is 'measure'"),
        (CLAIMS, "expect = { about", "expect = { abov", "claims.C1.expect.abov: found an unknown key"),
        (
            CLAIMS,
            '= "gain"',
            '= "gian"',
            "claims.C1.compare: found 'gian', expected one of value,",
        ),
        (
            CLAIMS,
            '= "gain"',
            '= "value"',
            "claims.C1: expected `b` with difference, ratio and gain",
        ),
        (CLAIMS, '= "goodput"', '= ["goodput"]', "claims.C1.measure: found a list of 1, expected a string"),
        (CLAIMS, 'id = "C2"', 'id = "C1"', "claims: found 2 entries with the id 'C1', expected one"),
        (CLAIMS, '= "E1"', '= "E21"', "claims.C1.experiment: found 'E21', expected one of E1, E2,"),
        (CLAIMS, 'figure = "', 'figure = "x', "claims.C1.figure: found 'xthroughput-loss', expected one of"),
        (
            STUDY,
            'arg = "bin_s"',
            'arg = "bins"',
            "experiments.E5.free.bin.arg: found 'bins', expected",
        ),
        (STUDY, "ours = 0.1,", "ours = 0.3,", "experiments.E5.free.bin.ours: found 0.3, expected one of 0.1"),
        (STUDY, 'id = "start of CUBIC"', 'id = "start"', "experiments.E3.free: found 2 entries with the id"),
        (STUDY, '"flows.0.start"', '"flows.0.start", arg = "x"', "free.start: expected exactly one of key,"),
        (STUDY, 'free = "start"', 'free = "strat"', "figures.shares-start.free: found 'strat', expected one"),
        (
            STUDY,
            'printed = "brf-',
            'printed = "brff-',
            "readings.0.printed: found 'brff-literal', expected",
        ),
        (
            STUDY,
            "[[readings]]",
            '[[readings]]\nrepaired = "bbr"\nprinted = "brf-literal"\nlabel = "as in 2019"\n[[readings]]',
            "readings.1.label: found 'as printed', expected one of as in 2019",
        ),
        (STUDY, 'repaired = "brf"', 'repaired = "bfr"', "readings.0.repaired: found 'bfr', expected one of"),
        (STUDY, '"e1.toml"', '"e0.toml"', "experiments.E1.scenario: found 'e0.toml', expected a file in the"),
        (STUDY, 'scenario = "e1.toml"', "", "experiments.E1: expected scenario, printed, computed,"),
        (STUDY, "seeds = 2", "seeds = 0", "experiments.E1.quick.seeds: found 0, expected at least 1"),
        (STUDY, 'title = "', 'title = 3 # "', "title: found 3, expected a string in quotes"),
        (STUDY, "[paper]", "[paper", "found no valid TOML: "),
    ],
)
def test_a_mistake_is_one_line_with_file_and_key(
    file: str, right: str, wrong: str, said: str, tmp_path: Path
) -> None:
    folder = tmp_path / "study"
    shutil.copytree(find_study("brf"), folder)
    text = (folder / file).read_text()
    assert right in text
    (folder / file).write_text(text.replace(right, wrong, 1))
    with pytest.raises(NarrowsError) as error:
        load_study(folder)
    message = str(error.value)
    assert message.startswith(f"{folder / file}: ") and said in message
    assert "\n" not in message and "permitted" not in message and "Value error" not in message


def test_a_misspelt_row_of_a_papers_table_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    shutil.copytree(find_study("pacec"), folder)
    text = (folder / STUDY).read_text()
    (folder / STUDY).write_text(text.replace("rcp = 46.3", "rpc = 46.3", 1))
    said = r"study\.toml: tables\.table-2\.columns\.0\.paper: found 'rpc', .*'rcp'"
    with pytest.raises(NarrowsError, match=said):
        load_study(folder)


def test_a_mistake_in_a_model_is_found_before_anything_runs(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    shutil.copytree(find_study("bbr-gain"), folder)
    text = (folder / STUDY).read_text()
    (folder / STUDY).write_text(text.replace('model = "gain-fluid"', 'model = "gain-fluids"', 1))
    said = r"study\.toml: experiments\.M1\.computed\.model: found 'gain-fluids', .*nearest is 'gain-fluid'"
    with pytest.raises(NarrowsError, match=said):
        load_study(folder)


def test_a_free_factor_is_one_that_claims_name(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    shutil.copytree(find_study("pacec"), folder)
    text = (folder / STUDY).read_text()
    (folder / STUDY).write_text(text.replace('factor = "buffer"', 'factor = "bufer"', 1))
    with pytest.raises(NarrowsError, match=r"free\.buffer\.factor: found 'bufer', .*nearest is 'buffer'"):
        load_study(folder)
