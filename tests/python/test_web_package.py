"""The npm package `narrows-web`: installed and used in Node.js and in a browser, without the network."""

import functools
import http.server
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import narrows
import pytest
from narrows.scenario.load import loads

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "web/npm/README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```js\n(.*?)```", README, re.DOTALL)
SCENARIO = re.findall(r"const scenario = `\n(.*?)`;", README, re.DOTALL)[0]
LONG = SCENARIO.replace('"10s"', '"100000s"')


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A project that has installed the package, and the environment with Node.js."""
    specification = importlib.util.spec_from_file_location("web", ROOT / "tools" / "web.py")
    assert specification is not None and specification.loader is not None
    web = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(web)
    if not web.package().exists():
        message = f"found no {web.package()}: make web; the npm package was not tested"
        warnings.warn(message, stacklevel=2)
        pytest.skip(message)
    try:
        environment = web.with_node(may_install=False)
    except web.Unavailable as missing:
        pytest.skip(str(missing))
    folder = tmp_path_factory.mktemp("project")
    (folder / "package.json").write_text('{"private": true, "type": "module"}', encoding="utf-8")
    install = ["npm", "install", "--offline", "--no-audit", "--no-fund", "--silent", str(web.package())]
    subprocess.run(install, cwd=folder, env=environment, check=True)
    return folder, environment


def node(project: tuple[Path, dict[str, str]], script: str) -> str:
    folder, environment = project
    command = ["node", "--input-type=module", "--eval", script]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def native() -> list[float]:
    return narrows.run(loads(SCENARIO)).flows.to_pydict()["goodput_bps"]


def test_the_examples_of_its_readme_run(project: tuple[Path, dict[str, str]]) -> None:
    worker, thread = EXAMPLES
    assert "cubic" in node(project, worker)
    assert node(project, thread).count("\n") >= 100


def test_a_worker_gives_the_results_of_narrows_run(project: tuple[Path, dict[str, str]]) -> None:
    script = """
        import { run } from "narrows-web";
        let [calls, rows] = [0, 0];
        const onProgress = (progress) => {
            calls += 1;
            rows += progress.rows.flow_samples?.t_s.length ?? 0;
        };
        const { tables, packets } = await run(SCENARIO, { onProgress, watched: 0 });
        const all = tables.flow_samples.t_s.length;
        const goodput = [...tables.flows.goodput_bps];
        console.log(JSON.stringify({ goodput, calls, rows, all, packets: packets.t_s.length }));
    """.replace("SCENARIO", json.dumps(SCENARIO))
    found = json.loads(node(project, script))
    assert found["goodput"] == native()
    assert found["rows"] == found["all"] > 100
    assert found["calls"] > 0 and found["packets"] > 1000


def test_a_run_can_be_stopped_and_slowed_down(project: tuple[Path, dict[str, str]]) -> None:
    script = """
        import { run } from "narrows-web";
        const stop = new AbortController();
        let now = 0;
        const onProgress = (progress) => {
            now = progress.now;
            if (now > 0.1) stop.abort(new Error("enough"));
        };
        const message = await run(SCENARIO, { onProgress, signal: stop.signal, speed: 0.5 }).catch(String);
        console.log(JSON.stringify({ message, now }));
    """.replace("SCENARIO", json.dumps(LONG))
    found = json.loads(node(project, script))
    assert found["message"] == "Error: enough"
    assert 0.1 < found["now"] < 10, "with this speed, the run did not go far"


def test_an_error_is_the_line_of_narrows_check(project: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    wrong = SCENARIO.replace('"20mbit"', '"20 apples"')
    (tmp_path / "scenario.toml").write_text(wrong, encoding="utf-8")
    command = [sys.executable, "-m", "narrows", "check", "scenario.toml"]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    script = f"""
        import {{ run }} from "narrows-web";
        console.log(await run({json.dumps(wrong)}).catch((error) => error.message));
    """
    assert node(project, script).strip() == checked.stderr.strip()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("{ point: 1 }", "point: found 1, expected a whole number from 0 to 0"),
        ("{ seed: -1 }", "seed: found -1, expected a whole number from 0 to 9007199254740991"),
        ("{ watched: 99 }", "watched: found 99, expected a whole number from 0 to"),
        ("{ speed: 0 }", "speed: found 0, expected a number above 0"),
        ("{ tables: ['flowz'] }", "tables: found flowz, expected names of tables of the results"),
        ("{ onProgress() { throw new Error('mine') } }", "mine"),
        ("{ tables: new Proxy(['flows'], {}) }", "no error"),
    ],
)
def test_a_wrong_option_is_reported(project: tuple[Path, dict[str, str]], options: str, message: str) -> None:
    script = f"""
        import {{ run }} from "narrows-web";
        const done = run({json.dumps(SCENARIO)}, {options});
        console.log(await done.then(() => "no error", (error) => error.message));
    """
    assert node(project, script).startswith(message)


def test_steps_reach_their_times_and_wrong_seeds_are_refused(project: tuple[Path, dict[str, str]]) -> None:
    script = """
        import { load, Simulation } from "narrows-web";
        await load();
        const simulation = new Simulation(SCENARIO, 0);
        for (let i = 0; i < 8; i++) simulation.advance(simulation.now + 0.1);
        let message = "";
        try { new Simulation(SCENARIO, 0, 1.5); } catch (error) { message = error.message; }
        console.log(JSON.stringify({ now: simulation.now, message }));
    """.replace("SCENARIO", json.dumps(SCENARIO))
    found = json.loads(node(project, script))
    assert found["now"] == 0.8 and found["message"].startswith("seed: found 1.5")


def test_its_types_fit_the_examples(project: tuple[Path, dict[str, str]]) -> None:
    folder, environment = project
    worker, thread = EXAMPLES
    for name, text in (("worker", worker), ("thread", thread)):
        # All numbers of a table are in columns of this type.
        typed = text.replace(
            '("flow_samples", rows)', '("flow_samples", rows) as Record<string, Float64Array>'
        )
        (folder / f"{name}.mts").write_text(typed, encoding="utf-8")
    tsc = ROOT / "web/node_modules/.bin/tsc"
    options = [
        "--noEmit",
        "--strict",
        "--module",
        "NodeNext",
        "--target",
        "ES2022",
        "--lib",
        "ES2022,DOM",
        "--skipLibCheck",
    ]
    done = subprocess.run(
        [tsc, *options, "worker.mts", "thread.mts"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.fixture
def address(project: tuple[Path, dict[str, str]]) -> Iterator[str]:
    """A server of the project's files. Browsers load modules only from servers."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(project[0]))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def bundle(project: tuple[Path, dict[str, str]]) -> None:
    """Bundle a page as the README says, without other options."""
    folder, environment = project
    (folder / "page.js").write_text(
        'export { load, run, Simulation } from "narrows-web";\n', encoding="utf-8"
    )
    (command,) = re.findall(r"^esbuild (.*)$", README, re.MULTILINE)
    esbuild = ROOT / "web/node_modules/.bin/esbuild"
    subprocess.run([esbuild, *command.split(), "--log-level=error"], cwd=folder, env=environment, check=True)
    shutil.copy(folder / "node_modules/narrows-web/narrows_web_bg.wasm", folder / "out")


@pytest.mark.parametrize("module", ["node_modules/narrows-web/index.js", "out/page.js"])
def test_it_works_in_a_browser(
    browser: Any, project: tuple[Path, dict[str, str]], address: str, module: str
) -> None:
    bundle(project)
    (project[0] / "index.html").write_text("<!doctype html><title>test</title>", encoding="utf-8")
    page = browser.new_page()
    page.goto(f"{address}/index.html")
    goodput = page.evaluate(
        """async ([scenario, module]) => {
            const { load, run, Simulation } = await import(module);
            const { tables } = await run(scenario);
            await load();
            const simulation = new Simulation(scenario, 0);
            simulation.advance(Infinity);
            return [[...tables.flows.goodput_bps], [...simulation.rows("flows", 0).goodput_bps]];
        }""",
        [SCENARIO, f"/{module}"],
    )
    page.close()
    assert goodput == [native(), native()]
