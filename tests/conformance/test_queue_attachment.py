"""queue_attachment.json: attaching, deleting and creating over, by the verbs themselves."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from policies.documents import DocumentInvalid, policy_from_object
from policies.policy import Policy
from scheduler.administration import create_queue, delete_queue, update_queue
from scheduler.config import Configuration
from scheduler.cordoning import cordon_queue
from scheduler.errors import AlreadyExists, Conflict, Invalid, NotFound, SchedulerError
from scheduler.publishing import apply_policy, create_policy, delete_policy, update_policy
from scheduler.queries.queues import queue_rows
from scheduler.queuefile import QueueSpec, parse_queue
from tests.conformance.cases import Case, cases
from tests.people import OLGA

pytestmark = pytest.mark.django_db

CONFIG = Configuration()
CODES: dict[type[Exception], str] = {
    Invalid: "InvalidArgument",
    DocumentInvalid: "InvalidArgument",
    NotFound: "NotFound",
    AlreadyExists: "AlreadyExists",
    Conflict: "FailedPrecondition",
}


def _queue(operation: Mapping[str, Any]) -> QueueSpec:
    return parse_queue(operation)


def _policy(operation: Mapping[str, Any]) -> Policy:
    return policy_from_object({"defaultAction": "Fail", **operation})


def _only(operation: Mapping[str, Any], *names: str) -> dict[str, Any]:
    surplus = set(operation) - {"name", *names}
    if surplus:
        raise KeyError(f"The runner does not know {sorted(surplus)}.")
    return dict(operation)


OPERATIONS: dict[str, Callable[[Mapping[str, Any]], object]] = {
    "create_queue": lambda given: create_queue(spec=_queue(given), actor=OLGA),
    "update_queue": lambda given: update_queue(spec=_queue(given), actor=OLGA),
    "delete_queue": lambda given: delete_queue(**_only(given), actor=OLGA),
    "cordon_queue": lambda given: cordon_queue(queue=_only(given)["name"], cordoned=True, actor=OLGA),
    "uncordon_queue": lambda given: cordon_queue(queue=_only(given)["name"], cordoned=False, actor=OLGA),
    "create_policy": lambda given: create_policy(policy=_policy(given), actor=OLGA, config=CONFIG),
    "update_policy": lambda given: update_policy(policy=_policy(given), actor=OLGA, config=CONFIG),
    "apply_policy": lambda given: apply_policy(policy=_policy(given), actor=OLGA, config=CONFIG),
    "delete_policy": lambda given: delete_policy(**_only(given, "detach"), actor=OLGA),
}


def _told(error: Exception) -> dict[str, Any]:
    names = getattr(error, "names", ())
    return {"code": CODES[type(error)], "names": list(names), "message": str(error)}


def _perform(operation: Mapping[str, Any]) -> dict[str, Any] | None:
    given = dict(operation)
    perform = OPERATIONS[given.pop("op")]
    try:
        perform(given)
    except (SchedulerError, DocumentInvalid) as error:
        return _told(error)
    return None


@pytest.mark.parametrize("case", cases("queue_attachment.json"))
def test_queues_and_policies_are_attached_as_in_the_model(case: Case) -> None:
    case.refuse_unknown_keys(
        ["existing_policies", "operations"], ["queue_retry_policies", "last_operation_error"]
    )
    for name in case.given["existing_policies"]:
        create_policy(policy=_policy({"name": name}), actor=OLGA, config=CONFIG)
    last = None
    for operation in case.given["operations"]:
        last = _perform(operation)
    asked = case.expect["queue_retry_policies"]
    attached = {row.name: list(row.retry_policies) for row in queue_rows()}
    actual: dict[str, Any] = {"queue_retry_policies": dict.fromkeys(asked) | attached}
    if last is not None:
        listed = case.expect.get("last_operation_error", last)
        actual["last_operation_error"] = {key: last[key] for key in listed}
    case.check(actual)
