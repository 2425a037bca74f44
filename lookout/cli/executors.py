"""Commands for executors: get and delete."""

import click

from lookout.cli import words
from lookout.cli.printing import age, console, one_line, print_as, say, size, table
from lookout.client import Executor, Node

_HEADINGS = ("EXECUTOR", "NODE", "STATE", "RUNS", "CPU", "MEMORY", "SEEN", "CORDONED BY")
"""The last only where there are cordons."""
_WHOLE = _HEADINGS[:-1]


@words.get.command("executors")
@words.output_option("table", "yaml", "json")
def list_command(form: str) -> None:
    """Print executors with their nodes, and which take no new runs."""
    found = words.client().executors()
    if form != "table":
        print_as(form, {"executors": [dict(executor.json) for executor in found]})
    elif found:
        rows = [row for executor in found for row in _rows(executor)]
        shown = len(_HEADINGS) - (not any(row[-1] for row in rows))
        headings = _HEADINGS[:shown]
        console().print(table(headings, [row[:shown] for row in rows], whole=_WHOLE))
    else:
        say("No executor has been heard of yet.", err=True)


@words.delete.command("executor")
@click.argument("name")
def delete_command(name: str) -> None:
    """Forget an executor that is silent or stopped and has no active run. Its runs stay."""
    words.client().delete_executor(name)
    say(f"Deleted executor {name} (or it did not exist)")


def _rows(executor: Executor) -> list[list[str]]:
    seen = age(executor.heartbeat_at)
    if not executor.nodes:
        return [[executor.name, "-", _state(executor, None), "0", "-", "-", seen, _cordon(executor)]]
    return [
        [
            executor.name,
            node.name,
            _state(executor, node),
            str(node.runs),
            f"{node.capacity.cpu_millicores / 1000:g}" if node.capacity else "-",
            size(node.capacity.memory_bytes if node.capacity else None),
            seen,
            "; ".join(filter(None, (_cordon(executor), _cordon(node)))),
        ]
        for node in executor.nodes
    ]


def _cordon(place: Executor | Node) -> str:
    """Who cordoned it and why; empty where nobody did."""
    if not place.cordoned:
        return ""
    return one_line(": ".join(filter(None, (place.cordoned_by, place.cordon_reason))))


def _state(executor: Executor, node: Node | None) -> str:
    if executor.silent:
        return "silent"
    if executor.cordoned or (node and node.cordoned):
        return "cordoned"
    return "ready" if node is None or node.schedulable else "closed"
