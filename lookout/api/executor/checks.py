"""What agents may say of their executor, its nodes and its runs, beyond types and sizes.

Names and labels become values of columns, words of sentences and lines of tables: they are single lines, and no
longer than the columns they go to. What a job wrote is anything at all, and only bounded.
"""

from collections.abc import Iterable, Iterator

from policies.problems import DocumentInvalid, Problem
from scheduler.client_events import CAUSES
from scheduler.executors.protocol import Heartbeat, NodeDescription, Report
from scheduler.fields import problem_of_line
from scheduler.spelling import below

LONGEST_NAME = 253
LONGEST_KEY = 317
LONGEST_PATH = 1_024
MOST_CATEGORY_CHARACTERS = 63
MOST_LABELS = 1_000
MOST_TAINTS = 100
MOST_NOTES = 100
MOST_WORDS = 512 * 1024
"""Characters of everything one report says, besides output: pages show all runs of a job."""


def check_heartbeat(heartbeat: Heartbeat) -> None:
    """Raises DocumentInvalid with every problem."""
    _raise_any(_problems_of_heartbeat(heartbeat))


def check_reports(reports: Iterable[Report]) -> None:
    """Raises DocumentInvalid with every problem."""
    _raise_any(
        problem
        for number, report in enumerate(reports)
        for problem in _problems_of_report(f"reports[{number}]", report)
    )


def _problems_of_report(path: str, report: Report) -> Iterator[Problem]:
    if report.reason and report.reason not in CAUSES:
        message = f"takes one of {', '.join(CAUSES)}, or nothing"
        yield Problem(path=f"{path}.reason", message=message, code="invalid")
    words = (report.message, report.hint, *report.warnings, *(each.message for each in report.containers))
    if sum(map(len, words)) > MOST_WORDS:
        message = f"may have {MOST_WORDS:,} characters of text, with its warnings and containers"
        yield Problem(path=path, message=message, code="too_large")


def _raise_any(problems: Iterable[Problem]) -> None:
    found = list(problems)
    if found:
        raise DocumentInvalid(found)


def _problems_of_heartbeat(heartbeat: Heartbeat) -> Iterator[Problem]:
    yield from _line("pool", heartbeat.pool, required=True)
    yield from _line("version", heartbeat.version)
    yield from _line("agentTime", heartbeat.agent_time)
    yield from _each_once("nodes", [node.name for node in heartbeat.nodes])
    yield from _each_once("categories", [category.name for category in heartbeat.categories])
    for number, category in enumerate(heartbeat.categories):
        if len(category.name) > MOST_CATEGORY_CHARACTERS:
            message = f"may have {MOST_CATEGORY_CHARACTERS} characters, not {len(category.name):,}"
            yield Problem(path=f"categories[{number}].name", message=message, code="invalid")
    for number, label in enumerate(heartbeat.tracked_node_labels):
        yield from _line(f"trackedNodeLabels[{number}]", label, required=True, most=LONGEST_KEY)
    for number, field in enumerate(heartbeat.honours):
        yield from _line(f"honours[{number}]", field, required=True, most=LONGEST_PATH)
    for number, node in enumerate(heartbeat.nodes):
        yield from _problems_of_node(f"nodes[{number}]", node)


def _problems_of_node(path: str, node: NodeDescription) -> Iterator[Problem]:
    yield from _line(f"{path}.name", node.name)
    for key, value in node.labels.items():
        at = below(f"{path}.labels", key)
        yield from _line(at, key, required=True, most=LONGEST_KEY)
        yield from _line(at, value)
    for key in node.resources:
        yield from _line(below(f"{path}.resources", key), key, required=True, most=LONGEST_KEY)
    for number, taint in enumerate(node.taints):
        yield from _line(f"{path}.taints[{number}].key", taint.key, required=True, most=LONGEST_KEY)
        yield from _line(f"{path}.taints[{number}].value", taint.value)
    for name, held, most in (
        ("labels", node.labels, MOST_LABELS),
        ("taints", node.taints, MOST_TAINTS),
        ("notes", node.notes, MOST_NOTES),
    ):
        if len(held) > most:
            yield Problem(
                path=f"{path}.{name}", message=f"may hold {most:,}, not {len(held):,}", code="invalid"
            )


def _line(path: str, text: str, *, required: bool = False, most: int = LONGEST_NAME) -> Iterator[Problem]:
    problem = "Must not be empty." if required and not text else problem_of_line(text, most=most)
    if problem:
        yield Problem(path=path, message=problem, code="invalid")


def _each_once(field: str, names: Iterable[str]) -> Iterator[Problem]:
    """Names are there, and each but once."""
    seen: set[str] = set()
    for number, name in enumerate(names):
        if not name or name in seen:
            message = f"is there twice: '{name[:LONGEST_NAME]}'" if name else "must not be empty"
            yield Problem(path=f"{field}[{number}].name", message=message, code="invalid")
        seen.add(name)
