"""Active runs of a pool that a waiting job might take the place of."""

from collections.abc import Iterable

from scheduler.config import Configuration
from scheduler.models import Run
from scheduler.models.preemption import ASKED_TO_GIVE_WAY
from scheduler.placement import reserved_memory
from scheduler.planning import QueuedJob, RunningJob, Use
from scheduler.states import ACTIVE_RUN_STATES


def runs_that_may_give_way(
    pool: str, waiting: Iterable[QueuedJob], *, config: Configuration
) -> list[RunningJob]:
    """Runs of preemptible classes, and of lower ones than the highest that waits; one query, if anything waits.

    Runs that are ended already, because somebody cancelled their job or asked them to give way, are left out.
    """
    priorities = {name: found.priority for name, found in config.priority_classes.items()}
    highest = max((priorities.get(name, 0) for name in {job.priority_class for job in waiting}), default=None)
    if highest is None:
        return []
    rows = (
        Run.objects.filter(
            state__in=ACTIVE_RUN_STATES, executor__pool=pool, job__cancel_requested_at__isnull=True
        )
        .exclude(priority_class__in=classes_that_stay(highest, config))
        .exclude(ASKED_TO_GIVE_WAY)
        .values_list(
            "id", "job_id", "queue_id", "executor_id", "node", "priority_class", "cpu_request_millicores",
            "memory_request_bytes", "memory_limit_bytes", "resources", "leased_at", "job__gang_id",
        )
    )  # fmt: skip
    return [
        RunningJob(
            run_id=str(run_id),
            job_id=job_id,
            queue=queue,
            executor=executor,
            node=node,
            priority_class=priority_class or config.default_priority_class_name,
            used=Use(
                cpu_millicores=cpu,
                memory_bytes=reserved_memory(request=request, limit=limit),
                resources=resources,
            ),
            leased_at=leased_at,
            gang_id=gang_id,
        )
        for (
            run_id, job_id, queue, executor, node, priority_class, cpu, request, limit, resources, leased_at, gang_id,
        ) in rows
    ]  # fmt: skip


def classes_that_stay(highest: int, config: Configuration) -> list[str]:
    """Priority classes, as runs have them, whose runs give way to no job of such a priority."""
    names = [
        name
        for name, found in config.priority_classes.items()
        if not found.preemptible and found.priority >= highest
    ]
    # Runs from before there were classes are of the default one, and say nothing.
    return [*names, ""] if config.default_priority_class_name in names else names
