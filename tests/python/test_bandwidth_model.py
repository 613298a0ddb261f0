"""BRF's bandwidth models: training, file format, and use in simulations (BRF-31)."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import narrows
import numpy as np
import pyarrow as pa
import pytest
from narrows import bandwidth_model, training
from narrows.errors import NarrowsError

VECTORS = Path(__file__).parents[1] / "vectors/bandwidth-model.json"
FORMS = "off, average, or the file of a bandwidth model (at most 256 KiB)"
SCENARIO = """
duration = "4s"
[topology]
kind = "dumbbell"
rate = "100mbit"
rtt = "20ms"
[[flows]]
cc = "brf"
[[flows]]
name = "short"
cc = "brf"
service = 443
start = "2s"
size = "500kB"
[sdn]
[[rate_controllers]]
kind = "brf"
link = "bottleneck"
params = { predictor = PREDICTOR }
"""


def model(bps, service=443):
    """A model that limits one service, and no other service."""
    split = ["service", service - 0.5, 1, 2]
    upper = ["service", service + 0.5, 3, 4]
    tree = [split, 25.0, upper, math.log(bps), 25.0]
    return {"format": training.FORMAT, "version": 1, "base": 0, "unlimited_bps": 1e10, "trees": [tree]}


def run(predictor):
    return narrows.run(narrows.loads(SCENARIO.replace("PREDICTOR", json.dumps(predictor))))


def fct_s(results):
    return {row["name"]: row["fct_s"] for row in results.flows.to_pylist()}["short"]


def records(count=400):
    """Records of flows of two services on a link of 100 Mbit/s. One service uses about 1 Mbit/s."""
    rows = []
    for i in range(count):
        service, limited = (1883, 1) if i % 2 else (80, 0)
        use = 1e6 * (0.8 + 0.4 * (i % 17) / 16) if limited else 98e6
        rows.append(
            {
                "use_bps": use,
                "limited": float(limited),
                "source_high": 0.0,
                "source_low": float(i % 5),
                "destination_high": 0.0,
                "destination_low": 9.0,
                "ip_version": 4.0,
                "service": float(service),
                "protocol": 6.0,
                "second_of_day": float(i),
            }
        )
    return pa.Table.from_pylist(rows)


def predicted_bps(model, features):
    """The prediction, as the file format defines it."""
    total = model["base"]
    for tree in model["trees"]:
        at = 0
        while isinstance(tree[at], list):
            name, threshold, low, high = tree[at]
            at = low if features[name] <= threshold else high
        total += tree[at]
    return math.exp(total)


def test_a_model_limits_the_first_rate_of_its_service():
    free, limited = fct_s(run("off")), fct_s(run(json.dumps(model(2e6))))
    other = fct_s(run(json.dumps(model(2e6, service=80))))
    assert limited > free + 0.02
    assert other == free, "no limit for other services"


def test_a_file_is_read_from_the_folder_of_the_scenario(tmp_path):
    (tmp_path / "model.json").write_text(json.dumps(model(2e6)))
    (tmp_path / "my.toml").write_text(SCENARIO.replace("PREDICTOR", '"model.json"'))
    from_file = narrows.run(narrows.load(tmp_path / "my.toml"))
    assert fct_s(from_file) == fct_s(run(json.dumps(model(2e6))))


@pytest.mark.parametrize(
    ("predictor", "said"),
    [
        ("none.json", f"found 'none.json', expected {FORMS} (No such"),
        (json.dumps({**model(1e6), "version": 2}), "found 2 at version of the model, expected 1"),
        (
            json.dumps({**model(1e6), "trees": [[["sprt", 1, 1, 2], 0, 0]]}),
            "at trees.0.0.0 of the model, expected a feature",
        ),
    ],
)
def test_errors_name_the_key(predictor, said):
    with pytest.raises(NarrowsError) as error:
        run(predictor)
    line = str(error.value)
    assert "rate_controllers.0.params.predictor: " in line
    assert said in line
    assert "\n" not in line


def test_python_and_rust_have_the_same_format():
    def read(tree, count=1):
        return run(json.dumps({**model(1e6), "trees": [tree] * count}))

    with pytest.raises(
        NarrowsError, match="expected a feature: " + ", ".join(bandwidth_model.FEATURES) + "$"
    ):
        read([["sport", 1, 1, 2], 0, 0])
    read([0.0], bandwidth_model.TREES_MAX)
    with pytest.raises(NarrowsError, match="trees"):
        read([0.0], bandwidth_model.TREES_MAX + 1)

    def chain(depth):
        return [part for i in range(depth) for part in (["service", i, 2 * i + 1, 2 * i + 2], 0.0)] + [0.0]

    read(chain(bandwidth_model.DEPTH_MAX))
    assert FORMS.endswith(f"({bandwidth_model.LENGTH_MAX >> 10} KiB)".replace("(", "(at most "))
    with pytest.raises(NarrowsError, match="trees"):
        read(chain(bandwidth_model.DEPTH_MAX + 1))


def test_records_have_the_use_of_limited_flows_and_the_rate_of_the_link():
    text = SCENARIO.replace("PREDICTOR", '"off"').replace('"4s"', '"8s"')
    app = 'app = { rate = "4mbit" }\nstop = "5s"'
    results = narrows.run(narrows.loads(text.replace('size = "500kB"', app)))
    rows = results.flow_records.to_pylist()
    assert [row["service"] for row in rows] == [443]
    assert rows[0]["limited"] == 1
    assert rows[0]["use_bps"] == pytest.approx(4e6 * 1500 / 1448, rel=0.1)
    assert rows[0]["start_s"] == pytest.approx(2, abs=0.1)
    assert rows[0]["second_of_day"] == 2
    assert (rows[0]["protocol"], rows[0]["ip_version"]) == (6, 4)


def test_training_finds_the_services():
    pytest.importorskip("sklearn", reason="the extra train is not installed")
    trained = training.train(records())
    assert (trained.records, trained.limited) == (400, 200)
    assert trained.model["unlimited_bps"] == pytest.approx(49e6)
    features = {"source_high": 0, "source_low": 2, "destination_high": 0, "destination_low": 9}
    features |= {"ip_version": 4, "protocol": 6, "second_of_day": 100}
    assert predicted_bps(trained.model, {**features, "service": 80}) > trained.model["unlimited_bps"]
    # The rates are 0.8 to 1.2 Mbit/s, and the model predicts their 0.9 quantile.
    assert 1.1e6 < predicted_bps(trained.model, {**features, "service": 1883}) < 1.25e6
    assert trained.covered > 0.8
    assert trained.error < 1.5
    run(json.dumps(trained.model))


def test_the_file_predicts_what_the_library_predicts():
    """Rust is tested with the same vectors. With NARROWS_WRITE=1, this test writes the vectors."""
    ensemble = pytest.importorskip("sklearn.ensemble", reason="the extra train is not installed")
    table = records()
    inputs = np.column_stack([table[name].to_numpy() for name in training.FEATURES])
    target = np.log(table["use_bps"].to_numpy()) + 0.3 * np.sin(inputs[:, 7] / 20)
    regressor = ensemble.GradientBoostingRegressor(n_estimators=8, max_depth=3, random_state=0)
    fitted = regressor.fit(inputs, target)
    exported, expected = training.export(fitted), np.exp(fitted.predict(inputs))
    cases = [dict(zip(training.FEATURES, map(int, row), strict=True)) for row in inputs]
    assert [predicted_bps(exported, case) for case in cases] == pytest.approx(list(expected), rel=1e-9)
    if os.environ.get("NARROWS_WRITE"):
        chosen = [{"features": list(cases[i].values()), "bps": float(expected[i])} for i in range(0, 400, 23)]
        VECTORS.write_text(json.dumps({"model": exported, "cases": chosen}) + "\n")


def test_the_vectors_agree_with_the_file_format():
    vectors = json.loads(VECTORS.read_text())
    for case in vectors["cases"]:
        features = dict(zip(training.FEATURES, case["features"], strict=True))
        assert predicted_bps(vectors["model"], features) == pytest.approx(case["bps"], rel=1e-9)


def test_too_few_records_and_wrong_files_are_one_line(tmp_path):
    pytest.importorskip("sklearn", reason="the extra train is not installed")
    with pytest.raises(NarrowsError, match="found 3 flow records, expected at least 20"):
        training.train(records(3))
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("a,b\n1,2\n")
    with pytest.raises(NarrowsError, match=r"wrong.csv: found no column use_bps, expected use_bps, limited"):
        training.read([wrong])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"event": "started"}', "found no flow records, expected a folder of results"),
        ('{"event": "flow-record", "use_bps": [1]}', "found "),
        ('{"event": "flow-record", "use_bps": 1' + "0" * 400 + "}", "found "),
    ],
)
def test_a_wrong_log_is_one_line(tmp_path, text, said):
    log = tmp_path / "agent.log"
    log.write_text(text + "\n")
    with pytest.raises(NarrowsError, match=f"agent.log: {said}") as error:
        training.read([log])
    assert "\n" not in str(error.value)


def test_wrong_options_and_records_are_refused():
    pytest.importorskip("sklearn", reason="the extra train is not installed")
    with pytest.raises(NarrowsError, match=r"--quantile: found nan, expected a number between 0 and 1"):
        training.train(records(), bandwidth_model.Options(quantile=math.nan))
    table = records()
    lacking = table.set_column(1, "limited", pa.nulls(table.num_rows, pa.float64()))
    with pytest.raises(NarrowsError, match="undefined value"):
        training.train(lacking)


def test_the_place_of_the_model_is_checked_before_training(tmp_path):
    log = tmp_path / "agent.log"
    log.write_text("")
    for out in (tmp_path, tmp_path / "none" / "model.json", log):
        with pytest.raises(NarrowsError, match=f"^{out}: found "):
            training.check_place(out, [log])
    training.check_place(tmp_path / "model.json", [log])
    with pytest.raises(NarrowsError, match="expected at most 262144; use fewer --trees"):
        training.write({"trees": [0.0] * 100_000}, tmp_path / "model.json")
    assert not (tmp_path / "model.json").exists()


def test_the_command_trains_from_an_agents_log(tmp_path):
    pytest.importorskip("sklearn", reason="the extra train is not installed")
    rows = [json.dumps({"event": "flow-record", "port": "eth1", **row}) for row in records().to_pylist()]
    log = tmp_path / "agent.log"
    log.write_text("\n".join(['{"event": "started"}', "no JSON", *rows]) + "\n")
    out = tmp_path / "model.json"
    command = [sys.executable, "-m", "narrows", "train", str(log), "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "400 flow records, of which 200 are of application-limited flows" in done.stdout
    assert json.loads(out.read_text()) == training.train(records(), bandwidth_model.Options()).model
