"""Names of version 0.2 are accepted, and one line reports each old name and its new name."""

import json
import math
from typing import Any

import narrows
import pyarrow.parquet as pq
import pytest
from narrows import retired
from narrows.backends.sim import Simulator
from narrows.cli import main
from narrows.errors import ScenarioError
from narrows.results import tables
from narrows.results.compare import compare
from narrows.results.results import Results
from narrows.scenario.load import expand, load
from narrows.scenario.model import Scenario
from narrows.studies.load import load_study
from narrows.studies.printed import printed_rows
from narrows.studies.runner import prepare

TEXT = """duration = "1s"
[topology]
kind = "dumbbell"
rate = "10mbit"
rtt = "20ms"
[[flows]]
cc = "brf"
[[rate_controllers]]
kind = "brf"
link = "bottleneck"
"""
OLD = TEXT.replace("rate_controllers", "controllers")


@pytest.fixture(autouse=True)
def _unreported() -> None:
    retired.report.cache_clear()


def said(place: object, old: str, new: str) -> str:
    return f"{place}: {old!r} is now {new!r}; the next release refuses the old name\n"


def test_a_file_with_an_old_key_is_the_same_scenario(tmp_path, capsys):
    path = tmp_path / "old.toml"
    path.write_text(OLD)
    old = load(path)
    assert capsys.readouterr().err == said(path, "controllers", "rate_controllers")
    assert old.full() == narrows.loads(TEXT, str(path)).full()
    assert "controllers" not in old.raw()
    load(path)
    assert capsys.readouterr().err == "", "once for each file"


@pytest.mark.parametrize("current", [TEXT, OLD])
def test_an_override_with_an_old_key_changes_the_new_one(capsys, current):
    key = "controllers.0.params.eta"
    given = narrows.loads(current, "my.toml", {key: 0.9})
    assert given.raw()["rate_controllers"][0]["params"] == {"eta": 0.9}
    assert said("my.toml", key, f"rate_{key}") in capsys.readouterr().err


def test_a_sweep_over_an_old_key_has_the_new_name_in_results(capsys):
    more = (
        '[sweep.vary]\n"controllers.0.params.eta" = [0.9, 0.95]\n'
        '[[sweep.case]]\nname = "none"\nset = { controllers = [{ kind = "brf", link = "bottleneck" }] }\n'
    )
    runs = expand(narrows.loads(TEXT + more, "my.toml"))
    assert [run.factors["rate_controllers.0.params.eta"] for run in runs] == [0.9, 0.95]
    err = capsys.readouterr().err
    assert said("my.toml", "controllers", "rate_controllers") in err
    assert said("my.toml", "controllers.0.params.eta", "rate_controllers.0.params.eta") in err


def test_a_sweep_of_an_override_may_have_old_keys(capsys):
    sweep = {"vary": {"controllers.0.params.eta": [0.9]}}
    assert len(expand(narrows.loads(TEXT, "my.toml", {"sweep": sweep}))) == 1
    assert capsys.readouterr().err.startswith("my.toml: 'controllers.0.params.eta' is now ")


def test_a_priority_queue_may_have_bands(capsys):
    queue = 'queue = { kind = "priority", classes = ["9p", "8p"] }\n'
    swept = (
        '[sweep.vary]\n"topology.queue.classes.0" = ["5p"]\n'
        '[[sweep.case]]\nname = "a"\n'
        'set = { "topology.queue" = { kind = "priority", classes = ["3p", "4p"] } }\n'
    )
    new = TEXT.replace("[topology]\n", "[topology]\n" + queue) + swept
    old = new.replace("classes", "bands")
    runs = [[run.scenario.full() for run in expand(narrows.loads(text, "my.toml"))] for text in (new, old)]
    assert runs[0] == runs[1]
    assert runs[0][0]["topology"]["queue"]["classes"] == ["5p", "4p"]
    assert capsys.readouterr().err == said("my.toml", "bands", "classes") + said(
        "my.toml", "topology.queue.bands.0", "topology.queue.classes.0"
    )
    with pytest.raises(ScenarioError, match=r"bands: found an unknown key"):
        narrows.loads(new.replace('"priority", ', '"priority", bands = ["9p"], ', 1))


def test_both_names_at_once_are_an_error():
    with pytest.raises(ScenarioError, match=r"^my.toml: rate_controllers: found also 'controllers', its old"):
        narrows.loads(TEXT + '[[controllers]]\nkind = "brf"\nlink = "*"', "my.toml")


def test_old_arguments_in_python_are_reported_with_the_line_that_has_them(capsys):
    data: dict[str, Any] = narrows.loads(TEXT).raw()
    data["controllers"] = data.pop("rate_controllers")
    assert Scenario(**data).raw()["rate_controllers"][0]["kind"] == "brf"
    err = capsys.readouterr().err
    assert err.startswith(f"{__file__}:") and err.count("\n") == 1
    assert err.endswith(said("", "controllers", "rate_controllers"))


class Own:
    """A class of the user."""


def test_the_simulator_takes_classes_by_the_old_argument(capsys):
    old = Simulator(controllers={"own": Own})
    err = capsys.readouterr().err
    assert err.startswith(f"{__file__}:") and err.count("\n") == 1
    assert err.endswith(said("", "Simulator(controllers=...)", "Simulator(congestion=...)"))
    assert old.congestion_controllers() == Simulator(congestion={"own": Own}).congestion_controllers()
    assert capsys.readouterr().err == ""
    with pytest.raises(TypeError, match="found both congestion and its old name controllers"):
        Simulator(congestion={}, controllers={})


