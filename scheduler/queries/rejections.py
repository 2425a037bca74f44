"""Which jobs can never run on the executors heard of, and why, in words."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scheduler.config import Configuration
from scheduler.executors.protocol import unhonoured_fields
from scheduler.models import Executor, Job
from scheduler.placement import Requirements, fits_somewhere
from scheduler.podspec import READ_BY_THE_SCHEDULER
from scheduler.queries.fleet import fleet_nodes, heard_of

SHOWN = 5


def reasons_to_reject(
    jobs: Sequence[tuple[Job, Mapping[str, Any]]], *, config: Configuration
) -> dict[str, str]:
    """Job id → why it can never run, of jobs with their pod specs; those that can, or may yet, are absent.

    Two queries. The whole capacity of the fleet counts, closed nodes included. With no executor heard of
    every job waits for one.
    """
    nodes = fleet_nodes(config=config)
    wanted = {job.id: Requirements.of(job) for job, _ in jobs}
    fits = fits_somewhere(wanted.values(), nodes, node_id_label=config.node_id_label)
    strange = {**_unhonoured(jobs, config), **_unsupported(jobs, config)}
    reasons = {job.id: strange.get(job.id) or fits[wanted[job.id]].reason for job, _ in jobs}
    return {job_id: reason for job_id, reason in reasons.items() if reason}


def fields_nobody_honours(
    pod_specs: Iterable[Mapping[str, Any]], *, config: Configuration
) -> list[tuple[str, ...]]:
    """For each pod spec, the paths below it that no executor heard of acts on, such as `spec.containers[0].tty`."""
    honours = _honours(config)
    if not honours:
        return [() for _ in pod_specs]
    return [unhonoured_fields(spec, honours) for spec in pod_specs]


def _honours(config: Configuration) -> frozenset[str]:
    """What some executor acts on; empty where none says anything of fields."""
    reported = Executor.objects.filter(heard_of(config)).values_list("honours", flat=True)
    honours = frozenset(path for paths in reported for path in paths)
    return honours.union(READ_BY_THE_SCHEDULER) if honours else honours


def _unsupported(jobs: Iterable[tuple[Job, Mapping[str, Any]]], config: Configuration) -> dict[str, str]:
    """Job id → the resources nobody counts."""
    supported = frozenset(config.supported_resource_types)
    strange = {job.id: sorted(job.resources.keys() - supported) for job, _ in jobs}
    return {
        job_id: (
            f"No node is counted by {', '.join(names[:SHOWN])}. Leave {'it' if len(names) == 1 else 'them'} out, "
            "or add it to scheduling.supportedResourceTypes."
        )
        for job_id, names in strange.items()
        if names
    }


def _unhonoured(jobs: Iterable[tuple[Job, Mapping[str, Any]]], config: Configuration) -> dict[str, str]:
    """Job id → the fields that no executor acts on. Executors that say nothing of fields have no say."""
    honours = _honours(config)
    if not honours:
        return {}
    known: dict[str, str] = {}
    found = {}
    for job, spec in jobs:
        shape = json.dumps(_shape(spec), sort_keys=True)
        if shape not in known:
            known[shape] = _sentence(unhonoured_fields(spec, honours))
        found[job.id] = known[shape]
    return {job_id: sentence for job_id, sentence in found.items() if sentence}


def _shape(value: Any) -> Any:
    """The fields that are set, without their values: specs of one shape are answered alike."""
    if isinstance(value, Mapping):
        return {key: _shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shape(item) for item in value]
    return value not in (None, "")


def _sentence(paths: Sequence[str]) -> str:
    if not paths:
        return ""
    more = f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else ""
    return f"No executor acts on {', '.join(paths[:SHOWN])}{more}. Leave {'it' if len(paths) == 1 else 'them'} out."
