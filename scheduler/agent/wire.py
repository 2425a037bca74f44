"""The executor API's JSON: the values of `executors.protocol` as objects with camelCase keys, and back."""

import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any

from policies.failures import ContainerEnd
from scheduler.executors.protocol import (
    EnforcedBy,
    Heartbeat,
    KilledBy,
    Lease,
    NodeDescription,
    Outcome,
    Output,
    Report,
    ReportOutcome,
    ReportState,
    Stop,
    Work,
    WorkRequest,
)

type Json = dict[str, Any]


class WireError(Exception):
    """The other side sent something that is not what the executor API says."""


def heartbeat_json(heartbeat: Heartbeat) -> Json:
    """Body of a heartbeat."""
    return {
        "executor": heartbeat.executor,
        "pool": heartbeat.pool,
        "version": heartbeat.version,
        "agentTime": heartbeat.agent_time,
        "nodes": [_node_json(node) for node in heartbeat.nodes],
        "categories": [
            {"name": each.name, "disposition": str(each.disposition)} for each in heartbeat.categories
        ],
        "trackedNodeLabels": list(heartbeat.tracked_node_labels),
        "honours": list(heartbeat.honours),
    }


def work_request_json(request: WorkRequest) -> Json:
    """Body of a request for work."""
    return {
        "executor": request.executor,
        "runs": list(request.runs),
        "stopping": list(request.stopping),
        "waitSeconds": request.wait_seconds,
    }


def work_from_json(value: Any) -> Work:
    """The answer to a request for work. Raises WireError."""
    try:
        return Work(
            leases=tuple(lease_from_json(each) for each in value.get("leases") or ()),
            stop=tuple(_stop_from_json(each) for each in value.get("stop") or ()),
            forget=tuple(str(each) for each in value.get("forget") or ()),
            missed=tuple(str(each) for each in value.get("missed") or ()),
            ask_again_seconds=float(value.get("askAgainSeconds") or 0.0),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise WireError(f"The scheduler's answer about work cannot be read: {error!r}") from error


def lease_from_json(value: Mapping[str, Any]) -> Lease:
    """One lease. Raises KeyError, TypeError or ValueError."""
    return Lease(
        run_id=str(value["runId"]),
        job_id=str(value["jobId"]),
        job_set_id=str(value.get("jobSetId") or ""),
        queue=str(value.get("queue") or ""),
        namespace=str(value.get("namespace") or ""),
        owner=str(value.get("owner") or ""),
        number=int(value["number"]),
        node=str(value["node"]),
        pod_name=str(value["podName"]),
        pod_spec=dict(value["podSpec"]),
        memory_bytes=int(value.get("memoryBytes") or 0),
        annotations=dict(value.get("annotations") or {}),
        labels=dict(value.get("labels") or {}),
    )


def reports_json(executor: str, reports: Iterable[Report]) -> Json:
    """Body of a batch of reports."""
    return {"executor": executor, "reports": [report_json(report) for report in reports]}


def report_json(report: Report) -> Json:
    """One report, without what goes without saying; the journal keeps it in this form too."""
    given = ((name, getattr(report, field), default) for field, name, default in _FIELDS)
    return {name: _plain(value) for name, value, default in given if value != default}


def report_from_json(value: Mapping[str, Any]) -> Report:
    """What `report_json` gave. Raises KeyError, TypeError or ValueError."""
    found = {field: value[name] for field, name, _ in _FIELDS if name in value}
    found |= {"run_id": value["runId"], "state": ReportState(value["state"])}
    for field, read in _READ.items():
        if field in found:
            found[field] = read(found[field])
    return Report(**found)


def outcomes_from_json(value: Any) -> tuple[ReportOutcome, ...]:
    """The answer to a batch of reports. Raises WireError."""
    try:
        return tuple(
            ReportOutcome(
                run_id=str(each["runId"]), outcome=Outcome(each["outcome"]), why=str(each.get("why") or "")
            )
            for each in value["outcomes"]
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise WireError(f"The scheduler's answer about reports cannot be read: {error!r}") from error


def _node_json(node: NodeDescription) -> Json:
    return {
        "name": node.name,
        "labels": dict(node.labels),
        "cpuMillicores": node.cpu_millicores,
        "memoryBytes": node.memory_bytes,
        "resources": dict(node.resources),
        "taints": [
            {"key": taint.key, "value": taint.value, "effect": str(taint.effect)} for taint in node.taints
        ],
        "schedulable": node.schedulable,
        "memoryEnforcedBy": str(node.memory_enforced_by),
        "notes": list(node.notes),
    }


def _stop_from_json(value: Mapping[str, Any]) -> Stop:
    grace = value.get("graceSeconds")
    return Stop(
        run_id=str(value["runId"]),
        grace_seconds=None if grace is None else float(grace),
        reason=str(value.get("reason") or ""),
    )


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _plain(value: Any) -> Any:
    """A report's field as JSON."""
    if isinstance(value, ContainerEnd):
        return {
            "name": value.name,
            "exitCode": value.exit_code,
            "reason": value.reason,
            "message": value.message,
            "init": value.is_init,
        }
    if isinstance(value, Output):
        return {
            "head": base64.b64encode(value.head).decode("ascii"),
            "tail": base64.b64encode(value.tail).decode("ascii"),
            "droppedBytes": value.dropped_bytes,
        }
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return value


def _container_from_json(value: Mapping[str, Any]) -> ContainerEnd:
    return ContainerEnd(
        name=value["name"],
        exit_code=value["exitCode"],
        reason=value["reason"],
        message=value["message"],
        is_init=value["init"],
    )


def _output_from_json(value: Mapping[str, Any]) -> Output:
    return Output(
        head=base64.b64decode(value["head"]),
        tail=base64.b64decode(value["tail"]),
        dropped_bytes=int(value["droppedBytes"]),
    )


_FIELDS = tuple((field.name, _camel(field.name), field.default) for field in fields(Report))
"""Fields of a report: names here and outside, and what they are where nothing is said."""
_READ: dict[str, Callable[[Any], Any]] = {
    "killed_by": KilledBy,
    "enforced_by": EnforcedBy,
    "warnings": tuple,
    "containers": lambda sent: tuple(_container_from_json(each) for each in sent),
    "output": lambda sent: None if sent is None else _output_from_json(sent),
}
