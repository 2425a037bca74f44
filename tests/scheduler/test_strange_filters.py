"""Names that no filter has: the one that may be meant is told."""

import pytest

from scheduler.filters import JOBS, RUNS, FilterInvalid, Grammar, order_of
from scheduler.filters.strange import said_of_strange


@pytest.mark.parametrize(
    ("grammar", "name", "said"),
    [
        (JOBS, "quue", "There is no filter 'quue'. Did you mean queue?"),
        (JOBS, "job_set", "There is no filter 'job_set'. Did you mean jobSet?"),
        (JOBS, "categry.any", "There is no filter 'categry.any'. Did you mean category.any?"),
        (JOBS, "categry", "There is no filter 'categry'. Did you mean category.last or category.any?"),
        (JOBS, "anotation.team", "There is no filter 'anotation.team'. Did you mean annotation.KEY?"),
        (JOBS, "jobId", "There is no filter 'jobId'. Did you mean id?"),
        (RUNS, "jobId", "There is no filter 'jobId'. Did you mean job?"),
        (RUNS, "runId", "There is no filter 'runId'. Did you mean id?"),
        (JOBS, "runCount", "There is no filter 'runCount'. Did you mean runs?"),
        (JOBS, "submittedAt", "There is no filter 'submittedAt'. Did you mean submitted?"),
        (RUNS, "exitcode", "There is no filter 'exitcode'. Did you mean exitCode?"),
        (RUNS, "", "The comparison has no field before it. Write one, such as queue."),
    ],
)
def test_what_may_be_meant(grammar: Grammar, name: str, said: str) -> None:
    assert said_of_strange(grammar, name) == said


def test_names_are_told_as_they_can_be_written() -> None:
    own, _, of_runs = said_of_strange(JOBS, "colour").partition(
        "; of runs, each with .any or .last after it, "
    )
    assert ("queue" in own, "annotation.KEY" in own, "exitCode" in own) == (True, True, False)
    assert {"exitCode", "node", "category"} <= set(of_runs.rstrip(".").split(", "))


def test_an_order_that_may_be_meant() -> None:
    with pytest.raises(FilterInvalid, match=r"^sort takes no 'submited'\. Did you mean submitted\?$"):
        order_of("queue,-submited", JOBS.things, ())
