"""Commands about places where jobs run: cordon and uncordon queues, executors and nodes."""

import click

from lookout.cli import words
from lookout.cli.printing import say
from lookout.client import Client

_reason = click.option("--reason", default="", metavar="TEXT", help="Why; others see it.")
_executor = click.option(
    "--executor", default="", metavar="NAME", help="Where the node is, if several have one."
)


def _group(word: str, told: str, *, cordoned: bool) -> click.Group:
    """`cordon` or `uncordon`, with a command for each kind of place."""
    done = f"{word.capitalize()}ed"
    group = words.Group(word, help=told)

    @group.command(
        "queue", help=f"{word.capitalize()} a queue: whether its jobs start. It takes jobs all the same."
    )
    @click.argument("name")
    @_reason
    def queue(name: str, reason: str) -> None:
        words.client().cordon_queue(name, cordoned=cordoned, reason=reason)
        say(f"{done} queue {name}")

    @group.command("executor", help=f"{word.capitalize()} an executor: whether runs start on its nodes.")
    @click.argument("name")
    @_reason
    def executor(name: str, reason: str) -> None:
        words.client().cordon_executor(name, cordoned=cordoned, reason=reason)
        say(f"{done} executor {name}")

    @group.command("node", help=f"{word.capitalize()} a node: whether runs start on it.")
    @click.argument("name")
    @_executor
    @_reason
    def node(name: str, executor: str, reason: str) -> None:
        tack = words.client()
        where = executor or _executor_of(tack, name)
        tack.cordon_node(where, name, cordoned=cordoned, reason=reason)
        say(f"{done} node {name} of executor {where}")

    return group


def _executor_of(tack: Client, node: str) -> str:
    """The one executor that has such a node."""
    found = [each.name for each in tack.executors() if node in {has.name for has in each.nodes}]
    if not found:
        raise click.ClickException(f"No executor has a node '{node}'. See: tack get executors")
    if len(found) > 1:
        raise click.UsageError(f"Several executors have a node '{node}': say which with --executor.")
    return found[0]


cordon = _group(
    "cordon", "Have nothing new start in a queue, on an executor or node. What runs goes on.", cordoned=True
)
uncordon = _group("uncordon", "Let jobs start again in a queue, on an executor or node.", cordoned=False)
