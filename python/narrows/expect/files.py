"""Files with verdicts: JUnit XML for continuous integration, and Markdown for a comment on a pull request."""

from __future__ import annotations

from xml.etree import ElementTree

from narrows.expect.verdicts import Verdicts
from narrows.markdown import table
from narrows.studies.judge import Verdict


def junit(verdicts: Verdicts) -> str:
    """The verdicts as JUnit XML: a test case for each expectation and point of the sweep.

    In JUnit's terms, an expectation that is not met is a failure, and an expectation that cannot be judged is
    an error.
    """
    failures = sum(item.verdict is Verdict.NOT_REPRODUCED for item in verdicts.judged)
    errors = sum(item.verdict is Verdict.UNJUDGED for item in verdicts.judged)
    counts = {"tests": str(len(verdicts.judged)), "failures": str(failures), "errors": str(errors)}
    suites = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(suites, "testsuite", {"name": verdicts.scenario, **counts})
    for item in verdicts.judged:
        case = ElementTree.SubElement(suite, "testcase", {"classname": verdicts.scenario, "name": item.name})
        if item.verdict is not Verdict.REPRODUCED:
            kind = "failure" if item.verdict is Verdict.NOT_REPRODUCED else "error"
            ElementTree.SubElement(
                case, kind, {"message": item.why, "type": item.word}
            ).text = f"measured {item.measured}: {item.why}"
        else:
            ElementTree.SubElement(case, "system-out").text = f"measured {item.measured}: {item.why}"
    ElementTree.indent(suites)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"
    )


def markdown(verdicts: Verdicts) -> str:
    """The verdicts as a Markdown table."""
    rows = [
        [_cell(text) for text in (item.name, item.measured, item.word, item.why)] for item in verdicts.judged
    ]
    heads = ["expectation", "measured", "verdict", "reason"]
    return f"**{verdicts.scenario}**: {verdicts.line}\n\n{table(heads, rows)}\n"


def _cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
