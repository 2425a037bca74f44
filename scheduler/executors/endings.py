"""From a runner's end record to what the executor observed, in the shape of a pod's end."""

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from policies.failures import ContainerEnd, InternalSubcategory, PodEvent, Signals, internal_failure
from scheduler.executors.instants import Instant
from scheduler.executors.protocol import (
    EnforcedBy,
    ExitRecord,
    KilledBy,
    Observation,
    Output,
    RunPhase,
)
from scheduler.executors.runner import END

DEADLINE_REASON = "DeadlineExceeded"
DEADLINE_MESSAGE = "Pod was active on the node longer than the specified deadline"


def recorded_end(folder: Path) -> Observation | None:
    """The end that the runner of this folder recorded; None when it recorded none."""
    try:
        record = json.loads((folder / END).read_text(encoding="utf-8"))
        return _observation(record)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def lost(run_id: str, message: str) -> Observation:
    """A run whose runner or machine went away under it."""
    return Observation(
        run_id=run_id,
        phase=RunPhase.LOST,
        signals=Signals(message=message),
        failure=internal_failure(InternalSubcategory.NODE_FAILURE),
    )


def _observation(record: Mapping[str, Any]) -> Observation:
    containers = record["containers"]
    killed_by = KilledBy(record["killedBy"])
    failed = killed_by in (KilledBy.DEADLINE, KilledBy.STOP) or any(each["exitCode"] for each in containers)
    deciding = _deciding(containers)
    late = killed_by is KilledBy.DEADLINE
    return Observation(
        run_id=record["runId"],
        phase=RunPhase.FAILED if failed else RunPhase.SUCCEEDED,
        signals=Signals(
            containers=tuple(_container_end(each) for each in containers),
            message=DEADLINE_MESSAGE if late else "",
            reason=DEADLINE_REASON if late else "",
            events=tuple(_events(containers, killed_by)),
        ),
        exit=ExitRecord(
            exit_code=deciding.get("exitCode"),
            signal=deciding.get("signal"),
            killed_by=killed_by,
            memory_peak_bytes=record["memoryPeakBytes"],
            enforced_by=EnforcedBy(record["enforcedBy"]),
            warnings=tuple(record["warnings"]),
            output=_output(record["output"]),
        ),
        age_seconds=Instant.from_json(record["endedAt"]).age(),
    )


def _deciding(containers: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The container that ran out of memory, else the first to fail, else the last to end."""
    for each in containers:
        if each["reason"] == "OOMKilled":
            return each
    in_time = sorted(containers, key=lambda each: each["endedAt"] or 0.0)
    failed = [each for each in in_time if each["exitCode"]]
    return failed[0] if failed else in_time[-1] if in_time else {}


def _container_end(container: Mapping[str, Any]) -> ContainerEnd:
    return ContainerEnd(
        name=container["name"],
        exit_code=container["exitCode"],
        reason=container["reason"],
        message=container["message"],
        is_init=container["init"],
    )


def _events(containers: Sequence[Mapping[str, Any]], killed_by: KilledBy) -> list[PodEvent]:
    events = [
        PodEvent(type="Warning", reason="Failed", message=f"Error: {each['message']}")
        for each in containers
        if each["reason"] == "StartError"
    ]
    if killed_by is KilledBy.DEADLINE:
        events.append(PodEvent(type="Normal", reason=DEADLINE_REASON, message=DEADLINE_MESSAGE))
    return events


def _output(output: Mapping[str, Any]) -> Output:
    return Output(
        head=base64.b64decode(output["head"]),
        tail=base64.b64decode(output["tail"]),
        dropped_bytes=int(output["droppedBytes"]),
    )