@pytest.mark.parametrize(("old", "new"), retired.KINDS.items())
def test_list_prints_an_old_kind(monkeypatch, capsys, old, new):
    def printed(*arguments: str) -> tuple[str, str]:
        monkeypatch.setattr("sys.argv", ["narrows", "list", *arguments])
        with pytest.raises(SystemExit) as ended:
            main.main()
        assert ended.value.code == 0
        return capsys.readouterr()

    assert printed(old) == (printed(new)[0], said("narrows list", old, new))
    assert json.loads(printed(old, "--json")[0])[old] == json.loads(printed(new, "--json")[0])[new]


def test_results_of_an_earlier_version_are_read_and_compared(tmp_path):
    sweep = '[sweep.vary]\n"rate_controllers.0.params.eta" = [0.9, 0.95]\n'
    new = narrows.run(narrows.loads(TEXT + sweep, "my.toml"), out=tmp_path / "new")
    as_written_before(tmp_path / "new", tmp_path / "old")
    old = Results.read(tmp_path / "old")
    assert old.metadata == new.metadata
    for name in ("runs", *tables.SCHEMAS):
        known = [column for column in new.table(name).column_names if column != "delay_mean_s"]
        assert old.table(name).column_names == new.table(name).column_names
        assert str(old.table(name).select(known).to_pylist()) == str(
            new.table(name).select(known).to_pylist()
        )
    assert all(math.isnan(delay) for delay in old.table("flows")["delay_mean_s"].to_pylist())
    assert all(math.isnan(delay) for delay in old.column("flows", "delay_mean_s").to_pylist())
    assert Results.read(tmp_path / "old").column("signalling", "rate_controller").to_pylist() == ["brf"] * 2
    assert Results.read(tmp_path / "old").columns("runs") == new.columns("runs")
    found = compare(old, new)
    assert found.agrees and not found.only_a and not found.only_b


def as_written_before(source, target):
    """Copies results, and renames everything as in version 0.2."""
    target.mkdir()
    for path in source.glob("*.parquet"):
        table = pq.read_table(path)
        if path.stem == "flows":
            table = table.drop_columns(["delay_mean_s"])
        pq.write_table(
            table.rename_columns([before(name) for name in table.column_names]), target / path.name
        )
    metadata = json.loads((source / "metadata.json").read_text())
    metadata["scenario"]["controllers"] = metadata["scenario"].pop("rate_controllers")
    metadata["factors"] = [before(name) for name in metadata["factors"]]
    metadata["runs"] = [{before(key): value for key, value in run.items()} for run in metadata["runs"]]
    (target / "metadata.json").write_text(json.dumps(metadata))
    assert "controller" in pq.read_schema(target / "signalling.parquet").names


def before(name: str) -> str:
    """A column's name in version 0.2."""
    return {"rate_controller": "controller"}.get(name, name.replace("rate_controllers.", "controllers."))


STUDY = """title = "A study"
summary = "One experiment."
[[experiments]]
id = "E1"
title = "One"
scenario = "e1.toml"
factors = { controller = "case", eta = "controllers.0.params.eta" }
quick = { keep = { controller = ["brf"] } }
kernel = { omit = ["controllers"] }
[[figures]]
id = "rates"
experiment = "E1"
kind = "rates"
title = "Rates"
caption = "The controller is a case."
where = { controller = "brf" }
args = { panels = ["controller"], names = { tested = "controller" } }
"""
CLAIMS = """[[claims]]
id = "C1"
source = "ours"
says = "The controller is fair."
experiment = "E1"
measure = "jain"
a = { where = { controller = "brf" } }
expect = { above = 0.9 }
"""


def test_a_study_with_the_old_factor_is_the_same_study(tmp_path, capsys):
    studies = []
    for folder in ("old", "new"):
        (tmp_path / folder).mkdir()
        scenario = (OLD if folder == "old" else TEXT) + '[[sweep.case]]\nname = "brf"\nset = {}\n'
        (tmp_path / folder / "e1.toml").write_text(scenario)
        for name, content in (("study", STUDY), ("claims", CLAIMS)):
            current = content.replace("controllers", "rate_controllers").replace(
                "controller = ", "algorithm = "
            )
            current = current.replace('"controller"', '"algorithm"')
            (tmp_path / folder / f"{name}.toml").write_text(content if folder == "old" else current)
        studies.append(load_study(tmp_path / folder))
    old, new = (study.model_dump(exclude={"id"}) for study in studies)
    assert old == new
    assert studies[0].claims[0].a.where == {"algorithm": "brf"}
    assert studies[0].claims[0].says == "The controller is fair."
    place = tmp_path / "old"
    assert sorted(capsys.readouterr().err.splitlines(keepends=True)) == sorted(
        [
            said(place / "study.toml", "controller", "algorithm"),
            said(place / "study.toml", "controllers", "rate_controllers"),
            said(place / "study.toml", "controllers.0.params.eta", "rate_controllers.0.params.eta"),
            said(place / "claims.toml", "controller", "algorithm"),
        ]
    )
    prepared = [prepare(study, study.experiments[0], quick=True)[0].raw() for study in studies]
    assert prepared[0] == prepared[1]
    assert capsys.readouterr().err == said(place / "e1.toml", "controllers", "rate_controllers")


def test_a_printed_table_with_the_old_column_is_read(tmp_path, capsys):
    path = tmp_path / "table.csv"
    path.write_text("controller,rtt\nbbr,82.7\n")
    assert [run.factors for run in printed_rows(path)] == [{"algorithm": "bbr"}]
    assert capsys.readouterr().err == said(path, "controller", "algorithm")
