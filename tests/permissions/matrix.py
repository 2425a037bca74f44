"""The table: every verb, the doors that lead to it, and who may go through."""

from collections.abc import Set
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tests.factories import OOM_GROW, POD_SPEC


class Who(StrEnum):
    """Everybody who may come by."""

    ANONYMOUS = "anonymous"
    READER = "reader"
    SUBMITTER = "submitter"
    OWNER = "queue owner"
    GROUP = "member of an owning group"
    MAY_SUBMIT = "granted `submit`"
    MAY_CANCEL = "granted `cancel`"
    MAY_REPRIORITIZE = "granted `reprioritize`"
    MAY_PREEMPT = "granted `preempt`"
    OPERATOR = "operator"
    ADMIN = "admin"
    AGENT = "agent"
    OTHER_AGENT = "agent of another executor"


class At(StrEnum):
    """A kind of door."""

    REST = "REST"
    PAGE = "page"
    EXECUTOR = "executor API"
    PROGRAM = "for programs"
    """Outside of the API, and answering like it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Door:
    """One request that leads to a verb, and the status of those who may make it.

    Names in braces, also in a body, stand for what there is: `{queue}` with `{job}` and its `{run}`, `{empty}` without
    jobs, `{policy}`, `{silent}` that is an executor.
    """

    at: At
    request: str
    """Method and path; of the API, below /api/."""
    body: Any = None
    """JSON, or the fields of a form."""
    status: int = 200
    by_session: bool = True
    """Of REST: whether a session opens it as a token does."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A verb."""

    what: str
    who: Set[Who]
    doors: tuple[Door, ...]


EVERYBODY = frozenset(Who)
AGENTS = frozenset({Who.AGENT, Who.OTHER_AGENT})
SIGNED_IN = EVERYBODY - AGENTS - {Who.ANONYMOUS}
OPERATORS = frozenset({Who.OPERATOR, Who.ADMIN})
OWNERS = frozenset({Who.OWNER, Who.GROUP})
SUBMITTERS = OPERATORS | OWNERS | {Who.SUBMITTER, Who.MAY_SUBMIT}
CANCELLERS = OPERATORS | OWNERS | {Who.MAY_CANCEL}
REPRIORITIZERS = OPERATORS | OWNERS | {Who.MAY_REPRIORITIZE}
PREEMPTERS = OPERATORS | OWNERS | {Who.MAY_PREEMPT}

MOVED = 302
"""A page's answer to what was done: on to the page that shows it."""
NODES = [{"name": "local-1", "cpuMillicores": 1, "memoryBytes": 1}]
HEARTBEAT = {"executor": "local", "pool": "default", "version": "", "agentTime": "", "nodes": NODES}
JOB_FILE = {"queue": "nightly", "jobSetId": "s", "jobs": [{"podSpec": POD_SPEC}]}
POLICY_TEXT = "apiVersion: armadaproject.io/v1beta1\nkind: RetryPolicy\nname: {}\ndefaultAction: Fail\n"


def rest(request: str, body: Any = None, *, status: int = 200, by_session: bool = True) -> Door:
    """A door of the REST API."""
    return Door(at=At.REST, request=request, body=body, status=status, by_session=by_session)


def page(request: str, form: Any = None, *, status: int = 0) -> Door:
    """A door of the pages: 200 where it shows something, 302 where it did something."""
    return Door(
        at=At.PAGE,
        request=request,
        body=form,
        status=status or (MOVED if request.startswith("POST") else 200),
    )


def lookout(what: str, body: Any) -> Door:
    """A door of Armada's Lookout."""
    return Door(at=At.PROGRAM, request=f"POST /lookout/api/v1/{what}", body=body)


def agents(request: str, body: Any) -> Door:
    """A door of the executor API."""
    return Door(at=At.EXECUTOR, request=request, body=body)


