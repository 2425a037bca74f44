"""Which jobs a request is about: named one by one, or chosen by where they are."""

import dataclasses
from typing import Annotated

from lookout.api.shapes import AtMost
from scheduler.errors import Invalid
from scheduler.selection import Selection


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ChosenJobs:
    """Which jobs: jobIds, or else all that is named of the others must hold."""

    job_ids: Annotated[tuple[str, ...] | None, AtMost(10_000)] = None
    """These, all or none."""
    queue: Annotated[str, AtMost(63)] = ""
    """Jobs of this queue."""
    job_set_id: Annotated[str, AtMost(1_024)] = ""
    """Of this job set of the queue."""
    executor: Annotated[str, AtMost(63)] = ""
    """Jobs that have a run on this executor."""
    node: Annotated[str, AtMost(253)] = ""
    """On this node of the executor."""
    states: Annotated[tuple[str, ...], AtMost(4)] = ()
    """Any of queued, leased, pending, running; none means all four."""
    priority_classes: Annotated[tuple[str, ...], AtMost(100)] = ()
    """Of any of these priority classes; none means all."""
    filter: Annotated[str | None, AtMost(16_000)] = None
    """Jobs of this filter, as it stands in the address of a list of jobs: category.any=oom&node.last!=gpu-07."""

    @property
    def selection(self) -> Selection | None:
        """Where the jobs are; None where they are named. Raises Invalid for both at once, and for neither."""
        if self.filter is not None and not self.filter.strip():
            raise Invalid("The filter is empty. Leave it out, or say which jobs are meant.", path="filter")
        found = Selection(
            queue=self.queue,
            job_set=self.job_set_id,
            executor=self.executor,
            node=self.node,
            states=self.states,
            priority_classes=self.priority_classes,
            filter=self.filter or "",
        )
        if (self.job_ids is None) == (found == Selection()):
            raise Invalid("Name jobs by jobIds or say where they are, one of the two.", path="jobIds")
        return found if self.job_ids is None else None
