"""The agents that run on this machine, including agents that Narrows did not start."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from narrows.backends.kernel import agents

_PATIENCE_SECONDS = 10.0


def waiting() -> dict[str, list[str]]:
    """Interfaces and namespaces that running agents wait for, by the agent's name.

    Without root, the status of agents cannot be read, and the result is empty.
    """
    found = {status["name"]: absent(status) for status in statuses()}
    return {name: what for name, what in found.items() if what}


def absent(status: dict[str, Any]) -> list[str]:
    """The interfaces and namespaces that an agent waits for, as text."""
    spaces = [space for space in status.get("namespaces", []) if not space["present"]]
    words = [f"namespace {space['path']}{_reason(space)}" for space in spaces]
    missing = {space["path"] for space in spaces}
    for interface in status.get("interfaces", []):
        netns = interface.get("netns")
        if not interface["present"] and netns not in missing:
            place = f" in {netns}" if netns else ""
            words.append(f"interface {interface['name']}{place}{_reason(interface)}")
    return words


def _reason(status: dict[str, Any]) -> str:
    refusal = status.get("refusal")
    return f" (refused: {refusal})" if refusal else ""


def statuses() -> list[dict[str, Any]]:
    """The status of each running agent that answers."""
    program = agents.find()
    if program is None:
        return []
    try:
        done = subprocess.run(
            [program, "status", "--json"],
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return parse(done.stdout)


def parse(text: str) -> list[dict[str, Any]]:
    """The JSON objects that follow each other in a text."""
    found, decoder = [], json.JSONDecoder()
    text = text.lstrip()
    while text:
        try:
            status, end = decoder.raw_decode(text)
        except ValueError:
            break
        found.append(status)
        text = text[end:].lstrip()
    return found
