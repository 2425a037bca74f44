"""docs/reference/permissions.md, written from the table that is tested: `python -m tests.permissions` prints it."""

from collections.abc import Iterable
from pathlib import Path

from scheduler.actors import Permission, Role
from tests.permissions.matrix import ROWS, At, Door, Row, Who

FILE = Path(__file__).parents[2] / "docs" / "reference" / "permissions.md"

_ALLOWS = {
    Permission.SUBMIT_ANY_JOBS: "submit to every queue",
    Permission.CANCEL_ANY_JOBS: "cancel every job",
    Permission.REPRIORITIZE_ANY_JOBS: "give every job another priority",
    Permission.PREEMPT_ANY_JOBS: "have every run of a preemptible class give way",
    Permission.CREATE_QUEUE: "make and change queues, cordon them, attach policies",
    Permission.CORDON_NODES: "cordon executors and nodes, delete silent executors",
    Permission.DELETE_QUEUE: "delete queues without jobs",
    Permission.CREATE_RETRY_POLICY: "make policies",
    Permission.UPDATE_RETRY_POLICY: "publish versions of policies",
    Permission.DELETE_RETRY_POLICY: "delete policies, and detach them from queues by that",
}
_COLUMNS = [who for who in Who if who is not Who.GROUP]
"""Members of an owning group may what an owner may; a test looks after that."""

_PAGE = """\
# Permissions

Everybody who is signed in, by session or token, reads everything. Writing needs a permission of one's role, or the leave of the
queue. Who may not is refused (403) before anything that was sent is looked at.

## Roles

{roles}

Operator and admin differ in nothing yet. A person without a role reads.

## Queues

| | submit | cancel | reprioritize | preempt |
|---|---|---|---|---|
| owners (`userOwners`, `groupOwners`) | yes | yes | yes | yes |
| `permissions` with the verb `submit` | yes | | | |
| `permissions` with the verb `cancel` | | yes | | |
| `permissions` with the verb `reprioritize` | | | yes | |
| `permissions` with the verb `preempt` | | | | yes |
| a role with `submit_any_jobs` / `cancel_any_jobs` / `reprioritize_any_jobs` / `preempt_any_jobs` | yes | yes | yes | yes |

Owners of a queue may not change the queue itself: that takes `create_queue`.

```yaml
apiVersion: armadaproject.io/v1beta1
kind: Queue
name: nightly
userOwners: [alice]
permissions:
  - subjects: [{{kind: User, name: bob}}, {{kind: Group, name: night-shift}}]
    verbs: [submit]
```

## Tokens, sessions, agents

| | opens |
|---|---|
| a session | pages and REST, as the person; writes over REST need the CSRF token in `X-CSRFToken` |
| a token | REST, as its owner; sign-in links for its owner |
| an agent's token | the executor API, as one executor, and nothing else |

What people changed is kept with name, time, and the state before and after.

Making people and tokens takes access to the server: [sign in and tokens](../how-to/sign-in-and-tokens.md).

## Who may do what

Each line is tested by everybody named, at every door. A queue owner is one by name or by a group.

{verbs}

## Through which doors

The command line and the Python client go through REST.

{doors}

Nobody who is not signed in gets a page but those of the first line: they are led to the sign-in. REST, the executor API and the
metrics answer 401 to whoever is nobody, and 403 to whoever may not. What writes over a session or a form needs the CSRF token, else it is 403.
"""


def page_text() -> str:
    """The page as it should be."""
    return _PAGE.format(roles=_roles(), verbs=_verbs(), doors=_doors())


def _roles() -> str:
    lines = [
        [f"`{permission}`", allows, *_marks(permission in role.permissions for role in Role)]
        for permission, allows in _ALLOWS.items()
    ]
    return _table(["permission", "what it allows", *Role], lines)


def _verbs() -> str:
    return _table(
        ["to", *_COLUMNS], [[row.what, *_marks(who in row.who for who in _COLUMNS)] for row in ROWS]
    )


def _doors() -> str:
    return _table(["to", "through"], [[row.what, _through(row)] for row in ROWS])


def _through(row: Row) -> str:
    kinds = [(kind, [door for door in row.doors if door.at is kind]) for kind in At]
    return "; ".join(f"{kind} {', '.join(map(_request, doors))}" for kind, doors in kinds if doors)


def _request(door: Door) -> str:
    method, path = door.request.split(" ")
    shown = (
        path.replace("{empty}", "{queue}")
        .replace("{silent}", "{name}")
        .replace("nodes/local-1", "nodes/{node}")
        .replace("/none", "/{secret}")
        .replace("executors/local", "executors/{name}")
    )
    return f"`{method} {shown if door.at in (At.PAGE, At.PROGRAM) else f'/api/{shown}'}`"


def _marks(which: Iterable[bool]) -> list[str]:
    return ["yes" if each else "" for each in which]


def _table(heads: list[str], lines: list[list[str]]) -> str:
    rows = [heads, ["---"] * len(heads), *lines]
    return "\n".join(
        "|" + "|".join(f" {cell} " if cell and cell != "---" else cell or " " for cell in row) + "|"
        for row in rows
    )
