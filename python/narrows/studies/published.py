"""Repeats a paper's own experiment (iperf3 transfers or pings) on real stacks, without a simulation.

OUT/<backend>/<experiment>/<algorithm or number of hosts>-<repetition>.json  report, settings, kernel

Each file is written when its transfer or attempt ends. A later call with `reuse` performs only the transfers
and attempts whose files are missing.
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from narrows import sweep
from narrows.backends import Performs
from narrows.backends.kernel import star
from narrows.backends.kernel.pings import Pings
from narrows.backends.kernel.transfer import Transfer
from narrows.errors import NarrowsError, OutputError, choice
from narrows.results.factors import Factor
from narrows.results.iperf3 import is_number, parse
from narrows.results.runs import INTERVALS, PAPER, PINGS, PRINTED, Run, Runs
from narrows.studies.model import Experiment, Study
from narrows.studies.runner import Outcome, Say, judge_claims, minutes, take_without_runs
from narrows.version import release

OVERHEAD_S = 1.5
"""Estimated time to create and remove the network."""
GUEST_PACE = {"transfer": 10.0, "pings": 5.0}
"""Estimated real seconds for each second of a guest's virtual time. These numbers are large because a
transfer keeps the guest's processor busy. While the machine had other work, values from 8 to 20 were
measured."""
QUANTITIES = ("bytes", "bits_per_second", "retransmits", "snd_cwnd", "rtt", "rttvar", "pmtu")
"""The quantities of a run that come from each interval of iperf3's report."""
QUICK_ATTEMPTS = 3
"""Number of ping attempts for each number of hosts with `--quick`."""
_MADE = "narrows"
"""Key in each file. Its value says how the file was made."""
_NAP_SECONDS = 0.2


@dataclass(frozen=True)
class _Work:
    """An experiment with all its transfers or attempts (`wanted`). `ahead` has the part without a result."""

    experiment: Experiment
    wanted: list[Todo]
    ahead: list[Todo]


@dataclass(frozen=True)
class Todo:
    """A transfer or an attempt, and the file of its result."""

    asked: Transfer | Pings
    file: Path


def published(study: Study, only: Iterable[str] = ()) -> list[Experiment]:
    """The experiments that only `--as-published` runs. The paper's tables that they use come first.

    Raises:
        NarrowsError: if the study has no such experiment, or has none with an id in `only`.
    """
    found = [experiment for experiment in study.experiments if experiment.is_as_published]
    if not found:
        raise NarrowsError(f"--as-published: found no experiment with iperf3 or pings in study {study.id}")
    known = [experiment.id for experiment in found]
    for identity in only:
        if identity not in known:
            raise NarrowsError(f"--as-published --only: {choice(identity, known)}")
    wanted = [experiment for experiment in found if not only or experiment.id in only]
    tables = [experiment.iperf3.paper for experiment in wanted if experiment.iperf3 is not None]
    return [study.experiment(name) for name in dict.fromkeys(tables) if name] + wanted


def todo(
    experiment: Experiment, folder: Path, names: Iterable[str], quick: bool, seeds: int | None
) -> list[Todo]:
    """The transfers or attempts of an experiment, ordered by repetition. The function has no side effects.

    Args:
        experiment: the experiment.
        folder: the folder of its files.
        names: the algorithms of the transfers, without algorithms that the kernel lacks.
        quick: whether to use short transfers with one repetition, and few attempts.
        seeds: number of repetitions (None: the study's).
    """
    if (pings := experiment.pings) is not None:
        count = seeds or (QUICK_ATTEMPTS if quick else pings.repetitions)
        return [
            Todo(
                Pings(hosts, pings.count, pings.interval_ms, repetition=repetition),
                folder / f"{hosts}-hosts-{repetition}.json",
            )
            for repetition in range(1, count + 1)
            for hosts in pings.hosts
        ]
    spec = experiment.iperf3
    assert spec is not None
    seconds = spec.quick_seconds if quick else spec.seconds
    count = seeds or (1 if quick else spec.repetitions)
    return [
        Todo(
            Transfer(name, seconds, spec.rate, spec.burst, spec.limit, spec.mtu, repetition),
            folder / f"{name}-{repetition}.json",
        )
        for repetition in range(1, count + 1)
        for name in names
    ]