ROWS = (
    Row(
        what="see that Tack is up; sign in; choose how pages look",
        who=EVERYBODY,
        doors=(
            rest("GET v1/openapi.json"),
            page("GET /healthz"),
            page("GET /sign-in/none", status=410),
            page("POST /sign-in/none", status=410),
            page("POST /choices", {"theme": "dark"}),
            page("POST /sign-out"),
        ),
    ),
    Row(
        what="make a link to sign in with, for oneself",
        who=SIGNED_IN,
        doors=(rest("POST v1/sign-in-links", status=201, by_session=False),),
    ),
    Row(what="see who one is", who=SIGNED_IN, doors=(rest("GET v1/me"),)),
    Row(
        what="look at queues",
        who=SIGNED_IN,
        doors=(
            rest("GET v1/queues"),
            rest("GET v1/queues/{queue}"),
            rest("GET v1/queues/{queue}/waiting"),
            page("GET /queues"),
            page("GET /queues/{queue}"),
        ),
    ),
    Row(
        what="look at retry policies, and check a document",
        who=SIGNED_IN,
        doors=(
            rest("GET v1/retry-policies"),
            rest("GET v1/retry-policies/{policy}"),
            rest("GET v1/retry-policies/{policy}/versions"),
            rest("GET v1/retry-policies/{policy}/versions/1"),
            rest("POST v1/retry-policies/check", OOM_GROW),
            page("GET /policies"),
            page("GET /policies/{policy}"),
            page("POST /check-policy", {"text": "x"}, status=200),
        ),
    ),
    Row(
        what="look at jobs, runs, output, decisions, events",
        who=SIGNED_IN,
        doors=(
            rest("GET v1/jobs"),
            rest("GET v1/jobs/{job}"),
            rest("GET v1/runs?job={job}"),
            rest("GET v1/runs/{run}"),
            rest("GET v1/runs/{run}/output"),
            rest("GET v1/decisions"),
            rest("GET v1/jobs/export"),
            rest("GET v1/runs/export"),
            rest("GET v1/decisions/export"),
            rest("GET v1/jobs/groups?by=queue"),
            rest("GET v1/failures/heatmap"),
            rest("GET v1/failures/groups"),
            rest("GET v1/failures/days"),
            rest("GET v1/stats/retries"),
            rest("GET v1/events?queue={queue}&jobSet=set"),
            page("GET /", status=MOVED),
            page("GET /jobs"),
            page("GET /filter-form"),
            page("GET /jobs/{job}"),
            page("GET /jobs/{job}/spec"),
            page("GET /jobs/{job}/cancel"),
            page("GET /jobs/{job}/reprioritize"),
            page("GET /jobs/{job}/preempt"),
            page("GET /cancel-jobs?queue={queue}"),
            page("GET /reprioritize-jobs?queue={queue}"),
            page("GET /preempt-jobs?queue={queue}"),
            page("GET /runs/{run}/output"),
            page("GET /find?q={job}", status=MOVED),
        ),
    ),
    Row(
        what="look at jobs and runs as Armada's Lookout shows them",
        who=SIGNED_IN,
        doors=(
            lookout("jobs", {}),
            lookout("jobGroups", {"groupedField": {"field": "queue"}}),
            lookout("jobSpec", {"jobId": "{job}"}),
            lookout("jobError", {"jobId": "{job}"}),
            lookout("jobRunError", {"runId": "{run}"}),
            lookout("jobRunDebugMessage", {"runId": "{run}"}),
            lookout("jobRunSchedulerTerminationReason", {"runId": "{run}"}),
        ),
    ),
    Row(
        what="look at executors and nodes",
        who=SIGNED_IN,
        doors=(rest("GET v1/executors"), rest("GET v1/executors/local"), page("GET /fleet")),
    ),
    Row(
        what="read the metrics",
        who=SIGNED_IN,
        doors=(Door(at=At.PROGRAM, request="GET /metrics"),),
    ),
    Row(
        what="submit jobs to the queue",
        who=SUBMITTERS,
        doors=(rest("POST v1/jobs", JOB_FILE), rest("POST v1/jobs?dryRun=true", JOB_FILE)),
    ),
    Row(
        what="cancel jobs of the queue",
        who=CANCELLERS,
        doors=(
            rest("POST v1/jobs/cancel", {"jobIds": ["{job}"]}),
            rest("POST v1/jobs/cancel", {"queue": "{queue}", "jobSetId": "set"}),
            rest("POST v1/jobs/cancel", {"filter": "queue={queue}&runs>=0"}),
            page("POST /jobs/{job}/cancel"),
            page("POST /cancel-jobs?queue={queue}"),
        ),
    ),
    Row(
        what="reprioritize jobs of the queue",
        who=REPRIORITIZERS,
        doors=(
            rest("POST v1/jobs/reprioritize", {"jobIds": ["{job}"], "priority": 5}),
            rest("POST v1/jobs/reprioritize", {"queue": "{queue}", "priority": 5}),
            rest("POST v1/jobs/reprioritize", {"filter": "queue={queue}", "priority": 5}),
            page("POST /jobs/{job}/reprioritize", {"priority": "5"}),
            page("POST /reprioritize-jobs?queue={queue}", {"priority": "5"}),
        ),
    ),
    Row(
        what="preempt jobs of the queue",
        who=PREEMPTERS,
        doors=(
            rest("POST v1/jobs/preempt", {"jobIds": ["{job}"]}),
            rest("POST v1/jobs/preempt", {"queue": "{queue}", "executor": "local"}),
            rest("POST v1/jobs/preempt", {"filter": "queue={queue}&executor.any=local"}),
            page("POST /jobs/{job}/preempt"),
            page("POST /preempt-jobs?queue={queue}"),
        ),
    ),
    Row(
        what="cancel, reprioritize, preempt whatever runs on an executor",
        who=OPERATORS,
        doors=(
            rest("POST v1/jobs/cancel", {"executor": "local"}),
            rest("POST v1/jobs/reprioritize", {"executor": "local", "priority": 5}),
            rest("POST v1/jobs/preempt", {"executor": "local", "node": "local-1"}),
        ),
    ),
    Row(
        what="make a queue",
        who=OPERATORS,
        doors=(
            rest("POST v1/queues", {"name": "new"}, status=201),
            page("GET /new-queue"),
            page("POST /new-queue", {"name": "new"}),
        ),
    ),
    Row(
        what="change a queue, cordon it",
        who=OPERATORS,
        doors=(
            rest("PUT v1/queues/{queue}", {}),
            page("GET /queues/{queue}/edit"),
            page("POST /queues/{queue}/edit", {"priorityFactor": "2"}),
            rest("PUT v1/queues/{queue}/cordon", {"cordoned": True}),
            page("GET /queues/{queue}/cordon"),
            page("POST /queues/{queue}/cordon", {"cordoned": "true"}),
        ),
    ),
    Row(
        what="cordon executors and nodes",
        who=OPERATORS,
        doors=(
            rest("PUT v1/executors/local/cordon", {"cordoned": True}),
            rest("PUT v1/executors/local/nodes/local-1/cordon", {"cordoned": True}),
            page("GET /executors/local/cordon"),
            page("POST /executors/local/cordon", {"cordoned": "true"}),
            page("GET /executors/local/nodes/local-1/cordon"),
            page("POST /executors/local/nodes/local-1/cordon", {"cordoned": "true"}),
        ),
    ),
    Row(
        what="delete an executor that is silent",
        who=OPERATORS,
        doors=(
            rest("DELETE v1/executors/{silent}"),
            page("GET /executors/{silent}/delete"),
            page("POST /executors/{silent}/delete"),
        ),
    ),
    Row(
        what="attach retry policies to a queue",
        who=OPERATORS,
        doors=(
            rest("PUT v1/queues/{queue}/retry-policies", {"retryPolicies": []}),
            page("POST /queues/{queue}/policies", {"policy": "oom-grow"}),
            page("POST /attach-policy", {"queue": "nightly", "add": "oom-grow"}),
        ),
    ),
    Row(
        what="delete a queue without jobs",
        who=OPERATORS,
        doors=(
            rest("DELETE v1/queues/{empty}"),
            page("GET /queues/{empty}/delete"),
            page("POST /queues/{empty}/delete"),
        ),
    ),
    Row(
        what="make a retry policy",
        who=OPERATORS,
        doors=(
            rest("POST v1/retry-policies", {**OOM_GROW, "name": "new"}, status=201),
            page("GET /new-policy"),
            page("POST /new-policy", {"text": POLICY_TEXT.format("new")}),
        ),
    ),
    Row(
        what="publish a version of a retry policy",
        who=OPERATORS,
        doors=(
            rest("PUT v1/retry-policies/{policy}", OOM_GROW),
            rest("POST v1/retry-policies?apply=true", OOM_GROW),
            page("GET /policies/{policy}/edit"),
            page("POST /policies/{policy}/edit", {"text": POLICY_TEXT.format("oom-grow"), "based_on": "1"}),
        ),
    ),
    Row(
        what="delete a retry policy",
        who=OPERATORS,
        doors=(
            rest("DELETE v1/retry-policies/{policy}"),
            page("GET /policies/{policy}/delete"),
            page("POST /policies/{policy}/delete"),
        ),
    ),
    Row(
        what="speak for the executor: heartbeat, work, reports",
        who=frozenset({Who.AGENT}),
        doors=(
            agents("POST executor/v1/heartbeat", HEARTBEAT),
            agents("POST executor/v1/work", {"executor": "local", "runs": []}),
            agents("POST executor/v1/reports", {"executor": "local", "reports": []}),
        ),
    ),
)
