"""One job as the list of jobs shows it."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from lookout.pages.bar import jobs_address
from policies.quantity import rounded_bytes
from scheduler.models import Job
from scheduler.queries.jobs import JobRow
from scheduler.states import JobState, RunState


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One job as the list shows it."""

    row: JobRow
    queue_address: str
    job_set_address: str
    retries: tuple[int, int] | None
    """Used, of the limit; None before any decision."""
    ran: timedelta | None
    memory_before: str
    memory_now: str

    @property
    def job(self) -> Job:
        return self.row.job

    @property
    def run_states(self) -> list[str]:
        return [run.state for run in self.row.runs]

    @property
    def awaits_verdict(self) -> bool:
        last = self.row.last_run
        return last is not None and last.ended_at is not None and last.settled_at is None

    @property
    def no_run_came(self) -> bool:
        """It failed although a retry was granted: leases were returned until there were too many."""
        last = self.row.last_run
        return (
            self.job.state == JobState.FAILED and last is not None and last.state == RunState.LEASE_RETURNED
        )

    @property
    def retries_spent(self) -> bool:
        return self.retries is not None and self.retries[0] >= self.retries[1] > 0


def line_of(row: JobRow, now: datetime) -> Line:
    """The job with what is figured out from its runs."""
    job, last, decision = row.job, row.last_run, row.last_decision
    memory = job.memory_limit_bytes or job.memory_request_bytes
    before = job.submitted_memory_bytes
    began = last.started_at if last else None
    return Line(
        row=row,
        queue_address=jobs_address([("queue", job.queue_id)]),
        job_set_address=jobs_address([("queue", job.queue_id), ("jobSet", job.job_set.name)]),
        retries=(decision.policy_used_after, decision.policy_limit) if decision else None,
        ran=((last.ended_at or now) - began) if last and began else None,
        memory_before=rounded_bytes(before) if before else "",
        memory_now=rounded_bytes(memory) if memory else "",
    )