def run_published(
    study: Study,
    out: Path,
    backend: Performs,
    *,
    quick: bool = False,
    only: Iterable[str] = (),
    seeds: int | None = None,
    jobs: int | None = None,
    reuse: bool = False,
    say: Say = lambda _: None,
) -> Outcome:
    """Repeat a study's experiments as the paper performed them, and judge the study's claims about them.

    Args:
        study: the study.
        out: folder of files and report.
        backend: the real stacks.
        quick: whether to use short transfers with one repetition.
        only: ids of experiments (empty: all experiments that only `--as-published` runs).
        seeds: number of repetitions (None: the study's).
        jobs: number of concurrent transfers, at most the backend's maximum.
        reuse: whether to keep the files of an earlier call with the same settings on the same kernel.
        say: called with each line about the progress.
    """
    outcome = Outcome(study, quick, {}, [], on=backend.name, version=release())
    work: list[_Work] = []
    for experiment in published(study, list(only)):
        if not experiment.is_as_published:
            take_without_runs(study, experiment, outcome)
            continue
        names = _at_hand(experiment, backend, outcome, say)
        outcome.kernel = str(backend.facts().get("kernel", "unknown"))
        wanted = todo(experiment, out / backend.name / experiment.id, names, quick, seeds)
        ahead = [item for item in wanted if not (reuse and _is_kept(item, outcome.kernel))]
        work.append(_Work(experiment, wanted, ahead))
    for line in _work_ahead(work, backend, sweep.most_jobs(jobs, backend)):
        say(line)
    for part in work:
        _perform(part, backend, outcome.kernel, jobs, say)
        spec = part.experiment.iperf3
        printed = outcome.runs.get(spec.paper if spec is not None else "", Runs([]))
        outcome.runs[part.experiment.id] = Runs(read(item, printed) for item in part.wanted)
        outcome.scenarios[part.experiment.id] = commands(part.wanted[0].asked)
    judge_claims(outcome)
    return outcome


def _at_hand(experiment: Experiment, backend: Performs, outcome: Outcome, say: Say) -> list[str]:
    """The algorithms of the experiment that the kernel has.

    For the other algorithms, this function adds notes to `outcome` that say why they are missing.
    """
    if experiment.iperf3 is None:
        return []
    lacking = backend.lacking(experiment.iperf3.algorithms)
    for why in dict.fromkeys(lacking.values()):
        missing = ", ".join(name for name, reason in lacking.items() if reason == why)
        outcome.notes.append(f"{experiment.id}: without {missing}, because {why}.")
        say(outcome.notes[-1])
    names = [name for name in experiment.iperf3.algorithms if name not in lacking]
    if not names:
        raise NarrowsError(f"{experiment.id}: this kernel has none of the experiment's algorithms")
    return names


def commands(asked: Transfer | Pings) -> str:
    """The commands of a transfer or an attempt, in a form that a reader can repeat."""
    made = star.commands(asked.star, "")
    lines = [f"ip netns add {name}" for name in made.namespaces]
    lines += [f"ip {line}" for line in made.links]
    lines += [f"ip -n {name} {line}" for name, inside in made.addresses.items() for line in inside]
    lines += [f"tc -n {name} {line}" for name, inside in made.queues.items() for line in inside]
    lines += [f"ip netns exec {name} {shlex.join(words)}" for name, words in asked.commands]
    return "\n".join(lines) + "\n"


def _work_ahead(work: Iterable[_Work], backend: Performs, at_once: int) -> list[str]:
    """Lines about the work.

    For each experiment, lines say how many results are kept and what will run. If anything will run, the last
    line has the total time.
    """
    in_guest = backend.name == "vm"
    where = "in guests" if in_guest else "on the kernel"
    lines, total = [], 0.0
    for part in work:
        name, kind = part.experiment.id, f"{part.wanted[0].asked.noun}s"
        if kept := len(part.wanted) - len(part.ahead):
            lines.append(f"{name}: {kept} of {len(part.wanted)} {kind} are kept from an earlier call")
        if part.ahead:
            seconds = part.ahead[0].asked.seconds
            pace = GUEST_PACE[part.ahead[0].asked.kind] if in_guest else 1.0
            need = (seconds * pace + OVERHEAD_S) * len(part.ahead) / at_once
            total += need
            how = f"{at_once} at a time, about {minutes(need)}"
            lines.append(f"{name}: {len(part.ahead)} {kind} of {seconds:g} s {where}, {how}")
    return [*lines, f"as published: about {minutes(total)} in all"] if total else lines


def _perform(part: _Work, backend: Performs, kernel: str, jobs: int | None, say: Say) -> None:
    """Perform the transfers or attempts that have no file of an earlier call."""
    name, ahead = part.experiment.id, part.ahead
    at_once = sweep.most_jobs(jobs, backend)

    def one(item: Todo) -> None:
        # Each thread writes its own result, so that finished results remain if another thread fails.
        _write(item, backend.perform(item.asked), kernel)

    begun, done = time.monotonic(), 0
    pool = ThreadPoolExecutor(at_once, thread_name_prefix="published")
    try:
        running = {pool.submit(one, item): item for item in ahead}
        while running:
            for finished in wait(running, _NAP_SECONDS, FIRST_COMPLETED).done:
                item = running.pop(finished)
                finished.result()
                done += 1
                left = (time.monotonic() - begun) / done * (len(ahead) - done)
                say(f"{name}: {item.file.stem}, {done} of {len(ahead)}, about {minutes(left)} left")
    except BaseException:
        # Wait after Ctrl-C, too. Otherwise a thread could leave its namespaces behind.
        pool.shutdown(wait=False, cancel_futures=True)
        backend.cancel()
        raise
    finally:
        pool.shutdown()


def _write(item: Todo, result: Mapping[str, Any], kernel: str) -> None:
    made = {item.asked.kind: item.asked.as_data(), "kernel": kernel, "ports": result["ports"]}
    item.file.parent.mkdir(parents=True, exist_ok=True)
    part = item.file.with_suffix(".part")
    part.write_text(json.dumps({**result["report"], _MADE: made}, indent=1) + "\n", encoding="utf-8")
    part.replace(item.file)


def _is_kept(item: Todo, kernel: str) -> bool:
    """Whether the file exists, and was made in the same way on the same kernel."""
    try:
        made = json.loads(item.file.read_text(encoding="utf-8"))[_MADE]
        return bool(made[item.asked.kind] == item.asked.as_data() and made["kernel"] == kernel)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def read(item: Todo, printed: Runs) -> Run:
    """The run in a file, with the paper's figures for its algorithm.

    Raises:
        OutputError: if the file does not have this run.
    """
    try:
        data = json.loads(item.file.read_text(encoding="utf-8"))
        if isinstance(item.asked, Pings):
            return _of_pings(item.asked, data)
        return _of_transfer(item.asked, data, item.file, printed)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OutputError(f"{item.file}: expected a file that this command wrote: {error!r}") from None


def _of_pings(asked: Pings, data: Mapping[str, Any]) -> Run:
    hosts = data["pings"]
    table = {
        "host": list(hosts),
        "sent": np.array([float(of["sent"]) for of in hosts.values()]),
        "received": np.array([float(of["received"]) for of in hosts.values()]),
    }
    rtts = [1e3 * float(rtt) for of in hosts.values() for rtt in of["rtts_ms"]]
    samples = {"rtt": np.array(rtts)}
    factors: dict[str, Factor] = {"algorithm": "ping", "hosts": float(asked.hosts)}
    return Run(factors, asked.repetition, {PINGS: samples, "pinging": table, "flows": _flow("ping")})


def _of_transfer(asked: Transfer, data: Mapping[str, Any], file: Path, printed: Runs) -> Run:
    ports = data[_MADE]["ports"]
    intervals = next(iter(parse(data, file).streams.values()))
    for quantity in QUANTITIES:
        if not all(is_number(interval.get(quantity)) for interval in intervals):
            raise OutputError(f"{file}: found an interval without {quantity}")
    table = {name: np.array([float(row[name]) for row in intervals]) for name in QUANTITIES}
    ends = np.array([float(row["end"]) for row in intervals])
    own = printed.where({"algorithm": asked.algorithm})
    return Run(
        {"algorithm": asked.algorithm},
        asked.repetition,
        {
            INTERVALS: table,
            "flows": _flow(asked.algorithm),
            "flow_samples": {
                "t_s": ends,
                "flow": np.zeros(ends.size),
                **table,
                "bytes": np.cumsum(table["bytes"]),
                "retransmits_in_interval": table["retransmits"],
            },
            "ports": {
                "name": list(ports),
                "drops": np.array([float(port["drops"]) for port in ports.values()]),
            },
            **({PAPER: own[0].tables[PRINTED]} if len(own) else {}),
        },
    )


def _flow(algorithm: str) -> dict[str, Any]:
    """The table `flows`. It contains only the number, name, source and algorithm of the flow."""
    return {"flow": np.zeros(1), "name": [algorithm], "source": [algorithm], "cc": [algorithm]}
